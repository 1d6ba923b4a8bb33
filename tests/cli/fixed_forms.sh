#!/usr/bin/env bash
# The command lines that others rely on, as they are written.
source tests/support/cli_test.bash
kernels=$root/kernels
cd "$work" && ln -s "$kernels" kernels || exit 1

npy q.npy '<f4' '(1, 2, 70, 64)' 'math.sin(i)'
npy k.npy '<f4' '(1, 1, 70, 64)' 'math.cos(3 * i)'
npy v.npy '<f4' '(1, 1, 70, 64)' '0.25'
expect 0 'o.npy' "$tw" run kernels/attention_fwd.tw q=q.npy k=k.npy v=v.npy o=o.npy lse=lse.npy \
    scale=0.125 CAUSAL=true --device=cpu --store=store.db --config=BLOCK_M=64,BLOCK_N=64
same o.npy '(1, 2, 70, 64)' 0.25 # the average of equal rows, whatever the weights
same lse.npy '(1, 2, 70)' \
    'math.log(sum(math.exp(0.125 * sum(math.sin(64 * i + d) * math.cos(3 * (64 * j + d)) for d in range(64))) for j in range(i % 70 + 1)))'

# the numbers of the form, except for its time and size
expect 0 '' "$tw" tune kernels/attention_fwd.tw q=rand:f32[1,4,256,128] k=rand:f32[1,4,256,128] \
    v=rand:f32[1,4,256,128] CAUSAL=false --budget=2s --json
json out 'd["layer"] == "tuned" and d["winner"]["state"] == "ok" and d["winner"]["median_s"] > 0'
json out 'd["winner"] in d["trials"] and d["default"] in d["trials"] and d["gain"] >= 1'

expect 0 '' "$tw" compile kernels/attention_fwd.tw \
    --set=T=f32,D=128,DV=128,CAUSAL=true,BLOCK_M=128,BLOCK_N=64 --target=cpu --emit=ll -o out.ll
grep -q '^define ' out.ll || complain "out.ll is not LLVM IR"
for emit in ast tir asm obj; do
    expect 0 '' "$tw" compile kernels/attention_fwd.tw \
        --set=T=f32,D=64,DV=64,CAUSAL=true,generic=true --target=cpu --emit=$emit -o out.$emit
    [ -s out.$emit ] || complain "--emit=$emit wrote nothing"
done
head -c 4 out.obj | grep -q ELF || complain "out.obj is not an object file"
# what is printed as tile IR is read as a kernel
expect 0 'define ' "$tw" compile out.tir --target=cpu --emit=ll

# for a GPU, without one
gpu=T=bf16,D=128,DV=128,CAUSAL=true,BLOCK_M=128,BLOCK_N=64,num_warps=8,num_stages=2
for emit in sched ll ptx; do
    expect 0 '' "$tw" compile kernels/attention_fwd.tw --target=sm_89 --emit=$emit --set=$gpu \
        -o gpu.$emit
done
expect 0 '.target sm_89' cat gpu.ptx
expect 0 '.target sm_120' "$tw" compile gpu.sched --target=sm_120 --emit=ptx
if command -v ptxas >/dev/null || [ -x /usr/local/cuda/bin/ptxas ]; then
    expect 0 '' "$tw" compile gpu.sched --target=sm_89 --emit=cubin -o gpu.cubin
    expect 0 ELF head -c 4 gpu.cubin
else
    expect 6 'a cubin needs' "$tw" compile gpu.sched --target=sm_89 --emit=cubin -o gpu.cubin
fi
expect 0 '' "$tw" compile kernels/attention_fwd.tw:attention_fwd --set=T=f32,D=64,DV=64 --emit=tir
finish
