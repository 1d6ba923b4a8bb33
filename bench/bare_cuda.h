#ifndef TW_BENCH_BARE_CUDA_H
#define TW_BENCH_BARE_CUDA_H
/* The CUDA driver without the library: what the time of the library is compared with. */
#include <stdbool.h>

/* Loads the driver, creates the primary context of the GPU and makes it current in this thread, as
 * programs built on the CUDA runtime have it. False: why is on stderr. */
bool bare_context(int gpu);
/* A kernel that does nothing, with so many parameters of 8 bytes. After bare_context. */
bool bare_load(int params);
/* Queues it in the default stream: one block of 128 threads. False: the driver refused. */
bool bare_launch(void);

#endif
