#!/usr/bin/env bash
# Assembles every configuration of attention for GPUs that the tuner would compile: head dims 16 to 256, three
# masks, three dtypes, all tune and schedule parameters, sm_80, sm_89 and sm_120. Needs NVIDIA's ptxas.
#
#   scripts/sweep.sh [PART PARTS]      one share of PARTS, the first is 0; all by default. One of 12 is one shape
#                                      of blocks, one of 13 has some of each
#
# Of 93312 some 39000 fit, and 31000 of those have code of their own on their GPU: 0.3 seconds of processor time
# each, three hours in all. May be stopped and started again: what is in build/sweep/PART-of-PARTS.tsv is not done
# again. Ends with what spills too much, exit code 1 if anything does.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
part=${1-0} parts=${2-1}
build=${TW_BUILD-build}
cmake --build "$build" --target covertool >/dev/null
mkdir -p "$build/sweep"
exec python3 tests/nvptx/ptx_cover.py "$build/tests/nvptx/covertool" \
    --results "$build/sweep/$part-of-$parts.tsv" --workers "$(nproc)" all "$part" "$parts"
