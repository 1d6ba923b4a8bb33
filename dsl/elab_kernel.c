/* elab_kernel: a kernel and a value for each compile-time and tune parameter -> a module: the
 * kernel function and, over the same parameters, the launch function. */
#include "compiler/base/check.h"
#include "compiler/ir/irsig.h"
#include "dsl/elaborate.h"
#include "dsl/fn_text.h"
#include "dsl/signature.h"
#include <string.h>

void elab_init(elab *cx, const unit_ast *unit, const kernel_ast *k, arena *a, diag_list *diags)
{
    *cx = (elab){.a = a, .diags = diags, .unit = unit, .kernel = k, .mode = ELAB_CONST};
    cx->env = ARENA_ARRAY(a, value, unit->slots);
}

/* ---- compile-time values ---- */

static void report_binding(elab *cx, const decl *d, const char *text)
{
    diag_add(cx->diags, DIAG_BAD_BINDING, d->where, "'%s' %s", d->name, text);
}

static bool bind_name(elab *cx, const decl *d, const sig_const *c, int64_t n, value *v)
{
    const decl *fn = c->kind == BIND_FN ? fn_of_value(cx->unit, n) : NULL;

    if (fn && fn->fn->args.n == d->fn->args.n)
        *v = val_fn(fn);
    else if (c->kind == BIND_ENUM && n >= 0 && n < c->nmembers)
        *v = val_member(d->type->decl->members.at[n]);
    else
        report_binding(cx, d,
                       c->kind == BIND_FN ? "is another kind of function"
                                          : "is a member of its enumeration");
    return v->kind != VAL_BAD;
}

static bool bind_bracket(elab *cx, const decl *d, const sig_const *c, const ir_binding *b)
{
    value *v = &cx->env[d->slot];

    *v = val_bad();
    if (!b) {
        report_binding(cx, d, "needs a value");
        return false;
    }
    if (b->kind != c->kind) {
        static const char *const text[] = {"is a dtype", "is an int", "is a bool",
                                           "is a member of an enumeration", "is a function"};
        report_binding(cx, d, text[c->kind]);
        return false;
    }
    if (c->kind == BIND_ENUM || c->kind == BIND_FN)
        return bind_name(cx, d, c, b->value, v);
    if (c->kind == BIND_DTYPE &&
        (b->value < 0 || b->value >= DT_COUNT || !(c->dtypes >> b->value & 1))) {
        report_binding(cx, d, c->dtypes >> DT_I32 & 1 ? "is a dtype" : "is f16, bf16 or f32");
        return false;
    }
    *v = c->kind == BIND_DTYPE  ? val_dtype((enum dtype)b->value)
         : c->kind == BIND_BOOL ? val_bool(b->value != 0)
                                : val_int(b->value);
    return true;
}

static bool bind_knob(elab *cx, const decl *d, const ir_binding *b)
{
    cx->env[d->slot] = val_bad();
    if (!b || b->kind != BIND_INT) {
        report_binding(cx, d, b ? "is an int" : "needs a value");
        return false;
    }
    cx->env[d->slot] = val_int(b->value);
    return true;
}

bool elab_bindings(elab *cx, const kernel_sig *sig, const ir_binding *binding, uint32_t n)
{
    const kernel_ast *k = cx->kernel;
    bool good = true;

    for (uint32_t i = 0; i < k->brackets.n; i++) {
        const ir_binding *b = binding_find(binding, n, sig->cons[i].name);
        good = bind_bracket(cx, k->brackets.at[i], &sig->cons[i], b) && good;
    }
    for (uint32_t i = 0; i < k->knobs.n; i++)
        good = bind_knob(cx, k->knobs.at[i], binding_find(binding, n, sig->tune[i].name)) && good;
    return good;
}

/* ---- parameters ---- */

/* False, with a diagnostic, when the value of a dimension is none. */
static bool check_extents(elab *cx, const kernel_sig *sig, const ir_binding *binding, uint32_t n)
{
    bool good = true;

    for (uint32_t i = 0; i < sig->nparams; i++) {
        for (int32_t k = 0; k < sig->param[i].rank; k++) {
            const sig_dim *dim = &sig->param[i].dim[k];
            int64_t extent;
            if (dim->kind == SIG_DIM_SYMBOL || sig_extent(sig, dim, binding, n, &extent))
                continue;
            diag_add(cx->diags, DIAG_BAD_BINDING, cx->kernel->params.at[i]->type->list.at[k]->where,
                     "the dimension '%s' is %lld; it lies between 0 and 2^31 - 1",
                     dim->kind == SIG_DIM_CONST ? sig->cons[dim->index].name : "",
                     (long long)extent);
            good = false;
        }
    }
    return good;
}

/* From here on IR goes to the end of fn, whose dimensions and, but for tensors, parameters have
 * values. */
static void enter_fn(elab *cx, ir_fn *fn, enum elab_mode mode)
{
    const kernel_ast *k = cx->kernel;

    cx->mode = mode;
    cx->b = ir_at_end(fn, fn->body);
    cx->b.where = k->self->where;
    for (uint32_t i = 0; i < k->dims.n; i++)
        cx->env[k->dims.at[i]->slot] = val_run(ir_dim_value(&cx->b, (int)i));
    for (uint32_t i = 0; i < k->params.n; i++) {
        const decl *d = k->params.at[i];
        cx->env[d->slot] = d->kind == DECL_SCALAR ? val_run(ir_param_value(fn, (int)i))
                           : mode == ELAB_KERNEL  ? (value){.kind = VAL_VIEW, .as.tensor = d}
                                                  : (value){0};
    }
}

/* ---- the launch function ---- */

/* where(given, passed, default) for every scalar that has a default, in order. */
static void launch_defaults(elab *cx, const kernel_sig *sig, ir_val *result)
{
    int given = (int)(sig->nparams + sig->nsymbols), n = 3;

    for (uint32_t i = 0; i < sig->nparams; i++) {
        const decl *d = cx->kernel->params.at[i];
        ir_val passed = ir_param_value(cx->b.fn, (int)i);
        if (d->kind != DECL_SCALAR)
            continue;
        result[n] = passed;
        if (d->init) {
            ir_val flag = ir_param_value(cx->b.fn, given++);
            value v = elab_expr(cx, d->init);
            const char *user = arena_printf(cx->a, "the default of '%s'", d->name);
            ir_val otherwise = val_as(cx, &v, ir_type_of(cx->b.fn, passed), d->init, user);
            cx->b.where = d->init->where;
            if (otherwise)
                result[n] = ir_where(&cx->b, flag, passed, otherwise);
        }
        cx->env[d->slot] = val_run(result[n++]);
    }
}

/* One that is false already is the caller's mistake about compile-time values. */
static void launch_require(elab *cx, const expr *e)
{
    value v = elab_expr(cx, e);
    const char *text = ast_source_text(e, cx->a, 200);

    if (!elab_need_condition(cx, &v, e, "a require clause"))
        return;
    cx->b.where = e->where;
    if (v.kind == VAL_RUN)
        ir_assert(&cx->b, v.as.run, text);
    else if (!v.as.num.i)
        diag_add(cx->diags, DIAG_BAD_BINDING, e->where,
                 "these compile-time values do not meet "
                 "'%s'",
                 text);
}

static ir_val launch_extent(elab *cx, const expr *e)
{
    value v = elab_expr(cx, e);

    cx->b.where = e->where;
    if (v.kind == VAL_CONST && v.cls == CLASS_INT)
        return ir_const_int(&cx->b, DT_I64, v.as.num.i);
    if (v.kind == VAL_RUN && dtype_is_int(val_dtype_of(cx, &v)))
        return ir_cast(&cx->b, v.as.run, DT_I64);
    if (v.kind != VAL_BAD)
        elab_error(cx, DIAG_TYPE_MISMATCH, e->where, "an extent of the grid is an integer, not %s",
                   val_text(cx, &v));
    return 0;
}

static void build_launch(elab *cx, ir_fn *fn, const kernel_sig *sig)
{
    const kernel_ast *k = cx->kernel;
    ir_val result[3 + SIGNATURE_MAX_PARAMS] = {0};
    uint32_t scalars = 0;

    enter_fn(cx, fn, ELAB_HOST);
    launch_defaults(cx, sig, result);
    for (uint32_t i = 0; i < k->require.n; i++)
        launch_require(cx, k->require.at[i]);
    for (uint32_t i = 0; i < 3; i++)
        result[i] =
            i < k->grid.n ? launch_extent(cx, k->grid.at[i]) : ir_const_int(&cx->b, DT_I64, 1);
    for (uint32_t i = 0; i < k->params.n; i++)
        scalars += k->params.at[i]->kind == DECL_SCALAR;
    if (result[0] && result[1] && result[2])
        ir_return(&cx->b, result, (int)(3 + scalars));
}

/* ---- */

/* The worst there is: a wrong program, or wrong values for a right one; else what is only out of
 * reach. */
static tw_status status_of(const diag_list *diags)
{
    tw_status st = TW_OK;

    for (uint32_t i = 0; i < diags->all.n; i++) {
        const diag *d = diags->all.at[i];
        if (d->severity == DIAG_WARNING)
            continue;
        if (d->id == DIAG_BAD_BINDING)
            return TW_E_ARG;
        if (d->id != DIAG_LIMIT)
            st = TW_E_SOURCE;
        else if (st != TW_E_SOURCE)
            st = TW_E_LIMIT;
    }
    return st;
}

tw_status elab_lower(const unit_ast *unit, const kernel_ast *k, const kernel_sig *sig, arena *a,
                     intern *names, const ir_binding *binding, uint32_t nbinding, diag_list *diags,
                     ir_module **out)
{
    uint32_t before = diags->errors;
    elab cx;

    elab_init(&cx, unit, k, a, diags);
    if (!elab_bindings(&cx, sig, binding, nbinding) ||
        !check_extents(&cx, sig, binding, nbinding))
        return status_of(diags);
    ir_module *m = sig_module(sig, a, names, binding, nbinding);
    build_launch(&cx, m->launch, sig);
    if (diags->errors > before && status_of(diags) == TW_E_ARG)
        return TW_E_ARG;
    enter_fn(&cx, m->kernel, ELAB_KERNEL);
    elab_stmt(&cx, k->body);
    if (diags->errors > before)
        return status_of(diags);
    ir_return(&cx.b, NULL, 0);
    *out = m;
    return TW_OK;
}
