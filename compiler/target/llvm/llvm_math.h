#ifndef TW_TARGET_LLVM_MATH_H
#define TW_TARGET_LLVM_MATH_H
/* Functions of one float as inline code: one set of polynomials for all targets. Within 2 units in
 * the last place for every argument; docs/CPU.md has a table. */
#include "compiler/target/llvm/llvm_build.h"

typedef struct ll_math {
    const ll_cx *cx;
    bool fma; /* the machine has it: else a product and a sum */
    /* Where the machine has instructions for them, or NULL: x - floor(x), and p * 2^floor(n), both
     * for every x and n, infinities and results below the normal range included. */
    LLVMValueRef (*fraction)(const ll_cx *cx, LLVMValueRef x);
    LLVMValueRef (*scale)(const ll_cx *cx, LLVMValueRef p, LLVMValueRef n);
    /* The same of x >= 0 rounded down to halves, and of table[(int)(2 x)] for such a half below 16.
     */
    LLVMValueRef (*halves)(const ll_cx *cx, LLVMValueRef x);
    LLVMValueRef (*by_half)(const ll_cx *cx, LLVMValueRef x, const float table[32]);
} ll_math;

/* code: EXP, EXP2, LOG, LOG2, SIN, COS, TANH, ERF; x: f32 or f64, a scalar or a vector. Of f64,
 * the machine's own instructions are not used. */
LLVMValueRef ll_math_op(const ll_math *m, enum ir_opcode code, LLVMValueRef x);

#endif
