/* Allocations fail, from the n-th on, while a kernel is tuned into a store, looked up there and
 * launched: each call says so or works, the caller's data is right or untouched, nothing is lost.
 */
#include "compiler/base/mem.h"
#include "tests/support/store_fixture.h"
#include "tests/support/tune_fixture.h"
#include "tuner/tuner.h"
#include <check.h>
#include <string.h>

enum { MOST = 200000 };

static rt_vector x, y;

static double cost(int64_t programs)
{
    return 1e-3 * (double)programs;
}

static void setup(void)
{
    tw_config cfg = TW_CONFIG_INIT;

    fixture_setup();
    rt_setup();
    cfg.store_path = fixture_path;
    rt_context(&cfg, &tuner_table);
}

static void teardown(void)
{
    rt_teardown();
    fixture_teardown();
}

static bool is_answer(tw_status st)
{
    return st == TW_OK || (st == TW_E_NOMEM && tw_last_error()->text[0]);
}

static void expect_outputs(float one, float other, long n)
{
    for (int i = 0; i < FAKE_N; i++)
        ck_assert_msg(y.x[i] == one || y.x[i] == other, "allocation %ld: y[%d] is %g", n, i,
                      (double)y.x[i]);
}

/* True when every call worked. */
static bool tune_and_launch(tw_device *dev, long n, bool again)
{
    const tw_arg args[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t)};
    tw_tune_options opt = TW_TUNE_OPTIONS_INIT;
    tw_tune_report *report = NULL;
    tw_kernel *k = fake_kernel();

    rt_vector_init(&x, FAKE_N, 2.0f);
    rt_vector_init(&y, FAKE_N, 7.0f);
    opt.config = "BLOCK=512";
    opt.again = again;
    mem_fail_after(n);
    tw_status tuned = tw_tune(k, dev, args, 2, &opt, &report);
    ck_assert_msg(is_answer(tuned), "allocation %ld: tune: %s: %s", n, tw_status_name(tuned),
                  tw_last_error()->text);
    expect_outputs(7.0f, 7.0f, n);
    tw_status launched = tw_launch(k, dev, NULL, args, 2);
    ck_assert_msg(is_answer(launched), "allocation %ld: launch: %s: %s", n,
                  tw_status_name(launched), tw_last_error()->text);
    mem_fail_after(0);
    expect_outputs(3.0f, launched == TW_OK ? 3.0f : 7.0f, n); /* some programs may have run */
    tw_tune_report_destroy(report);
    tw_kernel_destroy(k);
    return tuned == TW_OK && launched == TW_OK;
}

/* First with the store's answer, then tuning anew. Steps grow: most of the later
 * allocations are the same few, once a candidate. What is lost,
 * rt_teardown finds. */
START_TEST(allocations_fail_from_one_on)
{
    bool again = _i == 1, done = false;
    tw_device *dev = fake_open(cost);
    long n;

    ck_assert(tune_and_launch(dev, 0, again));
    for (n = 1; !done && n < MOST; n += 1 + n / 32) {
        done = tune_and_launch(dev, n, again);
    }
    ck_assert(done);
    ck_assert_int_gt(n, 20);
    tw_device_close(dev);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("no_memory_tuning");
    TCase *t = tcase_create("no_memory");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 200);
    tcase_add_loop_test(t, allocations_fail_from_one_on, 0, 2);
    suite_add_tcase(s, t);
    return s;
}
