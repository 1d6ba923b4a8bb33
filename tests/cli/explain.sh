# explain: what a kernel became, on targets that are not there.
source tests/support/cli_test.bash
tw=$TILEWRIGHT
set=T=bf16,D=64,DV=64,CAUSAL=true,BLOCK_M=128,BLOCK_N=64,num_warps=4,num_stages=2

expect 2 "give one kernel" "$tw" explain
expect 4 "no target 'sm_1'" "$tw" explain kernels/attention_fwd.tw --target=sm_1 --set=$set
expect 4 "cpu-generic, sm_120" "$tw" compile kernels/attention_fwd.tw --target=cpu-avx --set=$set
expect 4 "such a GPU runs code of target 'sm_100'" "$tw" explain kernels/attention_fwd.tw --target=sm_103 --set=$set
expect 4 "value 'T'" "$tw" explain kernels/attention_fwd.tw --target=sm_89
expect 0 "attention_fwd for sm_89" "$tw" explain kernels/attention_fwd.tw --target=sm_89 --set=$set
for text in "128 threads, 4 warps; 49152 bytes" "a multiprocessor" "#mma = mma(" "accesses are checked" \
    "all accesses proven inside"; do
    grep -qF -- "$text" "$work/out" || complain "explain lacks: $text"
done

# Counts by hand: S is 128 x 64 x 64 and a warp has 32 rows of it, in mma of 16 x 8 x 16.
expect 0 "" "$tw" explain kernels/attention_fwd.tw --target=sm_89 --set=$set --json
json "$work/out" 'd["threads"] == 128 and d["shared_bytes"] == 49152 and d["blocks_per_multiprocessor"] >= 1'
json "$work/out" 'any(l["checked_accesses"] == 0 for l in d["loops"])'
json "$work/out" 'any(l["checked_accesses"] > 0 for l in d["loops"])'
json "$work/out" 'max(l.get("instructions", {}).get("mma", 0) for l in d["lines"] if "dot(tq" in l["text"]) == 64'
json "$work/out" 'max(l.get("instructions", {}).get("ex2", 0) for l in d["lines"] if "exp2(s" in l["text"]) == 64'
json "$work/out" 'sum(l.get("instructions", {}).get("cp.async", 0) for l in d["lines"]) > 0'
json "$work/out" 'any(t["name"] == "p" and t["type"].endswith("#mma") for t in d["tiles"])'

# A smaller GPU has room for fewer blocks.
printf 'name = x\ncapability = 89\nmultiprocessors = 4\nshared_per_block = 58900\nshared_per_multiprocessor = 60000\n' >"$work/small.profile"
expect 0 "1 block a multiprocessor, 4 of 48 warps; limited by shared memory" "$tw" explain kernels/attention_fwd.tw --target=sm_89 --set=$set \
    --profile="$work/small.profile"

# A profile says which code path; the configuration is told.
expect 0 "attention_fwd for sm_89, NVIDIA GeForce RTX 4080" "$tw" explain kernels/attention_fwd.tw --profile=rtx4080 --set=$set
grep -qF "configuration  BLOCK_M=128,BLOCK_N=64,num_warps=4,num_stages=2" "$work/out" || complain "no configuration"
printf 'name = next\ncapability = 123\nmultiprocessors = 4\n' >"$work/next.profile"
expect 0 "matmul for sm_120, next" "$tw" explain kernels/matmul.tw --profile="$work/next.profile" --set=T=f16
expect 0 ".target sm_86" "$tw" compile kernels/matmul.tw --profile=rtx3090 --set=T=f16 --emit=ptx
expect 4 "takes no profile" "$tw" explain kernels/matmul.tw --target=cpu --profile=h100 --set=T=f16
expect 0 "" "$tw" explain kernels/matmul.tw --set=T=f16 --profile=h100 --json
json "$work/out" 'd["target"] == "sm_90" and "H100" in d["gpu"] and d["configuration"].startswith("BLOCK_M=")'

# What fits, as a launch takes it; what is pinned stays.
expect 0 "configuration  BLOCK_M=64,BLOCK_N=32," "$tw" explain kernels/attention_fwd.tw --profile=rtx4080 --set=T=bf16,D=192,DV=192
expect 5 "needs 122880 bytes of shared memory" "$tw" explain kernels/attention_fwd.tw --profile=rtx4080 \
    --set=T=bf16,D=192,DV=192,BLOCK_N=64
expect 4 "NVIDIA GeForce RTX 4080, of capability 8.9, cannot run code of target 'sm_120'" "$tw" explain \
    kernels/matmul.tw --profile=rtx4080 --target=sm_120 --set=T=f16

# Extents that the matrix unit does not take: what became of them.
expect 0 "D  40  padded to 48" "$tw" explain kernels/attention_fwd.tw --target=sm_89 --set=T=bf16,D=40,DV=64
line=$(grep -n 'load(x\[' kernels/attention_fwd.tw | cut -d: -f1)
expect 0 "N  24  not padded: a slice takes a part of a dimension (line $line)" "$tw" explain kernels/attention_fwd.tw --target=sm_89 \
    --set=T=bf16,D=40,DV=64,BLOCK_N=24
expect 0 "" "$tw" explain kernels/attention_fwd.tw --target=sm_89 --set=T=bf16,D=40,DV=100 --json
json "$work/out" '[(x["name"], x["from"], x["to"], x["why"]) for x in d["dims"]] == [("D", 40, 48, ""), ("DV", 100, 112, "")]'
expect 0 "" "$tw" explain kernels/attention_fwd.tw --target=sm_89 --set=$set --json
json "$work/out" 'd["dims"] == []'

# Other targets: lines and loops.
line=$(grep -n 'for k0' kernels/matmul.tw | cut -d: -f1)
expect 0 "loop 1, line $line: 2 accesses are checked" "$tw" explain kernels/matmul.tw --set=T=f32
expect 0 "all accesses proven inside" "$tw" explain kernels/attention_fwd.tw \
    --set=T=f32,D=64,DV=64,CAUSAL=true
expect 0 "" "$tw" explain kernels/matmul.tw --set=T=f32 --json --target=interp
json "$work/out" 'any("dot" in l["ops"] and l["loop"] == 1 for l in d["lines"]) and "threads" not in d'
finish
