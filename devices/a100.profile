# NVIDIA A100-SXM4-80GB: what a schedule has to know about it, in the form of docs/RUNTIME.md, "Profiles of GPUs".
#
# Limits of compute capability 8.0: CUDA C++ Programming Guide 13, "Compute Capabilities",
# tables of technical specifications.
name = NVIDIA A100-SXM4-80GB
capability = 80
shared_per_block = 166912
shared_per_multiprocessor = 167936
shared_reserved = 1024
registers_per_multiprocessor = 65536
registers_per_thread = 255
threads_per_block = 1024
threads_per_multiprocessor = 2048
blocks_per_multiprocessor = 32

# The product: NVIDIA A100 Tensor Core GPU Architecture (white paper, 2020), table 4.
multiprocessors = 108
l2_bytes = 41943040
clock_mhz = 1410

# Memory: NVIDIA A100 80GB data sheet (2021).
memory_bytes = 85899345920
memory_bandwidth = 2039000000000
