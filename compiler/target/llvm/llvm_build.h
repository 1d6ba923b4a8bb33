#ifndef TW_TARGET_LLVM_BUILD_H
#define TW_TARGET_LLVM_BUILD_H
/* Thin layer over LLVM's builder for the targets that emit LLVM IR: types by dtype and lanes,
 * constants of either shape, intrinsics by name. lanes = 1 is a scalar everywhere.
 *
 * No fast-math flag is ever set: what may contract is written as fma. */
#include "compiler/ir/ir.h"
#include <llvm-c/Core.h>

typedef struct ll_cx {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef b;
    LLVMValueRef fn; /* the function that is being built */
    LLVMTypeRef i1, i8, i16, i32, i64, f32, f64, ptr;
} ll_cx;

/* Context, module and builder; module is named after what it computes. */
void ll_open(ll_cx *cx, LLVMContextRef context, const char *module);

/* ---- types ---- */
LLVMTypeRef ll_type(const ll_cx *cx, enum dtype t, int lanes);        /* i1 as one bit */
LLVMTypeRef ll_memory_type(const ll_cx *cx, enum dtype t, int lanes); /* i1 as a byte */
LLVMTypeRef ll_lanes(LLVMTypeRef scalar, int lanes);
int ll_lanes_of(LLVMTypeRef t);
LLVMTypeRef ll_scalar_of(LLVMTypeRef t);

/* ---- constants; type may be a vector, which gives a splat ---- */
LLVMValueRef ll_int(LLVMTypeRef type, int64_t v);
LLVMValueRef ll_float(LLVMTypeRef type, double v);
/* first, first + 1, ... in i32 */
LLVMValueRef ll_iota(const ll_cx *cx, int64_t first, int lanes);
/* Lanes [0, n) true. */
LLVMValueRef ll_first_lanes(const ll_cx *cx, int n, int lanes);
bool ll_is_zero(LLVMValueRef v); /* an integer constant 0 */

/* ---- i64 arithmetic that folds 0 and 1 ---- */
LLVMValueRef ll_add(const ll_cx *cx, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef ll_mul(const ll_cx *cx, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef ll_i64(const ll_cx *cx, int64_t v);

/* ---- operations ---- */
/* types: the overloaded types of the intrinsic, as in its mangled name. */
LLVMValueRef ll_call(const ll_cx *cx, const char *intrinsic, LLVMTypeRef *types, int ntypes,
                     LLVMValueRef *args, int nargs);
LLVMValueRef ll_unary(const ll_cx *cx, const char *intrinsic, LLVMValueRef x);
LLVMValueRef ll_binary(const ll_cx *cx, const char *intrinsic, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef ll_fma(const ll_cx *cx, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z);
LLVMValueRef ll_splat(const ll_cx *cx, LLVMValueRef scalar, int lanes);
LLVMValueRef ll_select(const ll_cx *cx, LLVMValueRef c, LLVMValueRef x, LLVMValueRef y);
/* base + offset (i64) elements of type elem. */
LLVMValueRef ll_gep(const ll_cx *cx, LLVMTypeRef elem, LLVMValueRef base, LLVMValueRef offset);
LLVMValueRef ll_load(const ll_cx *cx, LLVMTypeRef type, LLVMValueRef ptr, unsigned align);
LLVMValueRef ll_store(const ll_cx *cx, LLVMValueRef v, LLVMValueRef ptr, unsigned align);
/* Lanes where mask is false give 0 / are not written, and are not accessed. */
LLVMValueRef ll_masked_load(const ll_cx *cx, LLVMTypeRef type, LLVMValueRef ptr, unsigned align,
                            LLVMValueRef mask);
void ll_masked_store(const ll_cx *cx, LLVMValueRef v, LLVMValueRef ptr, unsigned align,
                     LLVMValueRef mask);
LLVMValueRef ll_gather(const ll_cx *cx, LLVMTypeRef type, LLVMValueRef ptrs, unsigned align,
                       LLVMValueRef mask);
void ll_scatter(const ll_cx *cx, LLVMValueRef v, LLVMValueRef ptrs, unsigned align,
                LLVMValueRef mask);
/* Transposes n rows of n lanes in place: log2(n) stages that interleave rows[i], rows[i + n / 2].
 */
void ll_transpose(const ll_cx *cx, LLVMValueRef *rows, int n);
/* high vectors, parts of high elements of which are the rows of squares: all are transposed. Within
 * parts of 128 bits that takes one instruction for each vector and stage. */
void ll_transpose_squares(const ll_cx *cx, LLVMValueRef *rows, int high);

/* The module's own function of that name; fill builds its body when it is first asked for. */
LLVMValueRef ll_function(ll_cx *cx, const char *name, LLVMTypeRef type,
                         void (*fill)(ll_cx *cx, LLVMValueRef fn, void *arg), void *arg);

LLVMBasicBlockRef ll_block(const ll_cx *cx, const char *name);
void ll_at(const ll_cx *cx, LLVMBasicBlockRef block); /* continue at its end */
LLVMBasicBlockRef ll_here(const ll_cx *cx);
void ll_phi_add(LLVMValueRef phi, LLVMValueRef v, LLVMBasicBlockRef from);

#endif
