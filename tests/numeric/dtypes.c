/* Each dtype: its operators, casts between all pairs, sums and dots, against plain C that computes
 * in 128 bits or in double and shares nothing with the compiler. */
#include "tests/support/numeric_case.h"
#include "tests/support/numeric_dtype.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *spec, *target;
} device[] = {
    {"interp", NULL},           {"cpu", NULL}, {"cpu:1", "cpu-generic"}, /* under sanitizers, too */
    {"cpu:1", "cpu-avx512"},    {"cpu:1", "cpu-avx2"},
};
enum { DEVICES = sizeof device / sizeof *device, SANITIZED_DEVICES = 3 };

enum { FIRST_FLOAT = 8, SIXTEEN_BITS = 10 }; /* places in num_dtypes */

/* The result of an operation: 16-bit floats are computed in f32. */
static double result(const num_dtype *k, double x)
{
    return k->bits == 16 ? num_round(k, (double)(float)x) : num_round(k, x);
}

static bool same(const num_dtype *k, num_value got, num_value want, double ulps)
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

static void show(const num_dtype *k, num_value v)
{
    if (k->is_float)
        num_say("%a", v.f);
    else
        num_say("%lld", (long long)v.i);
}

/* ---- awkward values ---- */

static int int_values(const num_dtype *k, num_value *out)
{
    static const int64_t small[] = {0, 1, 2, 3, 5, 7, 8, 31, 33, 63, 100, 127, -1, -2, -7, -100};
    num_wide most = ((num_wide)1 << (k->bits - k->is_signed)) - 1;
    num_wide least = k->is_signed ? -most - 1 : 0;
    num_wide edge[] = {least, least + 1, most, most - 1, most / 2, most / 2 + 1, most / 3};
    int n = 0;

    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        out[n++].i = num_wrap(k, small[i]);
    for (size_t i = 0; i < sizeof edge / sizeof *edge; i++)
        out[n++].i = edge[i];
    return n;
}

static int float_values(const num_dtype *k, num_value *out)
{
    double most = ldexp(2.0 - ldexp(1.0, -k->mantissa), -k->least_exponent + 1);
    double least = ldexp(1.0, k->least_exponent), tiny = ldexp(least, -k->mantissa);
    double one = 1.0 + ldexp(1.0, -k->mantissa);
    const double v[] = {0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.25, 0.1, -100.3, 1e3, 126.7, 255.0,
                        -127.6, 65503.0, (double)INFINITY, -(double)INFINITY, (double)NAN, most,
                        -most, most / 2, least, tiny, -3 * tiny, least - tiny, one, 1 / one, 3e9};
    int n = 0;

    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        out[n++].f = num_round(k, v[i]);
    return n;
}

enum { MOST_VALUES = 32, MOST_PAIRS = MOST_VALUES * MOST_VALUES };

static int values_of(const num_dtype *k, num_value *out)
{
    return k->is_float ? float_values(k, out) : int_values(k, out);
}

/* ---- running a kernel ---- */

/* z = text(a, b) */
static bool run_pairs(num_device *d, const num_dtype *k, const num_dtype *to, const char *text,
                      void *x, void *y, void *z, int64_t n)
{
    DLTensor tx = num_vector(k, x, &n), ty = num_vector(k, y, &n), tz = num_vector(to, z, &n);
    char source[512];

    snprintf(source, sizeof source,
             "kernel op(x: %s[N], y: %s[N], out z: %s[N]) grid (cdiv(N, 64)) {\n"
             "    let at = program_id(0) * 64;\n"
             "    let a = load(x[at :+ 64]), b = load(y[at :+ 64]);\n"
             "    store(z[at :+ 64], %s);\n"
             "}\n",
             k->name, k->name, to->name, text);
    tw_arg args[] = {TW_TENSOR("x", &tx), TW_TENSOR("y", &ty), TW_TENSOR("z", &tz)};
    return num_run_text(d, source, args, 3);
}

/* ---- operators ---- */

typedef struct operation {
    const char *text;
    /* wrapped by the caller; NULL: of floats only */
    num_wide (*whole)(const num_dtype *k, num_wide a, num_wide b);
    double (*real)(double a, double b);           /* rounded by the caller; NULL: ints only */
    double ulps;                                  /* of floats */
} operation;

static num_wide iadd(const num_dtype *k, num_wide a, num_wide b)
{
    (void)k;
    return a + b;
}
static num_wide isub(const num_dtype *k, num_wide a, num_wide b)
{
    (void)k;
    return a - b;
}
static num_wide imul(const num_dtype *k, num_wide a, num_wide b)
{
    return k->bits == 64 ? (num_wide)((uint64_t)a * (uint64_t)b) : a * b;
}
static num_wide idiv(const num_dtype *k, num_wide a, num_wide b)
{
    (void)k;
    return b ? a / b : 0;
}
static num_wide irem(const num_dtype *k, num_wide a, num_wide b)
{
    (void)k;
    return b ? a % b : a;
}
static num_wide iand(const num_dtype *k, num_wide a, num_wide b)
{
    (void)k;
    return a & b;
}
static num_wide ior(const num_dtype *k, num_wide a, num_wide b)
{
    (void)k;
    return a | b;
}
static num_wide ixor(const num_dtype *k, num_wide a, num_wide b)
{
    (void)k;
    return a ^ b;
}
static num_wide inot(const num_dtype *k, num_wide a, num_wide b)
{
    (void)k, (void)b;
    return ~a;
}
static num_wide ineg(const num_dtype *k, num_wide a, num_wide b)
{
    (void)k, (void)b;
    return -a;
}
static num_wide iabs(const num_dtype *k, num_wide a, num_wide b)
{
    (void)k, (void)b;
    return a < 0 ? -a : a;
}
static num_wide ishl(const num_dtype *k, num_wide a, num_wide b)
{
    return (num_wide)((uint64_t)a << ((uint64_t)b & (uint64_t)(k->bits - 1)));
}
static num_wide ishr(const num_dtype *k, num_wide a, num_wide b)
{
    return a >> ((uint64_t)b & (uint64_t)(k->bits - 1));
}
static num_wide imax(const num_dtype *k, num_wide a, num_wide b)
{
    (void)k;
    return a > b ? a : b;
}
static num_wide imin(const num_dtype *k, num_wide a, num_wide b)
{
    (void)k;
    return a < b ? a : b;
}
static num_wide iless(const num_dtype *k, num_wide a, num_wide b)
{
    (void)k;
    return a < b;
}
static num_wide iupto(const num_dtype *k, num_wide a, num_wide b)
{
    (void)k;
    return a <= b;
}
static num_wide iequal(const num_dtype *k, num_wide a, num_wide b)
{
    (void)k;
    return a == b;
}
static num_wide ihalf(const num_dtype *k, num_wide a, num_wide b)
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
static double rrem(double a, double b)
{
    return fmod(a, b);
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
static double flog(double a, double b) { (void)b; return log(a); }
static double ftanh(double a, double b) { (void)b; return tanh(a); }
static const operation operations[] = {
    {"a + b", iadd, radd, 0},
    {"a - b", isub, rsub, 0},
    {"a * b", imul, rmul, 0},
    {"a / b", idiv, rdiv, 0},
    {"a % b", irem, rrem, 0},
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
    {"tanh(a)", NULL, ftanh, 2},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static num_value wanted(const num_dtype *k, const operation *op, num_value a, num_value b)
{
    if (k->is_float)
        return (num_value){.f = result(k, op->real(a.f, b.f))};
    return (num_value){.i = num_wrap(k, op->whole(k, a.i, b.i))};
}

/* The text with T, where it stands, replaced. */
static const char *text_for(const num_dtype *k, const char *text, char out[64])
{
    const char *at = strstr(text, "T)");

    if (!at)
        return text;
    snprintf(out, 64, "%.*s%s)", (int)(at - text), text, k->name);
    return out;
}

static int check_operation(num_device *d, const num_dtype *k, const operation *op)
{
    static char x[MOST_PAIRS * 8], y[MOST_PAIRS * 8], z[MOST_PAIRS * 8];
    num_value value[MOST_VALUES];
    int n = values_of(k, value), bad = 0;
    char text[64];

    for (int i = 0; i < n * n; i++) {
        num_put(k, x, i, value[i % n]);
        num_put(k, y, i, value[i / n]);
    }
    if (!run_pairs(d, k, k, text_for(k, op->text, text), x, y, z, n * n))
        return 0;
    for (int i = 0; i < n * n; i++) {
        num_value a = value[i % n], b = value[i / n];
        num_value want = wanted(k, op, a, b), got = num_get(k, z, i);

        bool flushed = k->is_float && k->bits < 64 && op->ulps > 0 &&
                       num_flushed(d, op->text, got.f, want.f);
        if (same(k, got, want, op->ulps) || flushed || bad++ >= 3)
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
    for (int k = 0; k < NUM_DTYPES; k++)
        for (int i = 0; i < OPERATIONS; i++)
            if (num_dtypes[k].is_float ? operations[i].real != NULL : operations[i].whole != NULL)
                bad += check_operation(&d, &num_dtypes[k], &operations[i]);
    num_close(&d);
    ck_assert_int_eq(bad, 0);
}
END_TEST

/* fma of 16-bit floats: f32's, rounded again. */
START_TEST(fused)
{
    static char x[MOST_PAIRS * 8], y[MOST_PAIRS * 8], z[MOST_PAIRS * 8];
    num_value value[MOST_VALUES];
    num_device d;
    int bad = 0;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (const num_dtype *k = num_dtypes + FIRST_FLOAT; k < num_dtypes + SIXTEEN_BITS; k++) {
        int n = float_values(k, value);
        float third = (float)num_round(k, 0.3);

        for (int i = 0; i < n * n; i++) {
            num_put(k, x, i, value[i % n]);
            num_put(k, y, i, value[i / n]);
        }
        if (!run_pairs(&d, k, k, "fma(a, b, 0.3)", x, y, z, n * n))
            continue;
        for (int i = 0; i < n * n; i++) {
            float f = fmaf((float)value[i % n].f, (float)value[i / n].f, third);

            bad += !same(k, num_get(k, z, i), (num_value){.f = num_round(k, (double)f)}, 0);
        }
    }
    num_close(&d);
    ck_assert_int_eq(bad, 0);
}
END_TEST

/* ---- casts ---- */

static num_value converted(const num_dtype *from, const num_dtype *to, num_value v)
{
    if (!to->is_float && !from->is_float)
        return (num_value){.i = num_wrap(to, v.i)};
    if (to->is_float) {
        double f = from->is_float ? v.f : (double)v.i;
        float single = from->is_float ? (float)v.f : (float)v.i;

        if (to->bits == 64)
            return (num_value){.f = f};
        return (num_value){.f = num_round(to, (double)single)};
    }
    num_wide most = ((num_wide)1 << (to->bits - to->is_signed)) - 1;
    num_wide least = to->is_signed ? -most - 1 : 0;
    if (isnan(v.f))
        return (num_value){.i = 0};
    if (v.f >= (double)most)
        return (num_value){.i = v.f >= ldexp(1.0, to->bits - to->is_signed) ? most : (num_wide)v.f};
    return (num_value){.i = v.f <= (double)least ? least : (num_wide)v.f};
}

static int check_cast(num_device *d, const num_dtype *from, const num_dtype *to)
{
    static char x[MOST_VALUES * 8], z[MOST_VALUES * 8];
    num_value value[MOST_VALUES];
    int n = values_of(from, value), bad = 0;
    char text[64];

    for (int i = 0; i < n; i++)
        num_put(from, x, i, value[i]);
    if (!run_pairs(d, from, to, text_for(to, "cast(a, T)", text), x, x, z, n))
        return 0;
    for (int i = 0; i < n; i++) {
        num_value want = converted(from, to, value[i]), got = num_get(to, z, i);

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
    for (int from = 0; from < NUM_DTYPES; from++)
        for (int to = 0; to < NUM_DTYPES; to++)
            bad += check_cast(&d, &num_dtypes[from], &num_dtypes[to]);
    num_close(&d);
    ck_assert_int_eq(bad, 0);
}
END_TEST

/* The same bytes, but for the bits of a NaN. */
static int check_bitcast(num_device *d, const num_dtype *from, const num_dtype *to)
{
    static char x[MOST_VALUES * 8], z[MOST_VALUES * 8];
    num_value value[MOST_VALUES];
    int n = values_of(from, value), bad = 0;
    size_t size = (size_t)from->bits / 8;
    char text[64];

    for (int i = 0; i < n; i++)
        num_put(from, x, i, value[i]);
    if (!run_pairs(d, from, to, text_for(to, "bitcast(a, T)", text), x, x, z, n))
        return 0;
    for (int i = 0; i < n; i++) {
        bool nan = (from->is_float && isnan(value[i].f)) ||
                   (to->is_float && isnan(num_get(to, x, i).f));

        if (!nan && memcmp(x + (size_t)i * size, z + (size_t)i * size, size) != 0)
            bad++;
    }
    if (bad)
        num_say("%s: %d bitcasts of %s to %s are wrong\n", d->label, bad, from->name, to->name);
    return bad;
}

START_TEST(bitcasts)
{
    num_device d;
    int bad = 0;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int from = 0; from < NUM_DTYPES; from++)
        for (int to = 0; to < NUM_DTYPES; to++)
            if (num_dtypes[from].bits == num_dtypes[to].bits)
                bad += check_bitcast(&d, &num_dtypes[from], &num_dtypes[to]);
    num_close(&d);
    ck_assert_int_eq(bad, 0);
}
END_TEST

/* Scalars arrive in their own dtype. */
START_TEST(scalars)
{
    num_device d;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (int i = 0; i < NUM_DTYPES; i++) {
        const num_dtype *k = &num_dtypes[i];
        char z[8], source[256];
        int64_t one = 1;
        DLTensor tz = num_vector(k, z, &one);

        snprintf(source, sizeof source,
                 "kernel s(out z: %s[1], v: %s, w: %s = 3) require v > 0 && w < 4 grid (1) {"
                 " store(z[0], v + w); }",
                 k->name, k->name, k->name);
        if (!num_run_text(&d, source, (tw_arg[]){TW_TENSOR("z", &tz), TW_F32("v", 97)}, 2))
            continue;
        num_value got = num_get(k, z, 0);
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
    int devices = num_thin(1) > 1 ? SANITIZED_DEVICES : DEVICES;
    tcase_add_loop_test(t, operators, 0, devices);
    tcase_add_loop_test(t, fused, 0, devices);
    tcase_add_loop_test(t, casts, 0, devices);
    tcase_add_loop_test(t, bitcasts, 0, devices);
    tcase_add_loop_test(t, scalars, 0, devices);
    suite_add_tcase(s, t);
    return s;
}
