"""Runs docs/RECIPES.md: its blocks of Python one after the other, as one program."""
import re

page = open("docs/RECIPES.md", encoding="utf-8").read()
blocks = re.findall(r"```python\n(.*?)```", page, re.S)
assert len(blocks) == 5, f"the page has {len(blocks)} blocks"
names = {}
for block in blocks:
    above = page[:page.index(block)].count("\n")
    exec(compile("\n" * above + block, "docs/RECIPES.md", "exec"), names)
