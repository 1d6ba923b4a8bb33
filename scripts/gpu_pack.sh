#!/usr/bin/env bash
# Builds what a machine with a GPU needs to prove and measure this version, and packs it:
#     scripts/gpu_pack.sh [FILE]       default build-portable/gpu.tar.xz, about 30 MB
# There, unpacked, nothing is needed but the GPU's driver (and PyTorch for bench/*.py):
#     tests/gpu/prove.sh
#     TILEWRIGHT_LIBRARY=$PWD/build-portable/lib/libtilewright.so TILEWRIGHT_COMMIT=$(cat COMMIT) \
#         python3 bench/attention_gpu.py
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
file=$(realpath -m "${1:-build-portable/gpu.tar.xz}")
cmake --preset portable >/dev/null
cmake --build build-portable -j "$(nproc)" --target tw_shared verify_kernels verify_cases cuda_proof \
    on_gpu bench_cold_start bench_launch_overhead

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
built=(build-portable/lib/libtilewright.so*
    build-portable/tests/gpu/verify_kernels build-portable/tests/gpu/verify_cases
    build-portable/tests/gpu/cuda_proof build-portable/tests/gpu/on_gpu_*
    build-portable/bin/bench_cold_start build-portable/bin/bench_launch_overhead)
cp -a --parents "${built[@]}" bench docs/LANGUAGE.md examples/data kernels python tests/gpu "$root"
find "$root/build-portable" -type f -exec strip --strip-unneeded {} +
git rev-parse --short HEAD >"$root/COMMIT"
tar -C "$root" -cf - . | xz -T0 -6 >"$file"
echo "$file: $(du -h "$file" | cut -f1)"
