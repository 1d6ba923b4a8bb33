#ifndef TW_PASSES_PURITY_H
#define TW_PASSES_PURITY_H
#include "compiler/ir/ir.h"

/* True when op has no effect and gives the same wherever its operands are the same: PURE ops, and
 * loads of `in` tensors, which nobody writes during a launch (no out tensor overlaps one: a launch
 * checks that). Such an op may be moved anywhere its operands reach: a load never traps. */
bool op_is_pure(const ir_fn *fn, const ir_op *op);

#endif
