#!/usr/bin/env python3
"""Fails when a folder includes a header of a folder that is not below it.

    compiler/base < compiler/ir < { dsl, compiler/passes < compiler/schedule < compiler/target }
                  < store < runtime < tuner < cli

usage: check_includes.py ROOT
"""
import pathlib
import re
import sys

BASE = {"compiler/base"}
IR = BASE | {"compiler/ir"}
SCHEDULE = IR | {"compiler/passes", "compiler/schedule"}
TARGET = SCHEDULE | {"compiler/target"}
TARGETS = {"compiler/target/cpu", "compiler/target/interp", "compiler/target/llvm",
           "compiler/target/nvptx"}
STORE = TARGET | {"dsl", "store"} | TARGETS
RUNTIME = STORE | {"runtime"}
DRIVERS = {"runtime/cuda", "runtime/host", "runtime/interp", "runtime/null"}

# folder: folders whose headers it may include (its own is always allowed)
MAY_INCLUDE = {
    "compiler/base": BASE,
    "compiler/ir": IR,
    "compiler/passes": IR,
    "compiler/schedule": SCHEDULE,
    "compiler/target": TARGET,
    "compiler/target/llvm": TARGET,
    "compiler/target/cpu": TARGET | {"compiler/target/llvm"},
    "compiler/target/interp": TARGET,
    "compiler/target/nvptx": TARGET | {"compiler/target/llvm"},
    "dsl": IR,
    "store": BASE,  # knows nothing of kernels or devices but keys
    "runtime": RUNTIME | DRIVERS,
    "runtime/cuda": RUNTIME,
    "runtime/host": RUNTIME,
    "runtime/interp": RUNTIME | {"runtime/host"},
    "runtime/null": RUNTIME,
    "tuner": RUNTIME | {"tuner"},
    "cli": set(),  # the public header only
    "examples": set(),
}
PUBLIC = {"tilewright.h", "tilewright_ir.h", "dlpack.h"}
# outside headers that only some folders may see
OUTSIDE = [
    (re.compile(r"llvm-c/|llvm/"), "compiler/target"),
    (re.compile(r"sqlite3\.h"), "store"),
    (re.compile(r"zstd.*\.h"), "store"),
    (re.compile(r"xxhash\.h"), "compiler/base"),
]
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)


def complaint(folder, quote, header):
    for pattern, owner in OUTSIDE:
        if pattern.match(header):
            inside = folder == owner or folder.startswith(owner + "/")
            return None if inside else f"only {owner} may include it"
    if header in PUBLIC or quote == "<":
        return None
    if "/" not in header:
        return "write the path from the repository root"
    target = header.rsplit("/", 1)[0]
    if target == folder or target in MAY_INCLUDE[folder]:
        return None
    return f"{folder} may not depend on {target}"


def main():
    root = pathlib.Path(sys.argv[1])
    bad = 0
    for folder in MAY_INCLUDE:
        for path in sorted((root / folder).glob("*.[ch]")) + sorted((root / folder).glob("*.def")):
            for quote, header in INCLUDE.findall(path.read_text(encoding="utf-8")):
                why = complaint(folder, quote, header)
                if why:
                    bad += 1
                    print(f"{path.relative_to(root)}: {header}: {why}")
    names = {}
    for path in root.rglob("*.[ch]"):
        part = path.relative_to(root).parts[0]
        if not part.startswith(("build", ".")):
            names.setdefault(path.name, []).append(str(path.relative_to(root)))
    for name, paths in sorted(names.items()):
        if len(paths) > 1:
            bad += 1
            print(f"file names are unique in the tree: {', '.join(sorted(paths))}")
    sys.exit(1 if bad else 0)


main()
