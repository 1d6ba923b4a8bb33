#include "runtime/args.h"
#include "compiler/base/check.h"
#include <stdio.h>
#include <string.h>

/* ---- names ----------------------------------------------------------------------------------- */

static tw_status unknown_name(const kernel_sig *sig, const char *name)
{
    const char *known[RUNTIME_MAX_PARAMS + RUNTIME_MAX_CONSTS];
    char hint[120];
    size_t n = 0;

    for (uint32_t i = 0; i < sig->ntunes; i++)
        if (strcmp(sig->tune[i].name, name) == 0)
            return ARG_ERROR("pin it in the configuration, or leave it to the tuner",
                             "'%s' is a tune parameter of kernel '%s', not an argument", name,
                             sig->name);
    for (uint32_t i = 0; i < sig->nsymbols; i++)
        if (strcmp(sig->symbol[i], name) == 0)
            return ARG_ERROR("leave it out: the tensors' shapes say it",
                             "'%s' is a dimension of kernel '%s', not an argument", name,
                             sig->name);
    for (uint32_t i = 0; i < sig->nparams; i++)
        known[n++] = sig->param[i].name;
    for (uint32_t i = 0; i < sig->nconsts; i++)
        known[n++] = sig->cons[i].name;
    const char *near = diag_nearest(name, known, n);
    snprintf(hint, sizeof hint, "did you mean '%s'?", near ? near : "");
    return ARG_ERROR(near ? hint : NULL, "kernel '%s' has no parameter '%s'", sig->name, name);
}

/* Where the argument for a name goes. Arguments mostly come in parameter order: *next is tried
 * first. */
static const tw_arg **place_of(resolver *r, const char *name, uint32_t *next)
{
    const kernel_sig *sig = r->sig;

    for (uint32_t k = 0; k < sig->nparams; k++) {
        uint32_t i = *next + k < sig->nparams ? *next + k : *next + k - sig->nparams;
        if (sig->param[i].name[0] == name[0] && strcmp(sig->param[i].name, name) == 0) {
            *next = i + 1 < sig->nparams ? i + 1 : 0;
            return &r->param[i];
        }
    }
    for (uint32_t i = 0; i < sig->nconsts; i++)
        if (strcmp(sig->cons[i].name, name) == 0)
            return &r->cons[i];
    return NULL;
}

/* Keeps the place of one by position. */
static bool is_left_out(const tw_arg *arg)
{
    return arg->kind == TW_ARG_TEXT && !arg->value.text;
}

static tw_status match_names(resolver *r, const tw_arg *args, size_t count)
{
    uint32_t next = 0;

    for (size_t i = 0; i < count; i++) {
        if (!args[i].name)
            return ARG_ERROR(NULL, "argument %zu of kernel '%s' has no name", i, r->sig->name);
        const tw_arg **place = place_of(r, args[i].name, &next);
        if (!place)
            return unknown_name(r->sig, args[i].name);
        if (*place)
            return ARG_ERROR(NULL, "argument '%s' is given twice", args[i].name);
        if (!is_left_out(&args[i]))
            *place = &args[i];
    }
    return TW_OK;
}

static tw_status match_positions(resolver *r, const tw_arg *args, size_t count)
{
    if (count > r->sig->nparams) /* fewer: defaults, or what is missing is named */
        return ARG_ERROR(NULL, "kernel '%s' takes %u tensors and scalars by position, not %zu",
                         r->sig->name, r->sig->nparams, count);
    for (size_t i = 0; i < count; i++)
        r->param[i] = is_left_out(&args[i]) ? NULL : &args[i];
    return TW_OK;
}

/* ---- compile-time values and scalars --------------------------------------------------------- */

static tw_status resolve_given_consts(resolver *r)
{
    const kernel_sig *sig = r->sig;

    for (uint32_t i = 0; i < sig->nconsts; i++) {
        ir_binding *b = &r->out->p.cons[i];
        r->const_from[i].param = r->flags & RESOLVE_BY_POSITION ? ORIGIN_BOUND : ORIGIN_NONE;
        b->name = sig->cons[i].name;
        b->kind = sig->cons[i].kind;
        if (!r->cons[i])
            continue;
        int64_t v;
        TRY(arg_const(r->source, i, r->cons[i], &v));
        TRY(bind_const(r, i, v, (origin){ORIGIN_ARGUMENT, 0}));
    }
    return TW_OK;
}

static tw_status default_consts(resolver *r)
{
    const kernel_sig *sig = r->sig;

    for (uint32_t i = 0; i < sig->nconsts; i++) {
        if (r->const_from[i].param != ORIGIN_NONE)
            continue;
        if (sig->cons[i].has_default)
            TRY(bind_const(r, i, sig->cons[i].default_value, (origin){ORIGIN_DEFAULT, 0}));
        else if (!(r->flags & RESOLVE_SHAPES_ONLY))
            return ARG_ERROR(NULL, "compile-time value '%s' of kernel '%s' is not given",
                             sig->cons[i].name, sig->name);
    }
    return TW_OK;
}

static tw_status resolve_scalar(resolver *r, uint32_t i)
{
    const sig_param *p = &r->sig->param[i];
    enum dtype t = p->dtype;

    if (p->dtype_const >= 0) {
        if (r->const_from[p->dtype_const].param == ORIGIN_NONE)
            return TW_OK; /* shapes only, and no tensor says it */
        t = (enum dtype)r->out->p.cons[p->dtype_const].value;
    }
    return arg_scalar(p->name, r->param[i], t, &r->out->scalar[i]);
}

static tw_status missing(const resolver *r, uint32_t i)
{
    const sig_param *p = &r->sig->param[i];

    return ARG_ERROR(NULL, "%s '%s' of kernel '%s' is not given",
                     p->is_tensor ? "tensor" : "scalar", p->name, r->sig->name);
}

static tw_status resolve_params(resolver *r, bool tensors)
{
    const kernel_sig *sig = r->sig;

    for (uint32_t i = 0; i < sig->nparams; i++) {
        if (sig->param[i].is_tensor != tensors)
            continue;
        if (r->param[i]) {
            r->out->given |= (uint64_t)1 << i;
            TRY(tensors ? resolve_tensor(r, i) : resolve_scalar(r, i));
        } else if ((tensors || !sig->param[i].has_default) && !(r->flags & RESOLVE_SHAPES_ONLY)) {
            return missing(r, i);
        }
    }
    return TW_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void resolver_clear(resolver *r)
{
    const kernel_sig *sig = r->sig;

    memset(r->param, 0, sizeof *r->param * sig->nparams);
    memset(r->cons, 0, sizeof *r->cons * sig->nconsts);
    for (uint32_t i = 0; i < sig->nsymbols; i++)
        r->symbol_from[i].param = ORIGIN_NONE;
    r->out->given = r->out->values = 0;
    r->out->p.nconsts = sig->nconsts;
    r->out->p.content = (hash128){0, 0};
}

tw_status resolver_run(resolver *r, const tw_arg *args, size_t count)
{
    resolver_clear(r);
    if (count > 0 && !args)
        return ARG_ERROR(NULL, "args is NULL but count is %zu", count);
    if (r->flags & RESOLVE_BY_POSITION)
        TRY(match_positions(r, args, count));
    else
        TRY(match_names(r, args, count));
    TRY(resolve_given_consts(r));
    TRY(resolve_params(r, true));
    TRY(default_consts(r));
    TRY(resolve_params(r, false));
    return r->flags & RESOLVE_SHAPES_ONLY ? TW_OK : check_overlaps(r);
}

tw_status resolver_start(resolver *r, const tw_kernel *k, const tw_device *dev, unsigned flags,
                         launch_args *out)
{
    if (dev && dev->cx != k->cx) /* its code would outlive the device that it is for */
        return ARG_ERROR(NULL, "kernel '%s' and device '%s' are of two contexts",
                         k->source->sig.name, dev->spec);
    r->source = k->source;
    r->sig = &k->source->sig;
    r->dev = dev;
    r->flags = flags;
    r->out = out;
    return TW_OK;
}

tw_status runtime_resolve_args(const tw_kernel *k, const tw_device *dev, const tw_arg *args,
                               size_t count, unsigned flags, launch_args *out)
{
    resolver r; /* not cleared: large, and only what the signature names is used */

    TRY(resolver_start(&r, k, dev, flags, out));
    return resolver_run(&r, args, count);
}
