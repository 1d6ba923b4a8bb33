/* Memory, streams and events of the fake driver. */
#include "tests/gpu/fake_core.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct CUevent_st {
    double at;
};

region regions[MOST];
int live_events;

/* ---- memory ---------------------------------------------------------------------------------- */

static region *region_of(CUdeviceptr p)
{
    for (int i = 0; i < MOST; i++)
        if (regions[i].at && p >= (uintptr_t)regions[i].at &&
            p < (uintptr_t)regions[i].at + regions[i].size)
            return &regions[i];
    return NULL;
}

region *add_region(void *at, size_t size, int type, int ordinal)
{
    int i = 0;

    while (regions[i].at)
        i++;
    regions[i] = (region){.at = at, .size = size, .type = type, .ordinal = ordinal};
    return &regions[i];
}

/* What is large is only there where it is touched. */
enum { LARGE = 64 << 20 };

static char *new_memory(size_t size)
{
    if (size >= LARGE)
        return mmap(NULL, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *at = aligned_alloc(256, (size + 255) / 256 * 256);
    return memset(at, 0xa5, size);
}

void fake_memory_drop(const region *r)
{
    if (r->size >= LARGE)
        munmap(r->at, r->size);
    else
        free(r->at);
}

static CUresult give_memory(CUdeviceptr *p, size_t size)
{
    if (size == 0)
        return INVALID_VALUE;
    if (size > control.memory_left)
        return CUDA_ERROR_OUT_OF_MEMORY;
    control.memory_left -= size;
    char *at = new_memory(size);
    region *r = add_region(at, size, CU_MEMORYTYPE_DEVICE, fake_current()->device);
    r->ours = true;
    r->cx = fake_current();
    *p = (uintptr_t)at;
    return CUDA_SUCCESS;
}

static CUresult take_memory(CUdeviceptr p)
{
    region *r = region_of(p);

    if (!r || !r->ours || r->cx != fake_current() || p != (uintptr_t)r->at)
        return INVALID_VALUE;
    control.memory_left += r->type == CU_MEMORYTYPE_DEVICE ? r->size : 0;
    fake_memory_drop(r);
    *r = (region){0};
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *left, size_t *total)
{
    ENTER(CONTEXT);
    *left = control.memory_left;
    *total = (size_t)1 << 34;
    DONE;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t size)
{
    ENTER(CONTEXT | UNSAFE);
    FAIL(give_memory(p, size));
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr p)
{
    ENTER_GIVING(CONTEXT | UNSAFE);
    CUresult r = take_memory(p);
    FAIL(r ? r : told);
}

EXPORT CUresult cuMemHostAlloc(void **p, size_t size, unsigned flags)
{
    ENTER(CONTEXT | UNSAFE);
    (void)flags;
    *p = calloc(1, size);
    region *r = add_region(*p, size, CU_MEMORYTYPE_HOST, fake_current()->device);
    r->ours = true;
    r->cx = fake_current();
    DONE;
}

EXPORT CUresult cuMemFreeHost(void *p)
{
    ENTER_GIVING(CONTEXT | UNSAFE);
    CUresult r = take_memory((uintptr_t)p);
    FAIL(r ? r : told);
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
    ENTER(CONTEXT);
    (void)stream;
    memmove((void *)(uintptr_t)dst, (void *)(uintptr_t)src, size);
    DONE;
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t size, CUstream stream)
{
    ENTER(CONTEXT);
    (void)stream;
    const region *r = region_of(dst);
    if (!r || dst + size > (uintptr_t)r->at + r->size)
        FAIL(INVALID_VALUE);
    memset((void *)(uintptr_t)dst, value, size);
    DONE;
}

static void tell(const region *r, CUdeviceptr p, int attribute, void *out)
{
    bool known = r != NULL;

    if (attribute == CU_POINTER_ATTRIBUTE_CONTEXT)
        *(CUcontext *)out = known && r->ours ? r->cx : NULL;
    else if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
        *(unsigned *)out = known ? (unsigned)r->type : 0;
    else if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER)
        *(CUdeviceptr *)out = known ? p : 0;
    else if (attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED)
        *(unsigned *)out = known && r->managed;
    else if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
        *(int *)out = known ? r->ordinal : -2;
    else if (attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
        *(CUdeviceptr *)out = known ? (uintptr_t)r->at : 0;
    else if (attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
        *(size_t *)out = known ? r->size : 0;
}

EXPORT CUresult cuPointerGetAttributes(unsigned n, int *attribute, void **value, CUdeviceptr p)
{
    ENTER(CONTEXT);
    const region *r = region_of(p);
    for (unsigned i = 0; i < n; i++)
        tell(r, p, attribute[i], value[i]);
    DONE;
}

/* ---- streams and events ---------------------------------------------------------------------- */

EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
    ENTER(CONTEXT);
    if (control.capturing && stream == control.capturing) {
        control.capture_broken = true;
        FAIL(CAPTURE_UNSUPPORTED);
    }
    DONE;
}

EXPORT CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
    ENTER(CONTEXT);
    *status = control.capturing && stream == control.capturing;
    DONE;
}

EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    ENTER(CONTEXT);
    (void)flags;
    *event = calloc(1, sizeof **event);
    live_events++;
    DONE;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
    ENTER_GIVING(CONTEXT);
    free(event);
    live_events--;
    DONE_GIVING;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
    static double now;

    ENTER(CONTEXT);
    (void)stream;
    event->at = now += 0.5;
    DONE;
}

EXPORT CUresult cuEventSynchronize(CUevent event)
{
    ENTER(CONTEXT);
    (void)event;
    DONE;
}

EXPORT CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    ENTER(CONTEXT);
    *ms = (float)(to->at - from->at);
    DONE;
}

#ifndef FAKE_OLD
EXPORT CUresult cuMemAllocAsync(CUdeviceptr *p, size_t size, CUstream stream)
{
    ENTER(CONTEXT);
    (void)stream;
    FAIL(give_memory(p, size));
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr p, CUstream stream)
{
    ENTER_GIVING(CONTEXT);
    (void)stream;
    CUresult r = take_memory(p);
    FAIL(r ? r : told);
}
#endif
