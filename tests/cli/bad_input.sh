#!/usr/bin/env bash
# Everything that can be wrong with what the command is given: a message that names it, and the exit
# code of its kind. Nothing is left behind.
source tests/support/cli_test.bash
add=$root/kernels/vector_add.tw
matmul=$root/kernels/matmul.tw
npy "$work/a.npy" '<f4' '(8,)' 'i'
run() {
    "$tw" run "$@" --device="$device" --tune=never
}
ab=("a=$work/a.npy" "b=$work/a.npy")

# ---- arrays
npy "$work/short.npy" '<f4' '(8,)' 'i' keep=0.9
npy "$work/stub.npy" '<f4' '(8,)' 'i' keep=0.2
npy "$work/big.npy" '>f4' '(8,)' 'i'
npy "$work/half.npy" '<f2' '(8,)' 'i'
npy "$work/double.npy" '<f8' '(8,)' 'i'
npy "$work/nine.npy" '<f4' '(9,)' 'i'
npy "$work/square.npy" '<f4' '(2, 4)' 'i'
echo 'this is text' >"$work/text.npy"
expect 7 "none.npy: No such file" run "$add" a="$work/none.npy" b="$work/a.npy"
expect 7 "short.npy: truncated" run "$add" a="$work/short.npy" b="$work/a.npy"
expect 7 "stub.npy: truncated" run "$add" a="$work/stub.npy" b="$work/a.npy"
expect 7 "not a .npy file" run "$add" a="$work/text.npy" b="$work/a.npy"
expect 7 "directory" run "$add" a="$work" b="$work/a.npy"
expect 6 "big-endian" run "$add" a="$work/big.npy" b="$work/a.npy"
expect 4 "f16" run "$add" a="$work/half.npy" b="$work/a.npy"
expect 4 "bf16" run "$add" a="bf16:$work/half.npy" b="$work/a.npy"
expect 4 "holds f32, not bf16" run "$add" a="bf16:$work/a.npy" b="$work/a.npy"
expect 4 "holds f64, not f32" run "$add" a="f32:$work/double.npy" b="$work/a.npy"
expect 4 "'a'" run "$add" a="$work/double.npy" b="$work/a.npy"
expect 4 "'N' is 8 from dimension 0 of 'a', but 9" run "$add" a="$work/a.npy" b="$work/nine.npy"
expect 4 "'a'" run "$add" a="$work/square.npy" b="$work/a.npy"
expect 4 "'b' is missing" run "$add" a="$work/a.npy"

# ---- specifications
expect 4 "not a dtype" run "$add" 'a=rand:f33[8]' b="$work/a.npy"
expect 4 "not a shape" run "$add" 'a=rand:f32[8' b="$work/a.npy"
expect 4 "not a shape" run "$add" 'a=rand:f32[-8]' b="$work/a.npy"
expect 4 "not a shape" run "$add" 'a=rand:f32[]' b="$work/a.npy"
expect 4 "a shape is missing" run "$add" 'a=rand:f32' b="$work/a.npy"
expect 4 "gives floats" run "$add" 'a=rand:i32[8]' b="$work/a.npy"
expect 4 "not a value of type i32" run "$add" 'a=full:1.5:i32[8]' b="$work/a.npy"
expect 4 "'1e999' is not a value of type f32" run "$add" 'a=full:1e999:f32[8]' b="$work/a.npy"
expect 4 "'7e4' is not a value of type f16" run "$add" 'a=full:7e4:f16[8]' b="$work/a.npy"
expect 10 "more than there is" run "$add" 'a=rand:f32[1000000,1000000]' b="$work/a.npy"
expect 5 "beyond what can be addressed" run "$add" \
    'a=rand:f32[9000000000000000000,9000000000000000000]' b="$work/a.npy"

# ---- arguments
expect 4 "no parameter 'd'" run "$add" "${ab[@]}" d=1
expect 2 "'a' is given twice" run "$add" "${ab[@]}" a="$work/a.npy"
expect 2 "NAME=VALUE was expected" run "$add" "${ab[@]}" c
expect 2 "is a tune parameter" run "$add" "${ab[@]}" BLOCK=64
expect 4 "'N' is 8 from dimension 0 of 'a', but 9 from" run "$add" "${ab[@]}" c=zeros:f32[9]
expect 4 "'wide'" run "$root/kernels/attention_fwd.tw" q=zeros:f32[1,1,8,8] k=zeros:f32[1,1,8,8] \
    v=zeros:f32[1,1,8,8] scale=wide
expect 4 "H % HK == 0" run "$root/kernels/attention_fwd.tw" q=zeros:f32[1,3,8,8] k=zeros:f32[1,2,8,8] \
    v=zeros:f32[1,2,8,8]
expect 4 "STAGES" run "$add" "${ab[@]}" --config=STAGES=3
expect 4 "threads" "$tw" run "$add" "${ab[@]}" --device=cpu --config=num_stages=3
expect 4 "'BLOCK'" run "$add" "${ab[@]}" --config=BLOCK=many

# ---- outputs
expect 7 "cannot be written" run "$add" "${ab[@]}" c=/dev/null/c.npy
expect 7 "cannot be written" run "$add" "${ab[@]}" c="$work"
expect 7 "No space" run "$add" "${ab[@]}" c=/dev/full
for name in 'empty:f32[8]' c.txt npy f32:c c.npy.txt; do # slips, of which no file should come
    expect 4 "names a .npy file, not '$work/$name'" run "$add" "${ab[@]}" c="$work/$name"
    expect 4 "names a .npy file, not '$work/$name'" run "$add" "${ab[@]}" --save=c="$work/$name"
    [ ! -e "$work/$name" ] || complain "$name was written"
done
mkfifo "$work/pipe"
timeout 1 "$tw" run "$add" "${ab[@]}" c="$work/pipe" --device="$device" --tune=never >"$work/out" 2>&1
[ $? -eq 124 ] || complain "nobody reads a pipe, and the command does not wait or cannot be ended"
cat "$work/pipe" >"$work/piped.npy" &
expect 0 "" run "$add" "${ab[@]}" c="$work/pipe"
wait
same "$work/piped.npy" '(8,)' '2 * i'
expect 2 "not an output" run "$add" "${ab[@]}" --save=a="$work/x.npy"
echo old >"$work/kept.npy"
expect 4 "" run "$add" a="$work/a.npy" b="$work/nine.npy" c="$work/kept.npy"
[ "$(cat "$work/kept.npy")" = old ] || complain "a failed run changed its output file"

# ---- kernels
expect 7 "No such file" run "$work/none.tw" "${ab[@]}"
expect 4 "vector_add" run "$add:vector_sub" "${ab[@]}"
expect 7 "not a regular file" timeout 20 "$tw" run "$work/pipe" "${ab[@]}"
expect 3 "" run "$work/a.npy" "${ab[@]}"
: >"$work/empty.tw"
expect 4 "" run "$work/empty.tw"
head -c 300 "$matmul" >"$work/cut.tw"
expect 3 "cut.tw:" run "$work/cut.tw"
cat "$add" "$matmul" >"$work/two.tw"
expect 4 "matmul" run "$work/two.tw" "${ab[@]}"
expect 0 "" run "$work/two.tw:vector_add" "${ab[@]}"
cat >"$work/shapes.tw" <<'END'
kernel shapes(x: f32[M, N], out y: f32[M])
grid (1)
{
    let a = load(x[0 :+ 16, 0 :+ 32]);
    store(y[0 :+ 16], sum(dot(a, a), 1));
}
END
expect 3 "shapes.tw:5:" run "$work/shapes.tw" 'x=zeros:f32[16,32]'
grep -q '\^' "$work/err" || complain "no caret under the mistake"
cat >"$work/large.tw" <<'END'
kernel large(out y: f32[N])
tune BLOCK in {1048576}
grid (1)
{
    store(y[0 :+ BLOCK], sum(zeros(f32[BLOCK, 4096]), 1));
}
END
sed 's/out y: f32\[N\]/x: f32[N], out y: f32[N]/' "$work/large.tw" >"$work/large2.tw"
expect 5 "large2.tw:5:" run "$work/large2.tw" 'x=zeros:f32[16]'
cat >"$work/assert.tw" <<'END'
kernel asserts(x: f32[N], out y: f32[N])
grid (cdiv(N, 16))
{
    let at = program_id(0) * 16;
    assert(at < 32, "too far");
    store(y[at :+ 16], load(x[at :+ 16]));
}
END
expect 0 "" run "$work/assert.tw" 'x=zeros:f32[32]'
expect 11 "too far" run "$work/assert.tw" 'x=zeros:f32[33]' y="$work/never.npy"
grep -q "assert.tw:5" "$work/err" || complain "the assert's line is not named"
[ ! -e "$work/never.npy" ] || complain "a failed run wrote its output"
expect 3 "" "$tw" compile "$work/shapes.tw" --target=cpu
expect 4 "" "$tw" compile "$add" --set=T=f99 --target=cpu
expect 4 "" "$tw" compile "$add" --set=T=f32 --emit=fortran --target=cpu
expect 4 "" "$tw" compile "$add" --set=T=f32 --target=abacus
expect 7 "cannot be written" "$tw" compile "$add" --set=T=f32 --emit=tir -o /dev/null/x
expect 7 "No space" "$tw" compile "$add" --set=T=f32 --emit=tir -o /dev/full
printf 'kernel @broken(' >"$work/broken.tir"
expect 3 "broken.tir:1:" "$tw" compile "$work/broken.tir" --target=cpu
cat >"$work/lie.tir" <<'END'
kernel @lie<N>(in %x : view<f32, 1>[N], out %y : view<f32, 1>[N], %at : i32, dim %n : i32 = N) {
    %t = load %x, %at extent=[64] inside=1 : f32[64]
    store %y, %at, %t extent=[64] inside=1
    return
}
launch () {
    %one = const.i 1 : i64
    return %one, %one, %one, %at
}
END
expect 0 "" run "$work/lie.tir" 'x=full:1:f32[10]' at=1000000000 y="$work/y.npy"
same "$work/y.npy" '(10,)' 0
expect 0 "" run "$work/lie.tir" 'x=full:1:f32[10]' at=-60 y="$work/y.npy"
same "$work/y.npy" '(10,)' '1 if i < 4 else 0'

# ---- devices
expect 8 "abacus" "$tw" run "$add" "${ab[@]}" --device=abacus
expect 4 "abacus" "$tw" run "$add" "${ab[@]}" --device=cpu --target=abacus

# ---- memory (a sanitizer wants terabytes of addresses)
if ! grep -q '^TW_SANITIZE:STRING=.' "$TW_BUILD/CMakeCache.txt"; then
    expect 10 "'a' needs 1.49 GiB" bash -c "ulimit -v 1500000; exec '$tw' run '$add' \
        a=zeros:f32[400000000] b=zeros:f32[400000000] --device=interp --tune=never"
fi

# ---- the same as JSON
expect 3 "" run "$work/shapes.tw" 'x=zeros:f32[16,32]' --json
json "$work/out" 'd["error"]["status"] == "E_SOURCE" and d["error"]["diagnostics"][0]["line"] == 5'
expect 7 "" run "$add" a="$work/none.npy" b="$work/a.npy" --json
json "$work/out" 'd["error"]["status"] == "E_IO" and "none.npy" in d["error"]["text"]'

leftover=$(find "$work" -name '*.npy.*')
[ -z "$leftover" ] || complain "left behind: $leftover"
finish
