#!/usr/bin/env python3
"""Configurations of attention assembled by ptxas: each must be accepted, and few may spill much.

usage: ptx_cover.py COVERTOOL [--every N] [--workers N] set SEED | every N | of TARGET
       ptx_cover.py COVERTOOL [--results FILE] [--workers N] all PART PARTS
       ptx_cover.py COVERTOOL [--every N] [--workers N] recorded FILE

What to assemble is what COVERTOOL prints, configurations that the tuner would compile, or what is in FILE,
which has lines such as --results writes; what is in a file of results is not done again. Configurations with
the same code on one GPU are assembled once, as the tuner measures them once. (PTX that differs in .target
alone is no such case: ptxas gives other registers for each GPU.) Without ptxas nothing is assembled, which
is said.

The tuner rules out by an estimate of registers before it compiles, and by spills before it measures (more than
64 bytes a thread of spill stores above the default's: docs/TUNER.md). So of what is compiled a tenth may spill
more than that, but not several times as much; the fixed form spills nothing; and of all that was recorded for a
GPU (--every 1), eight configurations for each head dim are good.
"""
import argparse
import collections
import concurrent.futures
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time

MOST = 64        # bytes of spill stores a thread in what is measured
FAR = 512        # in anything that the estimate lets through: 352 seen (f32); more is a kind that it does not count
SHARE = 0.1      # of those compiled may be ruled out by their spills
CHOICES = 8      # for each head dim of a GPU whose configurations were recorded
FIXED = "T=bf16 D=128 CAUSAL=true BLOCK_M=128 BLOCK_N=64 num_warps=8 num_stages=2"  # spills nothing

Row = collections.namedtuple("Row", "kernel target values registers spilled failed")


def listed(args):
    if args.what[0] == "recorded":
        with open(args.what[1]) as file:
            rows = [tuple(line.rstrip("\n").split("\t")[:3]) for line in file]
        return rows[::args.every], f"{len(rows)} recorded"
    command = [args.covertool, *args.what]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [tuple(line.split("\t")) for line in lines if not line.startswith("#")]
    return rows[::args.every], lines[-1]


class Compiler:
    """COVERTOOL ptx: one process for many compiles, so that LLVM is loaded once."""

    def __init__(self, tool):
        self.child = subprocess.Popen([tool, "ptx"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ptx(self, *row):
        """(PTX, "") or (None, what is wrong)."""
        try:
            self.child.stdin.write(("\t".join(row) + "\n").encode())
            self.child.stdin.flush()
        except BrokenPipeError:
            pass  # there is no answer either
        head = self.child.stdout.readline().split()
        if len(head) != 2:
            return None, f"the compiler ended with {self.child.wait()}"
        text = self.child.stdout.read(int(head[1]))
        return (text, "") if head[0] == b"ptx" else (None, text.decode(errors="replace"))

    def close(self):
        self.child.stdin.close()
        self.child.stdout.close()
        self.child.wait()


def run_ptxas(ptxas, target, ptx):
    """(registers, bytes of spill stores, what is wrong or "")."""
    with tempfile.NamedTemporaryFile(suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        done = subprocess.run([ptxas, "-v", "-c", f"-arch={target}", file.name, "-o", "/dev/null"],
                              capture_output=True, text=True)
    spilled = re.search(r"(\d+) bytes spill stores", done.stderr)
    used = re.search(r"Used (\d+) registers", done.stderr)
    if done.returncode or not spilled or not used:
        return 0, 0, "ptxas: " + done.stderr
    return int(used.group(1)), int(spilled.group(1)), ""


def assemble(ptxas, compilers, row):
    """Takes a compiler that is free, which one that ended never is again."""
    compiler = compilers.get()
    ptx, wrong = compiler.ptx(*row)
    if compiler.child.poll() is not None:
        compiler = Compiler(compiler.child.args[0])
    compilers.put(compiler)
    numbers = run_ptxas(ptxas, row[1], ptx) if ptx else (0, 0, wrong)
    return Row(*row, *numbers[:2], numbers[2].strip().replace("\n", " ")[:200])


def has(row, settings):
    return set(settings.split()) <= set(row.values.split(","))


def head_dim(row):
    return next(value for value in row.values.split(",") if value.startswith("D="))


def too_few(rows):
    """Head dims that have not enough good configurations among all that were recorded."""
    good = collections.Counter(head_dim(row) for row in rows if row.spilled <= MOST and not row.failed)
    return [d for d in {head_dim(row) for row in rows} if good[d] < CHOICES]


def judge(row):
    """What is wrong with it, or ""."""
    if row.failed:
        return row.failed
    if row.spilled and row.kernel.endswith("/attention_fwd.tw") and has(row, FIXED):
        return "it is the fixed form"
    return f"more than {FAR}" if row.spilled > FAR else ""


def read_results(path):
    """{key: Row} of an earlier run; a last line that was cut short is done again."""
    done = {}
    if path and os.path.exists(path):
        with open(path) as file:
            for line in file:
                part = line.rstrip("\n").split("\t")
                if line.endswith("\n") and len(part) == len(Row._fields):
                    done[tuple(part[:3])] = Row(*part[:3], int(part[3]), int(part[4]), part[5])
    return done


def open_results(path):
    """To add to; a last line that was cut short is ended, so that the next one is whole."""
    file = open(path, "a+b")
    if file.tell() > 0:
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.write(b"\n")
    file.close()
    return open(path, "a")


def tell(done, total, start):
    if sys.stderr.isatty() or done == total or done % 500 == 0:
        each = (time.time() - start) / max(done, 1)
        end = "\r" if sys.stderr.isatty() else "\n"
        print(f"{done} of {total}, {each * (total - done) / 60:.0f} minutes left ", end=end, file=sys.stderr, flush=True)


def assemble_all(args, ptxas, rows, done):
    todo = [row for row in rows if row not in done]
    start = time.time()
    out = open_results(args.results) if args.results else None
    compilers = queue.Queue()
    for _ in range(args.workers):
        compilers.put(Compiler(args.covertool))
    with concurrent.futures.ThreadPoolExecutor(args.workers) as pool:
        made = pool.map(lambda row: assemble(ptxas, compilers, row), todo)
        for n, row in enumerate(made, 1):
            done[row[:3]] = row
            if out:
                print(*row, sep="\t", file=out, flush=True)
                tell(n, len(todo), start)
    while not compilers.empty():
        compilers.get().close()
    if out:
        out.close()


def report(rows, summary):
    wrong = 0
    over = sum(row.spilled > MOST for row in rows)
    for row in sorted(rows, key=lambda r: r.spilled):
        bad = judge(row)
        wrong += bool(bad)
        if bad or row.spilled:
            print(f"{'WRONG' if bad else 'spills'} {row.spilled} bytes: {row.kernel} {row.target} {row.values}"
                  f"{': ' if bad else ''}{bad}")
    print(f"{len(rows)} assembled ({summary.lstrip('# ')}), {sum(row.spilled > 0 for row in rows)} spill, "
          f"{over} more than {MOST} bytes, {wrong} wrong")
    return wrong or over > SHARE * len(rows) + 1


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("covertool")
    parse.add_argument("--every", type=int, default=1)
    parse.add_argument("--workers", type=int, default=2)
    parse.add_argument("--results")
    parse.add_argument("what", nargs="+")
    args = parse.parse_args()
    ptxas = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
    if not ptxas:
        print("there is no ptxas here: nothing was assembled")
        return 0
    rows, summary = listed(args)
    done = read_results(args.results)
    assemble_all(args, ptxas, rows, done)
    rows = [done[row] for row in rows]
    few = too_few(rows) if args.what[0] == "recorded" and args.every == 1 else []
    if few:
        print(f"fewer than {CHOICES} good configurations: {', '.join(few)}")
    return 1 if report(rows, summary) or few else 0


sys.exit(main())
