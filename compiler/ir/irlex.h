#ifndef TW_IR_LEX_H
#define TW_IR_LEX_H
/* Text of tile IR -> tokens, one at a time. */
#include "compiler/base/diag.h"
#include "compiler/base/intern.h"
#include "compiler/ir/ir.h"
#include <stdbool.h>

enum ir_token_kind {
    IRT_END, IRT_BAD, /* BAD: already reported */
    IRT_WORD,         /* kernel, f32, const.f; also inf and nan */
    IRT_VALUE,        /* %name or %12, without the % */
    IRT_FUNCTION,     /* @name */
    IRT_LAYOUT,       /* #name: level 2 */
    IRT_INT, IRT_FLOAT, IRT_TEXT,
    IRT_PUNCT         /* one character, in i */
};

typedef struct ir_token {
    enum ir_token_kind kind;
    span where;
    const char *s; /* WORD, VALUE, FUNCTION, LAYOUT: interned; TEXT: unescaped */
    int64_t i;     /* INT; PUNCT: the character */
    double f;      /* FLOAT, INT */
} ir_token;

typedef struct ir_lexer {
    const source *src;
    arena *a;
    intern *names;
    diag_list *diags;
    uint32_t at;
} ir_lexer;

ir_token ir_lex(ir_lexer *lx);
/* Is attribute i written without its name? That of a pure leaf is, and a text. */
static inline bool ir_attr_is_bare(const ir_op_info *info, int i)
{
    return (info->max_args == 0 && (info->traits & OPT_PURE)) || info->attr[i].kind == ATTR_STR;
}
bool ir_is_name(const char *s); /* a letter or _, then letters, digits, _ and . */

#endif
