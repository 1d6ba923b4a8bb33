#!/usr/bin/env bash
# The README's example is the one that is built, it runs, and what the documents link to exists.
source tests/support/cli_test.bash
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' README.md >"$work/example.c"
diff "$work/example.c" examples/attention.c >"$work/out" || complain "README's example differs"
grep -qF 'gcc examples/attention.c' README.md || complain "README does not say how to compile it"
expect 0 "lse = 6.23" "$TW_BUILD/bin/examples/attention" # log 512

for page in README.md docs/*.md; do
    folder=$(dirname "$page")
    for link in $(awk '/^```/ { code = !code } !code' "$page" |
        grep -oE '\]\([^)# ]+' | sed 's/^](//' | grep -v ':'); do
        [ -e "$folder/$link" ] || complain "$page links to $link, which does not exist"
    done
done
finish
