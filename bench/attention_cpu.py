#!/usr/bin/env python3
"""Forward attention on the CPU beside PyTorch's SDPA (flash backend), interleaved in one process.

    python3 bench/attention_cpu.py [--cells D,N,causal;...] [--pairs 7] [--threads 2]
                                   [--store FILE] [--budget 20] [--config CFG] [--out results.json]

Both get the same tensors and the same number of threads. A pair is one timed call of each, in
random order, each after an untimed call of the same side; what is reported is the median of each side, the ratio of the medians, and the median
absolute deviation of the pairwise ratios. GFLOP/s count 4 * H * N * N * D, half of it when causal.
Needs PyTorch and NumPy; finds the library in build/ or through TILEWRIGHT_LIBRARY.
"""
import argparse
import ctypes as C
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


class DLTensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("device_type", C.c_int32), ("device_id", C.c_int32),
                ("ndim", C.c_int32), ("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16),
                ("shape", C.POINTER(C.c_int64)), ("strides", C.POINTER(C.c_int64)),
                ("byte_offset", C.c_uint64)]


class Value(C.Union):
    _fields_ = [("tensor", C.POINTER(DLTensor)), ("i", C.c_int64), ("f", C.c_double),
                ("text", C.c_char_p)]


class Arg(C.Structure):
    _fields_ = [("name", C.c_char_p), ("kind", C.c_int), ("value", Value)]


class Error(C.Structure):
    _fields_ = [("status", C.c_int), ("text", C.c_char_p), ("diagnostics", C.c_void_p),
                ("count", C.c_size_t)]


class Config(C.Structure):
    _fields_ = [("size", C.c_size_t), ("store_path", C.c_char_p), ("tune", C.c_int),
                ("tune_budget_s", C.c_double), ("threads", C.c_int), ("log", C.c_void_p),
                ("log_user", C.c_void_p), ("log_level", C.c_int)]


class LaunchOptions(C.Structure):
    _fields_ = [("size", C.c_size_t), ("config", C.c_char_p), ("f64", C.c_bool), ("low", C.c_bool),
                ("first", C.c_int64), ("count", C.c_int64)]


class Answer(C.Structure):
    _fields_ = [("size", C.c_size_t), ("layer", C.c_int), ("config", C.c_char * 256),
                ("seconds", C.c_double), ("artifact_stored", C.c_bool), ("compile_s", C.c_double),
                ("code_bytes", C.c_size_t), ("ir_ops", C.c_int), ("text_lines", C.c_int)]


class TuneOptions(C.Structure):
    _fields_ = [("size", C.c_size_t), ("budget_s", C.c_double), ("config", C.c_char_p),
                ("again", C.c_bool), ("progress", C.c_void_p), ("progress_user", C.c_void_p)]


ARG_TENSOR, ARG_INT, ARG_FLOAT, ARG_BOOL = 0, 1, 2, 3


class Tilewright:
    """The few calls of the C interface that the benchmark needs."""

    def __init__(self, store, threads):
        path = os.environ.get("TILEWRIGHT_LIBRARY", os.path.join(ROOT, "build", "libtilewright.so"))
        if not os.path.exists(path):
            path = os.path.join(ROOT, "build", "lib", "libtilewright.so")
        self.lib = C.CDLL(path)
        self.lib.tw_last_error.restype = C.POINTER(Error)
        self.lib.tw_version.restype = C.c_char_p
        self.lib.tw_layer_text.restype = C.c_char_p
        cfg = Config(C.sizeof(Config), store.encode() if store else None, 0, 10.0, 0, None, None, 1)
        self.cx, self.dev = C.c_void_p(), C.c_void_p()
        self.check(self.lib.tw_context_create(C.byref(cfg), C.byref(self.cx)))
        self.check(self.lib.tw_device_open(self.cx, f"cpu:{threads}".encode(), C.byref(self.dev)))

    def check(self, status):
        if status:
            sys.exit(self.lib.tw_last_error().contents.text.decode())

    def load(self, path):
        k = C.c_void_p()
        self.check(self.lib.tw_kernel_load(self.cx, path.encode(), None, C.byref(k)))
        return k

    @staticmethod
    def tensor(t):
        code = {"float32": (2, 32), "float16": (2, 16), "bfloat16": (4, 16)}[str(t.dtype)[6:]]
        shape = (C.c_int64 * t.dim())(*t.shape)
        strides = (C.c_int64 * t.dim())(*t.stride())
        return DLTensor(t.data_ptr(), 1, 0, t.dim(), code[0], code[1], 1, shape, strides, 0)

    def args(self, tensors, causal):
        self.keep = {n: self.tensor(t) for n, t in tensors.items()}
        out = (Arg * (len(tensors) + 1))()
        for i, (n, t) in enumerate(self.keep.items()):
            out[i] = Arg(n.encode(), ARG_TENSOR, Value(tensor=C.pointer(t)))
        out[len(tensors)] = Arg(b"CAUSAL", ARG_BOOL, Value(i=int(causal)))
        return out


def machine():
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if "model name" in l), "?")
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], text=True,
                            capture_output=True).stdout.strip()
    return {"cpu": cpu, "processors": os.cpu_count(), "kernel": platform.release(),
            "commit": commit, "date": time.strftime("%Y-%m-%d")}


def timed(f):
    f()  # the caches are this side's again, and the other side's threads have gone to sleep
    t = time.perf_counter()
    f()
    return time.perf_counter() - t


def cell(tw, kernel, torch, d, n, causal, o):
    h = 512 // d
    g = torch.Generator().manual_seed(d * 100003 + n)
    q, k, v = (torch.randn(1, h, n, d, generator=g) for _ in range(3))
    out, lse = torch.empty_like(q), torch.empty(1, h, n)
    args = tw.args({"q": q, "k": k, "v": v, "o": out, "lse": lse}, causal)
    if o.budget and not o.config:
        t = TuneOptions(C.sizeof(TuneOptions), o.budget, None, False, None, None)
        tw.check(tw.lib.tw_tune(kernel, tw.dev, args, len(args), C.byref(t), None))
    opts = LaunchOptions(C.sizeof(LaunchOptions), o.config.encode() if o.config else None)
    answer = Answer(C.sizeof(Answer))
    tw.check(tw.lib.tw_query(kernel, tw.dev, args, len(args), C.byref(opts), C.byref(answer)))

    from torch.nn.attention import SDPBackend, sdpa_kernel
    import torch.nn.functional as F

    def peer():
        with torch.no_grad(), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def ours():
        tw.check(tw.lib.tw_launch_with(kernel, tw.dev, None, args, len(args), C.byref(opts)))

    ours()
    error = (out.double() - peer().double()).abs().max().item()
    for _ in range(3):
        ours(), peer()
    a, b = [], []
    t0 = time.perf_counter()
    while len(a) < o.pairs or time.perf_counter() - t0 < o.seconds:
        first = random.random() < 0.5
        if first:
            a.append(timed(ours))
        b.append(timed(peer))
        if not first:
            a.append(timed(ours))
    flops = 4.0 * h * n * n * d * (0.5 if causal else 1.0)
    ratio = [y / x for x, y in zip(a, b)]
    med = statistics.median(ratio)
    return {"D": d, "N": n, "causal": causal, "pairs": len(a), "config": answer.config.decode(),
            "ours_gflops": flops / statistics.median(a) / 1e9,
            "peer_gflops": flops / statistics.median(b) / 1e9,
            "ratio_of_medians": statistics.median(b) / statistics.median(a),
            "ratio_of_best": min(b) / min(a),
            "ratio_mad": statistics.median(abs(x - med) for x in ratio),
            "max_difference": error}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--cells", help="D,N,causal;...")
    p.add_argument("--pairs", type=int, default=7, help="at least so many pairs a cell")
    p.add_argument("--seconds", type=float, default=2.0, help="at least so long a cell")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--store", help="default: a store of this run only")
    p.add_argument("--budget", type=float, default=20.0, help="tuning seconds a cell; 0: do not tune")
    p.add_argument("--config", help="pins the configuration, tunes nothing")
    p.add_argument("--out", help="writes the results here as JSON")
    o = p.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(o.threads)
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)
    import torch
    torch.set_num_threads(o.threads)

    cells = [(d, n, bool(c)) for d in (64, 128) for n in (1024, 4096) for c in (0, 1)]
    if o.cells:
        cells = [(int(d), int(n), c == "1") for d, n, c in (x.split(",") for x in o.cells.split(";"))]
    tw = Tilewright(o.store, o.threads)
    kernel = tw.load(os.path.join(ROOT, "kernels", "attention_fwd.tw"))
    rows = []
    print("   D     N causal   ours   peer GFLOP/s   ratio (best)  +-    config")
    for d, n, c in cells:
        r = cell(tw, kernel, torch, d, n, c, o)
        rows.append(r)
        print(f"{d:4d} {n:5d} {'yes' if c else 'no ':>6} {r['ours_gflops']:6.0f} {r['peer_gflops']:6.0f}"
              f"        {r['ratio_of_medians']:8.2f} ({r['ratio_of_best']:.2f}) {r['ratio_mad']:.2f}"
              f"  {r['config']}", flush=True)
    if o.out:
        with open(o.out, "w") as f:
            json.dump({"what": "attention_fwd f32 forward against PyTorch SDPA flash",
                       "peer": "torch " + torch.__version__, "threads": o.threads,
                       "machine": machine(), "cells": rows}, f, indent=1)


if __name__ == "__main__":
    main()
