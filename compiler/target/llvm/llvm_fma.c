/* fma without the instruction: of f32 in double, of f64 in integers of 128 bits, one element at a
 * time in a function of the module. */
#include "compiler/target/llvm/llvm_exact.h"

/* ---- f32 ------------------------------------------------------------------------------------- */

/* The product of two f32 is exact in double, the sum is rounded to odd there, and rounding that to
 * f32 is right. */
static LLVMValueRef fma_in_double(const ll_cx *cx, LLVMValueRef *a)
{
    LLVMBuilderRef b = cx->b;
    int lanes = ll_lanes_of(LLVMTypeOf(a[0]));
    LLVMTypeRef wide = ll_lanes(cx->f64, lanes), bits = ll_lanes(cx->i64, lanes);
    LLVMValueRef x = LLVMBuildFPExt(b, a[0], wide, ""), y = LLVMBuildFPExt(b, a[1], wide, "");
    LLVMValueRef z = LLVMBuildFPExt(b, a[2], wide, ""), p = LLVMBuildFMul(b, x, y, "");
    LLVMValueRef s = LLVMBuildFAdd(b, p, z, ""), back = LLVMBuildFSub(b, s, p, "");
    LLVMValueRef ep = LLVMBuildFSub(b, p, LLVMBuildFSub(b, s, back, ""), "");
    LLVMValueRef error = LLVMBuildFAdd(b, ep, LLVMBuildFSub(b, z, back, ""), "");
    LLVMValueRef u = LLVMBuildBitCast(b, s, bits, ""), zero = LLVMConstNull(wide);

    LLVMValueRef same = LLVMBuildXor(b, LLVMBuildFCmp(b, LLVMRealOGT, error, zero, ""),
                                     LLVMBuildFCmp(b, LLVMRealOGT, s, zero, ""), "");
    LLVMValueRef step = ll_select(cx, same, ll_int(bits, -1), ll_int(bits, 1));
    LLVMValueRef even = LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildAnd(b, u, ll_int(bits, 1), ""),
                                      LLVMConstNull(bits), "");
    LLVMValueRef inexact = LLVMBuildFCmp(b, LLVMRealONE, error, zero, "");
    LLVMValueRef odd = LLVMBuildAdd(b, u, step, "");
    u = ll_select(cx, LLVMBuildAnd(b, even, inexact, ""), odd, u);
    return LLVMBuildFPTrunc(b, LLVMBuildBitCast(b, u, wide, ""), LLVMTypeOf(a[0]), "");
}

/* ---- f64 ------------------------------------------------------------------------------------- */

enum {
    FRACTION = 52,
    EXPONENTS = 0x7ff,
    LEAST = -1074, /* the exponent of the last place of a subnormal number */
    GUARD = 70     /* how far the addend is moved up where it is far above the product */
};

/* A number: mantissa * 2^exponent, the mantissa from 2^52 on unless it is 0. */
typedef struct number {
    LLVMValueRef sign; /* i1 */
    LLVMValueRef mantissa, exponent;
    LLVMValueRef finite, zero; /* i1 */
} number;

static LLVMValueRef i64(const ll_cx *cx, int64_t v)
{
    return ll_int(cx->i64, v);
}

static LLVMTypeRef wide_type(const ll_cx *cx)
{
    return LLVMIntTypeInContext(cx->context, 128);
}

static LLVMValueRef widen(const ll_cx *cx, LLVMValueRef v)
{
    return LLVMBuildZExt(cx->b, v, wide_type(cx), "");
}

static LLVMValueRef shift_up(const ll_cx *cx, LLVMValueRef wide, LLVMValueRef by)
{
    return LLVMBuildShl(cx->b, wide, widen(cx, by), "");
}

/* x 2^-by, of which what is lost remains as the last bit being set. */
static LLVMValueRef shift_down(const ll_cx *cx, LLVMValueRef wide, LLVMValueRef by)
{
    LLVMValueRef v = LLVMBuildLShr(cx->b, wide, widen(cx, by), "");
    LLVMValueRef lost = LLVMBuildICmp(cx->b, LLVMIntNE, shift_up(cx, v, by), wide, "");

    return LLVMBuildOr(cx->b, v, widen(cx, lost), "");
}

static LLVMValueRef leading_zeros(const ll_cx *cx, LLVMValueRef v)
{
    LLVMTypeRef type = LLVMTypeOf(v);
    LLVMValueRef arg[] = {v, LLVMConstNull(cx->i1)};
    LLVMValueRef n = ll_call(cx, "llvm.ctlz", &type, 1, arg, 2);

    return LLVMGetIntTypeWidth(type) == 64 ? n : LLVMBuildTrunc(cx->b, n, cx->i64, "");
}

static LLVMValueRef clamp(const ll_cx *cx, LLVMValueRef v, int64_t lo, int64_t hi)
{
    return ll_binary(cx, "llvm.smax", i64(cx, lo), ll_binary(cx, "llvm.smin", v, i64(cx, hi)));
}

static number take_apart(const ll_cx *cx, LLVMValueRef x)
{
    LLVMBuilderRef b = cx->b;
    LLVMValueRef u = LLVMBuildBitCast(b, x, cx->i64, ""), one = i64(cx, 1);
    LLVMValueRef biased = LLVMBuildLShr(b, u, i64(cx, FRACTION), "");
    LLVMValueRef fraction = LLVMBuildAnd(b, u, i64(cx, ((int64_t)1 << FRACTION) - 1), "");
    number n = {.sign = LLVMBuildICmp(b, LLVMIntSLT, u, LLVMConstNull(cx->i64), "")};

    biased = LLVMBuildAnd(b, biased, i64(cx, EXPONENTS), "");
    LLVMValueRef tiny = LLVMBuildICmp(b, LLVMIntEQ, biased, LLVMConstNull(cx->i64), "");
    LLVMValueRef up = LLVMBuildSub(b, leading_zeros(cx, fraction), i64(cx, 63 - FRACTION), "");
    LLVMValueRef full = LLVMBuildOr(b, fraction, i64(cx, (int64_t)1 << FRACTION), "");
    n.mantissa = ll_select(cx, tiny, LLVMBuildShl(b, fraction, up, ""), full);
    LLVMValueRef exponent = ll_select(cx, tiny, LLVMBuildSub(b, one, up, ""), biased);
    n.exponent = LLVMBuildAdd(b, exponent, i64(cx, LEAST - 1), "");
    n.finite = LLVMBuildICmp(b, LLVMIntNE, biased, i64(cx, EXPONENTS), "");
    n.zero = LLVMBuildICmp(b, LLVMIntEQ, n.mantissa, LLVMConstNull(cx->i64), "");
    return n;
}

/* sign, sum * 2^exponent rounded to an f64. Below 2^-1074 nothing stays of a sum of 124 bits that
 * ends 126 places lower. */
static LLVMValueRef put_together(const ll_cx *cx, LLVMValueRef sign, LLVMValueRef sum,
                                 LLVMValueRef exponent)
{
    LLVMBuilderRef b = cx->b;
    LLVMTypeRef wide = wide_type(cx);
    LLVMValueRef zero = LLVMBuildICmp(b, LLVMIntEQ, sum, LLVMConstNull(wide), "");
    LLVMValueRef top = LLVMBuildSub(b, i64(cx, 127), leading_zeros(cx, sum), "");
    LLVMValueRef drop = ll_binary(cx, "llvm.smax", LLVMBuildSub(b, top, i64(cx, FRACTION), ""),
                                  LLVMBuildSub(b, i64(cx, LEAST), exponent, ""));
    LLVMValueRef right = clamp(cx, drop, 0, 126);
    LLVMValueRef left = clamp(cx, LLVMBuildNeg(b, drop, ""), 0, FRACTION);

    LLVMValueRef kept = LLVMBuildLShr(b, sum, widen(cx, right), "");
    LLVMValueRef rest = LLVMBuildSub(b, sum, shift_up(cx, kept, right), "");
    LLVMValueRef twice = LLVMBuildShl(b, rest, ll_int(wide, 1), "");
    LLVMValueRef unit = shift_up(cx, ll_int(wide, 1), right);
    LLVMValueRef up = LLVMBuildICmp(b, LLVMIntUGT, twice, unit, "");
    LLVMValueRef tie = LLVMBuildICmp(b, LLVMIntEQ, twice, unit, "");
    LLVMValueRef m = LLVMBuildTrunc(b, kept, cx->i64, "");
    up = LLVMBuildOr(b, up, LLVMBuildAnd(b, tie, LLVMBuildTrunc(b, m, cx->i1, ""), ""), "");
    m = LLVMBuildAdd(b, LLVMBuildShl(b, m, left, ""), LLVMBuildZExt(b, up, cx->i64, ""), "");

    /* the leading bit of m counts as one of the exponent; what is too large becomes infinity */
    LLVMValueRef place = LLVMBuildSub(b, LLVMBuildAdd(b, exponent, drop, ""), i64(cx, LEAST), "");
    LLVMValueRef u = LLVMBuildAdd(b, LLVMBuildShl(b, place, i64(cx, FRACTION), ""), m, "");
    u = ll_binary(cx, "llvm.umin", u, i64(cx, (int64_t)EXPONENTS << FRACTION));
    LLVMValueRef top_bit = LLVMBuildShl(b, LLVMBuildZExt(b, sign, cx->i64, ""), i64(cx, 63), "");
    u = ll_select(cx, zero, LLVMConstNull(cx->i64), LLVMBuildOr(b, u, top_bit, ""));
    return LLVMBuildBitCast(b, u, cx->f64, "");
}

/* x y + z of finite numbers, x and y not 0. The product has 106 bits; the addend is moved to where
 * the product stands or, from 2^70 above it on, the product down to 2^70 below the addend. */
static LLVMValueRef finite_fma(const ll_cx *cx, const number *x, const number *y, const number *z)
{
    LLVMBuilderRef b = cx->b;
    LLVMValueRef product = LLVMBuildMul(b, widen(cx, x->mantissa), widen(cx, y->mantissa), "");
    LLVMValueRef exponent = LLVMBuildAdd(b, x->exponent, y->exponent, "");
    LLVMValueRef above =
        LLVMBuildSub(b, ll_select(cx, z->zero, exponent, z->exponent), exponent, "");
    LLVMValueRef lower = LLVMBuildSub(b, above, i64(cx, GUARD), "");

    LLVMValueRef addend = shift_up(cx, widen(cx, z->mantissa), clamp(cx, above, 0, GUARD));
    addend = shift_down(cx, addend, clamp(cx, LLVMBuildNeg(b, above, ""), 0, 127));
    product = shift_down(cx, product, clamp(cx, lower, 0, 127));
    exponent = LLVMBuildAdd(b, exponent, ll_binary(cx, "llvm.smax", lower, i64(cx, 0)), "");

    LLVMValueRef sign = LLVMBuildXor(b, x->sign, y->sign, "");
    LLVMValueRef apart = LLVMBuildXor(b, sign, z->sign, "");
    LLVMValueRef less = LLVMBuildICmp(b, LLVMIntULT, product, addend, "");
    LLVMValueRef difference = ll_select(cx, less, LLVMBuildSub(b, addend, product, ""),
                                        LLVMBuildSub(b, product, addend, ""));
    LLVMValueRef sum = ll_select(cx, apart, difference, LLVMBuildAdd(b, product, addend, ""));
    sign = LLVMBuildXor(b, sign, LLVMBuildAnd(b, apart, less, ""), "");
    return put_together(cx, sign, sum, exponent);
}

/* Where a number is not finite, or a factor 0, product and sum are what they are in f64. */
static void fill_fma(ll_cx *cx, LLVMValueRef fn, void *arg)
{
    LLVMBuilderRef b = cx->b;
    LLVMValueRef a[3];
    number n[3];

    (void)arg;
    for (unsigned i = 0; i < 3; i++) {
        a[i] = LLVMGetParam(fn, i);
        n[i] = take_apart(cx, a[i]);
    }
    LLVMValueRef factors = LLVMBuildAnd(b, n[0].finite, n[1].finite, "");
    LLVMValueRef empty = LLVMBuildOr(b, n[0].zero, n[1].zero, "");
    factors = LLVMBuildAnd(b, factors, LLVMBuildNot(b, empty, ""), "");
    LLVMValueRef product =
        ll_select(cx, factors, LLVMConstNull(cx->f64), LLVMBuildFMul(b, a[0], a[1], ""));
    LLVMValueRef plain = LLVMBuildFAdd(b, product, a[2], "");
    LLVMValueRef v = finite_fma(cx, &n[0], &n[1], &n[2]);
    LLVMBuildRet(b, ll_select(cx, LLVMBuildAnd(b, factors, n[2].finite, ""), v, plain));
}

static LLVMValueRef fma_in_integers(ll_cx *cx, LLVMValueRef *a)
{
    LLVMTypeRef type = LLVMTypeOf(a[0]), arg[] = {cx->f64, cx->f64, cx->f64};
    LLVMTypeRef fn_type = LLVMFunctionType(cx->f64, arg, 3, 0);
    LLVMValueRef fn = ll_function(cx, "fma.f64", fn_type, fill_fma, NULL);
    int lanes = ll_lanes_of(type);

    if (lanes == 1)
        return LLVMBuildCall2(cx->b, fn_type, fn, a, 3, "");
    LLVMValueRef all = LLVMGetPoison(type);
    for (int i = 0; i < lanes; i++) {
        LLVMValueRef one[3], lane = ll_i64(cx, i);
        for (int k = 0; k < 3; k++)
            one[k] = LLVMBuildExtractElement(cx->b, a[k], lane, "");
        LLVMValueRef v = LLVMBuildCall2(cx->b, fn_type, fn, one, 3, "");
        all = LLVMBuildInsertElement(cx->b, all, v, lane, "");
    }
    return all;
}

LLVMValueRef ll_soft_fma(ll_cx *cx, LLVMValueRef *a)
{
    return ll_scalar_of(LLVMTypeOf(a[0])) == cx->f32 ? fma_in_double(cx, a)
                                                     : fma_in_integers(cx, a);
}
