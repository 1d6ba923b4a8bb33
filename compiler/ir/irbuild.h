#ifndef TW_IR_BUILD_H
#define TW_IR_BUILD_H
/* The only way to create ops. Infers result types, checks operands, folds nothing.
 * A wrong call (types that do not fit) is a bug of the caller: ICHECK. Users' mistakes are found by
 * the DSL before it builds, and by irverify for parsed text. Runs under guard_run. */
#include "compiler/ir/ir.h"

typedef struct ir_builder {
    ir_fn *fn;
    ir_block *block; /* ops are appended here ... */
    ir_op *before;   /* ... or, when not NULL, inserted before this one */
    span where;      /* given to every op built */
} ir_builder;

ir_module *ir_module_new(arena *a, intern *names);
ir_fn *ir_fn_new(ir_module *m, const char *name); /* the caller sets m->kernel or m->launch */
/* Parameters first, then the body: ir_fn_begin makes its block with one argument a parameter. */
/* name may be NULL for a constant: equal ones are then one dimension. */
int ir_add_dim(ir_fn *fn, const char *name, bool is_const, int64_t value);
int ir_add_param(ir_fn *fn, ir_param p);
void ir_fn_begin(ir_fn *fn);
ir_val ir_param_value(const ir_fn *fn, int param);
/* The i32 value of a dimension symbol: a constant, or its hidden parameter. */
ir_val ir_dim_value(ir_builder *b, int dim);

ir_builder ir_at_end(ir_fn *fn, ir_block *block);
ir_builder ir_before(ir_fn *fn, ir_op *op);

/* The general form: attrs has as many entries as the op's row. type is used only by ops whose
 * result cannot be inferred (const, splat, broadcast, cast, bitcast, reshape, load, arange). */
ir_op *ir_build(ir_builder *b, enum ir_opcode code, const ir_val *args, int nargs,
                const ir_attr *attrs, ir_type type);

ir_val ir_const_int(ir_builder *b, enum dtype t, int64_t v); /* also i1; wraps to t */
ir_val ir_const_float(ir_builder *b, enum dtype t, double v); /* rounds to t */
ir_val ir_program_id(ir_builder *b, int axis);
ir_val ir_num_programs(ir_builder *b, int axis);
ir_val ir_arange(ir_builder *b, int64_t start, int32_t n);
ir_val ir_splat(ir_builder *b, ir_val scalar, ir_type tile); /* dtype from scalar */
ir_val ir_expand(ir_builder *b, ir_val v, int axis);
ir_val ir_broadcast(ir_builder *b, ir_val v, ir_type tile);  /* shape from tile */
ir_val ir_trans(ir_builder *b, ir_val v, const int *perm);
ir_val ir_cast(ir_builder *b, ir_val v, enum dtype to);
ir_val ir_unary(ir_builder *b, enum ir_opcode code, ir_val x);
ir_val ir_binary(ir_builder *b, enum ir_opcode code, ir_val x, ir_val y); /* and compares */
ir_val ir_where(ir_builder *b, ir_val c, ir_val x, ir_val y);
ir_val ir_fma(ir_builder *b, ir_val x, ir_val y, ir_val z);
ir_val ir_dot(ir_builder *b, ir_val x, ir_val y, ir_val acc);
ir_val ir_reduce(ir_builder *b, enum ir_opcode code, ir_val x, int axis);
ir_val ir_load(ir_builder *b, ir_val view, const ir_val *index, const int32_t *extent);
void ir_store(ir_builder *b, ir_val view, const ir_val *index, const int32_t *extent, ir_val v);
/* v: the value; of OP_ATOMIC_CAS what is expected, then the value. */
ir_val ir_atomic(ir_builder *b, enum ir_opcode code, ir_val view, const ir_val *index,
                 const int32_t *extent, const ir_val *v);
void ir_print_value(ir_builder *b, ir_val v, const char *text);
/* value: at most 3 i32 scalars, which stand for {0} {1} {2} in the text. */
void ir_assert_values(ir_builder *b, ir_val cond, const ir_val *value, int n, const char *text);
void ir_assert(ir_builder *b, ir_val cond, const char *text);

/* Control: the op and its regions; fill a region through ir_at_end(fn, op->regions[i]) and end it
 * with ir_yield / ir_condition. Result types are those of init (if: of `types`). */
ir_op *ir_for(ir_builder *b, ir_val lo, ir_val hi, ir_val step, const ir_val *init, int n);
ir_op *ir_while(ir_builder *b, const ir_val *init, int n);
ir_op *ir_if(ir_builder *b, ir_val cond, const ir_type *types, int n);
/* Gives an if that was built with none its results, once its regions are filled. */
void ir_if_results(ir_builder *b, ir_op *op, const ir_type *types, int n);
/* OP_REDUCE, OP_SCAN: the region takes two elements and yields one; see op_folds. */
ir_op *ir_fold(ir_builder *b, enum ir_opcode code, ir_val x, int axis);
void ir_yield(ir_builder *b, const ir_val *v, int n);
void ir_condition(ir_builder *b, ir_val cond, const ir_val *pass, int n);
void ir_return(ir_builder *b, const ir_val *v, int n);
void ir_name(ir_fn *fn, ir_val v, const char *name);

/* Level 2. Results that level 1 infers come with the layout that docs/IR.md gives them (ir_trans,
 * ir_reduce, ir_mma_sum and ir_partial_sum add it to the function); where it is "as written", the
 * type given has it. */
ir_val ir_arange_as(ir_builder *b, int64_t start, ir_type tile);
ir_val ir_expand_as(ir_builder *b, ir_val v, int axis, uint16_t layout);
ir_val ir_convert(ir_builder *b, ir_val v, uint16_t layout);
/* shape: slots first. offset -1: not planned yet. */
ir_val ir_alloc(ir_builder *b, enum dtype t, int rank, const int32_t *shape, uint16_t layout,
                int64_t offset);
ir_val ir_buffer_slot(ir_builder *b, ir_val buffer, ir_val index);
ir_val ir_buffer_trans(ir_builder *b, ir_val slot, const int *perm);
ir_val ir_buffer_view(ir_builder *b, ir_val slot, ir_type type);
ir_val ir_buffer_load(ir_builder *b, ir_val slot, uint16_t layout);
void ir_buffer_store(ir_builder *b, ir_val slot, ir_val v);
void ir_copy_commit(ir_builder *b);
void ir_copy_wait(ir_builder *b, int pending);
void ir_barrier(ir_builder *b, int id, int warps);
void ir_barrier_warp(ir_builder *b);
ir_val ir_mma(ir_builder *b, ir_val x, ir_val y, ir_val acc); /* tf32 where the factors are f32 */
ir_val ir_mma_sum(ir_builder *b, ir_val v);
ir_val ir_partial_sum(ir_builder *b, ir_val v, int axis);
ir_val ir_vote_any(ir_builder *b, ir_val v);
ir_val ir_mbar_alloc(ir_builder *b, int64_t offset, int count, int arrivals);
void ir_mbar_arrive(ir_builder *b, ir_val mbar, ir_val index);
void ir_mbar_expect(ir_builder *b, ir_val mbar, ir_val index, int64_t bytes);
void ir_mbar_wait(ir_builder *b, ir_val mbar, ir_val index, ir_val parity);
void ir_fence_async(ir_builder *b);
ir_val ir_wgmma(ir_builder *b, ir_val x, ir_val y, ir_val acc);
void ir_wgmma_commit(ir_builder *b);
ir_op *ir_wgmma_wait(ir_builder *b, int pending, const ir_val *v, int n); /* n results */
ir_op *ir_role(ir_builder *b, int first, int warps, int registers); /* fill its region */

/* The result type of an op from its operands and attributes, shared by builder and verifier.
 * Returns false and a reason when the operands do not fit. *type comes in as the wanted type. */
bool op_result_type(const ir_fn *fn, enum ir_opcode code, const ir_val *args, int nargs,
                    const ir_attr *attrs, ir_type *type, const char **why);
/* "; operands: f32[64], i32" to put behind the reason, or "". */
const char *op_operand_types(arena *a, const ir_fn *fn, const ir_val *args, int nargs);
/* With the name of its layout. */
const char *ir_type_text(arena *a, const ir_fn *fn, ir_type t);

#endif
