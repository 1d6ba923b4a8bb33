#!/usr/bin/env bash
# A store that cannot be used costs persistence and one warning, never the result.
source tests/support/cli_test.bash
arguments=("$root/kernels/vector_add.tw" 'a=full:1:f32[50]' 'b=full:2:f32[50]' "c=$work/c.npy"
    --device="$device" --budget=1s)

# one_warning WHAT COMMAND...: succeeds, with the right result and exactly one warning
one_warning() {
    local what=$1
    shift
    rm -f "$work/c.npy"
    expect 0 "warning" "$@"
    [ "$(grep -c warning "$work/err")" -eq 1 ] || complain "$what: not one warning"
    same "$work/c.npy" '(50,)' 3
}

expect 0 "" "$tw" run "${arguments[@]}"
[ ! -s "$work/err" ] || complain "a warning about a good store"
[ "$(stat -c %a "$TILEWRIGHT_STORE")" = 600 ] || complain "others may read the store"
expect 0 "" "$tw" run "${arguments[@]}" --store=none
[ ! -s "$work/err" ] || complain "a warning about no store"

# where it is without TILEWRIGHT_STORE
env -u TILEWRIGHT_STORE XDG_CACHE_HOME="$work/xdg" "$tw" run "${arguments[@]}" >"$work/out" 2>"$work/err"
[ -s "$work/xdg/tilewright/store.db" ] || complain "no store in XDG_CACHE_HOME"
env -u TILEWRIGHT_STORE -u XDG_CACHE_HOME HOME="$work/home" "$tw" run "${arguments[@]}" \
    >"$work/out" 2>"$work/err"
[ -s "$work/home/.cache/tilewright/store.db" ] || complain "no store in HOME"
expect 14 "no store" env -u TILEWRIGHT_STORE -u XDG_CACHE_HOME -u HOME "$tw" cache list

echo 'not a database, and long enough not to look like an empty one' >"$work/text.db"
one_warning "a foreign file" "$tw" run "${arguments[@]}" --store="$work/text.db"
grep -q 'not a database' "$work/text.db" || complain "a foreign file was overwritten"
head -c 3000 "$TILEWRIGHT_STORE" >"$work/cut.db"
one_warning "a truncated store" "$tw" run "${arguments[@]}" --store="$work/cut.db"
one_warning "a folder" "$tw" run "${arguments[@]}" --store="$work"
one_warning "no such folder" "$tw" run "${arguments[@]}" --store=/proc/nowhere/store.db
if [ "$(id -u)" -ne 0 ]; then
    mkdir -m 500 "$work/locked"
    one_warning "a folder without rights" "$tw" run "${arguments[@]}" --store="$work/locked/store.db"
    chmod 400 "$TILEWRIGHT_STORE"
    expect 0 "" "$tw" run "${arguments[@]}"
fi
one_warning "a full disk" "$tw" run "${arguments[@]}" --store=/dev/full
one_warning "a limit on the size of files" bash -c 'ulimit -f 8; "$@"' - "$tw" run "${arguments[@]}" \
    --store="$work/limited.db"
expect 14 "" "$tw" cache list --store="$work/text.db"
expect 14 "" "$tw" cache list --store="$work/text.db" --json
json "$work/out" 'd["error"]["status"] == "E_STORE"'
finish
