#ifndef TW_DSL_LEX_H
#define TW_DSL_LEX_H
/* Kernel text -> tokens. The array ends with one TOK_EOF, whatever the text holds; what is not a
 * token is reported and left out. Text longer than SOURCE_MAX_BYTES, or not in UTF-8, is an error
 * and gives no tokens. */
#include "compiler/base/diag.h"
#include "compiler/base/intern.h"

enum token_kind {
#define TOKEN(id, text) TOK_##id,
#include "dsl/token.def"
    TOK_COUNT
};

typedef struct token {
    enum token_kind kind;
    uint32_t lo, hi;
    union {
        const char *name; /* NAME, STRING: interned */
        int64_t i;        /* INT */
        double f;         /* FLOAT */
    } value;
} token;

typedef struct token_list {
    VEC(token) all;
} token_list;

const char *token_text(enum token_kind k); /* as written, or "name" */
void lex_text(token_list *out, arena *a, intern *names, const source *src, diag_list *diags);
/* Of a part that begins and ends between tokens, of a text that lex_text took. */
void lex_part(token_list *out, arena *a, intern *names, span part, diag_list *diags);

#endif
