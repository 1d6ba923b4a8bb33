#!/usr/bin/env python3
"""Facts about the PTX of attention_fwd, and what ptxas makes of it where it is found.

usage: ptx_facts.py TILEWRIGHT KERNELS

A loop is what lies between a label and the last branch back to it. The loops that multiply are the
blocks with masks, then the whole blocks.
"""
import collections
import functools
import re
import shutil
import subprocess
import sys
import tempfile

MASKED, WHOLE = 0, 1
# set, by loop: {what: count, or (least, most)}; a thread has BLOCK_M / (16 * num_warps) * BLOCK_N / 2 scores
FORMS = {
    "T=bf16,D=128,DV=128,CAUSAL=true,BLOCK_M=128,BLOCK_N=64,num_warps=4,num_stages=2": {
        MASKED: {"mma": 256, "ldmatrix": 80, "cp.async": 16, "ex2": (64, 76), "bar": 1, "selp": (64, 120)},
        WHOLE: {"mma": 256, "ldmatrix": 80, "cp.async": 16, "ex2": (64, 76), "bar": 1, "selp": (0, 15)},
    },
    "T=bf16,D=128,DV=128,CAUSAL=true,BLOCK_M=128,BLOCK_N=64,num_warps=8,num_stages=2": {
        MASKED: {"mma": 128, "ldmatrix": 72, "cp.async": 8, "ex2": (32, 38), "bar": 1, "selp": (32, 70)},
        WHOLE: {"mma": 128, "ldmatrix": 72, "cp.async": 8, "ex2": (32, 38), "bar": 1, "selp": (0, 15)},
    },
    "T=f16,D=64,DV=64,CAUSAL=false,BLOCK_M=128,BLOCK_N=64,num_warps=4,num_stages=2,operand_registers=1": {
        WHOLE: {"mma": 128, "ldmatrix": 32, "cp.async": 8, "ex2": (64, 76), "bar": 1, "selp": (0, 15)},
    },
    # copies for two blocks under one barrier
    "T=bf16,D=64,DV=64,CAUSAL=false,BLOCK_M=128,BLOCK_N=64,num_warps=4,num_stages=2,operand_registers=1,"
    "stage_blocks=2": {
        WHOLE: {"mma": 128, "ldmatrix": 32, "cp.async": 16, "ex2": (64, 76), "bar": 1, "selp": (0, 15)},
    },
}
# A head of 40 is multiplied as one of 48: in a loop over whole blocks the third of three columns of pieces alone asks
# whether it is behind the end.
ODD_HEADS = {
    "T=bf16,D=40,DV=40,CAUSAL=true,BLOCK_M=64,BLOCK_N=64,num_warps=4,num_stages=2": {
        MASKED: {"mma": 48, "ldmatrix": 27, "cp.async": 6, "ex2": (32, 36), "bar": 1, "selp": (32, 60)},
        WHOLE: {"mma": 48, "ldmatrix": 27, "cp.async": 6, "ex2": (32, 36), "bar": 1, "selp": (0, 10)},
    },
    "T=f16,D=100,DV=100,CAUSAL=false,BLOCK_M=64,BLOCK_N=64,num_warps=4,num_stages=2": {
        WHOLE: {"mma": 112, "ldmatrix": 63, "cp.async": 14, "ex2": (32, 36), "bar": 1, "selp": (0, 10)},
    },
}
# of attention_rounded: sums of rows are 8 products more, and hardly anything is added
ROUNDED = {
    "T=bf16,D=128,DV=128,CAUSAL=true,BLOCK_M=128,BLOCK_N=64,num_warps=4,num_stages=2": {
        MASKED: {"mma": 264, "ldmatrix": 80, "add": (4, 16)},
        WHOLE: {"mma": 264, "ldmatrix": 80, "add": (4, 16)},
    },
}
# set, target, most bytes of spill stores. 8 warps of 16 rows have room; 4 of 32 rows with D = 128 need 192
# registers for scores and accumulators alone (bench/NOTES.md).
ASSEMBLED = [
    ("T=bf16,D=128,DV=128,CAUSAL=true,BLOCK_M=128,BLOCK_N=64,num_warps=8,num_stages=2", target, 0)
    for target in ("sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_120")
] + [
    ("T=bf16,D=64,DV=64,CAUSAL=true,BLOCK_M=128,BLOCK_N=64,num_warps=4,num_stages=2", "sm_80", 16),
    ("T=bf16,D=128,DV=128,CAUSAL=true,BLOCK_M=128,BLOCK_N=64,num_warps=4,num_stages=2", "sm_80", 32),
    ("T=bf16,D=128,DV=128,CAUSAL=false,BLOCK_M=128,BLOCK_N=64,num_warps=4,num_stages=1", "sm_80", 0),
] + [
    (f"T=bf16,D={d},DV={d},CAUSAL=true", target, 0) for d, target in
    [(40, "sm_80"), (40, "sm_90"), (72, "sm_89"), (88, "sm_80"), (88, "sm_90"), (100, "sm_89"), (100, "sm_90")]
]
# the same of the gradients in tests/data
GRADIENTS = [(f"T=bf16,D={d}", target, 0)
             for d, target in [(40, "sm_89"), (72, "sm_80"), (88, "sm_89"), (100, "sm_80"), (100, "sm_90")]]
KINDS = {"mma.sync": "mma", "ldmatrix": "ldmatrix", "cp.async.c": "cp.async", "ex2": "ex2", "bar.sync": "bar",
         "barrier": "bar", "selp": "selp", "st.shared": "shared", "ld.shared": "shared",
         "shfl": "shfl", "add.rn.f32": "add", "add.f32": "add"}
bad = []


@functools.cache
def ptx_of(tool, kernel, values, target):
    command = [tool, "compile", kernel, f"--target={target}", "--emit=ptx", f"--set={values}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def multiplying_loops(text):
    lines = text.splitlines()
    label = {m.group(1): i for i, line in enumerate(lines) if (m := re.match(r"(\$\w+):", line))}
    end = {}
    for i, line in enumerate(lines):
        m = re.search(r"\bbra(?:\.uni)?\s+(\$\w+);", line)
        if m and label[m.group(1)] <= i:
            end[label[m.group(1)]] = i
    for first, last in sorted(end.items()):
        count = collections.Counter()
        for line in lines[first:last]:
            op = re.sub(r"^\s*(@!?%p\d+\s+)?", "", line)
            for start, kind in KINDS.items():
                if op.startswith(start) and not op.startswith("cp.async.commit"):
                    count[kind] += 1
        if count["mma"]:
            yield count


def check_form(tool, kernel, values, wanted):
    loops = list(multiplying_loops(ptx_of(tool, kernel, values, "sm_80")))
    if len(loops) != 2:
        bad.append(f"{values}: {len(loops)} loops multiply")
        return
    number = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", values)}
    rows = number["BLOCK_M"] // (8 * number["num_warps"])
    for which, facts in wanted.items():
        # P and the row sums never leave registers; only the maximum of a row goes over its four lanes
        for kind, limits in {**facts, "shared": 0, "shfl": 2 * rows}.items():
            least, most = limits if isinstance(limits, tuple) else (limits, limits)
            if not least <= loops[which][kind] <= most:
                bad.append(f"{values}: loop {which} has {loops[which][kind]} of {kind}, not {least} to {most}")


def check_ends(tool, kernel, values):
    """Which program this is takes no division of 64 bits, which is a call and costs the loops registers, and none
    that is signed; a whole block's rows go out without a branch between."""
    lines = ptx_of(tool, kernel, values, "sm_80").splitlines()
    narrow = sum("div.u32" in line for line in lines)
    if narrow < 3 or any(re.search(r"(div|rem)\.([su]64|s32)", line) for line in lines):
        bad.append(f"{values}: {narrow} divisions of 32 bits, and others")
    rows = most = 0
    for line in lines:
        rows = 0 if re.search(r"\bbra\b", line) else rows + ("st.global.v4" in line or "st.global.v2.b64" in line)
        most = max(most, rows)
    if most < 8:
        bad.append(f"{values}: {most} stores of 16 bytes without a branch between")


def check_assembled(ptxas, tool, kernel, values, target, most):
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx_of(tool, kernel, values, target))
        file.flush()
        done = subprocess.run([ptxas, "-v", "-c", f"-arch={target}", file.name, "-o", "/dev/null"],
                              capture_output=True, text=True)
    spilled = re.search(r"(\d+) bytes spill stores", done.stderr)
    if done.returncode or not spilled:
        bad.append(f"{values}: ptxas -arch={target}: {done.stderr[:300]}")
    elif int(spilled.group(1)) > most:
        bad.append(f"{values}: {spilled.group(0)} on {target}, more than {most}")


def main():
    tool, kernels = sys.argv[1:3]
    ptxas = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
    attention = f"{kernels}/attention_fwd.tw"
    for values, wanted in FORMS.items():
        check_form(tool, attention, values, wanted)
        check_ends(tool, attention, values)
    for values, wanted in ODD_HEADS.items():
        check_form(tool, attention, values, wanted)
    for values, wanted in ROUNDED.items():
        check_form(tool, f"{kernels}/variants/attention_rounded.tw", values, wanted)
    for values, target, most in ASSEMBLED if ptxas else []:
        check_assembled(ptxas, tool, attention, values, target, most)
    for values, target, most in GRADIENTS if ptxas else []:
        check_assembled(ptxas, tool, f"{kernels}/../tests/data/attention_gradients.tw", values, target, most)
    forms, assembled = len(FORMS) + len(ODD_HEADS) + len(ROUNDED), len(ASSEMBLED) + len(GRADIENTS)
    print("\n".join(bad) or f"{forms} forms, {assembled if ptxas else 0} assembled")
    sys.exit(1 if bad else 0)


main()
