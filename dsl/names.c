/* names: one walk over the tree, declarations in order.
 *
 * A region is the body of a loop, branch or function. The regions around a place form a stack; an
 * assignment to v is noted in every region between that place and v's declaration, but not beyond
 * the body of a function: defining one assigns nothing, calling it does.
 */
#include "dsl/names.h"
#include "compiler/base/check.h"
#include "dsl/scope.h"
#include <math.h>
#include <string.h>

typedef struct region {
    decl_list *assigned;
    bool is_fn;
} region;

typedef struct resolver {
    scope names;
    arena *a;
    intern *strings;
    diag_list *diags;
    unit_ast *unit;
    VEC(region) regions;
    decl *top;          /* the declaration of the file that is walked */
    const decl *scalar; /* whose default is walked, or NULL */
    bool compares;      /* the name at hand is an operand of == or !=, and may be a function */
} resolver;

static void resolve_expr(resolver *r, expr *e);
static void resolve_stmt(resolver *r, stmt *s);

static void declare(resolver *r, decl *d)
{
    d->slot = r->unit->slots++;
    d->depth = r->regions.n;
    scope_declare(&r->names, d);
}

/* ---- regions ---- */

static void open_region(resolver *r, decl_list *assigned, bool is_fn)
{
    vec_push(&r->regions, r->a, ((region){assigned, is_fn}));
}

/* false when it was there */
static bool note_once(resolver *r, decl_list *list, decl *d)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (list->at[i] == d)
            return false;
    }
    vec_push(list, r->a, d);
    return true;
}

static void note_use(resolver *r, decl *d)
{
    if (d->used_by == r->top)
        return;
    d->used_by = r->top;
    vec_push(&r->top->uses, r->a, d);
}

static void sort_by_slot(decl_list *list)
{
    for (uint32_t i = 1; i < list->n; i++) {
        for (uint32_t k = i; k > 0 && list->at[k - 1]->slot > list->at[k]->slot; k--) {
            decl *d = list->at[k];
            list->at[k] = list->at[k - 1];
            list->at[k - 1] = d;
        }
    }
}

static void close_region(resolver *r)
{
    sort_by_slot(r->regions.at[--r->regions.n].assigned);
}

static void note_assigned(resolver *r, decl *d)
{
    for (uint32_t i = r->regions.n; i > d->depth; i--) {
        decl_list *list = r->regions.at[i - 1].assigned;
        if (list->n > RESOLVE_MAX_ASSIGNED)
            return;
        if (note_once(r, list, d) && list->n > RESOLVE_MAX_ASSIGNED)
            diag_add(r->diags, DIAG_LIMIT, d->where,
                     "more than %d outer vars are assigned in one loop, branch or function",
                     RESOLVE_MAX_ASSIGNED);
        if (r->regions.at[i - 1].is_fn)
            return;
    }
}

/* ---- names and calls ---- */

static decl *use_name(resolver *r, expr *e)
{
    decl *d = scope_need(&r->names, e->lit.name, e->at);

    e->decl = d;
    if (!d)
        return NULL;
    if (d->kind == DECL_FN && d->is_open) {
        diag *x = diag_add(r->diags, DIAG_RECURSION, e->at, "'%s' calls itself", d->name);
        diag_hint(r->diags, x, "functions are inlined; use a loop");
        return e->decl = NULL;
    }
    if (d->scope == 1 && d->kind != DECL_KERNEL)
        note_use(r, d);
    if (d->kind == DECL_SCALAR && r->scalar && d->id >= r->scalar->id) {
        diag *x = diag_add(r->diags, DIAG_UNKNOWN_NAME, e->at,
                           "a default may only use scalars that come before it");
        diag_note(r->diags, x, d->where, "'%s' is declared here", d->name);
    }
    return e->decl;
}

static void refuse_value(resolver *r, expr *e)
{
    diag *x;

    switch (decl_is_fn(e->decl) ? DECL_FN : (int)e->decl->kind) {
    case DECL_FN:
    case DECL_BUILTIN:
        x = diag_add(r->diags, DIAG_BAD_OPERAND, e->at, "'%s' is a function: call it", e->lit.name);
        diag_hint(r->diags, x, "write %s(...)", e->lit.name);
        return;
    case DECL_KERNEL:
        diag_add(r->diags, DIAG_BAD_OPERAND, e->at, "'%s' is a kernel: it can only be launched",
                 e->lit.name);
        return;
    default:
        return;
    }
}

static void check_count(resolver *r, const expr *call, uint32_t least, uint32_t most,
                        const char *form)
{
    uint32_t n = call->list.n;

    if (n >= least && n <= most)
        return;
    diag *x = diag_add(r->diags, DIAG_BAD_CALL, call->where, "'%s' takes %u%s argument%s, not %u",
                       call->a->lit.name, n < least ? least : most,
                       least == most ? ""
                       : n < least   ? " or more"
                                     : " or fewer",
                       (n < least ? least : most) == 1 ? "" : "s", n);
    if (form)
        diag_hint(r->diags, x, "%s", form);
}

typedef struct builtin_row {
    const char *name;
    uint8_t least, most;
    const char *form;
} builtin_row;
static const builtin_row builtin[BUILTIN_COUNT] = {
#define BUILTIN(id, name, least, most, form) {name, least, most, form},
#include "dsl/builtin.def"
};

bool names_check_direction(diag_list *diags, const decl *d, span where, int called)
{
    bool reads = called != BUILTIN_STORE, writes = called != BUILTIN_LOAD;
    diag *x;

    if (!(reads && d->direction == DIR_OUT) && !(writes && d->direction == DIR_IN))
        return true;
    if (d->direction == DIR_OUT)
        x = diag_add(diags, DIAG_DIRECTION, where, "'%s' is an out tensor: it cannot be read",
                     d->name);
    else
        x = diag_add(diags, DIAG_DIRECTION, where, "'%s' is an in tensor: it cannot be written",
                     d->name);
    diag_hint(diags, x, reads ? "declare it inout" : "declare it out or inout");
    diag_note(diags, x, d->where, "declared here");
    return false;
}

static void check_access(resolver *r, const expr *call, int id)
{
    const expr *place = call->list.n ? call->list.at[0] : NULL;

    if (id < BUILTIN_LOAD || id > BUILTIN_ATOMIC_CAS || !place || place->kind != EXPR_INDEX)
        return;
    const decl *d = place->a->kind == EXPR_NAME ? place->a->decl : NULL;
    if (d && d->kind == DECL_TENSOR)
        names_check_direction(r->diags, d, place->where, id);
}

/* Who gets a function may call it anywhere, so nothing may follow from a call but its value. */
static void check_passed(resolver *r, const expr *e, const decl *d)
{
    diag *x;

    if (!decl_is_fn(d)) {
        x = diag_add(r->diags, DIAG_BAD_OPERAND, e->at, "'%s' is not a function of this text",
                     d->name);
        if (d->kind == DECL_BUILTIN)
            diag_hint(r->diags, x, "write a function that calls it");
    } else if (d->fn->assigned.n > 0) {
        x = diag_add(r->diags, DIAG_BAD_OPERAND, e->at,
                     "'%s' assigns an outer var: it can be called, not passed", d->name);
        diag_note(r->diags, x, d->fn->assigned.at[0]->where, "'%s' is declared here",
                  d->fn->assigned.at[0]->name);
    }
}

/* e, where the name of a function must stand. */
static void resolve_passed(resolver *r, expr *e)
{
    if (e->kind == EXPR_NAME) {
        const decl *d = use_name(r, e);
        if (d)
            check_passed(r, e, d);
        return;
    }
    resolve_expr(r, e);
    if (e->kind != EXPR_BAD)
        diag_add(r->diags, DIAG_BAD_OPERAND, e->where, "the name of a function is needed here");
}

/* Is a function given there, by its name? */
static bool takes_fn(const decl *d, uint32_t i)
{
    if (d && d->kind == DECL_BUILTIN)
        return i == 2 && (d->id == BUILTIN_REDUCE || d->id == BUILTIN_SCAN);
    return d && d->kind == DECL_FN && i < d->fn->args.n && decl_is_fn(d->fn->args.at[i]);
}

static void resolve_args(resolver *r, expr *e, const decl *d)
{
    for (uint32_t i = 0; i < e->list.n; i++) {
        if (takes_fn(d, i))
            resolve_passed(r, e->list.at[i]);
        else
            resolve_expr(r, e->list.at[i]);
    }
}

static void resolve_call(resolver *r, expr *e)
{
    decl *d = NULL;

    if (e->a->kind == EXPR_NAME)
        d = use_name(r, e->a);
    else
        diag_add(r->diags, DIAG_BAD_CALL, e->a->where, "only a function can be called");
    resolve_args(r, e, d);
    if (!d)
        return;
    if (d->kind == DECL_BUILTIN) {
        const builtin_row *b = &builtin[d->id];
        check_count(r, e, b->least, b->most, b->form);
        check_access(r, e, d->id);
    } else if (decl_is_fn(d)) {
        check_count(r, e, d->fn->args.n, d->fn->args.n, NULL);
        for (uint32_t i = 0; i < d->fn->assigned.n; i++)
            note_assigned(r, d->fn->assigned.at[i]);
    } else {
        diag *x = diag_add(r->diags, DIAG_BAD_CALL, e->a->at, "'%s' is not a function", d->name);
        if (d->kind == DECL_DTYPE)
            diag_hint(r->diags, x, "write cast(x, %s)", d->name);
    }
}

static void resolve_expr(resolver *r, expr *e)
{
    if (!e || e->kind == EXPR_BAD)
        return;
    if (e->kind == EXPR_NAME) {
        if (use_name(r, e) && !(r->compares && decl_is_fn(e->decl)))
            refuse_value(r, e);
        return;
    }
    if (e->kind == EXPR_CALL) {
        resolve_call(r, e);
        return;
    }
    bool branches = e->kind == EXPR_COND || e->op == TOK_AND_AND || e->op == TOK_OR_OR;
    bool compares = e->kind == EXPR_BINARY && (e->op == TOK_EQ || e->op == TOK_NE);
    r->compares = compares && e->a->kind == EXPR_NAME;
    resolve_expr(r, e->a);
    if (branches)
        open_region(r, &e->assigned, false);
    r->compares = compares && e->b->kind == EXPR_NAME;
    resolve_expr(r, e->b);
    r->compares = false;
    resolve_expr(r, e->c);
    if (branches)
        close_region(r);
    for (uint32_t i = 0; i < e->list.n; i++)
        resolve_expr(r, e->list.at[i]);
}

/* ---- statements ---- */

static void resolve_assign(resolver *r, stmt *s)
{
    for (uint32_t i = 0; i < s->list.n; i++)
        resolve_expr(r, s->list.at[i]);
    for (uint32_t i = 0; i < s->targets.n; i++) {
        expr *e = s->targets.at[i];
        decl *d = e->kind == EXPR_NAME ? use_name(r, e) : NULL;
        if (!d)
            continue;
        if (d->kind == DECL_VAR) {
            note_assigned(r, d);
            continue;
        }
        diag *x = diag_add(r->diags, DIAG_NOT_ASSIGNABLE, e->at, "'%s' is not a var", d->name);
        if (d->scope > 0)
            diag_note(r->diags, x, d->where, "declared here");
        if (d->kind == DECL_LET || d->kind == DECL_CONST)
            diag_hint(r->diags, x, "declare it with var");
    }
    for (uint32_t i = 0; i < s->targets.n; i++) {
        for (uint32_t k = i + 1; k < s->targets.n; k++) {
            const decl *d = s->targets.at[i]->decl;
            if (d && d == s->targets.at[k]->decl)
                diag_add(r->diags, DIAG_NOT_ASSIGNABLE, s->targets.at[k]->at,
                         "'%s' is assigned twice at once", d->name);
        }
    }
}

static void report_return(resolver *r, const stmt *s, bool in_fn)
{
    diag *x = diag_add(r->diags, DIAG_JUMP, s->where,
                       in_fn ? "a return can only be the last statement of a function"
                             : "a kernel has no return");

    diag_hint(r->diags, x,
              in_fn ? "use ?:, or a var that an if assigns"
                    : "put the rest of the body under an if");
}

static void resolve_fn(resolver *r, decl *d)
{
    stmt_list *body = &d->fn->body->body;

    d->is_open = true;
    open_region(r, &d->fn->assigned, true);
    scope_open(&r->names);
    for (uint32_t i = 0; i < d->fn->args.n; i++) {
        resolve_expr(r, d->fn->args.at[i]->type);
        declare(r, d->fn->args.at[i]);
    }
    scope_open(&r->names);
    for (uint32_t i = 0; i < body->n; i++) {
        stmt *s = body->at[i];
        if (s->kind == STMT_RETURN && i + 1 == body->n)
            resolve_expr(r, s->cond);
        else if (s->kind == STMT_RETURN)
            report_return(r, s, true);
        else
            resolve_stmt(r, s);
    }
    scope_close(&r->names);
    scope_close(&r->names);
    close_region(r);
    d->is_open = false;
}

static void resolve_decls(resolver *r, const decl_list *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        decl *d = list->at[i];
        resolve_expr(r, d->type);
        resolve_expr(r, d->init);
        declare(r, d);
    }
}

static void resolve_body(resolver *r, stmt *s)
{
    scope_open(&r->names);
    if (s)
        resolve_stmt(r, s);
    scope_close(&r->names);
}

static void resolve_masked(resolver *r, stmt *s)
{
    for (uint32_t i = 0; i < s->list.n; i++) {
        if (i == 3)
            resolve_passed(r, s->list.at[i]);
        else
            resolve_expr(r, s->list.at[i]);
    }
    if (s->list.n == 4 || !s->then)
        return;
    diag *x = diag_add(r->diags, DIAG_BAD_CALL, s->where,
                       "masked_range takes 4 arguments, not %u", s->list.n);
    diag_hint(r->diags, x, "masked_range(first, end, step, visible)");
}

static void resolve_range(resolver *r, stmt *s)
{
    for (uint32_t i = 0; i < s->list.n; i++)
        resolve_expr(r, s->list.at[i]);
    if (s->kind == STMT_FOR && s->list.n > 3)
        diag_add(r->diags, DIAG_BAD_CALL, s->list.at[3]->where,
                 "range takes an end, or first and end, or first, end and step");
    else if (s->kind == STMT_FOR && s->list.n == 0 && s->then)
        diag_add(r->diags, DIAG_BAD_CALL, s->where, "range needs an end");
}

static void resolve_loop(resolver *r, stmt *s)
{
    if (s->kind == STMT_MASKED)
        resolve_masked(r, s);
    else
        resolve_range(r, s);
    open_region(r, &s->assigned, false);
    if (s->kind == STMT_WHILE)
        resolve_expr(r, s->cond);
    scope_open(&r->names);
    for (uint32_t i = 0; i < s->decls.n; i++)
        declare(r, s->decls.at[i]);
    resolve_body(r, s->then);
    scope_close(&r->names);
    close_region(r);
}

static void resolve_if(resolver *r, stmt *s)
{
    resolve_expr(r, s->cond);
    open_region(r, &s->assigned, false);
    resolve_body(r, s->then);
    if (s->other)
        resolve_body(r, s->other);
    close_region(r);
}

static bool inside_fn(const resolver *r)
{
    for (uint32_t i = 0; i < r->regions.n; i++) {
        if (r->regions.at[i].is_fn)
            return true;
    }
    return false;
}

static void resolve_stmt(resolver *r, stmt *s)
{
    switch (s->kind) {
    case STMT_EMPTY:
    case STMT_JUMP:
        return;
    case STMT_BLOCK:
        scope_open(&r->names);
        for (uint32_t i = 0; i < s->body.n; i++)
            resolve_stmt(r, s->body.at[i]);
        scope_close(&r->names);
        return;
    case STMT_DECL:
        resolve_decls(r, &s->decls);
        return;
    case STMT_FN:
        for (uint32_t i = 0; i < s->decls.n; i++) {
            declare(r, s->decls.at[i]);
            resolve_fn(r, s->decls.at[i]);
        }
        return;
    case STMT_ASSIGN:
        resolve_assign(r, s);
        return;
    case STMT_EXPR:
        resolve_expr(r, s->cond);
        return;
    case STMT_IF:
        resolve_if(r, s);
        return;
    case STMT_FOR:
    case STMT_MASKED:
    case STMT_WHILE:
        resolve_loop(r, s);
        return;
    case STMT_RETURN:
        report_return(r, s, inside_fn(r));
        return;
    }
}

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
        declare(r, d);
    }
    resolve_expr(r, e);
}

static void resolve_params(resolver *r, kernel_ast *k)
{
    for (uint32_t i = 0; i < k->params.n; i++) {
        decl *d = k->params.at[i];
        d->id = (int)i;
        if (d->kind == DECL_TENSOR) {
            resolve_expr(r, d->type->a);
            for (uint32_t j = 0; j < d->type->list.n; j++)
                resolve_dim(r, k, d->type->list.at[j]);
        } else {
            resolve_expr(r, d->type);
        }
    }
    for (uint32_t i = 0; i < k->params.n; i++)
        declare(r, k->params.at[i]);
    for (uint32_t i = 0; i < k->params.n; i++) {
        r->scalar = k->params.at[i];
        resolve_expr(r, k->params.at[i]->init);
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
            declare(r, d);
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
                resolve_expr(r, set->values.at[n]);
            if (*t->target)
                set->param = knob_named(k, set->name);
            if (set->param)
                continue;
            diag *x = diag_add(r->diags, DIAG_BAD_SIGNATURE, set->where,
                               "'%s' has no set for the other targets", set->name);
            diag_hint(r->diags, x, "add a tune clause without 'on' that names it");
        }
        for (uint32_t n = 0; n < t->constraints.n; n++)
            resolve_expr(r, t->constraints.at[n]);
    }
}

static void resolve_kernel(resolver *r, kernel_ast *k)
{
    scope_open(&r->names);
    for (uint32_t i = 0; i < k->brackets.n; i++) {
        decl *d = k->brackets.at[i];
        d->id = (int)i;
        resolve_expr(r, d->type);
        if (decl_is_fn(d) && d->init)
            resolve_passed(r, d->init);
        else
            resolve_expr(r, d->init);
        declare(r, d);
    }
    resolve_params(r, k);
    declare_knobs(r, k);
    resolve_sets(r, k);
    for (uint32_t i = 0; i < k->require.n; i++)
        resolve_expr(r, k->require.at[i]);
    for (uint32_t i = 0; i < k->grid.n; i++)
        resolve_expr(r, k->grid.at[i]);
    resolve_stmt(r, k->body);
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
    declare(r, d);
}

static void predeclare_all(resolver *r)
{
    static const char *const kind[] = {"int", "bool", "float", "dtype"};

    scope_open(&r->names);
    for (int i = 0; i < BUILTIN_COUNT; i++)
        predeclare(r, DECL_BUILTIN, builtin[i].name, i, 0.0);
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
        declare(&r, unit->top.at[i]);
    for (uint32_t i = 0; i < unit->top.n; i++) {
        decl *d = r.top = unit->top.at[i];
        if (d->kind == DECL_KERNEL) {
            if (!d->kernel->is_broken)
                resolve_kernel(&r, d->kernel);
        } else if (d->kind == DECL_FN) {
            resolve_fn(&r, d);
        } else {
            resolve_expr(&r, d->type);
            resolve_expr(&r, d->init);
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
    resolve_fn(&r, fn);
}
