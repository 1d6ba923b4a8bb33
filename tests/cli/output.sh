#!/usr/bin/env bash
# What is printed where: results on stdout, the rest on stderr; no escape sequences into a pipe; JSON
# that a parser reads; readers that go away and disks that are full.
source tests/support/cli_test.bash
add=$root/kernels/vector_add.tw
arguments=("$add" 'a=rand:f32[100]' 'b=zeros:f32[100]' --device=interp --tune=never)

plain() { # no escape sequence, no carriage return
    ! grep -q $'[\e\r]' "$work/out" "$work/err" || complain "escape sequences in a pipe: $1"
}
for verb in "run ${arguments[*]} --check" "bench ${arguments[*]} --repeat=3" "help run" "device" \
    "cache list" "nothing"; do
    TERM=xterm "$tw" $verb >"$work/out" 2>"$work/err"
    plain "$verb"
done

expect 0 "" "$tw" run "${arguments[@]}" --check --json c="$work/c.npy"
[ ! -s "$work/err" ] || complain "a good run prints on stderr"
json "$work/out" 'd["kernel"] == "vector_add" and d["layer"] in ("default", "pinned")'
json "$work/out" 'd["outputs"][0]["shape"] == [100] and d["outputs"][0]["file"].endswith("c.npy")'
json "$work/out" 'd["check"]["pass"] is True and d["check"]["outputs"][0]["elements"] == 100'
expect 0 "" "$tw" bench "${arguments[@]}" --json --repeat=3
json "$work/out" 'd["samples"] == 3'
expect 0 "" "$tw" device interp --json
json "$work/out" 'd[0]["device"] == "interp"'
expect 0 "" "$tw" cache list --json
json "$work/out" 'isinstance(d, list)'
expect 2 "" "$tw" run "${arguments[@]}" --json --frobnicate

# --check finds what differs: a tolerance that nothing but equality meets
cat >"$work/third.tw" <<'END'
kernel third(x: f32[N], out y: f32[N])
grid (1)
{
    store(y[0 :+ 64], exp(load(x[0 :+ 64])) / 3.0);
}
END
expect 0 "PASS" "$tw" run "$work/third.tw" 'x=rand:f32[64]' --device=interp --check
expect 12 "FAIL" "$tw" run "$work/third.tw" 'x=rand:f32[64]' --device=interp --check --tolerance=0
grep -q "worst at y\[" "$work/out" || complain "the worst element is not named"

# --check interprets the configuration that ran: blocks, and which program is which, depend on it
cat >"$work/blocks.tw" <<'END'
kernel blocks(x: f32[N], out y: f32[N])
tune BLOCK in {16, 32}
grid (cdiv(N, BLOCK))
{
    let at = program_id(0) * BLOCK;
    store(y[at :+ BLOCK], load(x[at :+ BLOCK]) + cast(BLOCK, f32));
}
END
expect 0 "PASS" "$tw" run "$work/blocks.tw" 'x=rand:f32[64]' --device=interp --config=BLOCK=32 --check
expect 0 "1 of 1 programs" "$tw" run "$work/blocks.tw" 'x=rand:f32[64]' --device=interp \
    --config=BLOCK=32 --programs=1:1 --check

# every value of 16 and of 8 bits is one that a kernel may compute, whatever memory holds before
for type in u16 u8; do
    cat >"$work/each_$type.tw" <<END
kernel each(x: f32[N], out y: $type[N]) grid (cdiv(N, 256)) {
    let at = program_id(0) * 256 + arange(256);
    store(y[at], cast(at, $type));
}
END
    expect 0 "PASS" "$tw" run "$work/each_$type.tw" 'x=zeros:f32[65536]' --device=interp --check
    expect 12 "FAIL" "$tw" run "$work/each_$type.tw" 'x=zeros:f32[65536]' --device=null --check
done
# nothing to compare is no mistake
expect 0 "PASS" "$tw" run "$add" 'a=zeros:f32[0]' 'b=zeros:f32[0]' --check --tune=never
for shape in '[0,5]' '[3,0]'; do
    expect 0 "PASS" "$tw" run "$root/kernels/softmax.tw" "x=zeros:f32$shape" --check --tune=never
done
expect 0 "nothing was measured: the grid is empty" \
    "$tw" tune "$root/kernels/softmax.tw" 'x=zeros:f32[0,5]' --device=cpu:1 --budget=1s

# stdout cannot be written
expect_full() {
    "$@" >/dev/full 2>"$work/err"
    local code=$?
    [ $code -eq 7 ] && grep -q "No space" "$work/err" || complain "a full disk ($code): $*"
}
expect_full "$tw" help run
expect_full "$tw" run "${arguments[@]}"
expect_full "$tw" run "${arguments[@]}" --json
# nobody reads: no message, no signal
"$tw" help run 2>"$work/err" | true
codes=("${PIPESTATUS[@]}")
[ "${codes[0]}" -eq 0 ] && [ ! -s "$work/err" ] || complain "a closed pipe: ${codes[0]}"

# a terminal: colours, unless NO_COLOR
if script --version >/dev/null 2>&1; then
    TERM=xterm script -qec "$tw help run" /dev/null >"$work/out" </dev/null
    grep -q $'\e\[1m' "$work/out" || complain "no colours on a terminal"
    TERM=xterm NO_COLOR=1 script -qec "$tw help run" /dev/null >"$work/out" </dev/null
    grep -q $'\e' "$work/out" && complain "colours in spite of NO_COLOR"
fi
# what a kernel prints: on stdout, or beside JSON on stderr; once, though the run is checked and tuned
cat >"$work/said.tw" <<'END'
kernel said(x: f32[N], out y: f32[N]) tune BLOCK in {16, 32} grid (cdiv(N, 64)) {
    print("first", max(load(x[0 :+ 64]), 0) < 8.0);
    store(y[0 :+ 64], load(x[0 :+ 64]));
}
END
for device in interp cpu:1; do
    expect 0 "first ($work/said.tw:2), program 0, 0, 0: i1 1" \
        "$tw" run "$work/said.tw" 'x=rand:f32[64]' --device=$device --check
    [ "$(grep -c "^first" "$work/out")" = 1 ] || complain "$device prints more than once"
    expect 0 "" "$tw" run "$work/said.tw" 'x=rand:f32[64]' --device=$device --json
    grep -q "^first" "$work/err" || complain "$device: prints are not beside JSON"
    json "$work/out" 'd["kernel"] == "said"'
    expect 0 "" "$tw" bench "$work/said.tw" 'x=rand:f32[64]' --device=$device --repeat=3
    ! grep -q "^first" "$work/out" "$work/err" || complain "bench prints"
done

# checked mode: the message has line, values and program; compile shows the asserts, pages know the option
cat >"$work/far.tw" <<'END'
kernel far(x: f32[M, N], out y: f32[N], n: i32) tune BLOCK in {8, 4} grid (1) {
    store(y[0 :+ BLOCK], load(x[n, 0 :+ BLOCK]));
}
END
far=("$work/far.tw" 'x=rand:f32[3,8]')
for device in interp cpu:1; do
    expect 0 "" "$tw" run "${far[@]}" n=3 --device=$device --tune=never
    expect 11 "index 3 of dimension 0 of 'x' is outside of its extent of 3 ($work/far.tw:2), in program 0, 0, 0" \
        "$tw" run "${far[@]}" n=3 --device=$device --checked
    expect 0 "PASS" "$tw" run "${far[@]}" n=2 --device=$device --checked --check
    expect 11 "outside" "$tw" bench "${far[@]}" n=3 --device=$device --checked --repeat=3
done
expect 11 "outside" "$tw" tune "${far[@]}" n=3 --device=cpu:1 --checked --budget=100ms
expect 0 "is outside of its extent" "$tw" compile "$work/far.tw" --checked --emit=tir
expect 2 "checked" "$tw" cache list --checked
finish
