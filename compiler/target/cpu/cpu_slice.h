#ifndef TW_TARGET_CPU_SLICE_H
#define TW_TARGET_CPU_SLICE_H
/* Of the slice that a load, a store or an atomic accesses: where its elements lie, and which of
 * them are inside of the tensor. What prove_bounds has proved is not asked. at: elements of the
 * slice's tile, whose dimensions are called tile dimensions, and the tensor's view dimensions. */
#include "compiler/target/cpu/cpu_emit.h"

/* One element in memory. */
LLVMTypeRef cpu_slice_element(const cpu_emit *e, const ir_op *op);
unsigned cpu_slice_align(const cpu_emit *e, const ir_op *op);
/* What is loaded or stored: a tile, or a scalar of rank 0. */
ir_type cpu_slice_type(const cpu_emit *e, const ir_op *op);
const cpu_view *cpu_slice_view(cpu_emit *e, const ir_op *op);
static inline bool cpu_slice_proved(const ir_op *op, int view_dim)
{
    return op->attr[1].i >> view_dim & 1;
}

/* Address of the slice's first element. */
LLVMValueRef cpu_slice_origin(cpu_emit *e, const ir_op *op);
/* Of element at, known at depth; where a tile gives the lanes' indices, without these. */
LLVMValueRef cpu_slice_address(cpu_emit *e, const ir_op *op, const cpu_at *at, int depth);
/* The indices that a tile gives along tile dimension t: a vector where that lies in the lanes. */
cpu_got cpu_slice_given(cpu_emit *e, const ir_op *op, const cpu_at *at, int t);

/* Are the dimensions that the slice drops in bounds? NULL: proved. */
LLVMValueRef cpu_slice_outer(cpu_emit *e, const ir_op *op);
/* Are all dimensions but the lane's in bounds? NULL: proved. */
LLVMValueRef cpu_slice_rows(cpu_emit *e, const ir_op *op, const cpu_at *at);
/* Which of the first limit lanes may be accessed; NULL: all there are. *depth: where the mask is
 * known. */
LLVMValueRef cpu_slice_mask(cpu_emit *e, const ir_op *op, const cpu_at *at, int limit, int *depth);
/* Lanes of tile t from at on, when its end is known to be near. */
int cpu_slice_limit(const cpu_emit *e, ir_type t, const cpu_at *at);

#endif
