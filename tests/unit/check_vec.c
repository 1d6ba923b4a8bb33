#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/base/vec.h"
#include <check.h>

static arena a;

static void setup(void)
{
    arena_init(&a);
}

static void teardown(void)
{
    arena_release(&a);
    ck_assert_int_eq(mem_live(), 0);
}

START_TEST(pushes_keep_order_and_yield_the_index)
{
    VEC(int) v = {0};

    for (int i = 0; i < 1000; i++)
        ck_assert_uint_eq(vec_push(&v, &a, i * 3), (unsigned)i);
    ck_assert_uint_eq(v.n, 1000);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(v.at[i], i * 3);
    ck_assert_int_eq(vec_last(&v), 2997);
}
END_TEST

START_TEST(an_element_may_be_pushed_again)
{
    VEC(int) v = {0};

    vec_push(&v, &a, 42);
    for (int i = 0; i < 100; i++)
        vec_push(&v, &a, v.at[0]);
    ck_assert_int_eq(vec_last(&v), 42);
}
END_TEST

START_TEST(reserve_keeps_what_is_there)
{
    VEC(double) v = {0};

    vec_push(&v, &a, 1.5);
    vec_reserve(&v, &a, 500);
    ck_assert_uint_ge(v.cap, 500);
    double *at = v.at;
    for (int i = 1; i < 500; i++)
        vec_push(&v, &a, i);
    ck_assert_ptr_eq(v.at, at);
    ck_assert(v.at[0] == 1.5 && v.at[499] == 499);
}
END_TEST

typedef struct wide {
    char bytes[40];
} wide;

START_TEST(structs)
{
    VEC(wide) v = {0};

    for (int i = 0; i < 50; i++) {
        wide w = {{(char)i}};
        vec_push(&v, &a, w);
    }
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(v.at[i].bytes[0], i);
}
END_TEST

static tw_status endless(void *arg)
{
    VEC(int) v = {0};

    for (int i = 0; i < 1 << 24; i++)
        vec_push(&v, (arena *)arg, i);
    return TW_OK;
}

START_TEST(out_of_memory_throws)
{
    mem_fail_after(4);
    ck_assert_int_eq(guard_run(endless, &a), TW_E_NOMEM);
    mem_fail_after(0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("vec");
    TCase *t = tcase_create("vec");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, pushes_keep_order_and_yield_the_index);
    tcase_add_test(t, an_element_may_be_pushed_again);
    tcase_add_test(t, reserve_keeps_what_is_there);
    tcase_add_test(t, structs);
    tcase_add_test(t, out_of_memory_throws);
    suite_add_tcase(s, t);
    return s;
}
