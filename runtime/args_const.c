/* Compile-time values: numbers by their kind, everything else by its name. */
#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include "compiler/base/namelist.h"
#include "runtime/args.h"
#include "runtime/lower.h"
#include <stdio.h>
#include <string.h>

const char *const_value_text(const kernel_source *src, uint32_t i, int64_t value, char out[32])
{
    const sig_const *c = &src->sig.cons[i];

    switch (c->kind) {
    case BIND_DTYPE:
        return dtype_name((enum dtype)value);
    case BIND_BOOL:
        return value ? "true" : "false";
    case BIND_ENUM:
        return c->member[value];
    case BIND_FN:
        return src->fn_text(src, value);
    case BIND_INT:
        break;
    }
    snprintf(out, 32, "%lld", (long long)value);
    return out;
}

/* ---- from text ------------------------------------------------------------------------------- */

static tw_status dtype_const(const sig_const *c, const char *text, int64_t *out)
{
    enum dtype t = dtype_parse(text);

    if (t == DT_NONE)
        return ARG_ERROR(NULL, "'%s': '%.40s' is not a dtype", c->name, text);
    if (!(c->dtypes >> t & 1))
        return ARG_ERROR(NULL, "'%s': the kernel does not allow %s here", c->name, text);
    *out = t;
    return TW_OK;
}

static tw_status enum_const(const sig_const *c, const char *text, int64_t *out)
{
    char hint[160];
    namelist l = namelist_begin(hint, sizeof hint, "it has ", ", ");

    for (uint32_t k = 0; k < c->nmembers; k++)
        if (strcmp(c->member[k], text) == 0)
            return *out = k, TW_OK;
    for (uint32_t k = 0; k < c->nmembers; k++)
        namelist_add(&l, "%s", c->member[k]);
    namelist_end(&l);
    return ARG_ERROR(hint, "'%s': the enumeration %s has no '%.40s'", c->name, c->type, text);
}

static tw_status fn_const(const kernel_source *src, uint32_t i, const char *text, int64_t *out)
{
    diag_list diags;
    arena a;

    arena_init(&a);
    diag_init(&diags, &a);
    tw_status st = src->fn_value(src, i, text, &diags, out);
    if (st != TW_OK)
        st = diags_failed(&diags, st);
    arena_release(&a);
    return st;
}

tw_status text_const(const kernel_source *src, uint32_t i, const char *text, int64_t *out)
{
    const sig_const *c = &src->sig.cons[i];
    bool good = false;

    switch (c->kind) {
    case BIND_DTYPE:
        return dtype_const(c, text, out);
    case BIND_ENUM:
        return enum_const(c, text, out);
    case BIND_FN:
        return fn_const(src, i, text, out);
    case BIND_BOOL:
        good = text_bool(text, out);
        break;
    case BIND_INT:
        good = text_int(text, out);
        break;
    }
    if (good)
        return TW_OK;
    return ARG_ERROR(NULL, "'%s': '%.40s' is not %s", c->name, text,
                     c->kind == BIND_BOOL ? "a bool (true or false)" : "an int");
}

/* ---- from an argument ------------------------------------------------------------------------ */

tw_status arg_const(const kernel_source *src, uint32_t i, const tw_arg *arg, int64_t *out)
{
    static const char *const type[] = {[BIND_DTYPE] = "dtype (give its name as text)",
                                       [BIND_INT] = "int",
                                       [BIND_BOOL] = "bool",
                                       [BIND_ENUM] = "enumeration (give a name as text)",
                                       [BIND_FN] = "function (give its name or text)"};
    enum binding_kind kind = src->sig.cons[i].kind;
    bool truth = arg->kind == TW_ARG_BOOL || arg->kind == TW_ARG_INT;

    if (arg->kind == TW_ARG_TEXT && arg->value.text)
        return text_const(src, i, arg->value.text, out);
    if (kind == BIND_BOOL && truth && (arg->value.i == 0 || arg->value.i == 1))
        return *out = arg->value.i, TW_OK;
    if (kind == BIND_INT && arg_int(arg, out))
        return TW_OK;
    return arg_is_not(arg, type[kind]);
}
