# NVIDIA GeForce RTX 4090: what a schedule has to know about it, in the form of docs/RUNTIME.md, "Profiles of GPUs".
#
# Limits of compute capability 8.9: CUDA C++ Programming Guide 13, "Compute Capabilities",
# tables of technical specifications.
name = NVIDIA GeForce RTX 4090
capability = 89
shared_per_block = 101376
shared_per_multiprocessor = 102400
shared_reserved = 1024
registers_per_multiprocessor = 65536
registers_per_thread = 255
threads_per_block = 1024
threads_per_multiprocessor = 1536
blocks_per_multiprocessor = 24

# The product: NVIDIA Ada GPU Architecture (white paper, V2.01), appendix.
multiprocessors = 128
l2_bytes = 75497472
clock_mhz = 2520

# Memory: NVIDIA Ada GPU Architecture (white paper, V2.01), appendix.
memory_bytes = 25769803776
memory_bandwidth = 1008000000000
