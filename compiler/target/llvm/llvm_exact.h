#ifndef TW_TARGET_LLVM_EXACT_H
#define TW_TARGET_LLVM_EXACT_H
/* fma and the remainder of floats where the machine has no instruction for them: exact to the last
 * place for every argument, infinities, NaN, subnormal operands and results included, and without
 * libm. f32 and f64, scalars and vectors. */
#include "compiler/target/llvm/llvm_build.h"

/* a[0] * a[1] + a[2], rounded once. */
LLVMValueRef ll_soft_fma(ll_cx *cx, LLVMValueRef *a);

/* C's fmod. fma: the machine has it. Ends in another block than it begins in. */
LLVMValueRef ll_rem(ll_cx *cx, bool fma, LLVMValueRef x, LLVMValueRef y);
/* The same as a call of a function of the module: for straight-line code. */
LLVMValueRef ll_rem_call(ll_cx *cx, bool fma, LLVMValueRef x, LLVMValueRef y);

#endif
