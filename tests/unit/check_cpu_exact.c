/* fma and the remainder of floats on each code path of the CPU have the bits of libm's, the sign of
 * 0 included: on pairs of special values, any bits, exponents far apart, and results that are ties,
 * subnormal or what is left of two numbers that cancel. */
#include "tests/support/math_rig.h"
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SAMPLES = 1 << 17 };

static math_rig rig;
static uint64_t state;

static uint64_t next(void)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int64_t in_range(int64_t lo, int64_t hi)
{
    return lo + (int64_t)(next() % (uint64_t)(hi - lo + 1));
}

static bool narrow(void)
{
    return rig.t == DT_F32;
}

/* Any number of the type, of which 2 of 16 have a fraction of few bits. */
static double any_number(int least, int most)
{
    int fraction = narrow() ? 23 : 52, kept = in_range(0, 15) < 2 ? (int)in_range(0, 8) : fraction;
    int64_t bits = in_range(0, ((int64_t)1 << kept) - 1) << (fraction - kept);
    double m = 1.0 + ldexp((double)bits, -fraction);

    return (next() & 1 ? -1.0 : 1.0) * ldexp(m, (int)in_range(least, most));
}

static double any_bits(void)
{
    uint64_t u = next();
    uint32_t half = (uint32_t)u;
    double wide;
    float thin;

    memcpy(&wide, &u, sizeof wide);
    memcpy(&thin, &half, sizeof thin);
    return narrow() ? (double)thin : wide;
}

static double special(int64_t i)
{
    const double f32[] = {0x1p-149, 0x1.fffffcp-127, 0x1p-126,      (double)FLT_MAX,
                          0x1p127,  0x1.000002p0,    0x1.fffffep-1, 0x1p-125};
    const double f64[] = {
        0x1p-1074,           0x1.ffffffffffffep-1023, 0x1p-1022, DBL_MAX, 0x1p1023,
        0x1.0000000000001p0, 0x1.fffffffffffffp-1,    0x1p-1021};
    const double both[] = {0.0, 1.0, 1.5, 3.0, 0.1, 1e10, (double)INFINITY, (double)NAN};
    double v = i / 2 < 8 ? both[i / 2] : narrow() ? f32[i / 2 - 8] : f64[i / 2 - 8];

    return i % 2 ? -v : v;
}
enum { SPECIALS = 32 };

static double value(int arg, int64_t i)
{
    return narrow() ? (double)((const float *)rig.arg[arg])[i] : ((const double *)rig.arg[arg])[i];
}

/* The first SPECIALS^2 elements are pairs of special values; the third is special too. */
static bool put_special(int64_t i)
{
    if (i >= SPECIALS * SPECIALS)
        return false;
    math_rig_put(&rig, 0, i, special(i % SPECIALS));
    math_rig_put(&rig, 1, i, special(i / SPECIALS));
    if (rig.nargs == 3)
        math_rig_put(&rig, 2, i, special(in_range(0, SPECIALS - 1)));
    return true;
}

/* Fails with the arguments of the first element that has other bits. */
static void compare(const char *path, const double *want, int64_t step)
{
    for (int64_t i = 0; i < rig.n; i += step) {
        double got = math_rig_get(&rig, i);
        bool same = isnan(want[i]) ? isnan(got) : memcmp(&got, &want[i], sizeof got) == 0;
        if (!same)
            ck_abort_msg("%s, %s, element %lld: of %a, %a, %a: %a, not %a", path, dtype_name(rig.t),
                         (long long)i, value(0, i), value(1, i), rig.nargs == 3 ? value(2, i) : 0.0,
                         got, want[i]);
    }
}

static void check_paths(const double *want)
{
    const target *t;

    for (size_t i = 0; (t = math_rig_path(i)); i++) {
        math_rig_run(&rig, t, false);
        compare(t->name, want, 1);
        math_rig_run(&rig, t, true);
        compare(t->name, want, MATH_BLOCK);
    }
}

static double want[SAMPLES];
static const enum dtype types[] = {DT_F32, DT_F64};

static void put_remainder(int64_t i)
{
    int least = narrow() ? -149 : -1074, most = narrow() ? 127 : 1023;
    int middle = (int)in_range(least, most), d = (int)in_range(-2, 70);
    double x = any_number(least, most), y = any_number(least, most); /* huge quotients */

    if (i % 4 == 0) {
        x = any_bits();
        y = any_bits();
    } else if (i % 4 == 1) { /* small ones */
        y = any_number(middle, middle);
        x = any_number(middle + d > most ? most : middle + d,
                       middle + d > most ? most : middle + d);
    } else if (i % 4 == 2) { /* near multiples */
        y = any_number(least, most - 12);
        x = y * (double)in_range(1, 4000);
        x = i % 8 == 2 ? x : nextafter(x, 0.0);
    }
    math_rig_put(&rig, 0, i, x);
    math_rig_put(&rig, 1, i, y);
}

START_TEST(remainders)
{
    state = 42;
    math_rig_open(&rig, types[_i], 2, SAMPLES);
    rig.code = OP_REM;
    for (int64_t i = 0; i < SAMPLES; i++) {
        if (!put_special(i))
            put_remainder(i);
        want[i] = fmod(value(0, i), value(1, i));
    }
    check_paths(want);
    math_rig_close(&rig);
}
END_TEST

static double fused(double x, double y, double z)
{
    return narrow() ? (double)fmaf((float)x, (float)y, (float)z) : fma(x, y, z);
}

static void put_fma(int64_t i)
{
    int least = narrow() ? -149 : -1074, most = narrow() ? 127 : 1023, spread = narrow() ? 60 : 130;
    int e = (int)in_range(least / 2, most / 2 - 1);
    double x = any_number(e, e), y = any_number(e, e), z;

    if (i % 4 == 0) {
        x = any_bits();
        y = any_bits();
        z = any_bits();
    } else if (i % 4 == 1) { /* what rounding the product lost */
        z = -fused(x, y, 0.0);
        z = i % 8 == 1 ? z : nextafter(z, 0.0);
    } else if (i % 4 == 2) { /* subnormal results */
        x = any_number(least / 2 - 3, least / 2 + 3);
        y = any_number(least / 2 - 3, least / 2 + 3);
        z = in_range(0, 3) ? any_number(least, least + 8) : 0.0;
    } else { /* addends around the product, up to where they no longer meet */
        int at = 2 * e + (int)in_range(-spread, spread);
        at = at < least ? least : at > most ? most : at;
        z = any_number(at, at);
    }
    math_rig_put(&rig, 0, i, x);
    math_rig_put(&rig, 1, i, y);
    math_rig_put(&rig, 2, i, z);
}

START_TEST(fused_products)
{
    state = 42;
    math_rig_open(&rig, types[_i], 3, SAMPLES);
    rig.code = OP_FMA;
    for (int64_t i = 0; i < SAMPLES; i++) {
        if (!put_special(i))
            put_fma(i);
        want[i] = fused(value(0, i), value(1, i), value(2, i));
    }
    check_paths(want);
    math_rig_close(&rig);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("fma and remainders");
    TCase *t = tcase_create("exact");

    tcase_add_loop_test(t, remainders, 0, 2);
    tcase_add_loop_test(t, fused_products, 0, 2);
    tcase_set_timeout(t, 120);
    suite_add_tcase(s, t);
    return s;
}
