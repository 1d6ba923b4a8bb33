/* Functions of one float: the common polynomials, with AVX-512's instructions where it has them. */
#include "compiler/target/cpu/cpu_emit.h"
#include "compiler/target/llvm/llvm_math.h"

/* One of AVX-512's (x, second, mask passthrough, all lanes, current rounding) intrinsics. */
static LLVMValueRef avx512(const ll_cx *cx, const char *name, LLVMValueRef x, LLVMValueRef second)
{
    LLVMValueRef all = LLVMConstAllOnes(cx->i16), current = ll_int(cx->i32, 4);
    LLVMValueRef arg[] = {x, second, LLVMGetPoison(LLVMTypeOf(x)), all, current};

    return ll_call(cx, name, NULL, 0, arg, 5);
}

static LLVMValueRef avx512_fraction(const ll_cx *cx, LLVMValueRef x)
{
    return avx512(cx, "llvm.x86.avx512.mask.reduce.ps.512", x, ll_int(cx->i32, 9));
}

static LLVMValueRef avx512_scale(const ll_cx *cx, LLVMValueRef p, LLVMValueRef n)
{
    return avx512(cx, "llvm.x86.avx512.mask.scalef.ps.512", p, n);
}

static LLVMValueRef avx512_reciprocal(const ll_cx *cx, LLVMValueRef x)
{
    LLVMValueRef arg[] = {x, LLVMGetPoison(LLVMTypeOf(x)), LLVMConstAllOnes(cx->i16)};

    return ll_call(cx, "llvm.x86.avx512.rcp14.ps.512", NULL, 0, arg, 3);
}

/* A scalar goes through a vector: one definition, the same bits. */
LLVMValueRef cpu_math(cpu_emit *e, enum ir_opcode code, LLVMValueRef x)
{
    ll_math m = {.cx = e->cx, .fma = e->isa->fma};

    if (ll_scalar_of(LLVMTypeOf(x)) == e->cx->f64)
        return ll_math_op(&m, code, x);
    if (e->isa->avx512) {
        m.fraction = avx512_fraction;
        m.scale = avx512_scale;
        m.reciprocal = avx512_reciprocal;
    }
    if (ll_lanes_of(LLVMTypeOf(x)) > 1)
        return ll_math_op(&m, code, x);
    x = ll_math_op(&m, code, ll_splat(e->cx, x, e->isa->lanes));
    return LLVMBuildExtractElement(e->cx->b, x, ll_i64(e->cx, 0), "");
}
