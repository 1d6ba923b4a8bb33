#!/usr/bin/env python3
"""docs/ERRORS.md has the rows of TW_STATUS_MAP, in their order and words, and a section for each."""
import re
import sys

header = open("include/tilewright.h", encoding="utf-8").read()
page = open("docs/ERRORS.md", encoding="utf-8").read()
rows = re.findall(r'^ *X\((\w+), (\d+), "(.*)"\)', header.split("define TW_STATUS_MAP")[1]
                  .split("typedef")[0], flags=re.M)
table = re.findall(r"^\| `TW_(\w+)` \| (\d+) \| (.*) \|$", page, flags=re.M)
bad = 0
if len(rows) < 14 or rows != table:
    bad += 1
    for row in rows:
        print("| `TW_%s` | %s | %s |" % row, "" if row in table else "  <- missing or different")
    for row in table:
        if row not in rows:
            print("not in the header:", row)
for name, _, _ in rows:
    if name != "OK" and f"### TW_{name}\n" not in page:
        bad += 1
        print(f"no section on TW_{name}")
sys.exit(1 if bad else 0)
