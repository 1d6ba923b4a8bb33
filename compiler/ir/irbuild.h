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
void ir_assert(ir_builder *b, ir_val cond, const char *text);

/* Control: the op and its regions; fill a region through ir_at_end(fn, op->regions[i]) and end it
 * with ir_yield / ir_condition. Result types are those of init (if: of `types`). */
ir_op *ir_for(ir_builder *b, ir_val lo, ir_val hi, ir_val step, const ir_val *init, int n);
ir_op *ir_while(ir_builder *b, const ir_val *init, int n);
ir_op *ir_if(ir_builder *b, ir_val cond, const ir_type *types, int n);
/* Gives an if that was built with none its results, once its regions are filled. */
void ir_if_results(ir_builder *b, ir_op *op, const ir_type *types, int n);
void ir_yield(ir_builder *b, const ir_val *v, int n);
void ir_condition(ir_builder *b, ir_val cond, const ir_val *pass, int n);
void ir_return(ir_builder *b, const ir_val *v, int n);
void ir_name(ir_fn *fn, ir_val v, const char *name);

/* The result type of an op from its operands and attributes, shared by builder and verifier.
 * Returns false and a reason when the operands do not fit. *type comes in as the wanted type. */
bool op_result_type(const ir_fn *fn, enum ir_opcode code, const ir_val *args, int nargs,
                    const ir_attr *attrs, ir_type *type, const char **why);
/* "; operands: f32[64], i32" to put behind the reason, or "". */
const char *op_operand_types(arena *a, const ir_fn *fn, const ir_val *args, int nargs);

#endif
