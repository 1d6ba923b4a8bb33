/* Elementwise ops with the meaning of docs/LANGUAGE.md (ireval.h is the same in C), for scalars and
 * vectors alike. */
#include "compiler/base/check.h"
#include "compiler/target/cpu/cpu_emit.h"
#include <math.h>

static LLVMValueRef compare_int(cpu_emit *e, LLVMIntPredicate p, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildICmp(e->cx->b, p, x, y, "");
}

static LLVMValueRef compare_float(cpu_emit *e, LLVMRealPredicate p, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildFCmp(e->cx->b, p, x, y, "");
}

static bool is_signed(enum dtype t)
{
    return dtype_kind(t) == DTK_SINT;
}

static LLVMTypeRef with_lanes(LLVMTypeRef scalar, LLVMValueRef like)
{
    return ll_lanes(scalar, ll_lanes_of(LLVMTypeOf(like)));
}

/* ---- integers -------------------------------------------------------------------------------- */

/* A quotient of two 32-bit integers, rounded to double, truncates to the exact one: it is at least
 * 2^-31 off the next integer, and the rounding at most 2^-22. Vectors have no integer division. */
static LLVMValueRef divide_as_double(cpu_emit *e, enum dtype t, LLVMValueRef x, LLVMValueRef y)
{
    LLVMTypeRef wide = with_lanes(e->cx->f64, x), narrow = LLVMTypeOf(x);
    LLVMBuilderRef b = e->cx->b;

    if (is_signed(t)) {
        LLVMValueRef q =
            LLVMBuildFDiv(b, LLVMBuildSIToFP(b, x, wide, ""), LLVMBuildSIToFP(b, y, wide, ""), "");
        return LLVMBuildFPToSI(b, q, narrow, "");
    }
    LLVMValueRef q =
        LLVMBuildFDiv(b, LLVMBuildUIToFP(b, x, wide, ""), LLVMBuildUIToFP(b, y, wide, ""), "");
    return LLVMBuildFPToUI(b, q, narrow, "");
}

static LLVMValueRef plain_divide(cpu_emit *e, enum dtype t, LLVMValueRef x, LLVMValueRef y)
{
    if (ll_lanes_of(LLVMTypeOf(x)) > 1 && dtype_bits(t) <= 32)
        return divide_as_double(e, t, x, y);
    return is_signed(t) ? LLVMBuildSDiv(e->cx->b, x, y, "") : LLVMBuildUDiv(e->cx->b, x, y, "");
}

static bool is_safe_divisor(LLVMValueRef y)
{
    if (!LLVMIsAConstantInt(y))
        return false;
    int64_t v = LLVMConstIntGetSExtValue(y);
    return v != 0 && v != -1;
}

/* x / y where y is neither 0 nor (signed) -1; those divide by 1 instead. */
static LLVMValueRef divide_safely(cpu_emit *e, enum dtype t, LLVMValueRef x, LLVMValueRef y,
                                  LLVMValueRef *zero, LLVMValueRef *minus)
{
    LLVMTypeRef type = LLVMTypeOf(x);

    *zero = compare_int(e, LLVMIntEQ, y, LLVMConstNull(type));
    *minus = is_signed(t) ? compare_int(e, LLVMIntEQ, y, LLVMConstAllOnes(type)) : NULL;
    LLVMValueRef odd = *minus ? LLVMBuildOr(e->cx->b, *zero, *minus, "") : *zero;
    return plain_divide(e, t, x, ll_select(e->cx, odd, ll_int(type, 1), y));
}

static LLVMValueRef int_divide(cpu_emit *e, enum dtype t, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef zero, minus;

    if (is_safe_divisor(y))
        return plain_divide(e, t, x, y);
    LLVMValueRef q = divide_safely(e, t, x, y, &zero, &minus);
    if (minus)
        q = ll_select(e->cx, minus, LLVMBuildNeg(e->cx->b, x, ""), q);
    return ll_select(e->cx, zero, LLVMConstNull(LLVMTypeOf(x)), q);
}

static LLVMValueRef int_remainder(cpu_emit *e, enum dtype t, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildSub(e->cx->b, x, LLVMBuildMul(e->cx->b, int_divide(e, t, x, y), y, ""), "");
}

static LLVMValueRef shift_count(cpu_emit *e, enum dtype t, LLVMValueRef y)
{
    return LLVMBuildAnd(e->cx->b, y, ll_int(LLVMTypeOf(y), dtype_bits(t) - 1), "");
}

static LLVMValueRef int_extreme(cpu_emit *e, enum dtype t, bool greatest, LLVMValueRef x,
                                LLVMValueRef y)
{
    if (greatest)
        return ll_binary(e->cx, is_signed(t) ? "llvm.smax" : "llvm.umax", x, y);
    return ll_binary(e->cx, is_signed(t) ? "llvm.smin" : "llvm.umin", x, y);
}

static LLVMValueRef int_op(cpu_emit *e, enum ir_opcode code, enum dtype t, LLVMValueRef *a)
{
    LLVMBuilderRef b = e->cx->b;

    switch ((int)code) {
    case OP_NEG:
        return LLVMBuildNeg(b, a[0], "");
    case OP_NOT:
        return LLVMBuildNot(b, a[0], "");
    case OP_ABS:
        if (!is_signed(t))
            return a[0];
        return int_extreme(e, t, true, a[0], LLVMBuildNeg(b, a[0], ""));
    case OP_ADD:
        return LLVMBuildAdd(b, a[0], a[1], "");
    case OP_SUB:
        return LLVMBuildSub(b, a[0], a[1], "");
    case OP_MUL:
        return LLVMBuildMul(b, a[0], a[1], "");
    case OP_DIV:
        return int_divide(e, t, a[0], a[1]);
    case OP_REM:
        return int_remainder(e, t, a[0], a[1]);
    case OP_AND:
        return LLVMBuildAnd(b, a[0], a[1], "");
    case OP_OR:
        return LLVMBuildOr(b, a[0], a[1], "");
    case OP_XOR:
        return LLVMBuildXor(b, a[0], a[1], "");
    case OP_SHL:
        return LLVMBuildShl(b, a[0], shift_count(e, t, a[1]), "");
    case OP_SHR:
        return is_signed(t) ? LLVMBuildAShr(b, a[0], shift_count(e, t, a[1]), "")
                            : LLVMBuildLShr(b, a[0], shift_count(e, t, a[1]), "");
    case OP_MAX:
        return int_extreme(e, t, true, a[0], a[1]);
    case OP_MIN:
        return int_extreme(e, t, false, a[0], a[1]);
    case OP_CMP_EQ:
        return compare_int(e, LLVMIntEQ, a[0], a[1]);
    case OP_CMP_NE:
        return compare_int(e, LLVMIntNE, a[0], a[1]);
    case OP_CMP_LT:
        return compare_int(e, is_signed(t) ? LLVMIntSLT : LLVMIntULT, a[0], a[1]);
    case OP_CMP_LE:
        return compare_int(e, is_signed(t) ? LLVMIntSLE : LLVMIntULE, a[0], a[1]);
    default:
        ICHECK(0, "an integer operation");
        return NULL;
    }
}

/* ---- floats ---------------------------------------------------------------------------------- */

/* a * b + c rounded once, where the machine cannot: the product of two f32 is exact in double, the
 * sum is rounded to odd there, and rounding that to f32 is right. */
static LLVMValueRef fma_in_double(cpu_emit *e, LLVMValueRef *a)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMTypeRef wide = with_lanes(e->cx->f64, a[0]), bits = with_lanes(e->cx->i64, a[0]);
    LLVMValueRef x = LLVMBuildFPExt(b, a[0], wide, ""), y = LLVMBuildFPExt(b, a[1], wide, "");
    LLVMValueRef z = LLVMBuildFPExt(b, a[2], wide, ""), p = LLVMBuildFMul(b, x, y, "");
    LLVMValueRef s = LLVMBuildFAdd(b, p, z, ""), back = LLVMBuildFSub(b, s, p, "");
    LLVMValueRef ep = LLVMBuildFSub(b, p, LLVMBuildFSub(b, s, back, ""), "");
    LLVMValueRef error = LLVMBuildFAdd(b, ep, LLVMBuildFSub(b, z, back, ""), "");
    LLVMValueRef u = LLVMBuildBitCast(b, s, bits, ""), zero = LLVMConstNull(wide);

    LLVMValueRef same = LLVMBuildXor(b, compare_float(e, LLVMRealOGT, error, zero),
                                     compare_float(e, LLVMRealOGT, s, zero), "");
    LLVMValueRef step = ll_select(e->cx, same, ll_int(bits, -1), ll_int(bits, 1));
    LLVMValueRef even =
        compare_int(e, LLVMIntEQ, LLVMBuildAnd(b, u, ll_int(bits, 1), ""), LLVMConstNull(bits));
    LLVMValueRef inexact = compare_float(e, LLVMRealONE, error, zero);
    LLVMValueRef odd = LLVMBuildAdd(b, u, step, "");
    u = ll_select(e->cx, LLVMBuildAnd(b, even, inexact, ""), odd, u);
    return LLVMBuildFPTrunc(b, LLVMBuildBitCast(b, u, wide, ""), LLVMTypeOf(a[0]), "");
}

static LLVMValueRef float_fma(cpu_emit *e, enum dtype t, LLVMValueRef *a)
{
    if (!e->isa->fma && t == DT_F32)
        return fma_in_double(e, a);
    return ll_fma(e->cx, a[0], a[1], a[2]);
}

LLVMValueRef cpu_fma_or_not(cpu_emit *e, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z)
{
    if (e->isa->fma)
        return ll_fma(e->cx, x, y, z);
    return LLVMBuildFAdd(e->cx->b, LLVMBuildFMul(e->cx->b, x, y, ""), z, "");
}

static LLVMValueRef float_op(cpu_emit *e, enum ir_opcode code, enum dtype t, LLVMValueRef *a)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMTypeRef type = LLVMTypeOf(a[0]);

    switch ((int)code) {
    case OP_NEG:
        return LLVMBuildFNeg(b, a[0], "");
    case OP_ABS:
        return ll_unary(e->cx, "llvm.fabs", a[0]);
    case OP_SQRT:
        return ll_unary(e->cx, "llvm.sqrt", a[0]);
    case OP_RSQRT:
        return LLVMBuildFDiv(b, ll_float(type, 1.0), ll_unary(e->cx, "llvm.sqrt", a[0]), "");
    case OP_FLOOR:
        return ll_unary(e->cx, "llvm.floor", a[0]);
    case OP_CEIL:
        return ll_unary(e->cx, "llvm.ceil", a[0]);
    case OP_ADD:
        return LLVMBuildFAdd(b, a[0], a[1], "");
    case OP_SUB:
        return LLVMBuildFSub(b, a[0], a[1], "");
    case OP_MUL:
        return LLVMBuildFMul(b, a[0], a[1], "");
    case OP_DIV:
        return LLVMBuildFDiv(b, a[0], a[1], "");
    case OP_MAX:
    case OP_RUNNING_MAX:
        return ll_binary(e->cx, "llvm.maximum", a[0], a[1]);
    case OP_MIN:
        return ll_binary(e->cx, "llvm.minimum", a[0], a[1]);
    case OP_CMP_EQ:
        return compare_float(e, LLVMRealOEQ, a[0], a[1]);
    case OP_CMP_NE:
        return compare_float(e, LLVMRealUNE, a[0], a[1]);
    case OP_CMP_LT:
        return compare_float(e, LLVMRealOLT, a[0], a[1]);
    case OP_CMP_LE:
        return compare_float(e, LLVMRealOLE, a[0], a[1]);
    case OP_FMA:
        return float_fma(e, t, a);
    default:
        return cpu_math(e, code, a[0]);
    }
}

/* ---- casts ----------------------------------------------------------------------------------- */

/* Toward 0, saturating; NaN gives 0. The conversion itself never sees what it cannot convert. */
static LLVMValueRef float_to_int(cpu_emit *e, enum dtype to, LLVMValueRef x)
{
    LLVMTypeRef type = LLVMTypeOf(x), res = with_lanes(ll_type(e->cx, to, 1), x);
    int bits = dtype_bits(to);
    double over = ldexp(1.0, is_signed(to) ? bits - 1 : bits), under = is_signed(to) ? -over : 0.0;
    int64_t most = is_signed(to) ? (int64_t)(UINT64_MAX >> (65 - bits)) : -1;
    int64_t least = is_signed(to) ? -most - 1 : 0;

    LLVMValueRef high = compare_float(e, LLVMRealOGE, x, ll_float(type, over));
    LLVMValueRef low = compare_float(e, LLVMRealOLE, x, ll_float(type, under));
    LLVMValueRef in = LLVMBuildAnd(e->cx->b, compare_float(e, LLVMRealOLT, x, ll_float(type, over)),
                                   compare_float(e, LLVMRealOGT, x, ll_float(type, under)), "");
    x = ll_select(e->cx, in, x, LLVMConstNull(type));
    LLVMValueRef v = is_signed(to) ? LLVMBuildFPToSI(e->cx->b, x, res, "")
                                   : LLVMBuildFPToUI(e->cx->b, x, res, "");
    v = ll_select(e->cx, high, ll_int(res, most), v);
    return ll_select(e->cx, low, ll_int(res, least), v);
}

static LLVMValueRef int_to_int(cpu_emit *e, enum dtype from, enum dtype to, LLVMValueRef x)
{
    LLVMTypeRef res = with_lanes(ll_type(e->cx, to, 1), x);

    if (dtype_bits(to) < dtype_bits(from))
        return LLVMBuildTrunc(e->cx->b, x, res, "");
    if (dtype_bits(to) == dtype_bits(from))
        return x;
    return is_signed(from) ? LLVMBuildSExt(e->cx->b, x, res, "")
                           : LLVMBuildZExt(e->cx->b, x, res, "");
}

/* Of what is held; the result of a 16-bit float is not rounded yet. */
static LLVMValueRef held_cast(cpu_emit *e, enum dtype from, enum dtype to, LLVMValueRef x)
{
    LLVMTypeRef res = with_lanes(ll_type(e->cx, to, 1), x), type = LLVMTypeOf(x);

    if (from == to)
        return x;
    if (to == DT_I1)
        return dtype_is_float(from) ? compare_float(e, LLVMRealUNE, x, LLVMConstNull(type))
                                    : compare_int(e, LLVMIntNE, x, LLVMConstNull(type));
    if (dtype_is_float(from) && dtype_is_float(to))
        return dtype_bits(to) > dtype_bits(from) ? LLVMBuildFPExt(e->cx->b, x, res, "")
                                                 : LLVMBuildFPTrunc(e->cx->b, x, res, "");
    if (dtype_is_float(from))
        return float_to_int(e, to, x);
    if (!dtype_is_float(to))
        return int_to_int(e, from, to, x);
    return is_signed(from) ? LLVMBuildSIToFP(e->cx->b, x, res, "")
                           : LLVMBuildUIToFP(e->cx->b, x, res, "");
}

static LLVMValueRef cast(cpu_emit *e, enum dtype from, enum dtype to, LLVMValueRef x)
{
    if (from == to) /* a copy */
        return x;
    return cpu_round(e, to, held_cast(e, cpu_held(from), cpu_held(to), x));
}

static LLVMValueRef bitcast(cpu_emit *e, enum dtype from, enum dtype to, LLVMValueRef x)
{
    x = cpu_to_memory(e, from, x);
    x = LLVMBuildBitCast(e->cx->b, x, with_lanes(cpu_memory_type(e, to, 1), x), "");
    return cpu_to_register(e, to, x);
}

/* ---- entry ----------------------------------------------------------------------------------- */

/* Is the result of an op on values of a 16-bit float always one of its values? */
static bool is_exact(enum ir_opcode code)
{
    switch ((int)code) {
    case OP_NEG:
    case OP_ABS:
    case OP_FLOOR:
    case OP_CEIL:
    case OP_MAX:
    case OP_MIN:
    case OP_RUNNING_MAX:
    case OP_CMP_EQ:
    case OP_CMP_NE:
    case OP_CMP_LT:
    case OP_CMP_LE:
        return true;
    default:
        return false;
    }
}

LLVMValueRef cpu_op(cpu_emit *e, enum ir_opcode code, enum dtype from, enum dtype to,
                    LLVMValueRef *args)
{
    if (code == OP_WHERE)
        return ll_select(e->cx, args[0], args[1], args[2]);
    if (code == OP_CAST)
        return cast(e, from, to, args[0]);
    if (code == OP_BITCAST)
        return bitcast(e, from, to, args[0]);
    if (!dtype_is_float(from))
        return int_op(e, code, from, args);
    LLVMValueRef v = float_op(e, code, cpu_held(from), args);
    return is_exact(code) ? v : cpu_round(e, to, v);
}

/* One instruction each: a NaN in x is lost, one in y is kept. */
LLVMValueRef cpu_combine(cpu_emit *e, enum ir_opcode code, enum dtype t, LLVMValueRef x,
                         LLVMValueRef y)
{
    bool greatest = code == OP_REDUCE_MAX;

    if (code == OP_REDUCE_SUM)
        return dtype_is_float(t) ? LLVMBuildFAdd(e->cx->b, x, y, "")
                                 : LLVMBuildAdd(e->cx->b, x, y, "");
    if (!dtype_is_float(t))
        return int_extreme(e, t, greatest, x, y);
    return ll_select(e->cx, compare_float(e, greatest ? LLVMRealOGT : LLVMRealOLT, x, y), x, y);
}

LLVMValueRef cpu_neutral(cpu_emit *e, enum ir_opcode code, enum dtype t, int lanes)
{
    LLVMTypeRef type = ll_type(e->cx, t, lanes);
    int64_t most = (int64_t)(UINT64_MAX >> (65 - dtype_bits(t)));

    if (code == OP_REDUCE_SUM)
        return LLVMConstNull(type);
    if (dtype_is_float(t))
        return ll_float(type, code == OP_REDUCE_MAX ? -(double)INFINITY : (double)INFINITY);
    if (is_signed(t))
        return ll_int(type, code == OP_REDUCE_MAX ? -most - 1 : most);
    return ll_int(type, code == OP_REDUCE_MAX ? 0 : -1);
}
