/* Tuning on the processor, with the real clock: attention on odd shapes. What wins is not tested,
 * only that it is right, remembered, and found in time. */
#include "tests/support/patience.h"
#include "tilewright.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define H 4
#define HK 2
#define M 150
#define N 201
#define D 32

static float q[H][M][D], key[HK][N][D], v[HK][N][D], o[H][M][D], lse[H][M], want[H][M][D];
static char dir[64], path[96];
static tw_context *cx;
static tw_device *dev;
static tw_kernel *k;

static void fill(float *x, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
    }
}

static void must(tw_status st)
{
    ck_assert_msg(st == TW_OK, "%s: %s", tw_status_name(st), tw_last_error()->text);
}

static unsigned tried, compiled; /* as the last message of a tuning says */

static void no_warning(void *user, tw_log_level level, const char *text)
{
    const char *counts = strrchr(text, '(');

    (void)user;
    ck_assert_msg(level >= TW_LOG_INFO, "%s", text);
    if (counts)
        sscanf(counts, "(%u tried, %u compiled)", &tried, &compiled);
}

static void open_all(void)
{
    tw_config cfg = TW_CONFIG_INIT;

    cfg.store_path = path;
    cfg.log = no_warning;
    cfg.log_level = TW_LOG_INFO;
    must(tw_context_create(&cfg, &cx));
    must(tw_device_open(cx, "cpu", &dev));
    must(tw_kernel_load(cx, "kernels/attention_fwd.tw", NULL, &k));
}

static void close_all(void)
{
    tw_kernel_destroy(k);
    tw_device_close(dev);
    tw_context_destroy(cx);
}

static void setup(void)
{
    snprintf(dir, sizeof dir, "/tmp/tw_tune_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/store.db", dir);
    fill(&q[0][0][0], H * M * D, 1);
    fill(&key[0][0][0], HK * N * D, 2);
    fill(&v[0][0][0], HK * N * D, 3);
    open_all();
}

static void teardown(void)
{
    close_all();
    unlink(path);
    rmdir(dir);
}

/* out: where o goes. */
static tw_status with_args(float *out, tw_status (*call)(const tw_arg *a, size_t n, void *user),
                           void *user)
{
    int64_t sq[] = {1, H, M, D}, sk[] = {1, HK, N, D};
    int64_t tq[] = {H * M * D, M * D, D, 1}, tk[] = {HK * N * D, N * D, D, 1}, tl[] = {H * M, M, 1};
    DLTensor q_ = {q, {kDLCPU, 0}, 4, {kDLFloat, 32, 1}, sq, tq, 0}, o_ = q_;
    DLTensor k_ = {key, {kDLCPU, 0}, 4, {kDLFloat, 32, 1}, sk, tk, 0}, v_ = k_;
    DLTensor l_ = {lse, {kDLCPU, 0}, 3, {kDLFloat, 32, 1}, sq, tl, 0};
    o_.data = out;
    v_.data = v;
    const tw_arg args[] = {TW_TENSOR("q", &q_), TW_TENSOR("k", &k_),   TW_TENSOR("v", &v_),
                           TW_TENSOR("o", &o_), TW_TENSOR("lse", &l_), TW_BOOL("CAUSAL", true)};
    return call(args, 6, user);
}

static tw_status launch(const tw_arg *a, size_t n, void *options)
{
    return tw_launch_with(k, dev, NULL, a, n, options);
}

typedef struct tuning {
    tw_tune_options opt;
    tw_tune_report *report;
} tuning;

static tw_status tune(const tw_arg *a, size_t n, void *user)
{
    tuning *t = user;

    return tw_tune(k, dev, a, n, &t->opt, &t->report);
}

static tw_status query(const tw_arg *a, size_t n, void *answer)
{
    return tw_query(k, dev, a, n, NULL, answer);
}

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check_results(void)
{
    tw_launch_options pinned = TW_LAUNCH_OPTIONS_INIT;

    pinned.config = "BLOCK_M=64,BLOCK_N=64";
    must(with_args(&want[0][0][0], launch, &pinned));
    must(with_args(&o[0][0][0], launch, NULL));
    for (size_t i = 0; i < H * M * D; i++)
        ck_assert_float_eq_tol((&o[0][0][0])[i], (&want[0][0][0])[i], 1e-5f);
}

/* How many configurations were measured; none may have failed. */
static size_t check_trials(const tw_tune_report *r)
{
    size_t measured = 0;

    for (size_t i = 0; i < tw_tune_report_count(r); i++) {
        const tw_trial *t = tw_tune_report_trial(r, i);
        ck_assert_msg(t->state != TW_TRIAL_WRONG && t->state != TW_TRIAL_FAILED, "%s: %s",
                      t->config, t->reason);
        measured += t->state == TW_TRIAL_OK || t->state == TW_TRIAL_STOPPED;
    }
    const tw_trial *best = tw_tune_report_trial(r, tw_tune_report_winner(r));
    ck_assert_int_eq(best->state, TW_TRIAL_OK);
    ck_assert(isfinite(best->median_s) && best->median_s > 0.0);
    return measured;
}

START_TEST(tuned_on_the_processor)
{
    tuning t = {.opt = TW_TUNE_OPTIONS_INIT};
    tw_answer a = TW_ANSWER_INIT;
    char winner[256];

    for (size_t i = 0; i < H * M * D; i++)
        (&o[0][0][0])[i] = 77.0f;
    /* until three are measured: a loaded machine needs more than the first budget for it */
    size_t measured = 0;
    t.opt.again = true;
    for (t.opt.budget_s = 4.0 * PATIENCE; measured < 3; t.opt.budget_s *= 3.0) {
        double start = now_s();
        must(with_args(&o[0][0][0], tune, &t));
        ck_assert_double_lt(now_s() - start, 3.0 * t.opt.budget_s);
        ck_assert_int_eq(tw_tune_report_layer(t.report), TW_LAYER_TUNED);
        for (size_t i = 0; i < H * M * D; i++)
            ck_assert_float_eq((&o[0][0][0])[i], 77.0f);
        measured = check_trials(t.report);
        tw_tune_report_destroy(t.report);
        ck_assert_double_lt(t.opt.budget_s, 100.0 * PATIENCE);
    }
    must(with_args(&o[0][0][0], query, &a)); /* the fastest of those rounds */
    strcpy(winner, a.config);
    check_results();

    close_all();
    open_all();
    must(with_args(&o[0][0][0], query, &a));
    ck_assert_int_eq(a.layer, TW_LAYER_EXACT);
    ck_assert_str_eq(a.config, winner);
    ck_assert(a.artifact_stored);
    check_results();
}
END_TEST

static tw_status tune_blocks(const tw_arg *a, size_t n, void *user)
{
    tw_tune_options opt = TW_TUNE_OPTIONS_INIT;

    (void)user;
    opt.budget_s = 30.0 * PATIENCE; /* it ends with the space, long before that */
    opt.config = "BLOCK_M=64,BLOCK_N=32,order=0";
    return tw_tune(k, dev, a, n, &opt, NULL);
}

/* Two configurations that differ in the number of threads have one code. (A path that every machine
 * has: others have more parameters.) */
START_TEST(threads_share_code)
{
    tw_device_close(dev);
    must(tw_device_open(cx, "cpu:2", &dev));
    must(tw_device_force_target(dev, "cpu-generic"));
    must(with_args(&o[0][0][0], tune_blocks, NULL));
    ck_assert_uint_eq(tried, 2);
    ck_assert_uint_eq(compiled, 1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("tune_cpu");
    TCase *c = tcase_create("tune_cpu");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 120);
    tcase_add_test(c, tuned_on_the_processor);
    tcase_add_test(c, threads_share_code);
    suite_add_tcase(s, c);
    return s;
}
