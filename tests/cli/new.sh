#!/usr/bin/env bash
# new writes a kernel that runs and a test that passes, and that fails when the kernel is wrong.
source tests/support/cli_test.bash
cd "$work" || exit 1
expect 0 "my_kernel.tw" "$tw" new my_kernel
expect 0 "all passed" env TILEWRIGHT="$tw" sh my_kernel_test.sh
expect 0 "out T[M, N]" "$tw" help my_kernel.tw
sed -i 's/cast(t \* scale, T)/cast(t * scale, T[3])/' my_kernel.tw
expect 1 "FAILED" env TILEWRIGHT="$tw" sh my_kernel_test.sh
expect 7 "left as it is" "$tw" new my_kernel
expect 2 "no command 'nowhere/tilewright' here" env TILEWRIGHT=nowhere/tilewright sh my_kernel_test.sh
touch half_test.sh
expect 7 "left as it is" "$tw" new half
[ ! -e half.tw ] || complain "half of what new writes stays"
expect 2 "a name of letters" "$tw" new
expect 2 "a name of letters" "$tw" new 'a-b'
expect 2 "a name of letters" "$tw" new 9a
expect 2 "one word too many" "$tw" new a b
expect 2 "belongs to the language" "$tw" new for
expect 2 "belongs to the language" "$tw" new exp
[ ! -e for.tw ] && [ ! -e a.tw ] || complain "a refused name leaves a file"
chmod 500 "$work"
[ "$(id -u)" -eq 0 ] || expect 7 "" "$tw" new other
chmod 700 "$work"
finish
