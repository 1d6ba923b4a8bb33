#include "dsl/extend.h"
#include "dsl/parse.h"

/* MAX_ANEW: bytes of text that are read again, since a few words repeat a whole kernel. */
enum { MAX_CHAIN = 16, MAX_ANEW = 4 << 20 };

typedef struct extending {
    const unit_list *units;
    arena *a;
    intern *names;
    diag_list *diags;
    uint32_t anew; /* bytes */
    const kernel_ast *whole; /* the kernel that is completed */
} extending;

/* ---- the base ---- */

static kernel_ast *kernel_named(const unit_ast *unit, const char *name)
{
    for (uint32_t i = 0; i < unit->top.n; i++) {
        const decl *d = unit->top.at[i];
        if (d->kind == DECL_KERNEL && d->name == name)
            return d->kernel;
    }
    return NULL;
}

static const kernel_ast *base_of(const extending *x, const kernel_ast *k)
{
    const kernel_ast *base = NULL;

    for (uint32_t i = 0; i < x->units->n && !base; i++)
        base = kernel_named(x->units->at[i], k->base);
    return base;
}

static void report_unknown(const extending *x, const kernel_ast *k)
{
    VEC(const char *) known = {0};

    for (uint32_t i = 0; i < x->units->n; i++) {
        const decl_list *top = &x->units->at[i]->top;
        for (uint32_t j = 0; j < top->n; j++) {
            if (top->at[j]->kind == DECL_KERNEL && top->at[j] != k->self)
                vec_push(&known, x->a, top->at[j]->name);
        }
    }
    diag *d =
        diag_add(x->diags, DIAG_UNKNOWN_NAME, k->base_at, "no kernel here is called '%s'", k->base);
    const char *near = diag_nearest(k->base, known.at, known.n);
    if (near)
        diag_hint(x->diags, d, "did you mean '%s'?", near);
    else
        diag_hint(x->diags, d, "import the file that declares it");
}

/* ---- what takes the place of what ---- */

static decl *decl_named(const decl_list *list, const char *name)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (list->at[i]->name == name)
            return list->at[i];
    }
    return NULL;
}

static const decl *fn_named(const kernel_ast *k, const char *name)
{
    for (uint32_t i = 0; i < k->body->body.n; i++) {
        const stmt *s = k->body->body.at[i];
        if (s->kind == STMT_FN && s->decls.n && s->decls.at[0]->name == name)
            return s->decls.at[0];
    }
    return NULL;
}

/* Those of the base, some replaced or (a function that the body declares) dropped; then k's own. */
static decl_list merged(const extending *x, const decl_list *base, const decl_list *own,
                        const kernel_ast *k)
{
    decl_list out = {0};

    for (uint32_t i = 0; i < base->n; i++) {
        decl *d = base->at[i], *instead = decl_named(own, d->name);
        if (instead)
            vec_push(&out, x->a, instead);
        else if (d->kind != DECL_BRACKET || !d->fn || !fn_named(k, d->name))
            vec_push(&out, x->a, d);
    }
    for (uint32_t i = 0; i < own->n; i++) {
        if (!decl_named(base, own->at[i]->name))
            vec_push(&out, x->a, own->at[i]);
    }
    return out;
}

static void check_fn(const extending *x, const kernel_ast *k, const decl_list *brackets,
                     const decl *fn)
{
    const decl *param = decl_named(brackets, fn->name);
    VEC(const char *) known = {0};
    diag *d;

    if (param && param->fn && param->fn->args.n == fn->fn->args.n)
        return;
    if (param && param->fn) {
        d = diag_add(x->diags, DIAG_BAD_SIGNATURE, fn->where, "'%s' of '%s' is %s, not %s",
                     fn->name, k->base, ast_fn_type(param->fn, x->a), ast_fn_type(fn->fn, x->a));
        diag_note(x->diags, d, param->where, "declared here");
        return;
    }
    for (uint32_t i = 0; i < brackets->n; i++) {
        if (brackets->at[i]->fn)
            vec_push(&known, x->a, brackets->at[i]->name);
    }
    d = diag_add(x->diags, DIAG_UNKNOWN_NAME, fn->where, "'%s' has no function parameter '%s'",
                 k->base, fn->name);
    const char *near = diag_nearest(fn->name, known.at, known.n);
    if (near)
        diag_hint(x->diags, d, "did you mean '%s'?", near);
    else
        diag_hint(x->diags, d, "what only helps stands in the file, or inside of a function");
}

static void check_body(const extending *x, const kernel_ast *k, const decl_list *brackets)
{
    for (uint32_t i = 0; i < k->body->body.n; i++) {
        const stmt *s = k->body->body.at[i];
        bool declares = s->kind == STMT_DECL && s->decls.n && s->decls.at[0]->kind != DECL_VAR;
        if (s->kind == STMT_FN && s->decls.n)
            check_fn(x, k, brackets, s->decls.at[0]);
        else if (!declares && s->kind != STMT_EMPTY)
            diag_add(x->diags, DIAG_BAD_SIGNATURE, s->where,
                     "a kernel that extends another declares functions, let and const only");
    }
}

/* ---- */

/* What k can be made from; NULL, and reported, if there is nothing. */
static kernel_ast *read_base(extending *x, const kernel_ast *k, int chain)
{
    const kernel_ast *base = base_of(x, k);
    diag_list quiet;

    if (chain == MAX_CHAIN) {
        diag_add(x->diags, DIAG_RECURSION, x->whole->base_at,
                 "'%s' extends itself, or more than %d others", x->whole->self->name, MAX_CHAIN);
        return NULL;
    }
    if (!base) {
        report_unknown(x, k);
        return NULL;
    }
    x->anew += base->where.hi - base->where.lo;
    if (x->anew > MAX_ANEW) {
        diag_add(x->diags, DIAG_LIMIT, k->base_at,
                 "the kernels that others extend repeat more than %d bytes of text", MAX_ANEW);
        return NULL;
    }
    diag_init(&quiet, x->a);
    return parse_kernel_anew(x->a, x->names, base, &quiet);
}

/* A kernel that stays without its base, or does not fit it, is broken: its names would mean
 * nothing, or a guess. */
static void complete(extending *x, kernel_ast *k, int chain)
{
    kernel_ast *base = read_base(x, k, chain);
    uint32_t before = x->diags->errors;

    if (!base) {
        k->is_broken = true;
        return;
    }
    if (base->base)
        complete(x, base, chain + 1);
    check_body(x, k, &base->brackets);
    k->is_broken |= base->is_broken || x->diags->errors > before;
    k->brackets = merged(x, &base->brackets, &k->brackets, k);
    k->params = merged(x, &base->params, &k->params, k);
    for (uint32_t i = 0; i < k->require.n; i++)
        vec_push(&base->require, x->a, k->require.at[i]);
    k->require = base->require;
    if (k->tunes.n == 0)
        k->tunes = base->tunes;
    if (!k->has_grid) {
        k->grid = base->grid;
        k->grid_at = base->grid_at;
        k->has_grid = base->has_grid;
    }
    vec_push(&k->body->body, x->a, base->body);
}

void extend_kernels(const unit_list *units, arena *a, intern *names, diag_list *diags)
{
    extending x = {units, a, names, diags, 0, NULL};
    const decl_list *top = &units->at[0]->top;

    for (uint32_t i = 0; i < top->n; i++) {
        const decl *d = top->at[i];
        if (d->kind != DECL_KERNEL || !d->kernel->base || d->kernel->is_broken)
            continue;
        x.whole = d->kernel;
        if (x.anew > MAX_ANEW)
            d->kernel->is_broken = true;
        else
            complete(&x, d->kernel, 0);
    }
}
