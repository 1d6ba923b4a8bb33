#include "compiler/base/check.h"
#include "runtime/args.h"
#include <stdio.h>

#define WIDE_ALIGN 16 /* bytes: the widest class that any target uses (128-bit accesses) */

/* ---- what disagrees with what ---------------------------------------------------------------- */

static const char *origin_text(const resolver *r, origin from, char out[96])
{
    const char *name = from.param >= 0 ? r->sig->param[from.param].name : "";

    if (from.param == ORIGIN_ARGUMENT)
        snprintf(out, 96, "the argument");
    else if (from.param == ORIGIN_BOUND)
        snprintf(out, 96, "the specialisation");
    else if (from.dim < 0)
        snprintf(out, 96, "the dtype of '%.40s'", name);
    else
        snprintf(out, 96, "dimension %d of '%.40s'", from.dim, name);
    return out;
}

tw_status bind_const(resolver *r, uint32_t i, int64_t value, origin from)
{
    ir_binding *b = &r->out->p.cons[i];
    char one[96], two[96], old[32], now[32];

    if (r->const_from[i].param == ORIGIN_NONE) {
        b->value = value;
        r->const_from[i] = from;
        return TW_OK;
    }
    if (b->value == value)
        return TW_OK;
    return ARG_ERROR(NULL, "'%s' is %s from %s, but %s from %s", r->sig->cons[i].name,
                     const_value_text(r->source, i, b->value, old),
                     origin_text(r, r->const_from[i], one),
                     const_value_text(r->source, i, value, now), origin_text(r, from, two));
}

static tw_status bind_symbol(resolver *r, uint32_t s, int64_t value, origin from)
{
    int64_t *symbol = &r->out->p.symbol[s];
    char one[96], two[96];

    if (r->symbol_from[s].param == ORIGIN_NONE) {
        *symbol = value;
        r->symbol_from[s] = from;
        return TW_OK;
    }
    if (*symbol == value)
        return TW_OK;
    return ARG_ERROR(NULL, "'%s' is %lld from %s, but %lld from %s", r->sig->symbol[s],
                     (long long)*symbol, origin_text(r, r->symbol_from[s], one), (long long)value,
                     origin_text(r, from, two));
}

/* ---- dtype and shape ------------------------------------------------------------------------- */

static enum dtype dtype_of(DLDataType d)
{
    static const struct {
        uint8_t code, bits;
    } row[DT_COUNT] = {
#define DTYPE(id, name, bits, kind, dlcode, dlbits) {dlcode, dlbits},
#include "compiler/ir/dtype.def"
#undef DTYPE
    };

    for (int t = 0; t < DT_COUNT; t++)
        if (row[t].code == d.code && row[t].bits == d.bits && d.lanes == 1)
            return (enum dtype)t;
    return DT_NONE;
}

static tw_status check_dtype(resolver *r, uint32_t i, DLDataType given)
{
    const sig_param *p = &r->sig->param[i];
    enum dtype t = dtype_of(given);

    if (t == DT_NONE)
        return ARG_ERROR(NULL, "tensor '%s': DLPack dtype code %d, %d bits, %d lanes is unknown",
                         p->name, given.code, given.bits, given.lanes);
    if (p->dtype_const < 0 && t != p->dtype)
        return ARG_ERROR(NULL, "tensor '%s' must be %s, not %s", p->name, dtype_name(p->dtype),
                         dtype_name(t));
    if (p->dtype_const < 0)
        return TW_OK;
    const sig_const *c = &r->sig->cons[p->dtype_const];
    if (!(c->dtypes >> t & 1))
        return ARG_ERROR(NULL, "tensor '%s': its dtype '%s' may not be %s", p->name, c->name,
                         dtype_name(t));
    return bind_const(r, (uint32_t)p->dtype_const, t, (origin){(int16_t)i, -1});
}

static tw_status check_extent(resolver *r, uint32_t i, int d, int64_t extent)
{
    const sig_param *p = &r->sig->param[i];
    const sig_dim *dim = &p->dim[d];
    origin from = {(int16_t)i, (int16_t)d};

    if (extent < 0)
        return ARG_ERROR(NULL, "tensor '%s': dimension %d is negative (%lld)", p->name, d,
                         (long long)extent);
    if (extent > INT32_MAX)
        return ARG_ERROR(NULL, "tensor '%s': dimension %d is %lld, above the limit of %d", p->name,
                         d, (long long)extent, INT32_MAX);
    switch (dim->kind) {
    case SIG_DIM_SYMBOL:
        return bind_symbol(r, (uint32_t)dim->index, extent, from);
    case SIG_DIM_CONST:
        return bind_const(r, (uint32_t)dim->index, extent, from);
    case SIG_DIM_LITERAL:
        break;
    }
    if (extent != dim->literal)
        return ARG_ERROR(NULL, "tensor '%s': dimension %d must be %lld, not %lld", p->name, d,
                         (long long)dim->literal, (long long)extent);
    return TW_OK;
}

/* ---- strides and addresses ------------------------------------------------------------------- */

static tw_status too_far(const sig_param *p)
{
    return ARG_ERROR(NULL, "tensor '%s' spans more bytes than an address can hold", p->name);
}

/* Row-major without gaps. */
static tw_status compact_strides(const sig_param *p, tensor_arg *t)
{
    int64_t stride = 1;

    for (int d = p->rank - 1; d >= 0; d--) {
        t->stride[d] = stride;
        if (t->extent[d] > 1 && __builtin_mul_overflow(stride, t->extent[d], &stride))
            return too_far(p);
    }
    return TW_OK;
}

/* What shape and strides say of where the elements are. */
static tw_status measure(const sig_param *p, const tensor_arg *t, int bytes, tensor_span *out)
{
    tensor_span s = {.above = bytes, .bytes = bytes};
    int last = p->rank - 1;

    for (int d = 0; d < p->rank; d++) {
        int64_t reach;
        if (t->extent[d] == 0) {
            *out = (tensor_span){.unit_inner = true, .bytes = bytes};
            return TW_OK;
        }
        if (__builtin_mul_overflow(t->extent[d] - 1, t->stride[d], &reach) ||
            __builtin_mul_overflow(reach, bytes, &reach) ||
            __builtin_add_overflow(reach < 0 ? s.below : s.above, reach,
                                   reach < 0 ? &s.below : &s.above))
            return too_far(p);
        if (d < last && t->extent[d] > 1)
            s.steps |= (uint64_t)t->stride[d] * (uint64_t)bytes;
    }
    s.unit_inner = last < 0 || t->extent[last] <= 1 || t->stride[last] == 1;
    *out = s;
    return TW_OK;
}

static tw_status check_memory(resolver *r, uint32_t i, const DLTensor *t)
{
    const sig_param *p = &r->sig->param[i];
    const tensor_arg *ta = &r->out->tensor[i];

    if (!r->dev->drv->reaches(r->dev, t->device))
        return ARG_ERROR("copy it to the device's memory first",
                         "tensor '%s' is in memory of DLPack device type %d, number %d, which "
                         "device '%s' cannot use",
                         p->name, (int)t->device.device_type, t->device.device_id, r->dev->spec);
    if (r->lo[i] == r->hi[i])
        return TW_OK;
    if (!t->data)
        return ARG_ERROR(NULL, "tensor '%s': data is NULL", p->name);
    if ((uintptr_t)ta->base % (unsigned)r->span[i].bytes)
        return ARG_ERROR(NULL, "tensor '%s' is not aligned to its elements of %d bytes", p->name,
                         r->span[i].bytes);
    for (int d = 0; d < p->rank && p->direction != DIR_IN; d++)
        if (ta->extent[d] > 1 && ta->stride[d] == 0)
            return ARG_ERROR("give it memory of its own for every element",
                             "tensor '%s' is written, but its dimension %d of %lld has stride 0",
                             p->name, d, (long long)ta->extent[d]);
    if (r->dev->drv->check_memory)
        return r->dev->drv->check_memory((tw_device *)r->dev, p->name, r->lo[i], r->hi[i]);
    return TW_OK;
}

static tw_status check_kind(const sig_param *p, const tw_arg *arg)
{
    const DLTensor *t = arg->value.tensor;

    if (arg->kind != TW_ARG_TENSOR)
        return ARG_ERROR(NULL, "argument '%s' must be a tensor", p->name);
    if (!t)
        return ARG_ERROR(NULL, "tensor '%s' is NULL", p->name);
    if (t->ndim != p->rank)
        return ARG_ERROR(NULL, "tensor '%s' must have %d dimension%s, not %d", p->name, p->rank,
                         p->rank == 1 ? "" : "s", t->ndim);
    if (t->ndim > 0 && !t->shape)
        return ARG_ERROR(NULL, "tensor '%s': shape is NULL", p->name);
    return TW_OK;
}

tw_status place_tensor(resolver *r, uint32_t i)
{
    const sig_param *p = &r->sig->param[i];
    const DLTensor *t = r->param[i]->value.tensor;
    const tensor_span *s = &r->span[i];
    bool empty = s->above == 0;
    uintptr_t base;

    if (__builtin_add_overflow((uintptr_t)t->data, t->data ? t->byte_offset : 0, &base))
        return too_far(p);
    r->out->tensor[i].base = (char *)base;
    r->lo[i] = r->hi[i] = 0;
    if (!empty && (__builtin_sub_overflow(base, 0 - (uintptr_t)s->below, &r->lo[i]) ||
                   __builtin_add_overflow(base, (uintptr_t)s->above, &r->hi[i])))
        return too_far(p);
    bool wide = empty || (base | s->steps) % WIDE_ALIGN == 0;
    r->out->p.facts[i] = (tensor_facts){s->unit_inner, wide ? WIDE_ALIGN : (uint16_t)s->bytes};
    return r->flags & RESOLVE_SHAPES_ONLY ? TW_OK : check_memory(r, i, t);
}

tw_status resolve_tensor(resolver *r, uint32_t i)
{
    const sig_param *p = &r->sig->param[i];
    tensor_arg *ta = &r->out->tensor[i];

    TRY(check_kind(p, r->param[i]));
    const DLTensor *t = r->param[i]->value.tensor;
    TRY(check_dtype(r, i, t->dtype));
    for (int d = 0; d < p->rank; d++) {
        TRY(check_extent(r, i, d, t->shape[d]));
        ta->extent[d] = t->shape[d];
        ta->stride[d] = t->strides ? t->strides[d] : 0;
    }
    if (!t->strides)
        TRY(compact_strides(p, ta));
    TRY(measure(p, ta, resolved_bytes(r, i), &r->span[i]));
    return place_tensor(r, i);
}
