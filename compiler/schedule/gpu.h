#ifndef TW_SCHEDULE_GPU_H
#define TW_SCHEDULE_GPU_H
/* What a schedule has to know about a GPU, as plain data. A device profile or the driver fills it;
 * gpu_limits_of gives the limits that every GPU of a compute capability has. */
#include <stdint.h>

typedef struct gpu_limits {
    int32_t capability;            /* 80, 86, 87, 89, 90, 100, 120 */
    int32_t shared_per_block;      /* bytes a block may have after opting in */
    int32_t shared_per_sm;         /* bytes that the blocks of a multiprocessor share */
    int32_t shared_reserved;       /* of those, bytes that the driver takes for each block */
    int32_t registers_per_sm;      /* 32-bit registers */
    int32_t registers_per_thread;  /* at most */
    int32_t threads_per_block, threads_per_sm, blocks_per_sm; /* at most */
    int32_t multiprocessors;       /* 0: not known */
    int64_t l2_bytes;              /* 0: not known */
} gpu_limits;

/* The limits of the newest capability in the table that is not above this one; of the oldest when
 * it is below all. */
gpu_limits gpu_limits_of(int capability);
/* How many blocks of so many threads, registers a thread and bytes of shared memory fit on one
 * multiprocessor; 0: not even one. */
int gpu_blocks_per_sm(const gpu_limits *gpu, int threads, int registers, int32_t shared_bytes);

#endif
