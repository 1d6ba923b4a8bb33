#ifndef TW_IR_PARSE_H
#define TW_IR_PARSE_H
/* Inside of the parser: irparse.c has tokens, names, types and functions, irparse_layout.c layouts,
 * irparsebody.c what stands between braces. Every function returns false after reporting an error,
 * and the first error ends the parse. What the builder would refuse is checked here first, so that
 * a wrong text is a diagnostic and never a failed ICHECK; regions and terminators are left to the
 * verifier. */
#include "compiler/ir/irbuild.h"
#include "compiler/ir/irlex.h"
#include "compiler/ir/namemap.h"

#define IRP_MAX_DEPTH 64  /* blocks in blocks */
#define IRP_MAX_LIST 1024 /* operands, results, carried values, parameters */

typedef struct ir_parser {
    ir_lexer lx;
    ir_token t; /* the token to come */
    ir_fn *fn;
    namemap scope;          /* name -> value */
    VEC(const char *) open; /* names in scope, innermost last */
    int depth;
} ir_parser;

/* A value's name where it is defined. */
typedef struct binding {
    const char *name;
    span where;
} binding;

void irp_advance(ir_parser *p);
bool irp_fail(ir_parser *p, span where, enum diag_id id, const char *text);
bool irp_expected(ir_parser *p, const char *what);
bool irp_at_punct(const ir_parser *p, char c);
bool irp_at_word(const ir_parser *p, const char *word);
bool irp_take_punct(ir_parser *p, char c);
bool irp_take_word(ir_parser *p, const char *word);
bool irp_need_punct(ir_parser *p, char c);
bool irp_need_word(ir_parser *p, const char *word);
bool irp_need_int(ir_parser *p, int64_t least, int64_t most, int64_t *out);
bool irp_too_many(ir_parser *p, uint32_t n);

bool irp_need_name(ir_parser *p, binding *b);
bool irp_bind(ir_parser *p, const binding *b, ir_val v);
void irp_leave_scope(ir_parser *p, uint32_t mark);
bool irp_need_value(ir_parser *p, ir_val *v);

bool irp_need_dtype(ir_parser *p, enum dtype *d);
bool irp_type(ir_parser *p, ir_type *out);
/* irparse_layout.c: what follows "level 2", and "#name" of a layout that the kernel has. */
bool irp_schedule(ir_parser *p);
bool irp_layout(ir_parser *p, uint16_t *lay);
bool irp_block(ir_parser *p, ir_block *blk);

#endif
