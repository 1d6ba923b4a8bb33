#!/usr/bin/env bash
# Help, options, and command lines that make no sense (exit code 2).
source tests/support/cli_test.bash
add=$root/kernels/vector_add.tw

expect 0 "tilewright $(sed -n 's/.*TW_VERSION_MAJOR \([0-9]*\)/\1/p' include/tilewright.h)." "$tw" --version
expect 2 "Verbs" "$tw"
[ ! -s "$work/out" ] || complain "usage errors belong on stderr"
expect 0 "Verbs" "$tw" --help
expect 0 "exit-codes" "$tw" --help
for verb in run tune bench compile new cache device doctor help; do
    expect 0 "Examples" "$tw" help $verb
    cp "$work/out" "$work/help"
    expect 0 "Examples" "$tw" $verb --help
    cmp -s "$work/out" "$work/help" || complain "help $verb and $verb --help differ"
done
for topic in values environment exit-codes; do
    expect 0 "" "$tw" help $topic
    [ -s "$work/out" ] || complain "help $topic is empty"
done
# each variable that a configuration is read from
expect 0 "" "$tw" help environment
for name in $(grep -ohE 'set_or_null\("TILEWRIGHT_[A-Z]+' runtime/context.c | cut -d'"' -f2); do
    grep -qx "$name" "$work/out" || complain "help environment lacks $name"
done
# each status of the header is in the list of exit codes
expect 0 "" "$tw" help exit-codes
sed -n 's/^ *X(\([A-Z_]*\), \([0-9]*\), ".*/\2 \1/p' include/tilewright.h >"$work/codes"
[ "$(wc -l <"$work/codes")" -ge 14 ] || complain "statuses were not found in the header"
while read -r code name; do
    grep -qE "^ *$code +$name " "$work/out" || complain "exit code $code of $name is not listed"
done <"$work/codes"

expect 2 "did you mean 'tune'" "$tw" tuen
expect 2 "did you mean 'tune'" "$tw" tun
expect 2 "did you mean 'compile'" "$tw" comp
expect 2 "'frobnicate' is not a verb" "$tw" frobnicate
expect 2 "did you mean --store" "$tw" run "$add" --stroe=x
expect 2 "unknown option '--frobnicate'" "$tw" run "$add" --frobnicate=1
expect 2 "unknown option '-q'" "$tw" run "$add" -q
expect 2 "'run' takes no --emit" "$tw" run "$add" --emit=ll
expect 2 "--store needs a value" "$tw" run "$add" --store
expect 2 "--check takes no value" "$tw" run "$add" --check=yes
expect 2 "one of never|on-miss" "$tw" run "$add" --tune=always
expect 2 "one of never|on-miss" "$tw" run "$add" --tune=
expect 2 "--budget=soon" "$tw" run "$add" --budget=soon
expect 2 "--budget=0s" "$tw" run "$add" --budget=0s
expect 2 "--budget=5h" "$tw" run "$add" --budget=5h
expect 2 "--seed=-1" "$tw" run "$add" --seed=-1
expect 2 "--programs=3" "$tw" run "$add" --programs=3
expect 2 "--programs=0:0" "$tw" run "$add" --programs=0:0
expect 2 "--threads goes with" "$tw" run "$add" --device=interp --threads=2
expect 2 "a kernel is missing" "$tw" run
expect 2 "a kernel is missing" "$tw" compile
expect 2 "values go into --set" "$tw" compile "$add" T=f32
expect 2 "none of list, show, clear, export" "$tw" cache forget
expect 2 "one word too many" "$tw" cache list all
expect 2 "show needs an id" "$tw" cache show
expect 2 "export needs" "$tw" cache export
expect 2 "import needs" "$tw" cache import
expect 2 "--older=3" "$tw" cache prune --older=3
expect 2 "--max-size=big" "$tw" cache prune --max-size=big
expect 2 "there is no help on" "$tw" help frobnicate
expect 2 "Try: tilewright help bench" "$tw" bench

# the same as JSON, wherever --json stands
for line in "--frobnicate --json" "--json --frobnicate" "--json"; do
    expect 2 "Try: tilewright help run" "$tw" run $line
    json "$work/out" 'd["error"]["status"] == "USAGE" and d["error"]["text"]'
done
expect 2 "" "$tw" run -- "$add" --json
[ ! -s "$work/out" ] || complain "JSON was printed, though what follows -- is no option"

# values beside their options, and -- before words that look like options
expect 0 "PASS" "$tw" run --check --device interp --tune never "$add" 'a=rand:f32[9]' 'b=zeros:f32[9]'
expect 7 "./-x.tw" "$tw" run --store none -- ./-x.tw

# operations of a launch
for flops in '' 'N+' '(N' 'N)' 'M' '0' '2 N' '-N'; do
    expect 2 "--flops" "$tw" bench "$add" 'a=rand:f32[9]' 'b=zeros:f32[9]' --device=interp --flops="$flops"
done
expect 0 "" "$tw" bench "$add" 'a=rand:f32[9]' 'b=zeros:f32[9]' --device=interp --repeat=3 --json \
    --flops='2*(N + 1)/4 - 1' --tune=never
json "$work/out" 'abs(d["flops_per_s"] * d["median_s"] - 4) < 1e-4 and d["samples"] == 3'
json "$work/out" 'd["bytes"] == 108 and d["least_s"] <= d["median_s"]'
finish
