#include "dsl/names_walk.h"

static void resolve_assign(resolver *r, stmt *s)
{
    for (uint32_t i = 0; i < s->list.n; i++)
        names_expr(r, s->list.at[i]);
    for (uint32_t i = 0; i < s->targets.n; i++) {
        expr *e = s->targets.at[i];
        decl *d = e->kind == EXPR_NAME ? names_use(r, e) : NULL;
        if (!d)
            continue;
        if (d->kind == DECL_VAR) {
            names_note_assigned(r, d);
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

void names_fn(resolver *r, decl *d)
{
    stmt_list *body = &d->fn->body->body;

    d->is_open = true;
    names_open_region(r, &d->fn->assigned, true);
    scope_open(&r->names);
    for (uint32_t i = 0; i < d->fn->args.n; i++) {
        names_expr(r, d->fn->args.at[i]->type);
        names_declare(r, d->fn->args.at[i]);
    }
    scope_open(&r->names);
    for (uint32_t i = 0; i < body->n; i++) {
        stmt *s = body->at[i];
        if (s->kind == STMT_RETURN && i + 1 == body->n)
            names_expr(r, s->cond);
        else if (s->kind == STMT_RETURN)
            report_return(r, s, true);
        else
            names_stmt(r, s);
    }
    scope_close(&r->names);
    scope_close(&r->names);
    names_close_region(r);
    d->is_open = false;
}

static void resolve_decls(resolver *r, const decl_list *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        decl *d = list->at[i];
        names_expr(r, d->type);
        names_expr(r, d->init);
        names_declare(r, d);
    }
}

static void resolve_body(resolver *r, stmt *s)
{
    scope_open(&r->names);
    if (s)
        names_stmt(r, s);
    scope_close(&r->names);
}

static void resolve_masked(resolver *r, stmt *s)
{
    for (uint32_t i = 0; i < s->list.n; i++) {
        if (i == 3)
            names_passed(r, s->list.at[i]);
        else
            names_expr(r, s->list.at[i]);
    }
    if (s->list.n == 4 || !s->then)
        return;
    diag *x = diag_add(r->diags, DIAG_BAD_CALL, s->where, "masked_range takes 4 arguments, not %u",
                       s->list.n);
    diag_hint(r->diags, x, "masked_range(first, end, step, visible)");
}

static void resolve_range(resolver *r, stmt *s)
{
    for (uint32_t i = 0; i < s->list.n; i++)
        names_expr(r, s->list.at[i]);
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
    names_open_region(r, &s->assigned, false);
    if (s->kind == STMT_WHILE)
        names_expr(r, s->cond);
    scope_open(&r->names);
    for (uint32_t i = 0; i < s->decls.n; i++)
        names_declare(r, s->decls.at[i]);
    resolve_body(r, s->then);
    scope_close(&r->names);
    names_close_region(r);
}

static void resolve_if(resolver *r, stmt *s)
{
    names_expr(r, s->cond);
    names_open_region(r, &s->assigned, false);
    resolve_body(r, s->then);
    if (s->other)
        resolve_body(r, s->other);
    names_close_region(r);
}

static bool inside_fn(const resolver *r)
{
    for (uint32_t i = 0; i < r->regions.n; i++) {
        if (r->regions.at[i].is_fn)
            return true;
    }
    return false;
}

void names_stmt(resolver *r, stmt *s)
{
    switch (s->kind) {
    case STMT_EMPTY:
    case STMT_JUMP:
        return;
    case STMT_BLOCK:
        scope_open(&r->names);
        for (uint32_t i = 0; i < s->body.n; i++)
            names_stmt(r, s->body.at[i]);
        scope_close(&r->names);
        return;
    case STMT_DECL:
        resolve_decls(r, &s->decls);
        return;
    case STMT_FN:
        for (uint32_t i = 0; i < s->decls.n; i++) {
            names_declare(r, s->decls.at[i]);
            names_fn(r, s->decls.at[i]);
        }
        return;
    case STMT_ASSIGN:
        resolve_assign(r, s);
        return;
    case STMT_EXPR:
        names_expr(r, s->cond);
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
