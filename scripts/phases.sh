# Sourced by demo.sh and test.sh: runs the phases of a script with one line of progress each.
# What a phase prints goes to build/log/; when it fails, the end of that log is shown.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
mkdir -p build/log
jobs=$(nproc 2>/dev/null || echo 2)
phase_number=0

# phase NAME COMMAND...
phase() {
    local name=$1 log start=$SECONDS
    shift
    phase_number=$((phase_number + 1))
    log=build/log/$(tr -c 'a-z0-9\n' '-' <<<"$name").log
    printf '[%d] %s ... ' "$phase_number" "$name"
    if "$@" >"$log" 2>&1; then
        printf 'done, %d s\n' $((SECONDS - start))
    else
        printf 'FAILED after %d s; the end of %s:\n' $((SECONDS - start)) "$log"
        tail -n 40 "$log"
        exit 1
    fi
}

# The same for a phase whose output is wanted.
phase_shown() {
    phase_number=$((phase_number + 1))
    printf '[%d] %s\n' "$phase_number" "$1"
    shift
    "$@" || exit 1
}
