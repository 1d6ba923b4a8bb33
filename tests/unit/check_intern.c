#include "compiler/base/guard.h"
#include "compiler/base/intern.h"
#include "compiler/base/mem.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

static arena a;
static intern t;

static void setup(void)
{
    arena_init(&a);
    intern_init(&t, &a);
}

static void teardown(void)
{
    arena_release(&a);
    ck_assert_int_eq(mem_live(), 0);
}

START_TEST(one_address_per_spelling)
{
    char copy[] = "BLOCK_M";
    const char *one = intern_str(&t, "BLOCK_M");

    ck_assert_ptr_ne(one, copy);
    ck_assert_ptr_eq(one, intern_str(&t, copy));
    ck_assert_ptr_eq(one, intern_mem(&t, "BLOCK_MN", 7));
    ck_assert_ptr_ne(one, intern_str(&t, "BLOCK_N"));
    ck_assert_ptr_ne(one, intern_str(&t, "BLOCK_"));
    ck_assert_str_eq(one, "BLOCK_M");
    ck_assert_str_eq(intern_str(&t, ""), "");
    ck_assert_ptr_eq(intern_str(&t, ""), intern_mem(&t, "x", 0));
}
END_TEST

START_TEST(addresses_outlive_growth)
{
    const char *first[2000];
    char name[16];

    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "v%d", i);
        first[i] = intern_str(&t, name);
    }
    ck_assert_uint_eq(t.n, 2000);
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "v%d", i);
        ck_assert_ptr_eq(intern_str(&t, name), first[i]);
        ck_assert_str_eq(first[i], name);
    }
    ck_assert_uint_eq(t.n, 2000);
}
END_TEST

static tw_status many_names(void *arg)
{
    char name[16];

    (void)arg;
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "v%d", i);
        intern_str(&t, name);
    }
    return TW_OK;
}

START_TEST(out_of_memory_throws)
{
    mem_fail_after(2);
    ck_assert_int_eq(guard_run(many_names, NULL), TW_E_NOMEM);
    mem_fail_after(0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("intern");
    TCase *tc = tcase_create("intern");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, one_address_per_spelling);
    tcase_add_test(tc, addresses_outlive_growth);
    tcase_add_test(tc, out_of_memory_throws);
    suite_add_tcase(s, tc);
    return s;
}
