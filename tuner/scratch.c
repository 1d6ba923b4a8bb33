#include "tuner/scratch.h"
#include "compiler/base/check.h"
#include "compiler/base/mem.h"
#include <string.h>

#define LINE 64 /* bytes: what the position of element 0 is kept against */

static tw_status device_alloc(tw_device *dev, size_t size, char **out)
{
    void *p = NULL;

    if (dev->drv->alloc)
        TRY(dev->drv->alloc(dev, size, &p));
    else if (!(p = mem_alloc_aligned(LINE, size)))
        return error_set(TW_E_NOMEM, "no memory for a copy of an output (%zu bytes)", size);
    *out = p;
    return TW_OK;
}

static void device_free(tw_device *dev, void *p)
{
    if (p && dev->drv->alloc)
        dev->drv->release(dev, p);
    else
        mem_free(p);
}

static tw_status device_copy(tw_device *dev, void *dst, const void *src, size_t size,
                             enum driver_copy direction)
{
    if (dev->drv->copy)
        return dev->drv->copy(dev, dst, src, size, direction, NULL);
    memcpy(dst, src, size);
    return TW_OK;
}

static bool is_host(const scratch *s)
{
    return !s->dev->drv->copy;
}

/* Bytes from the lowest element to the end of the highest, and from the lowest to element 0. */
static void measure_block(const tensor_arg *t, int rank, int bytes, size_t *size, size_t *to_first)
{
    int64_t low = 0, high = 0;

    for (int i = 0; i < rank; i++) {
        int64_t reach = t->extent[i] > 0 ? (t->extent[i] - 1) * t->stride[i] : 0;
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    *size = (size_t)(high - low + 1) * (size_t)bytes;
    *to_first = (size_t)-low * (size_t)bytes;
}

/* No value a kernel is likely to compute: a NaN of its own, or 0xa5 all over. */
static void fill_pattern(enum dtype t, char *block, size_t size)
{
    static const unsigned char nan16[] = {0xa5, 0x7e}, nan_bf16[] = {0xe5, 0x7f},
                               nan32[] = {0xa5, 0xa5, 0xe5, 0x7f},
                               nan64[] = {0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xfd, 0x7f};
    const unsigned char *unit = t == DT_F16    ? nan16
                                : t == DT_BF16 ? nan_bf16
                                : t == DT_F32  ? nan32
                                : t == DT_F64  ? nan64
                                               : NULL;
    size_t n = (size_t)dtype_bytes(t);

    if (!unit)
        memset(block, 0xa5, size);
    else
        for (size_t at = 0; at + n <= size; at += n)
            memcpy(block + at, unit, n);
}

/* ---- elements of a block, and packed --------------------------------------------------------- */

enum way { GATHER, SCATTER };

static void copy_elements(const scratch_tensor *t, char *first, char *packed, enum way way)
{
    const compare_view *v = &t->view;
    int64_t at[VIEW_MAX_RANK] = {0}, offset = 0, run = 1;
    int64_t bytes = dtype_bytes(v->dtype);
    int outer = v->rank, d;

    while (outer > 0 && (v->stride[outer - 1] == run || v->extent[outer - 1] == 1))
        run *= v->extent[--outer];
    if (t->packed_size == 0)
        return;
    do {
        char *there = first + offset * bytes;
        memcpy(way == GATHER ? packed : there, way == GATHER ? there : packed,
               (size_t)(run * bytes));
        packed += run * bytes;
        for (d = outer - 1; d >= 0; d--) {
            offset += v->stride[d];
            if (++at[d] < v->extent[d])
                break;
            offset -= at[d] * v->stride[d];
            at[d] = 0;
        }
    } while (d >= 0);
}

/* Do the elements lie one after the other, as they do packed? */
static bool is_packed(const scratch_tensor *t)
{
    for (int i = 0; i < t->view.rank; i++)
        if (t->view.extent[i] != 1 && t->view.stride[i] != t->packed_stride[i])
            return false;
    return true;
}

/* The same from a block on dev, which is copied whole: devices copy runs of bytes. first: of
 * element 0. Blocks are large, and memory of the host that is touched first is slow: none is taken
 * that can be done without. */
static tw_status gather_from(tw_device *dev, const scratch_tensor *t, const char *first,
                             char *packed)
{
    if (!dev->drv->copy) {
        copy_elements(t, (char *)(uintptr_t)first, packed, GATHER);
        return TW_OK;
    }
    if (is_packed(t))
        return device_copy(dev, packed, first, t->packed_size, COPY_FROM_DEVICE);
    char *host = mem_alloc(t->size);
    if (!host)
        return error_set(TW_E_NOMEM, "no memory for a copy of an output (%zu bytes)", t->size);
    tw_status st = device_copy(dev, host, first - t->to_first, t->size, COPY_FROM_DEVICE);
    if (st == TW_OK)
        copy_elements(t, host + t->to_first, packed, GATHER);
    mem_free(host);
    return st;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static tw_status fill_device(scratch *s, scratch_tensor *t, tw_device *owner, const char *theirs)
{
    if (t->keeps_values) {
        enum driver_copy way = owner != s->dev ? COPY_FROM_DEVICE : COPY_ON_DEVICE;
        return device_copy(owner, t->initial, theirs - t->to_first, t->size, way);
    }
    char *host = mem_alloc(t->size);
    if (!host)
        return error_set(TW_E_NOMEM, "no memory for a copy of an output (%zu bytes)", t->size);
    fill_pattern(t->view.dtype, host, t->size);
    tw_status st = device_copy(s->dev, t->initial, host, t->size, COPY_TO_DEVICE);
    mem_free(host);
    return st;
}

static tw_status fill_initial(scratch *s, scratch_tensor *t, tw_device *owner, const char *theirs)
{
    if (!is_host(s))
        return fill_device(s, t, owner, theirs);
    if (t->keeps_values)
        return gather_from(owner, t, theirs, t->initial);
    fill_pattern(t->view.dtype, t->initial, t->packed_size);
    return TW_OK;
}

/* An input that s->dev, which is the host, does not reach. */
static tw_status fill_input(const scratch_tensor *t, tw_device *owner, const char *theirs)
{
    if (is_packed(t))
        return gather_from(owner, t, theirs, t->base);
    char *packed = mem_alloc(t->packed_size);
    if (!packed)
        return error_set(TW_E_NOMEM, "no memory for a copy of an input (%zu bytes)",
                         t->packed_size);
    tw_status st = gather_from(owner, t, theirs, packed);
    if (st == TW_OK)
        copy_elements(t, t->base, packed, SCATTER);
    mem_free(packed);
    return st;
}

static tw_status begin_block(scratch *s, const scratch_tensor *t)
{
    if (!is_host(s))
        return device_copy(s->dev, t->base - t->to_first, t->initial, t->size, COPY_ON_DEVICE);
    copy_elements(t, t->base, t->initial, SCATTER);
    return TW_OK;
}

static void measure(scratch_tensor *t, const tensor_arg *arg, int rank, enum dtype dtype)
{
    int64_t elements = 1;

    for (int i = rank - 1; i >= 0; i--) {
        t->packed_stride[i] = elements;
        elements *= arg->extent[i];
    }
    t->view = (compare_view){dtype, rank, arg->extent, arg->stride};
    t->packed = (compare_view){dtype, rank, arg->extent, t->packed_stride};
    t->packed_size = (size_t)elements * (size_t)dtype_bytes(dtype);
    measure_block(arg, rank, dtype_bytes(dtype), &t->size, &t->to_first);
    if (elements == 0)
        t->size = t->to_first = 0;
}

static tw_status add_tensor(scratch *s, tw_device *owner, const sig_param *p, uint32_t param,
                            enum dtype dtype)
{
    tensor_arg *arg = &s->args.tensor[param];
    scratch_tensor *t = &s->tensor[s->n++];

    t->param = param;
    t->is_output = p->direction != DIR_IN;
    t->keeps_values = p->direction == DIR_INOUT;
    measure(t, arg, p->rank, dtype);
    TRY(device_alloc(s->dev, t->size + LINE, &t->block));
    uintptr_t first = (uintptr_t)t->block + t->to_first;
    const char *theirs = arg->base;
    t->base = t->block + t->to_first + (((uintptr_t)theirs - first) & (LINE - 1));
    arg->base = t->base;
    if (!t->is_output)
        return fill_input(t, owner, theirs);
    TRY(device_alloc(s->dev, is_host(s) ? t->packed_size : t->size, &t->initial));
    TRY(fill_initial(s, t, owner, theirs));
    return begin_block(s, t);
}

tw_status scratch_create(scratch *s, tw_device *dev, tw_device *owner, const tw_kernel *k,
                         const launch_args *args)
{
    const kernel_sig *sig = &k->source->sig;
    tw_status st = TW_OK;

    memset(s, 0, sizeof *s);
    s->dev = dev;
    s->args = *args;
    for (uint32_t i = 0; i < sig->nparams && st == TW_OK; i++) {
        const sig_param *p = &sig->param[i];
        bool reached = dev == owner || !owner->drv->copy;
        if (p->is_tensor && (p->direction != DIR_IN || !reached))
            st = add_tensor(s, owner, p, i, param_dtype(p, &args->p));
    }
    if (st != TW_OK)
        scratch_destroy(s);
    return st;
}

void scratch_destroy(scratch *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        device_free(s->dev, s->tensor[i].block);
        device_free(s->dev, s->tensor[i].initial);
    }
    s->n = 0;
}

static tw_status reset(scratch *s, bool all)
{
    for (uint32_t i = 0; i < s->n; i++) {
        scratch_tensor *t = &s->tensor[i];
        if (t->is_output && (all || t->keeps_values))
            TRY(begin_block(s, t));
    }
    return TW_OK;
}

tw_status scratch_reset(scratch *s)
{
    return reset(s, true);
}

tw_status scratch_reset_inputs(scratch *s)
{
    return reset(s, false);
}

tw_status scratch_read(const scratch *s, uint32_t i, char *buffer)
{
    return gather_from(s->dev, &s->tensor[i], s->tensor[i].base, buffer);
}
