#ifndef TW_CUDA_CONTEXT_H
#define TW_CUDA_CONTEXT_H
/* The driver's context that a device works in, shared by all devices of the process that mean it.
 *
 * If the context that is current in the thread that opens a device is one that the application made
 * itself, on that GPU, it is used as it is. Otherwise it is the GPU's primary context, which is
 * also that of the CUDA runtime and of whatever is built on it; it is retained when first needed,
 * once, and released with the last device.
 *
 * A kernel that faults breaks its context: every later call in it fails. A primary context is then
 * let go and retained again, which makes it new if nobody else holds it; the generation counts
 * that, and whatever was in the old one (memory, code, events) is gone. A context that others hold,
 * or the application's own, stays broken until they let go of it. Any thread.
 *
 * Pinned memory goes with its context too, and reading what is gone ends the process; no driver is
 * asked that could say no. So who reads it holds the context meanwhile (cuda_hold), and a context
 * is let go of only when nobody does. */
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
    atomic_uint generation;
    atomic_uint holders; /* threads between cuda_hold and cuda_unhold */
    char fault[256];     /* what broke it */
} cuda_context;

tw_status cuda_context_open(const cuda_api *api, CUdevice device, cuda_context **out);
void cuda_context_close(cuda_context *cx);

/* Brings it to CUDA_READY. TW_E_DEVICE when it is broken and cannot be made anew. */
tw_status cuda_context_ready(cuda_context *cx);
/* It is broken from now on; what: by which call and kernel. */
void cuda_context_break(cuda_context *cx, const char *what);

/* Until cuda_unhold, what was made in this generation of the context stays: true; or it is gone, or
 * about to go: false, and there is nothing to undo. For a few loads and stores: no lock is taken
 * and no driver called in between. The state is looked at first: a context that was made anew since
 * has its new generation before it is ready. */
static inline bool cuda_hold(cuda_context *cx, unsigned generation)
{
    atomic_fetch_add(&cx->holders, 1);
    if (atomic_load(&cx->state) == CUDA_READY && atomic_load(&cx->generation) == generation)
        return true;
    atomic_fetch_sub(&cx->holders, 1);
    return false;
}

static inline void cuda_unhold(cuda_context *cx)
{
    atomic_fetch_sub(&cx->holders, 1);
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
    if (atomic_load_explicit(&cx->state, memory_order_acquire) != CUDA_READY) {
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
