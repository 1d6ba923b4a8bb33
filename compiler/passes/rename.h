#ifndef TW_PASSES_RENAME_H
#define TW_PASSES_RENAME_H
/* Replacing values during one walk in text order. Every use comes after its definition, so a pass
 * that renames the operands of each op it reaches needs no second walk and no use lists. */
#include "compiler/ir/ir.h"

typedef struct renames {
    arena *a;
    VEC(ir_val) to; /* 0 = itself */
} renames;

void rename_set(renames *r, ir_val from, ir_val to);
ir_val rename_of(const renames *r, ir_val v); /* follows chains */
/* True when an operand changed. */
bool rename_args(const renames *r, ir_op *op);

#endif
