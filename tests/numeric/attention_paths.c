/* attention_fwd on each code path of the CPU that this machine can run: a part of the tables. */
#include "tests/support/attention_tables.h"
#include <check.h>

static const char *const paths[] = {"cpu-avx512", "cpu-avx2", "cpu-generic"};

START_TEST(a_part_of_the_cases)
{
    num_subject s;

    if (!subject_open(&s, "cpu:2", paths[_i], "attention_fwd", 3000 + (uint64_t)_i))
        return;
    attention_shapes(&s, 11);
    attention_wide_heads(&s, 5);
    attention_offsets(&s, 7);
    attention_groups(&s, 3);
    attention_layouts(&s, 5);
    attention_blocks(&s, 5);
    attention_empty(&s, 3);
    attention_magnitudes(&s, 3);
    subject_close(&s);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("attention on each path of the CPU");
    TCase *t = tcase_create("tables");

    tcase_add_loop_test(t, a_part_of_the_cases, 0, sizeof paths / sizeof *paths);
    suite_add_tcase(s, t);
    return s;
}
