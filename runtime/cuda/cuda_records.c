/* Records of failed asserts in pinned memory, which code writes and the host reads without asking
 * the driver. They live as long as their context, which is kept, broken or not, until the last
 * device closes. */
#include "compiler/base/check.h"
#include "compiler/base/mem.h"
#include "runtime/cuda/cuda_device.h"
#include <string.h>

/* Under d's lock, in its context. */
static cuda_records *records_new(cuda_device *d)
{
    cuda_records *r = mem_zalloc(sizeof *r);
    void *at = NULL;

    if (!r)
        return NULL;
    if (d->api->cuMemHostAlloc(&at, CUDA_RECORDS * sizeof *r->at,
                               CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP) !=
        CUDA_SUCCESS) {
        mem_free(r);
        return NULL;
    }
    r->at = at;
    r->next = d->records;
    d->records = r;
    return r;
}

/* Each record is cleared when it is taken. */
static assert_record *record_of(cuda_records *r)
{
    for (int i = 0; i < CUDA_RECORDS; i++) {
        if (r->used[i])
            continue;
        r->used[i] = true;
        memset(&r->at[i], 0, sizeof r->at[i]);
        return &r->at[i];
    }
    return NULL;
}

assert_record *cuda_record_take(cuda_device *d)
{
    assert_record *record = NULL;

    pthread_mutex_lock(&d->lock);
    for (cuda_records *r = d->records; r && !record; r = r->next)
        record = record_of(r);
    cuda_records *more = record ? NULL : records_new(d);
    if (more)
        record = record_of(more);
    pthread_mutex_unlock(&d->lock);
    return record;
}

void cuda_record_give(cuda_device *d, assert_record *record)
{
    pthread_mutex_lock(&d->lock);
    for (cuda_records *r = d->records; r && record; r = r->next)
        if (record >= r->at && record < r->at + CUDA_RECORDS)
            r->used[record - r->at] = false;
    pthread_mutex_unlock(&d->lock);
}

int32_t cuda_record_read(assert_record *r, const program_calls *calls)
{
    uint32_t failed = 0;

    if (r && __atomic_load_n(&r->failed, __ATOMIC_RELAXED)) /* of several readers one gets it */
        failed = __atomic_exchange_n(&r->failed, 0, __ATOMIC_ACQ_REL);
    if (failed == 0)
        return 0;
    if (r->told)
        calls->fail(calls, (int32_t)failed - 1, r->program[0], r->program[1], r->program[2],
                    r->value);
    __atomic_store_n(&r->taken, 0, __ATOMIC_RELEASE);
    return (int32_t)failed;
}

void cuda_records_drop(cuda_device *d)
{
    while (d->records) {
        cuda_records *r = d->records;
        cuda_scope s;
        d->records = r->next;
        if (cuda_is_ready(d->cx)) {
            if (cuda_enter_cold(d->cx, &s) == TW_OK)
                d->api->cuMemFreeHost(r->at);
            cuda_leave(d->cx, &s);
        }
        mem_free(r);
    }
}
