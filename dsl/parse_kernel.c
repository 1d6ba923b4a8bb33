/* parse_kernel: a kernel's head: brackets, parameters, extends, require, tune, grid. */
#include "dsl/parse.h"
#include <string.h>

static void parse_brackets(parser *p, kernel_ast *k)
{
    while (!p->panic && !parse_is(p, TOK_RBRACKET)) {
        decl *d = parse_decl(p, DECL_BRACKET, "of a compile-time parameter");
        if (!d)
            return;
        if (!parse_expect(p, TOK_COLON, "and a kind: int, bool, float, dtype or fn(...)"))
            return;
        if (parse_accept(p, TOK_FN))
            d->fn = parse_fn_type(p);
        else
            d->type = parse_expr(p);
        if (parse_accept(p, TOK_ASSIGN))
            d->init = parse_expr(p);
        vec_push(&k->brackets, p->a, d);
        if (!parse_accept(p, TOK_COMMA))
            break;
    }
    parse_expect(p, TOK_RBRACKET, "to end the compile-time parameters");
}

static enum ir_direction parse_direction(parser *p)
{
    bool named = p->at[0].kind == TOK_NAME && p->at[1].kind == TOK_NAME;

    if (named && parse_accept_word(p, "out"))
        return DIR_OUT;
    if (named && parse_accept_word(p, "inout"))
        return DIR_INOUT;
    parse_accept(p, TOK_IN);
    return DIR_IN;
}

static void parse_params(parser *p, kernel_ast *k)
{
    while (!p->panic && !parse_is(p, TOK_RPAREN)) {
        enum ir_direction direction = parse_direction(p);
        decl *d = parse_decl(p, DECL_SCALAR, "of a parameter");
        if (!d)
            return;
        d->direction = direction;
        if (parse_expect(p, TOK_COLON, "and a type"))
            d->type = parse_expr(p);
        if (d->type && d->type->kind == EXPR_INDEX)
            d->kind = DECL_TENSOR;
        if (parse_accept(p, TOK_ASSIGN))
            d->init = parse_expr(p);
        vec_push(&k->params, p->a, d);
        if (!parse_accept(p, TOK_COMMA))
            break;
    }
    parse_expect(p, TOK_RPAREN, "to end the parameters");
}

/* range(...) reads as a call; in a set it stands for its values. */
static void note_ranges(expr_list *values)
{
    for (uint32_t i = 0; i < values->n; i++) {
        expr *e = values->at[i];
        if (e->kind != EXPR_CALL || e->in_parens || e->a->kind != EXPR_NAME ||
            strcmp(e->a->lit.name, "range") != 0)
            continue;
        e->kind = EXPR_RANGE;
        e->a = NULL;
    }
}

/* A in {1, range(2, 9), 16}   or   A in range(16, 129, 16) */
static void parse_set(parser *p, tune_clause *t)
{
    tune_set set = {.where = parse_span(p, p->at)};

    if (p->at->kind == TOK_NAME)
        set.name = p->at->value.name;
    if (!parse_expect(p, TOK_NAME, "of a tune parameter") ||
        !parse_expect(p, TOK_IN, "after the tune parameter"))
        return;
    if (parse_is_word(p, "range"))
        vec_push(&set.values, p->a, parse_expr(p));
    else if (parse_expect(p, TOK_LBRACE, "or range(...) before the values"))
        parse_list(p, &set.values, TOK_RBRACE, false);
    note_ranges(&set.values);
    vec_push(&t->sets, p->a, set);
}

/* tune [on "cpu"] A in {1, 2}, B in {3} [with A * B < 5, ...] */
static void parse_tune(parser *p, kernel_ast *k)
{
    tune_clause t = {.target = "", .where = parse_span(p, p->before)};

    if (parse_accept_word(p, "on")) {
        if (parse_is(p, TOK_STRING))
            t.target = p->at->value.name;
        parse_expect(p, TOK_STRING, "naming a target, such as \"cpu\"");
    }
    do
        parse_set(p, &t);
    while (parse_accept(p, TOK_COMMA));
    if (parse_accept_word(p, "with")) {
        do
            vec_push(&t.constraints, p->a, parse_expr(p));
        while (parse_accept(p, TOK_COMMA));
    }
    vec_push(&k->tunes, p->a, t);
}

static void parse_grid(parser *p, kernel_ast *k)
{
    k->grid_at = parse_span(p, p->before);
    if (k->has_grid)
        diag_add(p->diags, DIAG_BAD_SIGNATURE, k->grid_at, "a kernel has one grid");
    k->has_grid = true;
    if (parse_expect(p, TOK_LPAREN, "after 'grid'"))
        parse_list(p, &k->grid, TOK_RPAREN, false);
}

static void parse_extends(parser *p, kernel_ast *k)
{
    if (!parse_accept_word(p, "extends"))
        return;
    k->base_at = parse_span(p, p->at);
    if (parse_is(p, TOK_NAME))
        k->base = p->at->value.name;
    parse_expect(p, TOK_NAME, "of the kernel to extend");
}

static void parse_clauses(parser *p, kernel_ast *k)
{
    while (!p->panic && !parse_is(p, TOK_LBRACE)) {
        if (parse_accept_word(p, "require")) {
            do
                vec_push(&k->require, p->a, parse_expr(p));
            while (parse_accept(p, TOK_COMMA));
        } else if (parse_accept_word(p, "tune")) {
            parse_tune(p, k);
        } else if (parse_accept_word(p, "grid")) {
            parse_grid(p, k);
        } else {
            parse_error(p, "'require', 'tune', 'grid' or the kernel's body");
        }
    }
}

/* After an error in the head: the body may still be worth reading. */
static void recover_head(parser *p, kernel_ast *k)
{
    if (!p->panic)
        return;
    k->is_broken = true;
    while (p->at->kind != TOK_EOF && p->at->kind != TOK_KERNEL && p->at->kind != TOK_FN) {
        if (p->at->kind == TOK_LBRACE && p->before->kind != TOK_IN) {
            p->panic = false;
            return;
        }
        parse_advance(p);
    }
}

kernel_ast *parse_kernel(parser *p, const token *first)
{
    kernel_ast *k = ARENA_NEW(p->a, kernel_ast);

    k->self = parse_decl(p, DECL_KERNEL, "of the kernel");
    if (!k->self)
        return NULL;
    k->self->kernel = k;
    if (parse_accept(p, TOK_LBRACKET))
        parse_brackets(p, k);
    bool only_extends = parse_is_word(p, "extends");
    if (!only_extends && parse_expect(p, TOK_LPAREN, "before the parameters"))
        parse_params(p, k);
    parse_extends(p, k);
    parse_clauses(p, k);
    recover_head(p, k);
    k->body = parse_block(p);
    k->where = parse_since(p, first);
    return k;
}
