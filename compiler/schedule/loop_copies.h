#ifndef TW_SCHEDULE_LOOP_COPIES_H
#define TW_SCHEDULE_LOOP_COPIES_H
/* The copies that a loop makes in each iteration, and what they depend on. */
#include "compiler/ir/irbuild.h"

/* As pass_place_operands leaves it: buffer.slot, copy.async, copy.commit, copy.wait. */
typedef struct loop_copy {
    ir_op *alloc, *slot, *copy, *commit, *wait;
} loop_copy;
typedef struct loop_copies {
    ir_op *loop;  /* OP_FOR */
    int64_t step; /* constant, not 0 */
    ir_op *guard; /* the `if` of the loop's block under which all copies stand, or NULL */
    VEC(loop_copy) at;
} loop_copies;

/* The copies of the loop's own block, or those under one condition in it, when they can be made
 * early: their operands and the condition are scalars that follow from the counter and from what
 * comes from outside. False when there are none or the step is not a constant. */
bool loop_copies_of(arena *a, ir_fn *fn, ir_op *loop, loop_copies *res);
/* Do both loops copy the same slices of the same tensors, wherever those begin? */
bool loop_copies_alike(const ir_fn *fn, const loop_copies *x, const loop_copies *y);
/* What v, a scalar that follows from the counter, is when the counter has another value. */
ir_val loop_value_at(ir_builder *b, const loop_copies *l, ir_val v, ir_val counter);
/* Calls visit for each value from outside that the bounds, the condition and the copies'
 * operands follow from, until it returns false; false then. */
typedef bool (*loop_leaf_fn)(ir_val v, void *arg);
bool loop_leaves(const ir_fn *fn, const loop_copies *l, loop_leaf_fn visit, void *arg);
/* The loop after this one, with nothing but pure operations between; else NULL. */
ir_op *loop_after(const ir_fn *fn, const ir_op *loop);

#endif
