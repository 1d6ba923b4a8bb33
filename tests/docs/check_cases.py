#!/usr/bin/env python3
"""Fails when a row of docs/CASES.md names no test, or a test that is not there.

A row's last column is `file under tests/` followed by what must occur in it, with "; " between files,
or "none: " and the reason."""
import pathlib
import re
import sys

ROW = re.compile(r"^\| ([A-Z]+-\d+) \| (.+?) \| \[.+?\]\(https://\S+?\) \| (.+) \|$")


def complaint(cell):
    if cell.startswith("none: ") and len(cell) > 10:
        return None
    for part in cell.split("; `"):
        names = re.findall(r"`([^`]+)`", part if part.startswith("`") else "`" + part)
        if not names:
            return "no test is named"
        path = pathlib.Path("tests", names[0])
        if not path.is_file():
            return f"there is no {path}"
        text = path.read_text(encoding="utf-8")
        for name in names[1:]:
            if name not in text:
                return f"{path} has no '{name}'"
    return None


def main():
    bad = rows = 0
    seen = set()
    for number, line in enumerate(open("docs/CASES.md", encoding="utf-8"), 1):
        if not re.match(r"\| [A-Z]+-\d+ ", line):
            continue
        rows += 1
        match = ROW.match(line.rstrip("\n"))
        why = complaint(match[3]) if match else "it has not the form of a row"
        if match and match[1] in seen:
            why = f"{match[1]} is there twice"
        if match:
            seen.add(match[1])
        if why:
            bad += 1
            print(f"docs/CASES.md:{number}: {why}")
    print(f"{rows} rows")
    sys.exit(1 if bad or rows < 100 else 0)


main()
