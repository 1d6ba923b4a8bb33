#include "runtime/cuda/cuda_context.h"
#include "compiler/base/check.h"
#include "compiler/base/error.h"
#include "compiler/base/mem.h"
#include <stdio.h>

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static cuda_context *table;

/* ---- which context --------------------------------------------------------------------------- */

typedef struct found {
    CUcontext handle; /* NULL: the primary one, not retained yet */
    bool primary;
} found;

/* The primary context if something in this process uses it already; retained then. */
static tw_status active_primary(const cuda_api *api, CUdevice device, CUcontext *out)
{
    unsigned flags;
    int active = 0;

    *out = NULL;
    TRY(cuda_check(api, api->cuDevicePrimaryCtxGetState(device, &flags, &active),
                   "cuDevicePrimaryCtxGetState"));
    if (!active)
        return TW_OK;
    return cuda_check(api, api->cuDevicePrimaryCtxRetain(out, device), "cuDevicePrimaryCtxRetain");
}

static tw_status look(const cuda_api *api, CUdevice device, found *out)
{
    CUcontext now = NULL, primary;
    CUdevice current = -1;

    *out = (found){NULL, true};
    TRY(cuda_check(api, api->cuCtxGetCurrent(&now), "cuCtxGetCurrent"));
    if (now)
        TRY(cuda_check(api, api->cuCtxGetDevice(&current), "cuCtxGetDevice"));
    if (!now || current != device)
        return TW_OK;
    TRY(active_primary(api, device, &primary));
    if (primary)
        api->cuDevicePrimaryCtxRelease(device);
    if (primary != now)
        *out = (found){now, false};
    return TW_OK;
}

static cuda_context *find(CUdevice device, const found *f)
{
    for (cuda_context *cx = table; cx; cx = cx->next)
        if (cx->device == device && cx->primary == f->primary &&
            (f->primary || atomic_load(&cx->handle) == f->handle))
            return cx;
    return NULL;
}

static cuda_context *add(const cuda_api *api, CUdevice device, const found *f)
{
    cuda_context *cx = mem_zalloc(sizeof *cx);

    if (!cx)
        return NULL;
    cx->api = api;
    cx->device = device;
    cx->primary = f->primary;
    pthread_mutex_init(&cx->lock, NULL);
    atomic_init(&cx->handle, f->handle);
    atomic_init(&cx->state, f->handle ? CUDA_READY : CUDA_NEW);
    cx->next = table;
    table = cx;
    return cx;
}

static tw_status open_locked(const cuda_api *api, CUdevice device, cuda_context **out)
{
    found f;

    TRY(look(api, device, &f));
    cuda_context *cx = find(device, &f);
    if (!cx)
        cx = add(api, device, &f);
    if (!cx)
        return error_set(TW_E_NOMEM, "no memory for a device");
    cx->refs++;
    *out = cx;
    return TW_OK;
}

tw_status cuda_context_open(const cuda_api *api, CUdevice device, cuda_context **out)
{
    pthread_mutex_lock(&table_lock);
    tw_status st = open_locked(api, device, out);
    pthread_mutex_unlock(&table_lock);
    return st;
}

void cuda_context_close(cuda_context *cx)
{
    pthread_mutex_lock(&table_lock);
    bool last = --cx->refs == 0;
    for (cuda_context **at = &table; last && *at; at = &(*at)->next)
        if (*at == cx) {
            *at = cx->next;
            break;
        }
    if (last && cx->retained)
        cx->api->cuDevicePrimaryCtxRelease(cx->device);
    pthread_mutex_unlock(&table_lock);
    if (!last)
        return;
    pthread_mutex_destroy(&cx->lock);
    mem_free(cx);
}

/* ---- new, ready, broken ---------------------------------------------------------------------- */

static tw_status retain(cuda_context *cx)
{
    CUcontext handle = NULL;

    TRY(cuda_check(cx->api, cx->api->cuDevicePrimaryCtxRetain(&handle, cx->device),
                   "cuDevicePrimaryCtxRetain"));
    cx->retained = true;
    atomic_store(&cx->handle, handle);
    return TW_OK;
}

static tw_status stays_broken(const cuda_context *cx)
{
    return error_diag(TW_E_DEVICE, DIAG_DEVICE,
                      "a fault is final for its process: start a new one; checked launches "
                      "(TILEWRIGHT_CHECKED=1) find the kernel that is to blame",
                      "the GPU's context is broken: %s", cx->fault);
}

tw_status cuda_context_ready(cuda_context *cx)
{
    tw_status st = TW_OK;

    pthread_mutex_lock(&cx->lock);
    int state = atomic_load(&cx->state);
    if (state == CUDA_NEW)
        st = retain(cx);
    else if (state == CUDA_BROKEN)
        st = stays_broken(cx);
    if (st == TW_OK)
        atomic_store_explicit(&cx->state, CUDA_READY, memory_order_release);
    pthread_mutex_unlock(&cx->lock);
    return st;
}

void cuda_context_break(cuda_context *cx, const char *what)
{
    pthread_mutex_lock(&cx->lock);
    if (atomic_load(&cx->state) == CUDA_READY) {
        snprintf(cx->fault, sizeof cx->fault, "%s", what);
        atomic_store(&cx->state, CUDA_BROKEN);
    }
    pthread_mutex_unlock(&cx->lock);
}
