#ifndef TW_IR_TYPING_H
#define TW_IR_TYPING_H
/* Inside of op_result_type: irtypes.c has the operations of level 1, irtypes_sched.c those of level
 * 2 and what layouts add to the former. */
#include "compiler/ir/irbuild.h"

typedef struct typing {
    const ir_fn *fn;
    const ir_val *args;
    int nargs;
    const ir_attr *attrs;
    ir_type want; /* what the caller asked for */
    ir_type *res;
    const char **why;
} typing;

static inline bool refuse(const typing *t, const char *why)
{
    *t->why = why;
    return false;
}
static inline bool give(const typing *t, ir_type res)
{
    *t->res = res;
    return true;
}
static inline ir_type arg_type(const typing *t, int i)
{
    return ir_type_of(t->fn, t->args[i]);
}
static inline bool is_scalar(ir_type t, enum dtype d)
{
    return t.kind == TYPE_SCALAR && t.dtype == d;
}

bool typing_tile_in_limits(ir_type t);
bool typing_is_permutation(const ir_attr *perm, int rank);
/* The type of what a load reads or a store writes, from view, indices, extents and inside. */
bool typing_slice(const typing *t, int nindex, ir_type *out);
/* Of tiles, whatever their layouts: gives acc. */
bool typing_dot(const typing *t, ir_type x, ir_type y, ir_type acc);
/* Operands and result of an operation of level 2. */
bool typing_scheduled(const typing *t, enum ir_opcode code);
/* The layout of the result of an operation of level 1 in a module of level 2, and what it asks of
 * the layouts of its operands; t->res has the rest of the type. */
bool typing_layouts(const typing *t, enum ir_opcode code);

#endif
