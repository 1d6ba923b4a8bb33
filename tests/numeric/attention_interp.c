/* attention_fwd on the interpreter: a part of the tables, with both extremes of running_max. */
#include "tests/support/attention_tables.h"
#include <check.h>

static void (*const tables[])(num_subject *, int) = {
    attention_shapes,  attention_wide_heads, attention_offsets, attention_groups,
    attention_layouts, attention_blocks,     attention_empty,   attention_magnitudes,
};
static const int thin[] = {7, 5, 3, 2, 2, 3, 1, 1};

static void run(int i, bool f64, bool low)
{
    num_subject s;

    ck_assert(subject_open(&s, "interp", NULL, "attention_fwd", 1000 + (uint64_t)i));
    s.options.f64 = f64;
    s.options.running_max_low = low;
    tables[i](&s, num_thin(thin[i]));
    subject_close(&s);
}

START_TEST(rounding_each_op)
{
    run(_i, false, false);
}
END_TEST

START_TEST(rounding_each_op_and_lowest_running_max)
{
    run(_i, false, true);
}
END_TEST

START_TEST(in_f64)
{
    run(_i, true, false);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("attention on the interpreter");
    TCase *t = tcase_create("tables");
    int n = sizeof tables / sizeof *tables;

    tcase_add_loop_test(t, rounding_each_op, 0, n);
    tcase_add_loop_test(t, rounding_each_op_and_lowest_running_max, 0, n);
    tcase_add_loop_test(t, in_f64, 0, n);
    suite_add_tcase(s, t);
    return s;
}
