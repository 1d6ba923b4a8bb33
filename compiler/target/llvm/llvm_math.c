/* exp2, exp, log2, log, tanh, erf, sin, cos of f32 as inline code, for scalars and vectors alike.
 *
 * Coefficients: minimax in relative error, computed with a Remez exchange in double and rounded.
 * Accuracy over all of f32 (tests/unit/check_cpu_math.c holds them to it): docs/CPU.md. */
#include "compiler/base/check.h"
#include "compiler/ir/ireval.h"
#include "compiler/target/llvm/llvm_float.h"
#include <math.h>

/* 2^n for integers n in [-126, 127]; 0 for -127, infinity for 128. */
static LLVMValueRef power_of_two(const ll_math *e, LLVMValueRef n)
{
    LLVMTypeRef type = LLVMTypeOf(n);
    LLVMValueRef biased = LLVMBuildAdd(e->cx->b, n, ll_int(type, 127), "");
    LLVMValueRef bits = LLVMBuildShl(e->cx->b, biased, ll_int(type, 23), "");

    return LLVMBuildBitCast(e->cx->b, bits, ll_lanes(e->cx->f32, ll_lanes_of(type)), "");
}

/* The same for such an n held as a float; of a NaN anything. */
static LLVMValueRef power_of_whole(const ll_math *e, LLVMValueRef n)
{
    LLVMTypeRef type = ll_lanes(e->cx->i32, ll_lanes_of(LLVMTypeOf(n)));
    LLVMValueRef k = LLVMBuildFPToSI(e->cx->b, n, type, "");

    return power_of_two(e, LLVMBuildFreeze(e->cx->b, k, ""));
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
    return flt_mul(e, flt_mul(e, p, power_of_two(e, half)), power_of_two(e, rest));
}

/* y where x >= least or NaN, else 0: what would be below the normal range, where Intel's processors
 * take a hundred cycles and more for a result, or for a product with it. */
static LLVMValueRef normal_from(const ll_math *e, LLVMValueRef x, double least, LLVMValueRef y)
{
    LLVMValueRef inside = LLVMBuildFCmp(e->cx->b, LLVMRealUGE, x, flt_number(x, least), "");

    return ll_select(e->cx, inside, y, flt_number(x, 0.0));
}

/* x - floor(x) in [0, 1], then 2^that, then times 2^floor(x); below -126 it is 0. */
static LLVMValueRef exp2_f32(const ll_math *e, LLVMValueRef x)
{
    static const double c[] = {1.0,           0.693147063,  0.240229309,   0.0554852821,
                               0.00967545155, 0.0012467847, 0.000216129149};

    if (e->fraction) {
        LLVMValueRef p = flt_polynomial(e, e->fraction(e->cx, x), c, FLT_COUNT(c));
        return normal_from(e, x, -126.0, scale(e, p, x));
    }
    x = flt_clamp(e, x, -127.0, 128.0);
    LLVMValueRef n = ll_unary(e->cx, "llvm.floor", x);
    LLVMValueRef p = flt_polynomial(e, flt_sub(e, x, n), c, FLT_COUNT(c));
    return flt_mul(e, p, power_of_whole(e, n));
}

/* x = n ln 2 + r, |r| <= ln 2 / 2; ln 2 in two parts, the first times n exact. */
static LLVMValueRef exp_everywhere(const ll_math *e, LLVMValueRef x)
{
    static const double c[] = {1.0,          1.0,           0.5,           0.166666657,
                               0.0416662917, 0.00833349861, 0.00139448687, 0.000197901347};

    x = flt_clamp(e, x, -105.0, 89.0);
    LLVMValueRef n = flt_mul(e, x, flt_number(x, 1.44269504088896341));
    n = ll_unary(e->cx, "llvm.floor", flt_add(e, n, flt_number(x, 0.5)));
    LLVMValueRef r = flt_sub(e, x, flt_mul(e, n, flt_number(x, 0x1.62ep-1)));
    r = flt_sub(e, r, flt_mul(e, n, flt_number(x, 0x1.0bfbe8e7bcd5ep-15)));
    return scale(e, flt_polynomial(e, r, c, FLT_COUNT(c)), n);
}

/* From the first x on whose power is above 2^-126; below it is 0. */
static LLVMValueRef exp_f32(const ll_math *e, LLVMValueRef x)
{
    return normal_from(e, x, -0x1.5d589ep6, exp_everywhere(e, x));
}

/* ---- logarithms ------------------------------------------------------------------------------ */

/* x = 2^k (1 + r), sqrt(1/2) <= 1 + r < sqrt(2); for x > 0, finite. k is a float. */
static LLVMValueRef split(const ll_math *e, LLVMValueRef x, LLVMValueRef *k)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMTypeRef type = ll_lanes(e->cx->i32, ll_lanes_of(LLVMTypeOf(x)));
    const int64_t sqrt_half = 0x3f3504f3;

    LLVMValueRef tiny = LLVMBuildFCmp(b, LLVMRealOLT, x, flt_number(x, 0x1p-126), "");
    x = ll_select(e->cx, tiny, flt_mul(e, x, flt_number(x, 0x1p23)), x);
    LLVMValueRef u = LLVMBuildBitCast(b, x, type, "");
    u = LLVMBuildSub(b, u, ll_int(type, sqrt_half), "");
    LLVMValueRef n = LLVMBuildAShr(b, u, ll_int(type, 23), "");
    u = LLVMBuildAnd(b, u, ll_int(type, 0x7fffff), "");
    u = LLVMBuildAdd(b, u, ll_int(type, sqrt_half), "");
    n = LLVMBuildSub(b, n, ll_select(e->cx, tiny, ll_int(type, 23), ll_int(type, 0)), "");
    *k = LLVMBuildSIToFP(b, n, LLVMTypeOf(x), "");
    return flt_sub(e, LLVMBuildBitCast(b, u, LLVMTypeOf(x), ""), flt_number(x, 1.0));
}

/* ln(1 + r) - r */
static LLVMValueRef log_tail(const ll_math *e, LLVMValueRef r)
{
    static const double c[] = {-0.5,        0.333333313,  -0.250008196, 0.200012267,  -0.166233569,
                               0.142017573, -0.131601825, 0.12761578,   -0.0763449967};

    return flt_mul(e, flt_mul(e, r, r), flt_polynomial(e, r, c, FLT_COUNT(c)));
}

/* Without fma, where the corrections below would not be exact: in double. */
static LLVMValueRef log_in_double(const ll_math *e, LLVMValueRef r, LLVMValueRef k, bool binary)
{
    LLVMTypeRef narrow = LLVMTypeOf(r), wide = ll_lanes(e->cx->f64, ll_lanes_of(narrow));

    r = LLVMBuildFPExt(e->cx->b, r, wide, "");
    k = LLVMBuildFPExt(e->cx->b, k, wide, "");
    LLVMValueRef v = flt_add(e, r, log_tail(e, r));
    if (binary)
        v = flt_add(e, k, flt_mul(e, v, flt_number(v, 1.44269504088896341)));
    else
        v = flt_add(e, flt_mul(e, k, flt_number(v, 0.693147180559945309)), v);
    return LLVMBuildFPTrunc(e->cx->b, v, narrow, "");
}

static LLVMValueRef natural(const ll_math *e, LLVMValueRef r, LLVMValueRef k)
{
    LLVMValueRef low = ll_fma(e->cx, k, flt_number(r, 0x1.0bfbe8e7bcd5ep-15), log_tail(e, r));

    return ll_fma(e->cx, k, flt_number(r, 0x1.62ep-1), flt_add(e, r, low));
}

/* k + (r + tail) log2(e), with the rounding errors of k + y and of y = r log2(e) kept. */
static LLVMValueRef binary(const ll_math *e, LLVMValueRef r, LLVMValueRef k)
{
    const double high = 0x1.715476p+0, low = 0x1.4ae0bf85ddf44p-26;
    LLVMValueRef y = flt_mul(e, r, flt_number(r, high)), lost, sum;

    lost = ll_fma(e->cx, r, flt_number(r, high), LLVMBuildFNeg(e->cx->b, y, ""));
    lost = ll_fma(e->cx, r, flt_number(r, low), lost);
    lost = ll_fma(e->cx, log_tail(e, r), flt_number(r, high), lost);
    sum = flt_add(e, k, y);
    lost = flt_add(e, lost, flt_sub(e, y, flt_sub(e, sum, k)));
    return flt_add(e, sum, lost);
}

static LLVMValueRef log_f32(const ll_math *e, LLVMValueRef x, bool base2)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMValueRef k, r = split(e, x, &k), v;

    if (!e->fma)
        v = log_in_double(e, r, k, base2);
    else
        v = base2 ? binary(e, r, k) : natural(e, r, k);
    LLVMValueRef infinite = LLVMBuildFCmp(b, LLVMRealUEQ, x, flt_number(x, (double)INFINITY), "");
    LLVMValueRef negative = LLVMBuildFCmp(b, LLVMRealOLT, x, flt_number(x, 0.0), "");
    LLVMValueRef zero = LLVMBuildFCmp(b, LLVMRealOEQ, x, flt_number(x, 0.0), "");
    v = ll_select(e->cx, infinite, x, v); /* and NaN */
    v = ll_select(e->cx, negative, flt_number(x, (double)NAN), v);
    return ll_select(e->cx, zero, flt_number(x, -(double)INFINITY), v);
}

/* ---- tanh, erf ------------------------------------------------------------------------------- */

/* x + x P(x^2) */
static LLVMValueRef odd_series(const ll_math *e, LLVMValueRef x, const double *c, int n)
{
    return flt_fma(e, x, flt_polynomial(e, flt_mul(e, x, x), c, n), x);
}

/* small where |x| < bound, else large with x's sign; NaN takes small, which keeps it. */
static LLVMValueRef by_size(const ll_math *e, LLVMValueRef x, double bound, LLVMValueRef small,
                            LLVMValueRef large)
{
    LLVMValueRef size = ll_unary(e->cx, "llvm.fabs", x);
    LLVMValueRef beyond = LLVMBuildFCmp(e->cx->b, LLVMRealOGE, size, flt_number(x, bound), "");

    return ll_select(e->cx, beyond, ll_binary(e->cx, "llvm.copysign", large, x), small);
}

/* 1 - 2 / (e^2x + 1), which near 0 would lose what x has to say; beyond, it forgives what e^2x is
 * off by: 2^(x 2 log2 e) will do. */
static LLVMValueRef tanh_by_size(const ll_math *e, LLVMValueRef x)
{
    static const double c[] = {-0.333333308027, 0.133332060086,    -0.0539467630757,
                               0.021700703272,  -0.00817739832516, 0.00214296190209};
    LLVMValueRef size = ll_unary(e->cx, "llvm.fabs", x);
    LLVMValueRef t = exp2_f32(e, flt_mul(e, size, flt_number(x, 2.88539008177792681)));
    LLVMValueRef square = flt_mul(e, x, x),
                 rest = flt_mul(e, square, flt_polynomial(e, square, c, FLT_COUNT(c)));

    t = LLVMBuildFDiv(e->cx->b, flt_number(x, 2.0), flt_add(e, t, flt_number(x, 1.0)), "");
    return by_size(e, x, 0.625, flt_fma(e, x, rest, x), flt_sub(e, flt_number(x, 1.0), t));
}

/* s / (s + 2) for s >= 0, rounded as if s + 2 were exact: s - q s - 2 q is what a quotient q that
 * is nearly right leaves. */
static LLVMValueRef over_itself_and_2(const ll_math *e, LLVMValueRef s)
{
    LLVMValueRef sum = flt_add(e, s, flt_number(s, 2.0));
    LLVMValueRef inverse = LLVMBuildFDiv(e->cx->b, flt_number(s, 1.0), sum, "");
    LLVMValueRef q = flt_mul(e, s, inverse), minus_q = LLVMBuildFNeg(e->cx->b, q, "");
    LLVMValueRef rest = ll_fma(e->cx, q, flt_number(s, -2.0), s);
    return ll_fma(e->cx, ll_fma(e->cx, minus_q, s, rest), inverse, q);
}

/* With a = n / 2 <= |x| < a + 1/2, k = tanh a and t = tanh(|x| - a), a polynomial:
 * k + t (1 - k^2) / (1 + k t). Nothing cancels, since t >= 0. From n = 19 on it is 1. */
static LLVMValueRef tanh_by_halves(const ll_math *e, LLVMValueRef x)
{
    static const float k[32] = {
        0.0F,         0.462117165F, 0.761594176F, 0.905148268F, 0.964027584F, 0.986614287F,
        0.995054781F, 0.998177886F, 0.999329329F, 0.999753237F, 0.999909222F, 0.999966621F,
        0.999987721F, 0.99999547F,  0.999998331F, 0.999999404F, 0.999999762F, 0.99999994F,
        0.99999994F,  1.0F,         1.0F,         1.0F,         1.0F,         1.0F,
        1.0F,         1.0F,         1.0F,         1.0F,         1.0F,         1.0F,
        1.0F,         1.0F,
    };
    static const float one_less_square[32] = {1.0F,
                                              0.786447704F,
                                              0.419974327F,
                                              0.180706635F,
                                              0.0706508234F,
                                              0.0265922267F,
                                              0.00986603741F,
                                              0.00364088477F,
                                              0.00134095072F,
                                              0.000493517378F,
                                              0.000181583237F,
                                              6.68045686e-05F,
                                              2.45765477e-05F,
                                              9.04127683e-06F,
                                              3.32610944e-06F,
                                              1.22360848e-06F,
                                              4.5014059e-07F,
                                              1.65597498e-07F,
                                              6.09199162e-08F};
    static const double c[] = {-0.333331439, 0.13325879, -0.0530454943, 0.0172414915};
    LLVMValueRef size = ll_unary(e->cx, "llvm.fabs", x), one = flt_number(x, 1.0);
    LLVMValueRef far = LLVMBuildFCmp(e->cx->b, LLVMRealOGT, size, flt_number(x, 15.0), "");
    size = ll_select(e->cx, far, flt_number(x, 15.0), size);
    LLVMValueRef a = e->halves(e->cx, size), r = flt_sub(e, size, a), square = flt_mul(e, r, r);
    LLVMValueRef t =
        flt_fma(e, flt_mul(e, r, square), flt_polynomial(e, square, c, FLT_COUNT(c)), r);
    LLVMValueRef tanh_a = e->by_half(e->cx, a, k);
    LLVMValueRef q = flt_mul(e, e->by_half(e->cx, a, one_less_square), t);
    q = LLVMBuildFDiv(e->cx->b, q, flt_fma(e, tanh_a, t, one), "");
    return ll_binary(e->cx, "llvm.copysign", flt_add(e, tanh_a, q), x);
}

/* s / (s + 2), s = e^2|x| - 1 = 2^n (e^r - 1) + 2^n - 1, 2 |x| = n ln 2 + r, 0 <= r < ln 2; so x
 * near 0, where n is 0, loses nothing. From 10 on the result is 1. */
static LLVMValueRef tanh_f32(const ll_math *e, LLVMValueRef x)
{
    static const double c[] = {0.500000894, 0.16664736, 0.0417961553, 0.00796047319, 0.00186159974};
    LLVMValueRef size = ll_unary(e->cx, "llvm.fabs", x), power;

    if (e->by_half)
        return tanh_by_halves(e, x);
    if (!e->fma)
        return tanh_by_size(e, x);
    LLVMValueRef far = LLVMBuildFCmp(e->cx->b, LLVMRealOGT, size, flt_number(x, 10.0), "");
    size = ll_select(e->cx, far, flt_number(x, 10.0), size);
    LLVMValueRef t = flt_mul(e, size, flt_number(x, 2.88539008177792681));
    LLVMValueRef n = ll_unary(e->cx, "llvm.floor", t);
    LLVMValueRef r = ll_fma(e->cx, n, flt_number(x, -0.693147180559945309), flt_add(e, size, size));
    if (e->scale)
        power = e->scale(e->cx, flt_number(x, 1.0), t);
    else
        power = power_of_whole(e, n);
    LLVMValueRef s = ll_fma(e->cx, flt_mul(e, r, r), flt_polynomial(e, r, c, FLT_COUNT(c)), r);
    s = ll_fma(e->cx, power, s, flt_sub(e, power, flt_number(x, 1.0)));
    return ll_binary(e->cx, "llvm.copysign", over_itself_and_2(e, s), x);
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
    LLVMValueRef size = flt_clamp(e, ll_unary(e->cx, "llvm.fabs", x), 0.0, 4.0);
    LLVMValueRef t = exp_everywhere(e, flt_polynomial(e, size, q, FLT_COUNT(q)));

    return by_size(e, x, 0.9, odd_series(e, x, c, FLT_COUNT(c)), flt_sub(e, flt_number(x, 1.0), t));
}

/* ---- sin, cos -------------------------------------------------------------------------------- */

/* wide - n pi/2 for the nearest n; pi/2 in three parts, of which the first two times n are exact.
 */
static LLVMValueRef reduce_angle(const ll_math *e, LLVMValueRef wide, LLVMValueRef *n)
{
    static const double part[] = {0x1.921fb5p+0, 0x1.110b46p-26, 0x1.1a62633145c07p-54};

    *n = flt_mul(e, wide, flt_number(wide, 0x1.45f306dc9c883p-1));
    *n = ll_unary(e->cx, "llvm.floor", flt_add(e, *n, flt_number(wide, 0.5)));
    for (int i = 0; i < FLT_COUNT(part); i++)
        wide = flt_sub(e, wide, flt_mul(e, *n, flt_number(wide, part[i])));
    return wide;
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
    LLVMValueRef known = LLVMBuildFCmp(b, LLVMRealOLE, size, flt_number(x, ANGLE_MAX), "");
    LLVMValueRef r = reduce_angle(e, LLVMBuildFPExt(b, x, ll_lanes(e->cx->f64, lanes), ""), &n);
    LLVMValueRef square = flt_mul(e, r, r);
    LLVMValueRef sine = flt_add(
        e, r, flt_mul(e, flt_mul(e, r, square), flt_polynomial(e, square, s, FLT_COUNT(s))));
    LLVMValueRef cosine = flt_add(e, flt_number(r, 1.0),
                                  flt_mul(e, square, flt_polynomial(e, square, c, FLT_COUNT(c))));
    LLVMValueRef turn = LLVMBuildFreeze(b, LLVMBuildFPToSI(b, n, ints, ""), "");

    if (is_cos)
        turn = LLVMBuildAdd(b, turn, ll_int(ints, 1), "");
    LLVMValueRef v = ll_select(e->cx, flt_has_bit(e, turn, 1), cosine, sine);
    v = ll_select(e->cx, flt_has_bit(e, turn, 2), LLVMBuildFNeg(b, v, ""), v);
    return ll_select(e->cx, known, LLVMBuildFPTrunc(b, v, LLVMTypeOf(x), ""),
                     flt_number(x, (double)NAN));
}

static const flt_functions of_f32 = {exp2_f32, exp_f32, tanh_f32, erf_f32, log_f32, wave_f32};

LLVMValueRef ll_math_op(const ll_math *e, enum ir_opcode code, LLVMValueRef x)
{
    bool wide = ll_scalar_of(LLVMTypeOf(x)) == e->cx->f64;
    const flt_functions *f = wide ? &flt_of_f64 : &of_f32;

    switch ((int)code) {
    case OP_EXP2:
        return f->exp2(e, x);
    case OP_EXP:
        return f->exp(e, x);
    case OP_LOG2:
        return f->log(e, x, true);
    case OP_LOG:
        return f->log(e, x, false);
    case OP_TANH:
        return f->tanh(e, x);
    case OP_ERF:
        return f->erf(e, x);
    case OP_SIN:
        return f->wave(e, x, false);
    case OP_COS:
        return f->wave(e, x, true);
    default:
        ICHECK(0, "a function of one float");
        return NULL;
    }
}
