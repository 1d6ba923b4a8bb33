#!/usr/bin/env bash
# On a machine with a GPU, in the root of the project or of what scripts/gpu_pack.sh packed:
#     tests/gpu/prove.sh [PATH...]
# cuda_proof, then the numeric tests, verify_cases and every table of verify_kernels on each code path (sm_80 and the device's
# own, ""; or cpu-amx and such: the CPU's), one process a core. Prints a line a path and what failed; all of it is
# left in $LOGS (build-portable/log). Exit code 0: nothing failed.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
programs=build-portable/tests/gpu
logs=${LOGS:-build-portable/log}
mkdir -p "$logs"
[ $# -gt 0 ] || set -- sm_80 ""
failed=0

# prove_cases PATH
prove_cases() {
    local name=${1:-own} start=$SECONDS
    local log=$logs/cases_$name.log
    rm -f "$log"_*.log
    TW_GPU_TARGET=$1 "$programs/verify_cases" >"$log" 2>&1 || failed=1
    ls "$programs"/on_gpu_* | TW_NUMERIC_DEVICE=cuda TW_NUMERIC_TARGET=$1 xargs -P "$(nproc)" -I TEST \
        sh -c 'TEST >"$0_$(basename TEST).log" 2>&1 || echo "WRONG: TEST" >>"$0"' "$log" || failed=1
    grep -qs ^WRONG "$log" && failed=1
    cat "$log"_*.log >>"$log"
    awk -v path="$name" -v s=$((SECONDS - start)) '
        /^[0-9]+%: Checks: / { checks += $3; wrong += $5 + $7 }
        END { printf "%-8s %d tests, %d failed; %d s\n", path, checks, wrong, s }' "$log"
    grep -E '^WRONG|skipped: no room|:[FE]:' "$log"
}

# prove_path PATH
prove_path() {
    local device=cuda name=${1:-own} start=$SECONDS log
    [[ $1 != cpu* ]] || device=cpu
    export TW_GPU_DEVICE=$device TW_GPU_TARGET=$1
    log=$logs/verify_$name.log
    TW_GPU_LIST=1 "$programs/verify_kernels" |
        xargs -P "$(nproc)" -I TABLE env CK_RUN_CASE=TABLE "$programs/verify_kernels" >"$log" 2>&1
    local status=$?
    awk -v path="$name" -v s=$((SECONDS - start)) -v status=$status '
        / cases, .* failed/ { for (i = 2; i < NF; i++) {
                                  if ($i == "cases,") cases += $(i - 1)
                                  if ($i == "failed,") wrong += $(i - 1) } }
        END { printf "%-8s %d cases, %d failed%s; %d s\n", path, cases, wrong,
                     status ? ", and a table did not end well" : "", s }' "$log"
    [ $status -eq 0 ] || { failed=1; grep -E ':[FE]:' "$log" | head -n 5; }
}

if [ -x "$programs/cuda_proof" ] && [[ $1 != cpu* ]]; then
    "$programs/cuda_proof" >"$logs/cuda_proof.log" 2>&1 || failed=1
    echo "driver   $(grep -c '^ok' "$logs/cuda_proof.log") as promised, $(grep -c '^WRONG' "$logs/cuda_proof.log") not"
    grep '^WRONG' "$logs/cuda_proof.log"
fi
for path; do
    [[ $path == cpu* ]] || prove_cases "$path"
    prove_path "$path"
done
exit $failed
