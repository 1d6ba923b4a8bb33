/* tw_store_query, tw_store_export, tw_store_import, tw_store_prune: arguments and sizes of structs;
 * what they do is tested in check_storemove.c. */
#include "tests/support/store_fixture.h"
#include "tilewright.h"
#include <check.h>
#include <string.h>
#include <unistd.h>

static tw_context *open_context(const char *path)
{
    tw_config cfg = TW_CONFIG_INIT;
    tw_context *cx = NULL;

    cfg.store_path = path;
    ck_assert_int_eq(tw_context_create(&cfg, &cx), TW_OK);
    return cx;
}

START_TEST(a_store_says_where_it_is)
{
    tw_context *cx = open_context(fixture_path);
    tw_store_info info = TW_STORE_INFO_INIT;

    ck_assert_int_eq(tw_store_query(cx, &info), TW_OK);
    ck_assert_str_eq(info.path, fixture_path);
    ck_assert(info.reads && info.writes && !info.why && info.bytes > 0);
    tw_context_destroy(cx);
    cx = open_context(NULL);
    ck_assert_int_eq(tw_store_query(cx, &info), TW_OK);
    ck_assert(!info.path && !info.reads && !info.writes && !info.why && info.bytes == 0);
    tw_context_destroy(cx);
    cx = open_context("/dev/full");
    ck_assert_int_eq(tw_store_query(cx, &info), TW_OK);
    ck_assert(!info.reads && !info.writes);
    ck_assert_ptr_nonnull(info.why);
    tw_context_destroy(cx);
}
END_TEST

START_TEST(arguments_are_checked)
{
    tw_context *cx = open_context(fixture_path);
    tw_prune_options prune = TW_PRUNE_OPTIONS_INIT;
    tw_store_counts counts = TW_STORE_COUNTS_INIT;
    tw_store_info info = {0};

    ck_assert_int_eq(tw_store_query(NULL, &info), TW_E_ARG);
    ck_assert_int_eq(tw_store_query(cx, NULL), TW_E_ARG);
    ck_assert_int_eq(tw_store_query(cx, &info), TW_E_ARG); /* no size */
    ck_assert_int_eq(tw_store_export(cx, NULL, false, NULL), TW_E_ARG);
    ck_assert_int_eq(tw_store_export(NULL, "x", false, NULL), TW_E_ARG);
    ck_assert_int_eq(tw_store_import(cx, NULL, false, NULL), TW_E_ARG);
    ck_assert_int_eq(tw_store_import(NULL, "x", false, NULL), TW_E_ARG);
    ck_assert_int_eq(tw_store_prune(NULL, NULL, NULL), TW_E_ARG);
    prune.older_s = -1.0;
    ck_assert_int_eq(tw_store_prune(cx, &prune, NULL), TW_E_ARG);
    prune.older_s = 0.0, prune.max_bytes = -1;
    ck_assert_int_eq(tw_store_prune(cx, &prune, NULL), TW_E_ARG);
    ck_assert_int_eq(tw_store_prune(cx, NULL, NULL), TW_OK);
    counts.size = 0;
    ck_assert_int_eq(tw_store_prune(cx, NULL, &counts), TW_E_ARG);
    tw_context_destroy(cx);
}
END_TEST

/* A caller built against a header whose structs were shorter. */
START_TEST(older_callers_get_what_they_know)
{
    tw_context *cx = open_context(fixture_path);
    tw_store_info info;

    memset(&info, 0x55, sizeof info);
    info.size = offsetof(tw_store_info, why);
    ck_assert_int_eq(tw_store_query(cx, &info), TW_OK);
    ck_assert_str_eq(info.path, fixture_path);
    ck_assert_int_eq(info.bytes, 0x5555555555555555);
    ck_assert_uint_eq(info.size, offsetof(tw_store_info, why));
    tw_context_destroy(cx);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("store_api");
    TCase *tc = tcase_create("store_api");

    tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
    tcase_add_test(tc, a_store_says_where_it_is);
    tcase_add_test(tc, arguments_are_checked);
    tcase_add_test(tc, older_callers_get_what_they_know);
    suite_add_tcase(s, tc);
    return s;
}
