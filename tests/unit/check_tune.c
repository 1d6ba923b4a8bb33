/* The tuner over a device whose clock is made up: what it picks, what it leaves alone, what it
 * keeps, when it stops. */
#include "compiler/base/mem.h"
#include "tests/support/patience.h"
#include "tests/support/tune_fixture.h"
#include "tuner/tuner.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static rt_vector x, y;
static tw_device *dev;
static tw_kernel *k;

/* BLOCK 128 is best: 32 programs of FAKE_N. */
static double best_at_128(int64_t programs)
{
    double block = (double)FAKE_N / (double)programs;

    return 1e-3 * (1.0 + 0.3 * fabs(log2(block / 128.0)));
}

static void setup(void)
{
    rt_setup();
    rt_context(NULL, &tuner_table);
    dev = fake_open(best_at_128);
    k = fake_kernel();
    rt_vector_init(&x, FAKE_N, 2.0f);
    rt_vector_init(&y, FAKE_N, 7.0f);
}

static void teardown(void)
{
    tw_kernel_destroy(k);
    tw_device_close(dev);
    rt_teardown();
}

static void use_kernel(tw_kernel *other)
{
    tw_kernel_destroy(k);
    k = other;
}

static tw_status tune(const tw_tune_options *options, tw_tune_report **report)
{
    const tw_arg args[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t)};

    return tw_tune(k, dev, args, 2, options, report);
}

static tw_answer ask(void)
{
    const tw_arg args[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t)};
    tw_answer a = TW_ANSWER_INIT;

    RT_OK(tw_query(k, dev, args, 2, NULL, &a));
    return a;
}

static const tw_trial *winner_of(const tw_tune_report *r)
{
    return tw_tune_report_trial(r, tw_tune_report_winner(r));
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static const tw_trial *trial_of(const tw_tune_report *r, const char *prefix)
{
    for (size_t i = 0; i < tw_tune_report_count(r); i++)
        if (starts_with(tw_tune_report_trial(r, i)->config, prefix))
            return tw_tune_report_trial(r, i);
    ck_abort_msg("no trial of %s", prefix);
    return NULL;
}

START_TEST(finds_the_best_and_leaves_outputs_alone)
{
    tw_tune_report *r = NULL;

    RT_OK(tune(NULL, &r));
    ck_assert(starts_with(winner_of(r)->config, "BLOCK=128,"));
    ck_assert_int_eq(tw_tune_report_layer(r), TW_LAYER_TUNED);
    ck_assert_uint_eq(tw_tune_report_count(r), 18);
    ck_assert_uint_ge(tw_tune_report_compiled(r), 16);
    ck_assert_uint_eq(tw_tune_report_compiled(r), (size_t)atomic_load(&fake.compiled));
    const tw_trial *start = tw_tune_report_trial(r, tw_tune_report_default(r));
    ck_assert(starts_with(start->config, "BLOCK=64,M=1"));
    ck_assert_double_eq_tol(start->median_s / winner_of(r)->median_s, 1.3, 1e-6);
    for (int i = 0; i < FAKE_N; i++)
        ck_assert_float_eq(y.x[i], 7.0f);
    tw_tune_report_destroy(r);
    ck_assert(starts_with(ask().config, "BLOCK=128,"));
    ck_assert_int_eq(ask().layer, TW_LAYER_TUNED);
}
END_TEST

START_TEST(the_second_time_the_store_answers)
{
    tw_tune_report *first = NULL, *second = NULL;

    RT_OK(tune(NULL, &first));
    long launches = atomic_load(&fake.launches);
    RT_OK(tune(NULL, &second));
    ck_assert_int_eq(atomic_load(&fake.launches), launches);
    ck_assert_int_eq(tw_tune_report_layer(second), TW_LAYER_EXACT);
    ck_assert_uint_eq(tw_tune_report_compiled(second), 0);
    ck_assert_str_eq(winner_of(second)->config, winner_of(first)->config);
    ck_assert_double_eq(winner_of(second)->median_s, winner_of(first)->median_s);
    ck_assert_uint_eq(tw_tune_report_default(second) < tw_tune_report_count(second), 1);
    tw_tune_report_destroy(first);
    tw_tune_report_destroy(second);

    tw_tune_options again = TW_TUNE_OPTIONS_INIT;
    again.again = true;
    RT_OK(tune(&again, NULL));
    ck_assert_int_gt(atomic_load(&fake.launches), launches);
}
END_TEST

START_TEST(a_restricted_search_stays_within)
{
    tw_tune_options opt = TW_TUNE_OPTIONS_INIT;
    tw_tune_report *r = NULL;

    opt.config = "BLOCK=32";
    RT_OK(tune(&opt, &r));
    for (size_t i = 0; i < tw_tune_report_count(r); i++)
        ck_assert(starts_with(tw_tune_report_trial(r, i)->config, "BLOCK=32,"));
    ck_assert_uint_eq(tw_tune_report_count(r), 3);
    tw_tune_report_destroy(r);
    RT_OK(tune(NULL, &r)); /* the exact answer was restricted; asked freely, the store has it */
    tw_tune_report_destroy(r);
    opt.config = "BLOCK=99999999999999999999";
    ck_assert_int_eq(tune(&opt, NULL), TW_E_ARG);
    opt.config = "NOT_THERE=1";
    RT_FAILS(tune(&opt, NULL), TW_E_ARG, "NOT_THERE");
}
END_TEST

/* A tuning within limits does not take the place of a better one. */
START_TEST(a_restricted_winner_replaces_no_better_one)
{
    tw_tune_options opt = TW_TUNE_OPTIONS_INIT;

    RT_OK(tune(NULL, NULL));
    opt.config = "BLOCK=16";
    RT_OK(tune(&opt, NULL));
    ck_assert(starts_with(ask().config, "BLOCK=128,"));
}
END_TEST

START_TEST(wrong_results_do_not_win)
{
    tw_tune_report *r = NULL;

    fake.wrong_at = FAKE_N / 128;
    RT_OK(tune(NULL, &r));
    ck_assert(!starts_with(winner_of(r)->config, "BLOCK=128,"));
    ck_assert_int_eq(trial_of(r, "BLOCK=128,")->state, TW_TRIAL_WRONG);
    ck_assert_ptr_nonnull(strstr(trial_of(r, "BLOCK=128,")->reason, "y[2048] is 3.5, not 3"));
    tw_tune_report_destroy(r);
}
END_TEST

/* What the one before wrote must not stand in for what this one does not write. */
START_TEST(missing_writes_and_impossible_tiles_do_not_win)
{
    tw_tune_report *r = NULL;

    use_kernel(fake_odd_kernel());
    RT_OK(tune(NULL, &r));
    ck_assert_uint_eq(tw_tune_report_count(r), 3);
    ck_assert(starts_with(winner_of(r)->config, "BLOCK=64"));
    ck_assert_int_eq(trial_of(r, "BLOCK=128")->state, TW_TRIAL_WRONG);
    ck_assert_ptr_nonnull(strstr(trial_of(r, "BLOCK=128")->reason, "y[2048] is nan, not 3"));
    const tw_trial *huge = trial_of(r, "BLOCK=4194304");
    ck_assert(huge->state == TW_TRIAL_FAILED || huge->state == TW_TRIAL_PRUNED);
    ck_assert_msg(strstr(huge->reason, "4194304") != NULL, "%s", huge->reason);
    tw_tune_report_destroy(r);
}
END_TEST

START_TEST(a_wrong_default_is_an_error)
{
    fake.wrong_at = FAKE_N / 64;
    RT_FAILS(tune(NULL, NULL), TW_E_MISMATCH, "y[2048] is 3.5, not 3");
    ck_assert_int_eq(ask().layer, TW_LAYER_DEFAULT);
}
END_TEST

/* On a loaded machine the check may have had no time at all: then it is asked again. */
static void must_mismatch(const tw_tune_options *opt, const char *said)
{
    tw_status st = TW_OK;

    for (int i = 0; i < 20 && st == TW_OK; i++)
        st = tune(opt, NULL);
    ck_assert_int_eq(st, TW_E_MISMATCH);
    ck_assert_msg(strstr(tw_last_error()->text, said) != NULL, "%s", tw_last_error()->text);
}

/* The interpreter's check holds to its time. What it had time for is compared. */
START_TEST(long_programs_are_not_interpreted_to_the_end)
{
    tw_tune_options opt = TW_TUNE_OPTIONS_INIT;

    opt.budget_s = 1e-3; /* the check has 0.2 s */
    use_kernel(fake_long_kernel(12000000 / PATIENCE));
    rt_vector_init(&x, 64, 2.0f);
    rt_vector_init(&y, 64, 7.0f);
    RT_OK(tune(&opt, NULL)); /* the only program is the long one */
    ck_assert_ptr_nonnull(strstr(rt_log, "results are not checked"));
    rt_vector_init(&x, 200, 2.0f);
    rt_vector_init(&y, 200, 7.0f);
    opt.again = true;
    for (int i = 0; i < 20 && rt_log[0]; i++) {
        rt_log[0] = 0;
        RT_OK(tune(&opt, NULL)); /* the last of four is long; the others are checked */
    }
    ck_assert_str_eq(rt_log, "");
    fake.wrong_at = 4;
    must_mismatch(&opt, "y[100] is 3.5, not 3"); /* of the second of four */
    rt_vector_init(&x, 100, 2.0f);
    rt_vector_init(&y, 100, 7.0f);
    fake.wrong_at = 2;
    must_mismatch(&opt, "y[50] is 3.5, not 3");
}
END_TEST

START_TEST(failing_candidates_are_recorded)
{
    tw_tune_report *r = NULL;

    fake.fails_at = FAKE_N / 128;
    RT_OK(tune(NULL, &r));
    ck_assert_int_eq(tw_last_error()->status, TW_OK);
    ck_assert_int_eq(trial_of(r, "BLOCK=128,")->state, TW_TRIAL_FAILED);
    ck_assert_str_eq(trial_of(r, "BLOCK=128,")->reason, "this launch fails");
    ck_assert(starts_with(winner_of(r)->config, "BLOCK=256,") ||
              starts_with(winner_of(r)->config, "BLOCK=64,"));
    tw_tune_report_destroy(r);
    fake.fails_at = FAKE_N / 64;
    tw_tune_options again = TW_TUNE_OPTIONS_INIT;
    again.again = true;
    RT_FAILS(tune(&again, NULL), TW_E_DEVICE, "this launch fails");
}
END_TEST

/* What cannot be undone in this process ends the tuning, and is remembered. */
START_TEST(a_candidate_that_breaks_the_device_is_tried_once)
{
    tw_tune_options again = TW_TUNE_OPTIONS_INIT;
    tw_tune_report *r = NULL;

    again.again = true;
    fake.breaks_at = FAKE_N / 128;
    RT_FAILS(tune(NULL, NULL), TW_E_DEVICE, "tuning ends, because of 'BLOCK=128,");
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "it broke the device: the fake is broken"));
    fake.broken = false; /* a new process */
    for (int i = 0; i < 2; i++) { /* of three configurations that break it */
        RT_FAILS(tune(&again, NULL), TW_E_DEVICE, "because of 'BLOCK=128,");
        fake.broken = false;
    }
    RT_OK(tune(&again, &r));
    ck_assert_int_eq(trial_of(r, "BLOCK=128,")->state, TW_TRIAL_FAILED);
    ck_assert_ptr_nonnull(strstr(trial_of(r, "BLOCK=128,")->reason, "it broke the device"));
    ck_assert(!starts_with(winner_of(r)->config, "BLOCK=128,"));
    tw_tune_report_destroy(r);
}
END_TEST

/* The default gives way to the next. */
START_TEST(a_default_that_breaks_the_device)
{
    tw_tune_options again = TW_TUNE_OPTIONS_INIT;
    tw_tune_report *r = NULL;

    again.again = true;
    again.config = "M=1";
    fake.breaks_at = FAKE_N / 64;
    RT_FAILS(tune(&again, NULL), TW_E_DEVICE, "tuning ends, because of 'BLOCK=64,M=1");
    fake.broken = false;
    RT_OK(tune(&again, &r));
    ck_assert(starts_with(winner_of(r)->config, "BLOCK=128,"));
    tw_tune_report_destroy(r);
}
END_TEST

/* M changes nothing: one trial for each BLOCK. */
START_TEST(the_same_code_is_tried_once)
{
    tw_tune_report *r = NULL;
    int same = 0, timed = 0, skipped = 0;

    dev->target = &fake_knowing_target;
    RT_OK(tune(NULL, &r));
    for (size_t i = 0; i < tw_tune_report_count(r); i++) {
        const tw_trial *t = tw_tune_report_trial(r, i);
        timed += t->samples > 0;
        skipped += t->state == TW_TRIAL_SKIPPED;
        if (t->state != TW_TRIAL_PRUNED)
            continue;
        ck_assert_ptr_nonnull(strstr(t->reason, "the same code as BLOCK="));
        ck_assert_int_eq(strncmp(t->reason + 17, t->config, 9), 0); /* of its own BLOCK */
        same++;
    }
    ck_assert_int_eq(timed, 6);
    ck_assert_int_eq(same + skipped, 12);
    ck_assert_int_le(skipped, 2); /* after 16 it may be known that no more is needed */
    ck_assert(starts_with(winner_of(r)->config, "BLOCK=128,"));
    tw_tune_report_destroy(r);
}
END_TEST

/* Above 64 bytes more than the default's. */
START_TEST(code_that_spills_is_not_measured)
{
    tw_tune_options again = TW_TUNE_OPTIONS_INIT;
    tw_tune_report *r = NULL;

    fake.spills = "128";
    fake.spilled = 65;
    RT_OK(tune(NULL, &r));
    ck_assert_int_eq(trial_of(r, "BLOCK=128,")->state, TW_TRIAL_PRUNED);
    ck_assert_ptr_nonnull(strstr(trial_of(r, "BLOCK=128,")->reason, "65 bytes spilled"));
    ck_assert(!starts_with(winner_of(r)->config, "BLOCK=128,"));
    tw_tune_report_destroy(r);
    again.again = true;
    fake.spilled = 64;
    RT_OK(tune(&again, &r));
    ck_assert(starts_with(winner_of(r)->config, "BLOCK=128,"));
    tw_tune_report_destroy(r);
    fake.spilled = 65; /* the store knows by now that it is good */
    RT_OK(tune(&again, &r));
    ck_assert(starts_with(winner_of(r)->config, "BLOCK=128,"));
    tw_tune_report_destroy(r);
}
END_TEST

static double no_time(int64_t programs)
{
    return programs == FAKE_N / 128   ? NAN
           : programs == FAKE_N / 256 ? 0.0
           : programs == FAKE_N / 512 ? -1.0
                                      : best_at_128(programs);
}

/* fake.now is a sum: NaN would spoil what comes after. */
static double never_a_time(int64_t programs)
{
    (void)programs;
    return 0.0;
}

START_TEST(times_that_are_none_never_win)
{
    tw_tune_report *r = NULL;

    fake.cost = no_time;
    fake.fails_at = 0;
    tw_tune_options opt = TW_TUNE_OPTIONS_INIT;
    RT_OK(tune(&opt, &r));
    ck_assert(isfinite(winner_of(r)->median_s) && winner_of(r)->median_s > 0.0);
    tw_tune_report_destroy(r);
    fake.cost = never_a_time;
    fake.now = 0.0;
    opt.again = true;
    RT_FAILS(tune(&opt, NULL), TW_E_DEVICE, "clock");
}
END_TEST

START_TEST(what_is_updated_in_place_is_updated_once)
{
    const tw_arg args[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t)};
    tw_tune_report *r = NULL;

    use_kernel(fake_inout_kernel());
    for (int i = 0; i < FAKE_N; i++)
        y.x[i] = (float)i;
    RT_OK(tune(NULL, &r));
    ck_assert(starts_with(winner_of(r)->config, "BLOCK=128,"));
    tw_tune_report_destroy(r);
    for (int launch = 1; launch <= 2; launch++) {
        RT_OK(tw_launch(k, dev, NULL, args, 2));
        for (int i = 0; i < FAKE_N; i++)
            ck_assert_float_eq(y.x[i], (float)(i + launch));
    }
}
END_TEST

START_TEST(on_a_miss_the_first_launch_tunes)
{
    const tw_arg args[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t)};
    tw_config cfg = TW_CONFIG_INIT;

    tw_kernel_destroy(k);
    tw_device_close(dev);
    cfg.tune = TW_TUNE_ON_MISS;
    rt_context(&cfg, &tuner_table);
    dev = fake_open(best_at_128);
    k = fake_inout_kernel();
    for (int i = 0; i < FAKE_N; i++)
        y.x[i] = (float)i;
    RT_OK(tw_launch(k, dev, NULL, args, 2));
    ck_assert_int_eq(fake.last, FAKE_N / 128);
    for (int i = 0; i < FAKE_N; i++)
        ck_assert_float_eq(y.x[i], (float)(i + 1));
    long launches = atomic_load(&fake.launches);
    ck_assert_int_gt(launches, 20);
    RT_OK(tw_launch(k, dev, NULL, args, 2));
    ck_assert_int_eq(atomic_load(&fake.launches), launches + 1);
}
END_TEST

/* ---- stopping ------------------------------------------------------------------------------- */

typedef struct watch {
    int calls, stop_at;
    size_t tried, total;
    double best;
    char phases[256];
} watch;

static bool watch_progress(void *user, const tw_tune_progress *p)
{
    watch *w = user;

    ck_assert_uint_ge(p->tried, w->tried);
    ck_assert_uint_le(p->tried, p->total);
    ck_assert_double_gt(p->budget_s, 0.0);
    w->tried = p->tried;
    w->total = p->total;
    w->best = p->best_s;
    if (!strstr(w->phases, p->phase))
        strcat(w->phases, p->phase);
    return ++w->calls != w->stop_at;
}

START_TEST(progress_is_reported)
{
    tw_tune_options opt = TW_TUNE_OPTIONS_INIT;
    watch w = {0};

    opt.progress = watch_progress;
    opt.progress_user = &w;
    RT_OK(tune(&opt, NULL));
    ck_assert_uint_eq(w.total, 18);
    ck_assert_uint_ge(w.tried, 16);
    ck_assert_double_eq_tol(w.best, 1e-3, 1e-9);
    ck_assert_ptr_nonnull(strstr(w.phases, "compiling"));
    ck_assert_ptr_nonnull(strstr(w.phases, "checking"));
    ck_assert_ptr_nonnull(strstr(w.phases, "measuring"));
}
END_TEST

START_TEST(a_cancelled_tuning_keeps_its_best)
{
    bool kept = false;

    for (int stop = 1; stop < 60; stop++) {
        tw_tune_options opt = TW_TUNE_OPTIONS_INIT;
        tw_tune_report *r = NULL;
        watch w = {.stop_at = stop};
        opt.progress = watch_progress;
        opt.progress_user = &w;
        opt.again = true;
        tw_status st = tune(&opt, &r);
        ck_assert_ptr_nonnull(r);
        if (st == TW_E_CANCELLED)
            kept |= starts_with(winner_of(r)->config, "BLOCK=128,");
        else
            ck_assert_int_eq(st, TW_OK);
        tw_tune_report_destroy(r);
        for (int i = 0; i < FAKE_N; i += 99)
            ck_assert_float_eq(y.x[i], 7.0f);
    }
    ck_assert(kept);
}
END_TEST

static double slow(int64_t programs)
{
    return best_at_128(programs);
}

START_TEST(the_budget_holds)
{
    static const double budget[] = {1e-6, 0.02, 0.1, 0.3};

    for (size_t i = 0; i < sizeof budget / sizeof budget[0]; i++) {
        tw_tune_options opt = TW_TUNE_OPTIONS_INIT;
        tw_tune_report *r = NULL;
        struct timespec from, to;
        fake.cost = slow;
        opt.budget_s = budget[i];
        opt.again = true;
        clock_gettime(CLOCK_MONOTONIC, &from);
        RT_OK(tune(&opt, &r));
        clock_gettime(CLOCK_MONOTONIC, &to);
        double took =
            (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
        /* The default is always compiled, checked and measured. */
        ck_assert_double_lt(took, budget[i] + 1.0);
        ck_assert_int_eq(tw_tune_report_trial(r, 0)->state, TW_TRIAL_OK);
        ck_assert_uint_eq(tw_tune_report_count(r), 18);
        tw_tune_report_destroy(r);
    }
}
END_TEST

START_TEST(an_empty_grid_has_nothing_to_tune)
{
    tw_tune_report *r = NULL;

    rt_vector_init(&x, 0, 1.0f);
    rt_vector_init(&y, 0, 1.0f);
    RT_OK(tune(NULL, &r));
    ck_assert_int_eq(tw_tune_report_layer(r), TW_LAYER_DEFAULT);
    ck_assert_int_eq(atomic_load(&fake.launches), 0);
    tw_tune_report_destroy(r);
}
END_TEST

START_TEST(bad_calls)
{
    tw_tune_options opt = TW_TUNE_OPTIONS_INIT;
    const tw_arg args[] = {TW_TENSOR("x", &x.t)};
    tw_tune_report *r = (tw_tune_report *)&opt;

    ck_assert_int_eq(tw_tune(k, dev, args, 1, NULL, &r), TW_E_ARG);
    ck_assert_ptr_null(r);
    ck_assert_int_eq(tw_tune(NULL, dev, args, 1, NULL, NULL), TW_E_ARG);
    ck_assert_int_eq(tw_tune(k, NULL, args, 1, NULL, NULL), TW_E_ARG);
    opt.budget_s = NAN;
    RT_FAILS(tune(&opt, NULL), TW_E_ARG, "budget_s");
    opt.budget_s = 0.0;
    RT_FAILS(tune(&opt, NULL), TW_E_ARG, "budget_s");
    opt = (tw_tune_options)TW_TUNE_OPTIONS_INIT;
    opt.size = 0;
    RT_FAILS(tune(&opt, NULL), TW_E_ARG, "size");
    tw_tune_report_destroy(NULL);
    ck_assert_uint_eq(tw_tune_report_count(NULL), 0);
    ck_assert_uint_eq(tw_tune_report_compiled(NULL), 0);
    ck_assert_ptr_null(tw_tune_report_trial(NULL, 0));
}
END_TEST

START_TEST(a_miss_on_the_interpreter_tunes_nothing)
{
    const tw_arg args[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t)};
    tw_config cfg = TW_CONFIG_INIT;

    tw_kernel_destroy(k);
    tw_device_close(dev);
    cfg.tune = TW_TUNE_ON_MISS;
    rt_context(&cfg, &tuner_table);
    dev = rt_device("interp");
    k = fake_kernel();
    RT_OK(tw_launch(k, dev, NULL, args, 2));
    ck_assert(starts_with(ask().config, "BLOCK=64,M=1"));
}
END_TEST

START_TEST(the_null_device_can_be_tuned_over)
{
    tw_device *null = rt_device("null");
    const tw_arg args[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t)};
    tw_tune_report *r = NULL;

    RT_OK(tw_tune(k, null, args, 2, NULL, &r));
    ck_assert_uint_gt(tw_tune_report_count(r), 1);
    tw_tune_report_destroy(r);
    RT_OK(tw_null_fail(null, "launch", 1, TW_E_DRIVER));
    tw_tune_options again = TW_TUNE_OPTIONS_INIT;
    again.again = true;
    RT_FAILS(tw_tune(k, null, args, 2, &again, NULL), TW_E_DRIVER, "launch");
    tw_device_close(null);
}
END_TEST

START_TEST(no_memory_is_survived)
{
    long n = 1;
    tw_status st = TW_E_NOMEM;

    RT_OK(tune(NULL, NULL));
    for (; n < 4000 && st != TW_OK; n += n < 80 ? 1 : 29) {
        tw_tune_options again = TW_TUNE_OPTIONS_INIT;
        tw_tune_report *r = NULL;
        again.again = true;
        mem_fail_after(n);
        st = tune(&again, &r);
        mem_fail_after(0);
        tw_tune_report_destroy(r);
    }
    RT_OK(tune(NULL, NULL));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("tune");
    TCase *t = tcase_create("tune");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, finds_the_best_and_leaves_outputs_alone);
    tcase_add_test(t, the_second_time_the_store_answers);
    tcase_add_test(t, a_restricted_search_stays_within);
    tcase_add_test(t, a_restricted_winner_replaces_no_better_one);
    tcase_add_test(t, wrong_results_do_not_win);
    tcase_add_test(t, missing_writes_and_impossible_tiles_do_not_win);
    tcase_add_test(t, a_wrong_default_is_an_error);
    tcase_add_test(t, long_programs_are_not_interpreted_to_the_end);
    tcase_add_test(t, failing_candidates_are_recorded);
    tcase_add_test(t, a_candidate_that_breaks_the_device_is_tried_once);
    tcase_add_test(t, a_default_that_breaks_the_device);
    tcase_add_test(t, the_same_code_is_tried_once);
    tcase_add_test(t, code_that_spills_is_not_measured);
    tcase_add_test(t, times_that_are_none_never_win);
    tcase_add_test(t, what_is_updated_in_place_is_updated_once);
    tcase_add_test(t, on_a_miss_the_first_launch_tunes);
    tcase_add_test(t, a_miss_on_the_interpreter_tunes_nothing);
    tcase_add_test(t, progress_is_reported);
    tcase_add_test(t, a_cancelled_tuning_keeps_its_best);
    tcase_add_test(t, the_budget_holds);
    tcase_add_test(t, an_empty_grid_has_nothing_to_tune);
    tcase_add_test(t, bad_calls);
    tcase_add_test(t, the_null_device_can_be_tuned_over);
    tcase_add_test(t, no_memory_is_survived);
    suite_add_tcase(s, t);
    return s;
}
