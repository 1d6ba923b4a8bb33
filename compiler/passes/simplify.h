#ifndef TW_PASSES_SIMPLIFY_H
#define TW_PASSES_SIMPLIFY_H
/* The parts of pass_simplify. A rule gets an op whose operands are already simplified and returns
 * the value that takes the place of its result, 0 when it does not apply. It may build ops in front
 * of op; it removes none. */
#include "compiler/ir/irbuild.h"
#include "compiler/ir/ireval.h"
#include "compiler/passes/rename.h"

typedef struct simplifier {
    ir_fn *fn;
    renames to;
    uint32_t changes;
} simplifier;

ir_val simplify_lift(simplifier *s, ir_op *op); /* simplify_lift.c: folding; scalars, small tiles */
ir_val simplify_integer(simplifier *s, ir_op *op); /* simplify_integer.c: integers and i1 */
ir_val simplify_float(simplifier *s, ir_op *op);   /* simplify_float.c */
ir_val simplify_choice(simplifier *s, ir_op *op); /* simplify_choice.c: where, casts, comparisons */
ir_val simplify_shape(simplifier *s, ir_op *op);  /* simplify_shape.c */
/* simplify_index.c: of a load or store, in place. */
void simplify_indices(simplifier *s, ir_op *op);
/* simplify_control.c: the op to go on with when op is gone (inlined or removed), else NULL. */
ir_op *simplify_control(simplifier *s, ir_op *op);

/* The constant behind v, a scalar or a splat of one. */
bool const_of(const ir_fn *fn, ir_val v, ir_scalar *c);
bool is_int_const(const ir_fn *fn, ir_val v, int64_t c);  /* false for floats */
bool is_float_const(const ir_fn *fn, ir_val v, double c); /* bit for bit: 0.0 is not -0.0 */
/* v's defining op when it has this code, else NULL. */
const ir_op *def_of(const ir_fn *fn, ir_val v, enum ir_opcode code);
/* A constant of type t (a scalar, or a splat), in front of op. */
ir_val make_const(simplifier *s, ir_op *op, ir_type t, ir_scalar c);
ir_val make_int(simplifier *s, ir_op *op, ir_type t, int64_t c);

#endif
