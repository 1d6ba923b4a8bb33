/* Several processes and threads tuning the same: the work is done once, whoever dies. */
#include "tests/support/child.h"
#include "tests/support/patience.h"
#include "tests/support/store_fixture.h"
#include "tests/support/tune_fixture.h"
#include "tuner/tuner.h"
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static double best_at_128(int64_t programs)
{
    double block = (double)FAKE_N / (double)programs;

    return 1e-3 * (1.0 + 0.3 * fabs(log2(block / 128.0)));
}

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One process's view: its own context on the common store. */
typedef struct worker {
    tw_device *dev;
    tw_kernel *k;
    rt_vector x, y;
} worker;

static void worker_open(worker *w, int pause_us)
{
    tw_config cfg = TW_CONFIG_INIT;

    rt_cx = NULL;
    rt_log[0] = 0;
    cfg.store_path = fixture_path;
    rt_context(&cfg, &tuner_table);
    w->dev = fake_open(best_at_128);
    fake.pause_us = pause_us;
    w->k = fake_kernel();
    rt_vector_init(&w->x, FAKE_N, 2.0f);
    rt_vector_init(&w->y, FAKE_N, 7.0f);
}

static void worker_close(worker *w)
{
    tw_kernel_destroy(w->k);
    tw_device_close(w->dev);
    tw_context_destroy(rt_cx);
    rt_cx = NULL;
}

static tw_status worker_tune(worker *w, const tw_tune_options *options, tw_tune_report **r)
{
    const tw_arg args[] = {TW_TENSOR("x", &w->x.t), TW_TENSOR("y", &w->y.t)};

    return tw_tune(w->k, w->dev, args, 2, options, r);
}

static bool won_128(const tw_tune_report *r)
{
    const tw_trial *t = tw_tune_report_trial(r, tw_tune_report_winner(r));

    return strncmp(t->config, "BLOCK=128,", 10) == 0;
}

/* ---- shared between processes --------------------------------------------------------------- */

typedef struct board {
    int go, tuned, known, launches;
} board;
static board *shared;

static void setup(void)
{
    fixture_setup();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static int tune_together(void *arg)
{
    static worker w;
    tw_tune_report *r = NULL;

    (void)arg;
    worker_open(&w, 2000);
    __atomic_fetch_add(&shared->go, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&shared->go, __ATOMIC_SEQ_CST) < 6)
        usleep(1000);
    if (worker_tune(&w, NULL, &r) != TW_OK || !won_128(r))
        return 1;
    bool mine = tw_tune_report_layer(r) == TW_LAYER_TUNED;
    __atomic_fetch_add(mine ? &shared->tuned : &shared->known, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&shared->launches, mine ? 0 : (int)fake.launches, __ATOMIC_SEQ_CST);
    if (tw_tune_report_count(r) < 16)
        return 2; /* whoever waited sees the other's trials */
    tw_tune_report_destroy(r);
    worker_close(&w);
    return rt_log[0] ? 3 : 0;
}

START_TEST(six_processes_tune_once)
{
    pid_t pid[6];

    for (int i = 0; i < 6; i++)
        pid[i] = child_start(tune_together, NULL);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(child_end(pid[i]), 0);
    ck_assert_int_eq(shared->tuned, 1);
    ck_assert_int_eq(shared->known, 5);
    ck_assert_int_eq(shared->launches, 0); /* of those that waited */
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM best"), 1);
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM leases"), 0);
}
END_TEST

/* ---- death ---------------------------------------------------------------------------------- */

static int tune_slowly(void *arg)
{
    static worker w;

    (void)arg;
    worker_open(&w, 5000);
    return worker_tune(&w, NULL, NULL) == TW_OK ? 0 : 1;
}

static long long stored_trials(void)
{
    return access(fixture_path, F_OK) ? 0
           : fixture_sql_int(fixture_path, "SELECT count(*) FROM sqlite_master "
                                           "WHERE name='trials'") == 0
               ? 0
               : fixture_sql_int(fixture_path, "SELECT count(*) FROM trials");
}

START_TEST(a_killed_tuner_leaves_its_trials_and_no_lock)
{
    static worker w;
    tw_tune_report *r = NULL;

    pid_t pid = child_start(tune_slowly, NULL);
    double start = now_s();
    while (stored_trials() < 4 && now_s() - start < 60.0)
        usleep(2000);
    kill(pid, SIGKILL);
    ck_assert_int_eq(child_end(pid), 128 + SIGKILL);
    long long kept = stored_trials();
    ck_assert_int_ge(kept, 4);
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM best"), 0);
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM leases"), 1);
    start = now_s();
    worker_open(&w, 0);
    ck_assert_int_eq(worker_tune(&w, NULL, &r), TW_OK);
    ck_assert_double_lt(now_s() - start, 10.0); /* a lease would have lasted 15 s */
    ck_assert(won_128(r));
    ck_assert_int_eq(tw_tune_report_layer(r), TW_LAYER_TUNED);
    tw_tune_report_destroy(r);
    worker_close(&w);
    ck_assert_int_gt(stored_trials(), kept);
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM best"), 1);
}
END_TEST

/* ---- waiting -------------------------------------------------------------------------------- */

typedef struct stopper {
    int calls;
    bool waited;
} stopper;

static bool stop_when_waiting(void *user, const tw_tune_progress *p)
{
    stopper *s = user;

    s->waited |= !strcmp(p->phase, "waiting");
    return !s->waited || ++s->calls < 3;
}

static pid_t spawn_holder(void)
{
    pid_t pid = child_start(tune_slowly, NULL);

    while (stored_trials() < 1)
        usleep(2000);
    return pid;
}

static void end_process(pid_t pid)
{
    kill(pid, SIGKILL);
    child_end(pid);
}

START_TEST(waiting_can_be_cancelled)
{
    static worker w;
    tw_tune_options opt = TW_TUNE_OPTIONS_INIT;
    tw_tune_report *r = NULL;
    stopper s = {0};
    pid_t pid = spawn_holder();

    worker_open(&w, 0);
    opt.progress = stop_when_waiting;
    opt.progress_user = &s;
    ck_assert_int_eq(worker_tune(&w, &opt, &r), TW_E_CANCELLED);
    ck_assert_int_eq(tw_last_error()->status, TW_E_CANCELLED);
    ck_assert_str_eq(tw_last_error()->text, "tuning was cancelled");
    ck_assert(s.waited);
    ck_assert_ptr_nonnull(r);
    tw_tune_report_destroy(r);
    worker_close(&w);
    end_process(pid);
}
END_TEST

START_TEST(waiting_ends_with_the_budget)
{
    static worker w;
    tw_tune_options opt = TW_TUNE_OPTIONS_INIT;
    tw_tune_report *r = NULL;
    pid_t pid = spawn_holder();
    double start = now_s();

    worker_open(&w, 0);
    opt.budget_s = 0.2;
    ck_assert_int_eq(worker_tune(&w, &opt, &r), TW_OK);
    ck_assert_double_lt(now_s() - start, 2.0 * PATIENCE);
    ck_assert_int_eq(tw_tune_report_layer(r), TW_LAYER_DEFAULT);
    ck_assert_int_eq(fake.launches, 0);
    tw_tune_report_destroy(r);
    worker_close(&w);
    end_process(pid);
}
END_TEST

/* ---- threads -------------------------------------------------------------------------------- */

#define THREADS 16
static worker common;

static void *launch_own(void *arg)
{
    rt_vector *v = arg; /* two: in and out */
    const tw_arg args[] = {TW_TENSOR("x", &v[0].t), TW_TENSOR("y", &v[1].t)};

    for (int i = 0; i < 3; i++)
        if (tw_launch(common.k, common.dev, NULL, args, 2) != TW_OK)
            return "a launch failed";
    for (int64_t i = 0; i < v[0].shape[0]; i++)
        if (v[1].x[i] != v[0].x[i] + 1.0f)
            return "wrong results";
    return NULL;
}

START_TEST(sixteen_threads_launch_an_untuned_kernel)
{
    tw_config cfg = TW_CONFIG_INIT;
    pthread_t thread[THREADS];
    rt_vector *v = calloc(2 * THREADS, sizeof *v);

    worker_open(&common, 0);
    tw_kernel_destroy(common.k);
    tw_device_close(common.dev);
    cfg.store_path = fixture_path;
    cfg.tune = TW_TUNE_ON_MISS;
    rt_context(&cfg, &tuner_table);
    common.dev = fake_open(best_at_128);
    common.k = fake_kernel();
    for (int i = 0; i < THREADS; i++) {
        rt_vector_init(&v[2 * i], i % 2 ? 4096 - i : 1000 + i, (float)i);
        rt_vector_init(&v[2 * i + 1], v[2 * i].shape[0], -1.0f);
        ck_assert_int_eq(pthread_create(&thread[i], NULL, launch_own, &v[2 * i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        pthread_join(thread[i], &failed);
        ck_assert_msg(!failed, "%s", (const char *)failed);
    }
    worker_close(&common);
    free(v);
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM best"), 2);
    ck_assert_str_eq(rt_log, "");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("tune_processes");
    TCase *t = tcase_create("processes"), *threads = tcase_create("threads");

    tcase_add_checked_fixture(t, setup, fixture_teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, six_processes_tune_once);
    tcase_add_test(t, a_killed_tuner_leaves_its_trials_and_no_lock);
    tcase_add_test(t, waiting_can_be_cancelled);
    tcase_add_test(t, waiting_ends_with_the_budget);
    suite_add_tcase(s, t);
    tcase_add_checked_fixture(threads, setup, fixture_teardown);
    tcase_set_timeout(threads, 120);
    tcase_add_test(threads, sixteen_threads_launch_an_untuned_kernel);
    suite_add_tcase(s, threads);
    return s;
}
