#!/usr/bin/env python3
"""Matrix products on the CPU beside PyTorch's, in one process.

    python3 bench/matmul_cpu.py [--dtypes f32,bf16] [--sizes 512,1024,2048] [--rounds 7] [--seconds 2]
        [--threads 2] [--store FILE] [--budget 10] [--config CFG] [--target cpu-avx2] [--out results.json]

c = a b of square matrices. Three sides take turns in random order, each timed call after a pause and an
untimed one of the same side: our default configuration (what the first launch takes), the one that
tuning finds within the budget, and torch.matmul. Reported: the median of each, in GFLOP/s of 2 n^3, and
the ratios to PyTorch, above 1 = we are faster.
"""
import argparse
import json
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(ROOT, "python")]
from attention_cpu import machine, take_turns


class Ours:
    """The kernel in a context of its own: what one has tuned, the other does not know."""

    def __init__(self, o, store):
        import tilewright
        self.o = o
        self.cx = tilewright.Context(store=store)
        self.device = self.cx.device(f"cpu:{o.threads}", target=o.target)
        self.kernel = self.cx.load(os.path.join(ROOT, "kernels", "matmul.tw"))
        self.target = self.device.info["target"]

    def prepare(self, a, b, c, tuned):
        """What runs it, its configuration."""
        from tilewright._abi import check, lib
        from tilewright._objects import _Call
        args = dict(a=a, b=b, c=c)
        config = self.o.config if tuned else None
        if tuned and not config:
            self.kernel.tune(args, device=self.device, budget=self.o.budget)
        config = config or self.kernel.query(args, device=self.device)["config"]
        bound = self.kernel.bind(args, device=self.device, config=config)
        call = _Call(self.kernel, args, self.device, None, allocate=False)  # made once, not each time
        return lambda: check(lib.tw_bound_launch(bound, call.stream, call.args, len(call.args))), config


def cell(o, ours, dtype, n):
    import torch
    g = torch.Generator().manual_seed(n)
    kind = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[dtype]
    a, b = [torch.randn(n, n, generator=g).to(kind) for _ in range(2)]
    out = {name: torch.empty(n, n, dtype=kind) for name in ("default", "tuned", "torch")}
    sides, configs, errors = {"torch": lambda: torch.matmul(a, b, out=out["torch"])}, {}, {}
    for name, side in ours.items():
        sides[name], configs[name] = side.prepare(a, b, out[name], name == "tuned")
    times = take_turns(sides, o.rounds, o.seconds)
    rows = slice(0, min(n, 64))
    exact = a[rows].double() @ b.double()
    for name, c in out.items():
        errors[name] = (c[rows].double() - exact).abs().max().item()
    median = {name: statistics.median(t) for name, t in times.items()}
    spread = {name: statistics.median(abs(x / median[name] - 1) for x in t) for name, t in times.items()}
    return {"dtype": dtype, "n": n, "rounds": len(times["torch"]), "config": configs,
            "gflops": {name: round(2e-9 * n**3 / t, 1) for name, t in median.items()},
            "ratio": {name: round(median["torch"] / median[name], 3) for name in configs},
            "ratio_of_least": {name: round(min(times["torch"]) / min(times[name]), 3) for name in configs},
            "spread": {name: round(s, 3) for name, s in spread.items()}, "max_error": errors}


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dtypes", default="f32,bf16")
    p.add_argument("--sizes", default="512,1024,2048")
    p.add_argument("--rounds", type=int, default=7, help="at least so many rounds a cell")
    p.add_argument("--seconds", type=float, default=2.0, help="at least so long a cell")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--store", help="default: a store of this run only")
    p.add_argument("--budget", type=float, default=10.0, help="tuning seconds a cell")
    p.add_argument("--config", help="instead of tuning")
    p.add_argument("--target", help="a code path; default: the best that this processor has")
    p.add_argument("--out", help="writes the results here as JSON")
    return p.parse_args()


def main():
    o = options()
    os.environ["OMP_NUM_THREADS"] = str(o.threads)
    if o.target == "cpu-avx2":  # read once, when the libraries are loaded
        os.environ.update(ATEN_CPU_CAPABILITY="avx2", MKL_ENABLE_INSTRUCTIONS="AVX2",
                          ONEDNN_MAX_CPU_ISA="AVX2")
    import peers_cpu
    peers_cpu.install(["torch"])
    import torch
    torch.set_num_threads(o.threads)
    ours, rows = {"default": Ours(o, None), "tuned": Ours(o, o.store)}, []
    for dtype in o.dtypes.split(","):
        for n in map(int, o.sizes.split(",")):
            rows.append(cell(o, ours, dtype, n))
            r = rows[-1]
            print(f"{dtype:5}{n:6d}  torch {r['gflops']['torch']:5.0f}  "
                  + "  ".join(f"{name} {r['gflops'][name]:.0f} ({x:.2f}, least {r['ratio_of_least'][name]:.2f})"
                              for name, x in r["ratio"].items())
                  + " | " + " | ".join(r["config"].values()), flush=True)
    if o.out:
        with open(o.out, "w") as f:
            json.dump({"what": "matmul on the CPU", "target": ours["tuned"].target, "threads": o.threads,
                       "peers": [peers_cpu.version("torch")], "machine": machine(), "cells": rows}, f,
                      indent=1)
            f.write("\n")


if __name__ == "__main__":
    main()
