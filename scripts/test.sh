#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests: the release build, then everything that is
# not generated code under the address and undefined-behaviour sanitizers, each fuzz target for a
# minute (on two cores), and what uses threads under the thread sanitizer.
# The command is left at build/bin/tilewright.
set -u
source "$(dirname "${BASH_SOURCE[0]}")/phases.sh"

run_tests() {
    ctest --test-dir "$1" --output-on-failure -j "$jobs" "${@:2}"
}

phase "setup" scripts/setup.sh
scripts/setup.sh zsh fish >build/log/setup-shells.log 2>&1 ||
    echo "zsh and fish are not to be had here: their completions are not tried (build/log/setup-shells.log)"
phase "configure release" cmake --preset release -DTW_WERROR=ON
phase "build release" cmake --build build -j "$jobs"
phase_shown "test release" run_tests build
phase "configure sanitizers" cmake --preset asan -DTW_WERROR=ON
phase "build sanitizers" cmake --build build-asan -j "$jobs"
export UBSAN_OPTIONS=${UBSAN_OPTIONS-print_stacktrace=1}
phase_shown "test sanitizers" run_tests build-asan

# The other LLVM that Debian has: what touches LLVM compiles against it.
if scripts/setup.sh llvm-19-dev >build/log/setup-llvm-19.log 2>&1; then
    phase "configure llvm 19" cmake -S . -B build-llvm19 -G Ninja -DTW_LLVM=19 -DTW_WERROR=ON
    phase "build llvm 19" cmake --build build-llvm19 -j "$jobs" --target tw_target_obj \
        tw_target_llvm_obj tw_target_cpu_obj tw_target_nvptx_obj
else
    echo "LLVM 19 is not to be had here: not compiled against (build/log/setup-llvm-19.log)"
fi

# The other architecture: library and command compile for it.
if scripts/setup.sh g++-aarch64-linux-gnu >build/log/setup-aarch64.log 2>&1; then
    phase "configure aarch64" cmake -S . -B build-aarch64 -G Ninja -DTW_WERROR=ON \
        --toolchain cmake/aarch64.cmake
    phase "build aarch64" cmake --build build-aarch64 -j "$jobs" --target tw_static tw_cli
else
    echo "The compiler for AArch64 is not to be had here (build/log/setup-aarch64.log)"
fi
phase_shown "fuzz, four minutes" scripts/fuzz.sh 0.067
phase "configure thread sanitizer" cmake --preset tsan -DTW_WERROR=ON
phase "build thread sanitizer" cmake --build build-tsan -j "$jobs" --target threads
phase_shown "test thread sanitizer" run_tests build-tsan -L threads
