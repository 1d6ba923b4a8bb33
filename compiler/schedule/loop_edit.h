#ifndef TW_SCHEDULE_LOOP_EDIT_H
#define TW_SCHEDULE_LOOP_EDIT_H
#include "compiler/ir/irbuild.h"

/* Puts a loop that carries n more values in the place of one: results of the new loop from its
 * old number on, arguments of its block likewise; its yield gives `init`'s place in the block until
 * loop_yield_more. Returns the new loop. */
ir_op *loop_carry_more(ir_fn *fn, ir_op *loop, const ir_val *init, int n);
/* What the values that loop_carry_more added become in the next iteration. */
void loop_yield_more(ir_fn *fn, ir_op *loop, const ir_val *next, int n);

#endif
