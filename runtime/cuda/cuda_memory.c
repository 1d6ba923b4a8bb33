#include "compiler/base/check.h"
#include "compiler/base/mem.h"
#include "runtime/args.h"
#include "runtime/cuda/cuda_device.h"
#include <stdio.h>

#define GRANULE_BITS 8 /* the driver's allocations are aligned to this at least */
#define PROBES 4       /* places of the scratch table that a stream's block may be in */

bool cuda_reaches(const tw_device *dev, DLDevice where)
{
    const cuda_device *d = cuda_of(dev);

    return (where.device_type == kDLCUDA && where.device_id == d->ordinal) ||
           where.device_type == kDLCUDAHost || where.device_type == kDLCUDAManaged;
}

/* ---- where a tensor is ----------------------------------------------------------------------- */

/* By where a tensor starts, so that two small ones side by side have two places. */
static cuda_known *place_of(cuda_device *d, uintptr_t lo)
{
    uint64_t hash = (uint64_t)(lo >> GRANULE_BITS) * 0x9e3779b97f4a7c15u;

    return &d->known[(hash >> 48) % CUDA_KNOWN];
}

/* Who sees a bound that a writer has put in sees the odd version that was put in before it, too. */
static bool is_known(cuda_known *k, uintptr_t lo, uintptr_t hi)
{
    unsigned version = atomic_load_explicit(&k->version, memory_order_acquire);
    uintptr_t from = atomic_load_explicit(&k->lo, memory_order_acquire);
    uintptr_t to = atomic_load_explicit(&k->hi, memory_order_acquire);

    return from <= lo && hi <= to && version % 2 == 0 &&
           atomic_load_explicit(&k->version, memory_order_relaxed) == version;
}

/* Whoever comes while another thread writes leaves it out. */
static void remember(cuda_known *k, uintptr_t lo, uintptr_t hi)
{
    unsigned version = atomic_load_explicit(&k->version, memory_order_relaxed);

    if (version % 2 || !atomic_compare_exchange_strong(&k->version, &version, version + 1))
        return;
    atomic_store_explicit(&k->lo, lo, memory_order_release);
    atomic_store_explicit(&k->hi, hi, memory_order_release);
    atomic_store_explicit(&k->version, version + 2, memory_order_release);
}

typedef struct pointer_facts {
    unsigned type; /* CU_MEMORYTYPE_..., 0: CUDA does not know the address */
    unsigned managed;
    int ordinal;
    CUcontext context; /* NULL: of none in particular */
    CUdeviceptr on_device, start;
    size_t size;
} pointer_facts;

static tw_status ask(cuda_device *d, uintptr_t p, pointer_facts *f)
{
    int attribute[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
                       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_CONTEXT,
                       CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                       CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *value[] = {&f->type,      &f->managed, &f->ordinal, &f->context,
                     &f->on_device, &f->start,   &f->size};

    *f = (pointer_facts){.ordinal = d->ordinal};
    return CUDA(d, cuPointerGetAttributes, sizeof attribute / sizeof *attribute, attribute, value,
                p);
}

/* What is wrong with memory of which f is true, or NULL. */
static const char *complaint(const cuda_device *d, const pointer_facts *f, uintptr_t p,
                             const char **todo)
{
    if (f->managed)
        return NULL;
    *todo = "copy it to the device's memory first";
    if (f->type == 0)
        return "is not memory of a GPU, nor pinned";
    if (f->type == CU_MEMORYTYPE_HOST && f->on_device != p)
        return "is pinned memory that the GPU has at another address";
    if (f->type == CU_MEMORYTYPE_HOST)
        return NULL;
    if (f->ordinal != d->ordinal)
        return "is memory of another GPU";
    *todo = "allocate it in the context that the device was opened in, which is the GPU's primary "
            "one unless another was current then";
    if (f->context && f->context != atomic_load(&d->cx->handle))
        return "belongs to another context of this GPU";
    return NULL;
}

static tw_status refuse(const cuda_device *d, const char *name, uintptr_t p, const char *which,
                        const pointer_facts *f)
{
    const char *todo = NULL, *why = complaint(d, f, p, &todo);

    if (!why)
        return TW_OK;
    return ARG_ERROR(todo, "tensor '%s': its %s byte, at %p, %s (device '%s')", name, which,
                     (void *)p, why, d->dev->spec);
}

static tw_status look_up(cuda_device *d, const char *name, uintptr_t lo, uintptr_t hi)
{
    pointer_facts first, last;

    TRY(ask(d, lo, &first));
    TRY(refuse(d, name, lo, "first", &first));
    if (first.size && hi <= first.start + first.size) {
        remember(place_of(d, lo), (uintptr_t)first.start, (uintptr_t)(first.start + first.size));
        return TW_OK;
    }
    /* Not one range: memory that was mapped piece by piece, or a tensor that ends elsewhere. */
    TRY(ask(d, hi - 1, &last));
    TRY(refuse(d, name, hi - 1, "last", &last));
    remember(place_of(d, lo), lo, hi);
    return TW_OK;
}

/* Addresses that are given back may be given out again, as something else. */
static void forget_known(cuda_device *d)
{
    for (int i = 0; i < CUDA_KNOWN; i++)
        remember(&d->known[i], 1, 0);
}

tw_status cuda_check_memory(tw_device *dev, const char *name, uintptr_t lo, uintptr_t hi)
{
    cuda_device *d = cuda_of(dev);
    cuda_scope s;

    if (!dev->cx->cfg.checked && is_known(place_of(d, lo), lo, hi))
        return TW_OK;
    tw_status st = cuda_enter(d->cx, &s);
    if (st == TW_OK)
        st = look_up(d, name, lo, hi);
    cuda_leave(d->cx, &s);
    return st;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static tw_status no_memory(cuda_device *d, CUresult r, size_t size)
{
    size_t left = 0, all = 0;
    char more[120] = "";

    if (r == CUDA_ERROR_OUT_OF_MEMORY && d->api->cuMemGetInfo(&left, &all) == CUDA_SUCCESS)
        snprintf(more, sizeof more, "%zu bytes were asked for; %zu of %zu are free on '%s'", size,
                 left, all, d->dev->spec);
    return more[0] ? cuda_failed(d->api, r, "cuMemAlloc", more)
                   : cuda_call_failed(d, r, "cuMemAlloc");
}

/* In d's context. */
static tw_status take_memory(cuda_device *d, size_t size, CUdeviceptr *out)
{
    CUresult r = d->api->cuMemAlloc(out, size ? size : 1);

    return r == CUDA_SUCCESS ? TW_OK : no_memory(d, r, size);
}

tw_status cuda_alloc(tw_device *dev, size_t size, void **out)
{
    cuda_device *d = cuda_of(dev);
    cuda_block *b = mem_zalloc(sizeof *b);
    cuda_scope s;

    if (!b)
        return error_set(TW_E_NOMEM, "no memory for a block of device memory");
    tw_status st = cuda_enter_cold(d->cx, &s);
    if (st == TW_OK)
        st = take_memory(d, size, &b->at);
    cuda_leave(d->cx, &s);
    if (st != TW_OK) {
        mem_free(b);
        return st;
    }
    pthread_mutex_lock(&d->lock);
    b->next = d->blocks;
    d->blocks = b;
    pthread_mutex_unlock(&d->lock);
    *out = (void *)(uintptr_t)b->at;
    return TW_OK;
}

void cuda_memory_free(cuda_device *d, CUdeviceptr at)
{
    cuda_scope s;

    if (!at || !cuda_is_ready(d->cx))
        return;
    if (cuda_enter_cold(d->cx, &s) == TW_OK)
        d->api->cuMemFree(at); /* it waits for what still uses the memory */
    cuda_leave(d->cx, &s);
}

void cuda_release(tw_device *dev, void *p)
{
    cuda_device *d = cuda_of(dev);
    cuda_block *found = NULL;

    pthread_mutex_lock(&d->lock);
    for (cuda_block **at = &d->blocks; *at && !found; at = found ? at : &(*at)->next)
        if ((*at)->at == (uintptr_t)p) {
            found = *at;
            *at = found->next;
            break;
        }
    pthread_mutex_unlock(&d->lock);
    if (!found)
        return;
    forget_known(d);
    cuda_memory_free(d, found->at);
    mem_free(found);
}

/* ---- copies ---------------------------------------------------------------------------------- */

tw_status cuda_copy(tw_device *dev, void *dst, const void *src, size_t size,
                    enum driver_copy direction, tw_stream *stream)
{
    cuda_device *d = cuda_of(dev);
    CUstream queue = (CUstream)(void *)stream;
    cuda_scope s;

    if (size == 0)
        return TW_OK;
    tw_status st = cuda_enter(d->cx, &s);
    if (st == TW_OK)
        st = CUDA(d, cuMemcpyAsync, (uintptr_t)dst, (uintptr_t)src, size, queue);
    if (st == TW_OK && direction != COPY_ON_DEVICE) /* the host's side may go when we return */
        st = CUDA(d, cuStreamSynchronize, queue);
    cuda_leave(d->cx, &s);
    return st;
}

tw_status cuda_clear(tw_device *dev, void *p, size_t size, tw_stream *stream)
{
    cuda_device *d = cuda_of(dev);
    cuda_scope s;

    tw_status st = cuda_enter(d->cx, &s);
    if (st == TW_OK)
        st = CUDA(d, cuMemsetD8Async, (uintptr_t)p, 0, size, (CUstream)(void *)stream);
    cuda_leave(d->cx, &s);
    return st;
}

/* ---- blocks of launches ---------------------------------------------------------------------- */

/* A stream's number, which a later stream at the same address does not have. */
static uint64_t stream_id(const cuda_device *d, tw_stream *stream)
{
    unsigned long long id;

    if (d->api->cuStreamGetId &&
        d->api->cuStreamGetId((CUstream)(void *)stream, &id) == CUDA_SUCCESS)
        return id;
    if ((uintptr_t)stream == 2) /* CU_STREAM_PER_THREAD: another stream in each thread */
        return (uint64_t)pthread_self();
    return (uintptr_t)stream;
}

static void scratch_free(cuda_device *d, cuda_scratch *w)
{
    if (!w)
        return;
    cuda_memory_free(d, w->at);
    mem_free(w);
}

static _Atomic(cuda_scratch *) *scratch_place(cuda_device *d, uint64_t stream, unsigned probe)
{
    uint64_t hash = stream * 0x9e3779b97f4a7c15u >> 48;

    return &d->scratch[(hash + probe) % CUDA_SCRATCH];
}

static void scratch_put(cuda_device *d, cuda_scratch *w)
{
    for (unsigned i = 0; i < PROBES; i++) {
        cuda_scratch *none = NULL;
        if (atomic_compare_exchange_strong(scratch_place(d, w->stream, i), &none, w))
            return;
    }
    scratch_free(d, atomic_exchange(scratch_place(d, w->stream, 0), w));
}

/* The block that the last launch in this stream had, or NULL. */
static cuda_scratch *scratch_find(cuda_device *d, uint64_t stream)
{
    for (unsigned i = 0; i < PROBES; i++) {
        cuda_scratch *w = atomic_exchange(scratch_place(d, stream, i), NULL);
        if (w && w->stream == stream)
            return w;
        if (w)
            scratch_put(d, w);
    }
    return NULL;
}

static tw_status scratch_new(cuda_device *d, size_t size, uint64_t stream, cuda_scratch **out)
{
    cuda_scratch *w = mem_zalloc(sizeof *w);
    cuda_scope s;

    if (!w)
        return error_set(TW_E_NOMEM, "no memory for a workspace");
    tw_status st = cuda_enter_cold(d->cx, &s);
    if (st == TW_OK)
        st = take_memory(d, size, &w->at);
    cuda_leave(d->cx, &s);
    if (st != TW_OK) {
        mem_free(w);
        return st;
    }
    w->size = size;
    w->stream = stream;
    *out = w;
    return TW_OK;
}

/* A graph may be launched at any time later, so what is captured has memory of its own: allocated
 * and freed by nodes of the graph. */
static tw_status scratch_captured(cuda_device *d, size_t size, tw_stream *stream,
                                  driver_scratch *out)
{
    CUdeviceptr at = 0;

    if (!d->api->cuMemAllocAsync || !d->api->cuMemFreeAsync)
        return error_diag(TW_E_UNSUPPORTED, DIAG_DEVICE,
                          "update the NVIDIA driver to 11.4 or newer",
                          "a kernel that needs workspaces cannot be captured with this driver");
    TRY(CUDA(d, cuMemAllocAsync, &at, size, (CUstream)(void *)stream));
    *out = (driver_scratch){(char *)(uintptr_t)at, NULL};
    return TW_OK;
}

tw_status cuda_scratch_take(tw_device *dev, size_t size, tw_stream *stream, driver_scratch *out)
{
    cuda_device *d = cuda_of(dev);
    bool capturing = false;
    cuda_scope s;

    TRY(cuda_capturing(dev, stream, &capturing));
    if (capturing) {
        tw_status st = cuda_enter(d->cx, &s);
        if (st == TW_OK)
            st = scratch_captured(d, size, stream, out);
        cuda_leave(d->cx, &s);
        return st;
    }
    uint64_t id = stream_id(d, stream);
    cuda_scratch *w = scratch_find(d, id);
    if (w && w->size < size) {
        scratch_free(d, w);
        w = NULL;
    }
    if (!w)
        TRY(scratch_new(d, size, id, &w));
    *out = (driver_scratch){(char *)(uintptr_t)w->at, w};
    return TW_OK;
}

void cuda_scratch_give(tw_device *dev, driver_scratch *s, tw_stream *stream)
{
    cuda_device *d = cuda_of(dev);
    cuda_scope scope;

    if (s->own) {
        scratch_put(d, s->own);
        return;
    }
    if (cuda_enter(d->cx, &scope) == TW_OK)
        d->api->cuMemFreeAsync((uintptr_t)s->bytes, (CUstream)(void *)stream);
    cuda_leave(d->cx, &scope);
}

/* ---- the end --------------------------------------------------------------------------------- */

void cuda_memory_drop(cuda_device *d)
{
    for (int i = 0; i < CUDA_SCRATCH; i++)
        scratch_free(d, atomic_exchange(&d->scratch[i], NULL));
    while (d->blocks) {
        cuda_block *b = d->blocks;
        d->blocks = b->next;
        cuda_memory_free(d, b->at);
        mem_free(b);
    }
    cuda_memory_free(d, d->flush);
    cuda_records_drop(d);
}
