/* matmul, softmax and vector_add on the interpreter and on each code path of the CPU. */
#include "tests/support/kernel_tables.h"
#include <check.h>

static const struct {
    const char *spec, *target;
    int thin;
} device[] = {
    {"interp", NULL, 5},          {"cpu", NULL, 1},          {"cpu:1", "cpu-avx512", 4},
    {"cpu:1", "cpu-avx2", 4}, {"cpu:1", "cpu-generic", 4},
};
enum { DEVICES = sizeof device / sizeof *device };

static void run(int i, const char *name, void (*table)(num_subject *, int))
{
    num_subject s;

    if (!subject_open(&s, device[i].spec, device[i].target, name, 4000 + (uint64_t)i))
        return;
    table(&s, device[i].thin);
    subject_close(&s);
}

START_TEST(matmul)
{
    run(_i, "matmul", matmul_table);
}
END_TEST

START_TEST(softmax)
{
    run(_i, "softmax", softmax_table);
}
END_TEST

START_TEST(vector_add)
{
    run(_i, "vector_add", vector_add_table);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("kernels");
    TCase *t = tcase_create("everywhere");

    tcase_add_loop_test(t, matmul, 0, DEVICES);
    tcase_add_loop_test(t, softmax, 0, DEVICES);
    tcase_add_loop_test(t, vector_add, 0, DEVICES);
    suite_add_tcase(s, t);
    return s;
}
