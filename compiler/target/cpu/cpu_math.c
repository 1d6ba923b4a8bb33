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

static LLVMValueRef avx512_halves(const ll_cx *cx, LLVMValueRef x)
{
    enum { TO_HALVES = 0x10, QUIET = 8, TOWARDS_0 = 3 };
    LLVMValueRef how = ll_int(cx->i32, TO_HALVES | QUIET | TOWARDS_0);

    return avx512(cx, "llvm.x86.avx512.mask.rndscale.ps.512", x, how);
}

static LLVMValueRef table_part(const ll_cx *cx, const float *table)
{
    LLVMValueRef v[16];

    for (int i = 0; i < 16; i++)
        v[i] = LLVMConstReal(cx->f32, (double)table[i]);
    return LLVMConstVector(v, 16);
}

/* What is added makes 2 x the low bits of the sum. */
static LLVMValueRef avx512_by_half(const ll_cx *cx, LLVMValueRef x, const float table[32])
{
    LLVMValueRef i = LLVMBuildFAdd(cx->b, x, ll_float(LLVMTypeOf(x), 0x1.8p22), "");

    i = LLVMBuildBitCast(cx->b, i, ll_lanes(cx->i32, 16), "");
    LLVMValueRef arg[] = {table_part(cx, table), i, table_part(cx, table + 16)};
    return ll_call(cx, "llvm.x86.avx512.vpermi2var.ps.512", NULL, 0, arg, 3);
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
        m.halves = avx512_halves;
        m.by_half = avx512_by_half;
    }
    if (ll_lanes_of(LLVMTypeOf(x)) > 1)
        return ll_math_op(&m, code, x);
    x = ll_math_op(&m, code, ll_splat(e->cx, x, e->isa->lanes));
    return LLVMBuildExtractElement(e->cx->b, x, ll_i64(e->cx, 0), "");
}
