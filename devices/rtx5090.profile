# NVIDIA GeForce RTX 5090: what a schedule has to know about it, in the form of docs/RUNTIME.md, "Profiles of GPUs".
#
# Limits of compute capability 12.0: CUDA C++ Programming Guide 13, "Compute Capabilities",
# tables of technical specifications.
name = NVIDIA GeForce RTX 5090
capability = 120
shared_per_block = 101376
shared_per_multiprocessor = 102400
shared_reserved = 1024
registers_per_multiprocessor = 65536
registers_per_thread = 255
threads_per_block = 1024
threads_per_multiprocessor = 1536
blocks_per_multiprocessor = 24

# The product: NVIDIA RTX Blackwell GPU Architecture (white paper, V1.1), appendix.
multiprocessors = 170
l2_bytes = 100663296
clock_mhz = 2407

# Memory: NVIDIA RTX Blackwell GPU Architecture (white paper, V1.1), appendix.
memory_bytes = 34359738368
memory_bandwidth = 1792000000000
