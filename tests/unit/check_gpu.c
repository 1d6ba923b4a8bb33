#include "compiler/schedule/gpu.h"
#include <check.h>

START_TEST(limits_of_capabilities_between_and_beyond)
{
    ck_assert_int_eq(gpu_limits_of(80).shared_per_block, 163 * 1024);
    ck_assert_int_eq(gpu_limits_of(89).shared_per_block, 99 * 1024);
    ck_assert_int_eq(gpu_limits_of(90).shared_per_block, 227 * 1024);
    ck_assert_int_eq(gpu_limits_of(88).capability, 87);
    ck_assert_int_eq(gpu_limits_of(103).capability, 100);
    ck_assert_int_eq(gpu_limits_of(999).capability, 120);
    ck_assert_int_eq(gpu_limits_of(70).capability, 80);
}
END_TEST

START_TEST(blocks_that_fit_a_multiprocessor)
{
    gpu_limits a100 = gpu_limits_of(80), ada = gpu_limits_of(89);

    ck_assert_int_eq(gpu_blocks_per_sm(&a100, 128, 255, 65536), 2);      /* registers and shared */
    ck_assert_int_eq(gpu_blocks_per_sm(&a100, 128, 255, 98304), 1);      /* shared */
    ck_assert_int_eq(gpu_blocks_per_sm(&a100, 128, 168, 49152), 3);      /* registers */
    ck_assert_int_eq(gpu_blocks_per_sm(&a100, 32, 32, 0), 32);           /* blocks */
    ck_assert_int_eq(gpu_blocks_per_sm(&ada, 256, 32, 0), 6);            /* threads */
    ck_assert_int_eq(gpu_blocks_per_sm(&ada, 128, 255, 101376), 1);
    ck_assert_int_eq(gpu_blocks_per_sm(&ada, 128, 255, 101377), 0);
    ck_assert_int_eq(gpu_blocks_per_sm(&ada, 2048, 16, 0), 0);
    ck_assert_int_eq(gpu_blocks_per_sm(&ada, 512, 255, 0), 0); /* 65536 registers do not do */
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("gpu");
    TCase *c = tcase_create("limits");

    tcase_add_test(c, limits_of_capabilities_between_and_beyond);
    tcase_add_test(c, blocks_that_fit_a_multiprocessor);
    suite_add_tcase(s, c);
    return s;
}
