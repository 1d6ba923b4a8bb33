# NVIDIA H200: what a schedule has to know about it, in the form of docs/RUNTIME.md, "Profiles of GPUs".
#
# Limits of compute capability 9.0: CUDA C++ Programming Guide 13, "Compute Capabilities",
# tables of technical specifications.
name = NVIDIA H200
capability = 90
shared_per_block = 232448
shared_per_multiprocessor = 233472
shared_reserved = 1024
registers_per_multiprocessor = 65536
registers_per_thread = 255
threads_per_block = 1024
threads_per_multiprocessor = 2048
blocks_per_multiprocessor = 32

# The product: read from the device by cuDeviceGetAttribute.
multiprocessors = 132
l2_bytes = 62914560
clock_mhz = 1980

# Memory: NVIDIA H200 data sheet, SXM.
memory_bytes = 150754820096
memory_bandwidth = 4800000000000
