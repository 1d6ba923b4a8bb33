/* Random kernels on every code path of the CPU against the interpreter, bit by bit, also in checked
 * mode. TW_SEED and
 * TW_COUNT in the environment choose which and how many. */
#include "tests/support/random_run.h"
#include <check.h>
#include <stdlib.h>

enum { FIRST_SEED = 1, COUNT = 16 };

static const char *const paths[] = {NULL, "cpu-avx512", "cpu-avx2", "cpu-generic"};

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 0) : otherwise;
}

START_TEST(as_the_interpreter)
{
    uint64_t first = setting("TW_SEED", FIRST_SEED + (uint64_t)(_i * num_count(COUNT)));
    uint64_t n = setting("TW_COUNT", (uint64_t)num_count(COUNT));
    num_device oracle, d;
    int ran = 0, passed = 0, wrong = 0;

    if (!num_open(&d, "cpu:1", paths[_i]))
        return;
    ck_assert(num_open(&oracle, "interp", NULL));
    for (uint64_t seed = first; seed < first + n && wrong < 3; seed++) {
        for (int checked = 0; checked <= (seed % 4 == 0); checked++) {
            bool has_run;
            wrong += !random_compare(&oracle, &d, seed, checked, &has_run);
            ran += has_run && !checked;
            passed += has_run && checked;
        }
    }
    num_say("%s: %d kernels from seed %llu, %d of them hold when checked, %d wrong\n", d.label, ran,
            (unsigned long long)first, passed, wrong);
    num_close(&oracle);
    num_close(&d);
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_gt(ran, (int)n / 2);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("random kernels");
    TCase *t = tcase_create("bit by bit");

    tcase_add_loop_test(t, as_the_interpreter, 0, sizeof paths / sizeof *paths);
    suite_add_tcase(s, t);
    return s;
}
