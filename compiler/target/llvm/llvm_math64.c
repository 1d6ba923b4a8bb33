/* exp2, exp, log2, log, tanh, erf, sin, cos of f64 as inline code, for scalars and vectors alike.
 *
 * Coefficients: interpolation at Chebyshev nodes, computed with 70 digits and rounded. Accuracy is
 * held by tests/unit/check_cpu_math.c; docs/CPU.md has a table. Constants in parts (ln 2, pi /
 * 2): the leading bits of each, so that products with small integers are exact. */
#include "compiler/ir/ireval.h"
#include "compiler/target/llvm/llvm_float.h"
#include <math.h>

#define ROUNDER 0x1.8p52 /* x + ROUNDER has the nearest integer in its low bits, for |x| < 2^51 */

static LLVMValueRef times(const ll_math *e, LLVMValueRef x, double v)
{
    return flt_mul(e, x, flt_number(x, v));
}

static LLVMValueRef compare(const ll_math *e, LLVMRealPredicate p, LLVMValueRef x, double v)
{
    return LLVMBuildFCmp(e->cx->b, p, x, flt_number(x, v), "");
}

static LLVMTypeRef ints_like(const ll_math *e, LLVMValueRef x)
{
    return ll_lanes(e->cx->i64, ll_lanes_of(LLVMTypeOf(x)));
}

static LLVMValueRef bits_of(const ll_math *e, LLVMValueRef x)
{
    return LLVMBuildBitCast(e->cx->b, x, ints_like(e, x), "");
}

/* The nearest integer; *n: as an integer. */
static LLVMValueRef nearest(const ll_math *e, LLVMValueRef x, LLVMValueRef *n)
{
    LLVMValueRef t = flt_add(e, x, flt_number(x, ROUNDER));

    *n = LLVMBuildSub(e->cx->b, bits_of(e, t), bits_of(e, flt_number(x, ROUNDER)), "");
    return flt_sub(e, t, flt_number(x, ROUNDER));
}

/* 2^n for integers n in [-1022, 1023] */
static LLVMValueRef power_of_two(const ll_math *e, LLVMValueRef n, LLVMTypeRef type)
{
    LLVMTypeRef ints = LLVMTypeOf(n);
    LLVMValueRef biased = LLVMBuildAdd(e->cx->b, n, ll_int(ints, 1023), "");

    return LLVMBuildBitCast(e->cx->b, LLVMBuildShl(e->cx->b, biased, ll_int(ints, 52), ""), type,
                            "");
}

/* p 2^n, in two steps, so that a result below the normal range rounds once. */
static LLVMValueRef scale(const ll_math *e, LLVMValueRef p, LLVMValueRef n)
{
    LLVMTypeRef ints = LLVMTypeOf(n), type = LLVMTypeOf(p);
    LLVMValueRef half = LLVMBuildAShr(e->cx->b, n, ll_int(ints, 1), "");
    LLVMValueRef rest = LLVMBuildSub(e->cx->b, n, half, "");

    return flt_mul(e, flt_mul(e, p, power_of_two(e, half, type)), power_of_two(e, rest, type));
}

static LLVMValueRef exp2_f64(const ll_math *e, LLVMValueRef x)
{
    static const double c[] = {
        0.6931471805599453,     0.24022650695910072,    0.055504108664821625,
        0.00961812910762848,    0.001333355814640647,   0.00015403530393370734,
        1.5252733841556773e-05, 1.3215486808705563e-06, 1.0178057087733941e-07,
        7.0548973041554995e-09, 4.4558179083360645e-10, 2.5729324177362305e-11};
    LLVMValueRef k, n, r;

    x = flt_clamp(e, x, -1080.0, 1030.0);
    n = nearest(e, x, &k);
    r = flt_sub(e, x, n);
    return scale(
        e, flt_add(e, flt_number(x, 1.0), flt_mul(e, r, flt_polynomial(e, r, c, FLT_COUNT(c)))), k);
}

/* e^x - 1 over 2^k, for x = k ln 2 + r, |r| <= ln 2 / 2. */
static LLVMValueRef exp_minus_1(const ll_math *e, LLVMValueRef x, LLVMValueRef *k)
{
    static const double c[] = {0.5,
                               0.1666666666666667,
                               0.04166666666666667,
                               0.008333333333326138,
                               0.0013888888888883583,
                               0.00019841269874810167,
                               2.480158732598705e-05,
                               2.7557255413474113e-06,
                               2.7557273174389205e-07,
                               2.5105211482358982e-08,
                               2.0914859949885235e-09};
    LLVMValueRef n = nearest(e, times(e, x, 0x1.71547652b82fep+0), k);
    LLVMValueRef high = flt_sub(e, x, times(e, n, 0x1.62e42p-1));
    LLVMValueRef low = times(e, n, 0x1.fdf473de6af28p-22), r = flt_sub(e, high, low);
    LLVMValueRef tail = flt_mul(e, flt_mul(e, r, r), flt_polynomial(e, r, c, FLT_COUNT(c)));

    low = flt_sub(e, flt_sub(e, high, r), low); /* what r lost; its share of e^r is 1 + r */
    return flt_add(e, r, flt_add(e, tail, flt_add(e, low, flt_mul(e, low, r))));
}

static LLVMValueRef exp_f64(const ll_math *e, LLVMValueRef x)
{
    LLVMValueRef k, p = exp_minus_1(e, flt_clamp(e, x, -750.0, 712.0), &k);

    return scale(e, flt_add(e, flt_number(x, 1.0), p), k);
}

/* ---- logarithms ------------------------------------------------------------------------------ */

/* x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); for x > 0, finite. */
static LLVMValueRef split(const ll_math *e, LLVMValueRef x, LLVMValueRef *k)
{
    const int64_t root = 0x3fe6a09e667f3bcd; /* sqrt(1/2) */
    LLVMBuilderRef b = e->cx->b;
    LLVMTypeRef ints = ints_like(e, x);

    LLVMValueRef tiny = compare(e, LLVMRealOLT, x, 0x1p-1022);
    x = ll_select(e->cx, tiny, times(e, x, 0x1p54), x);
    LLVMValueRef u = LLVMBuildSub(b, bits_of(e, x), ll_int(ints, root), "");
    LLVMValueRef n = LLVMBuildAShr(b, u, ll_int(ints, 52), "");
    u = LLVMBuildAnd(b, u, ll_int(ints, (int64_t)(UINT64_MAX >> 12)), "");
    u = LLVMBuildAdd(b, u, ll_int(ints, root), "");
    n = LLVMBuildSub(b, n, ll_select(e->cx, tiny, ll_int(ints, 54), ll_int(ints, 0)), "");
    n = LLVMBuildAdd(b, n, bits_of(e, flt_number(x, ROUNDER)), "");
    *k = flt_sub(e, LLVMBuildBitCast(b, n, LLVMTypeOf(x), ""), flt_number(x, ROUNDER));
    return flt_sub(e, LLVMBuildBitCast(b, u, LLVMTypeOf(x), ""), flt_number(x, 1.0));
}

/* With s = f / (2 + f): ln(1 + f) = f - (half - s (half + R)), half = f^2 / 2. Gives s (half + R).
 */
static LLVMValueRef log_tail(const ll_math *e, LLVMValueRef f, LLVMValueRef half)
{
    static const double c[] = {0.666666666666667,   0.39999999999899505, 0.2857142862597594,
                               0.22222211134720402, 0.18182889130702548, 0.15331721419704802,
                               0.1461645192043432};
    LLVMValueRef s = LLVMBuildFDiv(e->cx->b, f, flt_add(e, f, flt_number(f, 2.0)), "");
    LLVMValueRef z = flt_mul(e, s, s);

    return flt_mul(e, s, flt_add(e, half, flt_mul(e, z, flt_polynomial(e, z, c, FLT_COUNT(c)))));
}

static LLVMValueRef natural(const ll_math *e, LLVMValueRef f, LLVMValueRef k)
{
    LLVMValueRef half = times(e, flt_mul(e, f, f), 0.5), tail = log_tail(e, f, half);

    tail = flt_add(e, tail, times(e, k, 0x1.fdf473de6af28p-22));
    tail = flt_sub(e, flt_sub(e, half, tail), f);
    return flt_sub(e, times(e, k, 0x1.62e42p-1), tail);
}

/* The logarithm in two parts, each times 1 / ln 2 in two parts, and the rounding of k + y kept. */
static LLVMValueRef binary(const ll_math *e, LLVMValueRef f, LLVMValueRef k)
{
    const double high = 0x1.71547p+0, low = 0x1.94ae0bf85ddf4p-22;
    LLVMBuilderRef b = e->cx->b;
    LLVMTypeRef ints = ints_like(e, f);
    LLVMValueRef half = times(e, flt_mul(e, f, f), 0.5), tail = log_tail(e, f, half);
    LLVMValueRef upper = bits_of(e, flt_sub(e, f, half));

    upper = LLVMBuildAnd(b, upper, ll_int(ints, (int64_t)(UINT64_MAX << 32)), "");
    upper = LLVMBuildBitCast(b, upper, LLVMTypeOf(f), "");
    LLVMValueRef lower = flt_add(e, flt_sub(e, flt_sub(e, f, upper), half), tail);
    LLVMValueRef y = times(e, upper, high);
    lower = flt_add(e, times(e, flt_add(e, lower, upper), low), times(e, lower, high));
    LLVMValueRef sum = flt_add(e, k, y);
    return flt_add(e, sum, flt_add(e, lower, flt_add(e, flt_sub(e, k, sum), y)));
}

static LLVMValueRef log_f64(const ll_math *e, LLVMValueRef x, bool base2)
{
    LLVMValueRef k, f = split(e, x, &k), v = base2 ? binary(e, f, k) : natural(e, f, k);

    v = ll_select(e->cx, compare(e, LLVMRealUEQ, x, (double)INFINITY), x, v); /* and NaN */
    v = ll_select(e->cx, compare(e, LLVMRealOLT, x, 0.0), flt_number(x, (double)NAN), v);
    return ll_select(e->cx, compare(e, LLVMRealOEQ, x, 0.0), flt_number(x, -(double)INFINITY), v);
}

/* ---- tanh, erf ------------------------------------------------------------------------------- */

/* x + y and what rounding loses of it. */
static LLVMValueRef exact_sum(const ll_math *e, LLVMValueRef x, LLVMValueRef y, LLVMValueRef *lost)
{
    LLVMValueRef s = flt_add(e, x, y), back = flt_sub(e, s, x);

    *lost = flt_add(e, flt_sub(e, x, flt_sub(e, s, back)), flt_sub(e, y, back));
    return s;
}

/* (e^2x - 1) / (e^2x + 1), with e^2x = a + a p, a = 2^k: both sums keep what is small. */
static LLVMValueRef tanh_f64(const ll_math *e, LLVMValueRef x)
{
    LLVMValueRef size = flt_clamp(e, ll_unary(e->cx, "llvm.fabs", x), 0.0, 22.0), k;
    LLVMValueRef p = exp_minus_1(e, flt_add(e, size, size), &k);
    LLVMValueRef a = power_of_two(e, k, LLVMTypeOf(x)), one = flt_number(x, 1.0);

    LLVMValueRef lost[2], above, below;
    p = flt_mul(e, a, p);
    above = exact_sum(e, flt_sub(e, a, one), p, &lost[0]);
    below = exact_sum(e, flt_add(e, a, one), p, &lost[1]);
    LLVMValueRef v = LLVMBuildFDiv(e->cx->b, above, below, "");
    lost[0] = flt_sub(e, lost[0], flt_mul(e, v, lost[1]));
    v = flt_add(e, v, LLVMBuildFDiv(e->cx->b, lost[0], below, ""));
    return ll_binary(e->cx, "llvm.copysign", v, x);
}

/* Below 1 a series; then 1 - exp(-x^2) Q((x - 3) / (x + 3)), which is 1 from 6 on. */
static LLVMValueRef erf_f64(const ll_math *e, LLVMValueRef x)
{
    static const double c[] = {
        1.1283791670955126,      -0.37612638903183754,    0.1128379167095512,
        -0.02686617064512984,    0.0052239776254232985,   -0.000854832702193483,
        0.00012055332902888736,  -1.4925647567519332e-05, 1.6462045441468418e-06,
        -1.6364642158167616e-07, 1.4792401209404813e-08,  -1.216456005728345e-09,
        8.709045129053106e-11,   -4.230945824295338e-12};
    static const double q[] = {
        0.17900115118138996,     -0.3262335600430372,    0.24560380171233093,
        -0.15011593650077582,    0.07166583719797331,    -0.024392499318790735,
        0.004269136333077869,    0.0007077464435611972,  -0.0005970619531815352,
        4.525520140579536e-05,   6.405657794051666e-05,  -1.2859347351455289e-05,
        -7.977696579644072e-06,  2.1124428949403864e-06, 1.2459620847174093e-06,
        -2.6915157592850126e-07, -2.0355575642200858e-07};
    LLVMValueRef size = flt_clamp(e, ll_unary(e->cx, "llvm.fabs", x), 0.0, 6.0);
    LLVMValueRef square = flt_mul(e, size, size), three = flt_number(x, 3.0);
    LLVMValueRef u = LLVMBuildFDiv(e->cx->b, flt_sub(e, size, three), flt_add(e, size, three), "");
    LLVMValueRef rest = flt_mul(e, exp_f64(e, LLVMBuildFNeg(e->cx->b, square, "")),
                                flt_polynomial(e, u, q, FLT_COUNT(q)));

    LLVMValueRef small = flt_mul(e, x, flt_polynomial(e, square, c, FLT_COUNT(c)));
    LLVMValueRef large = ll_binary(e->cx, "llvm.copysign", flt_sub(e, flt_number(x, 1.0), rest), x);
    return ll_select(e->cx, compare(e, LLVMRealOLT, size, 1.0), small, large);
}

/* ---- sin, cos -------------------------------------------------------------------------------- */

/* x - n pi/2 for the nearest n, in two parts. pi/2 in four; those before the last, times n, exact.
 */
static LLVMValueRef reduce_angle(const ll_math *e, LLVMValueRef x, LLVMValueRef *n,
                                 LLVMValueRef *low)
{
    static const double part[] = {0x1.921fb54p+0, 0x1.10b461p-30, 0x1.a62633p-58,
                                  0x1.45c06e0e68948p-86};
    LLVMValueRef k = nearest(e, times(e, x, 0x1.45f306dc9c883p-1), n), lost[2];
    LLVMValueRef minus = LLVMBuildFNeg(e->cx->b, k, "");

    x = flt_add(e, x, times(e, minus, part[0]));
    x = exact_sum(e, x, times(e, minus, part[1]), &lost[0]);
    x = exact_sum(e, x, times(e, minus, part[2]), &lost[1]);
    *low = flt_add(e, flt_add(e, lost[0], lost[1]), times(e, minus, part[3]));
    LLVMValueRef r = flt_add(e, x, *low);
    *low = flt_add(e, flt_sub(e, x, r), *low);
    return r;
}

static LLVMValueRef sine_of(const ll_math *e, LLVMValueRef r, LLVMValueRef low, LLVMValueRef z)
{
    static const double c[] = {-0.16666666666666666,    0.008333333333333331,
                               -0.00019841269841265065, 2.7557319219338875e-06,
                               -2.505210623234594e-08,  1.6058531602876342e-10,
                               -7.586696168072269e-13};
    LLVMValueRef tail = flt_mul(e, flt_mul(e, r, z), flt_polynomial(e, z, c, FLT_COUNT(c)));

    low = flt_mul(e, low, flt_sub(e, flt_number(r, 1.0), times(e, z, 0.5)));
    return flt_add(e, r, flt_add(e, tail, low));
}

static LLVMValueRef cosine_of(const ll_math *e, LLVMValueRef r, LLVMValueRef low, LLVMValueRef z)
{
    static const double c[] = {0.041666666666666664,   -0.0013888888888888887,
                               2.4801587301584645e-05, -2.755731922140266e-07,
                               2.0876755791023917e-09, -1.1470460878653237e-11,
                               4.745871374063684e-14};
    LLVMValueRef half = times(e, z, 0.5), one = flt_number(r, 1.0), w = flt_sub(e, one, half);
    LLVMValueRef tail = flt_mul(e, flt_mul(e, z, z), flt_polynomial(e, z, c, FLT_COUNT(c)));

    tail = flt_sub(e, tail, flt_mul(e, r, low));
    return flt_add(e, w, flt_add(e, flt_sub(e, flt_sub(e, one, w), half), tail));
}

static LLVMValueRef wave_f64(const ll_math *e, LLVMValueRef x, bool is_cos)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMValueRef n, low, r = reduce_angle(e, x, &n, &low), z = flt_mul(e, r, r);
    LLVMValueRef size = ll_unary(e->cx, "llvm.fabs", x);

    if (is_cos)
        n = LLVMBuildAdd(b, n, ll_int(LLVMTypeOf(n), 1), "");
    LLVMValueRef v =
        ll_select(e->cx, flt_has_bit(e, n, 1), cosine_of(e, r, low, z), sine_of(e, r, low, z));
    v = ll_select(e->cx, flt_has_bit(e, n, 2), LLVMBuildFNeg(b, v, ""), v);
    if (!is_cos) /* the sign of 0 */
        v = ll_select(e->cx, compare(e, LLVMRealOEQ, x, 0.0), x, v);
    return ll_select(e->cx, compare(e, LLVMRealOLE, size, ANGLE_MAX), v,
                     flt_number(x, (double)NAN));
}

const flt_functions flt_of_f64 = {exp2_f64, exp_f64, tanh_f64, erf_f64, log_f64, wave_f64};
