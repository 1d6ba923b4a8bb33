#include "compiler/target/llvm/llvm_ops.h"
#include "compiler/base/check.h"
#include <math.h>

static LLVMValueRef compare_int(const ll_cx *cx, LLVMIntPredicate p, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildICmp(cx->b, p, x, y, "");
}

static LLVMValueRef compare_float(const ll_cx *cx, LLVMRealPredicate p, LLVMValueRef x,
                                  LLVMValueRef y)
{
    return LLVMBuildFCmp(cx->b, p, x, y, "");
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
static LLVMValueRef divide_as_double(const ll_cx *cx, enum dtype t, LLVMValueRef x, LLVMValueRef y)
{
    LLVMTypeRef wide = with_lanes(cx->f64, x), narrow = LLVMTypeOf(x);
    LLVMBuilderRef b = cx->b;

    if (is_signed(t)) {
        LLVMValueRef q =
            LLVMBuildFDiv(b, LLVMBuildSIToFP(b, x, wide, ""), LLVMBuildSIToFP(b, y, wide, ""), "");
        return LLVMBuildFPToSI(b, q, narrow, "");
    }
    LLVMValueRef q =
        LLVMBuildFDiv(b, LLVMBuildUIToFP(b, x, wide, ""), LLVMBuildUIToFP(b, y, wide, ""), "");
    return LLVMBuildFPToUI(b, q, narrow, "");
}

static LLVMValueRef plain_divide(const ll_cx *cx, enum dtype t, LLVMValueRef x, LLVMValueRef y)
{
    if (ll_lanes_of(LLVMTypeOf(x)) > 1 && dtype_bits(t) <= 32)
        return divide_as_double(cx, t, x, y);
    return is_signed(t) ? LLVMBuildSDiv(cx->b, x, y, "") : LLVMBuildUDiv(cx->b, x, y, "");
}

static bool is_safe_divisor(LLVMValueRef y)
{
    if (!LLVMIsAConstantInt(y))
        return false;
    int64_t v = LLVMConstIntGetSExtValue(y);
    return v != 0 && v != -1;
}

/* x / y where y is neither 0 nor (signed) -1; those divide by 1 instead. */
static LLVMValueRef divide_safely(const ll_cx *cx, enum dtype t, LLVMValueRef x, LLVMValueRef y,
                                  LLVMValueRef *zero, LLVMValueRef *minus)
{
    LLVMTypeRef type = LLVMTypeOf(x);

    *zero = compare_int(cx, LLVMIntEQ, y, LLVMConstNull(type));
    *minus = is_signed(t) ? compare_int(cx, LLVMIntEQ, y, LLVMConstAllOnes(type)) : NULL;
    LLVMValueRef odd = *minus ? LLVMBuildOr(cx->b, *zero, *minus, "") : *zero;
    return plain_divide(cx, t, x, ll_select(cx, odd, ll_int(type, 1), y));
}

static LLVMValueRef int_divide(const ll_cx *cx, enum dtype t, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef zero, minus;

    if (is_safe_divisor(y))
        return plain_divide(cx, t, x, y);
    LLVMValueRef q = divide_safely(cx, t, x, y, &zero, &minus);
    if (minus)
        q = ll_select(cx, minus, LLVMBuildNeg(cx->b, x, ""), q);
    return ll_select(cx, zero, LLVMConstNull(LLVMTypeOf(x)), q);
}

static LLVMValueRef int_remainder(const ll_cx *cx, enum dtype t, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildSub(cx->b, x, LLVMBuildMul(cx->b, int_divide(cx, t, x, y), y, ""), "");
}

static LLVMValueRef shift_count(const ll_cx *cx, enum dtype t, LLVMValueRef y)
{
    return LLVMBuildAnd(cx->b, y, ll_int(LLVMTypeOf(y), dtype_bits(t) - 1), "");
}

LLVMValueRef ll_int_extreme(const ll_cx *cx, enum dtype t, bool greatest, LLVMValueRef x,
                            LLVMValueRef y)
{
    if (greatest)
        return ll_binary(cx, is_signed(t) ? "llvm.smax" : "llvm.umax", x, y);
    return ll_binary(cx, is_signed(t) ? "llvm.smin" : "llvm.umin", x, y);
}

LLVMValueRef ll_int_op(const ll_cx *cx, enum ir_opcode code, enum dtype t, LLVMValueRef *a)
{
    LLVMBuilderRef b = cx->b;

    switch ((int)code) {
    case OP_NEG:
        return LLVMBuildNeg(b, a[0], "");
    case OP_NOT:
        return LLVMBuildNot(b, a[0], "");
    case OP_ABS:
        if (!is_signed(t))
            return a[0];
        return ll_int_extreme(cx, t, true, a[0], LLVMBuildNeg(b, a[0], ""));
    case OP_ADD:
        return LLVMBuildAdd(b, a[0], a[1], "");
    case OP_SUB:
        return LLVMBuildSub(b, a[0], a[1], "");
    case OP_MUL:
        return LLVMBuildMul(b, a[0], a[1], "");
    case OP_DIV:
        return int_divide(cx, t, a[0], a[1]);
    case OP_REM:
        return int_remainder(cx, t, a[0], a[1]);
    case OP_AND:
        return LLVMBuildAnd(b, a[0], a[1], "");
    case OP_OR:
        return LLVMBuildOr(b, a[0], a[1], "");
    case OP_XOR:
        return LLVMBuildXor(b, a[0], a[1], "");
    case OP_SHL:
        return LLVMBuildShl(b, a[0], shift_count(cx, t, a[1]), "");
    case OP_SHR:
        return is_signed(t) ? LLVMBuildAShr(b, a[0], shift_count(cx, t, a[1]), "")
                            : LLVMBuildLShr(b, a[0], shift_count(cx, t, a[1]), "");
    case OP_MAX:
        return ll_int_extreme(cx, t, true, a[0], a[1]);
    case OP_MIN:
        return ll_int_extreme(cx, t, false, a[0], a[1]);
    case OP_CMP_EQ:
        return compare_int(cx, LLVMIntEQ, a[0], a[1]);
    case OP_CMP_NE:
        return compare_int(cx, LLVMIntNE, a[0], a[1]);
    case OP_CMP_LT:
        return compare_int(cx, is_signed(t) ? LLVMIntSLT : LLVMIntULT, a[0], a[1]);
    case OP_CMP_LE:
        return compare_int(cx, is_signed(t) ? LLVMIntSLE : LLVMIntULE, a[0], a[1]);
    default:
        ICHECK(0, "an integer operation");
        return NULL;
    }
}

/* ---- floats ---------------------------------------------------------------------------------- */

LLVMValueRef ll_float_op(const ll_cx *cx, enum ir_opcode code, LLVMValueRef *a)
{
    LLVMBuilderRef b = cx->b;
    LLVMTypeRef type = LLVMTypeOf(a[0]);

    switch ((int)code) {
    case OP_NEG:
        return LLVMBuildFNeg(b, a[0], "");
    case OP_ABS:
        return ll_unary(cx, "llvm.fabs", a[0]);
    case OP_SQRT:
        return ll_unary(cx, "llvm.sqrt", a[0]);
    case OP_RSQRT:
        return LLVMBuildFDiv(b, ll_float(type, 1.0), ll_unary(cx, "llvm.sqrt", a[0]), "");
    case OP_FLOOR:
        return ll_unary(cx, "llvm.floor", a[0]);
    case OP_CEIL:
        return ll_unary(cx, "llvm.ceil", a[0]);
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
        return ll_binary(cx, "llvm.maximum", a[0], a[1]);
    case OP_MIN:
        return ll_binary(cx, "llvm.minimum", a[0], a[1]);
    case OP_CMP_EQ:
        return compare_float(cx, LLVMRealOEQ, a[0], a[1]);
    case OP_CMP_NE:
        return compare_float(cx, LLVMRealUNE, a[0], a[1]);
    case OP_CMP_LT:
        return compare_float(cx, LLVMRealOLT, a[0], a[1]);
    case OP_CMP_LE:
        return compare_float(cx, LLVMRealOLE, a[0], a[1]);
    default:
        return NULL;
    }
}

/* ---- casts ----------------------------------------------------------------------------------- */

/* Toward 0, saturating; NaN gives 0. The conversion itself never sees what it cannot convert. */
static LLVMValueRef float_to_int(const ll_cx *cx, enum dtype to, LLVMValueRef x)
{
    LLVMTypeRef type = LLVMTypeOf(x), res = with_lanes(ll_type(cx, to, 1), x);
    int bits = dtype_bits(to);
    double over = ldexp(1.0, is_signed(to) ? bits - 1 : bits), under = is_signed(to) ? -over : 0.0;
    int64_t most = is_signed(to) ? (int64_t)(UINT64_MAX >> (65 - bits)) : -1;
    int64_t least = is_signed(to) ? -most - 1 : 0;

    LLVMValueRef high = compare_float(cx, LLVMRealOGE, x, ll_float(type, over));
    LLVMValueRef low = compare_float(cx, LLVMRealOLE, x, ll_float(type, under));
    LLVMValueRef in = LLVMBuildAnd(cx->b, compare_float(cx, LLVMRealOLT, x, ll_float(type, over)),
                                   compare_float(cx, LLVMRealOGT, x, ll_float(type, under)), "");
    x = ll_select(cx, in, x, LLVMConstNull(type));
    LLVMValueRef v =
        is_signed(to) ? LLVMBuildFPToSI(cx->b, x, res, "") : LLVMBuildFPToUI(cx->b, x, res, "");
    v = ll_select(cx, high, ll_int(res, most), v);
    return ll_select(cx, low, ll_int(res, least), v);
}

static LLVMValueRef int_to_int(const ll_cx *cx, enum dtype from, enum dtype to, LLVMValueRef x)
{
    LLVMTypeRef res = with_lanes(ll_type(cx, to, 1), x);

    if (dtype_bits(to) < dtype_bits(from))
        return LLVMBuildTrunc(cx->b, x, res, "");
    if (dtype_bits(to) == dtype_bits(from))
        return x;
    return is_signed(from) ? LLVMBuildSExt(cx->b, x, res, "") : LLVMBuildZExt(cx->b, x, res, "");
}

LLVMValueRef ll_cast(const ll_cx *cx, enum dtype from, enum dtype to, LLVMValueRef x)
{
    LLVMTypeRef res = with_lanes(ll_type(cx, to, 1), x), type = LLVMTypeOf(x);

    if (from == to)
        return x;
    if (to == DT_I1)
        return dtype_is_float(from) ? compare_float(cx, LLVMRealUNE, x, LLVMConstNull(type))
                                    : compare_int(cx, LLVMIntNE, x, LLVMConstNull(type));
    if (dtype_is_float(from) && dtype_is_float(to))
        return dtype_bits(to) > dtype_bits(from) ? LLVMBuildFPExt(cx->b, x, res, "")
                                                 : LLVMBuildFPTrunc(cx->b, x, res, "");
    if (dtype_is_float(from))
        return float_to_int(cx, to, x);
    if (!dtype_is_float(to))
        return int_to_int(cx, from, to, x);
    return is_signed(from) ? LLVMBuildSIToFP(cx->b, x, res, "")
                           : LLVMBuildUIToFP(cx->b, x, res, "");
}
