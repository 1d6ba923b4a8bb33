#!/usr/bin/env python3
"""Attention on a GPU beside what a user would pick instead, in one process on one set of tensors.

    python3 bench/attention_gpu.py [--quick] [--backward] [--cells D,N,causal;...] [--dtype bf16,f16]
        [--target sm_80] [--config CFG] [--budget 4] [--peers flash,cudnn,triton,flex] [--rounds 5]
        [--seconds S] [--store FILE] [--out results.json] [--svg picture.svg]

Peers: PyTorch's SDPA backends (flash is FlashAttention-2), FlexAttention, and the algorithm of the
fused-attention tutorial of Triton as written in triton_attention.py; who is not installed, or cannot do
a cell, is left out with a line. Batch * N = 16384 tokens and H * D = 2048, as in the published tables;
FLOPs = 4 * B * H * N * N * D, half of it when causal, 2.5 times that backward (which this library does
not ship yet: the peers alone). --quick: as the library comes, untuned, all cells in about two minutes.

Contenders take turns in random order. A turn runs one of them alone for about 80 ms, after calls
that are not counted, each call timed by events with the L2 cache overwritten before it (a card near
its power limit rewards whoever follows a lighter kernel: alternating single calls would mislead).
Reported: the median of all calls of a contender; ratio: peer's median / ours, above 1 = we are faster.
Every contender's output is compared with attention in float32 on a part of the heads.
Needs PyTorch with CUDA; the library is found as the Python package finds it. Exit code 1: the library
itself failed in some cell.
"""
import argparse
import collections
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "python"))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

GRID = ";".join(f"{d},{n},{c}" for d in (64, 128, 256) for c in (0, 1) for n in (1024, 4096, 16384))
TOKENS, WIDTH = 16384, 2048
WRONG = 0.1  # inputs are normal: outputs of some 1, gradients of some 3, rounded to 8 bits
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


class Absent(Exception):
    """What a contender does not do; said in the table's notes."""


class Ours:
    def __init__(self, a):
        import tilewright as tw
        self.a = a
        self.cx = tw.Context(store=a.store)
        self.device = self.cx.device("cuda", target=a.target)
        self.kernel = self.cx.load(os.path.join(ROOT, "kernels", "attention_fwd.tw"))
        self.notes = {}

    def tuned(self, args):
        t0 = time.time()
        report = self.kernel.tune(args, device=self.device, budget=self.a.budget)
        best, first = report.winner, report.default
        return {"config": best.config, "layer": report.layer, "tune_s": time.time() - t0,
                "trials": sum(t.samples > 0 for t in report.trials),
                "compiled": report.compiled,
                "states": dict(collections.Counter(t.state for t in report.trials)),
                "over_default": first.median_s / best.median_s if best.median_s else None}

    def prepare(self, q, k, v, causal):
        o = torch.empty_like(q)
        lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
        args = dict(q=q, k=k, v=v, o=o, lse=lse, CAUSAL=causal)
        if self.a.config:
            self.notes = {"config": self.a.config}
        elif self.a.budget > 0:
            self.notes = self.tuned(args)
        else:
            answer = self.kernel.query(args, device=self.device)
            self.notes = {"config": answer["config"], "layer": answer["layer"]}
        bound = self.kernel.bind(args, device=self.device, config=self.a.config)
        tensors = dict(q=q, k=k, v=v, o=o, lse=lse)

        def run():
            bound(**tensors)
            return o
        return run

    def prepare_backward(self, q, k, v, do, causal):
        raise Absent("no backward kernel is shipped")


def through_autograd(forward, q, k, v, do):
    """The backward pass alone, of one forward."""
    leaves = [t.detach().requires_grad_() for t in (q, k, v)]
    out = forward(*leaves)
    return lambda: torch.autograd.grad(out, leaves, do, retain_graph=True)


def sdpa(backend):
    from torch.nn.attention import sdpa_kernel

    class Sdpa:
        def __init__(self, a):
            self.notes = {}

        def forward(self, q, k, v, causal):
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

        def prepare(self, q, k, v, causal):
            return lambda: self.forward(q, k, v, causal)

        def prepare_backward(self, q, k, v, do, causal):
            return through_autograd(lambda *t: self.forward(*t, causal), q, k, v, do)
    return Sdpa


class Triton:
    def __init__(self, a):
        sys.path.insert(0, HERE)
        import triton_attention
        self.module, self.notes = triton_attention, {}

    def prepare(self, q, k, v, causal):
        return lambda: self.module.forward(q, k, v, causal)[0]

    def prepare_backward(self, q, k, v, do, causal):
        o, lse = self.module.forward(q, k, v, causal)
        return lambda: self.module.backward(q, k, v, o, lse, do, causal)


class Flex:
    def __init__(self, a):
        import torch._dynamo
        from torch.nn.attention import flex_attention
        self.module, self.notes = flex_attention, {}
        for name in ("recompile_limit", "cache_size_limit"):  # beyond it, shapes are run uncompiled
            if hasattr(torch._dynamo.config, name):
                setattr(torch._dynamo.config, name, 256)
        self.compiled = torch.compile(flex_attention.flex_attention, dynamic=False)

    def mask(self, q, causal):
        if not causal:
            return None
        return self.module.create_block_mask(lambda b, h, m, n: m >= n, None, None, q.shape[2], q.shape[2],
                                             device=q.device)

    def prepare(self, q, k, v, causal):
        mask = self.mask(q, causal)
        return lambda: self.compiled(q, k, v, block_mask=mask)

    def prepare_backward(self, q, k, v, do, causal):
        mask = self.mask(q, causal)
        return through_autograd(lambda *t: self.compiled(*t, block_mask=mask), q, k, v, do)


COMPILED = ("triton", "flex")  # seconds for each kernel before it runs


def contenders(a):
    """By name, those that are here; the library first. The others are told."""
    from torch.nn.attention import SDPBackend
    known = {"flash": sdpa(SDPBackend.FLASH_ATTENTION), "cudnn": sdpa(SDPBackend.CUDNN_ATTENTION),
             "triton": Triton, "flex": Flex}
    made = {"tilewright": Ours(a)}
    for name in filter(None, a.peers.split(",")):
        try:
            made[name] = known[name](a)
        except KeyError:
            sys.exit(f"'{name}' is not one of {', '.join(known)}")
        except Exception as problem:
            print(f"{name} is not here: {first_line(problem)}")
    return made


def first_line(problem):
    text = str(problem).strip() or type(problem).__name__
    return text.split("\n")[0][:200]


def error_of(got, q, k, v, do, causal):
    """Largest absolute difference from attention in float32, over the first and last head; do: of gradients."""
    worst = 0.0
    for h in (0, q.shape[1] - 1):
        x, y, z = (t[0, h].float().requires_grad_(do is not None) for t in (q, k, v))
        rows = slice(None) if do is not None else slice(max(0, x.shape[0] - 2048), None)
        s = x[rows] @ y.T / math.sqrt(x.shape[1])
        if causal:
            at = torch.arange(x.shape[0], device=x.device)
            s = s.masked_fill(at[None, :] > at[rows, None], -math.inf)
        out = torch.softmax(s, 1) @ z
        wanted = [out] if do is None else torch.autograd.grad(out, (x, y, z), do[0, h].float())
        for want, tensor in zip(wanted, [got[0, h, rows]] if do is None else [t[0, h] for t in got]):
            worst = max(worst, (want.detach() - tensor.detach().float()).abs().max().item())
    return worst


class Clock:
    """Times calls one by one with events, overwriting the L2 cache before each."""

    def __init__(self):
        self.flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")

    def turn(self, run, seconds=0.08):
        for _ in range(3):
            run()
        torch.cuda.synchronize()
        samples, spent = [], 0.0
        while spent < seconds:
            batch = []
            for _ in range(8):
                self.flush.zero_()
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                run()
                end.record()
                batch.append((begin, end))
            torch.cuda.synchronize()
            times = [b.elapsed_time(e) * 1e-3 for b, e in batch]
            samples += times
            spent += sum(times)
        return samples


def prepared(cell, made, a, tensors):
    """What can be run of a cell, with its error, and why the others cannot."""
    d, n, causal = cell
    q, k, v, do = tensors
    runs, errors, failed = {}, {}, {}
    for name, c in made.items():
        try:
            if name in COMPILED and a.compiled_n and n not in a.compiled_n:
                raise Absent("left out at this length (--compiled-n)")
            if name in COMPILED and time.time() > a.deadline:
                raise Absent("no time left (--seconds)")
            run = c.prepare_backward(q, k, v, do, causal) if a.backward else c.prepare(q, k, v, causal)
            errors[name] = error_of(run(), q, k, v, do, causal)
            if not errors[name] < WRONG:
                raise Absent(f"its result is off by {errors[name]:.2g}")
            runs[name] = run
        except Exception as problem:
            failed[name] = first_line(problem)
    return runs, errors, failed


def sampled(runs, failed, clock, a):
    samples = {name: [] for name in runs}
    for _ in range(a.rounds):
        for name in random.sample(list(runs), len(runs)):
            try:
                samples[name] += clock.turn(runs[name])
            except Exception as problem:
                failed[name] = first_line(problem)
                del runs[name]
    return {name: s for name, s in samples.items() if name in runs and s}


def measure(cell, made, clock, a, dtype):
    d, n, causal = cell
    heads, batch = WIDTH // d, TOKENS // n
    torch.manual_seed(d + n)
    q, k, v, do = (torch.randn(batch, heads, n, d, dtype=DTYPES[dtype], device="cuda") for _ in range(4))
    tensors = (q, k, v, do if a.backward else None)
    runs, errors, failed = prepared((d, n, causal), made, a, tensors)
    samples = sampled(runs, failed, clock, a)
    flops = (10.0 if a.backward else 4.0) * batch * heads * n * n * d * (0.5 if causal else 1.0)
    median = {name: statistics.median(s) for name, s in samples.items()}
    ours = median.get("tilewright")
    return {"d": d, "n": n, "causal": causal, "dtype": dtype, "batch": batch, "heads": heads,
            "tflops": {name: flops / t * 1e-12 for name, t in median.items()},
            "ratio": {name: t / ours for name, t in median.items() if ours and name != "tilewright"},
            "spread": {name: statistics.median(abs(x - median[name]) for x in s) / median[name]
                       for name, s in samples.items()},
            "error": errors, "failed": failed, "ours": made["tilewright"].notes}


def show(row, made):
    print(f"{row['dtype']:>4} {row['d']:4} {row['n']:6} {'yes' if row['causal'] else 'no':>4} "
          + " ".join(f"{row['tflops'].get(name, math.nan):10.1f}" for name in made) + "  "
          + " ".join(f"{row['ratio'].get(name, math.nan):6.2f}" for name in made if name != "tilewright")
          + f"  {row['ours'].get('config', '')}", flush=True)


def said_by(*command):
    try:
        return subprocess.run(command, text=True, capture_output=True).stdout.strip()
    except OSError:
        return ""


def machine():
    smi = said_by("nvidia-smi", "--id=0", "--query-gpu=name,driver_version", "--format=csv,noheader")
    commit = os.environ.get("TILEWRIGHT_COMMIT") or said_by("git", "-C", ROOT, "rev-parse", "--short", "HEAD")
    return {"gpu": smi, "torch": torch.__version__, "cuda": torch.version.cuda, "commit": commit,
            "date": time.strftime("%Y-%m-%d")}


def picture(rows, names, what):
    """Bars of TFLOP/s by cell, as SVG text."""
    colours = ["#1b6ca8", "#999999", "#c2a14d", "#7a9e7e", "#b07aa1"]
    top = 1.1 * max(max(r["tflops"].values(), default=1.0) for r in rows)
    bar, gap, height = 9, 16, 240
    width = 60 + len(rows) * (len(names) * bar + gap)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height + 90}" '
           'font-family="sans-serif" font-size="10">',
           f'<rect width="{width}" height="{height + 90}" fill="white"/>']
    for y in range(0, int(top), 100):
        at = height + 20 - height * y / top
        out.append(f'<line x1="40" x2="{width}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>'
                   f'<text x="36" y="{at + 3:.1f}" text-anchor="end">{y}</text>')
    for i, row in enumerate(rows):
        x = 48 + i * (len(names) * bar + gap)
        for j, name in enumerate(names):
            value = row["tflops"].get(name, 0)
            h = height * value / top
            out.append(f'<rect x="{x + j * bar}" y="{height + 20 - h:.1f}" width="{bar - 1}" '
                       f'height="{h:.1f}" fill="{colours[j % len(colours)]}"><title>{name}: '
                       f'{value:.0f} TFLOP/s</title></rect>')
        for line, text in enumerate((f"D {row['d']}", f"{row['n'] // 1024}k",
                                     "causal" if row["causal"] else "")):
            out.append(f'<text x="{x}" y="{height + 34 + 12 * line}">{text}</text>')
    for j, name in enumerate(names):
        out.append(f'<rect x="{48 + 100 * j}" y="{height + 74}" width="9" height="9" '
                   f'fill="{colours[j % len(colours)]}"/><text x="{61 + 100 * j}" '
                   f'y="{height + 82}">{name}</text>')
    out.append('<text x="48" y="12">' + what + ' attention, TFLOP/s, 16k tokens, H * D = 2048</text></svg>')
    return "\n".join(out) + "\n"


def arguments():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--cells", default=GRID)
    ap.add_argument("--dtype", default="bf16", help="bf16, f16, or both: bf16,f16")
    ap.add_argument("--backward", action="store_true", help="gradients instead")
    ap.add_argument("--target", default=None)
    ap.add_argument("--config", default=None)
    ap.add_argument("--budget", type=float, default=4.0, help="seconds of tuning a cell; 0: as shipped")
    ap.add_argument("--peers", default="flash,cudnn,triton,flex")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--compiled-n", default="", help="lengths at which triton and flex take part; all by default")
    ap.add_argument("--seconds", type=float, default=math.inf, help="no cell begins later")
    ap.add_argument("--quick", action="store_true", help="--budget 0 --rounds 3 --compiled-n 4096 --seconds 110")
    ap.add_argument("--store", default=None)
    ap.add_argument("--out")
    ap.add_argument("--svg")
    a = ap.parse_args()
    if a.quick:
        a.budget, a.rounds, a.compiled_n, a.seconds = 0.0, 3, a.compiled_n or "4096", min(a.seconds, 110.0)
    a.compiled_n = [int(n) for n in a.compiled_n.split(",") if n]
    a.dtypes = a.dtype.split(",")
    for t in a.dtypes:
        if t not in DTYPES:
            ap.error(f"'{t}' is not one of {', '.join(DTYPES)}")
    a.deadline = time.time() + a.seconds
    return a


def save(a, rows, names):
    if a.out:
        with open(a.out, "w") as f:
            json.dump({"machine": machine(), "dtype": a.dtype, "backward": a.backward, "target": a.target,
                       "rows": rows}, f, indent=1)
    if a.svg:
        with open(a.svg, "w") as f:
            f.write(picture(rows, names, "backward" if a.backward else "forward"))


def main():
    a = arguments()
    made, clock, rows, notes = contenders(a), Clock(), [], {}
    print("        D      N caus " + " ".join(f"{name:>10}" for name in made) + "  "
          + " ".join(f"{'/' + name[:5]:>6}" for name in made if name != "tilewright"))
    for dtype in a.dtypes:
        for cell in a.cells.split(";"):
            if time.time() > a.deadline:
                print(f"no time left for {dtype} {cell} and what follows (--seconds)")
                break
            d, n, causal = (int(x) for x in cell.split(","))
            rows.append(measure((d, n, bool(causal)), made, clock, a, dtype))
            show(rows[-1], made)
            save(a, rows, list(made))
            for name, why in rows[-1]["failed"].items():
                notes.setdefault((name, why), []).append(f"{dtype} {cell}")
    for (name, why), cells in notes.items():
        print(f"{name}: {why} ({len(cells)} cells, first {cells[0]})")
    sys.exit(0 if rows and (a.backward or all("tilewright" in row["tflops"] for row in rows)) else 1)


if __name__ == "__main__":
    main()
