#include "dsl/names.h"
#include "dsl/names_walk.h"
#include <math.h>

/* ---- kernels ---- */

/* A name in the shape of a tensor that means nothing yet is a run-time dimension. */
static void resolve_dim(resolver *r, kernel_ast *k, expr *e)
{
    const decl *known = e->kind == EXPR_NAME ? scope_find(&r->names, e->lit.name) : NULL;

    if (e->kind != EXPR_NAME && e->kind != EXPR_INT && e->kind != EXPR_BAD) {
        diag *x = diag_add(r->diags, DIAG_BAD_SIGNATURE, e->where,
                           "a dimension is a name, an integer or a compile-time int");
        diag_hint(r->diags, x, "name it here and state what holds in a require clause");
        return;
    }
    if (e->kind == EXPR_NAME && (!known || known->scope == 0)) {
        decl *d = ARENA_NEW(r->a, decl);
        d->kind = DECL_DIM;
        d->name = e->lit.name;
        d->where = e->at;
        d->id = (int)vec_push(&k->dims, r->a, d);
        names_declare(r, d);
    }
    names_expr(r, e);
}

static void resolve_params(resolver *r, kernel_ast *k)
{
    for (uint32_t i = 0; i < k->params.n; i++) {
        decl *d = k->params.at[i];
        d->id = (int)i;
        if (d->kind == DECL_TENSOR) {
            names_expr(r, d->type->a);
            for (uint32_t j = 0; j < d->type->list.n; j++)
                resolve_dim(r, k, d->type->list.at[j]);
        } else {
            names_expr(r, d->type);
        }
    }
    for (uint32_t i = 0; i < k->params.n; i++)
        names_declare(r, k->params.at[i]);
    for (uint32_t i = 0; i < k->params.n; i++) {
        r->scalar = k->params.at[i];
        names_expr(r, k->params.at[i]->init);
        r->scalar = NULL;
    }
}

static decl *knob_named(const kernel_ast *k, const char *name)
{
    for (uint32_t i = 0; i < k->knobs.n; i++) {
        if (k->knobs.at[i]->name == name)
            return k->knobs.at[i];
    }
    return NULL;
}

/* Knobs are declared by the clauses for every target; the others only narrow them. */
static void declare_knobs(resolver *r, kernel_ast *k)
{
    for (uint32_t i = 0; i < k->tunes.n; i++) {
        tune_clause *t = &k->tunes.at[i];
        for (uint32_t j = 0; j < t->sets.n && !*t->target; j++) {
            decl *d = ARENA_NEW(r->a, decl);
            d->kind = DECL_TUNE;
            d->name = t->sets.at[j].name;
            d->where = t->sets.at[j].where;
            if (!knob_named(k, d->name))
                d->id = (int)vec_push(&k->knobs, r->a, d);
            names_declare(r, d);
            t->sets.at[j].param = d;
        }
    }
}

static void resolve_sets(resolver *r, kernel_ast *k)
{
    for (uint32_t i = 0; i < k->tunes.n; i++) {
        tune_clause *t = &k->tunes.at[i];
        for (uint32_t j = 0; j < t->sets.n; j++) {
            tune_set *set = &t->sets.at[j];
            for (uint32_t n = 0; n < set->values.n; n++)
                names_expr(r, set->values.at[n]);
            if (*t->target)
                set->param = knob_named(k, set->name);
            if (set->param)
                continue;
            diag *x = diag_add(r->diags, DIAG_BAD_SIGNATURE, set->where,
                               "'%s' has no set for the other targets", set->name);
            diag_hint(r->diags, x, "add a tune clause without 'on' that names it");
        }
        for (uint32_t n = 0; n < t->constraints.n; n++)
            names_expr(r, t->constraints.at[n]);
    }
}

static void resolve_kernel(resolver *r, kernel_ast *k)
{
    scope_open(&r->names);
    for (uint32_t i = 0; i < k->brackets.n; i++) {
        decl *d = k->brackets.at[i];
        d->id = (int)i;
        names_expr(r, d->type);
        if (decl_is_fn(d) && d->init)
            names_passed(r, d->init);
        else
            names_expr(r, d->init);
        names_declare(r, d);
    }
    resolve_params(r, k);
    declare_knobs(r, k);
    resolve_sets(r, k);
    for (uint32_t i = 0; i < k->require.n; i++)
        names_expr(r, k->require.at[i]);
    for (uint32_t i = 0; i < k->grid.n; i++)
        names_expr(r, k->grid.at[i]);
    names_stmt(r, k->body);
    scope_close(&r->names);
}

/* ---- the file ---- */

static void predeclare(resolver *r, enum decl_kind kind, const char *name, int id, double number)
{
    decl *d = ARENA_NEW(r->a, decl);

    d->kind = kind;
    d->name = intern_str(r->strings, name);
    d->id = id;
    d->number = number;
    names_declare(r, d);
}

static void predeclare_all(resolver *r)
{
    static const char *const kind[] = {"int", "bool", "float", "dtype"};

    scope_open(&r->names);
    for (int i = 0; i < BUILTIN_COUNT; i++)
        predeclare(r, DECL_BUILTIN, names_of_builtin(i), i, 0.0);
    for (int i = 0; i < DT_COUNT; i++)
        predeclare(r, DECL_DTYPE, dtype_name((enum dtype)i), i, 0.0);
    for (int i = 0; i < 4; i++)
        predeclare(r, DECL_KIND, kind[i], i, 0.0);
    predeclare(r, DECL_NUMBER, "inf", 0, (double)INFINITY);
    predeclare(r, DECL_NUMBER, "nan", 0, (double)NAN);
}

/* Functions of a file may call each other in any order, so cycles show only when all are known. */
static void find_cycles(resolver *r, decl *d, uint32_t depth)
{
    if (depth > 1000) {
        diag_add(r->diags, DIAG_LIMIT, d->where, "calls are nested too deep here");
        return;
    }
    d->is_open = true;
    for (uint32_t i = 0; i < d->uses.n; i++) {
        decl *used = d->uses.at[i];
        if (used->is_open) {
            diag *x =
                diag_add(r->diags, DIAG_RECURSION, used->where, "'%s' needs itself", used->name);
            diag_note(r->diags, x, d->where, "through '%s'", d->name);
        } else if (!used->is_done) {
            find_cycles(r, used, depth + 1);
        }
    }
    d->is_open = false;
    d->is_done = true;
}

void names_resolve(unit_ast *unit, arena *a, intern *names, diag_list *diags)
{
    resolver r = {.a = a, .strings = names, .diags = diags, .unit = unit};

    scope_init(&r.names, a, diags);
    for (uint32_t i = 0; i < unit->doubtful.n; i++)
        scope_doubt(&r.names, unit->doubtful.at[i]);
    predeclare_all(&r);
    scope_open(&r.names);
    for (uint32_t i = 0; i < unit->top.n; i++)
        names_declare(&r, unit->top.at[i]);
    for (uint32_t i = 0; i < unit->top.n; i++) {
        decl *d = r.top = unit->top.at[i];
        if (d->kind == DECL_KERNEL) {
            if (!d->kernel->is_broken)
                resolve_kernel(&r, d->kernel);
        } else if (d->kind == DECL_FN) {
            names_fn(&r, d);
        } else {
            names_expr(&r, d->type);
            names_expr(&r, d->init);
        }
    }
    for (uint32_t i = 0; i < unit->top.n; i++) {
        if (!unit->top.at[i]->is_done)
            find_cycles(&r, unit->top.at[i], 0);
    }
}

void names_resolve_beside(unit_ast *unit, decl *fn, arena *a, intern *names, diag_list *diags)
{
    resolver r = {.a = a, .strings = names, .diags = diags, .unit = unit, .top = fn};

    scope_init(&r.names, a, diags);
    predeclare_all(&r);
    scope_open(&r.names);
    for (uint32_t i = 0; i < unit->top.n; i++)
        scope_show(&r.names, unit->top.at[i]);
    fn->slot = unit->slots++;
    fn->scope = 1;
    names_fn(&r, fn);
}
