/* parse_stmt: statements. An error in one is reported once and ends with it. */
#include "dsl/parse.h"
#include <string.h>

static stmt *parse_stmt(parser *p);

static stmt *new_stmt(parser *p, enum stmt_kind kind, const token *first)
{
    stmt *s = ARENA_NEW(p->a, stmt);

    s->kind = kind;
    s->op = first->kind;
    s->where = parse_span(p, first);
    return s;
}

stmt *parse_block(parser *p)
{
    stmt *s = new_stmt(p, STMT_BLOCK, p->at);
    const token *open = p->at;

    if (!parse_expect(p, TOK_LBRACE, "to begin a block"))
        return s;
    if (parse_enter(p)) {
        while (!parse_is(p, TOK_RBRACE) && p->at->kind != TOK_EOF) {
            const token *first = p->at;
            vec_push(&s->body, p->a, parse_stmt(p));
            parse_recover(p, first);
            if (p->at == first)
                parse_advance(p);
        }
    }
    parse_leave(p);
    s->where = parse_since(p, open);
    if (!parse_accept(p, TOK_RBRACE) && !p->panic) {
        diag *d = parse_error(p, "'}'");
        diag_note(p->diags, d, parse_span(p, open), "this '{' is not closed");
    }
    return s;
}

static stmt *parse_if(parser *p)
{
    stmt *s = new_stmt(p, STMT_IF, p->at);

    parse_advance(p);
    if (parse_expect(p, TOK_LPAREN, "after 'if'"))
        s->cond = parse_expr(p);
    parse_expect(p, TOK_RPAREN, "to end the condition");
    s->then = parse_stmt(p);
    if (parse_accept(p, TOK_ELSE))
        s->other = parse_stmt(p);
    return s;
}

static stmt *parse_while(parser *p)
{
    stmt *s = new_stmt(p, STMT_WHILE, p->at);

    parse_advance(p);
    if (parse_expect(p, TOK_LPAREN, "after 'while'"))
        s->cond = parse_expr(p);
    parse_expect(p, TOK_RPAREN, "to end the condition");
    s->then = parse_stmt(p);
    return s;
}

/* range(...) behind one name, masked_range(...) behind two. */
static bool parse_range(parser *p, stmt *s)
{
    const char *word = s->decls.n == 2 ? "masked_range" : "range";

    if (!parse_accept_word(p, word)) {
        diag *d = parse_error(p, s->decls.n == 2 ? "'masked_range(...)'" : "'range(...)'");
        diag_hint(p->diags, d, "write for i in range(first, end, step), or for i, EDGE in "
                               "masked_range(first, end, step, visible)");
        return false;
    }
    if (parse_expect(p, TOK_LPAREN, s->decls.n == 2 ? "after 'masked_range'" : "after 'range'"))
        parse_list(p, &s->list, TOK_RPAREN, false);
    return true;
}

static stmt *parse_for(parser *p)
{
    stmt *s = new_stmt(p, STMT_FOR, p->at);

    parse_advance(p);
    if (parse_is(p, TOK_LPAREN)) {
        diag *d = parse_error(p, "a name");
        diag_hint(p->diags, d, "write for i in range(first, end, step)");
        return s;
    }
    decl *counter = parse_decl(p, DECL_LOOP, "of the counter"), *edge = NULL;
    if (!counter)
        return s;
    vec_push(&s->decls, p->a, counter);
    if (parse_accept(p, TOK_COMMA)) {
        s->kind = STMT_MASKED;
        edge = parse_decl(p, DECL_LOOP, "of what tells masked blocks from whole ones");
        if (!edge)
            return s;
        vec_push(&s->decls, p->a, edge);
    }
    if (parse_expect(p, TOK_IN, "after the counter") && parse_range(p, s))
        s->then = parse_stmt(p);
    return s;
}

/* break; continue; are read so that the message can say what to do instead. */
static stmt *parse_jump(parser *p)
{
    stmt *s = new_stmt(p, STMT_JUMP, p->at);
    const char *word = token_text(p->at->kind);
    diag *d = diag_add(p->diags, DIAG_JUMP, parse_span(p, p->at), "there is no '%s'", word);

    diag_hint(p->diags, d, "%s",
              p->at->kind == TOK_BREAK ? "put the condition in the loop: while (more) { ... }"
                                       : "put the rest of the body under an if");
    parse_advance(p);
    parse_expect(p, TOK_SEMI, "");
    return s;
}

static stmt *parse_return(parser *p)
{
    stmt *s = new_stmt(p, STMT_RETURN, p->at);
    const token *first = p->at;

    parse_advance(p);
    if (!parse_is(p, TOK_SEMI))
        s->cond = parse_expr(p);
    s->where = parse_since(p, first);
    parse_expect(p, TOK_SEMI, "");
    return s;
}

static bool is_assignment(enum token_kind k)
{
    return k == TOK_ASSIGN || k == TOK_SHL_ASSIGN || k == TOK_SHR_ASSIGN ||
           (k >= TOK_ADD_ASSIGN && k <= TOK_XOR_ASSIGN);
}

static void check_targets(parser *p, const stmt *s)
{
    for (uint32_t i = 0; i < s->targets.n; i++) {
        const expr *e = s->targets.at[i];
        if (e->kind == EXPR_NAME || e->kind == EXPR_BAD)
            continue;
        diag *d = diag_add(p->diags, DIAG_NOT_ASSIGNABLE, e->where, "only a var can be assigned");
        if (e->kind == EXPR_INDEX)
            diag_hint(p->diags, d, "memory is written with store(tensor[...], value)");
    }
    if (s->op != TOK_ASSIGN && s->targets.n > 1)
        diag_add(p->diags, DIAG_SYNTAX, s->where, "'%s' takes one target", token_text(s->op));
    else if (s->targets.n != s->list.n && !p->panic)
        diag_add(p->diags, DIAG_SYNTAX, s->where, "%u values for %u targets", s->list.n,
                 s->targets.n);
}

/* a, b = b, a;   a += 1;   store(...); */
static stmt *parse_simple(parser *p)
{
    stmt *s = new_stmt(p, STMT_EXPR, p->at);
    const token *first = p->at;

    s->cond = parse_expr(p);
    if (!p->panic && (is_assignment(p->at->kind) || p->at->kind == TOK_COMMA)) {
        s->kind = STMT_ASSIGN;
        vec_push(&s->targets, p->a, s->cond);
        while (parse_accept(p, TOK_COMMA))
            vec_push(&s->targets, p->a, parse_expr(p));
        s->op = p->at->kind;
        if (!p->panic && !is_assignment(s->op))
            parse_error(p, "'='");
        else if (!p->panic)
            parse_advance(p);
        do
            vec_push(&s->list, p->a, parse_expr(p));
        while (parse_accept(p, TOK_COMMA));
    }
    s->where = parse_since(p, first);
    if (s->kind == STMT_ASSIGN && !p->panic)
        check_targets(p, s);
    parse_expect(p, TOK_SEMI, "");
    return s;
}

static stmt *parse_decls(parser *p, enum decl_kind kind)
{
    stmt *s = new_stmt(p, STMT_DECL, p->at);

    parse_advance(p);
    parse_const(p, &s->decls, kind);
    return s;
}

static stmt *parse_one(parser *p)
{
    switch ((int)p->at->kind) {
    case TOK_LBRACE:
        return parse_block(p);
    case TOK_LET:
        return parse_decls(p, DECL_LET);
    case TOK_VAR:
        return parse_decls(p, DECL_VAR);
    case TOK_CONST:
        return parse_decls(p, DECL_CONST);
    case TOK_FN: {
        stmt *s = new_stmt(p, STMT_FN, p->at);
        parse_advance(p);
        parse_fn(p, &s->decls);
        return s;
    }
    case TOK_IF:
        return parse_if(p);
    case TOK_FOR:
        return parse_for(p);
    case TOK_WHILE:
        return parse_while(p);
    case TOK_RETURN:
        return parse_return(p);
    case TOK_BREAK:
    case TOK_CONTINUE:
        return parse_jump(p);
    case TOK_SEMI: {
        stmt *s = new_stmt(p, STMT_EMPTY, p->at);
        parse_advance(p);
        return s;
    }
    default:
        return parse_simple(p);
    }
}

static stmt *parse_stmt(parser *p)
{
    const token *first = p->at;

    if (p->panic)
        return new_stmt(p, STMT_EMPTY, first);
    stmt *s = parse_enter(p) ? parse_one(p) : new_stmt(p, STMT_EMPTY, first);
    parse_leave(p);
    return s;
}
