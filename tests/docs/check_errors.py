#!/usr/bin/env python3
"""docs/ERRORS.md has the rows of TW_STATUS_MAP, in their order and words, and a section for each;
the comment above a function that can fail says with what."""
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
headers = header + open("include/tilewright_ir.h", encoding="utf-8").read()
checked = list(re.finditer(r"TW_API TW_CHECKED tw_status (\w+)\(", headers))
if len(checked) < 30:
    bad += 1
    print("the functions that can fail were not found")
for found in checked:
    comment = headers[headers.rfind("/*", 0, found.start()):found.start()]
    if not re.search(r"Fails|TW_E_|The same", comment):
        bad += 1
        print(f"the header does not say how {found[1]} fails")
sys.exit(1 if bad else 0)
