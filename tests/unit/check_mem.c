#include "compiler/base/mem.h"
#include <check.h>
#include <stdint.h>
#include <string.h>

START_TEST(live_blocks_are_counted)
{
    long before = mem_live();
    void *a = mem_alloc(10), *b = mem_zalloc(0), *c = mem_alloc_aligned(64, 100);
    char *d = mem_strdup("text");
    void *e = mem_realloc(NULL, 5);

    ck_assert_int_eq(mem_live(), before + 5);
    e = mem_realloc(e, 5000);
    ck_assert_int_eq(mem_live(), before + 5);
    ck_assert_str_eq(d, "text");
    ck_assert_uint_eq((uintptr_t)c % 64, 0);
    mem_free(a), mem_free(b), mem_free(c), mem_free(d), mem_free(e), mem_free(NULL);
    ck_assert_int_eq(mem_live(), before);
}
END_TEST

START_TEST(zalloc_zeroes)
{
    static const char zeros[4096];
    char *p = mem_alloc(sizeof zeros);

    memset(p, 0xA5, sizeof zeros);
    mem_free(p);
    p = mem_zalloc(sizeof zeros);
    ck_assert_mem_eq(p, zeros, sizeof zeros);
    mem_free(p);
}
END_TEST

START_TEST(nth_allocation_fails_and_all_after)
{
    mem_fail_after(3);
    void *a = mem_alloc(1), *b = mem_alloc(1);
    ck_assert_ptr_nonnull(a);
    ck_assert_ptr_nonnull(b);
    ck_assert_ptr_null(mem_alloc(1));
    ck_assert_ptr_null(mem_zalloc(1));
    ck_assert_ptr_null(mem_alloc_aligned(16, 1));
    ck_assert_ptr_null(mem_strdup("x"));
    ck_assert_ptr_null(mem_realloc(a, 100)); /* a stays */
    mem_fail_after(0);
    a = mem_realloc(a, 100);
    ck_assert_ptr_nonnull(a);
    mem_free(a);
    mem_free(b);
    ck_assert_int_eq(mem_live(), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("mem");
    TCase *t = tcase_create("mem");

    tcase_add_test(t, live_blocks_are_counted);
    tcase_add_test(t, zalloc_zeroes);
    tcase_add_test(t, nth_allocation_fails_and_all_after);
    suite_add_tcase(s, t);
    return s;
}
