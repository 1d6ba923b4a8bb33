#include "dsl/foreign.h"
#include "dsl/names_walk.h"
#include <string.h>

void names_declare(resolver *r, decl *d)
{
    d->slot = r->unit->slots++;
    d->depth = r->regions.n;
    scope_declare(&r->names, d);
}

/* ---- regions ---- */

void names_open_region(resolver *r, decl_list *assigned, bool is_fn)
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

void names_close_region(resolver *r)
{
    sort_by_slot(r->regions.at[--r->regions.n].assigned);
}

void names_note_assigned(resolver *r, decl *d)
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

decl *names_use(resolver *r, expr *e)
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

const char *names_of_builtin(int id)
{
    return builtin[id].name;
}

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

void names_passed(resolver *r, expr *e)
{
    if (e->kind == EXPR_NAME) {
        const decl *d = names_use(r, e);
        if (d)
            check_passed(r, e, d);
        return;
    }
    names_expr(r, e);
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
            names_passed(r, e->list.at[i]);
        else
            names_expr(r, e->list.at[i]);
    }
}

static void resolve_call(resolver *r, expr *e)
{
    decl *d = NULL;

    if (e->a->kind == EXPR_NAME)
        d = names_use(r, e->a);
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
            names_note_assigned(r, d->fn->assigned.at[i]);
    } else {
        diag *x = diag_add(r->diags, DIAG_BAD_CALL, e->a->at, "'%s' is not a function", d->name);
        if (d->kind == DECL_DTYPE)
            diag_hint(r->diags, x, "write cast(x, %s)", d->name);
        else if (foreign_hint(d->name, strlen(d->name)))
            diag_hint(r->diags, x, "%s", foreign_hint(d->name, strlen(d->name)));
    }
}

void names_expr(resolver *r, expr *e)
{
    if (!e || e->kind == EXPR_BAD)
        return;
    if (e->kind == EXPR_NAME) {
        if (names_use(r, e) && !(r->compares && decl_is_fn(e->decl)))
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
    names_expr(r, e->a);
    if (branches)
        names_open_region(r, &e->assigned, false);
    r->compares = compares && e->b->kind == EXPR_NAME;
    names_expr(r, e->b);
    r->compares = false;
    names_expr(r, e->c);
    if (branches)
        names_close_region(r);
    for (uint32_t i = 0; i < e->list.n; i++)
        names_expr(r, e->list.at[i]);
}
