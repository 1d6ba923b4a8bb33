/* What each thread launched last, by name or bound. A call whose arguments differ from it in
 * nothing but where its tensors lie finds names, dtypes, shapes and values resolved; where they lie
 * is checked anew. Worth, for attention with eight arguments: half of the library's time. */
#include "compiler/base/check.h"
#include "runtime/args.h"
#include <string.h>

enum { MEMO_ARGS = 24 };

typedef struct memo_arg {
    const char *name; /* the signature's */
    int place;        /* of a tensor: its parameter */
    tw_arg_kind kind;
    int64_t bits; /* of a number */
    int32_t rank;
    bool has_strides;
    DLDataType dtype;
    DLDevice device;
    int64_t shape[VIEW_MAX_RANK], stride[VIEW_MAX_RANK];
} memo_arg;

static _Thread_local struct memo {
    uint64_t owner; /* serial number of a kernel or of a bound one; 0: nothing is kept */
    size_t count;
    memo_arg arg[MEMO_ARGS];
    resolver r;
    launch_args out;
} memo;

/* ---- keeping --------------------------------------------------------------------------------- */

static void keep_tensor(memo_arg *m, const DLTensor *t)
{
    size_t size = (size_t)t->ndim * sizeof *t->shape;

    m->rank = t->ndim;
    m->dtype = t->dtype;
    m->device = t->device;
    m->has_strides = t->strides != NULL;
    memcpy(m->shape, t->shape, size);
    if (t->strides)
        memcpy(m->stride, t->strides, size);
}

static void keep_place(memo_arg *m, const tw_arg *arg)
{
    const resolver *r = &memo.r;

    for (uint32_t i = 0; i < r->sig->nparams; i++) {
        if (r->param[i] == arg) {
            m->place = (int)i;
            m->name = r->sig->param[i].name;
        }
    }
    for (uint32_t i = 0; i < r->sig->nconsts; i++)
        if (r->cons[i] == arg)
            m->name = r->sig->cons[i].name;
}

/* Texts may be other ones at the same place, and are seldom given; none is what keeps a place. */
static void keep(uint64_t owner, bool named, const tw_arg *args, size_t count)
{
    if (count > MEMO_ARGS)
        return;
    for (size_t i = 0; i < count; i++) {
        memo_arg *m = &memo.arg[i];
        if (args[i].kind == TW_ARG_TEXT && (named || args[i].value.text))
            return;
        m->kind = args[i].kind;
        keep_place(m, &args[i]);
        if (m->kind == TW_ARG_TENSOR)
            keep_tensor(m, args[i].value.tensor);
        else
            m->bits = args[i].value.i;
    }
    memo.count = count;
    memo.owner = owner;
    memo.out.values = runtime_serial();
}

/* ---- finding --------------------------------------------------------------------------------- */

static bool same_numbers(const int64_t *a, const int64_t *b, int n)
{
    for (int i = 0; i < n; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static bool same_tensor(const memo_arg *m, const DLTensor *t)
{
    return t && t->ndim == m->rank && t->dtype.code == m->dtype.code &&
           t->dtype.bits == m->dtype.bits && t->dtype.lanes == m->dtype.lanes &&
           t->device.device_type == m->device.device_type &&
           t->device.device_id == m->device.device_id && (t->strides != NULL) == m->has_strides &&
           (m->rank == 0 || t->shape) && same_numbers(t->shape, m->shape, m->rank) &&
           (!t->strides || same_numbers(t->strides, m->stride, m->rank));
}

static bool same_name(const memo_arg *m, const tw_arg *arg)
{
    return arg->name && strcmp(arg->name, m->name) == 0;
}

static bool is_kept(uint64_t owner, bool named, const tw_arg *args, size_t count)
{
    if (memo.owner != owner || memo.count != count || (count && !args))
        return false;
    for (size_t i = 0; i < count; i++) {
        const memo_arg *m = &memo.arg[i];
        if (args[i].kind != m->kind || (named && !same_name(m, &args[i])))
            return false;
        if (m->kind == TW_ARG_TENSOR ? !same_tensor(m, args[i].value.tensor)
                                     : args[i].value.i != m->bits)
            return false;
    }
    return true;
}

/* Tensors of the same shapes, elsewhere. */
static tw_status place_tensors(const tw_device *dev, const tw_arg *args, size_t count)
{
    resolver *r = &memo.r;

    r->dev = dev;
    r->out->p.content = (hash128){0, 0};
    for (size_t i = 0; i < count; i++) {
        const memo_arg *m = &memo.arg[i];
        if (m->kind != TW_ARG_TENSOR)
            continue;
        r->param[m->place] = &args[i];
        TRY(place_tensor(r, (uint32_t)m->place));
    }
    return check_overlaps(r);
}

tw_status runtime_resolve_named(const tw_kernel *k, const tw_device *dev, const tw_arg *args,
                                size_t count, launch_args **out)
{
    *out = &memo.out;
    if (is_kept(k->serial, true, args, count) && dev->cx == k->cx)
        return place_tensors(dev, args, count);
    memo.owner = 0;
    TRY(resolver_start(&memo.r, k, dev, 0, &memo.out));
    TRY(resolver_run(&memo.r, args, count));
    keep(k->serial, true, args, count);
    return TW_OK;
}

tw_status runtime_resolve_bound(uint64_t serial, const executable *exe, const tw_arg *args,
                                size_t count, launch_args **out)
{
    *out = &memo.out;
    if (is_kept(serial, false, args, count))
        return place_tensors(exe->device, args, count);
    memo.owner = 0;
    for (uint32_t i = 0; i < exe->p.nconsts; i++)
        memo.out.p.cons[i].value = exe->p.cons[i].value;
    TRY(resolver_start(&memo.r, exe->kernel, exe->device, RESOLVE_BY_POSITION, &memo.out));
    TRY(resolver_run(&memo.r, args, count));
    keep(serial, false, args, count);
    return TW_OK;
}
