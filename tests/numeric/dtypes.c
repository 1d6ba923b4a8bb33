/* Each dtype: its operators, casts between all pairs, sums and dots, against plain C that computes
 * in 128 bits or in double and shares nothing with the compiler. */
#include "tests/support/numeric_case.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *spec, *target;
} device[] = {
    {"interp", NULL},         {"cpu", NULL}, {"cpu:1", "cpu-avx512"}, {"cpu:1", "cpu-avx2"},
    {"cpu:1", "cpu-generic"},
};
enum { DEVICES = sizeof device / sizeof *device };

__extension__ typedef __int128 wide;

/* ---- elements ---- */

typedef struct kind {
    const char *name;
    uint8_t code;
    int bits;
    bool is_float, is_signed;
    int mantissa, least_exponent; /* floats */
} kind;

static const kind kinds[] = {
    {"i8", kDLInt, 8, false, true, 0, 0},        {"i16", kDLInt, 16, false, true, 0, 0},
    {"i32", kDLInt, 32, false, true, 0, 0},      {"i64", kDLInt, 64, false, true, 0, 0},
    {"u8", kDLUInt, 8, false, false, 0, 0},      {"u16", kDLUInt, 16, false, false, 0, 0},
    {"u32", kDLUInt, 32, false, false, 0, 0},    {"u64", kDLUInt, 64, false, false, 0, 0},
    {"f16", kDLFloat, 16, true, true, 10, -14},  {"bf16", kDLBfloat, 16, true, true, 7, -126},
    {"f32", kDLFloat, 32, true, true, 23, -126}, {"f64", kDLFloat, 64, true, true, 52, -1022},
};
enum { KINDS = sizeof kinds / sizeof *kinds, FIRST_FLOAT = 8, SIXTEEN_BITS = 10 };

typedef union number {
    wide i;
    double f;
} number;

static wide wrap(const kind *k, wide v)
{
    wide modulus = (wide)1 << k->bits, low = v & (modulus - 1);

    return k->is_signed && low >= modulus / 2 ? low - modulus : low;
}

/* To nearest, ties to even, by adding in units of the last place. */
static double rounded(const kind *k, double x)
{
    if (k->bits == 64 || x == 0.0 || !isfinite(x))
        return x;
    int exponent = ilogb(x) < k->least_exponent ? k->least_exponent : ilogb(x);
    double unit = ldexp(1.0, exponent - k->mantissa), y = nearbyint(x / unit) * unit;
    return fabs(y) >= ldexp(1.0, 1 - k->least_exponent + 1) ? copysign((double)INFINITY, x)
                                                            : copysign(y, x);
}

/* The result of an operation: 16-bit floats are computed in f32. */
static double result(const kind *k, double x)
{
    return k->bits == 16 ? rounded(k, (double)(float)x) : rounded(k, x);
}

static uint64_t half_bits(const kind *k, double x)
{
    int bias = 1 - k->least_exponent;
    uint64_t sign = signbit(x) ? 0x8000 : 0;

    x = fabs(x);
    if (isnan(x))
        return sign | (uint64_t)(2 * bias + 1) << k->mantissa | 1u << (k->mantissa - 1);
    if (isinf(x))
        return sign | (uint64_t)(2 * bias + 1) << k->mantissa;
    int exponent = x == 0.0 || ilogb(x) < k->least_exponent ? k->least_exponent : ilogb(x);
    uint64_t units = (uint64_t)ldexp(x, k->mantissa - exponent); /* hidden bit included */
    return sign | (((uint64_t)(exponent + bias - 1) << k->mantissa) + units);
}

static double half_value(const kind *k, uint64_t bits)
{
    int bias = 1 - k->least_exponent, exponent = (int)(bits >> k->mantissa) & (2 * bias + 1);
    double fraction = (double)(bits & ((1u << k->mantissa) - 1)), sign = bits >> 15 ? -1.0 : 1.0;

    if (exponent == 2 * bias + 1)
        return fraction > 0 ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, k->least_exponent - k->mantissa);
    return sign * ldexp(fraction + ldexp(1.0, k->mantissa), exponent - bias - k->mantissa);
}

static void put(const kind *k, void *base, int64_t i, number v)
{
    uint64_t bits = (uint64_t)v.i;
    float single = (float)v.f;

    if (k->is_float && k->bits == 16)
        bits = half_bits(k, v.f);
    else if (k->is_float && k->bits == 32)
        memcpy(&bits, &single, sizeof single);
    else if (k->is_float)
        memcpy(&bits, &v.f, sizeof v.f);
    memcpy((char *)base + i * (k->bits / 8), &bits, (size_t)k->bits / 8);
}

static number get(const kind *k, const void *base, int64_t i)
{
    uint64_t bits = 0;
    float single;
    double f;

    memcpy(&bits, (const char *)base + i * (k->bits / 8), (size_t)k->bits / 8);
    memcpy(&single, &bits, sizeof single);
    memcpy(&f, &bits, sizeof f);
    if (!k->is_float)
        return (number){.i = wrap(k, (wide)bits)};
    return (number){.f = k->bits == 16 ? half_value(k, bits) : k->bits == 32 ? (double)single : f};
}

static bool same(const kind *k, number got, number want, double ulps)
{
    if (!k->is_float)
        return got.i == want.i;
    if (isnan(want.f) || got.f == want.f)
        return isnan(want.f) == isnan(got.f);
    if (isnan(got.f) || ulps == 0.0)
        return false;
    if (isinf(got.f) || isinf(want.f)) /* the largest and what lies above it are neighbours */
        return fabs(isinf(got.f) ? want.f : got.f) >= ldexp(0.99, 1 - k->least_exponent + 1);
    int exponent =
        want.f == 0.0 || ilogb(want.f) < k->least_exponent ? k->least_exponent : ilogb(want.f);
    return fabs(got.f - want.f) <= ulps * ldexp(1.0, exponent - k->mantissa);
}

static void show(const kind *k, number v)
{
    if (k->is_float)
        num_say("%a", v.f);
    else
        num_say("%lld", (long long)v.i);
}

/* ---- awkward values ---- */

static int int_values(const kind *k, number *out)
{
    static const int64_t small[] = {0, 1, 2, 3, 5, 7, 8, 31, 33, 63, 100, 127, -1, -2, -7, -100};
    wide most = ((wide)1 << (k->bits - k->is_signed)) - 1, least = k->is_signed ? -most - 1 : 0;
    wide edge[] = {least, least + 1, most, most - 1, most / 2, most / 2 + 1, most / 3};
    int n = 0;

    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        out[n++].i = wrap(k, small[i]);
    for (size_t i = 0; i < sizeof edge / sizeof *edge; i++)
        out[n++].i = edge[i];
    return n;
}

static int float_values(const kind *k, number *out)
{
    double most = ldexp(2.0 - ldexp(1.0, -k->mantissa), -k->least_exponent + 1);
    double least = ldexp(1.0, k->least_exponent), tiny = ldexp(least, -k->mantissa);
    double one = 1.0 + ldexp(1.0, -k->mantissa);
    const double v[] = {0.0,
                        -0.0,
                        1.0,
                        -1.0,
                        0.5,
                        -2.5,
                        3.0,
                        7.25,
                        0.1,
                        -100.3,
                        1e3,
                        126.7,
                        255.0,
                        -127.6,
                        65503.0,
                        (double)INFINITY,
                        -(double)INFINITY,
                        (double)NAN,
                        most,
                        -most,
                        most / 2,
                        least,
                        tiny,
                        -3 * tiny,
                        least - tiny,
                        one,
                        1 / one,
                        3e9};
    int n = 0;

    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        out[n++].f = rounded(k, v[i]);
    return n;
}

enum { MOST_VALUES = 32, MOST_PAIRS = MOST_VALUES * MOST_VALUES };

static int values_of(const kind *k, number *out)
{
    return k->is_float ? float_values(k, out) : int_values(k, out);
}

/* ---- running a kernel ---- */

static DLTensor vector_of(const kind *k, void *at, int64_t *n)
{
    return (DLTensor){at, {kDLCPU, 0}, 1, {k->code, (uint8_t)k->bits, 1}, n, NULL, 0};
}

/* Launches a text; false, with a line, where the device has no such operation yet. */
static bool run(num_device *d, const char *source, const tw_arg *args, size_t n)
{
    tw_kernel *k = NULL;

    num_must(tw_kernel_load_text(d->cx, "dtypes", source, strlen(source), NULL, &k), source);
    tw_status st = tw_launch(k, d->dev, NULL, args, n);
    tw_kernel_destroy(k);
    if (st == TW_E_UNSUPPORTED && strcmp(d->label, "interp") != 0)
        return false;
    num_must(st, source);
    return true;
}

/* z = text(a, b) */
static bool run_pairs(num_device *d, const kind *k, const kind *to, const char *text, void *x,
                      void *y, void *z, int64_t n)
{
    DLTensor tx = vector_of(k, x, &n), ty = vector_of(k, y, &n), tz = vector_of(to, z, &n);
    char source[512];

    snprintf(source, sizeof source,
             "kernel op(x: %s[N], y: %s[N], out z: %s[N]) grid (cdiv(N, 64)) {\n"
             "    let at = program_id(0) * 64;\n"
             "    let a = load(x[at :+ 64]), b = load(y[at :+ 64]);\n"
             "    store(z[at :+ 64], %s);\n"
             "}\n",
             k->name, k->name, to->name, text);
    return run(d, source, (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("y", &ty), TW_TENSOR("z", &tz)},
               3);
}

/* ---- operators ---- */

typedef struct operation {
    const char *text;
    wide (*whole)(const kind *k, wide a, wide b); /* wrapped by the caller; NULL: floats only */
    double (*real)(double a, double b);           /* rounded by the caller; NULL: ints only */
    double ulps;                                  /* of floats */
} operation;

static wide iadd(const kind *k, wide a, wide b)
{
    (void)k;
    return a + b;
}
static wide isub(const kind *k, wide a, wide b)
{
    (void)k;
    return a - b;
}
static wide imul(const kind *k, wide a, wide b)
{
    return k->bits == 64 ? (wide)((uint64_t)a * (uint64_t)b) : a * b;
}
static wide idiv(const kind *k, wide a, wide b)
{
    (void)k;
    return b ? a / b : 0;
}
static wide irem(const kind *k, wide a, wide b)
{
    (void)k;
    return b ? a % b : a;
}
static wide iand(const kind *k, wide a, wide b)
{
    (void)k;
    return a & b;
}
static wide ior(const kind *k, wide a, wide b)
{
    (void)k;
    return a | b;
}
static wide ixor(const kind *k, wide a, wide b)
{
    (void)k;
    return a ^ b;
}
static wide inot(const kind *k, wide a, wide b)
{
    (void)k, (void)b;
    return ~a;
}
static wide ineg(const kind *k, wide a, wide b)
{
    (void)k, (void)b;
    return -a;
}
static wide iabs(const kind *k, wide a, wide b)
{
    (void)k, (void)b;
    return a < 0 ? -a : a;
}
static wide ishl(const kind *k, wide a, wide b)
{
    return (wide)((uint64_t)a << ((uint64_t)b & (uint64_t)(k->bits - 1)));
}
static wide ishr(const kind *k, wide a, wide b)
{
    return a >> ((uint64_t)b & (uint64_t)(k->bits - 1));
}
static wide imax(const kind *k, wide a, wide b)
{
    (void)k;
    return a > b ? a : b;
}
static wide imin(const kind *k, wide a, wide b)
{
    (void)k;
    return a < b ? a : b;
}
static wide iless(const kind *k, wide a, wide b)
{
    (void)k;
    return a < b;
}
static wide iupto(const kind *k, wide a, wide b)
{
    (void)k;
    return a <= b;
}
static wide iequal(const kind *k, wide a, wide b)
{
    (void)k;
    return a == b;
}
static wide ihalf(const kind *k, wide a, wide b)
{
    (void)k, (void)b;
    return a / 2 + (a % 2 > 0);
}

static double radd(double a, double b)
{
    return a + b;
}
static double rsub(double a, double b)
{
    return a - b;
}
static double rmul(double a, double b)
{
    return a * b;
}
static double rdiv(double a, double b)
{
    return a / b;
}
static double fneg(double a, double b)
{
    (void)b;
    return -a;
}
static double fmagnitude(double a, double b)
{
    (void)b;
    return fabs(a);
}
static double flarger(double a, double b)
{
    return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}
static double fsmaller(double a, double b)
{
    return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
}
static double fless(double a, double b)
{
    return a < b;
}
static double fupto(double a, double b)
{
    return a <= b;
}
static double fequal(double a, double b)
{
    return a == b;
}
static double fchosen(double a, double b)
{
    return a < b ? a : b;
}
static double froot(double a, double b)
{
    (void)b;
    return sqrt(a);
}
static double fdown(double a, double b)
{
    (void)b;
    return floor(a);
}
static double fup(double a, double b)
{
    (void)b;
    return ceil(a);
}
static double frsqrt(double a, double b)
{
    (void)b;
    return 1.0 / sqrt(a);
}
static double fexp2(double a, double b)
{
    (void)b;
    return exp2(a);
}
static double fexp(double a, double b)
{
    (void)b;
    return exp(a);
}
static double flog2(double a, double b)
{
    (void)b;
    return log2(a);
}
static double flog(double a, double b)
{
    (void)b;
    return log(a);
}

static const operation operations[] = {
    {"a + b", iadd, radd, 0},
    {"a - b", isub, rsub, 0},
    {"a * b", imul, rmul, 0},
    {"a / b", idiv, rdiv, 0},
    {"a % b", irem, NULL, 0},
    {"a & b", iand, NULL, 0},
    {"a | b", ior, NULL, 0},
    {"a ^ b", ixor, NULL, 0},
    {"~a", inot, NULL, 0},
    {"-a", ineg, fneg, 0},
    {"abs(a)", iabs, fmagnitude, 0},
    {"a << b", ishl, NULL, 0},
    {"a >> b", ishr, NULL, 0},
    {"maximum(a, b)", imax, flarger, 0},
    {"minimum(a, b)", imin, fsmaller, 0},
    {"where(a < b, a, b)", imin, fchosen, 0},
    {"cast(a < b, T)", iless, fless, 0},
    {"cast(a <= b, T)", iupto, fupto, 0},
    {"cast(a == b, T)", iequal, fequal, 0},
    {"cdiv(a, 2)", ihalf, NULL, 0},
    {"sqrt(a)", NULL, froot, 0},
    {"floor(a)", NULL, fdown, 0},
    {"ceil(a)", NULL, fup, 0},
    {"rsqrt(a)", NULL, frsqrt, 2},
    {"exp2(a)", NULL, fexp2, 2},
    {"exp(a)", NULL, fexp, 2},
    {"log2(a)", NULL, flog2, 2},
    {"log(a)", NULL, flog, 2},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static number wanted(const kind *k, const operation *op, number a, number b)
{
    if (k->is_float)
        return (number){.f = result(k, op->real(a.f, b.f))};
    return (number){.i = wrap(k, op->whole(k, a.i, b.i))};
}

/* The text with T, where it stands, replaced. */
static const char *text_for(const kind *k, const char *text, char out[64])
{
    const char *at = strstr(text, "T)");

    if (!at)
        return text;
    snprintf(out, 64, "%.*s%s)", (int)(at - text), text, k->name);
    return out;
}

static int check_operation(num_device *d, const kind *k, const operation *op)
{
    static char x[MOST_PAIRS * 8], y[MOST_PAIRS * 8], z[MOST_PAIRS * 8];
    number value[MOST_VALUES];
    int n = values_of(k, value), bad = 0;
    char text[64];

    for (int i = 0; i < n * n; i++) {
        put(k, x, i, value[i % n]);
        put(k, y, i, value[i / n]);
    }
    if (!run_pairs(d, k, k, text_for(k, op->text, text), x, y, z, n * n))
        return 0;
    for (int i = 0; i < n * n; i++) {
        number a = value[i % n], b = value[i / n], want = wanted(k, op, a, b), got = get(k, z, i);

        if (same(k, got, want, op->ulps) || bad++ >= 3)
            continue;
        num_say("%s: %s of %s, a = ", d->label, op->text, k->name);
        show(k, a), num_say(", b = "), show(k, b), num_say(": "), show(k, got), num_say(", not ");
        show(k, want), num_say("\n");
    }
    return bad;
}

START_TEST(operators)
{
    num_device d;
    int bad = 0;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < OPERATIONS; i++)
            if (kinds[k].is_float ? operations[i].real != NULL : operations[i].whole != NULL)
                bad += check_operation(&d, &kinds[k], &operations[i]);
    num_close(&d);
    ck_assert_int_eq(bad, 0);
}
END_TEST

/* fma of 16-bit floats: f32's, rounded again. */
START_TEST(fused)
{
    static char x[MOST_PAIRS * 8], y[MOST_PAIRS * 8], z[MOST_PAIRS * 8];
    number value[MOST_VALUES];
    num_device d;
    int bad = 0;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (const kind *k = kinds + FIRST_FLOAT; k < kinds + SIXTEEN_BITS; k++) {
        int n = float_values(k, value);
        float third = (float)rounded(k, 0.3);

        for (int i = 0; i < n * n; i++) {
            put(k, x, i, value[i % n]);
            put(k, y, i, value[i / n]);
        }
        if (!run_pairs(&d, k, k, "fma(a, b, 0.3)", x, y, z, n * n))
            continue;
        for (int i = 0; i < n * n; i++) {
            float f = fmaf((float)value[i % n].f, (float)value[i / n].f, third);

            bad += !same(k, get(k, z, i), (number){.f = rounded(k, (double)f)}, 0);
        }
    }
    num_close(&d);
    ck_assert_int_eq(bad, 0);
}
END_TEST

/* ---- casts ---- */

static number converted(const kind *from, const kind *to, number v)
{
    if (!to->is_float && !from->is_float)
        return (number){.i = wrap(to, v.i)};
    if (to->is_float) {
        double f = from->is_float ? v.f : (double)v.i;
        float single = from->is_float ? (float)v.f : (float)v.i;

        if (to->bits == 64)
            return (number){.f = f};
        return (number){.f = rounded(to, (double)single)};
    }
    wide most = ((wide)1 << (to->bits - to->is_signed)) - 1, least = to->is_signed ? -most - 1 : 0;
    if (isnan(v.f))
        return (number){.i = 0};
    if (v.f >= (double)most)
        return (number){.i = v.f >= ldexp(1.0, to->bits - to->is_signed) ? most : (wide)v.f};
    return (number){.i = v.f <= (double)least ? least : (wide)v.f};
}

static int check_cast(num_device *d, const kind *from, const kind *to)
{
    static char x[MOST_VALUES * 8], z[MOST_VALUES * 8];
    number value[MOST_VALUES];
    int n = values_of(from, value), bad = 0;
    char text[64];

    for (int i = 0; i < n; i++)
        put(from, x, i, value[i]);
    if (!run_pairs(d, from, to, text_for(to, "cast(a, T)", text), x, x, z, n))
        return 0;
    for (int i = 0; i < n; i++) {
        number want = converted(from, to, value[i]), got = get(to, z, i);

        if (same(to, got, want, 0) || bad++ >= 3)
            continue;
        num_say("%s: cast of %s ", d->label, from->name);
        show(from, value[i]), num_say(" to %s is ", to->name), show(to, got), num_say(", not ");
        show(to, want), num_say("\n");
    }
    return bad;
}

START_TEST(casts)
{
    num_device d;
    int bad = 0;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int from = 0; from < KINDS; from++)
        for (int to = 0; to < KINDS; to++)
            bad += check_cast(&d, &kinds[from], &kinds[to]);
    num_close(&d);
    ck_assert_int_eq(bad, 0);
}
END_TEST

/* ---- sums, extremes, dots ---- */

enum { ROWS = 13, COLUMNS = 37, INNER = 19 };

/* Small, so that every sum is exact in any order; the largest 3 of 8 bits. */
static number small_value(num_random *r, const kind *k)
{
    int64_t v = num_below(r, 7) - (k->is_signed ? 3 : 0);

    return k->is_float ? (number){.f = (double)v} : (number){.i = v};
}

static const kind *kind_named(const char *name)
{
    for (int i = 0; i < KINDS; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

static const kind *sum_kind(const kind *k)
{
    return k->is_float || k->bits >= 32 ? k : kind_named(k->is_signed ? "i32" : "u32");
}

static DLTensor matrix_of(const kind *k, void *at, int64_t *shape)
{
    return (DLTensor){at, {kDLCPU, 0}, 2, {k->code, (uint8_t)k->bits, 1}, shape, NULL, 0};
}

static number plus(const kind *k, number a, number b)
{
    return k->is_float ? (number){.f = a.f + b.f} : (number){.i = a.i + b.i};
}

static bool above(const kind *k, number a, number b)
{
    return k->is_float ? a.f > b.f : a.i > b.i;
}

static int check_reductions(num_device *d, num_random *r, const kind *k)
{
    char x[ROWS * COLUMNS * 8], s[COLUMNS * 8], t[ROWS * 8], m[ROWS * 8], source[512];
    int64_t shape[] = {ROWS, COLUMNS}, rows = ROWS, columns = COLUMNS;
    const kind *to = sum_kind(k);
    int bad = 0;

    for (int i = 0; i < ROWS * COLUMNS; i++)
        put(k, x, i, small_value(r, k));
    DLTensor tx = matrix_of(k, x, shape), ts = vector_of(to, s, &columns);
    DLTensor tt = vector_of(to, t, &rows), tm = vector_of(k, m, &rows);
    snprintf(
        source, sizeof source,
        "kernel reduce(x: %s[%d, %d], out s: %s[%d], out t: %s[%d], out m: %s[%d]) grid (1) {\n"
        "    let v = load(x[:, :]); store(s[:], sum(v, 0)); store(t[:], sum(v, 1));\n"
        "    store(m[:], max(v, 1) - min(v, 1)); }\n",
        k->name, ROWS, COLUMNS, to->name, COLUMNS, to->name, ROWS, k->name, ROWS);
    if (!run(d, source,
             (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("s", &ts), TW_TENSOR("t", &tt),
                        TW_TENSOR("m", &tm)},
             4))
        return 0;
    for (int j = 0; j < COLUMNS; j++) {
        number sum = get(k, x, j);
        for (int i = 1; i < ROWS; i++)
            sum = plus(k, sum, get(k, x, i * COLUMNS + j));
        bad += !same(to, get(to, s, j), sum, 0);
    }
    for (int i = 0; i < ROWS; i++) {
        number sum = get(k, x, i * COLUMNS), most = sum, least = sum;
        for (int j = 1; j < COLUMNS; j++) {
            number v = get(k, x, i * COLUMNS + j);
            sum = plus(k, sum, v);
            most = above(k, v, most) ? v : most;
            least = above(k, least, v) ? v : least;
        }
        number range =
            k->is_float ? (number){.f = most.f - least.f} : (number){.i = most.i - least.i};
        bad += !same(to, get(to, t, i), sum, 0) + !same(k, get(k, m, i), range, 0);
    }
    if (bad)
        num_say("%s: %d reductions of %s are wrong\n", d->label, bad, k->name);
    return bad;
}

START_TEST(reductions)
{
    num_random r = {41};
    num_device d;
    int bad = 0;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int i = 0; i < KINDS; i++)
        bad += check_reductions(&d, &r, &kinds[i]);
    num_close(&d);
    ck_assert_int_eq(bad, 0);
}
END_TEST

static const kind *dot_kind(const kind *k)
{
    if (k->is_float)
        return kind_named(k->bits == 64 ? "f64" : "f32");
    return k->bits < 32 || strcmp(k->name, "i32") == 0 ? kind_named("i32") : NULL;
}

/* b as it is, and transposed in memory. */
static int check_dot(num_device *d, num_random *r, const kind *k, bool turned)
{
    const kind *to = dot_kind(k);
    char x[ROWS * INNER * 8], y[INNER * COLUMNS * 8], z[ROWS * COLUMNS * 8], source[512];
    int64_t sx[] = {ROWS, INNER}, sy[] = {INNER, COLUMNS}, st[] = {COLUMNS, INNER};
    int64_t sz[] = {ROWS, COLUMNS};
    int bad = 0;

    for (int i = 0; i < ROWS * INNER; i++)
        put(k, x, i, small_value(r, k));
    for (int i = 0; i < INNER * COLUMNS; i++)
        put(k, y, i, small_value(r, k));
    DLTensor tx = matrix_of(k, x, sx), ty = matrix_of(k, y, turned ? st : sy);
    DLTensor tz = matrix_of(to, z, sz);
    snprintf(source, sizeof source,
             "kernel mm(x: %s[%d, %d], y: %s[%d, %d], out z: %s[%d, %d]) grid (1) {\n"
             "    store(z[:, :], dot(load(x[:, :]), %s(load(y[:, :])), 5)); }\n",
             k->name, ROWS, INNER, k->name, (int)ty.shape[0], (int)ty.shape[1], to->name, ROWS,
             COLUMNS, turned ? "trans" : "");
    if (!run(d, source, (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("y", &ty), TW_TENSOR("z", &tz)},
             3))
        return 0;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        number sum = k->is_float ? (number){.f = 5.0} : (number){.i = 5};
        for (int j = 0; j < INNER; j++) {
            int at = turned ? i % COLUMNS * INNER + j : j * COLUMNS + i % COLUMNS;
            number a = get(k, x, i / COLUMNS * INNER + j), b = get(k, y, at);
            sum = plus(k, sum, k->is_float ? (number){.f = a.f * b.f} : (number){.i = a.i * b.i});
        }
        bad += !same(to, get(to, z, i), sum, 0);
    }
    if (bad)
        num_say("%s: %d elements of a dot of %s are wrong\n", d->label, bad, k->name);
    return bad;
}

START_TEST(dots)
{
    num_random r = {43};
    num_device d;
    int bad = 0;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int i = 0; i < KINDS; i++)
        for (int turned = 0; turned < 2 && dot_kind(&kinds[i]); turned++)
            bad += check_dot(&d, &r, &kinds[i], turned);
    num_close(&d);
    ck_assert_int_eq(bad, 0);
}
END_TEST

/* Sums of 16-bit floats are kept in f32: 300 ones are 300, though bf16 counts to 256 alone. */
START_TEST(sums_of_narrow_floats_are_wide)
{
    static char x[2048 * 2], z[2];
    int64_t n = 2048, one = 1;
    num_device d;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (const kind *k = kinds + FIRST_FLOAT; k < kinds + SIXTEEN_BITS; k++) {
        DLTensor tx = vector_of(k, x, &n), tz = vector_of(k, z, &one);
        char source[256];

        for (int i = 0; i < n; i++)
            put(k, x, i, (number){.f = i < 300 ? 1.0 : 0.0});
        snprintf(
            source, sizeof source,
            "kernel s(x: %s[2048], out z: %s[1]) grid (1) { store(z[0], sum(load(x[:]), 0)); }",
            k->name, k->name);
        if (run(&d, source, (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("z", &tz)}, 2))
            ck_assert_double_eq(get(k, z, 0).f, 300.0);
    }
    num_close(&d);
}
END_TEST

/* Scalars arrive in their own dtype. */
START_TEST(scalars)
{
    num_device d;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int i = 0; i < KINDS; i++) {
        const kind *k = &kinds[i];
        char z[8], source[256];
        int64_t one = 1;
        DLTensor tz = vector_of(k, z, &one);

        snprintf(source, sizeof source,
                 "kernel s(out z: %s[1], v: %s, w: %s = 3) require v > 0 && w < 4 grid (1) {"
                 " store(z[0], v + w); }",
                 k->name, k->name, k->name);
        if (!run(&d, source, (tw_arg[]){TW_TENSOR("z", &tz), TW_F32("v", 97)}, 2))
            continue;
        number got = get(k, z, 0);
        ck_assert_msg(k->is_float ? got.f == 100.0 : got.i == 100, "%s on %s", k->name, d.label);
    }
    num_close(&d);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("dtypes");
    TCase *t = tcase_create("values");

    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, operators, 0, DEVICES);
    tcase_add_loop_test(t, fused, 0, DEVICES);
    tcase_add_loop_test(t, casts, 0, DEVICES);
    tcase_add_loop_test(t, reductions, 0, DEVICES);
    tcase_add_loop_test(t, dots, 0, DEVICES);
    tcase_add_loop_test(t, sums_of_narrow_floats_are_wide, 0, DEVICES);
    tcase_add_loop_test(t, scalars, 0, DEVICES);
    suite_add_tcase(s, t);
    return s;
}
