/* Candidates that are compiled by several threads while others are measured. */
#include "tests/support/patience.h"
#include "tests/support/tune_fixture.h"
#include "tuner/tuner.h"
#include <check.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static rt_vector x, y;
static tw_device *dev;
static tw_kernel *k;
static atomic_bool gate;   /* open: nothing waits any more */
static atomic_int gave_up; /* waited for the gate in vain */
static size_t opens_at;    /* so many tried open the gate ... */
static bool cancels;       /* ... and end the tuning */

static double best_at_128(int64_t programs)
{
    return 1e-3 * (1.0 + 0.3 * fabs(log2((double)FAKE_N / (double)programs / 128.0)));
}

static void open_context(int threads)
{
    tw_config cfg = TW_CONFIG_INIT;

    cfg.threads = threads;
    rt_context(&cfg, &tuner_table);
}

static void setup(void)
{
    rt_setup();
    open_context(16);
    dev = fake_open(best_at_128);
    k = fake_kernel();
    rt_vector_init(&x, FAKE_N, 2.0f);
    rt_vector_init(&y, FAKE_N, 7.0f);
    atomic_store(&gate, false);
    atomic_store(&gave_up, 0);
    opens_at = 0;
    cancels = false;
}

static void teardown(void)
{
    tw_kernel_destroy(k);
    tw_device_close(dev);
    rt_teardown();
}

static void begin_with(int threads, tw_device *(*open)(void))
{
    tw_kernel_destroy(k);
    tw_device_close(dev);
    open_context(threads);
    dev = open ? open() : fake_open(best_at_128);
    k = fake_kernel();
}

static bool watch(void *user, const tw_tune_progress *p)
{
    (void)user;
    bool opens = opens_at && p->tried >= opens_at;
    atomic_store(&gate, atomic_load(&gate) || opens);
    return !(opens && cancels);
}

static tw_status tune(tw_tune_report **report)
{
    const tw_arg args[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t)};
    tw_tune_options opt = TW_TUNE_OPTIONS_INIT;

    opt.budget_s = 60.0 * PATIENCE;
    opt.progress = watch;
    opt.again = true;
    return tw_tune(k, dev, args, 2, &opt, report);
}

static bool is_block(const artifact *art, const char *block)
{
    return strstr(art->launch_text, block) != NULL;
}

/* Until the gate opens; what waits for ever would hang the test. */
static void wait_at_gate(void)
{
    for (int i = 0; i < 20000 && !atomic_load(&gate); i++)
        usleep(1000);
    atomic_fetch_add(&gave_up, !atomic_load(&gate));
}

static int count(const tw_tune_report *r, tw_trial_state state, const char *reason)
{
    int n = 0;

    for (size_t i = 0; i < tw_tune_report_count(r); i++) {
        const tw_trial *t = tw_tune_report_trial(r, i);
        n += t->state == state && strstr(t->reason, reason);
    }
    return n;
}

static const char *winner_of(const tw_tune_report *r)
{
    return tw_tune_report_trial(r, tw_tune_report_winner(r))->config;
}

static tw_status slow_at_512(const artifact *art)
{
    if (is_block(art, "512"))
        wait_at_gate();
    return TW_OK;
}

/* Three of the eighteen are not compiled before twelve of the others were measured. */
START_TEST(slow_code_holds_up_nobody)
{
    tw_tune_report *r = NULL;

    fake.compiles = slow_at_512;
    opens_at = 12;
    RT_OK(tune(&r));
    ck_assert_int_eq(atomic_load(&gave_up), 0);
    ck_assert_int_eq(strncmp(winner_of(r), "BLOCK=128,", 10), 0);
    tw_tune_report_destroy(r);
}
END_TEST

/* Nor is it waited for longer than its thread takes, and what it made is given back. */
START_TEST(a_cancelled_tuning_lets_go_of_what_nobody_took)
{
    tw_tune_report *r = NULL;

    fake.compiles = slow_at_512;
    opens_at = 8;
    cancels = true;
    ck_assert_int_eq(tune(&r), TW_E_CANCELLED);
    ck_assert_int_eq(atomic_load(&gave_up), 0);
    ck_assert_int_gt(count(r, TW_TRIAL_SKIPPED, "cancelled"), 0);
    tw_tune_report_destroy(r);
}
END_TEST

static tw_status takes_a_while(const artifact *art)
{
    (void)art;
    usleep(2000);
    return TW_OK;
}

/* A processor that compiles is not measured. */
START_TEST(a_processor_does_one_or_the_other)
{
    static const int threads[] = {1, 2, 7, 16};

    begin_with(threads[_i], fake_open_processor);
    fake.compiles = takes_a_while;
    RT_OK(tune(NULL));
    ck_assert_int_ge(atomic_load(&fake.compiled), 16);
    ck_assert_int_eq(atomic_load(&fake.disturbed), 0);
}
END_TEST

static tw_status fails_at_256(const artifact *art)
{
    return is_block(art, "256") ? error_set(TW_E_LIMIT, "256 is too much") : TW_OK;
}

START_TEST(what_fails_in_a_thread_has_its_reason)
{
    tw_tune_report *r = NULL;

    fake.compiles = fails_at_256;
    RT_OK(tune(&r));
    ck_assert_int_ge(count(r, TW_TRIAL_FAILED, "256 is too much"), 1);
    ck_assert_int_eq(count(r, TW_TRIAL_FAILED, ""), count(r, TW_TRIAL_FAILED, "256 is too much"));
    tw_tune_report_destroy(r);
}
END_TEST

static tw_status fails_at_64(const artifact *art)
{
    return is_block(art, "64") ? error_set(TW_E_DRIVER, "64 is nothing") : TW_OK;
}

/* The caller's thread has the default's error. */
START_TEST(a_default_that_fails_in_a_thread)
{
    fake.compiles = fails_at_64;
    RT_FAILS(tune(NULL), TW_E_DRIVER, "64 is nothing");
}
END_TEST

/* Two values of threads, one code. */
START_TEST(what_shares_code_is_compiled_once)
{
    tw_tune_report *r = NULL;

    dev->target = &fake_dynamic_target;
    RT_OK(tune(&r));
    ck_assert_uint_eq(tw_tune_report_count(r), 36);
    /* The default's twin may have been asked for before the default's code was there. */
    ck_assert_int_le(atomic_load(&fake.compiled), 19);
    ck_assert_int_eq(count(r, TW_TRIAL_FAILED, ""), 0);
    tw_tune_report_destroy(r);
}
END_TEST

/* With one thread that compiles, what is measured depends on no clock. */
START_TEST(one_thread_keeps_an_order)
{
    tw_tune_report *r[2];

    begin_with(2, NULL);
    RT_OK(tune(NULL)); /* from now on the winner is known beforehand */
    for (int i = 0; i < 2; i++) {
        fake.compiles = i ? takes_a_while : NULL;
        RT_OK(tune(&r[i]));
    }
    ck_assert_uint_eq(tw_tune_report_count(r[0]), tw_tune_report_count(r[1]));
    for (size_t i = 0; i < tw_tune_report_count(r[0]); i++)
        ck_assert_str_eq(tw_tune_report_trial(r[0], i)->config,
                         tw_tune_report_trial(r[1], i)->config);
    tw_tune_report_destroy(r[0]);
    tw_tune_report_destroy(r[1]);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("tune_queue");
    TCase *t = tcase_create("queue");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, slow_code_holds_up_nobody);
    tcase_add_test(t, a_cancelled_tuning_lets_go_of_what_nobody_took);
    tcase_add_loop_test(t, a_processor_does_one_or_the_other, 0, 4);
    tcase_add_test(t, what_fails_in_a_thread_has_its_reason);
    tcase_add_test(t, a_default_that_fails_in_a_thread);
    tcase_add_test(t, what_shares_code_is_compiled_once);
    tcase_add_test(t, one_thread_keeps_an_order);
    suite_add_tcase(s, t);
    return s;
}
