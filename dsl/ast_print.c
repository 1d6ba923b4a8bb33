/* ast_print: a kernel's syntax tree as text. Statements one a line, indented by their depth;
 * expressions in prefix form, so that precedence is visible. Functions and constants of the file
 * that the kernel may use come first. */
#include "dsl/ast.h"
#include <string.h>

static void print_expr(strbuf *b, const expr *e);

static void print_list(strbuf *b, const expr_list *list, const char *between)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (i > 0)
            sb_str(b, between);
        print_expr(b, list->at[i]);
    }
}

static void print_tree(strbuf *b, const char *op, const expr *e)
{
    sb_fmt(b, "(%s ", op);
    print_expr(b, e->a);
    if (e->b)
        sb_char(b, ' '), print_expr(b, e->b);
    if (e->c)
        sb_char(b, ' '), print_expr(b, e->c);
    sb_char(b, ')');
}

static void print_expr(strbuf *b, const expr *e)
{
    switch (e->kind) {
    case EXPR_BAD:
        sb_str(b, "<error>");
        break;
    case EXPR_INT:
        sb_fmt(b, "%lld", (long long)e->lit.i);
        break;
    case EXPR_FLOAT:
        sb_float(b, e->lit.f, 0);
        break;
    case EXPR_BOOL:
        sb_str(b, e->lit.i ? "true" : "false");
        break;
    case EXPR_TEXT:
        sb_fmt(b, "\"%s\"", e->lit.name);
        break;
    case EXPR_NONE:
        sb_str(b, "None");
        break;
    case EXPR_ALL:
        sb_char(b, ':');
        break;
    case EXPR_NAME:
        sb_str(b, e->lit.name);
        break;
    case EXPR_SPAN:
        print_tree(b, ":+", e);
        break;
    case EXPR_RANGE:
        sb_str(b, "range(");
        print_list(b, &e->list, ", ");
        sb_char(b, ')');
        break;
    case EXPR_UNARY:
    case EXPR_BINARY:
        print_tree(b, token_text(e->op), e);
        break;
    case EXPR_COND:
        print_tree(b, "?:", e);
        break;
    case EXPR_CALL:
    case EXPR_INDEX:
        print_expr(b, e->a);
        sb_char(b, e->kind == EXPR_CALL ? '(' : '[');
        print_list(b, &e->list, ", ");
        sb_char(b, e->kind == EXPR_CALL ? ')' : ']');
        break;
    }
}

static void print_decl(strbuf *b, const char *word, const decl *d)
{
    sb_fmt(b, "%s%s", word, d->name);
    if (d->type)
        sb_str(b, ": "), print_expr(b, d->type);
    if (d->fn)
        sb_fmt(b, ": %s", ast_fn_type(d->fn, b->a));
    if (d->init)
        sb_str(b, " = "), print_expr(b, d->init);
}

static void print_decls(strbuf *b, const decl_list *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        sb_str(b, i > 0 ? ", " : "");
        print_decl(b, list->at[i]->is_const ? "const " : "", list->at[i]);
    }
}

static void indent(strbuf *b, int depth)
{
    sb_pad(b, ' ', depth * 2);
}

/* "  assigns a, b": what a loop or branch carries. */
static void print_assigned(strbuf *b, const decl_list *list)
{
    for (uint32_t i = 0; i < list->n; i++)
        sb_fmt(b, "%s%s", i > 0 ? ", " : "  assigns ", list->at[i]->name);
    sb_char(b, '\n');
}

static void print_stmt(strbuf *b, const stmt *s, int depth);

static void print_fn(strbuf *b, const decl *d, int depth)
{
    indent(b, depth);
    sb_fmt(b, "fn %s(", d->name);
    print_decls(b, &d->fn->args);
    sb_char(b, ')');
    print_assigned(b, &d->fn->assigned);
    print_stmt(b, d->fn->body, depth + 1);
}

static void print_declarations(strbuf *b, const stmt *s, int depth)
{
    for (uint32_t i = 0; i < s->decls.n; i++) {
        const decl *d = s->decls.at[i];
        indent(b, depth);
        print_decl(b, d->kind == DECL_LET ? "let " : d->kind == DECL_VAR ? "var " : "const ", d);
        sb_char(b, '\n');
    }
}

static void print_branches(strbuf *b, const stmt *s, int depth)
{
    indent(b, depth);
    sb_str(b, s->kind == STMT_IF ? "if " : "while ");
    print_expr(b, s->cond);
    print_assigned(b, &s->assigned);
    print_stmt(b, s->then, depth + 1);
    if (s->other) {
        indent(b, depth);
        sb_str(b, "else\n");
        print_stmt(b, s->other, depth + 1);
    }
}

static void print_stmt(strbuf *b, const stmt *s, int depth)
{
    switch (s->kind) {
    case STMT_EMPTY:
    case STMT_JUMP:
        return;
    case STMT_BLOCK:
        for (uint32_t i = 0; i < s->body.n; i++)
            print_stmt(b, s->body.at[i], depth);
        return;
    case STMT_DECL:
        print_declarations(b, s, depth);
        return;
    case STMT_FN:
        for (uint32_t i = 0; i < s->decls.n; i++)
            print_fn(b, s->decls.at[i], depth);
        return;
    case STMT_IF:
    case STMT_WHILE:
        print_branches(b, s, depth);
        return;
    case STMT_FOR:
    case STMT_MASKED:
        indent(b, depth);
        if (s->decls.n == 2)
            sb_fmt(b, "for %s, %s in masked_range(", s->decls.at[0]->name, s->decls.at[1]->name);
        else
            sb_fmt(b, "for %s in range(", s->decls.n ? s->decls.at[0]->name : "");
        print_list(b, &s->list, ", ");
        sb_char(b, ')');
        print_assigned(b, &s->assigned);
        print_stmt(b, s->then, depth + 1);
        return;
    case STMT_ASSIGN:
        indent(b, depth);
        print_list(b, &s->targets, ", ");
        sb_fmt(b, " %s ", token_text(s->op));
        print_list(b, &s->list, ", ");
        break;
    case STMT_EXPR:
    case STMT_RETURN:
        indent(b, depth);
        sb_str(b, s->kind == STMT_RETURN ? "return " : "");
        if (s->cond)
            print_expr(b, s->cond);
        break;
    }
    sb_char(b, '\n');
}

static void print_tune(strbuf *b, const tune_clause *t)
{
    sb_str(b, "  tune");
    if (*t->target)
        sb_fmt(b, " on \"%s\"", t->target);
    for (uint32_t i = 0; i < t->sets.n; i++) {
        sb_fmt(b, "%s %s in {", i > 0 ? "," : "", t->sets.at[i].name);
        print_list(b, &t->sets.at[i].values, ", ");
        sb_char(b, '}');
    }
    sb_str(b, t->constraints.n ? " with " : "");
    print_list(b, &t->constraints, ", ");
    sb_char(b, '\n');
}

static void print_head(strbuf *b, const kernel_ast *k)
{
    static const char *const direction[] = {"in ", "out ", "inout "};

    sb_fmt(b, "kernel %s\n", k->self->name);
    for (uint32_t i = 0; i < k->brackets.n; i++) {
        print_decl(b, "  const ", k->brackets.at[i]);
        sb_char(b, '\n');
    }
    for (uint32_t i = 0; i < k->params.n; i++) {
        const decl *d = k->params.at[i];
        sb_str(b, "  ");
        print_decl(b, d->kind == DECL_TENSOR ? direction[d->direction] : "scalar ", d);
        sb_char(b, '\n');
    }
    for (uint32_t i = 0; i < k->require.n; i++) {
        sb_str(b, "  require ");
        print_expr(b, k->require.at[i]);
        sb_char(b, '\n');
    }
    for (uint32_t i = 0; i < k->tunes.n; i++)
        print_tune(b, &k->tunes.at[i]);
    sb_str(b, "  grid (");
    print_list(b, &k->grid, ", ");
    sb_str(b, ")\n");
}

const char *ast_print_kernel(const kernel_ast *k, const unit_ast *u, arena *a)
{
    strbuf b;

    sb_init(&b, a);
    for (uint32_t i = 0; i < u->top.n; i++) {
        const decl *d = u->top.at[i];
        if (d->kind == DECL_CONST) {
            print_decl(&b, "const ", d);
            sb_char(&b, '\n');
        } else if (d->kind == DECL_FN) {
            print_fn(&b, d, 0);
        } else if (d->kind == DECL_ENUM) {
            sb_fmt(&b, "enum %s", d->name);
            for (uint32_t m = 0; m < d->members.n; m++)
                sb_fmt(&b, " %s", d->members.at[m]->name);
            sb_char(&b, '\n');
        }
    }
    print_head(&b, k);
    print_stmt(&b, k->body, 2);
    return b.s;
}

const char *ast_fn_type(const fn_body *fn, arena *a)
{
    strbuf b;

    sb_init(&b, a);
    sb_str(&b, "fn(");
    for (uint32_t i = 0; i < fn->args.n; i++)
        sb_fmt(&b, "%s%s", i ? ", " : "", fn->args.at[i]->name);
    sb_char(&b, ')');
    return b.s;
}

const char *ast_source_text(const expr *e, arena *a, size_t max)
{
    span w = e->where;
    size_t n = w.hi - w.lo, kept = n > max ? max : n;
    char *text = arena_strndup(a, w.src->text + w.lo, kept);

    for (char *c = text; *c; c++) {
        if (*c == '\n' || *c == '\t' || *c == '\r')
            *c = ' ';
    }
    return n > max ? arena_printf(a, "%s...", text) : text;
}
