# NVIDIA H100 80GB HBM3: what a schedule has to know about it, in the form of docs/RUNTIME.md, "Profiles of GPUs".
#
# Limits of compute capability 9.0: CUDA C++ Programming Guide 13, "Compute Capabilities",
# tables of technical specifications.
name = NVIDIA H100 80GB HBM3
capability = 90
shared_per_block = 232448
shared_per_multiprocessor = 233472
shared_reserved = 1024
registers_per_multiprocessor = 65536
registers_per_thread = 255
threads_per_block = 1024
threads_per_multiprocessor = 2048
blocks_per_multiprocessor = 32

# The product: NVIDIA H100 Tensor Core GPU Architecture (white paper, V1.04), table 3.
multiprocessors = 132
l2_bytes = 52428800
clock_mhz = 1980

# Memory: NVIDIA H100 data sheet, SXM.
memory_bytes = 85899345920
memory_bandwidth = 3350000000000
