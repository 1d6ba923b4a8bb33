#include "compiler/target/llvm/llvm_float.h"

LLVMValueRef flt_number(LLVMValueRef like, double v)
{
    return ll_float(LLVMTypeOf(like), v);
}

LLVMValueRef flt_add(const ll_math *e, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildFAdd(e->cx->b, x, y, "");
}

LLVMValueRef flt_sub(const ll_math *e, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildFSub(e->cx->b, x, y, "");
}

LLVMValueRef flt_mul(const ll_math *e, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildFMul(e->cx->b, x, y, "");
}

LLVMValueRef flt_fma(const ll_math *e, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z)
{
    return e->fma ? ll_fma(e->cx, x, y, z) : flt_add(e, flt_mul(e, x, y), z);
}

LLVMValueRef flt_polynomial(const ll_math *e, LLVMValueRef x, const double *c, int n)
{
    LLVMValueRef p = flt_number(x, c[n - 1]);

    for (int i = n - 2; i >= 0; i--)
        p = flt_fma(e, p, x, flt_number(x, c[i]));
    return p;
}

LLVMValueRef flt_clamp(const ll_math *e, LLVMValueRef x, double lo, double hi)
{
    LLVMValueRef c = LLVMBuildFCmp(e->cx->b, LLVMRealOLT, x, flt_number(x, lo), "");

    x = ll_select(e->cx, c, flt_number(x, lo), x);
    c = LLVMBuildFCmp(e->cx->b, LLVMRealOGT, x, flt_number(x, hi), "");
    return ll_select(e->cx, c, flt_number(x, hi), x);
}

LLVMValueRef flt_has_bit(const ll_math *e, LLVMValueRef x, int64_t bit)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMValueRef kept = LLVMBuildAnd(e->cx->b, x, ll_int(type, bit), "");

    return LLVMBuildICmp(e->cx->b, LLVMIntNE, kept, LLVMConstNull(type), "");
}
