/* attention_fwd on each code path of the CPU that this machine can run: a part of the tables. */
#include "tests/support/attention_tables.h"
#include <check.h>

static const char *const paths[] = {"cpu-avx512", "cpu-avx2", "cpu-generic"};

START_TEST(a_part_of_the_cases)
{
    num_subject s;

    if (!subject_open(&s, "cpu:2", paths[_i], "attention_fwd", 3000 + (uint64_t)_i))
        return;
    attention_shapes(&s, num_thin(35));
    attention_wide_heads(&s, num_thin(13));
    attention_offsets(&s, num_thin(15));
    attention_groups(&s, num_thin(7));
    attention_layouts(&s, num_thin(11));
    attention_blocks(&s, num_thin(11));
    attention_empty(&s, num_thin(7));
    attention_magnitudes(&s, num_thin(7));
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
