/* attention_fwd of f16 and bf16: a part of the tables, with both extremes of running_max on the
 * interpreter, and on each path of the CPU. There compiles take nearly all the time, and a case at
 * the other end of its memory, aligned otherwise, is another: cases lie at the end and the start in
 * turn, those of bf16 the other way round than those of f16 (TW_TEST_LONG: each at both). */
#include "tests/support/attention_tables.h"
#include <check.h>
#include <string.h>

static void (*const tables[])(num_subject *, int) = {
    attention_shapes,  attention_wide_heads, attention_offsets, attention_groups,
    attention_layouts, attention_blocks,     attention_empty,   attention_magnitudes,
};
static const int thin[] = {9, 7, 5, 3, 3, 5, 2, 1};
static const char *const types[] = {"f16", "bf16"};

static const struct {
    const char *spec, *target;
    bool low;
    int thin; /* of the tables, beyond what they are thinned to anyway */
    const char *schedule; /* of bf16 alone */
} device[] = {
    {"interp", NULL, false, 1, NULL},
    {"interp", NULL, true, 2, NULL},
    {"cpu", NULL, false, 5, NULL},
    {"cpu:2", "cpu-avx512", false, 10, NULL},
    {"cpu:2", "cpu-avx2", false, 10, NULL},
    {"cpu:2", "cpu-generic", false, 10, NULL},
    {"cpu:2", "cpu-avx512-bf16", false, 9, "pack=1"},
    {"cpu:2", "cpu-amx", false, 9, "pack=1"},
};
enum { DEVICES = sizeof device / sizeof *device, TABLES = sizeof tables / sizeof *tables };

START_TEST(a_part_of_the_cases)
{
    int type = _i % 2, d = _i / 2 % DEVICES, table = _i / 2 / DEVICES;
    num_subject s;

    if (device[d].schedule && type == 0)
        return;
    if (!subject_open(&s, device[d].spec, device[d].target, "attention_fwd", 5000 + (uint64_t)_i))
        return;
    s.options.running_max_low = device[d].low;
    s.type = types[type];
    s.schedule = device[d].schedule;
    s.turn = strcmp(device[d].spec, "interp") && num_thin(2) > 1 ? 1 + type : 0;
    tables[table](&s, num_thin(thin[table] * device[d].thin));
    subject_close(&s);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("attention of 16 bits");
    TCase *t = tcase_create("tables");

    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, a_part_of_the_cases, 0, 2 * DEVICES * TABLES);
    suite_add_tcase(s, t);
    return s;
}
