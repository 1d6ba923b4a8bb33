/* parse: tokens -> tree: the machinery, and the top level of a file. */
#include "dsl/parse.h"
#include "dsl/foreign.h"
#include <string.h>

span parse_span(const parser *p, const token *t)
{
    return (span){p->src, t->lo, t->hi};
}

span parse_since(const parser *p, const token *first)
{
    uint32_t hi = p->before && p->before->hi > first->lo ? p->before->hi : first->hi;

    return (span){p->src, first->lo, hi};
}

bool parse_is(const parser *p, enum token_kind k)
{
    return !p->panic && p->at->kind == k;
}

bool parse_is_word(const parser *p, const char *word)
{
    return parse_is(p, TOK_NAME) && strcmp(p->at->value.name, word) == 0;
}

void parse_advance(parser *p)
{
    p->before = p->at;
    if (p->at->kind != TOK_EOF)
        p->at++;
}

bool parse_accept(parser *p, enum token_kind k)
{
    if (!parse_is(p, k))
        return false;
    parse_advance(p);
    return true;
}

bool parse_accept_word(parser *p, const char *word)
{
    if (!parse_is_word(p, word))
        return false;
    parse_advance(p);
    return true;
}

static const char *found(const parser *p, const token *t)
{
    uint32_t n = t->hi - t->lo;

    if (t->kind == TOK_EOF)
        return "the end of the file";
    return arena_printf(p->a, "'%.*s'%s", (int)(n > 30 ? 30 : n), p->src->text + t->lo,
                        n > 30 ? "..." : "");
}

diag *parse_error(parser *p, const char *expected)
{
    if (p->panic)
        return NULL;
    p->panic = true;
    return diag_add(p->diags, DIAG_SYNTAX, parse_span(p, p->at), "expected %s, found %s", expected,
                    found(p, p->at));
}

static void hint_at(parser *p, diag *d, enum token_kind wanted)
{
    enum token_kind next = p->at->kind;
    const char *hint = foreign_hint(p->src->text + p->at->lo, p->at->hi - p->at->lo);

    if (next == TOK_NAME && hint)
        diag_hint(p->diags, d, "%s", hint);
    else if (next == TOK_ASSIGN && wanted == TOK_RPAREN)
        diag_hint(p->diags, d, "a comparison is written ==");
    else if (next == TOK_LBRACE && wanted == TOK_SEMI && p->before->kind == TOK_RPAREN)
        diag_hint(p->diags, d, "before a block: if (...), else if (...), for ... or while (...)");
    else if (next == TOK_NAME && wanted == TOK_SEMI && p->before->kind == TOK_NAME)
        diag_hint(p->diags, d, "a declaration is written let x = ...; or var x = ...;");
    else if (p->at->kind >= TOK_KERNEL && p->at->kind < TOK_COUNT && wanted == TOK_NAME)
        diag_hint(p->diags, d, "'%s' is a reserved word", token_text(next));
}

bool parse_expect(parser *p, enum token_kind k, const char *context)
{
    if (parse_accept(p, k))
        return true;
    if (p->panic)
        return false;
    const char *quote = k <= TOK_STRING ? "" : "'";
    const char *what =
        arena_printf(p->a, "%s%s%s%s%s", quote, token_text(k), quote, *context ? " " : "", context);
    /* A missing ; or closing bracket belongs to the end of what was written, not to what follows,
     * which may be lines below. */
    bool closes = k == TOK_SEMI || k == TOK_RPAREN || k == TOK_RBRACKET || k == TOK_COMMA;
    if (closes && p->before &&
        source_line(p->src, p->before->hi) < source_line(p->src, p->at->lo)) {
        span end = {p->src, p->before->hi - 1, p->before->hi};
        p->panic = true;
        diag_add(p->diags, DIAG_SYNTAX, end, "expected %s after this", what);
        if (k == TOK_SEMI)
            p->panic = false; /* as if it were there */
        return k == TOK_SEMI;
    }
    hint_at(p, parse_error(p, what), k);
    return false;
}

bool parse_enter(parser *p)
{
    if (p->nesting++ < PARSE_MAX_NESTING)
        return true;
    if (!p->panic)
        diag_add(p->diags, DIAG_LIMIT, parse_span(p, p->at),
                 "this is nested more than %d levels deep", PARSE_MAX_NESTING);
    p->panic = true;
    return false;
}

void parse_leave(parser *p)
{
    p->nesting--;
}

static bool starts_statement(enum token_kind k)
{
    switch ((int)k) {
    case TOK_LET:
    case TOK_VAR:
    case TOK_CONST:
    case TOK_FN:
    case TOK_IF:
    case TOK_FOR:
    case TOK_WHILE:
    case TOK_RETURN:
    case TOK_KERNEL:
        return true;
    default:
        return false;
    }
}

static void skip_statement(parser *p)
{
    int depth = 0, parens = 0;

    for (; p->at->kind != TOK_EOF; parse_advance(p)) {
        enum token_kind k = p->at->kind;
        if (k == TOK_LPAREN || k == TOK_RPAREN)
            parens += k == TOK_LPAREN ? 1 : parens > 0 ? -1 : 0;
        if (k == TOK_LBRACE) {
            depth++;
        } else if (k == TOK_RBRACE) {
            if (depth == 0)
                return;
            if (--depth == 0) {
                parse_advance(p);
                return;
            }
        } else if (depth == 0 && parens == 0 && k == TOK_SEMI) {
            parse_advance(p);
            return;
        } else if (depth == 0 && starts_statement(k)) {
            return;
        }
    }
}

void parse_recover(parser *p, const token *first)
{
    if (!p->panic)
        return;
    p->panic = false;
    skip_statement(p);
    for (; first < p->at; first++) {
        if (first->kind == TOK_NAME)
            vec_push(&p->unit->doubtful, p->a, first->value.name);
    }
}

decl *parse_decl(parser *p, enum decl_kind kind, const char *what)
{
    decl *d = ARENA_NEW(p->a, decl);

    d->kind = kind;
    d->where = parse_span(p, p->at);
    d->name = p->at->kind == TOK_NAME ? p->at->value.name : "";
    if (!parse_expect(p, TOK_NAME, what))
        return NULL;
    return d;
}

void parse_const(parser *p, decl_list *out, enum decl_kind kind)
{
    do {
        decl *d = parse_decl(p, kind, "to declare");
        if (!d)
            return;
        if (parse_accept(p, TOK_COLON))
            d->type = parse_expr(p);
        if (parse_expect(p, TOK_ASSIGN, "and a value"))
            d->init = parse_expr(p);
        vec_push(out, p->a, d);
    } while (parse_accept(p, TOK_COMMA));
    parse_expect(p, TOK_SEMI, "");
}

static void parse_fn_args(parser *p, fn_body *fn)
{
    while (!p->panic && !parse_is(p, TOK_RPAREN)) {
        bool is_const = parse_accept(p, TOK_CONST);
        decl *arg = parse_decl(p, DECL_ARG, "of a parameter");
        if (!arg)
            return;
        arg->is_const = is_const;
        if (parse_accept(p, TOK_COLON)) {
            if (parse_accept(p, TOK_FN))
                arg->fn = parse_fn_type(p);
            else
                arg->type = parse_expr(p);
        }
        if (arg->fn && !is_const && !p->panic) {
            diag *d = diag_add(p->diags, DIAG_BAD_SIGNATURE, arg->where,
                               "a function is a compile-time value");
            diag_hint(p->diags, d, "write const %s: fn(...)", arg->name);
        }
        vec_push(&fn->args, p->a, arg);
        if (!parse_accept(p, TOK_COMMA))
            break;
    }
    parse_expect(p, TOK_RPAREN, "to end the parameters");
}

fn_body *parse_fn_type(parser *p)
{
    fn_body *fn = ARENA_NEW(p->a, fn_body);

    if (!parse_expect(p, TOK_LPAREN, "before the names of its parameters"))
        return fn;
    while (!p->panic && !parse_is(p, TOK_RPAREN)) {
        decl *arg = parse_decl(p, DECL_ARG, "of a parameter");
        if (!arg)
            return fn;
        vec_push(&fn->args, p->a, arg);
        if (!parse_accept(p, TOK_COMMA))
            break;
    }
    parse_expect(p, TOK_RPAREN, "to end the parameters");
    return fn;
}

void parse_fn(parser *p, decl_list *out)
{
    decl *d = parse_decl(p, DECL_FN, "of the function");

    if (!d)
        return;
    d->fn = ARENA_NEW(p->a, fn_body);
    if (parse_expect(p, TOK_LPAREN, "before the parameters"))
        parse_fn_args(p, d->fn);
    d->fn->body = parse_block(p);
    vec_push(out, p->a, d);
}

/* enum NAME { MEMBER, ... }: the members are declarations of the file. */
static void parse_enum(parser *p, unit_ast *unit)
{
    decl *d = parse_decl(p, DECL_ENUM, "of the enumeration");

    if (!d || !parse_expect(p, TOK_LBRACE, "before the members"))
        return;
    vec_push(&unit->top, p->a, d);
    while (!p->panic && !parse_is(p, TOK_RBRACE)) {
        decl *member = parse_decl(p, DECL_MEMBER, "of a member");
        if (!member)
            return;
        member->of = d;
        member->id = (int)vec_push(&d->members, p->a, member);
        vec_push(&unit->top, p->a, member);
        if (!parse_accept(p, TOK_COMMA))
            break;
    }
    parse_expect(p, TOK_RBRACE, "to end the members");
    if (d->members.n == 0 && !p->panic)
        diag_add(p->diags, DIAG_SYNTAX, d->where, "an enumeration of no members");
}

static void parse_import(parser *p, unit_ast *unit)
{
    import_ast import = {.where = parse_span(p, p->at)};

    if (parse_is(p, TOK_STRING))
        import.path = p->at->value.name;
    if (!parse_expect(p, TOK_STRING, "naming a file"))
        return;
    vec_push(&unit->imports, p->a, import);
    parse_expect(p, TOK_SEMI, "");
}

static void parse_top(parser *p, unit_ast *unit)
{
    const token *first = p->at;

    if (parse_accept(p, TOK_CONST)) {
        parse_const(p, &unit->top, DECL_CONST);
    } else if (parse_accept(p, TOK_FN)) {
        parse_fn(p, &unit->top);
    } else if (parse_accept(p, TOK_KERNEL)) {
        kernel_ast *k = parse_kernel(p, first);
        if (k)
            vec_push(&unit->top, p->a, k->self);
    } else if (parse_accept(p, TOK_ENUM)) {
        parse_enum(p, unit);
    } else if (parse_accept(p, TOK_IMPORT)) {
        parse_import(p, unit);
    } else {
        diag *d = parse_error(p, "'kernel', 'fn', 'const', 'enum' or 'import'");
        if (p->at->kind == TOK_LET || p->at->kind == TOK_VAR)
            diag_hint(p->diags, d, "outside of kernels and functions there are only constants");
    }
    if (p->at == first)
        parse_advance(p);
}

/* Between top-level declarations a panic ends at the next one. */
static void recover_top(parser *p)
{
    p->panic = false;
    while (p->at->kind != TOK_EOF && p->at->kind != TOK_KERNEL && p->at->kind != TOK_FN &&
           p->at->kind != TOK_CONST && p->at->kind != TOK_IMPORT && p->at->kind != TOK_ENUM)
        parse_advance(p);
}

unit_ast *parse_text(arena *a, intern *names, const source *src, diag_list *diags)
{
    unit_ast *unit = ARENA_NEW(a, unit_ast);
    token_list tokens;

    lex_text(&tokens, a, names, src, diags);
    parser p = {.at = tokens.all.at, .src = src, .a = a, .diags = diags, .unit = unit};
    unit->src = src;
    while (p.at->kind != TOK_EOF) {
        parse_top(&p, unit);
        p.nesting = 0;
        if (p.panic)
            recover_top(&p);
    }
    return unit;
}

kernel_ast *parse_kernel_anew(arena *a, intern *names, const kernel_ast *k, diag_list *diags)
{
    unit_ast *unit = ARENA_NEW(a, unit_ast);
    token_list tokens;

    lex_part(&tokens, a, names, k->where, diags);
    parser p = {.at = tokens.all.at, .src = k->where.src, .a = a, .diags = diags, .unit = unit};
    const token *first = p.at;
    return parse_accept(&p, TOK_KERNEL) ? parse_kernel(&p, first) : NULL;
}
