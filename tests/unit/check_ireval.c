#include "compiler/ir/ireval.h"
#include <check.h>
#include <math.h>

static int64_t int_op(enum ir_opcode code, enum dtype t, int64_t x, int64_t y)
{
    ir_scalar in[3] = {{.i = x}, {.i = y}, {.i = 0}};

    return eval_op(code, t, t, in, false).i;
}

static double float_op(enum ir_opcode code, enum dtype t, double x, double y, double z)
{
    ir_scalar in[3] = {{.f = x}, {.f = y}, {.f = z}};

    return eval_op(code, t, t, in, false).f;
}

static int64_t cast_to_int(enum dtype to, double x)
{
    ir_scalar in[3] = {{.f = x}};

    return eval_op(OP_CAST, DT_F64, to, in, false).i;
}

static double cast_int(enum dtype from, enum dtype to, int64_t x)
{
    ir_scalar in[3] = {{.i = x}};

    return eval_op(OP_CAST, from, to, in, false).f;
}

START_TEST(integers_wrap_at_their_width)
{
    ck_assert_int_eq(int_op(OP_ADD, DT_I8, 127, 1), -128);
    ck_assert_int_eq(int_op(OP_ADD, DT_U8, 255, 1), 0);
    ck_assert_int_eq(int_op(OP_SUB, DT_U16, 0, 1), 65535);
    ck_assert_int_eq(int_op(OP_MUL, DT_I32, 65536, 65536), 0);
    ck_assert_int_eq(int_op(OP_MUL, DT_I32, INT32_MAX, 2), -2);
    ck_assert_int_eq(int_op(OP_ADD, DT_I64, INT64_MAX, 1), INT64_MIN);
    ck_assert_int_eq(int_op(OP_NEG, DT_I16, -32768, 0), -32768);
    ck_assert_int_eq(int_op(OP_ABS, DT_I32, INT32_MIN, 0), INT32_MIN);
    ck_assert_int_eq(int_op(OP_ABS, DT_U8, 200, 0), 200);
    ck_assert_int_eq(int_op(OP_NEG, DT_U32, 1, 0), UINT32_MAX);
    ck_assert_int_eq(int_op(OP_NOT, DT_I1, 1, 0), 0);
    ck_assert_int_eq(int_op(OP_NOT, DT_I32, 0, 0), -1);
    ck_assert_int_eq(int_op(OP_NOT, DT_U8, 0, 0), 255);
}
END_TEST

START_TEST(division_never_traps)
{
    ck_assert_int_eq(int_op(OP_DIV, DT_I32, -7, 2), -3);
    ck_assert_int_eq(int_op(OP_REM, DT_I32, -7, 2), -1);
    ck_assert_int_eq(int_op(OP_DIV, DT_I32, 5, 0), 0);
    ck_assert_int_eq(int_op(OP_REM, DT_I32, 5, 0), 5);
    ck_assert_int_eq(int_op(OP_DIV, DT_I32, INT32_MIN, -1), INT32_MIN);
    ck_assert_int_eq(int_op(OP_REM, DT_I32, INT32_MIN, -1), 0);
    ck_assert_int_eq(int_op(OP_DIV, DT_I64, INT64_MIN, -1), INT64_MIN);
    ck_assert_int_eq(int_op(OP_REM, DT_I64, INT64_MIN, -1), 0);
    ck_assert_int_eq(int_op(OP_DIV, DT_U64, -1, 2), INT64_MAX);
    ck_assert_int_eq(int_op(OP_REM, DT_U64, -1, 10), 5);
    ck_assert_int_eq(int_op(OP_DIV, DT_I8, -128, -1), -128);
}
END_TEST

START_TEST(shifts_count_modulo_the_width)
{
    ck_assert_int_eq(int_op(OP_SHL, DT_I32, 1, 33), 2);
    ck_assert_int_eq(int_op(OP_SHL, DT_I32, 1, 31), INT32_MIN);
    ck_assert_int_eq(int_op(OP_SHL, DT_U8, 255, 4), 240);
    ck_assert_int_eq(int_op(OP_SHR, DT_I32, -8, 1), -4);
    ck_assert_int_eq(int_op(OP_SHR, DT_U32, UINT32_MAX, 31), 1);
    ck_assert_int_eq(int_op(OP_SHR, DT_I64, INT64_MIN, 63), -1);
    ck_assert_int_eq(int_op(OP_SHL, DT_I32, 1, -1), INT32_MIN);
}
END_TEST

START_TEST(order_depends_on_the_sign_of_the_type)
{
    ck_assert_int_eq(int_op(OP_CMP_LT, DT_I32, -1, 1), 1);
    ck_assert_int_eq(int_op(OP_CMP_LT, DT_U64, -1, 1), 0);
    ck_assert_int_eq(int_op(OP_CMP_LE, DT_I32, 3, 3), 1);
    ck_assert_int_eq(int_op(OP_MAX, DT_U64, -1, 1), -1);
    ck_assert_int_eq(int_op(OP_MIN, DT_I64, -1, 1), -1);
    ck_assert_int_eq(int_op(OP_CMP_EQ, DT_I1, 1, 1), 1);
    ck_assert_int_eq(int_op(OP_CMP_NE, DT_I1, 1, 1), 0);
}
END_TEST

/* Every value of an 8-bit type with every other, against 32-bit arithmetic. */
START_TEST(narrow_types_agree_with_wide_ones)
{
    static const enum ir_opcode code[] = {OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_REM,
                                          OP_MAX, OP_MIN, OP_AND, OP_OR,  OP_XOR};

    for (size_t i = 0; i < sizeof code / sizeof *code; i++) {
        for (int64_t x = -128; x < 128; x++) {
            for (int64_t y = -128; y < 128; y++) {
                int64_t wide = int_op(code[i], DT_I32, x, y);
                ck_assert_int_eq(int_op(code[i], DT_I8, x, y), (int8_t)wide);
                int64_t ux = (uint8_t)x, uy = (uint8_t)y;
                wide = int_op(code[i], DT_I32, ux, uy);
                ck_assert_int_eq(int_op(code[i], DT_U8, ux, uy), (uint8_t)wide);
            }
        }
    }
}
END_TEST

START_TEST(casts_to_integers_saturate)
{
    ck_assert_int_eq(cast_to_int(DT_I32, 2147483648.0), INT32_MAX);
    ck_assert_int_eq(cast_to_int(DT_I32, -1e30), INT32_MIN);
    ck_assert_int_eq(cast_to_int(DT_I32, (double)NAN), 0);
    ck_assert_int_eq(cast_to_int(DT_I32, -1.9), -1);
    ck_assert_int_eq(cast_to_int(DT_I64, 1e19), INT64_MAX);
    ck_assert_int_eq(cast_to_int(DT_I64, -1e19), INT64_MIN);
    ck_assert_int_eq(cast_to_int(DT_I8, 127.9), 127);
    ck_assert_int_eq(cast_to_int(DT_I8, -128.5), -128);
    ck_assert_int_eq(cast_to_int(DT_U8, -0.5), 0);
    ck_assert_int_eq(cast_to_int(DT_U8, 300.0), 255);
    ck_assert_int_eq(cast_to_int(DT_U64, 1e19), (int64_t)10000000000000000000u);
    ck_assert_int_eq(cast_to_int(DT_U64, (double)INFINITY), -1);
    ck_assert_int_eq(cast_to_int(DT_I1, 0.25), 1);
    ck_assert_int_eq(cast_to_int(DT_I1, -0.0), 0);
    ck_assert_int_eq(cast_to_int(DT_I1, (double)NAN), 1);
}
END_TEST

START_TEST(casts_between_integers_wrap)
{
    ir_scalar in[3] = {{.i = 300}};

    ck_assert_int_eq(eval_op(OP_CAST, DT_I32, DT_U8, in, false).i, 44);
    in[0].i = 200;
    ck_assert_int_eq(eval_op(OP_CAST, DT_U8, DT_I8, in, false).i, -56);
    in[0].i = -1;
    ck_assert_int_eq(eval_op(OP_CAST, DT_I32, DT_U32, in, false).i, UINT32_MAX);
    ck_assert_int_eq(eval_op(OP_CAST, DT_I32, DT_I1, in, false).i, 1);
}
END_TEST

START_TEST(casts_from_integers_round)
{
    /* Just above the middle of two floats; in double it would look like the middle. */
    ck_assert_double_eq(cast_int(DT_I64, DT_F32, 0x4000004000000001), 0x1.000002p62);
    ck_assert_double_eq(cast_int(DT_I64, DT_F32, -0x4000004000000001), -0x1.000002p62);
    /* To 16 bits through f32, which makes a middle of the first. */
    ck_assert_double_eq(cast_int(DT_I64, DT_BF16, 0x4040000000000001), 0x1p62);
    ck_assert_double_eq(cast_int(DT_I64, DT_BF16, 0x4040008000000000), 0x1.02p62);
    ir_scalar in[3] = {{.f = 0x1.01p0 + 0x1p-40}};
    ck_assert_double_eq(eval_op(OP_CAST, DT_F64, DT_BF16, in, false).f, 1.0);
    ck_assert_double_eq(cast_int(DT_U64, DT_F64, -1), 0x1p64);
    ck_assert_double_eq(cast_int(DT_I32, DT_F16, 65520), (double)INFINITY);
    ck_assert_double_eq(cast_int(DT_I32, DT_F16, 65519), 65504.0);
    ck_assert_double_eq(cast_int(DT_I1, DT_F32, 1), 1.0);
}
END_TEST

/* The value of a 16-bit pattern with `mantissa` bits after the point. */
static double pattern(unsigned bits, int mantissa)
{
    int bias = (1 << (14 - mantissa)) - 1;
    int exponent = (int)(bits >> mantissa);
    double fraction = bits & ((1u << mantissa) - 1);

    if (exponent == 0)
        return ldexp(fraction, 1 - bias - mantissa);
    return ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
}

/* Between each pair of neighbours: the middle goes to the even one, anything else to the nearer. */
static void check_rounding(enum dtype t, int mantissa)
{
    unsigned infinity = ((1u << (15 - mantissa)) - 1) << mantissa;

    for (unsigned u = 0; u + 1 < infinity; u++) {
        double lo = pattern(u, mantissa), hi = pattern(u + 1, mantissa), mid = (lo + hi) / 2;
        double even = u & 1 ? hi : lo;
        for (int sign = -1; sign <= 1; sign += 2) {
            ck_assert_double_eq(eval_round(t, (ir_scalar){.f = sign * lo}).f, sign * lo);
            ck_assert_double_eq(eval_round(t, (ir_scalar){.f = sign * mid}).f, sign * even);
            double below = nextafter(mid, lo), above = nextafter(mid, hi);
            ck_assert_double_eq(eval_round(t, (ir_scalar){.f = sign * below}).f, sign * lo);
            ck_assert_double_eq(eval_round(t, (ir_scalar){.f = sign * above}).f, sign * hi);
        }
    }
    double max = pattern(infinity - 1, mantissa), gap = max - pattern(infinity - 2, mantissa);
    ck_assert_double_eq(eval_round(t, (ir_scalar){.f = max + gap / 2}).f, (double)INFINITY);
    ck_assert_double_eq(eval_round(t, (ir_scalar){.f = nextafter(max + gap / 2, 0)}).f, max);
    ck_assert(isnan(eval_round(t, (ir_scalar){.f = (double)NAN}).f));
    ck_assert(signbit(eval_round(t, (ir_scalar){.f = -1e-300}).f));
}

START_TEST(f16_rounds_to_nearest_even)
{
    check_rounding(DT_F16, 10);
}
END_TEST

START_TEST(bf16_rounds_to_nearest_even)
{
    check_rounding(DT_BF16, 7);
}
END_TEST

START_TEST(f32_results_round_once)
{
    ck_assert_double_eq(float_op(OP_ADD, DT_F32, 1.0, 0x1p-24, 0), 1.0);
    ck_assert_double_eq(float_op(OP_ADD, DT_F64, 1.0, 0x1p-24, 0), 1.0 + 0x1p-24);
    ck_assert_double_eq(float_op(OP_MUL, DT_F32, 0x1p100, 0x1p100, 0), (double)INFINITY);
    ck_assert_double_eq(float_op(OP_DIV, DT_F32, 1.0, 3.0, 0), (double)(1.0f / 3.0f));
    ck_assert_double_eq(float_op(OP_RSQRT, DT_F32, 4.0, 0, 0), 0.5);
    ck_assert_double_eq(float_op(OP_EXP2, DT_F32, (double)-INFINITY, 0, 0), 0.0);
    ck_assert_double_eq(float_op(OP_FLOOR, DT_F32, -1.5, 0, 0), -2.0);
    ck_assert_double_eq(float_op(OP_TANH, DT_F32, 0.5, 0, 0), (double)(float)tanh(0.5));
    ck_assert_double_eq(float_op(OP_ERF, DT_F32, 0.5, 0, 0), (double)(float)erf(0.5));
    ck_assert_double_eq(float_op(OP_SIN, DT_F32, 0x1p26, 0, 0), (double)(float)sin(0x1p26));
    ck_assert(isnan(float_op(OP_COS, DT_F32, 0x1.000002p26, 0, 0)));
    ck_assert(isnan(float_op(OP_COS, DT_F64, 0x1p30, 0, 0)));
}
END_TEST

START_TEST(exact_keeps_double)
{
    ir_scalar in[3] = {{.f = 1.0}, {.f = 3.0}};

    ck_assert_double_eq(eval_op(OP_DIV, DT_F32, DT_F32, in, true).f, 1.0 / 3.0);
    in[0].f = 1.0 / 3.0;
    ck_assert_double_eq(eval_op(OP_CAST, DT_F32, DT_BF16, in, true).f, 1.0 / 3.0);
}
END_TEST

START_TEST(fma_rounds_once)
{
    /* of 16 bits: that of f32, then to 16 bits; 315 lies in the middle */
    ck_assert_double_eq(float_op(OP_FMA, DT_BF16, 15, 21, 0x1p-100), 316);
    ck_assert_double_eq(float_op(OP_FMA, DT_BF16, 15, 21, -0x1p-100), 316);
    ck_assert_double_eq(float_op(OP_FMA, DT_BF16, 15, 21, -0x1p-14), 314);
    ck_assert_double_eq(float_op(OP_FMA, DT_F16, 255, 257, 0x1p-12), (double)INFINITY);
    float e = 0x1p-13f;
    ck_assert_double_eq(float_op(OP_FMA, DT_F32, 1 + e, 1 + e, -1), (double)fmaf(1 + e, 1 + e, -1));
    ck_assert_double_eq(float_op(OP_FMA, DT_F64, 1 + 0x1p-40, 1 - 0x1p-40, -1), -0x1p-80);
}
END_TEST

START_TEST(remainders_of_floats_are_exact)
{
    double inf = (double)INFINITY;

    ck_assert_double_eq(float_op(OP_REM, DT_F32, -7.5, 2, 0), -1.5);
    ck_assert_double_eq(float_op(OP_REM, DT_F64, 0x1p1023, 3, 0), 2);
    ck_assert_double_eq(float_op(OP_REM, DT_F32, 0x1.8p-148, 0x1p-149, 0), 0);
    ck_assert_double_eq(float_op(OP_REM, DT_BF16, 0x1.84p100, 0x1.02p-100, 0),
                        fmod(0x1.84p100, 0x1.02p-100));
    ck_assert_double_eq(float_op(OP_REM, DT_F16, 5, inf, 0), 5);
    ck_assert(signbit(float_op(OP_REM, DT_F32, -4, 2, 0)));
    ck_assert_double_nan(float_op(OP_REM, DT_F32, 5, 0, 0));
    ck_assert_double_nan(float_op(OP_REM, DT_F32, -inf, 2, 0));
}
END_TEST

START_TEST(maximum_and_minimum_propagate_nan)
{
    double nan = (double)NAN, inf = (double)INFINITY;

    ck_assert(isnan(float_op(OP_MAX, DT_F32, nan, 1, 0)));
    ck_assert(isnan(float_op(OP_MAX, DT_F32, 1, nan, 0)));
    ck_assert(isnan(float_op(OP_MIN, DT_F32, nan, -inf, 0)));
    ck_assert_double_eq(float_op(OP_MAX, DT_F32, -inf, 1, 0), 1);
    ck_assert_double_eq(float_op(OP_MIN, DT_F32, inf, 1, 0), 1);
    ck_assert(!signbit(float_op(OP_MAX, DT_F32, -0.0, 0.0, 0)));
    ck_assert(signbit(float_op(OP_MIN, DT_F32, 0.0, -0.0, 0)));
    ck_assert_double_eq(float_op(OP_RUNNING_MAX, DT_F32, -inf, 3, 0), 3);
}
END_TEST

START_TEST(comparisons_with_nan_are_false_but_ne)
{
    ir_scalar in[3] = {{.f = (double)NAN}, {.f = 1.0}};

    ck_assert_int_eq(eval_op(OP_CMP_LT, DT_F32, DT_I1, in, false).i, 0);
    ck_assert_int_eq(eval_op(OP_CMP_LE, DT_F32, DT_I1, in, false).i, 0);
    ck_assert_int_eq(eval_op(OP_CMP_EQ, DT_F32, DT_I1, in, false).i, 0);
    ck_assert_int_eq(eval_op(OP_CMP_NE, DT_F32, DT_I1, in, false).i, 1);
    ir_scalar choice[3] = {{.i = 0}, {.f = 1.0}, {.f = 2.0}};
    ck_assert_double_eq(eval_op(OP_WHERE, DT_F32, DT_F32, choice, false).f, 2.0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("ireval");
    TCase *ints = tcase_create("integers"), *floats = tcase_create("floats");

    tcase_add_test(ints, integers_wrap_at_their_width);
    tcase_add_test(ints, division_never_traps);
    tcase_add_test(ints, shifts_count_modulo_the_width);
    tcase_add_test(ints, order_depends_on_the_sign_of_the_type);
    tcase_add_test(ints, narrow_types_agree_with_wide_ones);
    tcase_add_test(ints, casts_to_integers_saturate);
    tcase_add_test(ints, casts_between_integers_wrap);
    tcase_add_test(ints, casts_from_integers_round);
    tcase_add_test(floats, f16_rounds_to_nearest_even);
    tcase_add_test(floats, bf16_rounds_to_nearest_even);
    tcase_add_test(floats, f32_results_round_once);
    tcase_add_test(floats, exact_keeps_double);
    tcase_add_test(floats, fma_rounds_once);
    tcase_add_test(floats, remainders_of_floats_are_exact);
    tcase_add_test(floats, maximum_and_minimum_propagate_nan);
    tcase_add_test(floats, comparisons_with_nan_are_false_but_ne);
    suite_add_tcase(s, ints);
    suite_add_tcase(s, floats);
    return s;
}
