/* parse_expr: expressions, by precedence climbing. The levels are C's. */
#include "dsl/parse.h"
#include <string.h>

static expr *new_expr(parser *p, enum expr_kind kind, const token *first)
{
    expr *e = ARENA_NEW(p->a, expr);

    e->kind = kind;
    e->op = first->kind;
    e->at = parse_span(p, first);
    e->where = e->at;
    e->depth = 1;
    return e;
}

static void measure(expr *e, const expr *child)
{
    if (child && child->depth >= e->depth)
        e->depth = (uint16_t)(child->depth + 1);
}

/* Sets extent and depth. A tree that is not whole, or too tall, is cut down to one bad leaf. */
static expr *finish(parser *p, expr *e, const token *first)
{
    if (p->panic)
        return new_expr(p, EXPR_BAD, first);
    e->where = parse_since(p, first);
    measure(e, e->a);
    measure(e, e->b);
    measure(e, e->c);
    for (uint32_t i = 0; i < e->list.n; i++)
        measure(e, e->list.at[i]);
    if (e->depth <= PARSE_MAX_TREE)
        return e;
    diag_add(p->diags, DIAG_LIMIT, e->at, "this expression has more than %d levels",
             PARSE_MAX_TREE);
    p->panic = true;
    return new_expr(p, EXPR_BAD, first);
}

/* How tightly a binary operator binds; 0 = not one. */
static int level_of(enum token_kind k)
{
    switch ((int)k) {
    case TOK_OR_OR:
        return 1;
    case TOK_AND_AND:
        return 2;
    case TOK_PIPE:
        return 3;
    case TOK_CARET:
        return 4;
    case TOK_AMP:
        return 5;
    case TOK_EQ:
    case TOK_NE:
        return 6;
    case TOK_LT:
    case TOK_LE:
    case TOK_GT:
    case TOK_GE:
        return 7;
    case TOK_SHL:
    case TOK_SHR:
        return 8;
    case TOK_PLUS:
    case TOK_MINUS:
        return 9;
    case TOK_STAR:
    case TOK_SLASH:
    case TOK_PERCENT:
        return 10;
    default:
        return 0;
    }
}

static expr *parse_primary(parser *p)
{
    const token *t = p->at;
    expr *e;

    if (parse_accept(p, TOK_LPAREN)) {
        e = parse_expr(p);
        parse_expect(p, TOK_RPAREN, "to close '('");
        e->in_parens = true;
        e->where = parse_since(p, t);
        return e;
    }
    e = new_expr(p, EXPR_BAD, t);
    if (parse_accept(p, TOK_INT)) {
        e->kind = EXPR_INT;
        e->lit.i = t->value.i;
    } else if (parse_accept(p, TOK_FLOAT)) {
        e->kind = EXPR_FLOAT;
        e->lit.f = t->value.f;
    } else if (parse_accept(p, TOK_NAME)) {
        e->kind = EXPR_NAME;
        e->lit.name = t->value.name;
    } else if (parse_accept(p, TOK_TRUE) || parse_accept(p, TOK_FALSE)) {
        e->kind = EXPR_BOOL;
        e->lit.i = t->kind == TOK_TRUE;
    } else if (parse_accept(p, TOK_STRING)) {
        e->kind = EXPR_TEXT;
        e->lit.name = t->value.name;
    } else {
        diag *d = parse_error(p, "an expression");
        if (t->kind == TOK_NONE || t->kind == TOK_COLON || t->kind == TOK_SPAN)
            diag_hint(p->diags, d, "'%s' only stands in an index: x[...]", token_text(t->kind));
        else if (t->kind == TOK_PLUS && p->before && p->before->kind == TOK_PLUS)
            diag_hint(p->diags, d, "there is no ++; write x += 1");
    }
    return e;
}

static expr *parse_index_item(parser *p)
{
    const token *first = p->at;
    expr *e = new_expr(p, EXPR_BAD, first);

    if (parse_accept(p, TOK_NONE)) {
        e->kind = EXPR_NONE;
        return e;
    }
    if (parse_accept(p, TOK_COLON)) {
        e->kind = EXPR_ALL;
        return e;
    }
    expr *from = parse_expr(p);
    const token *op = p->at;
    if (parse_is(p, TOK_COLON)) {
        diag *d = parse_error(p, "',' or ']'");
        diag_hint(p->diags, d, "a slice is written start :+ length");
    }
    if (!parse_accept(p, TOK_SPAN))
        return from;
    e->kind = EXPR_SPAN;
    e->op = TOK_SPAN;
    e->at = parse_span(p, op);
    e->a = from;
    e->b = parse_expr(p);
    return finish(p, e, first);
}

void parse_list(parser *p, expr_list *out, enum token_kind close, bool index)
{
    while (!p->panic && !parse_is(p, close)) {
        expr *e = index ? parse_index_item(p) : parse_expr(p);
        vec_push(out, p->a, e);
        if (!parse_accept(p, TOK_COMMA))
            break;
    }
    parse_expect(p, close, close == TOK_RPAREN ? "to close '('" : "");
}

static expr *parse_postfix(parser *p)
{
    const token *first = p->at;
    expr *e = parse_primary(p);

    for (;;) {
        const token *t = p->at;
        bool call = parse_accept(p, TOK_LPAREN);
        if (!call && !parse_accept(p, TOK_LBRACKET))
            break;
        expr *outer = new_expr(p, call ? EXPR_CALL : EXPR_INDEX, t);
        outer->a = e;
        outer->at = e->where;
        parse_list(p, &outer->list, call ? TOK_RPAREN : TOK_RBRACKET, !call);
        if (!call && outer->list.n == 0 && !p->panic)
            diag_add(p->diags, DIAG_SYNTAX, parse_since(p, t),
                     "expected an index between '[' and ']'");
        e = finish(p, outer, first);
    }
    if (parse_is(p, TOK_DOT)) {
        diag *d = parse_error(p, "an operator");
        diag_hint(p->diags, d, "there are no members or methods: write f(x), not x.f()");
    }
    return e;
}

static expr *parse_unary(parser *p)
{
    const token *t = p->at;

    if (!parse_is(p, TOK_MINUS) && !parse_is(p, TOK_BANG) && !parse_is(p, TOK_TILDE))
        return parse_postfix(p);
    if (!parse_enter(p)) {
        parse_leave(p);
        return new_expr(p, EXPR_BAD, t);
    }
    parse_advance(p);
    expr *e = new_expr(p, EXPR_UNARY, t);
    e->a = parse_unary(p);
    parse_leave(p);
    return finish(p, e, t);
}

static bool is_comparison(enum token_kind k)
{
    return level_of(k) == 6 || level_of(k) == 7;
}

static void refuse_chain(parser *p, const expr *left, const token *op)
{
    if (left->kind != EXPR_BINARY || left->in_parens || !is_comparison(left->op) ||
        level_of(left->op) != level_of(op->kind) || p->panic)
        return;
    diag *d = diag_add(p->diags, DIAG_CHAINED_COMPARISON, parse_span(p, op),
                       "a comparison cannot be compared again");
    diag_hint(p->diags, d, "write a %s b & b %s c, or use parentheses", token_text(left->op),
              token_text(op->kind));
}

static expr *parse_binary(parser *p, int least)
{
    const token *first = p->at;
    expr *left = parse_unary(p);

    while (!p->panic) {
        const token *op = p->at;
        int level = level_of(op->kind);
        if (level == 0 || level < least)
            break;
        refuse_chain(p, left, op);
        parse_advance(p);
        expr *e = new_expr(p, EXPR_BINARY, op);
        e->a = left;
        e->b = parse_binary(p, level + 1);
        left = finish(p, e, first);
    }
    return left;
}

static expr *parse_cond(parser *p)
{
    const token *first = p->at;
    expr *left = parse_binary(p, 1);
    const token *op = p->at;

    if (!parse_accept(p, TOK_QUESTION))
        return left;
    expr *e = new_expr(p, EXPR_COND, op);
    e->a = left;
    e->b = parse_expr(p);
    parse_expect(p, TOK_COLON, "between the two values");
    e->c = parse_expr(p);
    return finish(p, e, first);
}

expr *parse_expr(parser *p)
{
    if (p->panic)
        return new_expr(p, EXPR_BAD, p->at);
    expr *e = parse_enter(p) ? parse_cond(p) : new_expr(p, EXPR_BAD, p->at);
    parse_leave(p);
    return e;
}
