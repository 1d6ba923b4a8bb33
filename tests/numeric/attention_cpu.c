/* attention_fwd on the best code path of this processor: every table, a fifth of the
 * cases (TW_TEST_LONG in the environment: every one). */
#include "tests/support/attention_tables.h"
#include <check.h>

static void (*const tables[])(num_subject *, int) = {
    attention_shapes,  attention_wide_heads, attention_offsets, attention_groups,
    attention_layouts, attention_blocks,     attention_empty,   attention_magnitudes,
    attention_schedules,
};

START_TEST(every_case)
{
    num_subject s;

    ck_assert(subject_open(&s, "cpu", NULL, "attention_fwd", 2000 + (uint64_t)_i));
    tables[_i](&s, num_thin(5));
    subject_close(&s);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("attention on the CPU");
    TCase *t = tcase_create("tables");

    tcase_add_loop_test(t, every_case, 0, sizeof tables / sizeof *tables);
    suite_add_tcase(s, t);
    return s;
}
