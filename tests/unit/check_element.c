#include "compiler/ir/element.h"
#include <check.h>
#include <math.h>
#include <string.h>

/* What the bits of a narrow float say, by the definition of IEEE 754. */
static double value_of(unsigned bits, int fraction_bits, int bias)
{
    int exponent = (int)(bits & 0x7fff) >> fraction_bits;
    int fraction = (int)bits & ((1 << fraction_bits) - 1);
    double v;

    if (exponent == 2 * bias + 1)
        v = fraction ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        v = ldexp(fraction, 1 - bias - fraction_bits);
    else
        v = ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
    return bits >> 15 ? -v : v;
}

static void check_all_bits(enum dtype t, int fraction_bits, int bias)
{
    for (unsigned i = 0; i < 0x10000; i++) {
        double want = value_of(i, fraction_bits, bias);
        uint16_t bits = (uint16_t)i, back = 0;
        ir_scalar v = element_read(t, &bits);

        element_write(t, &back, v);
        if (isnan(want)) {
            ck_assert(isnan(v.f));
            ck_assert(isnan(value_of(back, fraction_bits, bias)));
            continue;
        }
        ck_assert_double_eq(v.f, want);
        ck_assert_uint_eq(back, bits);
    }
}

START_TEST(two_byte_floats)
{
    check_all_bits(DT_F16, 10, 15);
    check_all_bits(DT_BF16, 7, 127);
}
END_TEST

START_TEST(floats_are_rounded)
{
    uint16_t half = 0;
    float single = 0.0f;

    element_write(DT_F16, &half, (ir_scalar){.f = 1.0 + 0x1p-12});
    ck_assert_uint_eq(half, 0x3c00);
    element_write(DT_BF16, &half, (ir_scalar){.f = 1.0 + 0x1.8p-8});
    ck_assert_uint_eq(half, 0x3f81);
    element_write(DT_F32, &single, (ir_scalar){.f = 1.0 + 0x1p-30});
    ck_assert_float_eq(single, 1.0f);
}
END_TEST

/* Bytes beyond the element stay as they are, whatever its address. */
START_TEST(integers_and_where_they_lie)
{
    const struct {
        enum dtype t;
        int64_t put, got;
    } row[] = {{DT_I1, 1, 1},        {DT_I1, 0, 0},           {DT_I8, 0x1ff, -1},
               {DT_U8, 0x1ff, 255},  {DT_I16, 0x8000, -32768}, {DT_U16, 0x8000, 32768},
               {DT_I32, -2, -2},     {DT_U32, -2, 0xfffffffe}, {DT_I64, INT64_MIN, INT64_MIN},
               {DT_U64, -1, -1}};

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        unsigned char block[16];
        size_t n = (size_t)dtype_bytes(row[i].t);

        memset(block, 0xa5, sizeof block);
        element_write(row[i].t, block + 1, (ir_scalar){.i = row[i].put});
        ck_assert_int_eq(element_read(row[i].t, block + 1).i, row[i].got);
        ck_assert_uint_eq(block[0], 0xa5);
        ck_assert_uint_eq(block[n + 1], 0xa5);
    }
    unsigned char truth = 7;
    ck_assert_int_eq(element_read(DT_I1, &truth).i, 1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("element");
    TCase *t = tcase_create("element");

    tcase_add_test(t, two_byte_floats);
    tcase_add_test(t, floats_are_rounded);
    tcase_add_test(t, integers_and_where_they_lie);
    suite_add_tcase(s, t);
    return s;
}
