#!/usr/bin/env bash
# Tile IR of level 2 from a file: the interpreter runs it and finds its races, the CPU refuses it.
source tests/support/cli_test.bash
cat >"$work/turn.sched" <<'END'
// y = x, through shared memory from one distribution to another
level 2 warps=4
#rows = blocked(regs=[1, 2], lanes=[1, 32], warps=[4, 1], order=[1, 0])
#columns = blocked(regs=[2, 1], lanes=[32, 1], warps=[1, 4], order=[0, 1])
#raw = shared(row=0)
kernel @turn<N>(in %x : view<f32, 2>[N, N], out %y : view<f32, 2>[N, N], dim %n : i32 = N) {
    %zero = const.i 0 : i32
    %all = alloc offset=0 : buf<f32, [1, 64, 64]> #raw
    %slot = buffer.slot %all, %zero : buf<f32, [1, 64, 64]> #raw
    %tile = load %x, %zero, %zero extent=[64, 64] inside=0 : f32[64, 64] #rows
    buffer.store %slot, %tile
    barrier id=0 warps=0
    %back = buffer.load %slot : f32[64, 64] #columns
    store %y, %zero, %zero, %back extent=[64, 64] inside=0
    return
}
launch () {
    %one = const.i 1 : i64
    return %one, %one, %one
}
END
grep -v barrier "$work/turn.sched" >"$work/race.sched"
sed 's/rows = blocked(regs=\[1, 2\]/rows = blocked(regs=[1, 3]/' "$work/turn.sched" >"$work/misfit.sched"

npy "$work/x.npy" '<f4' '(40, 40)' 'i % 97'
expect 0 '' "$tw" run "$work/turn.sched" --device=interp --tune=never x="$work/x.npy" y="$work/y.npy"
same "$work/y.npy" '(40, 40)' 'i % 97'
expect 3 'is missing' "$tw" run "$work/race.sched" --device=interp --tune=never \
    x="$work/x.npy" y="$work/y.npy"
expect 3 'the extents of the tile are multiples' "$tw" run "$work/misfit.sched" --device=interp \
    --tune=never x="$work/x.npy" y="$work/y.npy"
expect 6 'scheduled for a GPU' "$tw" run "$work/turn.sched" --device=cpu --tune=never \
    x="$work/x.npy" y="$work/y.npy"
finish
