# Sourced by tests/cli/*.sh. $TILEWRIGHT is the command. Each test has an empty folder of its own,
# $work, and a store in it; it ends with `finish`.
set -u
tw=$TILEWRIGHT
root=$PWD
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export TILEWRIGHT_STORE=$work/store.db
export LC_ALL=C.UTF-8
unset NO_COLOR
device=${TW_TEST_DEVICE:-cpu}
failures=0

# complain WHAT: counts a failure and shows what the command printed last.
complain() {
    failures=$((failures + 1))
    echo "FAILED: $1"
    sed 's/^/    | /' "$work/out" "$work/err" 2>/dev/null | head -n 20
}

# expect CODE TEXT COMMAND...: the exit code, and a text in what it prints ("" for any).
expect() {
    local code=$1 text=$2
    shift 2
    "$@" >"$work/out" 2>"$work/err" </dev/null
    local got=$?
    [ "$got" -eq "$code" ] || complain "exit code $got instead of $code: $*"
    [ -z "$text" ] || cat "$work/out" "$work/err" | grep -qF -- "$text" ||
        complain "'$text' is not printed: $*"
}

# json FILE EXPRESSION: a Python expression over the document d is true.
json() {
    python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert eval(sys.argv[2]), d' \
        "$1" "$2" 2>"$work/err" || complain "JSON: $2"
}

# npy FILE DESCR SHAPE EXPRESSION: an array whose element i is the value of the expression.
npy() {
    python3 "$root/tests/support/npy.py" make "$@" || exit 1
}

# same FILE SHAPE EXPRESSION: it is what the array at FILE holds, within 1e-5.
same() {
    python3 "$root/tests/support/npy.py" check "$@" 2>"$work/err" || complain "contents of $1"
}

finish() {
    [ "$failures" -eq 0 ] || echo "$failures failures"
    exit $((failures != 0))
}
