/* elab_call: calls: built-ins by table, functions by inlining. */
#include "compiler/base/check.h"
#include "dsl/elaborate.h"

#define MAX_BUILTIN_ARGS 5

typedef value (*builtin_fn)(elab *cx, const expr *e, value *v);

static const builtin_fn elaborate[BUILTIN_COUNT] = {
    [BUILTIN_PROGRAM_ID] = elab_make,
    [BUILTIN_NUM_PROGRAMS] = elab_make,
    [BUILTIN_ARANGE] = elab_make,
    [BUILTIN_ZEROS] = elab_make,
    [BUILTIN_FULL] = elab_make,
    [BUILTIN_LOAD] = elab_memory,
    [BUILTIN_STORE] = elab_memory,
    [BUILTIN_ATOMIC_ADD] = elab_memory,
    [BUILTIN_ATOMIC_MAX] = elab_memory,
    [BUILTIN_ATOMIC_MIN] = elab_memory,
    [BUILTIN_ATOMIC_XCHG] = elab_memory,
    [BUILTIN_ATOMIC_CAS] = elab_memory,
    [BUILTIN_DOT] = elab_dot,
    [BUILTIN_TRANS] = elab_shape,
    [BUILTIN_BROADCAST] = elab_shape,
    [BUILTIN_RESHAPE] = elab_shape,
    [BUILTIN_MAX] = elab_reduce,
    [BUILTIN_MIN] = elab_reduce,
    [BUILTIN_SUM] = elab_reduce,
    [BUILTIN_ARGMAX] = elab_reduce,
    [BUILTIN_ARGMIN] = elab_reduce,
    [BUILTIN_CUMSUM] = elab_reduce,
    [BUILTIN_CUMPROD] = elab_reduce,
    [BUILTIN_REDUCE] = elab_fold_along,
    [BUILTIN_SCAN] = elab_fold_along,
    [BUILTIN_WHERE] = elab_special,
    [BUILTIN_CAST] = elab_special,
    [BUILTIN_BITCAST] = elab_special,
    [BUILTIN_MAXIMUM] = elab_elementwise,
    [BUILTIN_MINIMUM] = elab_elementwise,
    [BUILTIN_CLAMP] = elab_special,
    [BUILTIN_RUNNING_MAX] = elab_elementwise,
    [BUILTIN_CDIV] = elab_special,
    [BUILTIN_FMA] = elab_elementwise,
    [BUILTIN_ABS] = elab_elementwise,
    [BUILTIN_EXP] = elab_elementwise,
    [BUILTIN_EXP2] = elab_elementwise,
    [BUILTIN_LOG] = elab_elementwise,
    [BUILTIN_LOG2] = elab_elementwise,
    [BUILTIN_SIN] = elab_elementwise,
    [BUILTIN_COS] = elab_elementwise,
    [BUILTIN_TANH] = elab_elementwise,
    [BUILTIN_ERF] = elab_elementwise,
    [BUILTIN_SQRT] = elab_elementwise,
    [BUILTIN_RSQRT] = elab_elementwise,
    [BUILTIN_FLOOR] = elab_elementwise,
    [BUILTIN_CEIL] = elab_elementwise,
    [BUILTIN_PHILOX] = elab_random,
    [BUILTIN_UNIFORM] = elab_random,
    [BUILTIN_ASSERT] = elab_check,
    [BUILTIN_STATIC_ASSERT] = elab_check,
    [BUILTIN_PRINT] = elab_print,
};

static value call_builtin(elab *cx, const expr *e, int id)
{
    value v[MAX_BUILTIN_ARGS] = {{0}};
    bool good = true;

    ICHECK(e->list.n <= MAX_BUILTIN_ARGS, "resolve counts the arguments of a built-in");
    for (uint32_t i = 0; i < e->list.n; i++) {
        v[i] = elab_expr(cx, e->list.at[i]);
        good = good && v[i].kind != VAL_BAD;
    }
    return good ? elaborate[id](cx, e, v) : val_bad();
}

/* The body of a function, then its last statement's value. */
static value inline_body(elab *cx, const fn_body *fn)
{
    const stmt_list *body = &fn->body->body;
    value res = val_nothing();

    for (uint32_t i = 0; i < body->n && !cx->over; i++) {
        const stmt *s = body->at[i];
        elab_stmt(cx, s);
        if (s->kind == STMT_RETURN && s->cond)
            res = elab_expr(cx, s->cond);
    }
    return cx->over ? val_bad() : res;
}

/* Through functions that are passed, a function may come back to itself. */
static bool is_active(const elab *cx, const decl *d)
{
    for (uint32_t i = 0; i < cx->calls.n; i++) {
        if (cx->calls.at[i].fn == d)
            return true;
    }
    return false;
}

value elab_inline(elab *cx, const expr *e, const decl *d, const value *v, expr *const *from)
{
    span outer = cx->b.where;
    call_site site = {e->where, d};

    if (is_active(cx, d)) {
        elab_error(cx, DIAG_RECURSION, e->where, "'%s' calls itself", d->name);
        return val_bad();
    }
    vec_push(&cx->calls, cx->a, site);
    for (uint32_t i = 0; i < d->fn->args.n; i++)
        elab_bind(cx, d->fn->args.at[i], v[i], from[i]);
    value res = inline_body(cx, d->fn);
    cx->calls.n--;
    cx->b.where = outer;
    return res;
}

static value call_fn(elab *cx, const expr *e, const decl *d)
{
    value *v = ARENA_ARRAY(cx->a, value, e->list.n);

    for (uint32_t i = 0; i < e->list.n; i++)
        v[i] = elab_expr(cx, e->list.at[i]);
    return elab_inline(cx, e, d, v, e->list.at);
}

value elab_call(elab *cx, const expr *e)
{
    const decl *d = e->a->kind == EXPR_NAME ? e->a->decl : NULL;

    if (!d)
        return val_bad();
    if (d->kind == DECL_BUILTIN)
        return call_builtin(cx, e, d->id);
    if (d->kind == DECL_FN)
        return call_fn(cx, e, d);
    value f = elab_expr(cx, e->a); /* a parameter that is a function */
    return f.kind == VAL_FN ? call_fn(cx, e, f.as.decl) : val_bad();
}
