# The command on a GPU, over a driver without one (tests/gpu/fake_cuda.c), whose kernels do nothing.
source tests/support/cli_test.bash
tw=$TILEWRIGHT
add=$work/add.tw
cat >"$add" <<'K'
kernel add(a: f32[N], inout b: f32[N])
grid (cdiv(N, 64))
{
    let n0 = program_id(0) * 64;
    store(b[n0 :+ 64], load(a[n0 :+ 64]) + load(b[n0 :+ 64]));
}
K
arguments=("$add" 'a=zeros:f32[1000]' 'b=full:3:f32[1000]')

expect 0 "" "$tw" device
if ! ldconfig -p 2>/dev/null | grep -q libcuda.so.1; then
    expect 8 "no CUDA driver on this machine" "$tw" device cuda
    expect 0 "none that can be used" "$tw" doctor --store=none
fi

mkdir "$work/driver"
ln -s "$(cd "$TW_BUILD" && pwd)/tests/libfake_cuda.so" "$work/driver/libcuda.so.1"
export LD_LIBRARY_PATH=$work/driver
for stored in false true; do # the code of one process serves the next
    expect 0 "\"artifact_stored\": $stored" "$tw" run "${arguments[@]}" --device=cuda --tune=never \
        --store="$work/warm.db" --json
done
expect 8 "the driver shows 2 GPUs" "$tw" device cuda:2
expect 4 "that is no number of a GPU" "$tw" device cuda:first
expect 0 "Fake GPU 0" "$tw" device
grep -q "Fake GPU 1" "$work/out" || complain "device shows the first GPU only"
expect 0 "at most 163" "$tw" device cuda:0
expect 0 "" "$tw" device cuda:1 --json
json "$work/out" 'd[0]["capability"] == 89 and d[0]["driver"].startswith("13.0")'
expect 0 "Fake GPU 0, capability 9.0" "$tw" doctor --store=none
expect 6 "the code path that it has is 'sm_90'" "$tw" run "${arguments[@]}" --device=cuda --target=sm_120
expect 4 "are for device 'interp'" "$tw" run "${arguments[@]}" --device=cuda --tune=never --f64
"$tw" run "${arguments[@]}" --device=cuda --tune=never >"$work/out" 2>&1
if [ $? -ne 6 ]; then # 6: this build has no schedules for GPUs
    # 0 + 3 is 3: right, although the kernel did not run; and what came back is what was sent
    expect 0 "PASS" "$tw" run "${arguments[@]}" --device=cuda:1 --tune=never --check \
        --save=b="$work/b.npy"
    expect 12 "FAIL" "$tw" run "$add" 'a=full:1:f32[1000]' 'b=full:3:f32[1000]' --device=cuda \
        --tune=never --check
    expect 0 "500 us" "$tw" bench "${arguments[@]}" --device=cuda --tune=never --repeat=3
fi

# A head of 40 is padded to 48, which is not the caller's mistake: on the GPU in software
software=$(cd "$TW_BUILD" && pwd)/tests/software_gpu
expect 0 "PASS" env LD_LIBRARY_PATH="$software" "$tw" run kernels/attention_fwd.tw --device=cuda --tune=never --store=none \
    'q=rand:f16[1,1,20,40]' 'k=rand:f16[1,1,70,40]' 'v=rand:f16[1,1,70,12]' CAUSAL=true --check --checked

# profiles
expect 7 "those that are built in: a100, h100" "$tw" compile "$add" --profile=rtx9090
expect 0 ".visible .entry add" "$tw" compile "$add" --target=sm_89 --emit=ptx --profile=rtx4080
expect 4 "takes no profile" "$tw" compile "$add" --profile=h100 --target=cpu
printf 'name = x\ncapability = 89\nmultiprocessors = 4\nshared_per_block = 8192\n' >"$work/small.profile"
expect 5 "has 8192" "$tw" compile kernels/matmul.tw --target=sm_89 --emit=ptx --set=T=f32 \
    --profile="$work/small.profile"
printf 'name = x\ncapability = 90\nmultiprocessors = 1\nl2 = 3\n' >"$work/bad.profile"
expect 7 "bad.profile:4: unknown key 'l2'" "$tw" compile "$add" --profile="$work/bad.profile"
finish
