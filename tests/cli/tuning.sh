#!/usr/bin/env bash
# Tuning: what the store knows afterwards, stopping it, and the verbs that look into the store.
source tests/support/cli_test.bash
softmax=$root/kernels/softmax.tw
problem=("$softmax" 'x=rand:f32[500,300]')

# a miss tunes within the budget, the next process finds the result and the code
expect 0 "" "$tw" run "${problem[@]}" y="$work/1.npy" --device=cpu --budget=1s --json
json "$work/out" 'd["layer"] in ("tuned", "exact")'
expect 0 "" "$tw" run "${problem[@]}" y="$work/2.npy" --device=cpu --json
json "$work/out" 'd["layer"] == "exact" and d["artifact_stored"] and d["compile_s"] == 0'
cmp -s "$work/1.npy" "$work/2.npy" || complain "the stored code computes something else"
expect 0 "this problem, this device" "$tw" bench "${problem[@]}" --device=cpu --repeat=5
# a problem near it is answered from there, one far away and frozen is not tuned
expect 0 "" "$tw" run "$softmax" 'x=rand:f32[500,900]' --device=cpu --tune=never --json
json "$work/out" 'd["layer"] == "nearest-problem"'
expect 0 "" "$tw" run "${problem[@]}" --device=cpu --config=BLOCK_M=4 --json
json "$work/out" 'd["layer"] == "pinned" and d["config"].startswith("BLOCK_M=4,")'

# tune: already there, again, restricted
expect 0 "the store had it already" "$tw" tune "${problem[@]}" --device=cpu --budget=1s
expect 0 "winner" "$tw" tune "${problem[@]}" --device=cpu --budget=1s --again
expect 0 "" "$tw" tune "$softmax" 'x=rand:f32[64,64]' --device=cpu --budget=1s --config=BLOCK_M=8 --json
json "$work/out" 'all(t["config"].startswith("BLOCK_M=8,") for t in d["trials"] if t["state"] == "ok")'
expect 0 "" "$tw" tune "$softmax" 'x=rand:f32[99,99]' --device=cpu --budget=1s --flops='5*M*N' --json
json "$work/out" 'd["flops_per_s"] * d["winner"]["median_s"] > 49000 and d["compiled"] >= 1'

# what the environment says where options do not
fresh=("$softmax" 'x=rand:f32[70,90]' --device=cpu:1 --store=none)
expect 0 "" env TILEWRIGHT_TUNE=never "$tw" run "${fresh[@]}" --json
json "$work/out" 'd["layer"] in ("seed", "default")'
expect 0 "" env TILEWRIGHT_TUNE=never "$tw" run "${fresh[@]}" --tune=on-miss --budget=300ms --json
json "$work/out" 'd["layer"] == "tuned"'
expect 0 "" env TILEWRIGHT_BUDGET=0.05 "$tw" tune "${fresh[@]}" --json
json "$work/out" 'any(t["state"] == "skipped" for t in d["trials"])'
expect 4 "TILEWRIGHT_BUDGET is '5s'" env TILEWRIGHT_BUDGET=5s "$tw" tune "${fresh[@]}"

# a forced code path is tuned and found on its own
expect 0 "" "$tw" run "${problem[@]}" --device=cpu --target=cpu-generic --budget=1s --json
json "$work/out" 'd["target"] == "cpu-generic" and d["layer"] in ("tuned", "exact")'
expect 0 "cpu-generic" "$tw" cache list

# cache
expect 0 "" "$tw" cache list --json
cp "$work/out" "$work/list"
json "$work/list" 'len(d) >= 3 and all(r["kernel"] == "softmax" and r["trials"] > 0 for r in d)'
id=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[0]["id"])' "$work/list")
expect 0 "ok" "$tw" cache show "$id"
expect 0 "" "$tw" cache show "$id" --json
json "$work/out" 'any(t["state"] == "ok" and t["median_s"] > 0 for t in d)'
expect 4 "nothing is stored under id 999999" "$tw" cache show 999999
expect 0 "0 configurations forgotten" "$tw" cache clear matmul
expect 0 "forgotten" "$tw" cache clear softmax
expect 0 "nothing is stored" "$tw" cache list

# ctrl-C: the code says so, and what is faster than the default so far is kept. One thread, so that no machine is done with
# all configurations before it is stopped.
attention=$root/kernels/attention_fwd.tw
stopped() {
    local verb=$1 size=$2
    shift 2
    # --foreground: else timeout signals twice, and the second ends the process
    timeout --foreground --preserve-status -s INT 4 "$tw" "$verb" "$attention" {q,k,v}="rand:f32[1,4,$size,64]" \
        --device=cpu:1 --budget=20s "$@"
}
expect 13 "tuning was stopped; " stopped tune 2048
expect 13 "" stopped tune 2048 --again --json
# on a loaded machine it may be stopped before the first one was measured
json "$work/out" 'd["cancelled"] and ("winner" not in d or d["winner"]["median_s"] > 0)'
python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); sys.exit(d.get("winner") != d.get("default"))' \
    "$work/out" || expect 0 "attention_fwd" "$tw" cache list
expect 13 "tuning was stopped" stopped run 4096 o="$work/none.npy"
[ ! -e "$work/none.npy" ] || complain "a stopped run wrote its output"

# killed: what was stored is still there
expect 0 "stored" "$tw" tune "$softmax" 'x=rand:f32[300,200]' --device=cpu --budget=1s
timeout --foreground -s KILL 2 "$tw" tune "$attention" {q,k,v}=rand:f32[1,4,1024,64] --budget=60s \
    --device=cpu:1 >"$work/out" 2>&1
expect 0 "the store had it already" "$tw" tune "$softmax" 'x=rand:f32[300,200]' --device=cpu
finish
