#!/usr/bin/env python3
"""The variants of attention beside the kernel that they extend, on the CPU, interleaved in one process.

    python3 bench/attention_variants.py [--threads 2] [--cells D,N,causal;...] [--pairs 9] [--runs 3]
                                        [--dtype f32|f16|bf16] [--variants NAME,...] [--config CFG] [--budget 0]
                                        [--out results.json [--add]] [--svg picture.svg]

A pair is one timed call of each side, in random order, each after an untimed call of the same side. The
ratio is the median of the pairs' ratios: time of the variant / time of the base; what hides nothing is
given to masks, so that both do the same work. The window is one of 512 keys of 16384, causal: its ratio
is to 1024 / N of the full causal time. Of --runs the best counts, all are kept: for machines that do other
things too. With --budget each side is tuned for so many seconds first. --add keeps what else the file has.
Needs NumPy, for bf16 PyTorch; finds the library as the Python package does.
"""
import argparse
import json
import os
import random
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(ROOT, "python")]
import numpy as np  # noqa: E402
import tilewright  # noqa: E402
from attention_cpu import machine  # noqa: E402


def variants(h, n, d, rng):
    """What each variant gets beside q, o and lse, and beside k and v but where it has its own."""
    pool, whole = (rng.standard_normal((n, h, d), dtype=np.float32), np.ones((1, h, n, d), np.int8))
    scale = np.full((1, h, n), 0.01, np.float32)
    return {
        "window": {"window": 1 << 30},
        "alibi": {"slopes": np.array([2.0 ** -(i + 1) for i in range(h)], np.float32)},
        "soft_cap": {"cap": 30.0},
        "prefix": {"prefix": np.full(1, n, np.int32)},
        "document": {"document": np.zeros((1, n), np.int32)},
        "padded": {"lengths": np.full(1, n, np.int32)},
        "sink": {"sinks": np.zeros(h, np.float32)},
        "bias": {"bias": rng.standard_normal((1, 1, n, n), dtype=np.float32)},
        "rounded": {},
        "relative": {"bias": rng.standard_normal((h, 257), dtype=np.float32)},
        "quantized": {"k": whole, "v": whole, "k_scale": scale, "v_scale": scale},
        "paged": {"k": pool, "v": pool, "lengths": np.full(1, n, np.int32),
                  "slots": np.arange(n, dtype=np.int32).reshape(-1, 16)[::-1].reshape(1, n).copy()},
    }


def rounded(x, dtype):
    """x as numbers of that dtype; NumPy has no bf16."""
    if dtype != "bf16":
        return x.astype({"f32": np.float32, "f16": np.float16}[dtype])
    import torch
    return torch.from_numpy(x).to(torch.bfloat16)


def side(device, kernel, inputs, extra, o):
    shape = inputs["q"].shape
    args = dict(inputs, **extra, o=rounded(np.empty(shape, np.float32), o.dtype),
                lse=np.empty(shape[:3], np.float32))
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
    inputs = {x: rounded(rng.standard_normal((1, h, n, d), dtype=np.float32), o.dtype) for x in "qkv"}
    base = cx.load(os.path.join(ROOT, "kernels", "attention_fwd.tw"))
    kernel = cx.load(os.path.join(ROOT, "kernels", "variants", f"attention_{name}.tw"))
    extra = {"window": window} if window else variants(h, n, d, rng)[name]
    of_base, _ = side(device, base, inputs, {"CAUSAL": causal}, o)
    of_variant, config = side(device, kernel, inputs, dict(extra, CAUSAL=causal), o)
    runs = [compare(of_base, of_variant, o.pairs if not window else 3) for _ in range(o.runs)]
    row = {"variant": name, "D": d, "N": n, "H": h, "causal": causal, "config": config}
    row.update(min(runs, key=lambda x: x["ratio"]), ratios=[x["ratio"] for x in runs])
    if window:
        row["window"] = window
        row["of_visible_part"] = row["ratio"] * n / (2 * window)
    return row


def shown(row):
    return row.get("of_visible_part", row["ratio"])


def key(row):
    return tuple(row.get(x) for x in ("variant", "D", "N", "causal", "window"))


# ---- picture ---------------------------------------------------------------------------------------

COLOURS = ["#1f6f8b", "#7fb3c4", "#8a6d9e", "#d98e5f", "#ebc4a8"]


def text(x, y, what, size=11, anchor="middle", colour="#333"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{colour}">{what}</text>')


def draw(results):
    rows, m = results["rows"], results["machine"]
    plain = [r for r in rows if "window" not in r]
    cells = sorted({(r["D"], r["N"], r["causal"]) for r in plain})
    names = list(dict.fromkeys(r["variant"] for r in plain))
    bar, gap, left, top, height, low, high = 16, 30, 50, 70, 170, 0.9, 1.35
    group = bar * len(cells) + gap
    width = left + group * (len(names) + 1) + 60
    y = lambda v: top + height * (high - min(max(v, low), high)) / (high - low)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top + height + 44}" '
           f'viewBox="0 0 {width} {top + height + 44}" font-family="sans-serif">',
           f'<rect width="{width}" height="{top + height + 44}" fill="white"/>',
           text(14, 22, f"Variants of attention on the CPU, {results['dtype']}: time over that of the kernel that "
                "they extend (lower is better)", 14, "start"),
           text(14, 40, f"{m['cpu']}, {results['threads']} threads, {m['date']}, commit {m['commit']}; "
                "masks hide nothing", 10, "start", "#777")]
    for v in (0.9, 1.0, 1.1, 1.2, 1.3):
        dash = "" if v == 1.0 else ' stroke-dasharray="3 3"'
        out.append(f'<line x1="{left}" x2="{width - 10}" y1="{y(v):.1f}" y2="{y(v):.1f}" '
                   f'stroke="{"#888" if v == 1.0 else "#ddd"}"{dash}/>')
        out.append(text(left - 6, y(v) + 3, f"{v:.1f}", 9, "end", "#777"))
    for i, (d, n, causal) in enumerate(cells):
        x = left + 10 + i * 150
        out.append(f'<rect x="{x}" y="50" width="10" height="10" fill="{COLOURS[i % len(COLOURS)]}"/>')
        out.append(text(x + 14, 59, f"D {d}, N {n}{', causal' if causal else ''}", 11, "start"))

    def column(x, row, colour):
        v = shown(row)
        out.append(f'<rect x="{x}" y="{y(v):.1f}" width="{bar - 2}" height="{y(low) - y(v):.1f}" '
                   f'fill="{colour}"/>')
        out.append(text(x + bar / 2 - 1, y(v) - 3, f"{v:.2f}", 7.5))

    for g, name in enumerate(names):
        x = left + 14 + g * group
        for i, cell in enumerate(cells):
            for r in plain:
                if r["variant"] == name and (r["D"], r["N"], r["causal"]) == cell:
                    column(x + i * bar, r, COLOURS[i % len(COLOURS)])
        out.append(text(x + bar * len(cells) / 2, top + height + 15, name.replace("_", " ")))
    for r in rows:
        if "window" in r:
            x = left + 14 + len(names) * group + 20
            column(x, r, "#a3b18a")
            out.append(text(x + bar / 2, top + height + 15, f"window of {r['window']}"))
            out.append(text(x + bar / 2, top + height + 28, f"of {r['N']}, over its share", 9, colour="#777"))
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--cells", default="64,1024,0;64,1024,1;64,4096,0;128,1024,0;128,1024,1")
    p.add_argument("--pairs", type=int, default=9)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--budget", type=float, default=0.0)
    p.add_argument("--dtype", default="f32", choices=["f32", "f16", "bf16"])
    p.add_argument("--variants", help="only these")
    p.add_argument("--config")
    p.add_argument("--runs", type=int, default=1)
    p.add_argument("--out")
    p.add_argument("--add", action="store_true")
    p.add_argument("--svg")
    o = p.parse_args()
    cx = tilewright.Context(store=None)
    device = cx.device(f"cpu:{o.threads}")
    rows = []
    if o.add and os.path.exists(o.out):
        with open(o.out) as f:
            rows = json.load(f)["rows"]
    cells = [(int(d), int(n), c == "1") for d, n, c in (x.split(",") for x in o.cells.split(";") if x)]
    cases = [(d, n, c, name, None) for d, n, c in cells
             for name in variants(1, 16, 1, np.random.default_rng(0)) if not (c and name == "prefix")]
    cases.append((64, 16384, True, "window", 512))
    only = o.variants.split(",") if o.variants else [name for *_, name, _ in cases]
    for d, n, causal, name, window in (c for c in cases if c[3] in only):
        row = measure(cx, device, o, d, n, causal, name, window)
        rows = [r for r in rows if key(r) != key(row)] + [row]
        print(f"{name:9} D {d:3} N {n:5} {'causal' if causal else '      '} "
              f"{'window ' + str(window) if window else '':10} {shown(row):6.3f} +- {row['mad']:.3f}",
              flush=True)
    results = {"machine": machine(), "dtype": o.dtype, "threads": o.threads, "rows": rows}
    if o.out:
        with open(o.out, "w") as f:
            json.dump(results, f, indent=1)
            f.write("\n")
    if o.svg:
        with open(o.svg, "w") as f:
            f.write(draw(results))


main()
