#!/usr/bin/env python3
"""Fails when a C file, a function or a line is longer than docs/HACKING.md allows.

700 lines a file, 80 a function, 100 columns a line. A function may be longer when it is a switch
over operations, and a line when it is text for people: a string and nothing else. Tables (.def)
have lines of any length, and include/dlpack.h is not ours.

usage: check_sizes.py ROOT
"""
import pathlib
import re
import sys

FILE, FUNCTION, LINE = 700, 80, 100
NOT_OURS = {"include/dlpack.h"}
TEXT = re.compile(r'^\s*"(\\.|[^"\\])*"[,;)]*$')
HEAD = re.compile(r"^[A-Za-z_].*\b(\w+)\(")


def functions(lines):
    """name, first line, lines of each function: its braces are alone in the first column"""
    head = name = start = None
    for number, line in enumerate(lines, 1):
        found = HEAD.match(line)
        if found:
            head = found.group(1)
        if line == "{":
            name, start = head, number
        elif line == "}" and start:
            yield name, start, lines[start - 1:number]
            start = None


def complaints(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) > FILE:
        yield 1, f"{len(lines)} lines; a file has at most {FILE}"
    for number, line in enumerate(lines, 1):
        if len(line) > LINE and not TEXT.match(line):
            yield number, f"{len(line)} columns; a line has at most {LINE}"
    for name, start, body in functions(lines):
        if len(body) > FUNCTION and not any("switch (" in line for line in body):
            yield start, f"'{name}' has {len(body)} lines; a function has at most {FUNCTION}"


def main():
    root = pathlib.Path(sys.argv[1])
    files = [path for path in sorted(root.rglob("*.[ch]"))
             if not path.relative_to(root).parts[0].startswith(("build", "."))
             and str(path.relative_to(root)) not in NOT_OURS]
    bad = [f"{path.relative_to(root)}:{line}: {what}"
           for path in files for line, what in complaints(path)]
    print("\n".join(bad) if bad else f"{len(files)} files")
    sys.exit(1 if bad or not files else 0)


main()
