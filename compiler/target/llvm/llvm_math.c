/* exp2, exp, log2, log, tanh, erf, sin, cos of f32 as inline code, for scalars and vectors alike.
 *
 * Coefficients: minimax in relative error, computed with a Remez exchange in double and rounded.
 * Accuracy over all of f32 (tests/unit/check_cpu_math.c holds them to it): docs/CPU.md. */
#include "compiler/target/llvm/llvm_math.h"
#include "compiler/base/check.h"
#include "compiler/ir/ireval.h"
#include <math.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static LLVMValueRef number(LLVMValueRef like, double v)
{
    return ll_float(LLVMTypeOf(like), v);
}

static LLVMValueRef add(const ll_math *e, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildFAdd(e->cx->b, x, y, "");
}

static LLVMValueRef sub(const ll_math *e, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildFSub(e->cx->b, x, y, "");
}

static LLVMValueRef mul(const ll_math *e, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildFMul(e->cx->b, x, y, "");
}

static LLVMValueRef fma_or_not(const ll_math *e, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z)
{
    return e->fma ? ll_fma(e->cx, x, y, z) : add(e, mul(e, x, y), z);
}

/* c[0] + c[1] x + ... */
static LLVMValueRef polynomial(const ll_math *e, LLVMValueRef x, const double *c, int n)
{
    LLVMValueRef p = number(x, c[n - 1]);

    for (int i = n - 2; i >= 0; i--)
        p = fma_or_not(e, p, x, number(x, c[i]));
    return p;
}

/* A NaN stays one. */
static LLVMValueRef clamp(const ll_math *e, LLVMValueRef x, double lo, double hi)
{
    LLVMValueRef c = LLVMBuildFCmp(e->cx->b, LLVMRealOLT, x, number(x, lo), "");

    x = ll_select(e->cx, c, number(x, lo), x);
    c = LLVMBuildFCmp(e->cx->b, LLVMRealOGT, x, number(x, hi), "");
    return ll_select(e->cx, c, number(x, hi), x);
}

/* 2^n for integers n in [-126, 127] */
static LLVMValueRef power_of_two(const ll_math *e, LLVMValueRef n)
{
    LLVMTypeRef type = LLVMTypeOf(n);
    LLVMValueRef biased = LLVMBuildAdd(e->cx->b, n, ll_int(type, 127), "");
    LLVMValueRef bits = LLVMBuildShl(e->cx->b, biased, ll_int(type, 23), "");

    return LLVMBuildBitCast(e->cx->b, bits, ll_lanes(e->cx->f32, ll_lanes_of(type)), "");
}

/* p * 2^n, n an integer in [-252, 254] held as a float: in two steps, so that a result below the
 * normal range rounds once. */
static LLVMValueRef scale(const ll_math *e, LLVMValueRef p, LLVMValueRef n)
{
    LLVMTypeRef type = ll_lanes(e->cx->i32, ll_lanes_of(LLVMTypeOf(n)));

    if (e->scale)
        return e->scale(e->cx, p, n);
    LLVMValueRef k = LLVMBuildFPToSI(e->cx->b, n, type, "");
    k = LLVMBuildFreeze(e->cx->b, k, ""); /* of a NaN: p is one too */
    LLVMValueRef half = LLVMBuildAShr(e->cx->b, k, ll_int(type, 1), "");
    LLVMValueRef rest = LLVMBuildSub(e->cx->b, k, half, "");
    return mul(e, mul(e, p, power_of_two(e, half)), power_of_two(e, rest));
}

/* x - floor(x) in [0, 1], then 2^that, then times 2^floor(x). */
static LLVMValueRef exp2_f32(const ll_math *e, LLVMValueRef x)
{
    static const double c[] = {1.0,           0.693147063,  0.240229309,   0.0554852821,
                               0.00967545155, 0.0012467847, 0.000216129149};

    if (e->fraction)
        return scale(e, polynomial(e, e->fraction(e->cx, x), c, COUNT(c)), x);
    x = clamp(e, x, -151.0, 129.0);
    LLVMValueRef n = ll_unary(e->cx, "llvm.floor", x);
    return scale(e, polynomial(e, sub(e, x, n), c, COUNT(c)), n);
}

/* x = n ln 2 + r, |r| <= ln 2 / 2; ln 2 in two parts, the first times n exact. */
static LLVMValueRef exp_f32(const ll_math *e, LLVMValueRef x)
{
    static const double c[] = {1.0,          1.0,           0.5,           0.166666657,
                               0.0416662917, 0.00833349861, 0.00139448687, 0.000197901347};

    x = clamp(e, x, -105.0, 89.0);
    LLVMValueRef n = mul(e, x, number(x, 1.44269504088896341));
    n = ll_unary(e->cx, "llvm.floor", add(e, n, number(x, 0.5)));
    LLVMValueRef r = sub(e, x, mul(e, n, number(x, 0x1.62ep-1)));
    r = sub(e, r, mul(e, n, number(x, 0x1.0bfbe8e7bcd5ep-15)));
    return scale(e, polynomial(e, r, c, COUNT(c)), n);
}

/* ---- logarithms ------------------------------------------------------------------------------ */

/* x = 2^k (1 + r), sqrt(1/2) <= 1 + r < sqrt(2); for x > 0, finite. k is a float. */
static LLVMValueRef split(const ll_math *e, LLVMValueRef x, LLVMValueRef *k)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMTypeRef type = ll_lanes(e->cx->i32, ll_lanes_of(LLVMTypeOf(x)));
    const int64_t sqrt_half = 0x3f3504f3;

    LLVMValueRef tiny = LLVMBuildFCmp(b, LLVMRealOLT, x, number(x, 0x1p-126), "");
    x = ll_select(e->cx, tiny, mul(e, x, number(x, 0x1p23)), x);
    LLVMValueRef u = LLVMBuildBitCast(b, x, type, "");
    u = LLVMBuildSub(b, u, ll_int(type, sqrt_half), "");
    LLVMValueRef n = LLVMBuildAShr(b, u, ll_int(type, 23), "");
    u = LLVMBuildAnd(b, u, ll_int(type, 0x7fffff), "");
    u = LLVMBuildAdd(b, u, ll_int(type, sqrt_half), "");
    n = LLVMBuildSub(b, n, ll_select(e->cx, tiny, ll_int(type, 23), ll_int(type, 0)), "");
    *k = LLVMBuildSIToFP(b, n, LLVMTypeOf(x), "");
    return sub(e, LLVMBuildBitCast(b, u, LLVMTypeOf(x), ""), number(x, 1.0));
}

/* ln(1 + r) - r */
static LLVMValueRef log_tail(const ll_math *e, LLVMValueRef r)
{
    static const double c[] = {-0.5,        0.333333313,  -0.250008196, 0.200012267,  -0.166233569,
                               0.142017573, -0.131601825, 0.12761578,   -0.0763449967};

    return mul(e, mul(e, r, r), polynomial(e, r, c, COUNT(c)));
}

/* Without fma, where the corrections below would not be exact: in double. */
static LLVMValueRef log_in_double(const ll_math *e, LLVMValueRef r, LLVMValueRef k, bool binary)
{
    LLVMTypeRef narrow = LLVMTypeOf(r), wide = ll_lanes(e->cx->f64, ll_lanes_of(narrow));

    r = LLVMBuildFPExt(e->cx->b, r, wide, "");
    k = LLVMBuildFPExt(e->cx->b, k, wide, "");
    LLVMValueRef v = add(e, r, log_tail(e, r));
    if (binary)
        v = add(e, k, mul(e, v, number(v, 1.44269504088896341)));
    else
        v = add(e, mul(e, k, number(v, 0.693147180559945309)), v);
    return LLVMBuildFPTrunc(e->cx->b, v, narrow, "");
}

static LLVMValueRef natural(const ll_math *e, LLVMValueRef r, LLVMValueRef k)
{
    LLVMValueRef low = ll_fma(e->cx, k, number(r, 0x1.0bfbe8e7bcd5ep-15), log_tail(e, r));

    return ll_fma(e->cx, k, number(r, 0x1.62ep-1), add(e, r, low));
}

/* k + (r + tail) log2(e), with the rounding errors of k + y and of y = r log2(e) kept. */
static LLVMValueRef binary(const ll_math *e, LLVMValueRef r, LLVMValueRef k)
{
    const double high = 0x1.715476p+0, low = 0x1.4ae0bf85ddf44p-26;
    LLVMValueRef y = mul(e, r, number(r, high)), lost, sum;

    lost = ll_fma(e->cx, r, number(r, high), LLVMBuildFNeg(e->cx->b, y, ""));
    lost = ll_fma(e->cx, r, number(r, low), lost);
    lost = ll_fma(e->cx, log_tail(e, r), number(r, high), lost);
    sum = add(e, k, y);
    lost = add(e, lost, sub(e, y, sub(e, sum, k)));
    return add(e, sum, lost);
}

static LLVMValueRef log_f32(const ll_math *e, LLVMValueRef x, bool base2)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMValueRef k, r = split(e, x, &k), v;

    if (!e->fma)
        v = log_in_double(e, r, k, base2);
    else
        v = base2 ? binary(e, r, k) : natural(e, r, k);
    LLVMValueRef infinite = LLVMBuildFCmp(b, LLVMRealUEQ, x, number(x, (double)INFINITY), "");
    LLVMValueRef negative = LLVMBuildFCmp(b, LLVMRealOLT, x, number(x, 0.0), "");
    LLVMValueRef zero = LLVMBuildFCmp(b, LLVMRealOEQ, x, number(x, 0.0), "");
    v = ll_select(e->cx, infinite, x, v); /* and NaN */
    v = ll_select(e->cx, negative, number(x, (double)NAN), v);
    return ll_select(e->cx, zero, number(x, -(double)INFINITY), v);
}

/* ---- tanh, erf ------------------------------------------------------------------------------- */

/* x + x P(x^2) */
static LLVMValueRef odd_series(const ll_math *e, LLVMValueRef x, const double *c, int n)
{
    return fma_or_not(e, x, polynomial(e, mul(e, x, x), c, n), x);
}

/* small where |x| < bound, else large with x's sign; NaN takes small, which keeps it. */
static LLVMValueRef by_size(const ll_math *e, LLVMValueRef x, double bound, LLVMValueRef small,
                            LLVMValueRef large)
{
    LLVMValueRef size = ll_unary(e->cx, "llvm.fabs", x);
    LLVMValueRef beyond = LLVMBuildFCmp(e->cx->b, LLVMRealOGE, size, number(x, bound), "");

    return ll_select(e->cx, beyond, ll_binary(e->cx, "llvm.copysign", large, x), small);
}

/* 1 - 2 / (e^2x + 1), which near 0 would lose what x has to say; beyond, it forgives what e^2x is off
 * by: 2^(x 2 log2 e) will do. */
static LLVMValueRef tanh_f32(const ll_math *e, LLVMValueRef x)
{
    static const double c[] = {-0.333333308027,
                               0.133332060086,
                               -0.0539467630757,
                               0.021700703272,
                               -0.00817739832516,
                               0.00214296190209};
    LLVMValueRef size = ll_unary(e->cx, "llvm.fabs", x);
    LLVMValueRef t = exp2_f32(e, mul(e, size, number(x, 2.88539008177792681)));
    LLVMValueRef square = mul(e, x, x), rest = mul(e, square, polynomial(e, square, c, COUNT(c)));

    t = LLVMBuildFDiv(e->cx->b, number(x, 2.0), add(e, t, number(x, 1.0)), "");
    return by_size(e, x, 0.625, fma_or_not(e, x, rest, x), sub(e, number(x, 1.0), t));
}

/* 1 - exp(-Q(|x|)), near 0 a series. At 4 the result is 1. */
static LLVMValueRef erf_f32(const ll_math *e, LLVMValueRef x)
{
    static const double c[] = {0.128379166764,   -0.376126349799, 0.11283715033,
                               -0.0268605084687, 0.0052038591731, -0.000817563943708,
                               8.51310466209e-5};
    static const double q[] = {-0.000177496736602, -1.12774955334,  -0.637059769431,
                               -0.1040373445,      0.0222770793848, -0.00305560552036,
                               0.000197181505678};
    LLVMValueRef size = clamp(e, ll_unary(e->cx, "llvm.fabs", x), 0.0, 4.0);
    LLVMValueRef t = exp_f32(e, polynomial(e, size, q, COUNT(q)));

    return by_size(e, x, 0.9, odd_series(e, x, c, COUNT(c)), sub(e, number(x, 1.0), t));
}

/* ---- sin, cos -------------------------------------------------------------------------------- */

/* wide - n pi/2 for the nearest n; pi/2 in three parts, of which the first two times n are exact.
 */
static LLVMValueRef reduce_angle(const ll_math *e, LLVMValueRef wide, LLVMValueRef *n)
{
    static const double part[] = {0x1.921fb5p+0, 0x1.110b46p-26, 0x1.1a62633145c07p-54};

    *n = mul(e, wide, number(wide, 0x1.45f306dc9c883p-1));
    *n = ll_unary(e->cx, "llvm.floor", add(e, *n, number(wide, 0.5)));
    for (int i = 0; i < COUNT(part); i++)
        wide = sub(e, wide, mul(e, *n, number(wide, part[i])));
    return wide;
}

static LLVMValueRef has_bit(const ll_math *e, LLVMValueRef x, int64_t bit)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMValueRef kept = LLVMBuildAnd(e->cx->b, x, ll_int(type, bit), "");

    return LLVMBuildICmp(e->cx->b, LLVMIntNE, kept, LLVMConstNull(type), "");
}

/* In double, where every step is exact enough; quarter turns choose series and sign. */
static LLVMValueRef wave_f32(const ll_math *e, LLVMValueRef x, bool is_cos)
{
    static const double s[] = {-0.166666666416269731, 0.00833332938594237546,
                               -0.00019839334853343724, 2.71831166028996109e-6};
    static const double c[] = {-0.499999996944754931, 0.0416666203570827635,
                               -0.00138866816465929674, 0.000024383567189807254};
    LLVMBuilderRef b = e->cx->b;
    int lanes = ll_lanes_of(LLVMTypeOf(x));
    LLVMTypeRef ints = ll_lanes(e->cx->i32, lanes);
    LLVMValueRef size = ll_unary(e->cx, "llvm.fabs", x), n;
    LLVMValueRef known = LLVMBuildFCmp(b, LLVMRealOLE, size, number(x, ANGLE_MAX), "");
    LLVMValueRef r = reduce_angle(e, LLVMBuildFPExt(b, x, ll_lanes(e->cx->f64, lanes), ""), &n);
    LLVMValueRef square = mul(e, r, r);
    LLVMValueRef sine = add(e, r, mul(e, mul(e, r, square), polynomial(e, square, s, COUNT(s))));
    LLVMValueRef cosine =
        add(e, number(r, 1.0), mul(e, square, polynomial(e, square, c, COUNT(c))));
    LLVMValueRef turn = LLVMBuildFreeze(b, LLVMBuildFPToSI(b, n, ints, ""), "");

    if (is_cos)
        turn = LLVMBuildAdd(b, turn, ll_int(ints, 1), "");
    LLVMValueRef v = ll_select(e->cx, has_bit(e, turn, 1), cosine, sine);
    v = ll_select(e->cx, has_bit(e, turn, 2), LLVMBuildFNeg(b, v, ""), v);
    return ll_select(e->cx, known, LLVMBuildFPTrunc(b, v, LLVMTypeOf(x), ""),
                     number(x, (double)NAN));
}

LLVMValueRef ll_math_op(const ll_math *e, enum ir_opcode code, LLVMValueRef x)
{
    switch ((int)code) {
    case OP_EXP2:
        return exp2_f32(e, x);
    case OP_EXP:
        return exp_f32(e, x);
    case OP_LOG2:
        return log_f32(e, x, true);
    case OP_LOG:
        return log_f32(e, x, false);
    case OP_TANH:
        return tanh_f32(e, x);
    case OP_ERF:
        return erf_f32(e, x);
    case OP_SIN:
        return wave_f32(e, x, false);
    case OP_COS:
        return wave_f32(e, x, true);
    default:
        ICHECK(0, "a function of one float");
        return NULL;
    }
}
