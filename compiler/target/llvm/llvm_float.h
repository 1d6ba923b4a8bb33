#ifndef TW_TARGET_LLVM_FLOAT_H
#define TW_TARGET_LLVM_FLOAT_H
/* What functions of floats are made of (llvm_math.c, llvm_math64.c), for scalars and vectors of f32
 * and f64 alike. */
#include "compiler/target/llvm/llvm_math.h"

#define FLT_COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* v as what `like` is. */
LLVMValueRef flt_number(LLVMValueRef like, double v);
LLVMValueRef flt_add(const ll_math *e, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef flt_sub(const ll_math *e, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef flt_mul(const ll_math *e, LLVMValueRef x, LLVMValueRef y);
/* x y + z, rounded once where the machine has fma, else twice. */
LLVMValueRef flt_fma(const ll_math *e, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z);
/* c[0] + c[1] x + ... */
LLVMValueRef flt_polynomial(const ll_math *e, LLVMValueRef x, const double *c, int n);
/* A NaN stays one. */
LLVMValueRef flt_clamp(const ll_math *e, LLVMValueRef x, double lo, double hi);
/* Of an integer. */
LLVMValueRef flt_has_bit(const ll_math *e, LLVMValueRef x, int64_t bit);

/* The functions of a type; log: of base 2 or e, wave: cosine or sine. */
typedef struct flt_functions {
    LLVMValueRef (*exp2)(const ll_math *e, LLVMValueRef x);
    LLVMValueRef (*exp)(const ll_math *e, LLVMValueRef x);
    LLVMValueRef (*tanh)(const ll_math *e, LLVMValueRef x);
    LLVMValueRef (*erf)(const ll_math *e, LLVMValueRef x);
    LLVMValueRef (*log)(const ll_math *e, LLVMValueRef x, bool base2);
    LLVMValueRef (*wave)(const ll_math *e, LLVMValueRef x, bool is_cos);
} flt_functions;
extern const flt_functions flt_of_f64;

#endif
