#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include <check.h>
#include <signal.h>
#include <string.h>

static tw_status returns(void *arg)
{
    ck_assert(guard_active());
    return *(tw_status *)arg;
}

static tw_status throws(void *arg)
{
    guard_throw(*(tw_status *)arg);
    ck_abort_msg("guard_throw came back");
    return TW_OK;
}

static tw_status catches_and_returns_limit(void *arg)
{
    tw_status inner = guard_run(throws, arg);

    ck_assert_int_eq(inner, *(tw_status *)arg);
    ck_assert(guard_active());
    return TW_E_LIMIT;
}

static tw_status catches_and_throws_again(void *arg)
{
    guard_throw(guard_run(throws, arg));
    return TW_OK;
}

START_TEST(status_is_passed_on)
{
    tw_status st = TW_E_SOURCE;

    ck_assert_int_eq(guard_run(returns, &st), TW_E_SOURCE);
    st = TW_OK;
    ck_assert_int_eq(guard_run(returns, &st), TW_OK);
    ck_assert(!guard_active());
}
END_TEST

START_TEST(throw_reaches_the_innermost)
{
    tw_status st = TW_E_NOMEM;

    ck_assert_int_eq(guard_run(throws, &st), TW_E_NOMEM);
    ck_assert_int_eq(guard_run(catches_and_returns_limit, &st), TW_E_LIMIT);
    ck_assert_int_eq(guard_run(catches_and_throws_again, &st), TW_E_NOMEM);
    ck_assert(!guard_active());
}
END_TEST

START_TEST(throwing_ok_is_a_bug_of_ours)
{
    tw_status st = TW_OK;

    ck_assert_int_eq(guard_run(throws, &st), TW_E_INTERNAL);
}
END_TEST

static tw_status breaks_a_fact(void *arg)
{
    ICHECK(arg == NULL, "the argument is NULL");
    return TW_OK;
}

#ifdef NDEBUG
START_TEST(broken_fact_is_named)
{
    int x;

    ck_assert_ptr_null(icheck_last());
    ck_assert_int_eq(guard_run(breaks_a_fact, NULL), TW_OK);
    ck_assert_int_eq(guard_run(breaks_a_fact, &x), TW_E_INTERNAL);
    ck_assert_ptr_nonnull(icheck_last());
    ck_assert_msg(strstr(icheck_last(), "the argument is NULL (check_guard.c:") == icheck_last(),
                  "%s", icheck_last());
}
END_TEST

START_TEST(throw_outside_returns)
{
    guard_throw(TW_E_NOMEM);
}
END_TEST
#else
START_TEST(broken_fact_aborts)
{
    int x;

    guard_run(breaks_a_fact, &x);
}
END_TEST

START_TEST(throw_outside_aborts)
{
    guard_throw(TW_E_NOMEM);
}
END_TEST
#endif

Suite *test_suite(void)
{
    Suite *s = suite_create("guard");
    TCase *t = tcase_create("guard");

    tcase_add_test(t, status_is_passed_on);
    tcase_add_test(t, throw_reaches_the_innermost);
    tcase_add_test(t, throwing_ok_is_a_bug_of_ours);
#ifdef NDEBUG
    tcase_add_test(t, broken_fact_is_named);
    tcase_add_test(t, throw_outside_returns);
#else
    tcase_add_test_raise_signal(t, broken_fact_aborts, SIGABRT);
    tcase_add_test_raise_signal(t, throw_outside_aborts, SIGABRT);
#endif
    suite_add_tcase(s, t);
    return s;
}
