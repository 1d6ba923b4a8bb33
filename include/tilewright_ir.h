/* Tilewright: kernels built from C.
 *
 * A program that generates kernels need not write text: it describes a kernel's parameters, and
 * gives functions that build its tile IR with the calls below, for the compile-time values and the
 * configuration at hand. Such a kernel is launched, tuned and stored like one of text.
 * docs/IR.md says what the operations mean, docs/EMBEDDING.md shows one whole.
 *
 * This is a header of its own because a program that only launches kernels needs none of it.
 * C11 and C++11; the conventions of tilewright.h hold. Copyright the Tilewright authors; Apache
 * License 2.0.
 *
 * Errors. The first wrong call is kept, by its number, its operation and the types that it was
 * given; every call after it does nothing and gives 0, none crashes, and what needed the kernel (a
 * launch, say) fails with the text. So a build function need not check anything, unless it loops
 * until a call gives something.
 *
 * Memory. A tw_ir and its values live until the build function that was given them returns; texts
 * and arrays that are passed are copied before a call returns.
 *
 * Threads. The functions of a kernel are called by whichever thread needs it built, by several at
 * once when it is tuned: they may write nothing that they share. They call nothing of the library
 * but what is declared here, for the tw_ir they were given, and leave by returning (no longjmp, no
 * exception).
 */
#ifndef TILEWRIGHT_IR_H
#define TILEWRIGHT_IR_H

#include "tilewright.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a kernel and its parameters ------------------------------------------------------------ */

typedef struct tw_ir tw_ir;  /* a function that is being built */
typedef uint32_t tw_ir_val;  /* a value in it; 0: none */

typedef enum tw_ir_dtype {
    TW_IR_I1, TW_IR_I8, TW_IR_I16, TW_IR_I32, TW_IR_I64, TW_IR_U8, TW_IR_U16, TW_IR_U32,
    TW_IR_U64, TW_IR_F16, TW_IR_BF16, TW_IR_F32, TW_IR_F64
} tw_ir_dtype;

/* A tensor or a run-time scalar; tensors and scalars may stand in any order. */
typedef struct tw_ir_param {
    const char *name;
    tw_param_kind kind;     /* TW_PARAM_TENSOR or TW_PARAM_SCALAR                                */
    tw_direction direction; /* tensors                                                           */
    const char *type;       /* "f32", ...; or the name of a dtype among the compile-time values  */
    const char *dims[8];    /* tensors, up to the first NULL: "64", the name of an int among the
                               compile-time values, or any other name: a run-time dimension      */
    bool has_default;       /* scalars: the launch function says which (tw_ir_default)           */
} tw_ir_param;

/* A compile-time value: given at the launch by name, or bound from the tensors. */
typedef struct tw_ir_const {
    const char *name;
    const char *type;    /* "dtype", "float" (f16, bf16, f32), "int", "bool", or, with members, the
                            name of an enumeration                                               */
    const char *value;   /* its default as text: "f32", "64", "false", ...; NULL: it has none    */
    const char *members; /* of an enumeration: "none causal window"; else NULL                   */
} tw_ir_const;

/* A tune parameter: values that the tuner may choose from, the first being the default. It may have
 * several rows, each for code paths whose name begins with `target` ("cpu", "cpu-avx512"). */
typedef struct tw_ir_tune {
    const char *name;
    const char *target; /* NULL: any other */
    const int64_t *values;
    size_t count;       /* 1 to 256 */
} tw_ir_tune;

typedef struct tw_ir_kernel {
    size_t size;
    const char *name;
    const tw_ir_param *params;
    size_t param_count;
    const tw_ir_const *consts;
    size_t const_count;
    const tw_ir_tune *tunes;
    size_t tune_count;
    void *user; /* given to the functions below */
    /* Builds what the host computes at each launch: defaults, asserts about the arguments, and the
     * grid, with scalars only. */
    void (*launch)(void *user, tw_ir *b);
    /* Builds the kernel: what one program of the grid does. Called after launch has succeeded. */
    void (*body)(void *user, tw_ir *b);
    /* NULL, or says why a configuration is not one for this kernel: a text that stays good as long
     * as the kernel; NULL when it is. b answers for compile-time values and builds nothing. */
    const char *(*refuse)(void *user, tw_ir *b);
    /* NULL, or called once, when the kernel is destroyed; not when its creation fails. */
    void (*destroy)(void *user);
} tw_ir_kernel;
#define TW_IR_KERNEL_INIT \
    {sizeof(tw_ir_kernel), NULL, NULL, 0, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL}

/* The kernel that def describes; what def points to is copied, but for user. launch and body must
 * build the same for the same values each time: what was compiled is kept by what they build.
 * Nothing is built yet. Fails with TW_E_ARG (def is no kernel; the error says what and where),
 * TW_E_LIMIT, TW_E_NOMEM. */
TW_API TW_CHECKED tw_status tw_ir_kernel_create(tw_context *cx, const tw_ir_kernel *def,
                                                tw_kernel **out);

/* ---- asking --------------------------------------------------------------------------------- */

/* Compile-time values and tune parameters by name; target: the code path ("cpu-avx512"), which a
 * kernel may only take into account where the result is the same. */
TW_API int64_t tw_ir_int(tw_ir *b, const char *name);
TW_API bool tw_ir_bool(tw_ir *b, const char *name);
TW_API tw_ir_dtype tw_ir_dtype_of(tw_ir *b, const char *name);
TW_API const char *tw_ir_member(tw_ir *b, const char *name); /* never NULL */
TW_API const char *tw_ir_target(tw_ir *b);

/* A tensor (a view; not in a launch function) or scalar; the i32 value of any dimension. */
TW_API tw_ir_val tw_ir_param_value(tw_ir *b, const char *name);
TW_API tw_ir_val tw_ir_dim(tw_ir *b, const char *name);

typedef struct tw_ir_type {
    tw_ir_dtype dtype;
    int rank;         /* 0: a scalar; -1: no value */
    int32_t shape[4]; /* of a tile; a view has none, and its rank says how many indices it takes */
} tw_ir_type;
TW_API tw_ir_type tw_ir_type_of(tw_ir *b, tw_ir_val v);
TW_API tw_ir_type tw_ir_scalar(tw_ir_dtype dtype);
TW_API tw_ir_type tw_ir_tile(tw_ir_dtype dtype, int rank, const int64_t *shape); /* rank 1 to 4 */

/* Not TW_OK after the first wrong call, or tw_ir_fail. */
TW_API tw_status tw_ir_status(const tw_ir *b);
/* The build function's own error: what cannot be built for these compile-time values, and why. */
TW_API void tw_ir_fail(tw_ir *b, const char *text);
/* Errors of the calls that follow also name this place; NULL: none. */
TW_API void tw_ir_at(tw_ir *b, const char *file, int line);
#define TW_IR_AT(b) tw_ir_at((b), __FILE__, __LINE__)
/* The name of v in printed IR. */
TW_API void tw_ir_name(tw_ir *b, tw_ir_val v, const char *name);

/* ---- operations ----------------------------------------------------------------------------- */

/* An attribute by name: which member counts depends on the operation's row in docs/IR.md. */
typedef struct tw_ir_attr {
    const char *name;
    int64_t i;
    double f;
    const char *text;
    const int64_t *ints;
    size_t count; /* of ints */
} tw_ir_attr;
/* Any operation of level 1 without regions, by its name in docs/IR.md. type: of its result, where
 * the table says "as written"; else NULL. Gives its result, or 0 when it has none. */
TW_API tw_ir_val tw_ir_op(tw_ir *b, const char *op, const tw_ir_val *args, size_t count,
                          const tw_ir_attr *attrs, size_t attr_count, const tw_ir_type *type);

/* The same, spelled out. Numbers are rounded (floats) or wrapped (integers) to dtype. */
TW_API tw_ir_val tw_ir_const_int(tw_ir *b, tw_ir_dtype dtype, int64_t v); /* also i1 */
TW_API tw_ir_val tw_ir_const_float(tw_ir *b, tw_ir_dtype dtype, double v);
TW_API tw_ir_val tw_ir_program_id(tw_ir *b, int axis);
TW_API tw_ir_val tw_ir_num_programs(tw_ir *b, int axis);
TW_API tw_ir_val tw_ir_arange(tw_ir *b, int64_t start, int64_t n);
TW_API tw_ir_val tw_ir_unary(tw_ir *b, const char *op, tw_ir_val x);
TW_API tw_ir_val tw_ir_binary(tw_ir *b, const char *op, tw_ir_val x, tw_ir_val y);
TW_API tw_ir_val tw_ir_where(tw_ir *b, tw_ir_val c, tw_ir_val x, tw_ir_val y);
TW_API tw_ir_val tw_ir_fma(tw_ir *b, tw_ir_val x, tw_ir_val y, tw_ir_val z);
TW_API tw_ir_val tw_ir_cast(tw_ir *b, tw_ir_val x, tw_ir_dtype dtype);
TW_API tw_ir_val tw_ir_bitcast(tw_ir *b, tw_ir_val x, tw_ir_dtype dtype);
TW_API tw_ir_val tw_ir_splat(tw_ir *b, tw_ir_val scalar, int rank, const int64_t *shape);
TW_API tw_ir_val tw_ir_expand_dims(tw_ir *b, tw_ir_val x, int axis);
TW_API tw_ir_val tw_ir_broadcast(tw_ir *b, tw_ir_val x, int rank, const int64_t *shape);
/* x in the shape of y: a scalar is splatted, extents of 1 are widened. */
TW_API tw_ir_val tw_ir_like(tw_ir *b, tw_ir_val x, tw_ir_val y);
TW_API tw_ir_val tw_ir_trans(tw_ir *b, tw_ir_val x, int rank, const int64_t *perm);
TW_API tw_ir_val tw_ir_reshape(tw_ir *b, tw_ir_val x, int rank, const int64_t *shape);
TW_API tw_ir_val tw_ir_dot(tw_ir *b, tw_ir_val x, tw_ir_val y, tw_ir_val acc);
TW_API tw_ir_val tw_ir_reduce(tw_ir *b, const char *op, tw_ir_val x, int axis); /* scans too */
/* index: one value for each dimension of the view; extent: likewise, 0 picks one element. */
TW_API tw_ir_val tw_ir_load(tw_ir *b, tw_ir_val view, const tw_ir_val *index,
                            const int64_t *extent);
TW_API void tw_ir_store(tw_ir *b, tw_ir_val view, const tw_ir_val *index, const int64_t *extent,
                        tw_ir_val v);
/* In a launch function: what must hold of the arguments, else a launch is refused with text. */
TW_API void tw_ir_assert(tw_ir *b, tw_ir_val cond, const char *text);

/* ---- control -------------------------------------------------------------------------------- */

/* Calls between begin and end build the region. `carried` and `results` take count values; either
 * may be NULL when count is 0. A value is seen until the region that it was built in ends. */

/* for i = lo to hi step s: gives i; carried: the values in the loop, at first those of init. */
TW_API tw_ir_val tw_ir_for_begin(tw_ir *b, tw_ir_val lo, tw_ir_val hi, tw_ir_val step,
                                 const tw_ir_val *init, size_t count, tw_ir_val *carried);
TW_API void tw_ir_for_end(tw_ir *b, const tw_ir_val *next, size_t count, tw_ir_val *results);

/* The test stands between begin and do, the body between do and end. */
TW_API void tw_ir_while_begin(tw_ir *b, const tw_ir_val *init, size_t count, tw_ir_val *carried);
TW_API void tw_ir_while_do(tw_ir *b, tw_ir_val cond, const tw_ir_val *pass, size_t count,
                           tw_ir_val *carried);
TW_API void tw_ir_while_end(tw_ir *b, const tw_ir_val *next, size_t count, tw_ir_val *results);

/* Without values there need be no else. */
TW_API void tw_ir_if_begin(tw_ir *b, tw_ir_val cond);
TW_API void tw_ir_else(tw_ir *b, const tw_ir_val *values, size_t count); /* of the arm that ends */
TW_API void tw_ir_if_end(tw_ir *b, const tw_ir_val *values, size_t count, tw_ir_val *results);

/* "reduce" or "scan" of tile x along axis with a function of two elements, which is built between:
 * elementwise operations on scalars. element: the two; the end gives the result. */
TW_API void tw_ir_fold_begin(tw_ir *b, const char *op, tw_ir_val x, int axis,
                             tw_ir_val element[2]);
TW_API tw_ir_val tw_ir_fold_end(tw_ir *b, tw_ir_val value);

/* ---- launch functions ----------------------------------------------------------------------- */

/* The default of a scalar that has one, once each; gives what the kernel will get, which is also
 * what tw_ir_param_value gives from now on. */
TW_API tw_ir_val tw_ir_default(tw_ir *b, const char *name, tw_ir_val otherwise);
/* The extents of the grid, integers; 0 counts as 1. Last, once. */
TW_API void tw_ir_grid(tw_ir *b, tw_ir_val x, tw_ir_val y, tw_ir_val z);

#ifdef __cplusplus
}
#endif
#endif
