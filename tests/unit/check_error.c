#include "compiler/base/check.h"
#include "compiler/base/error.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include <check.h>
#include <pthread.h>
#include <string.h>

static void teardown(void)
{
    mem_fail_after(0);
    error_clear();
    ck_assert_int_eq(mem_live(), 0);
}

START_TEST(no_error_is_ok_and_empty)
{
    ck_assert_int_eq(tw_last_error()->status, TW_OK);
    ck_assert_str_eq(tw_last_error()->text, "");
    ck_assert_uint_eq(tw_last_error()->diagnostic_count, 0);
}
END_TEST

START_TEST(short_text_allocates_nothing)
{
    mem_fail_after(1);
    ck_assert_int_eq(error_set(TW_E_IO, "%s: %s", "q.npy", "no such file"), TW_E_IO);
    ck_assert_str_eq(tw_last_error()->text, "q.npy: no such file");
    ck_assert_int_eq(tw_last_error()->status, TW_E_IO);
    error_clear();
    ck_assert_str_eq(tw_last_error()->text, "");
}
END_TEST

START_TEST(long_text_is_whole_or_cut_without_memory)
{
    error_set(TW_E_ARG, "%*s", 5000, "end");
    ck_assert_uint_eq(strlen(tw_last_error()->text), 5000);
    mem_fail_after(1);
    error_set(TW_E_ARG, "start%*s", 5000, "end");
    ck_assert_int_eq(tw_last_error()->status, TW_E_ARG);
    ck_assert_ptr_eq(strstr(tw_last_error()->text, "start"), tw_last_error()->text);
    ck_assert_uint_gt(strlen(tw_last_error()->text), 100);
}
END_TEST

START_TEST(the_old_text_may_be_part_of_the_new)
{
    error_set(TW_E_IO, "inner");
    error_set(TW_E_STORE, "outer: %s", tw_last_error()->text);
    ck_assert_str_eq(tw_last_error()->text, "outer: inner");
    error_set(TW_E_IO, "%*s", 3000, "inner");
    error_set(TW_E_STORE, "outer: %s", tw_last_error()->text);
    ck_assert_uint_eq(strlen(tw_last_error()->text), 3007);
}
END_TEST

START_TEST(one_diagnostic_of_a_call)
{
    mem_fail_after(1);
    ck_assert_int_eq(
        error_diag(TW_E_ARG, DIAG_BAD_ARGUMENT, "pass 4 dimensions", "'%s' has rank %d", "q", 3),
        TW_E_ARG);
    const tw_error *e = tw_last_error();
    ck_assert_str_eq(e->text, "error: 'q' has rank 3 [bad-argument]\n"
                              "      = hint: pass 4 dimensions");
    ck_assert_uint_eq(e->diagnostic_count, 1);
    ck_assert_str_eq(e->diagnostics[0].id, "bad-argument");
    ck_assert_str_eq(e->diagnostics[0].text, "'q' has rank 3");
    ck_assert_str_eq(e->diagnostics[0].hint, "pass 4 dimensions");
    ck_assert_ptr_null(e->diagnostics[0].file);
    error_diag(TW_E_ARG, DIAG_BAD_ARGUMENT, NULL, "no hint");
    ck_assert_str_eq(e->text, "error: no hint [bad-argument]");
    ck_assert_ptr_null(e->diagnostics[0].hint);
}
END_TEST

static diag_list two_mistakes(arena *a)
{
    source *s = source_new(a, "k.tw", "one two\nthree", 13);
    diag_list l;

    diag_init(&l, a);
    diag_add(&l, DIAG_SYNTAX, (span){s, 8, 13}, "second");
    diag_hint(&l, diag_add(&l, DIAG_SHADOWED_NAME, (span){s, 4, 7}, "first"), "why");
    return l;
}

START_TEST(diagnostics_outlive_the_compile)
{
    arena a;

    arena_init(&a);
    diag_list l = two_mistakes(&a);
    ck_assert_int_eq(error_set_diags(TW_E_SOURCE, &l), TW_E_SOURCE);
    arena_release(&a);
    const tw_error *e = tw_last_error();
    ck_assert_uint_eq(e->diagnostic_count, 2);
    const tw_diagnostic *first = &e->diagnostics[0], *second = &e->diagnostics[1];
    ck_assert(first->is_warning && !second->is_warning);
    ck_assert_str_eq(first->file, "k.tw");
    ck_assert_int_eq(first->line, 1);
    ck_assert_int_eq(first->column, 5);
    ck_assert_str_eq(first->hint, "why");
    ck_assert_int_eq(second->line, 2);
    ck_assert_str_eq(second->id, "syntax");
    ck_assert_str_eq(second->text, "second");
    ck_assert_ptr_nonnull(strstr(e->text, "k.tw:2:1: error: second [syntax]\n"));
    ck_assert_int_ne(e->text[strlen(e->text) - 1], '\n');
}
END_TEST

START_TEST(diagnostics_without_memory_leave_a_text)
{
    for (long n = 1; n < 3; n++) {
        arena a;
        arena_init(&a);
        diag_list l = two_mistakes(&a);
        mem_fail_after(n);
        error_set_diags(TW_E_SOURCE, &l);
        mem_fail_after(0);
        arena_release(&a);
        ck_assert_int_eq(tw_last_error()->status, TW_E_SOURCE);
        ck_assert_uint_gt(strlen(tw_last_error()->text), 4);
        error_clear();
        ck_assert_int_eq(mem_live(), 0);
    }
}
END_TEST

static tw_status throw_nomem(void *arg)
{
    (void)arg;
    guard_throw(TW_E_NOMEM);
    return TW_OK;
}

START_TEST(a_thrown_status_gets_a_text)
{
    error_set(TW_E_IO, "an older failure");
    ck_assert_int_eq(error_thrown(guard_run(throw_nomem, NULL)), TW_E_NOMEM);
    ck_assert_str_eq(tw_last_error()->text, "out of memory");
    error_set(TW_E_LIMIT, "a tile of 2^20 elements");
    error_thrown(TW_E_LIMIT);
    ck_assert_str_eq(tw_last_error()->text, "a tile of 2^20 elements");
    ck_assert_int_eq(error_thrown(TW_OK), TW_OK);
}
END_TEST

static void *fail_in_thread(void *arg)
{
    ck_assert_str_eq(tw_last_error()->text, "");
    error_set(TW_E_DEVICE, "%*s", 2000, "of the thread");
    *(size_t *)arg = strlen(tw_last_error()->text);
    return NULL;
}

START_TEST(each_thread_has_its_own_and_frees_it)
{
    pthread_t thread;
    size_t length = 0;

    error_set(TW_E_ARG, "of main");
    ck_assert_int_eq(pthread_create(&thread, NULL, fail_in_thread, &length), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_eq(length, 2000);
    ck_assert_str_eq(tw_last_error()->text, "of main");
    ck_assert_int_eq(mem_live(), 0);
}
END_TEST

START_TEST(statuses_and_layers_have_texts)
{
    ck_assert_str_eq(tw_version(), "0.1.0");
    ck_assert_str_eq(tw_status_name(TW_OK), "OK");
    ck_assert_str_eq(tw_status_name(TW_E_SOURCE), "E_SOURCE");
    ck_assert_str_eq(tw_status_meaning(TW_E_NOMEM), "out of memory");
    ck_assert_int_eq(tw_status_exit_code(TW_OK), 0);
    ck_assert_int_eq(tw_status_exit_code(TW_E_INTERNAL), 70);
    ck_assert_str_eq(tw_status_name((tw_status)99), "E_INTERNAL");
    ck_assert_str_eq(tw_layer_text(TW_LAYER_DEFAULT), "the kernel's default");
    ck_assert_str_eq(tw_layer_text((tw_layer)99), "unknown");
    tw_free(NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("error");
    TCase *t = tcase_create("error");

    tcase_add_checked_fixture(t, NULL, teardown);
    tcase_add_test(t, no_error_is_ok_and_empty);
    tcase_add_test(t, short_text_allocates_nothing);
    tcase_add_test(t, long_text_is_whole_or_cut_without_memory);
    tcase_add_test(t, the_old_text_may_be_part_of_the_new);
    tcase_add_test(t, one_diagnostic_of_a_call);
    tcase_add_test(t, diagnostics_outlive_the_compile);
    tcase_add_test(t, diagnostics_without_memory_leave_a_text);
    tcase_add_test(t, a_thrown_status_gets_a_text);
    tcase_add_test(t, each_thread_has_its_own_and_frees_it);
    tcase_add_test(t, statuses_and_layers_have_texts);
    suite_add_tcase(s, t);
    return s;
}
