#ifndef TW_HOST_POOL_H
#define TW_HOST_POOL_H
/* Threads that run the programs of a launch, shared by all launches on one device.
 *
 * A job is a range of indices handed out in ascending order from one counter, so that the caller
 * decides the order by what an index means. The calling thread works too. Several threads may run
 * jobs at once: helpers go to whichever job has work left.
 * Idle helpers spin for some microseconds, then sleep in the kernel. Nothing is allocated once the
 * helpers run and the scratch has grown to size.
 *
 * Fork: a child has no helpers. A pool made before the fork works in the child: it starts its own,
 * provided that no job was running in the parent at the moment of the fork. */
#include "tilewright.h"

#define POOL_MAX_THREADS 512

typedef struct host_pool host_pool;

/* Runs indices lo .. hi - 1; scratch is 64-byte aligned and this thread's own. 0, or a code that
 * stops the job. */
typedef int32_t (*pool_fn)(const void *cx, int64_t lo, int64_t hi, void *scratch);

typedef struct pool_job {
    pool_fn fn;
    const void *cx;
    int64_t total; /* indices 0 .. total - 1 */
    size_t scratch_bytes;
} pool_job;

/* At most threads for one job, the caller included. NULL when there is no memory. */
host_pool *pool_create(int threads);
/* No job may be running. */
void pool_destroy(host_pool *pool);
/* threads: at most this many for this job. *code: 0, or the first code that stopped it (others may
 * have run on for a while). Fails with TW_E_NOMEM. */
tw_status pool_run(host_pool *pool, const pool_job *job, int threads, int32_t *code);

#endif
