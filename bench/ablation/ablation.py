#!/usr/bin/env python3
"""What each of FlashAttention-2's steps buys on this machine.

    python3 bench/ablation/ablation.py [--device cpu|cuda] [--target PATH] [--dtype f32|bf16|f16]
        [--d 64,128] [--n 4096] [--rounds 7] [--budget 10] [--out results.json] [--svg picture.svg]
    python3 bench/ablation/ablation.py --show results.json [--svg picture.svg]

Starts from FlashAttention-1's form (attention_steps.tw with every step off) and adds one step after
the other: the output left un-normalised until the end, exp2 with the scale folded in, loops split so
that whole blocks need no mask, the product accumulated onto the output, and at last the tuned
configuration in place of the default one. All forms run interleaved, in random order, on the same
tensors; the time of a form is the median of its calls. Speed-ups are to the form before and to the
first.

Published, for orientation: FlashAttention-2 is 1.7 to 3.0 times as fast as FlashAttention-1 on an A100
(Dao 2023, arXiv 2307.08691, section 4.1), all its changes and better work partitioning together;
skipping what is hidden makes a causal mask 1.7 to 1.8 times as fast as none (section 3.1). No
figures by step are published.
"""
import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "python"))

PUBLISHED = (1.7, 3.0)
STEPS = [("FlashAttention-1's form", {}),
         ("normalised once, at the end", {"DELAYED": True}),
         ("exp2, scale folded in", {"BASE2": True}),
         ("two-stage loops", {"STAGES": True}),
         ("product accumulates in place", {"FUSED": True}),
         ("tuned", {})]


class Host:
    """Tensors of NumPy, calls timed by the clock."""

    def __init__(self, a):
        import numpy
        self.numpy, self.dtype = numpy, {"f32": "f4", "f16": "f2"}[a.dtype]

    def tensor(self, seed, *shape):
        return self.numpy.random.default_rng(seed).standard_normal(shape).astype(self.dtype)

    def time(self, run, seconds=0.3):
        run()
        samples, end = [], time.perf_counter() + seconds
        while not samples or time.perf_counter() < end:
            t0 = time.perf_counter()
            run()
            samples.append(time.perf_counter() - t0)
        return samples


class Gpu:
    """Tensors of PyTorch, calls timed by events."""

    def __init__(self, a):
        import torch
        self.torch = torch
        self.dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[a.dtype]

    def tensor(self, seed, *shape):
        self.torch.manual_seed(seed)
        return self.torch.randn(*shape, dtype=self.dtype, device="cuda")

    def time(self, run, seconds=0.08):
        event = self.torch.cuda.Event
        for _ in range(3):
            run()
        samples = []
        while sum(samples) < seconds:
            begin, end = event(enable_timing=True), event(enable_timing=True)
            begin.record()
            run()
            end.record()
            end.synchronize()
            samples.append(begin.elapsed_time(end) * 1e-3)
        return samples


def forms(kernel, device, args, causal, a):
    """(label, callable, configuration) of each form, in order."""
    on, made = {"DELAYED": False, "BASE2": False, "STAGES": False, "FUSED": False}, []
    for label, step in STEPS:
        on = dict(on, **step)
        call = dict(args, CAUSAL=causal, **on)
        if label == "tuned":
            config = kernel.tune(call, device=device, budget=a.budget).winner.config
        else:
            config = kernel.query(call, device=device)["config"]
        bound = kernel.bind(call, device=device, config=config)
        tensors = {n: args[n] for n in ("q", "k", "v", "o", "lse")}
        made.append((label, lambda bound=bound: bound(**tensors), config))
    return made


HEADING = f"   D      N caus  {'step':30} {'GFLOP/s':>10} {'/last':>6} {'/first':>6}  configuration"


def show(r):
    print(f"{r['d']:4} {r['n']:6} {'yes' if r['causal'] else 'no':>4}  {r['step']:30} {r['gflops']:10.0f} "
          f"{r['over_last']:6.2f} {r['over_first']:6.2f}  {r['config']}", flush=True)


def measure(kernel, device, place, d, n, causal, a):
    heads = 512 // d if a.device == "cpu" else 2048 // d
    batch = 1 if a.device == "cpu" else 16384 // n
    q, k, v, o = (place.tensor(i, batch, heads, n, d) for i in range(4))
    args = dict(q=q, k=k, v=v, o=o)
    args["lse"] = kernel.launch(dict(args, CAUSAL=causal), device=device).lse
    made = forms(kernel, device, args, causal, a)
    samples = [[] for _ in made]
    for _ in range(a.rounds):
        for i in random.sample(range(len(made)), len(made)):
            samples[i] += place.time(made[i][1])
    flops = 4.0 * batch * heads * n * n * d * (0.5 if causal else 1.0)
    median = [statistics.median(s) for s in samples]
    rows = []
    for i, (label, _, config) in enumerate(made):
        rows.append({"d": d, "n": n, "causal": causal, "step": label, "config": config,
                     "gflops": flops / median[i] * 1e-9, "over_last": median[max(i - 1, 0)] / median[i],
                     "over_first": median[0] / median[i],
                     "spread": statistics.median(abs(x - median[i]) for x in samples[i]) / median[i]})
        show(rows[-1])
    return rows


def picture(rows, title):
    """Bars of the speed-up over the first form, a group a problem, as SVG text."""
    groups = {}
    for r in rows:
        groups.setdefault((r["d"], r["n"], r["causal"]), []).append(r)
    colours = ["#999999", "#b9cfe0", "#8db4d2", "#5f98c3", "#1b6ca8", "#0d3b5e"]
    top, height = max(1.15 * max(r["over_first"] for r in rows), 1.05 * PUBLISHED[1]), 220
    width = 60 + len(groups) * (6 * 22 + 30)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height + 160}" '
           'font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height + 160}" fill="white"/>',
           f'<text x="40" y="14">{title}</text>']
    low, high = (height + 24 - height * y / top for y in PUBLISHED)
    out.append(f'<rect x="40" y="{high:.1f}" width="{width - 50}" height="{low - high:.1f}" fill="#f3e3c3"/>'
               f'<text x="44" y="{high + 10:.1f}" font-size="9" fill="#8a6d1f">published for all steps and better '
               f'partitioning, A100: {PUBLISHED[0]} to {PUBLISHED[1]}</text>')
    for g, (key, forms_) in enumerate(groups.items()):
        x = 44 + g * (6 * 22 + 30)
        for i, r in enumerate(forms_):
            h = height * r["over_first"] / top
            out.append(f'<rect x="{x + 22 * i}" y="{height + 24 - h:.1f}" width="20" '
                       f'height="{h:.1f}" fill="{colours[i]}"/><text x="{x + 22 * i}" '
                       f'y="{height + 20 - h:.1f}" font-size="9">{r["over_first"]:.2f}</text>')
        out.append(f'<text x="{x}" y="{height + 38}">D {key[0]}, N {key[1]}'
                   f'{", causal" if key[2] else ""}</text>')
    for i, (label, _) in enumerate(STEPS):
        y = height + 58 + 15 * i
        out.append(f'<rect x="44" y="{y}" width="10" height="10" fill="{colours[i]}"/>'
                   f'<text x="60" y="{y + 9}">{"" if i == 0 else "+ "}{label}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


def recorded(path):
    with open(path) as f:
        data = json.load(f)
    print(HEADING)
    for row in data["rows"]:
        show(row)
    return data


def measured(a):
    import tilewright as tw
    place = Host(a) if a.device == "cpu" else Gpu(a)
    print(HEADING)
    rows = []
    for d in (int(x) for x in a.d.split(",")):
        for causal in (False, True):  # each knows nothing of what the last was tuned to
            cx = tw.Context()
            device = cx.device(a.device, target=a.target)
            kernel = cx.load(os.path.join(HERE, "attention_steps.tw"))
            rows += measure(kernel, device, place, d, a.n, causal, a)
    info = device.info
    commit = os.environ.get("TILEWRIGHT_COMMIT") or subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], text=True,
        capture_output=True).stdout.strip()
    about = {"device": info["name"], "target": info["target"], "threads": info["threads"],
             "system": platform.release(), "commit": commit, "date": time.strftime("%Y-%m-%d")}
    return {"machine": about, "dtype": a.dtype, "rows": rows}


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    ap.add_argument("--target")
    ap.add_argument("--dtype", default="f32", choices=["f32", "f16", "bf16"])
    ap.add_argument("--d", default="64,128")
    ap.add_argument("--n", type=int, default=4096)
    ap.add_argument("--rounds", type=int, default=7)
    ap.add_argument("--budget", type=float, default=10.0)
    ap.add_argument("--show", help="print and draw what was recorded")
    ap.add_argument("--out")
    ap.add_argument("--svg")
    a = ap.parse_args()
    data = recorded(a.show) if a.show else measured(a)
    if a.out:
        with open(a.out, "w") as f:
            json.dump(data, f, indent=1)
    if a.svg:
        about = data["machine"]
        with open(a.svg, "w") as f:
            f.write(picture(data["rows"], f"FlashAttention-2 step by step, {data['dtype']}, {about['device']}, "
                                          f"{about['target']}: times as fast as the first form"))


if __name__ == "__main__":
    main()
