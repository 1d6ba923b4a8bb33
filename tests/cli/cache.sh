#!/usr/bin/env bash
# The store: looked into, carried elsewhere, pruned.
source tests/support/cli_test.bash
add=$root/kernels/vector_add.tw
expect 0 "" "$tw" tune "$add" 'a=rand:f32[500]' 'b=rand:f32[500]' --budget=2s --device="$device"
expect 0 "vector_add" "$tw" cache list
expect 0 "1 configuration" "$tw" cache export "$work/moved.db"
expect 7 "it exists" "$tw" cache export "$work/moved.db"
expect 0 "1 configuration" "$tw" cache import "$work/moved.db" --store="$work/other.db"
expect 0 "vector_add" "$tw" cache list --store="$work/other.db"
# a terminal that is too narrow: cells take several lines, and nothing is lost
if script --version >/dev/null 2>&1; then
    "$tw" cache list --store="$work/other.db" >"$work/wide"
    script -qec "stty cols 80; NO_COLOR=1 $tw cache list --store=$work/other.db" /dev/null \
        </dev/null | tr -d '\r' >"$work/out"
    awk 'length > 80 { exit 1 }' "$work/out" || complain "wider than the terminal"
    [ "$(tr -d ' \n' <"$work/out" | fold -w1 | sort)" = "$(tr -d ' \n' <"$work/wide" | fold -w1 | sort)" ] ||
        complain "a narrow list says something else"
fi
expect 0 "nothing taken over" "$tw" cache import "$work/moved.db" --store="$work/other.db"
expect 0 "" "$tw" run "$add" 'a=rand:f32[500]' 'b=rand:f32[500]' --device="$device" \
    --store="$work/other.db" --tune=never --json
json "$work/out" 'd["layer"] == "exact"'

expect 0 "" "$tw" cache export "$work/code.db" --artifacts --json
json "$work/out" 'd["artifacts"] >= 1 and d["configs"] == 1 and d["refused"] == 0'
expect 0 "" "$tw" cache import "$work/code.db" --artifacts --store="$work/third.db" --json
json "$work/out" 'd["artifacts"] >= 1 and d["refused"] == 0'
chmod 666 "$work/code.db"
expect 7 "others can write" "$tw" cache import "$work/code.db" --artifacts --store="$work/fourth.db"
head -c 5000 "$work/moved.db" >"$work/cut.db"
expect 7 "" "$tw" cache import "$work/cut.db" --store="$work/fourth.db"
expect 4 "the store itself" "$tw" cache import "$TILEWRIGHT_STORE"
expect 14 "" "$tw" cache export "$work/none.db" --store=none
[ ! -e "$work/none.db" ] || complain "a failed export leaves a file"

expect 0 "nothing forgotten" "$tw" cache prune
expect 0 "" "$tw" cache prune --max-size=1k --json
json "$work/out" 'd["artifacts"] >= 1 and d["trials"] >= 1 and d["configs"] == 0'
id=$("$tw" cache list --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["id"])')
expect 0 "its trials were pruned" "$tw" cache show "$id"
expect 0 "" "$tw" cache show "$id" --json
json "$work/out" 'd == []'
expect 0 "nothing forgotten" "$tw" cache prune --older=1h
expect 0 "vector_add" "$tw" cache list
expect 0 "1 configuration forgotten" "$tw" cache clear vector_add
finish
