#ifndef TW_TARGET_LLVM_OPS_H
#define TW_TARGET_LLVM_OPS_H
/* Elementwise ops with the meaning of docs/LANGUAGE.md (ireval.h is the same in C), for scalars and
 * vectors alike. No 16-bit floats here: how those are held is the target's. */
#include "compiler/target/llvm/llvm_build.h"

/* t, an integer or i1, is the operands'. */
LLVMValueRef ll_int_op(const ll_cx *cx, enum ir_opcode code, enum dtype t, LLVMValueRef *a);
LLVMValueRef ll_int_extreme(const ll_cx *cx, enum dtype t, bool greatest, LLVMValueRef x,
                            LLVMValueRef y);
/* f32 and f64. NULL: not an op that LLVM knows (fma, rem and functions of one float). */
LLVMValueRef ll_float_op(const ll_cx *cx, enum ir_opcode code, LLVMValueRef *a);
LLVMValueRef ll_cast(const ll_cx *cx, enum dtype from, enum dtype to, LLVMValueRef x);

#endif
