/* What the tuner times with. */
#include "compiler/base/check.h"
#include "compiler/base/mem.h"
#include "runtime/cuda/cuda_device.h"

/* Written between two timings, so that no launch finds its inputs in the cache: twice the L2 cache
 * holds none of what was there before. */
#define FLUSH_CACHES 2
#define LEAST_FLUSH ((size_t)32 << 20) /* where the driver tells no size */

static tw_status flush_block(cuda_device *d)
{
    size_t size = d->dev->l2_bytes * FLUSH_CACHES;

    if (d->flush)
        return TW_OK;
    size = size < LEAST_FLUSH ? LEAST_FLUSH : size;
    TRY(CUDA(d, cuMemAlloc, &d->flush, size));
    d->flush_size = size;
    runtime_log(d->dev->cx, TW_LOG_INFO,
                "device '%s': %zu bytes are written between two timings, for an L2 cache of %zu",
                d->dev->spec, size, d->dev->l2_bytes);
    return TW_OK;
}

tw_status cuda_flush(tw_device *dev, tw_stream *stream)
{
    cuda_device *d = cuda_of(dev);
    cuda_scope s;

    tw_status st = cuda_enter_cold(d->cx, &s);
    if (st == TW_OK) {
        pthread_mutex_lock(&d->lock); /* until it is queued: cuda_flush_end may want the block */
        st = flush_block(d);
        if (st == TW_OK)
            st = CUDA(d, cuMemsetD8Async, d->flush, 0, d->flush_size, (CUstream)(void *)stream);
        pthread_mutex_unlock(&d->lock);
    }
    cuda_leave(d->cx, &s);
    return st;
}

void cuda_flush_end(tw_device *dev)
{
    cuda_device *d = cuda_of(dev);

    pthread_mutex_lock(&d->lock);
    CUdeviceptr block = d->flush;
    d->flush = 0;
    pthread_mutex_unlock(&d->lock);
    cuda_memory_free(d, block);
}

tw_status cuda_event_create(tw_device *dev, void **event)
{
    cuda_device *d = cuda_of(dev);
    CUevent e = NULL;
    cuda_scope s;

    tw_status st = cuda_enter_cold(d->cx, &s);
    if (st == TW_OK)
        st = CUDA(d, cuEventCreate, &e, CU_EVENT_DEFAULT);
    cuda_leave(d->cx, &s);
    if (st == TW_OK)
        *event = e;
    return st;
}

void cuda_event_destroy(tw_device *dev, void *event)
{
    cuda_device *d = cuda_of(dev);
    cuda_scope s;

    if (!cuda_is_ready(d->cx))
        return;
    if (cuda_enter_cold(d->cx, &s) == TW_OK)
        d->api->cuEventDestroy(event);
    cuda_leave(d->cx, &s);
}

tw_status cuda_event_record(tw_device *dev, void *event, tw_stream *stream)
{
    cuda_device *d = cuda_of(dev);
    cuda_scope s;

    tw_status st = cuda_enter(d->cx, &s);
    if (st == TW_OK)
        st = CUDA(d, cuEventRecord, event, (CUstream)(void *)stream);
    cuda_leave(d->cx, &s);
    return st;
}

tw_status cuda_event_seconds(tw_device *dev, void *from, void *to, double *seconds)
{
    cuda_device *d = cuda_of(dev);
    float ms = 0.0f;
    cuda_scope s;

    tw_status st = cuda_enter(d->cx, &s);
    if (st == TW_OK)
        st = CUDA(d, cuEventSynchronize, to);
    if (st == TW_OK)
        st = CUDA(d, cuEventElapsedTime, &ms, from, to);
    cuda_leave(d->cx, &s);
    *seconds = (double)ms * 1e-3;
    return st;
}
