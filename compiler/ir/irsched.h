#ifndef TW_IR_SCHED_H
#define TW_IR_SCHED_H
/* What the verifier asks about a function of level 2. */
#include "compiler/ir/layout.h"

/* Are the warps and the table of layouts whole, sound and without repetition? */
bool sched_head_is_sound(const ir_fn *fn, const char **why);
/* Is this a type of level 2 for a value that a group of so many warps has? */
bool sched_type_fits(const ir_fn *fn, ir_type ty, int warps, const char **why);
/* The first op for which warps must meet and that stands where they may not all come, because a
 * condition around it follows from vote.any; or NULL. The structure of fn must be whole. */
const ir_op *sched_find_varying(const ir_fn *fn, arena *scratch);

#endif
