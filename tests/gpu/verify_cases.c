/* The rows of docs/CASES.md that a GPU sees, on a real one. On a machine with a GPU, in the root of
 * the project:
 *
 *   build-portable/tests/gpu/verify_cases                all rows, the device's own path
 *   TW_GPU_TARGET=sm_80 ...                              another path
 *   TW_GPU_THIN=2 ...                                    less of what takes long
 *   LD_LIBRARY_PATH=build/tests/software_gpu TW_GPU_THIN=2 ...      without a GPU
 *
 * Needs up to 10 GB of its memory at a time; what finds no room says so. */
#include "tests/support/gpu_cases.h"
#include <check.h>
#include <stdlib.h>

static const char *setting(const char *name, const char *usual)
{
    const char *given = getenv(name);

    return given && *given ? given : usual;
}

START_TEST(row)
{
    const gpu_place p = {setting("TW_GPU_DEVICE", "cuda"), setting("TW_GPU_TARGET", NULL),
                         atoi(setting("TW_GPU_THIN", "1")) == 1};

    num_say("%s %s\n", gpu_cases[_i].row, gpu_cases[_i].name);
    if (NUM_HUGE || !gpu_cases[_i].is_huge)
        gpu_cases[_i].run(&p);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("public cases on a GPU");
    TCase *t = tcase_create("rows");

    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, row, 0, gpu_cases_count);
    suite_add_tcase(s, t);
    return s;
}
