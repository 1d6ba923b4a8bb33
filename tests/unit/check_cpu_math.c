/* The inline functions of the CPU targets: of f32 over sampled bit patterns of all of f32, against
 * double; of f64 on random and special arguments, against the 64-bit mantissas of long double. */
#include "compiler/ir/ireval.h"
#include "tests/support/math_rig.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { F32_SAMPLES = 1 << 20, F64_SAMPLES = 1 << 18 };

static math_rig rig;
static long double *want;

static void open_rig(enum dtype t, int64_t n)
{
    math_rig_open(&rig, t, 1, n);
    want = malloc((size_t)n * sizeof *want);
    ck_assert_ptr_nonnull(want);
}

static void close_rig(void)
{
    math_rig_close(&rig);
    free(want);
}

static double argument(int64_t i)
{
    return rig.t == DT_F32 ? (double)((const float *)rig.arg[0])[i]
                           : ((const double *)rig.arg[0])[i];
}

static double worst_error(double ulps, int64_t step)
{
    double worst = 0.0;

    for (int64_t i = 0; i < rig.n; i += step) {
        double e = math_rig_error(rig.t, want[i], math_rig_get(&rig, i));
        if (!(e <= ulps))
            fprintf(stderr, "%s(%a) = %a, %g ulp off\n", op_info(rig.code)->name, argument(i),
                    math_rig_get(&rig, i), e);
        worst = e > worst ? e : worst;
    }
    return worst;
}

/* Every path, as tiles and as scalars. */
static void check_paths(enum ir_opcode code, double ulps)
{
    const target *t;

    rig.code = code;
    for (size_t i = 0; (t = math_rig_path(i)); i++) {
        math_rig_run(&rig, t, false);
        double worst = worst_error(ulps, 1);
        printf("%s: %s of %s is within %.2f ulp\n", t->name, op_info(code)->name, dtype_name(rig.t),
               worst);
        ck_assert_double_le(worst, ulps);
        math_rig_run(&rig, t, true);
        ck_assert_double_le(worst_error(ulps, MATH_BLOCK), ulps);
    }
}

/* ---- f32 ------------------------------------------------------------------------------------- */

static double reciprocal_root(double v)
{
    return 1.0 / sqrt(v);
}

static double sine(double v)
{
    return fabs(v) > ANGLE_MAX ? (double)NAN : sin(v);
}

static double cosine(double v)
{
    return fabs(v) > ANGLE_MAX ? (double)NAN : cos(v);
}

static const struct {
    enum ir_opcode code;
    double (*exact)(double);
    double ulps; /* allowed */
} of_f32[] = {
    {OP_EXP2, exp2, 2.0},  {OP_EXP, exp, 1.5},   {OP_LOG2, log2, 1.5},
    {OP_LOG, log, 1.5},    {OP_SQRT, sqrt, 0.5}, {OP_RSQRT, reciprocal_root, 1.6},
    {OP_TANH, tanh, 2.0},  {OP_ERF, erf, 2.0},   {OP_SIN, sine, 0.6},
    {OP_COS, cosine, 0.6},
};

static void fill_f32(void)
{
    static const double special[] = {0.0,
                                     -0.0,
                                     1.0,
                                     -1.0,
                                     0.5,
                                     2.0,
                                     126.0,
                                     127.0,
                                     128.0,
                                     -126.0,
                                     -127.0,
                                     -149.0,
                                     -150.0,
                                     -151.0,
                                     88.7,
                                     88.8,
                                     -87.3,
                                     -87.4,
                                     -103.9,
                                     -104.1,
                                     0x1p-149,
                                     0x1p-126,
                                     0x1.fffffep127,
                                     0x1.fffffep-1,
                                     0x1.000002p0,
                                     (double)INFINITY,
                                     -(double)INFINITY,
                                     (double)NAN};
    enum { STRIDE = 4099 };

    for (uint32_t i = 0; i < F32_SAMPLES; i++) {
        uint32_t u = i * STRIDE;
        float v;
        memcpy(&v, &u, sizeof u);
        /* half of all patterns are beyond the range of exp2: fold those into it */
        math_rig_put(&rig, 0, i, i % 2 ? (double)u * 0x1p-32 * 300.0 - 160.0 : (double)v);
    }
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        math_rig_put(&rig, 0, (int64_t)(MATH_BLOCK * i), special[i]);
}

/* Exponentials below the normal range are 0. */
static long double flushed(long double power)
{
    return power < 0x1p-126L ? 0.0L : power;
}

START_TEST(functions_of_f32)
{
    bool power = of_f32[_i].code == OP_EXP || of_f32[_i].code == OP_EXP2;

    open_rig(DT_F32, F32_SAMPLES);
    fill_f32();
    for (int64_t i = 0; i < rig.n; i++) {
        want[i] = (long double)of_f32[_i].exact(argument(i));
        want[i] = power ? flushed(want[i]) : want[i];
    }
    check_paths(of_f32[_i].code, of_f32[_i].ulps);
    close_rig();
}
END_TEST

START_TEST(exp2_of_an_integer_is_exact)
{
    open_rig(DT_F32, 8 * MATH_BLOCK);
    for (int64_t i = 0; i < rig.n; i++) {
        math_rig_put(&rig, 0, i, (double)(i % 280 - 149));
        want[i] = flushed(ldexpl(1.0L, (int)(i % 280 - 149)));
    }
    check_paths(OP_EXP2, 0.0);
    close_rig();
}
END_TEST

/* ---- f64 ------------------------------------------------------------------------------------- */

static long double long_sine(long double v)
{
    return fabsl(v) > (long double)ANGLE_MAX ? (long double)NAN : sinl(v);
}

static long double long_cosine(long double v)
{
    return fabsl(v) > (long double)ANGLE_MAX ? (long double)NAN : cosl(v);
}

static const struct {
    enum ir_opcode code;
    long double (*exact)(long double);
    double from, to; /* most arguments; the rest are any bits */
    double ulps;     /* allowed */
} of_f64[] = {
    {OP_EXP2, exp2l, -1080.0, 1030.0, 1.5}, {OP_EXP, expl, -750.0, 712.0, 1.5},
    {OP_LOG2, log2l, 0.0, 4.0, 1.5},        {OP_LOG, logl, 0.0, 4.0, 1.5},
    {OP_TANH, tanhl, -4.0, 4.0, 2.0},       {OP_ERF, erfl, -4.0, 4.0, 2.0},
    {OP_SIN, long_sine, -1e4, 1e4, 1.0},    {OP_COS, long_cosine, -1e4, 1e4, 1.0},
};

static uint64_t next(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = (*state ^ *state >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* A quarter of any bits, a quarter near 0 and 1, the rest in the function's range. */
static void fill_f64(double from, double to)
{
    static const double special[] = {0.0,
                                     -0.0,
                                     1.0,
                                     -1.0,
                                     0.5,
                                     2.0,
                                     1023.0,
                                     1024.0,
                                     -1022.0,
                                     -1074.0,
                                     -1075.0,
                                     709.78,
                                     709.79,
                                     -708.4,
                                     -745.1,
                                     -745.2,
                                     0x1p-1074,
                                     0x1p-1022,
                                     5.9,
                                     6.0,
                                     0x1p26,
                                     -0x1p26,
                                     1e300,
                                     -1e300,
                                     0x1.921fb54442d18p0,
                                     0x1.921fb54442d18p25,
                                     0.99,
                                     1.01,
                                     (double)INFINITY,
                                     -(double)INFINITY,
                                     (double)NAN};
    uint64_t state = 42;

    for (int64_t i = 0; i < rig.n; i++) {
        uint64_t u = next(&state);
        double unit = (double)(u >> 11) * 0x1p-53, v = from + unit * (to - from);
        if (i % 4 == 0)
            memcpy(&v, &u, sizeof u);
        else if (i % 4 == 1)
            v = (i % 8 == 1) + (unit - 0.5) * ldexp(1.0, -(int)(u % 40));
        math_rig_put(&rig, 0, i, v);
    }
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        math_rig_put(&rig, 0, (int64_t)(MATH_BLOCK * i), special[i]);
}

START_TEST(functions_of_f64)
{
    open_rig(DT_F64, F64_SAMPLES);
    fill_f64(of_f64[_i].from, of_f64[_i].to);
    for (int64_t i = 0; i < rig.n; i++)
        want[i] = of_f64[_i].exact((long double)argument(i));
    check_paths(of_f64[_i].code, of_f64[_i].ulps);
    close_rig();
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("math of the CPU targets");
    TCase *t = tcase_create("functions");

    tcase_add_loop_test(t, functions_of_f32, 0, sizeof of_f32 / sizeof *of_f32);
    tcase_add_test(t, exp2_of_an_integer_is_exact);
    tcase_add_loop_test(t, functions_of_f64, 0, sizeof of_f64 / sizeof *of_f64);
    tcase_set_timeout(t, 120);
    suite_add_tcase(s, t);
    return s;
}
