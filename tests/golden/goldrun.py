#!/usr/bin/env python3
"""Runs golden tests: input and whole expected output in one file.

    # The claim: one line saying what this test shows.
    # run: irtool pass simplify
    ...input...
    # ==>
    ...all of standard output...

The comment mark is '#' or '//'. Everything above the '==>' line is the input, so line numbers in
messages are those of the test. The first word of the command is a tool given with --tool; the input
is passed as a file of the test's name, at '{}' or at the end. An exit status other than 0 is the
last line of the output: "exit: 1".

usage: goldrun.py [--bless] --tool NAME=PATH... FILE-OR-FOLDER...
--bless rewrites what stands below '==>'. Exit status: 0, 1 a test failed, 2 usage.
"""
import argparse
import difflib
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

SUFFIXES = {".tir", ".tw", ".sched"}
RUN = re.compile(r"^(?:#|//) run: (.+)$", re.M)
ARROW = re.compile(r"^(?:#|//) ==>\n", re.M)
TIMEOUT_S = 60


def find_tests(paths):
    for path in map(pathlib.Path, paths):
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES)
        else:
            yield path


def run_tool(command, tools, name, text):
    words = shlex.split(command)
    if words[0] not in tools:
        raise ValueError(f"no --tool {words[0]}=... was given")
    words[0] = tools[words[0]]
    words = [name if w == "{}" else w for w in words]
    if name not in words:
        words.append(name)
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, name).write_text(text, encoding="utf-8")
        done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=TIMEOUT_S)
    out = done.stdout.decode("utf-8", "replace")
    if done.stderr:
        raise ValueError("wrote to standard error:\n" + done.stderr.decode("utf-8", "replace"))
    return out + (f"exit: {done.returncode}\n" if done.returncode else "")


def check(path, tools, bless):
    """None when the test passes (or was blessed), else what is wrong."""
    whole = path.read_text(encoding="utf-8")
    run, arrow = RUN.search(whole), ARROW.search(whole)
    if not run or not arrow or not whole.startswith(("# ", "// ")):
        return "needs a first line with its claim, a '# run: ' line and a '# ==>' line"
    head, want = whole[:arrow.end()], whole[arrow.end():]
    try:
        got = run_tool(run.group(1), tools, path.name, whole[:arrow.start()])
    except (ValueError, subprocess.TimeoutExpired) as error:
        return str(error)
    if got == want:
        return None
    if bless:
        path.write_text(head + got, encoding="utf-8")
        print(f"blessed {path}")
        return None
    return "".join(difflib.unified_diff(want.splitlines(True), got.splitlines(True),
                                        "expected", "got"))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--tool", action="append", default=[])
    parser.add_argument("--bless", action="store_true")
    parser.add_argument("paths", nargs="+")
    options = parser.parse_args()
    tools = {}
    for tool in options.tool:
        name, _, path = tool.partition("=")
        tools[name] = str(pathlib.Path(path).resolve())
    tests = list(find_tests(options.paths))
    failed = 0
    for path in tests:
        wrong = check(path, tools, options.bless)
        if wrong:
            failed += 1
            print(f"FAIL {path}\n{wrong}")
    print(f"{len(tests)} golden tests, {failed} failed")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
