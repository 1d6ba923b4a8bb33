#!/usr/bin/env python3
"""Forward attention on the CPU beside PyTorch's, ONNX Runtime's and OpenVINO's, in one process.

    python3 bench/attention_cpu.py [--dtypes f32,f16,bf16] [--cells D,N,causal;...]
        [--peers torch,onnxruntime,openvino] [--rounds 7] [--seconds 2] [--threads 2]
        [--store FILE] [--budget 20] [--config CFG] [--avx2 | --scaling] [--out results.json [--merge]]

All get the same numbers and the same number of threads. They take turns in random order, each timed
call after a pause, in which the others' threads go to sleep, and an untimed one of the same side, which
warms its caches. Reported: the median of each side, in GFLOP/s of 4 * H * N * N * D (half of it when
causal), H * D = 512, and ratio: ours / peer's, above 1 = we are faster. bf16 also takes turns with our
own f32 and, on a processor that multiplies bf16, with the code path that does not.

--avx2      PyTorch and the code path cpu-avx2 only: both sides without AVX-512
--scaling   our own time with 1, 2, 4 ... threads, 8 heads of 64, N = 4096: efficiency is t1 / (n * tn)
            of the times that the busiest thread was running, least of all rounds

What is missing of the peers is installed into a folder under build/. The picture of the results is
drawn by attention_svg.py.
"""
import argparse
import glob
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(ROOT, "python")]


def machine():
    lines = open("/proc/cpuinfo").read().splitlines()
    value = lambda key: next((l.split(":")[1].strip() for l in lines if l.startswith(key)), "?")
    commit = os.environ.get("TILEWRIGHT_COMMIT") or subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], text=True,
        capture_output=True).stdout.strip()
    return {"cpu": value("model name"), "family": value("cpu family"), "model": value("model\t"),
            "processors": os.cpu_count(), "kernel": platform.release(), "commit": commit,
            "date": time.strftime("%Y-%m-%d")}


def timed(f):
    time.sleep(0.01)  # threads of the other sides spin for some milliseconds after their work
    f()
    t = time.perf_counter()
    f()
    return time.perf_counter() - t


def longest_thread(f):
    """Seconds that the busiest thread of this process ran in one call: who else uses the processors
    makes the call longer, but not this."""
    def ran():
        tasks = glob.glob("/proc/self/task/*/schedstat")
        return {t: int(open(t).read().split()[0]) for t in tasks}

    f()
    before = ran()
    f()
    return max(t - before.get(name, 0) for name, t in ran().items()) * 1e-9


def take_turns(sides, rounds, seconds):
    """Seconds of each side: at least so many rounds, and so long."""
    times = {name: [] for name in sides}
    for f in sides.values():
        f(), f()
    start = time.perf_counter()
    while len(next(iter(times.values()))) < rounds or time.perf_counter() - start < seconds:
        order = list(sides)
        random.shuffle(order)
        for name in order:
            times[name].append(timed(sides[name]))
    return times


class Ours:
    """The kernel on one code path, tuned for each problem unless a configuration is given."""

    def __init__(self, o, target=None):
        import tilewright
        self.o = o
        self.cx = tilewright.Context(store=o.store)
        self.device = self.cx.device(f"cpu:{o.threads}", target=target)
        self.kernel = self.cx.load(os.path.join(ROOT, "kernels", "attention_fwd.tw"))
        self.target = self.device.info["target"]

    def prepare(self, q, k, v, causal, more=""):
        """What runs it, its output, its configuration."""
        import torch
        from tilewright._abi import check, lib
        from tilewright._objects import _Call
        o, lse = torch.empty_like(q), torch.empty(q.shape[:3])
        args = dict(q=q, k=k, v=v, o=o, lse=lse, CAUSAL=causal)
        config = self.o.config
        if not config and self.o.budget:
            self.kernel.tune(args, device=self.device, budget=self.o.budget)
        config = config or self.kernel.query(args, device=self.device)["config"]
        if more:
            config = ",".join([p for p in config.split(",") if p.split("=")[0] != "threads"] + [more])
        bound = self.kernel.bind(args, device=self.device, config=config)
        del args["CAUSAL"]
        call = _Call(self.kernel, args, self.device, None, allocate=False)  # made once, not each time
        run = lambda: check(lib.tw_bound_launch(bound, call.stream, call.args, len(call.args)))
        return run, o, config


def tensors(dtype, d, n, h):
    import torch
    g = torch.Generator().manual_seed(d * 100003 + n)
    kind = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[dtype]
    return [torch.randn(1, h, n, d, generator=g).to(kind) for _ in range(3)]


def exact(q, k, v, causal):
    """Attention in double, on one head."""
    import torch.nn.functional as F
    return F.scaled_dot_product_attention(q[:, :1].double(), k[:, :1].double(), v[:, :1].double(),
                                          is_causal=causal)


class Cell:
    def __init__(self, bench, dtype, d, n, causal):
        self.bench, self.dtype, self.d, self.n, self.causal = bench, dtype, d, n, causal
        self.h = 512 // d
        self.q = tensors(dtype, d, n, self.h)
        self.sides, self.errors, self.configs = {}, {}, {}
        self.keep = []

    def add_ours(self, name, ours, q):
        run, out, config = ours.prepare(*q, self.causal)
        run()
        self.sides[name], self.configs[name] = run, config
        self.errors[name] = (out[:, :1].double() - exact(*q, self.causal)).abs().max().item()
        self.keep += [q, out]

    def add_peer(self, name):
        import peers_cpu
        got = peers_cpu.PEERS[name](*self.q, self.causal, self.bench.o.threads)
        if got:
            self.sides[name], result = got
            self.errors[name] = (result()[:, :1].double() - exact(*self.q, self.causal)).abs().max().item()

    def measure(self):
        b = self.bench
        self.add_ours("tilewright", b.ours, self.q)
        if self.dtype == "bf16":
            self.add_ours("own f32", b.ours, tensors("f32", self.d, self.n, self.h))
            if b.converting:
                self.add_ours("converting", b.converting, self.q)
        for name in b.peers:
            self.add_peer(name)
        times = take_turns(self.sides, b.o.rounds, b.o.seconds)
        flops = 4.0 * self.h * self.n * self.n * self.d * (0.5 if self.causal else 1.0)
        median = {name: statistics.median(t) for name, t in times.items()}
        spread = {name: statistics.median(abs(x / median[name] - 1) for x in t)
                  for name, t in times.items()}
        best = max((flops / median[n] for n in b.peers if n in median), default=0.0)
        return {"dtype": self.dtype, "D": self.d, "N": self.n, "causal": self.causal,
                "rounds": len(times["tilewright"]), "config": self.configs["tilewright"],
                "gflops": {n: round(flops / t / 1e9, 1) for n, t in median.items()},
                "ratio": {n: round(t / median["tilewright"], 3) for n, t in median.items()
                          if n != "tilewright"},
                "ratio_to_fastest_peer": round(flops / median["tilewright"] / best, 3) if best else None,
                "spread": {n: round(s, 3) for n, s in spread.items()}, "max_error": self.errors}


class Bench:
    def __init__(self, o):
        import peers_cpu
        self.o = o
        self.peers = [p for p in o.peers.split(",") if p]
        peers_cpu.install(["torch"] + self.peers)
        import torch
        torch.set_num_threads(o.threads)
        self.ours = Ours(o, "cpu-avx2" if o.avx2 else None)
        self.converting = None
        if self.ours.target in ("cpu-amx", "cpu-avx512-bf16"):
            self.converting = Ours(o, "cpu-avx512")

    def cells(self):
        cells = [(d, n, c) for d in (64, 128) for n in (1024, 4096) for c in (0, 1)]
        if self.o.cells:
            cells = [tuple(map(int, x.split(","))) for x in self.o.cells.split(";")]
        rows = []
        for dtype in self.o.dtypes.split(","):
            for d, n, c in cells:
                rows.append(Cell(self, dtype, d, n, bool(c)).measure())
                r = rows[-1]
                print(f"{dtype:5}{d:4d}{n:6d} {'causal' if c else '      '} {r['gflops']['tilewright']:6.0f} | "
                      + "  ".join(f"{n} {r['gflops'][n]:.0f} ({x:.2f})" for n, x in r["ratio"].items())
                      + f" | {r['config']}", flush=True)
        return rows

    def scaling(self):
        rows, counts = [], [n for n in (1, 2, 4, 8, 16, 32, 64) if n < self.o.threads] + [self.o.threads]
        for dtype in self.o.dtypes.split(","):
            for causal in (False, True):
                q = tensors(dtype, 64, 4096, 8)
                runs = {n: self.ours.prepare(*q, causal, f"threads={n}") for n in counts}
                longest = {n: [] for n in counts}
                for _ in range(self.o.rounds):
                    for n in counts:
                        longest[n].append(longest_thread(runs[n][0]))
                least = {n: min(t) for n, t in longest.items()}
                rows.append({"dtype": dtype, "D": 64, "N": 4096, "heads": 8, "causal": causal,
                             "config": runs[counts[-1]][2], "seconds": least,
                             "efficiency": {n: round(least[1] / (n * t), 3) for n, t in least.items()}})
                print(dtype, "causal" if causal else "      ", rows[-1]["efficiency"], flush=True)
        return rows


def merged(old, new):
    key = lambda r: (r["dtype"], r["D"], r["N"], r["causal"])
    fresh = {key(r): r for r in new}
    return [fresh.pop(key(r), r) for r in old] + list(fresh.values())


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dtypes", default="f32,f16,bf16")
    p.add_argument("--cells", help="D,N,causal;...")
    p.add_argument("--peers", default="torch,onnxruntime,openvino")
    p.add_argument("--rounds", type=int, default=7, help="at least so many rounds a cell")
    p.add_argument("--seconds", type=float, default=2.0, help="at least so long a cell")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--store", help="default: a store of this run only")
    p.add_argument("--budget", type=float, default=20.0, help="tuning seconds a cell; 0: do not tune")
    p.add_argument("--config", help="pins the configuration, tunes nothing")
    p.add_argument("--avx2", action="store_true")
    p.add_argument("--scaling", action="store_true")
    p.add_argument("--out", help="writes the results here as JSON")
    p.add_argument("--merge", action="store_true", help="keeps the cells in --out that were not run")
    o = p.parse_args()
    if o.avx2:
        o.peers, o.dtypes = "torch", "f32"
    if o.scaling:
        o.peers = ""
    return o


def main():
    o = options()
    os.environ["OMP_NUM_THREADS"] = str(o.threads)
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)
    if o.avx2:  # read once, when the libraries are loaded
        os.environ.update(ATEN_CPU_CAPABILITY="avx2", MKL_ENABLE_INSTRUCTIONS="AVX2",
                          ONEDNN_MAX_CPU_ISA="AVX2")
    bench = Bench(o)
    import peers_cpu
    rows = bench.scaling() if o.scaling else bench.cells()
    if o.merge:
        rows = merged(json.load(open(o.out))["cells"], rows)
    if o.out:
        with open(o.out, "w") as f:
            json.dump({"what": "attention_fwd on the CPU, forward", "target": bench.ours.target,
                       "threads": o.threads, "peers": [peers_cpu.version(p) for p in bench.peers],
                       "machine": machine(), "scaling" if o.scaling else "cells": rows}, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    main()
