#!/usr/bin/env python3
"""The variants of attention beside the kernel that they extend, on the CPU, interleaved in one process.

    python3 bench/attention_variants.py [--threads 2] [--cells D,N,causal;...] [--pairs 9]
                                        [--config CFG] [--budget 0] [--out results.json]

A pair is one timed call of each side, in random order, each after an untimed call of the same side. The
ratio is the median of the pairs' ratios: time of the variant / time of the base; what hides nothing is
given to masks, so that both do the same work. The window is one of 512 keys of 16384, causal: its ratio
is to 1024 / N of the full causal time. With --budget each side is tuned for so many seconds first.
Needs NumPy; finds the library as the Python package does.
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

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "python"))
import numpy as np  # noqa: E402
import tilewright  # noqa: E402


def variants(h, n, rng):
    """What each variant gets beside q, k, v, o and lse."""
    return {
        "window": {"window": 1 << 30},
        "alibi": {"slopes": np.array([2.0 ** -(i + 1) for i in range(h)], np.float32)},
        "soft_cap": {"cap": 30.0},
        "prefix": {"prefix": np.full(1, n, np.int32)},
        "document": {"document": np.zeros((1, n), np.int32)},
        "padded": {"lengths": np.full(1, n, np.int32)},
        "sink": {"sinks": np.zeros(h, np.float32)},
        "bias": {"bias": rng.standard_normal((1, 1, n, n), dtype=np.float32)},
    }


def side(device, kernel, inputs, extra, o):
    q = inputs["q"]
    args = dict(inputs, **extra, o=np.empty_like(q), lse=np.empty(q.shape[:3], np.float32))
    if o.budget and not o.config:
        kernel.tune(args, device=device, budget=o.budget)
    config = o.config or kernel.query(args, device=device)["config"]

    def run():
        kernel.launch(args, device=device, config=config)
    run()
    return run, config


def timed(f):
    f()
    t = time.perf_counter()
    f()
    return time.perf_counter() - t


def compare(base, other, pairs):
    times = ([], [])
    for _ in range(pairs):
        order = [0, 1]
        random.shuffle(order)
        for i in order:
            times[i].append(timed((base, other)[i]))
    ratio = [b / a for a, b in zip(*times)]
    middle = statistics.median(ratio)
    return {"ratio": middle, "mad": statistics.median(abs(x - middle) for x in ratio),
            "ratio_of_best": min(times[1]) / min(times[0]), "base_s": statistics.median(times[0])}


def measure(cx, device, o, d, n, causal, name, window=None):
    h = 1 if window else 512 // d
    rng = np.random.default_rng(d * 100003 + n)
    inputs = {x: rng.standard_normal((1, h, n, d), dtype=np.float32) for x in "qkv"}
    base = cx.load(os.path.join(ROOT, "kernels", "attention_fwd.tw"))
    kernel = cx.load(os.path.join(ROOT, "kernels", "variants", f"attention_{name}.tw"))
    extra = {"window": window} if window else variants(h, n, rng)[name]
    of_base, _ = side(device, base, inputs, {"CAUSAL": causal}, o)
    of_variant, config = side(device, kernel, inputs, dict(extra, CAUSAL=causal), o)
    row = {"variant": name, "D": d, "N": n, "H": h, "causal": causal, "config": config}
    row.update(compare(of_base, of_variant, o.pairs if not window else 3))
    if window:
        row["window"] = window
        row["of_visible_part"] = row["ratio"] * n / (2 * window)
    return row


def machine():
    cpu = next((x.split(":")[1].strip() for x in open("/proc/cpuinfo") if "model name" in x), "?")
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], text=True,
                            capture_output=True).stdout.strip()
    return {"cpu": cpu, "processors": os.cpu_count(), "kernel": platform.release(),
            "commit": commit, "date": time.strftime("%Y-%m-%d")}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--cells", default="64,1024,0;64,1024,1;128,1024,0;128,1024,1")
    p.add_argument("--pairs", type=int, default=9)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--budget", type=float, default=0.0)
    p.add_argument("--config")
    p.add_argument("--out")
    o = p.parse_args()
    cx = tilewright.Context(store=None)
    device = cx.device(f"cpu:{o.threads}")
    rows = []
    cells = [(int(d), int(n), c == "1") for d, n, c in (x.split(",") for x in o.cells.split(";"))]
    cases = [(d, n, c, name, None) for d, n, c in cells
             for name in variants(1, 1, np.random.default_rng(0)) if not (c and name == "prefix")]
    for d, n, causal, name, window in cases + [(64, 16384, True, "window", 512)]:
        row = measure(cx, device, o, d, n, causal, name, window)
        rows.append(row)
        shown = row.get("of_visible_part", row["ratio"])
        print(f"{name:9} D {d:3} N {n:5} {'causal' if causal else '      '} "
              f"{'window ' + str(window) if window else '':10} {shown:6.3f} +- {row['mad']:.3f}",
              flush=True)
    if o.out:
        with open(o.out, "w") as f:
            json.dump({"machine": machine(), "threads": o.threads, "rows": rows}, f, indent=1)
            f.write("\n")


main()
