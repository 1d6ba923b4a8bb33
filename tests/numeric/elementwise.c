/* Each operator and elementwise built-in on awkward values, on the interpreter and on each code
 * path of the CPU, against plain C that shares nothing with either. */
#include "tests/support/numeric_case.h"
#include <check.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *spec, *target;
} device[] = {
    {"interp", NULL},
    {"cpu", NULL},
    {"cpu:1", "cpu-avx512"},
    {"cpu:1", "cpu-avx2"},
    {"cpu:1", "cpu-generic"},
};
enum { DEVICES = sizeof device / sizeof *device };

/* ---- f32: an expression of a and b, what it is in double, how many ulp it may be off ---- */

typedef struct float_op {
    const char *text;
    double (*want)(double a, double b);
    double ulps;
} float_op;

static double add(double a, double b) { return a + b; }
static double subtract(double a, double b) { return a - b; }
static double multiply(double a, double b) { return a * b; }
static double divide(double a, double b) { return a / b; }
static double remainder_of(double a, double b) { return fmod(a, b); }
static double negate(double a, double b) { (void)b; return -a; }
static double magnitude(double a, double b) { (void)b; return fabs(a); }
static double larger(double a, double b) { return isnan(a) || isnan(b) ? NAN : a > b ? a : b; }
static double smaller(double a, double b) { return isnan(a) || isnan(b) ? NAN : a < b ? a : b; }
static double chosen(double a, double b) { return a < b ? a : b; }
static double equal(double a, double b) { return a == b; }
static double different(double a, double b) { return a != b; }
static double less(double a, double b) { return a < b; }
static double at_most(double a, double b) { return a <= b; }
static double greater(double a, double b) { return a > b; }
static double root(double a, double b) { (void)b; return sqrt(a); }
static double inverse_root(double a, double b) { (void)b; return 1.0 / sqrt(a); }
static double down(double a, double b) { (void)b; return floor(a); }
static double up(double a, double b) { (void)b; return ceil(a); }
static double power(double a, double b) { (void)b; return exp2(a); }
static double natural_power(double a, double b) { (void)b; return exp(a); }
static double logarithm(double a, double b) { (void)b; return log2(a); }
static double natural_logarithm(double a, double b) { (void)b; return log(a); }
static double turned(double a, double b) { (void)b; return fabs(a) > 0x1p26 ? NAN : sin(a); }
static double turned_on(double a, double b) { (void)b; return fabs(a) > 0x1p26 ? NAN : cos(a); }
static double bent(double a, double b) { (void)b; return tanh(a); }
static double error_function(double a, double b) { (void)b; return erf(a); }
static double fused(double a, double b) { return (double)fmaf((float)a, (float)b, 0.1f); }
static double unfused(double a, double b) { return (double)(float)(a * b) + (double)0.1f; }

static const float_op float_ops[] = {
    {"a + b", add, 0},
    {"a - b", subtract, 0},
    {"a * b", multiply, 0},
    {"a / b", divide, 0},
    {"a % b", remainder_of, 0},
    {"-a", negate, 0},
    {"abs(a)", magnitude, 0},
    {"maximum(a, b)", larger, 0},
    {"minimum(a, b)", smaller, 0},
    {"where(a < b, a, b)", chosen, 0},
    {"cast(a == b, f32)", equal, 0},
    {"cast(a != b, f32)", different, 0},
    {"cast(a < b, f32)", less, 0},
    {"cast(a <= b, f32)", at_most, 0},
    {"cast(a > b, f32)", greater, 0},
    {"cast(!(a > b), f32)", NULL, 0},
    {"sqrt(a)", root, 0},
    {"rsqrt(a)", inverse_root, 2},
    {"floor(a)", down, 0},
    {"ceil(a)", up, 0},
    {"exp2(a)", power, 2},
    {"exp(a)", natural_power, 2},
    {"log2(a)", logarithm, 2},
    {"log(a)", natural_logarithm, 2},
    {"sin(a)", turned, 2},
    {"cos(a)", turned_on, 2},
    {"tanh(a)", bent, 2},
    {"erf(a)", error_function, 2},
    {"fma(a, b, 0.1)", fused, 0},
    {"a * b + 0.1", unfused, 0},
};

static const float float_values[] = {
    0.0f,      -0.0f,      1.0f,     -1.0f,     0.5f,      -2.5f,      3.0f,      7.25f,
    INFINITY,  -INFINITY,  NAN,      FLT_MAX,   -FLT_MAX,  FLT_MIN,    -FLT_MIN,  0x1p-149f,
    0x1p-140f, 16777217.0f, 0x1p23f, 0x1p31f,   -0x1p31f,  126.7f,     127.99f,   128.0f,
    -125.5f,   -126.3f,    -149.0f,  -151.0f,   88.7f,     -87.3f,     -103.9f,   0.99999994f,
    1.0000001f, 1e-8f,     -1e-8f,   1e10f,     -1e30f,    3.14159f,   0.1f,      1e-30f,
};

enum { FLOATS = sizeof float_values / sizeof *float_values, FLOAT_PAIRS = FLOATS * FLOATS };

static bool near_enough(float got, double want, double ulps)
{
    float rounded = (float)want;

    if (isnan(want))
        return isnan(got);
    if (got == rounded)
        return true;
    if (isinf(rounded) || isinf(got))
        return ulps > 0 && fabsf(isinf(got) ? rounded : got) >= 0x1.fffffcp127f;
    double unit = fabs(want) < (double)FLT_MIN ? 0x1p-149 : exp2(floor(log2(fabs(want))) - 23);
    return fabs((double)got - want) <= ulps * unit + (ulps > 0 ? 0.5 * unit : 0.0);
}

static DLTensor vector_of(void *at, int64_t *n, DLDataType t)
{
    return (DLTensor){at, {kDLCPU, 0}, 1, t, n, NULL, 0};
}

/* z = text(a, b), element by element, for n elements of a type. */
static void run(num_device *d, const char *type, const char *result, const char *text,
                tw_arg args[3])
{
    char source[512];
    tw_kernel *k = NULL;

    snprintf(source, sizeof source,
             "kernel op(x: %s[N], y: %s[N], out z: %s[N]) grid (cdiv(N, 128)) {\n"
             "    let at = program_id(0) * 128;\n"
             "    let a = load(x[at :+ 128]), b = load(y[at :+ 128]);\n"
             "    store(z[at :+ 128], %s);\n"
             "}\n",
             type, type, result, text);
    num_must(tw_kernel_load_text(d->cx, text, source, strlen(source), NULL, &k), text);
    num_must(num_try(d, k, args, 3, NULL), text);
    tw_kernel_destroy(k);
}

static int check_float_op(num_device *d, const float_op *op)
{
    static float x[FLOAT_PAIRS], y[FLOAT_PAIRS], z[FLOAT_PAIRS];
    const DLDataType f32 = {kDLFloat, 32, 1};
    int64_t n = FLOAT_PAIRS;
    int bad = 0;

    for (int i = 0; i < FLOAT_PAIRS; i++) {
        x[i] = float_values[i % FLOATS];
        y[i] = float_values[i / FLOATS];
    }
    DLTensor tx = vector_of(x, &n, f32), ty = vector_of(y, &n, f32), tz = vector_of(z, &n, f32);
    run(d, "f32", "f32", op->text,
        (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("y", &ty), TW_TENSOR("z", &tz)});
    for (int i = 0; i < FLOAT_PAIRS; i++) {
        double want = op->want ? op->want(x[i], y[i]) : !(x[i] > y[i]);

        if (near_enough(z[i], want, op->ulps) ||
            (op->ulps > 0 && num_flushed(d, op->text, (double)z[i], want)))
            continue;
        if (bad++ < 3)
            num_say("%s: %s with a = %a, b = %a is %a, not %a\n", d->label, op->text, (double)x[i],
                    (double)y[i], (double)z[i], want);
    }
    return bad;
}

START_TEST(floats)
{
    num_device d;
    int bad = 0;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (size_t i = 0; i < sizeof float_ops / sizeof *float_ops; i++)
        bad += check_float_op(&d, &float_ops[i]);
    num_close(&d);
    ck_assert_int_eq(bad, 0);
}
END_TEST

/* Dense samples of the range in which the result is neither 0 nor infinite. */
START_TEST(exponentials_and_logarithms_over_their_range)
{
    enum { SAMPLES = 200000 };
    static float x[SAMPLES], y[SAMPLES], z[SAMPLES];
    static const struct {
        const char *text;
        double (*want)(double a, double b);
        double lo, hi;
    } row[] = {{"exp2(a)", power, -126.0, 128.0},
               {"exp(a)", natural_power, -87.3, 88.7},
               {"log2(a)", logarithm, 0.0, 10.0},
               {"log(a)", natural_logarithm, 0.0, 1e30},
               {"rsqrt(a)", inverse_root, 1e-30, 4.0}};
    const DLDataType f32 = {kDLFloat, 32, 1};
    int64_t n = SAMPLES;
    num_random r = {77};
    num_device d;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    DLTensor tx = vector_of(x, &n, f32), ty = vector_of(y, &n, f32), tz = vector_of(z, &n, f32);
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        double worst = 0.0;

        for (int i = 0; i < SAMPLES; i++)
            x[i] = (float)(row[k].lo + (row[k].hi - row[k].lo) * num_uniform(&r));
        run(&d, "f32", "f32", row[k].text,
            (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("y", &ty), TW_TENSOR("z", &tz)});
        for (int i = 0; i < SAMPLES; i++) {
            double want = row[k].want(x[i], 0.0);
            double unit = exp2(floor(log2(fabs(want))) - 23);

            if (want != 0.0)
                worst = fmax(worst, fabs((double)z[i] - want) / unit);
        }
        num_say("%s: %s is within %.2f ulp\n", d.label, row[k].text, worst);
        ck_assert_msg(worst <= 2.0, "%s: %.3f ulp", row[k].text, worst);
    }
    num_close(&d);
}
END_TEST

/* ---- i32 ---- */

typedef struct int_op {
    const char *text;
    int32_t (*want)(int32_t a, int32_t b);
} int_op;

static int32_t wrap(int64_t v) { return (int32_t)(uint32_t)(uint64_t)v; }
static int32_t iadd(int32_t a, int32_t b) { return wrap((int64_t)a + b); }
static int32_t isub(int32_t a, int32_t b) { return wrap((int64_t)a - b); }
static int32_t imul(int32_t a, int32_t b) { return wrap((int64_t)a * b); }
static int32_t idiv(int32_t a, int32_t b) { return b ? wrap((int64_t)a / b) : 0; }
static int32_t irem(int32_t a, int32_t b) { return b ? wrap((int64_t)a % b) : a; }
static int32_t iboth(int32_t a, int32_t b) { return iadd(idiv(a, b), irem(a, b)); }
static int32_t iand(int32_t a, int32_t b) { return a & b; }
static int32_t ior(int32_t a, int32_t b) { return a | b; }
static int32_t ixor(int32_t a, int32_t b) { return a ^ b; }
static int32_t inot(int32_t a, int32_t b) { (void)b; return ~a; }
static int32_t ineg(int32_t a, int32_t b) { (void)b; return wrap(-(int64_t)a); }
static int32_t iabs(int32_t a, int32_t b) { (void)b; return a < 0 ? wrap(-(int64_t)a) : a; }
static int32_t ishl(int32_t a, int32_t b) { return (int32_t)((uint32_t)a << (b & 31)); }
static int32_t ishr(int32_t a, int32_t b) { return wrap((int64_t)a >> (b & 31)); }
static int32_t imax(int32_t a, int32_t b) { return a > b ? a : b; }
static int32_t imin(int32_t a, int32_t b) { return a < b ? a : b; }
static int32_t iless(int32_t a, int32_t b) { return a < b; }
static int32_t ieq(int32_t a, int32_t b) { return a == b; }
static int32_t iclamp(int32_t a, int32_t b) { return imin(imax(a, -5), imax(b, -5)); }
static int32_t iceil(int32_t a, int32_t b) { (void)b; return ((a & 0xffff) + 6) / 7; }
static int32_t narrow(int32_t a, int32_t b) { return wrap((int64_t)a * b); }
static int32_t high(int32_t a, int32_t b) { return wrap((int64_t)a * b >> 32); }

static const int_op int_ops[] = {
    {"a + b", iadd},
    {"a - b", isub},
    {"a * b", imul},
    {"a / b", idiv},
    {"a % b", irem},
    {"a / b + a % b", iboth},
    {"a & b", iand},
    {"a | b", ior},
    {"a ^ b", ixor},
    {"~a", inot},
    {"-a", ineg},
    {"abs(a)", iabs},
    {"a << b", ishl},
    {"a >> b", ishr},
    {"maximum(a, b)", imax},
    {"minimum(a, b)", imin},
    {"cast(a < b, i32)", iless},
    {"cast(a == b, i32)", ieq},
    {"clamp(a, -5, maximum(b, -5))", iclamp},
    {"cdiv(a & 65535, 7)", iceil},
    {"cast(cast(a, i64) * cast(b, i64), i32)", narrow},
    {"cast(cast(a, i64) * cast(b, i64) >> 32, i32)", high},
};

static const int32_t int_values[] = {
    0,       1,       -1,      2,  -2, 7,  -7, 3,   -3,  8,         31,         32,
    33,      63,      64,      -8, 100, -100, 65535, 65536, 1 << 30, INT_MAX, INT_MIN, INT_MIN + 1,
    INT_MAX - 1, 46341, -46341,
};
enum { INTS = sizeof int_values / sizeof *int_values, INT_PAIRS = INTS * INTS };

static int check_int_op(num_device *d, const int_op *op)
{
    static int32_t x[INT_PAIRS], y[INT_PAIRS], z[INT_PAIRS];
    const DLDataType i32 = {kDLInt, 32, 1};
    int64_t n = INT_PAIRS;
    int bad = 0;

    for (int i = 0; i < INT_PAIRS; i++) {
        x[i] = int_values[i % INTS];
        y[i] = int_values[i / INTS];
    }
    DLTensor tx = vector_of(x, &n, i32), ty = vector_of(y, &n, i32), tz = vector_of(z, &n, i32);
    run(d, "i32", "i32", op->text,
        (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("y", &ty), TW_TENSOR("z", &tz)});
    for (int i = 0; i < INT_PAIRS; i++) {
        if (z[i] == op->want(x[i], y[i]))
            continue;
        if (bad++ < 3)
            num_say("%s: %s with a = %d, b = %d is %d, not %d\n", d->label, op->text, x[i], y[i],
                    z[i], op->want(x[i], y[i]));
    }
    return bad;
}

START_TEST(integers)
{
    num_device d;
    int bad = 0;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    for (size_t i = 0; i < sizeof int_ops / sizeof *int_ops; i++)
        bad += check_int_op(&d, &int_ops[i]);
    num_close(&d);
    ck_assert_int_eq(bad, 0);
}
END_TEST

/* ---- between the two ---- */

static int32_t to_int(float x)
{
    if (isnan(x))
        return 0;
    return x >= 0x1p31f ? INT_MAX : x <= -0x1p31f ? INT_MIN : (int32_t)x;
}

START_TEST(casts)
{
    float x[FLOATS], back[INTS];
    int32_t z[FLOATS], whole[INTS];
    const DLDataType f32 = {kDLFloat, 32, 1}, i32 = {kDLInt, 32, 1};
    int64_t n = FLOATS, m = INTS;
    num_device d;

    if (!num_open(&d, device[_i].spec, device[_i].target))
        return;
    memcpy(x, float_values, sizeof x);
    memcpy(whole, int_values, sizeof whole);
    DLTensor tx = vector_of(x, &n, f32), tz = vector_of(z, &n, i32);
    run(&d, "f32", "i32", "cast(a, i32)",
        (tw_arg[]){TW_TENSOR("x", &tx), TW_TENSOR("y", &tx), TW_TENSOR("z", &tz)});
    for (int i = 0; i < FLOATS; i++)
        ck_assert_msg(z[i] == to_int(x[i]), "cast(%a, i32) is %d", (double)x[i], z[i]);
    DLTensor tw = vector_of(whole, &m, i32), tb = vector_of(back, &m, f32);
    run(&d, "i32", "f32", "cast(a, f32)",
        (tw_arg[]){TW_TENSOR("x", &tw), TW_TENSOR("y", &tw), TW_TENSOR("z", &tb)});
    for (int i = 0; i < INTS; i++)
        ck_assert_msg(back[i] == (float)whole[i], "cast(%d, f32) is %a", whole[i], (double)back[i]);
    num_close(&d);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("elementwise");
    TCase *t = tcase_create("values");

    tcase_add_loop_test(t, floats, 0, DEVICES);
    tcase_add_loop_test(t, exponentials_and_logarithms_over_their_range, 0, DEVICES);
    tcase_add_loop_test(t, integers, 0, DEVICES);
    tcase_add_loop_test(t, casts, 0, DEVICES);
    suite_add_tcase(s, t);
    return s;
}
