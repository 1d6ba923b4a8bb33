/* Memory of a device, for callers without a way of their own to get it. */
#include "compiler/base/check.h"
#include "compiler/base/mem.h"
#include "runtime/runtime.h"
#include <string.h>

#define HOST_ALIGN 64

tw_status tw_memory_alloc(tw_device *dev, size_t size, void **out)
{
    error_clear();
    if (!dev || !out)
        return error_set(TW_E_ARG, "tw_memory_alloc: dev or out is NULL");
    if (dev->drv->alloc)
        return dev->drv->alloc(dev, size, out);
    void *p = mem_alloc_aligned(HOST_ALIGN, size);
    if (!p)
        return error_set(TW_E_NOMEM, "no memory for %zu bytes", size);
    *out = p;
    return TW_OK;
}

void tw_memory_free(tw_device *dev, void *p)
{
    if (!dev || !p)
        return;
    if (dev->drv->release)
        dev->drv->release(dev, p);
    else
        mem_free(p);
}

static const enum driver_copy ways[] = {[TW_COPY_TO_DEVICE] = COPY_TO_DEVICE,
                                        [TW_COPY_FROM_DEVICE] = COPY_FROM_DEVICE,
                                        [TW_COPY_ON_DEVICE] = COPY_ON_DEVICE};

tw_status tw_memory_copy(tw_device *dev, void *dst, const void *src, size_t size, tw_copy direction,
                         tw_stream *stream)
{
    error_clear();
    if (!dev || (size > 0 && (!dst || !src)))
        return error_set(TW_E_ARG, "tw_memory_copy: dev, dst or src is NULL");
    if ((size_t)direction >= sizeof ways / sizeof *ways)
        return error_set(TW_E_ARG, "tw_memory_copy: direction is %d, not a tw_copy",
                         (int)direction);
    if (dev->drv->copy)
        return dev->drv->copy(dev, dst, src, size, ways[direction], stream);
    if (size > 0)
        memmove(dst, src, size);
    return TW_OK;
}
