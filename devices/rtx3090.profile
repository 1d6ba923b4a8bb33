# NVIDIA GeForce RTX 3090: what a schedule has to know about it, in the form of docs/RUNTIME.md, "Profiles of GPUs".
#
# Limits of compute capability 8.6: CUDA C++ Programming Guide 13, "Compute Capabilities",
# tables of technical specifications.
name = NVIDIA GeForce RTX 3090
capability = 86
shared_per_block = 101376
shared_per_multiprocessor = 102400
shared_reserved = 1024
registers_per_multiprocessor = 65536
registers_per_thread = 255
threads_per_block = 1024
threads_per_multiprocessor = 1536
blocks_per_multiprocessor = 16

# The product: NVIDIA Ampere GA102 GPU Architecture (white paper, V2.0), appendix A.
multiprocessors = 82
l2_bytes = 6291456
clock_mhz = 1695

# Memory: NVIDIA Ampere GA102 GPU Architecture (white paper, V2.0), appendix A.
memory_bytes = 25769803776
memory_bandwidth = 936000000000
