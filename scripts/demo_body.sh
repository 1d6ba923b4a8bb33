#!/usr/bin/env bash
# What scripts/demo.sh shows after the build; usage: demo_body.sh [BUILD]. Every number is measured
# now, with a store of its own that is emptied first. At most 30 lines.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
build=${1:-build}
tilewright=$build/bin/tilewright
demo=$build/bin/demo
kernel=kernels/attention_fwd.tw
folder=$build/demo
store=$folder/store.db
failed=0

bold= dim= red= off=
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
    bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' off=$'\e[0m'
fi
heading() {
    echo "$bold$1$off${2:+  $dim$2$off}"
}
fail() {
    printf '%s   FAIL: %s%s\n' "$red" "$1" "$off"
    failed=1
}

rm -rf "$folder" && mkdir -p "$folder" || exit 1

heading "1 Text becomes machine code" "$kernel: FlashAttention-2, causal, f32, D 64"
"$demo" stages "$kernel" || fail "it does not compile"

heading "2 Is it right?" "worst error against float64, and that of the naive formula in f32"
"$demo" correct "$kernel" examples/data || fail "results are wrong"

heading "3 A mistake" "trans() is left out of q k^T"
sed 's/trans(\(load(k\[.*\])\))/\1/' "$kernel" >"$folder/mistake.tw"
"$tilewright" compile "$folder/mistake.tw" --set=T=f32,D=128,DV=128 -o "$folder/none" \
    2>&1 >/dev/null | head -n 4
[ "${PIPESTATUS[0]}" -eq 3 ] || fail "the mistake was not found"

heading "4 Tuning for 5 seconds" "4 heads, 1024 x 1024, D 64"
problem='f32[1,4,1024,64]'
if "$tilewright" tune "$kernel" "q=rand:$problem" "k=rand:$problem" "v=rand:$problem" --json \
    --store="$store" --budget=5s --flops='4*B*H*M*N*D' >"$folder/tune.json"; then
    "$demo" loop >"$folder/loop.txt"
    python3 - "$folder/tune.json" "$folder/loop.txt" "$folder/config.txt" <<'END'
import json, sys
tune = json.load(open(sys.argv[1]))
loop = float(open(sys.argv[2]).read().split()[0])
best = tune["winner"]
open(sys.argv[3], "w").write(best["config"])
ran = sum(trial["median_s"] > 0 for trial in tune["trials"])
print(f"   {ran} of {len(tune['trials'])} configurations measured in {tune['elapsed_s']:.1f} s;"
      f" the fastest is {best['config']}")
print(f"   {tune['flops_per_s'] / 1e9:.0f} Gflop/s: {tune['gain']:.2f} x the default,"
      f" {loop / best['median_s']:.0f} x a plain C loop (gcc -O2, one thread)")
END
    heading "5 A new process"
    read -r ms hash stored layer < <("$demo" launch "$kernel" "$store" "" "$(date +%s.%N)")
    config=$(cat "$folder/config.txt")
    read -r _ anew _ < <("$demo" launch "$kernel" "" "$config" "$(date +%s.%N)")
    [ "$hash" = "$anew" ] && same=yes || same=NO
    [ "$stored" = 1 ] && code="from the store" || code="compiled again"
    echo "   configuration: $layer; code: $code"
    echo "   first launch done $ms ms after the process began; the same bits as compiled anew: $same"
    [ "$same" = yes ] || fail "the results differ"
    [ "$stored" = 1 ] || fail "the code was not found in the store"
else
    fail "tuning did not succeed"
fi

heading "6 What next"
echo "   $tilewright help; $tilewright cache list --store=$store"
echo "   $kernel is the kernel; docs/LANGUAGE.md is its language; examples/attention.c calls it"
exit $failed
