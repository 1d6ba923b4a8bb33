#include "compiler/base/mem.h"
#include "compiler/ir/type.h"
#include <check.h>

static arena a;

static void setup(void)
{
    arena_init(&a);
}

static void teardown(void)
{
    arena_release(&a);
    ck_assert_int_eq(mem_live(), 0);
}

START_TEST(every_dtype_reads_back)
{
    for (int t = 0; t < DT_COUNT; t++)
        ck_assert_int_eq(dtype_parse(dtype_name((enum dtype)t)), t);
    ck_assert_int_eq(dtype_parse("f33"), DT_NONE);
    ck_assert_int_eq(dtype_parse(""), DT_NONE);
}
END_TEST

START_TEST(sizes_and_kinds)
{
    ck_assert_int_eq(dtype_bits(DT_I1), 1);
    ck_assert_int_eq(dtype_bytes(DT_I1), 1);
    ck_assert_int_eq(dtype_bytes(DT_BF16), 2);
    ck_assert_int_eq(dtype_bytes(DT_U64), 8);
    ck_assert(dtype_is_float(DT_BF16) && !dtype_is_int(DT_BF16));
    ck_assert(dtype_is_int(DT_U8) && !dtype_is_float(DT_U8));
    ck_assert(!dtype_is_int(DT_I1) && !dtype_is_float(DT_I1));
    ck_assert_int_eq(dtype_accumulator(DT_F16), DT_F32);
    ck_assert_int_eq(dtype_accumulator(DT_F32), DT_F32);
    ck_assert_int_eq(dtype_accumulator(DT_F64), DT_F64);
    ck_assert_int_eq(dtype_accumulator(DT_I8), DT_I32);
}
END_TEST

START_TEST(types_print_as_written)
{
    int32_t shape[] = {64, 128};
    ir_type buffer = {.kind = TYPE_BUFFER, .dtype = DT_F32, .rank = 3, .shape = {2, 64, 64}};

    ck_assert_str_eq(type_text(&a, type_scalar(DT_F32)), "f32");
    ck_assert_str_eq(type_text(&a, type_tile(DT_BF16, 2, shape)), "bf16[64, 128]");
    ck_assert_str_eq(type_text(&a, type_tile(DT_I1, 1, shape)), "i1[64]");
    ck_assert_str_eq(type_text(&a, type_view(DT_F16, 4)), "view<f16, 4>");
    ck_assert_str_eq(type_text(&a, buffer), "buf<f32, [2, 64, 64]>");
    ck_assert_str_eq(type_text(&a, (ir_type){.kind = TYPE_MBAR}), "mbar");
    ck_assert_str_eq(type_text(&a, (ir_type){0}), "none");
}
END_TEST

START_TEST(equality_looks_at_everything)
{
    int32_t shape[] = {64, 128}, other[] = {64, 64};
    ir_type t = type_tile(DT_F32, 2, shape), u = t;

    ck_assert(type_equal(t, u));
    u.layout = 1;
    ck_assert(!type_equal(t, u) && type_same_shape(t, u));
    ck_assert(!type_equal(t, type_tile(DT_F32, 2, other)));
    ck_assert(!type_equal(t, type_tile(DT_F32, 1, shape)));
    ck_assert(!type_equal(t, type_with_dtype(t, DT_F16)));
    ck_assert(type_same_shape(t, type_with_dtype(t, DT_F16)));
    ck_assert(!type_same_shape(type_scalar(DT_F32), type_tile(DT_F32, 1, shape)));
    ck_assert(type_equal(type_view(DT_F32, 2), type_view(DT_F32, 2)));
    ck_assert(!type_equal(type_view(DT_F32, 2), type_view(DT_F32, 3)));
}
END_TEST

START_TEST(shapes_past_the_rank_do_not_count)
{
    int32_t shape[] = {8, 8};
    ir_type t = type_tile(DT_F32, 1, shape), u = t;

    u.shape[1] = 77;
    ck_assert(type_equal(t, u));
}
END_TEST

START_TEST(elements)
{
    int32_t shape[] = {3, 5, 7, 2};

    ck_assert_int_eq(type_elements(type_scalar(DT_F32)), 1);
    ck_assert_int_eq(type_elements(type_tile(DT_F32, 4, shape)), 210);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("type");
    TCase *tc = tcase_create("type");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, every_dtype_reads_back);
    tcase_add_test(tc, sizes_and_kinds);
    tcase_add_test(tc, types_print_as_written);
    tcase_add_test(tc, equality_looks_at_everything);
    tcase_add_test(tc, shapes_past_the_rank_do_not_count);
    tcase_add_test(tc, elements);
    suite_add_tcase(s, tc);
    return s;
}
