#!/usr/bin/env python3
"""Forward attention on a GPU beside what a user would pick instead, in one process on one set of tensors.

    python3 bench/attention_gpu.py [--cells D,N,causal;...] [--dtype bf16|f16] [--target sm_80]
        [--config CFG] [--budget 4] [--peers flash,cudnn,triton,flex] [--rounds 5] [--store FILE]
        [--out results.json] [--svg picture.svg]

Peers: PyTorch's SDPA backends (flash is FlashAttention-2), FlexAttention, and the algorithm of the
fused-attention tutorial of Triton as written in triton_attention.py. Batch * N = 16384 tokens and
H * D = 2048, as in the published tables; FLOPs = 4 * B * H * N * N * D, half of it when causal.

Contenders take turns in random order. A turn runs one of them alone for about 80 ms, after calls
that are not counted, each call timed by events with the L2 cache overwritten before it (a card near
its power limit rewards whoever follows a lighter kernel: alternating single calls would mislead).
Reported: the median of all calls of a contender; ratio: peer's median / ours, above 1 = we are faster.
Every contender's output is compared with attention in float32 on a part of the heads.
Needs PyTorch with CUDA; the library is found as the Python package finds it.
"""
import argparse
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


class Ours:
    name = "tilewright"

    def __init__(self, a):
        import tilewright as tw
        self.a = a
        self.cx = tw.Context(store=a.store)
        self.device = self.cx.device("cuda", target=a.target)
        self.kernel = self.cx.load(os.path.join(ROOT, "kernels", "attention_fwd.tw"))
        self.notes = {}

    def prepare(self, q, k, v, causal):
        o = torch.empty_like(q)
        lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
        args = dict(q=q, k=k, v=v, o=o, lse=lse, CAUSAL=causal)
        if not self.a.config:
            t0 = time.time()
            report = self.kernel.tune(args, device=self.device, budget=self.a.budget)
            best, first = report.winner, report.default
            self.notes = {"config": best.config, "layer": report.layer, "tune_s": time.time() - t0,
                          "trials": len(report.trials),
                          "over_default": first.median_s / best.median_s if best.median_s else None}
        else:
            self.notes = {"config": self.a.config}
        bound = self.kernel.bind(args, device=self.device, config=self.a.config)
        tensors = dict(q=q, k=k, v=v, o=o, lse=lse)

        def run():
            bound(**tensors)
            return o
        return run


def sdpa(backend):
    from torch.nn.attention import sdpa_kernel

    class Sdpa:
        def __init__(self, a):
            self.notes = {}

        def prepare(self, q, k, v, causal):
            def run():
                with sdpa_kernel(backend):
                    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            return run
    return Sdpa


class Triton:
    def __init__(self, a):
        sys.path.insert(0, HERE)
        import triton_attention
        self.forward, self.notes = triton_attention.forward, {}

    def prepare(self, q, k, v, causal):
        return lambda: self.forward(q, k, v, causal)


class Flex:
    def __init__(self, a):
        from torch.nn.attention import flex_attention
        self.module, self.notes = flex_attention, {}
        self.compiled = torch.compile(flex_attention.flex_attention, dynamic=False)

    def prepare(self, q, k, v, causal):
        mask = self.module.create_block_mask(lambda b, h, m, n: m >= n, None, None, q.shape[2],
                                             k.shape[2], device=q.device) if causal else None
        return lambda: self.compiled(q, k, v, block_mask=mask)


def contenders(a):
    from torch.nn.attention import SDPBackend
    known = {"flash": sdpa(SDPBackend.FLASH_ATTENTION), "cudnn": sdpa(SDPBackend.CUDNN_ATTENTION),
             "triton": Triton, "flex": Flex}
    made = {"tilewright": Ours(a)}
    for name in filter(None, a.peers.split(",")):
        made[name] = known[name](a)
    return made


def error_of(out, q, k, v, causal):
    """Largest absolute difference from attention in float32, over the first and last head."""
    worst = 0.0
    for h in (0, q.shape[1] - 1):
        x, y, z = (t[0, h].float() for t in (q, k, v))
        rows = slice(max(0, x.shape[0] - 2048), None)
        s = x[rows] @ y.T / math.sqrt(x.shape[1])
        if causal:
            at = torch.arange(x.shape[0], device=x.device)
            s = s.masked_fill(at[None, :] > at[rows, None], -math.inf)
        worst = max(worst, (torch.softmax(s, 1) @ z - out[0, h, rows].float()).abs().max().item())
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


def measure(cell, made, clock, a):
    d, n, causal = cell
    heads, batch = WIDTH // d, TOKENS // n
    dtype = {"bf16": torch.bfloat16, "f16": torch.float16}[a.dtype]
    torch.manual_seed(d + n)
    q, k, v = (torch.randn(batch, heads, n, d, dtype=dtype, device="cuda") for _ in range(3))
    runs, failed, errors = {}, {}, {}
    for name, c in made.items():
        try:
            run = c.prepare(q, k, v, causal)
            errors[name] = error_of(run(), q, k, v, causal)
            runs[name] = run
        except Exception as problem:  # a peer that cannot is left out of the cell, and said
            if name == "tilewright":
                raise
            failed[name] = str(problem).strip().split("\n")[0][:200]
    samples = {name: [] for name in runs}
    for _ in range(a.rounds):
        for name in random.sample(list(runs), len(runs)):
            samples[name] += clock.turn(runs[name])
    flops = 4.0 * batch * heads * n * n * d * (0.5 if causal else 1.0)
    median = {name: statistics.median(s) for name, s in samples.items()}
    row = {"d": d, "n": n, "causal": bool(causal), "batch": batch, "heads": heads,
           "tflops": {name: flops / t * 1e-12 for name, t in median.items()},
           "ratio": {name: t / median["tilewright"] for name, t in median.items()
                     if name != "tilewright"},
           "spread": {name: statistics.median(abs(x - median[name]) for x in s) / median[name]
                      for name, s in samples.items()},
           "error": errors, "failed": failed, "ours": made["tilewright"].notes}
    print(f"{d:4} {n:6} {'yes' if causal else 'no':>4} "
          + " ".join(f"{row['tflops'].get(name, math.nan):10.1f}" for name in made) + "  "
          + " ".join(f"{row['ratio'].get(name, math.nan):6.2f}" for name in made
                     if name != "tilewright")
          + f"  {row['ours'].get('config', '')}", flush=True)
    return row


def machine():
    smi = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                         text=True, capture_output=True).stdout.strip()
    commit = os.environ.get("TILEWRIGHT_COMMIT") or subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], text=True,
        capture_output=True).stdout.strip()
    return {"gpu": smi, "torch": torch.__version__, "cuda": torch.version.cuda, "commit": commit,
            "date": time.strftime("%Y-%m-%d")}


def picture(rows, names):
    """Bars of TFLOP/s by cell, as SVG text."""
    colours = ["#1b6ca8", "#999999", "#c2a14d", "#7a9e7e", "#b07aa1"]
    top = 1.1 * max(max(r["tflops"].values()) for r in rows)
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
    out.append('<text x="48" y="12">forward attention, TFLOP/s, 16k tokens, H * D = 2048</text></svg>')
    return "\n".join(out) + "\n"


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--cells", default=GRID)
    ap.add_argument("--dtype", default="bf16", choices=["bf16", "f16"])
    ap.add_argument("--target", default=None)
    ap.add_argument("--config", default=None)
    ap.add_argument("--budget", type=float, default=4.0)
    ap.add_argument("--peers", default="flash,cudnn,triton,flex")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--store", default=None)
    ap.add_argument("--out")
    ap.add_argument("--svg")
    a = ap.parse_args()
    made, clock, rows = contenders(a), Clock(), []
    print("   D      N caus " + " ".join(f"{name:>10}" for name in made) + "  "
          + " ".join(f"{'/' + name[:5]:>6}" for name in made if name != "tilewright"))
    for cell in a.cells.split(";"):
        d, n, causal = (int(x) for x in cell.split(","))
        rows.append(measure((d, n, bool(causal)), made, clock, a))
        if a.out:
            with open(a.out, "w") as f:
                json.dump({"machine": machine(), "dtype": a.dtype, "target": a.target,
                           "rows": rows}, f, indent=1)
    if a.svg:
        with open(a.svg, "w") as f:
            f.write(picture(rows, list(made)))


if __name__ == "__main__":
    main()
