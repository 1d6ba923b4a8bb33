#include "compiler/base/check.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/launch.h"
#include <stdio.h>
#include <string.h>

/* ---- captures -------------------------------------------------------------------------------- */

tw_status cuda_capturing(tw_device *dev, tw_stream *stream, bool *out)
{
    cuda_device *d = cuda_of(dev);
    int status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuda_scope s;

    tw_status st = cuda_enter(d->cx, &s);
    if (st == TW_OK)
        st = CUDA(d, cuStreamIsCapturing, (CUstream)(void *)stream, &status);
    cuda_leave(d->cx, &s);
    *out = status != CU_STREAM_CAPTURE_STATUS_NONE;
    return st;
}

/* ---- launches -------------------------------------------------------------------------------- */

typedef struct queue {
    cuda_device *d;
    CUfunction entry;
    const recipe_step *step;
    CUstream stream;
} queue;

/* The parameters are the slots, 8 bytes each, as they lie. */
static tw_status queue_blocks(const queue *q, const uint64_t *slots, unsigned blocks)
{
    size_t size = q->step->nslots * sizeof *slots;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)slots,
                     CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};

    return CUDA(q->d, cuLaunchKernel, q->entry, blocks, 1, 1, (unsigned)q->step->block_threads, 1,
                1, (unsigned)q->step->shared_bytes, q->stream, NULL, size ? extra : NULL);
}

/* Where program `number` stands along a dimension of the kernel's grid. */
static uint64_t place_of(const driver_step *s, int64_t number, int dim)
{
    for (int d = 0; d < dim; d++)
        number /= s->grid[d];
    return (uint64_t)(dim < 2 ? number % s->grid[dim] : number);
}

/* More programs than a grid holds: several grids, one after the other. Code that does not take the
 * first program's number does not ask which program it runs. */
static tw_status queue_parts(const queue *q, const driver_step *s)
{
    uint64_t slots[RUNTIME_MAX_SLOTS];

    memcpy(slots, s->slots, q->step->nslots * sizeof *slots);
    for (int64_t done = 0; done < s->count; done += INT32_MAX) {
        int64_t left = s->count - done;
        for (uint32_t i = 0; i < q->step->nslots; i++)
            if (q->step->slot[i].kind == SLOT_FIRST)
                slots[i] = place_of(s, s->first + done, q->step->slot[i].index);
        TRY(queue_blocks(q, slots, (unsigned)(left < INT32_MAX ? left : INT32_MAX)));
    }
    return TW_OK;
}

static tw_status queue_step(const queue *q, const driver_step *s)
{
    if (s->first == 0 && s->count <= INT32_MAX)
        return queue_blocks(q, s->slots, (unsigned)s->count);
    return queue_parts(q, s);
}

/* With checked launches a fault is found by the launch that made it. */
static tw_status wait_if_checked(tw_device *dev, void *loaded, const driver_step *s,
                                 tw_stream *stream, int32_t *failed)
{
    bool capturing = false;

    if (!dev->cx->cfg.checked)
        return TW_OK;
    TRY(cuda_capturing(dev, stream, &capturing));
    if (capturing)
        return TW_OK;
    cuda_device *d = cuda_of(dev);
    TRY(CUDA(d, cuStreamSynchronize, (CUstream)(void *)stream));
    return cuda_ready(dev, loaded, s->calls, failed);
}

tw_status cuda_launch(tw_device *dev, void *loaded, const driver_step *s, tw_stream *stream,
                      int32_t *failed)
{
    cuda_device *d = cuda_of(dev);
    const cuda_loaded *l = loaded;
    const queue q = {d, l->entry[s->step - s->art->step], s->step, (CUstream)(void *)stream};
    cuda_scope scope;

    atomic_store_explicit(&d->last, l->name, memory_order_relaxed);
    tw_status st = cuda_enter(d->cx, &scope);
    if (st == TW_OK)
        st = queue_step(&q, s);
    if (st == TW_OK)
        st = wait_if_checked(dev, loaded, s, stream, failed);
    cuda_leave(d->cx, &scope);
    return st;
}

/* ---- waiting --------------------------------------------------------------------------------- */

bool cuda_failed_text(const cuda_device *d, const cuda_loaded *l, char *text, size_t size)
{
    launch_calls calls;
    char what[512];

    launch_calls_begin(&calls, d->dev->cx, l->art, false);
    int32_t failed = cuda_record_read(l->record, &calls.calls);
    if (failed)
        snprintf(text, size, "kernel '%s': assert failed: %s", l->name,
                 launch_assert_text(&calls, failed, what, sizeof what));
    return failed != 0;
}

/* One failed assert of any kernel; the next call reports the next. */
static tw_status report_assert(cuda_device *d)
{
    bool found = false;
    char text[600];

    pthread_mutex_lock(&d->lock);
    for (cuda_loaded *l = d->loaded; l && !found; l = l->next)
        found = cuda_failed_text(d, l, text, sizeof text);
    pthread_mutex_unlock(&d->lock);
    return found ? error_set(TW_E_ASSERT, "%s", text) : TW_OK;
}

tw_status cuda_sync(tw_device *dev, tw_stream *stream)
{
    cuda_device *d = cuda_of(dev);
    bool capturing = false;
    cuda_scope s;

    TRY(cuda_capturing(dev, stream, &capturing));
    if (capturing)
        return error_diag(TW_E_ARG, DIAG_DEVICE, "end the capture first; it is still whole",
                          "the stream is capturing: there is nothing to wait for");
    tw_status st = cuda_enter(d->cx, &s);
    if (st == TW_OK)
        st = CUDA(d, cuStreamSynchronize, (CUstream)(void *)stream);
    cuda_leave(d->cx, &s);
    return st == TW_OK ? report_assert(d) : st;
}
