#!/usr/bin/env bash
# doctor finds nothing wrong here, and says so where something is.
source tests/support/cli_test.bash
expect 0 "all " "$tw" doctor
for check in library processor features threads store kernel; do
    grep -q "$check" "$work/out" || complain "doctor does not look at $check"
done
grep -q "error" "$work/out" && complain "an error stands among what is well"
grep -q "llvm-" "$work/out" || complain "LLVM's version is missing"
grep -q "$work/store.db" "$work/out" || complain "the store's path is missing"
expect 0 "" "$tw" doctor --json
json "$work/out" 'all(row["state"] in ("ok", "note") for row in d) and len(d) >= 8'
json "$work/out" '[row for row in d if row["check"] == "kernel"][0]["state"] == "ok"'
expect 0 "forgotten with the process" "$tw" doctor --store=none
echo 'not a database, and long enough not to look like an empty one' >"$work/text.db"
expect 14 "something is wrong" "$tw" doctor --store="$work/text.db"
grep -q "wrong *store" "$work/out" || complain "the store is not named"
[ ! -s "$work/err" ] || complain "the same is said twice"
expect 14 "" "$tw" doctor --store="$work/text.db" --json
json "$work/out" '[row for row in d if row["state"] == "wrong"][0]["todo"]'
# As under systemd's MemoryDenyWriteExecute; a kernel before Linux 6.3 cannot forbid it.
python3 - "$tw" doctor >"$work/out" 2>"$work/err" <<'END'
import ctypes, os, sys
PR_SET_MDWE, REFUSE_EXEC_GAIN = 65, 1
word = ctypes.c_ulong
if ctypes.CDLL(None).prctl(PR_SET_MDWE, word(REFUSE_EXEC_GAIN), word(0), word(0), word(0)):
    sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])
END
code=$?
if [ $code -ne 77 ]; then
    [ $code -eq 6 ] || complain "exit code $code where memory may not be executable"
    grep -q "MemoryDenyWriteExecute" "$work/out" || complain "doctor does not say what forbids it"
    grep -q "report it" "$work/out" && complain "what systemd forbids is to be reported to us"
fi
expect 2 "one word too many" "$tw" doctor me
finish
