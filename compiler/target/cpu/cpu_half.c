/* f16 and bf16 lie in tensors only. Registers and scratch hold them as f32, whose value is always
 * one that the 16 bits can hold: what computes in f32 rounds its result once more. */
#include "compiler/target/cpu/cpu_emit.h"
#include <math.h>

LLVMTypeRef cpu_type(const cpu_emit *e, enum dtype t, int lanes)
{
    return ll_type(e->cx, cpu_held(t), lanes);
}

LLVMTypeRef cpu_memory_type(const cpu_emit *e, enum dtype t, int lanes)
{
    return ll_memory_type(e->cx, cpu_held(t) == t ? t : DT_I16, lanes);
}

static LLVMTypeRef like(LLVMTypeRef scalar, LLVMValueRef v)
{
    return ll_lanes(scalar, ll_lanes_of(LLVMTypeOf(v)));
}

static LLVMValueRef bits_of(cpu_emit *e, LLVMValueRef x)
{
    return LLVMBuildBitCast(e->cx->b, x, like(e->cx->i32, x), "");
}

static LLVMValueRef float_of(cpu_emit *e, LLVMValueRef bits)
{
    return LLVMBuildBitCast(e->cx->b, bits, like(e->cx->f32, bits), "");
}

static LLVMValueRef bits_and(cpu_emit *e, LLVMValueRef x, int64_t mask)
{
    return LLVMBuildAnd(e->cx->b, x, ll_int(LLVMTypeOf(x), mask), "");
}

static LLVMValueRef bits_or(cpu_emit *e, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildOr(e->cx->b, x, y, "");
}

static LLVMValueRef shifted(cpu_emit *e, LLVMValueRef x, int count)
{
    LLVMValueRef n = ll_int(LLVMTypeOf(x), count < 0 ? -count : count);

    return count < 0 ? LLVMBuildLShr(e->cx->b, x, n, "") : LLVMBuildShl(e->cx->b, x, n, "");
}

static LLVMValueRef below(cpu_emit *e, LLVMValueRef x, int64_t bound)
{
    return LLVMBuildICmp(e->cx->b, LLVMIntULT, x, ll_int(LLVMTypeOf(x), bound), "");
}

/* ---- rounding -------------------------------------------------------------------------------- */

/* u without its low bits, to the nearest, ties to even. Works on the bits of a number: a carry goes
 * into the exponent, and from the largest to infinity. */
static LLVMValueRef drop_bits(cpu_emit *e, LLVMValueRef u, int low)
{
    LLVMTypeRef type = LLVMTypeOf(u);
    LLVMValueRef odd = bits_and(e, shifted(e, u, -low), 1);
    LLVMValueRef half = ll_int(type, ((int64_t)1 << (low - 1)) - 1);

    u = LLVMBuildAdd(e->cx->b, LLVMBuildAdd(e->cx->b, u, half, ""), odd, "");
    return bits_and(e, u, -((int64_t)1 << low));
}

static LLVMValueRef round_bf16(cpu_emit *e, LLVMValueRef x)
{
    LLVMValueRef nan = LLVMBuildFCmp(e->cx->b, LLVMRealUNO, x, x, "");
    LLVMValueRef y = float_of(e, drop_bits(e, bits_of(e, x), 16));

    return ll_select(e->cx, nan, ll_float(LLVMTypeOf(x), (double)NAN), y);
}

static LLVMTypeRef half_like(cpu_emit *e, LLVMValueRef x)
{
    return like(ll_type(e->cx, DT_F16, 1), x);
}

/* Below 2^-14 a unit in the last place is 2^-24, that of f32 just above 0.5. */
static LLVMValueRef round_f16(cpu_emit *e, LLVMValueRef x)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMTypeRef type = LLVMTypeOf(x);

    if (e->isa->f16c)
        return LLVMBuildFPExt(b, LLVMBuildFPTrunc(b, x, half_like(e, x), ""), type, "");
    LLVMValueRef size = ll_unary(e->cx, "llvm.fabs", x), u = bits_of(e, size);
    LLVMValueRef half = ll_float(type, 0.5);
    LLVMValueRef tiny = LLVMBuildFSub(b, LLVMBuildFAdd(b, size, half, ""), half, "");
    LLVMValueRef y = float_of(e, drop_bits(e, u, 13));
    LLVMValueRef over = LLVMBuildFCmp(b, LLVMRealOGE, y, ll_float(type, 65536.0), "");

    y = ll_select(e->cx, over, ll_float(type, (double)INFINITY), y);
    y = ll_select(e->cx, below(e, u, 0x38800000), tiny, y);
    y = ll_binary(e->cx, "llvm.copysign", y, x);
    return ll_select(e->cx, LLVMBuildFCmp(b, LLVMRealUNO, x, x, ""), x, y);
}

LLVMValueRef cpu_round(cpu_emit *e, enum dtype t, LLVMValueRef x)
{
    if (t == DT_BF16)
        return round_bf16(e, x);
    return t == DT_F16 ? round_f16(e, x) : x;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The exponent moves by 112 in a multiplication, which also makes normal numbers of subnormal ones;
 * that of infinities and NaN is all ones in both. */
static LLVMValueRef f16_from_bits(cpu_emit *e, LLVMValueRef v)
{
    LLVMBuilderRef b = e->cx->b;

    if (e->isa->f16c)
        return LLVMBuildFPExt(b, LLVMBuildBitCast(b, v, half_like(e, v), ""), like(e->cx->f32, v),
                              "");
    LLVMValueRef u = LLVMBuildZExt(b, v, like(e->cx->i32, v), "");
    LLVMValueRef sign = shifted(e, bits_and(e, u, 0x8000), 16);
    LLVMValueRef size = shifted(e, bits_and(e, u, 0x7fff), 13);
    LLVMValueRef y = float_of(e, size);
    y = bits_of(e, LLVMBuildFMul(b, y, ll_float(LLVMTypeOf(y), 0x1p112), ""));
    LLVMValueRef special = bits_or(e, y, ll_int(LLVMTypeOf(y), 0x7f800000));
    y = ll_select(e->cx, below(e, size, 0x7c00 << 13), y, special);
    return float_of(e, bits_or(e, y, sign));
}

/* x is a value of f16: what is tiny counts units of 2^-24. */
static LLVMValueRef f16_bits(cpu_emit *e, LLVMValueRef x)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMTypeRef narrow = like(e->cx->i16, x);

    if (e->isa->f16c)
        return LLVMBuildBitCast(b, LLVMBuildFPTrunc(b, x, half_like(e, x), ""), narrow, "");
    LLVMValueRef size = ll_unary(e->cx, "llvm.fabs", x), u = bits_of(e, size);
    LLVMTypeRef type = LLVMTypeOf(u);
    LLVMValueRef sign = bits_and(e, shifted(e, bits_of(e, x), -16), 0x8000);
    LLVMValueRef half = ll_float(LLVMTypeOf(x), 0.5);
    LLVMValueRef tiny = bits_of(e, LLVMBuildFAdd(b, size, half, ""));
    LLVMValueRef normal = shifted(e, LLVMBuildSub(b, u, ll_int(type, 0x38000000), ""), -13);
    LLVMValueRef nan = LLVMBuildFCmp(b, LLVMRealUNO, x, x, "");

    tiny = LLVMBuildSub(b, tiny, ll_int(type, 0x3f000000), "");
    u = ll_select(e->cx, below(e, u, 0x38800000), tiny,
                  ll_select(e->cx, below(e, u, 0x7f800000), normal, ll_int(type, 0x7c00)));
    u = ll_select(e->cx, nan, ll_int(type, 0x7e00), u);
    return LLVMBuildTrunc(b, bits_or(e, u, sign), narrow, "");
}

LLVMValueRef cpu_to_register(cpu_emit *e, enum dtype t, LLVMValueRef v)
{
    if (t == DT_I1)
        return LLVMBuildICmp(e->cx->b, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
    if (t == DT_F16)
        return f16_from_bits(e, v);
    if (t != DT_BF16)
        return v;
    LLVMValueRef u = LLVMBuildZExt(e->cx->b, v, like(e->cx->i32, v), "");
    return float_of(e, shifted(e, u, 16));
}

LLVMValueRef cpu_to_memory(cpu_emit *e, enum dtype t, LLVMValueRef v)
{
    if (t == DT_I1)
        return LLVMBuildZExt(e->cx->b, v, like(e->cx->i8, v), "");
    if (t == DT_F16)
        return f16_bits(e, v);
    if (t != DT_BF16)
        return v;
    return LLVMBuildTrunc(e->cx->b, shifted(e, bits_of(e, v), -16), like(e->cx->i16, v), "");
}
