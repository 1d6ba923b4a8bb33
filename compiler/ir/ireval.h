#ifndef TW_IR_EVAL_H
#define TW_IR_EVAL_H
/* Scalar arithmetic of tile IR on the host: one definition, used by constant folding, by the launch
 * function and by the interpreter. Meaning: docs/LANGUAGE.md (integers wrap, x/0 = 0, x%0 = x,
 * shifts modulo the width, casts saturate, NaN to int = 0). */
#include "compiler/ir/ir.h"
#include "tilewright.h"

/* An element of any dtype: integers sign- or zero-extended to 64 bits, i1 as 0 or 1; floats as the
 * double that equals the value of their dtype. */
typedef union ir_scalar {
    int64_t i;
    double f;
} ir_scalar;

/* sin and cos of f32 and of 16-bit floats give NaN for what is larger than this. */
#define ANGLE_MAX 0x1p26

/* code must be elementwise or CAST; in has the operand dtype `from` (for WHERE: of operands 1, 2),
 * the result the dtype `to`. exact: keep floats in double, do not round to `to`.
 * running_max gives max(m, x). A cast to i1 is x != 0. */
ir_scalar eval_op(enum ir_opcode code, enum dtype from, enum dtype to, const ir_scalar *in,
                  bool exact);
ir_scalar eval_round(enum dtype t, ir_scalar v); /* to the values that t can hold */

/* A launch function, prepared: no allocation, no lookup at run time. Immutable, any thread.
 * Prepare runs under guard_run and throws TW_E_LIMIT when the function has more than
 * LAUNCH_MAX_SLOTS values. */
typedef struct launch_program launch_program;
#define LAUNCH_MAX_SLOTS 2048
launch_program *launch_prepare(arena *a, const ir_fn *launch);
/* in: one scalar per parameter of the kernel function (visible, then dimensions; tensors are
 * ignored). given: bit i set when parameter i, a scalar (i counts as in `in`), was passed; a
 * missing one gets its default, written back to `in`. grid: three extents, negative ones count as
 * 0. Returns TW_E_ARG with *failed = text of the require that does not hold. */
tw_status launch_eval(const launch_program *p, ir_scalar *in, uint64_t given, int64_t grid[3],
                      const char **failed);

#endif
