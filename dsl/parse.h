#ifndef TW_DSL_PARSE_H
#define TW_DSL_PARSE_H
/* Tokens -> syntax tree, by recursive descent. After an error the parser is quiet (`panic`) and
 * reads nothing more until a statement, clause or declaration ends; then it goes on, so that one
 * run reports several mistakes. The tree is complete, with EXPR_BAD and STMT_EMPTY where text was
 * wrong. Recursion is bounded by PARSE_MAX_NESTING and PARSE_MAX_TREE. */
#include "dsl/ast.h"

unit_ast *parse_text(arena *a, intern *names, const source *src, diag_list *diags);
/* Another tree of a kernel whose text was read without errors. */
kernel_ast *parse_kernel_anew(arena *a, intern *names, const kernel_ast *k, diag_list *diags);

/* ---- inside the parser ---- */

#define PARSE_MAX_NESTING 64 /* brackets, blocks, prefix operators around one place */
#define PARSE_MAX_TREE 256   /* levels of one expression: a + b + c + ... */

typedef struct parser {
    const token *at; /* never moves past TOK_EOF */
    const token *before;
    const source *src;
    arena *a;
    diag_list *diags;
    unit_ast *unit;
    int nesting;
    bool panic;
} parser;

span parse_span(const parser *p, const token *t);
/* From the first token to the last one consumed. */
span parse_since(const parser *p, const token *first);
bool parse_is(const parser *p, enum token_kind k);
bool parse_is_word(const parser *p, const char *word); /* a name with a meaning only here */
bool parse_accept(parser *p, enum token_kind k);
bool parse_accept_word(parser *p, const char *word);
/* Consumes k; else reports "expected 'k' context" and panics. */
bool parse_expect(parser *p, enum token_kind k, const char *context);
/* The current token is not what the grammar wants. Reports unless in panic; NULL then. */
diag *parse_error(parser *p, const char *expected);
void parse_advance(parser *p);
/* After a panic in the statement that began at first: skips to its end. */
void parse_recover(parser *p, const token *first);
/* Counts a level of nesting; false, and panic, when there are too many. */
bool parse_enter(parser *p);
void parse_leave(parser *p);

expr *parse_expr(parser *p);
/* One or more expressions up to the closing token, which is consumed; index: None, :, :+ too. */
void parse_list(parser *p, expr_list *out, enum token_kind close, bool index);
stmt *parse_block(parser *p);
decl *parse_decl(parser *p, enum decl_kind kind, const char *what); /* consumes a name */
void parse_fn(parser *p, decl_list *out);                           /* after `fn` */
/* (a, b): the type of a parameter that is a function; after `fn`. */
fn_body *parse_fn_type(parser *p);
void parse_const(parser *p, decl_list *out, enum decl_kind kind); /* after let, var, const; to ; */
kernel_ast *parse_kernel(parser *p, const token *first);

#endif
