/* What a kernel says about itself: its parameters, and the shapes that its arguments imply. */
#include "runtime/kernel_info.h"
#include "compiler/base/check.h"
#include "runtime/args.h"
#include <string.h>

/* ---- parameters ------------------------------------------------------------------------------ */

static const char *dim_text(const kernel_sig *sig, const sig_dim *d, arena *a)
{
    switch (d->kind) {
    case SIG_DIM_SYMBOL:
        return sig->symbol[d->index];
    case SIG_DIM_CONST:
        return sig->cons[d->index].name;
    case SIG_DIM_LITERAL:
        break;
    }
    return arena_printf(a, "%lld", (long long)d->literal);
}

static tw_param_info describe_param(const kernel_sig *sig, const sig_param *p, arena *a)
{
    static const tw_direction direction[] = {
        [DIR_IN] = TW_IN, [DIR_OUT] = TW_OUT, [DIR_INOUT] = TW_INOUT};
    tw_param_info info = TW_PARAM_INFO_INIT;

    info.name = p->name;
    info.kind = p->is_tensor ? TW_PARAM_TENSOR : TW_PARAM_SCALAR;
    info.direction = direction[p->direction];
    info.type = p->dtype_const < 0 ? dtype_name(p->dtype) : sig->cons[p->dtype_const].name;
    info.rank = p->is_tensor ? p->rank : 0;
    for (int d = 0; d < info.rank; d++)
        info.dims[d] = dim_text(sig, &p->dim[d], a);
    info.has_default = p->has_default;
    info.value = p->default_text;
    return info;
}

static tw_param_info describe_const(const kernel_source *src, uint32_t i, arena *a)
{
    const sig_const *c = &src->sig.cons[i];
    static const char *const type[] = {
        [BIND_DTYPE] = "dtype", [BIND_INT] = "int", [BIND_BOOL] = "bool"};
    bool named = c->kind == BIND_ENUM || c->kind == BIND_FN;
    tw_param_info info = TW_PARAM_INFO_INIT;

    info.name = c->name;
    info.kind = TW_PARAM_CONST;
    info.type = named ? c->type : type[c->kind];
    info.has_default = c->has_default;
    if (c->has_default) {
        char text[32];
        info.value = arena_printf(a, "%s", const_value_text(src, i, c->default_value, text));
    }
    return info;
}

/* "64, 32; on cpu-amx: 128, 64" */
static const char *sets_text(const sig_tune *t, arena *a)
{
    strbuf b;

    sb_init(&b, a);
    for (uint32_t i = 0; i < t->nsets; i++) {
        const struct sig_set *set = &t->set[i];
        sb_str(&b, i ? "; " : "");
        if (*set->target)
            sb_fmt(&b, "on %s: ", set->target);
        for (uint32_t k = 0; k < set->n; k++)
            sb_fmt(&b, "%s%lld", k ? ", " : "", (long long)set->value[k]);
    }
    return b.s;
}

void kernel_describe(tw_kernel *k)
{
    const kernel_sig *sig = &k->source->sig;
    tw_param_info *at = ARENA_ARRAY(&k->a, tw_param_info, tw_kernel_param_count(k));

    k->params = at;
    for (uint32_t i = 0; i < sig->nparams; i++)
        *at++ = describe_param(sig, &sig->param[i], &k->a);
    for (uint32_t i = 0; i < sig->nconsts; i++)
        *at++ = describe_const(k->source, i, &k->a);
    for (uint32_t i = 0; i < sig->ntunes; i++, at++) {
        *at = (tw_param_info)TW_PARAM_INFO_INIT;
        at->name = sig->tune[i].name;
        at->kind = TW_PARAM_TUNE;
        at->type = "int";
        at->has_default = true;
        at->value = sets_text(&sig->tune[i], &k->a);
    }
}

const char *tw_kernel_name(const tw_kernel *k)
{
    return k ? k->source->sig.name : "";
}

const char *tw_kernel_warnings(const tw_kernel *k)
{
    return k && k->warnings ? k->warnings : "";
}

tw_status tw_kernel_set_checked(tw_kernel *k)
{
    error_clear();
    if (!k || atomic_load(&k->uses))
        return error_set(TW_E_ARG, "tw_kernel_set_checked: k is NULL, or was used before");
    k->checked = true;
    return TW_OK;
}

size_t tw_kernel_param_count(const tw_kernel *k)
{
    const kernel_sig *sig = k ? &k->source->sig : NULL;

    return sig ? (size_t)sig->nparams + sig->nconsts + sig->ntunes : 0;
}

tw_status tw_kernel_param(const tw_kernel *k, size_t i, tw_param_info *info)
{
    error_clear();
    if (!k || !info || info->size < sizeof info->size || info->size > 4096)
        return error_set(TW_E_ARG, "tw_kernel_param: k or info is NULL, or info has no size");
    if (i >= tw_kernel_param_count(k))
        return error_set(TW_E_ARG,
                         "tw_kernel_param: kernel '%s' has %zu parameters and none at %zu",
                         tw_kernel_name(k), tw_kernel_param_count(k), i);
    size_t size = info->size;
    memcpy(info, &k->params[i], size < sizeof *info ? size : sizeof *info);
    info->size = size;
    return TW_OK;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static DLDataType dl_dtype(enum dtype t)
{
    static const DLDataType row[DT_COUNT] = {
#define DTYPE(id, name, bits, kind, dlcode, dlbits) {dlcode, dlbits, 1},
#include "compiler/ir/dtype.def"
#undef DTYPE
    };
    return row[t];
}

static tw_status unknown_here(const char *what, const char *param)
{
    return ARG_ERROR("give a tensor that says it",
                     "'%s' of tensor '%s' is not known from the "
                     "arguments given",
                     what, param);
}

static tw_status shape_dim(const resolver *r, const sig_param *p, int d, int64_t *out)
{
    const sig_dim *dim = &p->dim[d];

    switch (dim->kind) {
    case SIG_DIM_SYMBOL:
        if (r->symbol_from[dim->index].param == ORIGIN_NONE)
            return unknown_here(r->sig->symbol[dim->index], p->name);
        *out = r->out->p.symbol[dim->index];
        return TW_OK;
    case SIG_DIM_CONST:
        if (r->const_from[dim->index].param == ORIGIN_NONE)
            return unknown_here(r->sig->cons[dim->index].name, p->name);
        *out = r->out->p.cons[dim->index].value;
        return *out >= 0 ? TW_OK : unknown_here(r->sig->cons[dim->index].name, p->name);
    case SIG_DIM_LITERAL:
        break;
    }
    *out = dim->literal;
    return TW_OK;
}

static tw_status shape_of(const resolver *r, const sig_param *p, int *rank, int64_t *dims,
                          DLDataType *dtype)
{
    int64_t extent[VIEW_MAX_RANK];
    enum dtype t = p->dtype;

    if (p->dtype_const >= 0) {
        if (r->const_from[p->dtype_const].param == ORIGIN_NONE)
            return unknown_here(r->sig->cons[p->dtype_const].name, p->name);
        t = (enum dtype)r->out->p.cons[p->dtype_const].value;
    }
    for (int d = 0; d < p->rank; d++)
        TRY(shape_dim(r, p, d, &extent[d]));
    memcpy(dims, extent, sizeof *dims * (size_t)p->rank);
    *rank = p->rank;
    *dtype = dl_dtype(t);
    return TW_OK;
}

tw_status tw_kernel_shape(tw_kernel *k, const tw_arg *args, size_t count, const char *name,
                          int *rank, int64_t *dims, DLDataType *dtype)
{
    launch_args out;
    resolver r;

    error_clear();
    if (!k || !name || !rank || !dims || !dtype)
        return error_set(TW_E_ARG, "tw_kernel_shape: k, name, rank, dims or dtype is NULL");
    r.source = k->source;
    r.sig = &k->source->sig;
    r.dev = NULL;
    r.flags = RESOLVE_SHAPES_ONLY;
    r.out = &out;
    TRY(resolver_run(&r, args, count));
    for (uint32_t i = 0; i < r.sig->nparams; i++)
        if (r.sig->param[i].is_tensor && strcmp(r.sig->param[i].name, name) == 0)
            return shape_of(&r, &r.sig->param[i], rank, dims, dtype);
    return ARG_ERROR(NULL, "kernel '%s' has no tensor '%.60s'", r.sig->name, name);
}
