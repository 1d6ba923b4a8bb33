#ifndef TW_CUDA_CONTEXT_H
#define TW_CUDA_CONTEXT_H
/* The driver's context that a device works in, shared by all devices of the process that mean it.
 *
 * If the context that is current in the thread that opens a device is one that the application made
 * itself, on that GPU, it is used as it is. Otherwise it is the GPU's primary context, which is
 * also that of the CUDA runtime and of whatever is built on it; it is retained when first needed,
 * once, and released with the last device.
 *
 * A kernel that faults breaks its context for good: CUDA has no way back but a new process (its
 * reference says so of each such result, and a primary context that was let go of and retained
 * again failed as before on an H200, driver 580). So a broken context is kept as it is, with what
 * is in it (pinned memory may still be read), until the last device closes; it says what broke it,
 * and no driver is asked any more. Any thread. */
#include "runtime/cuda/cuda_error.h"
#include <pthread.h>
#include <stdatomic.h>

enum cuda_state { CUDA_NEW, CUDA_READY, CUDA_BROKEN };

typedef struct cuda_context {
    struct cuda_context *next;
    const cuda_api *api;
    CUdevice device;
    bool primary;
    int refs;             /* under the table's lock */
    pthread_mutex_t lock; /* of what follows, which is also read without it */
    bool retained;
    _Atomic(CUcontext) handle;
    atomic_int state;
    char fault[256];     /* what broke it */
} cuda_context;

tw_status cuda_context_open(const cuda_api *api, CUdevice device, cuda_context **out);
void cuda_context_close(cuda_context *cx);

/* Brings it to CUDA_READY. TW_E_DEVICE when it is broken. */
tw_status cuda_context_ready(cuda_context *cx);
/* It is broken from now on; what: by which call and kernel. */
void cuda_context_break(cuda_context *cx, const char *what);

static inline bool cuda_is_ready(const cuda_context *cx)
{
    return atomic_load_explicit(&cx->state, memory_order_acquire) == CUDA_READY;
}

/* The context made current for a while, and what was put back afterwards. */
typedef struct cuda_scope {
    bool pushed, relaxed;
    int mode;
} cuda_scope;

static inline tw_status cuda_enter(cuda_context *cx, cuda_scope *s)
{
    CUcontext now = NULL, mine;

    s->pushed = s->relaxed = false;
    if (!cuda_is_ready(cx)) {
        tw_status st = cuda_context_ready(cx);
        if (st != TW_OK)
            return st;
    }
    mine = atomic_load_explicit(&cx->handle, memory_order_relaxed);
    tw_status st = cuda_check(cx->api, cx->api->cuCtxGetCurrent(&now), "cuCtxGetCurrent");
    if (st != TW_OK || now == mine)
        return st;
    st = cuda_check(cx->api, cx->api->cuCtxPushCurrent(mine), "cuCtxPushCurrent");
    s->pushed = st == TW_OK;
    return st;
}

/* The same for calls that may not run while another thread's stream is capturing in the strict
 * mode, such as those that allocate: they do not disturb it. */
static inline tw_status cuda_enter_cold(cuda_context *cx, cuda_scope *s)
{
    tw_status st = cuda_enter(cx, s);

    s->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    s->relaxed = st == TW_OK && cx->api->cuThreadExchangeStreamCaptureMode &&
                 cx->api->cuThreadExchangeStreamCaptureMode(&s->mode) == CUDA_SUCCESS;
    return st;
}

/* After either, also when it failed. */
static inline void cuda_leave(cuda_context *cx, cuda_scope *s)
{
    CUcontext mine;

    if (s->relaxed)
        cx->api->cuThreadExchangeStreamCaptureMode(&s->mode);
    if (s->pushed)
        cx->api->cuCtxPopCurrent(&mine);
}

#endif
