#ifndef TW_IR_TEXT_H
#define TW_IR_TEXT_H
/* Tile IR <-> text. parse(print(m)) prints as print(m), byte for byte. */
#include "compiler/ir/ir.h"

enum ir_print_flags {
    IR_PRINT_PLAIN = 1 /* values are numbered, not named: what is hashed */
};
void ir_print(strbuf *out, const ir_module *m, unsigned flags);
/* NULL and diagnostics on malformed text. The result is verified. */
ir_module *ir_parse(arena *a, intern *names, const source *src, diag_list *diags);
/* Hash of the plain form: equal programs, equal hash, whatever names and positions they have. */
hash128 ir_hash(const ir_module *m);

/* Every invariant of docs/IR.md. True when all hold; otherwise diagnostics naming the op. */
bool ir_verify(const ir_module *m, diag_list *diags);

#endif
