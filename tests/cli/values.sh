#!/usr/bin/env bash
# What NAME=VALUE may say.
source tests/support/cli_test.bash
cat >"$work/copy.tw" <<'END'
kernel copy[T: float](x: T[M, N], out y: T[M, N])
tune BLOCK in {16}
grid (cdiv(M, BLOCK))
{
    let at = program_id(0) * BLOCK;
    for n in range(0, N, 16) store(y[at :+ BLOCK, n :+ 16], load(x[at :+ BLOCK, n :+ 16]));
}
END
cat >"$work/scale.tw" <<'END'
kernel scale(inout x: f32[N], by: f32 = 2.0)
grid (cdiv(N, 64))
{
    let at = program_id(0) * 64;
    store(x[at :+ 64], load(x[at :+ 64]) * by);
}
END
copy() {
    "$tw" run "$work/copy.tw" --device="$device" --tune=never "$@"
}
scale() {
    "$tw" run "$work/scale.tw" --device="$device" --tune=never "$@"
}

# files of each version, in both orders
for version in 1 2 3; do
    npy "$work/x.npy" '<f4' '(3, 5)' 'i * 1.5' version=$version
    expect 0 '' copy x="$work/x.npy" y="$work/y.npy"
    same "$work/y.npy" '(3, 5)' 'i * 1.5'
done
npy "$work/x.npy" '<f4' '(3, 5)' 'i' fortran=True
expect 0 '' copy x="$work/x.npy" y="$work/y.npy" --check
same "$work/y.npy" '(3, 5)' 'i // 5 + i % 5 * 3'
npy "$work/x.npy" '<f4' '(0, 5)' 'i'
expect 0 '' copy x="$work/x.npy" y="$work/y.npy"
same "$work/y.npy" '(0, 5)' '0'

# specifications
expect 0 '' copy 'x=full:inf:f32[2,3]' y="$work/y.npy"
same "$work/y.npy" '(2, 3)' 'inf'
expect 0 '' copy 'x=full:nan:f32[2,3]' y="$work/y.npy"
same "$work/y.npy" '(2, 3)' 'nan'
expect 0 '' copy 'x=full:-1e-3:f32[1,1]' y="$work/y.npy"
same "$work/y.npy" '(1, 1)' '-1e-3'
expect 0 '' copy 'x=zeros:f32[2,2]' y="$work/y.npy"
same "$work/y.npy" '(2, 2)' '0'

# random numbers: by seed and name
expect 0 '' copy 'x=rand:f32[40,50]' y="$work/1.npy"
expect 0 '' copy 'x=rand:f32[40,50]' y="$work/2.npy" --seed=0
expect 0 '' copy 'x=rand:f32[40,50]' y="$work/3.npy" --seed=1
cmp -s "$work/1.npy" "$work/2.npy" || complain "the same seed gives other numbers"
cmp -s "$work/1.npy" "$work/3.npy" && complain "another seed gives the same numbers"
python3 - "$work/1.npy" 2>"$work/err" <<'END' || complain "they are not normal"
import math, struct, sys
x = struct.unpack("<2000f", open(sys.argv[1], "rb").read()[-8000:])
mean = sum(x) / 2000
deviation = math.sqrt(sum((a - mean) ** 2 for a in x) / 2000)
assert abs(mean) < 0.1 and 0.9 < deviation < 1.1 and 2.5 < max(map(abs, x)) < 6, (mean, deviation)
END

# numbers, and tensors that are read and written
npy "$work/x.npy" '<f4' '(100,)' 'i'
expect 0 '' scale x="$work/x.npy" --save=x="$work/y.npy"
same "$work/y.npy" '(100,)' '2 * i'
same "$work/x.npy" '(100,)' 'i'
expect 0 'PASS' scale x="$work/x.npy" by=-0.5 --save x="$work/y.npy" --check
same "$work/y.npy" '(100,)' '-0.5 * i'
expect 0 '' scale x=f32:"$work/x.npy" by=1e-3
expect 0 '' scale x="$work/x.npy" by=3 --save=x="$work/x.npy"
same "$work/x.npy" '(100,)' '3 * i'

# an output whose shape nothing else says
cat >"$work/ramp.tw" <<'END'
kernel ramp(out y: f32[N])
grid (cdiv(N, 64))
{
    let at = program_id(0) * 64;
    store(y[at :+ 64], cast(at + arange(64), f32));
}
END
ramp() {
    "$tw" run "$work/ramp.tw" --device="$device" --tune=never "$@"
}
expect 0 'PASS' ramp y=zeros:f32[100] --save=y="$work/y.npy" --check
same "$work/y.npy" '(100,)' 'i'
expect 4 "'N' of tensor 'y' is not known" ramp y="$work/y.npy"

# one program of the grid, and the name of the kernel
expect 0 '' "$tw" run "$work/scale.tw:scale" x="full:1:f32[130]" by=5 --save=x="$work/y.npy" \
    --device=interp --programs=1:1
same "$work/y.npy" '(130,)' '5 if 64 <= i < 128 else 1'
expect 4 "the grid has 3 programs" "$tw" run "$work/scale.tw" "x=full:1:f32[130]" --device=interp \
    --programs=3:1
expect 0 "" "$tw" run "$work/copy.tw" 'x=rand:f32[20,20]' --device=null --json
json "$work/out" 'd["device"] == "null"'
finish
