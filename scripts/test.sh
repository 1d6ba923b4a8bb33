#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests: the release build, then everything that is
# not generated code under the address and undefined-behaviour sanitizers.
# The command is left at build/bin/tilewright.
set -u
source "$(dirname "${BASH_SOURCE[0]}")/phases.sh"

run_tests() {
    ctest --test-dir "$1" --output-on-failure -j "$jobs"
}

phase "setup" scripts/setup.sh
phase "configure release" cmake --preset release -DTW_WERROR=ON
phase "build release" cmake --build build -j "$jobs"
phase_shown "test release" run_tests build
phase "configure sanitizers" cmake --preset asan -DTW_WERROR=ON
phase "build sanitizers" cmake --build build-asan -j "$jobs"
export UBSAN_OPTIONS=${UBSAN_OPTIONS-print_stacktrace=1}
phase_shown "test sanitizers" run_tests build-asan
