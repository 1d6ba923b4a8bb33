#!/usr/bin/env bash
# Fuzzes for HOURS (0.5 will do) in all, the programs of tests/fuzz, one a core, or TARGET alone:
#     scripts/fuzz.sh HOURS [TARGET]
# With Clang and libFuzzer in build-fuzz, else with the mutations of tests/fuzz/driver.c in
# build-asan. What fails stays in build-fuzz/crashes, what is new in build-fuzz/corpus.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

usage() {
    echo "usage: scripts/fuzz.sh HOURS [TARGET]; targets: ${all[*]}"
    exit 2
}

all=()
for file in tests/fuzz/fuzz_*.c; do
    name=${file#tests/fuzz/fuzz_}
    all+=("${name%.c}")
done
[ $# -eq 1 ] || [ $# -eq 2 ] || usage
[[ $1 =~ ^[0-9]*\.?[0-9]+$ ]] || usage
targets=("${all[@]}")
if [ $# -eq 2 ]; then
    [[ " ${all[*]} " == *" $2 "* ]] || usage
    targets=("$2")
fi
jobs=$(nproc)
[ "$jobs" -le ${#targets[@]} ] || jobs=${#targets[@]}
seconds=$(awk -v h="$1" -v n=${#targets[@]} -v jobs="$jobs" \
    'BEGIN {s = int(h * 3600 * jobs / n); print s < 1 ? 1 : s}')

has_libfuzzer() {
    command -v clang >/dev/null &&
        echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n < 0; }' |
        clang -x c -fsanitize=fuzzer,address - -o /dev/null 2>/dev/null
}

if has_libfuzzer; then
    preset=fuzz build=build-fuzz
else
    preset=asan build=build-asan
fi
crashes=build-fuzz/crashes
mkdir -p "$crashes" build-fuzz/log
if ! { cmake --preset "$preset" && cmake --build "$build" -j "$(nproc)" --target fuzz; } \
    >build-fuzz/log/build.log 2>&1; then
    tail -n 40 build-fuzz/log/build.log
    exit 1
fi

# The last lines that say what was wrong, without what follows for machines.
complaint() {
    grep -m 3 -E 'ERROR: |runtime error|tests/fuzz/.*: ' "$1" || tail -n 3 "$1"
}

fuzz() {
    local name=$1 program=$build/tests/fuzz/fuzz_$1 log=build-fuzz/log/$1.log status input
    mkdir -p "build-fuzz/corpus/$name"
    "$program" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=4096 \
        -artifact_prefix="$crashes/$name-" "build-fuzz/corpus/$name" "tests/fuzz/corpus/$name" \
        >"$log" 2>&1
    status=$?
    if [ $status -eq 0 ]; then
        printf '    %-10s %s\n' "$name" "$(grep -o '[0-9]* runs in [0-9]* second' "$log")s"
        return 0
    fi
    printf '    %-10s FAILED (status %d); all of it: %s\n' "$name" $status "$log"
    complaint "$log" | sed 's/^/        /'
    input=$(ls -t "$crashes/$name-"* 2>/dev/null | head -n 1)
    echo "        again: $program ${input:-(the input was not kept)}"
    return 1
}

failed=0 running=0
for name in "${targets[@]}"; do
    if [ $running -ge "$jobs" ]; then
        wait -n || failed=1
        running=$((running - 1))
    fi
    fuzz "$name" &
    running=$((running + 1))
done
while [ $running -gt 0 ]; do
    wait -n || failed=1
    running=$((running - 1))
done
exit $failed
