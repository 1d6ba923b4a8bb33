#!/usr/bin/env python3
"""Fails unless the library defines exactly the functions that the public headers declare.

usage: check_exports.py --nm NM --header HEADER [--header HEADER] LIBRARY.so LIBRARY.a
"""
import argparse
import re
import subprocess
import sys


def declared(header):
    text = re.sub(r"/\*.*?\*/", " ", open(header, encoding="utf-8").read(), flags=re.S)
    text = re.sub(r"^\s*#.*?(?<!\\)$", " ", text, flags=re.S | re.M)
    return set(re.findall(r"\bTW_API\b[^;(]*?\b(tw_\w+)\s*\(", text))


def defined(nm, library):
    dynamic = [] if library.endswith(".a") else ["-D"]
    out = subprocess.run([nm, *dynamic, "--defined-only", "--extern-only", library],
                         check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in out.splitlines()]
    # sanitizers add symbols of their own, which begin with two underscores
    return {row[2].split("@")[0] for row in rows if len(row) == 3 and not row[2].startswith("__")}


def report(what, names):
    for name in sorted(names):
        print(f"{what}: {name}")
    return len(names)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--nm", required=True)
    p.add_argument("--header", required=True, action="append")
    p.add_argument("library", nargs="+")
    a = p.parse_args()
    public = set().union(*map(declared, a.header))
    bad = 0
    for library in a.library:
        names = defined(a.nm, library)
        bad += report(f"{library}: exported and not declared", names - public)
        bad += report(f"{library}: declared and not exported", public - names)
    sys.exit(1 if bad else 0)


main()
