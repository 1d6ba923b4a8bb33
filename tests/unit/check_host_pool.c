#include "compiler/base/mem.h"
#include "runtime/host/host_pool.h"
#include "tests/support/child.h"
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define N 10000

typedef struct tally {
    atomic_int seen[N];
    int64_t stop_at; /* -1: never */
} tally;

static int32_t count(const void *cx, int64_t lo, int64_t hi, void *scratch)
{
    tally *t = (tally *)cx; /* the pool passes on what the caller may write */
    int64_t *mine = scratch;

    for (int64_t i = lo; i < hi; i++) {
        mine[0] = i;
        atomic_fetch_add(&t->seen[i], 1);
        if (mine[0] != i)
            return 99; /* somebody else wrote to this thread's scratch */
        if (i == t->stop_at)
            return 7;
    }
    return 0;
}

static int wrong_counts(tally *t, int64_t total)
{
    int wrong = 0;

    for (int64_t i = 0; i < N; i++)
        wrong += atomic_load(&t->seen[i]) != (i < total);
    return wrong;
}

static void run_once(host_pool *p, tally *t, int64_t total, int threads)
{
    pool_job job = {count, t, total, 4096};
    int32_t code = -1;

    memset(t, 0, sizeof *t);
    t->stop_at = -1;
    ck_assert_int_eq(pool_run(p, &job, threads, &code), TW_OK);
    ck_assert_int_eq(code, 0);
    ck_assert_int_eq(wrong_counts(t, total), 0);
}

START_TEST(every_index_once)
{
    static const int64_t totals[] = {0, 1, 2, 3, 7, 100, 511, 513, 4097, N};
    static tally t;
    host_pool *p = pool_create(5);

    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++)
        for (int threads = 1; threads <= 7; threads++)
            run_once(p, &t, totals[i], threads);
    pool_destroy(p);
}
END_TEST

START_TEST(many_short_jobs)
{
    static tally t;
    host_pool *p = pool_create(3);

    for (int i = 0; i < 3000; i++)
        run_once(p, &t, i % 50, 3);
    pool_destroy(p);
}
END_TEST

START_TEST(a_code_stops_the_job)
{
    static tally t;
    host_pool *p = pool_create(3);
    pool_job job = {count, &t, N, 64};
    int32_t code = 0;

    t.stop_at = 10;
    ck_assert_int_eq(pool_run(p, &job, 3, &code), TW_OK);
    ck_assert_int_eq(code, 7);
    ck_assert_int_gt(wrong_counts(&t, N), 0);
    run_once(p, &t, N, 3);
    pool_destroy(p);
}
END_TEST

static int32_t aligned(const void *cx, int64_t lo, int64_t hi, void *scratch)
{
    (void)cx, (void)lo, (void)hi;
    memset(scratch, 1, 100000);
    return (uintptr_t)scratch % 64 != 0;
}

START_TEST(scratch_is_aligned_and_large_enough)
{
    host_pool *p = pool_create(4);
    pool_job job = {aligned, NULL, 1000, 100000};
    int32_t code = -1;

    ck_assert_int_eq(pool_run(p, &job, 4, &code), TW_OK);
    ck_assert_int_eq(code, 0);
    pool_destroy(p);
}
END_TEST

typedef struct caller {
    host_pool *pool;
    tally t;
    int wrong;
} caller;

static void *call_often(void *arg)
{
    caller *c = arg;
    pool_job job = {count, &c->t, 333, 128};

    for (int i = 0; i < 500; i++) {
        int32_t code = -1;
        memset(&c->t, 0, sizeof c->t);
        c->t.stop_at = -1;
        c->wrong += pool_run(c->pool, &job, 3, &code) != TW_OK || code != 0;
        c->wrong += wrong_counts(&c->t, 333);
    }
    return NULL;
}

/* More callers than slots, so that some wait for one. */
START_TEST(callers_at_once)
{
    enum { CALLERS = 40 };
    static caller c[CALLERS];
    pthread_t thread[CALLERS];
    host_pool *p = pool_create(3);

    for (int i = 0; i < CALLERS; i++) {
        c[i].pool = p;
        ck_assert_int_eq(pthread_create(&thread[i], NULL, call_often, &c[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(thread[i], NULL);
        ck_assert_int_eq(c[i].wrong, 0);
    }
    pool_destroy(p);
}
END_TEST

START_TEST(warm_runs_allocate_nothing)
{
    static tally t;
    long before = mem_live();
    host_pool *p = pool_create(3);

    for (int i = 0; i < 200; i++)
        run_once(p, &t, N, 3);
    mem_fail_after(1);
    for (int i = 0; i < 200; i++)
        run_once(p, &t, N, 3);
    mem_fail_after(0);
    pool_destroy(p);
    ck_assert_int_eq(mem_live(), before);
}
END_TEST

START_TEST(no_memory_is_said)
{
    host_pool *p = pool_create(2);
    static tally t;
    pool_job job = {count, &t, 10, 64};
    int32_t code;

    mem_fail_after(1);
    ck_assert_int_eq(pool_run(p, &job, 1, &code), TW_E_NOMEM);
    ck_assert_ptr_null(pool_create(2));
    mem_fail_after(0);
    run_once(p, &t, 10, 1);
    pool_destroy(p);
}
END_TEST

/* tsan does not follow a fork of a process with threads. */
#ifndef __SANITIZE_THREAD__
typedef struct heir {
    host_pool *p;
    tally t;
    bool ok;
} heir;

static void *run_inherited(void *arg)
{
    heir *h = arg;
    pool_job job = {count, &h->t, N, 64};
    int32_t code = -1;

    h->t.stop_at = -1;
    h->ok = pool_run(h->p, &job, 3, &code) == TW_OK && code == 0 && wrong_counts(&h->t, N) == 0;
    return NULL;
}

/* By several threads at once, for each of which it is the first use. */
static int use_inherited(void *arg)
{
    static heir h[4];
    pthread_t thread[4];
    bool ok = true;

    for (int i = 0; i < 4; i++) {
        h[i].p = arg;
        ok &= !pthread_create(&thread[i], NULL, run_inherited, &h[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        ok &= h[i].ok;
    }
    pool_destroy(arg);
    return ok ? 0 : 1;
}

START_TEST(works_in_a_forked_child)
{
    static tally t;
    host_pool *p = pool_create(3);

    run_once(p, &t, N, 3);
    ck_assert_int_eq(child_run(use_inherited, p), 0);
    run_once(p, &t, N, 3);
    pool_destroy(p);
}
END_TEST
#endif

Suite *test_suite(void)
{
    Suite *s = suite_create("host_pool");
    TCase *t = tcase_create("host_pool");

    tcase_add_test(t, every_index_once);
    tcase_add_test(t, many_short_jobs);
    tcase_add_test(t, a_code_stops_the_job);
    tcase_add_test(t, scratch_is_aligned_and_large_enough);
    tcase_add_test(t, callers_at_once);
    tcase_add_test(t, warm_runs_allocate_nothing);
    tcase_add_test(t, no_memory_is_said);
#ifndef __SANITIZE_THREAD__
    tcase_add_test(t, works_in_a_forked_child);
#endif
    suite_add_tcase(s, t);
    return s;
}
