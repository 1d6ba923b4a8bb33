#ifndef TW_IR_EDIT_H
#define TW_IR_EDIT_H
/* Changing a function that exists. All are linear walks of the function unless said otherwise. */
#include "compiler/ir/ir.h"

typedef void (*ir_visit_fn)(ir_op *op, void *arg);
/* Every op, regions after their op, in text order. */
void ir_walk(ir_block *blk, ir_visit_fn visit, void *arg);
void ir_replace_uses(ir_fn *fn, ir_val from, ir_val to);
int ir_count_uses(const ir_fn *fn, ir_val v);
void ir_unlink(ir_op *op);                     /* constant time; results must have no uses */
void ir_move_before(ir_op *op, ir_op *before); /* constant time */
int ir_depth(const ir_block *blk);             /* loops around it */
bool ir_inside(const ir_block *blk, const ir_op *op); /* blk is a region (deep) of op */
bool ir_defined_outside(const ir_fn *fn, ir_val v, const ir_op *loop);
int ir_op_count(const ir_fn *fn);
/* A parameter more, behind all others; its value. All parameters' values get new ids. */
ir_val ir_append_param(ir_fn *fn, ir_param p);
/* A deep copy of op, with values of its own, in front of `before` in the same function. */
ir_op *ir_copy_before(ir_fn *fn, const ir_op *op, ir_op *before);
/* A deep copy of m in another arena. */
ir_module *ir_clone(const ir_module *m, arena *a);

#endif
