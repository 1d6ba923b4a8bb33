/* Tuning on a GPU, over a fake libcuda whose kernels do nothing: what is added is 0, so that the
 * results are right all the same. Whatever fails on the way, the device's memory and modules are
 * given back. */
#include "tests/support/cuda_rig.h"
#include "tuner/tuner.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

enum { OUT_OF_MEMORY = 2, BLOCKS = 5 };

static const char text[] =
    "kernel add(x: f32[N], inout y: f32[N])\n"
    "tune BLOCK in {64, 128, 256, 512, 32}\n"
    "grid (cdiv(N, BLOCK))\n"
    "{\n"
    "    let at = program_id(0) * BLOCK;\n"
    "    store(y[at :+ BLOCK], load(y[at :+ BLOCK]) + load(x[at :+ BLOCK]));\n"
    "}\n";

static void load(void)
{
    tw_kernel_destroy(rig_kernel);
    rig_kernel = NULL;
    RT_OK(tw_kernel_load_text(rt_cx, "add.tw", text, strlen(text), NULL, &rig_kernel));
}

static void setup(void)
{
    cuda_setup();
    rt_context(NULL, &tuner_table);
    rig_shape[0] = RIG_N;
    rig_dev = rt_device("cuda");
    rig_tensors();
    memset(rig_x, 0, sizeof(float) * RIG_N); /* the fake's memory is the host's */
    for (int i = 0; i < RIG_N; i++)
        rig_y[i] = (float)i;
    load();
}

static tw_status tune(tw_tune_report **report)
{
    const tw_arg args[] = {TW_TENSOR("x", &rig_tx), TW_TENSOR("y", &rig_ty)};
    tw_tune_options options = TW_TUNE_OPTIONS_INIT;

    options.budget_s = 60.0; /* it ends when all were measured, however slow the machine is */
    options.again = true;
    return tw_tune(rig_kernel, rig_dev, args, 2, &options, report);
}

static int live(void)
{
    char what[200];

    return cuda_fake->live(what, sizeof what);
}

static void must_be_untouched(void)
{
    for (int i = 0; i < RIG_N; i++)
        ck_assert_float_eq(rig_y[i], (float)i);
}

START_TEST(each_configuration_is_measured)
{
    size_t before = fake_is->memory_left;
    tw_tune_report *report;

    RT_OK(tune(&report));
    ck_assert_uint_eq(tw_tune_report_count(report), BLOCKS);
    ck_assert_int_eq(tw_tune_report_layer(report), TW_LAYER_TUNED);
    for (size_t i = 0; i < BLOCKS; i++) {
        const tw_trial *t = tw_tune_report_trial(report, i);
        ck_assert_msg(t->state == TW_TRIAL_OK && t->samples > 0, "%s: %s", t->config, t->reason);
        ck_assert_double_eq_tol(t->median_s, 0.5e-3, 1e-9); /* what the fake's events say */
    }
    ck_assert_uint_eq(tw_tune_report_winner(report), tw_tune_report_default(report));
    tw_tune_report_destroy(report);
    ck_assert_uint_eq(fake_is->memory_left, before);
    must_be_untouched();
}
END_TEST

/* What stays is the code in use, however often it is replaced. */
START_TEST(tuning_again_and_again_keeps_nothing)
{
    size_t before = fake_is->memory_left;
    int alone = live(), once = 0;

    for (int round = 0; round < 4; round++) {
        load();
        RT_OK(tune(NULL));
        once = round ? once : live();
        ck_assert_int_eq(live(), once);
        ck_assert_uint_eq(fake_is->memory_left, before);
    }
    load();
    ck_assert_int_le(live(), alone);
}
END_TEST

/* Calls that a tuning makes. */
static const struct {
    const char *name;
    int at[2]; /* which of them fails, each in a tuning of its own */
} calls[] = {
    {"cuMemAlloc_v2", {1, 3}},    {"cuLinkCreate_v2", {1, 3}},      {"cuLinkComplete", {2, 5}},
    {"cuModuleLoadData", {1, 2}}, {"cuModuleGetFunction", {2, 5}},  {"cuLaunchKernel", {1, 9}},
    {"cuEventCreate", {2, 7}},    {"cuEventRecord", {1, 9}},        {"cuEventSynchronize", {2, 9}},
    {"cuMemcpyAsync", {1, 9}},    {"cuStreamSynchronize", {4, 20}},
};

static bool says_memory(void)
{
    return strstr(tw_last_error()->text, "memory") != NULL;
}

/* The tuning ends well or says why, and keeps nothing. */
START_TEST(what_fails_keeps_nothing)
{
    size_t before = fake_is->memory_left;
    unsigned used = cuda_fake->calls(calls[_i].name);

    for (int i = 0; i < 2; i++) {
        int n = calls[_i].at[i];
        load();
        int alone = live();
        fake_fails(calls[_i].name, n, OUT_OF_MEMORY);
        tw_status st = tune(NULL);
        fake_is->fails = NULL;
        ck_assert_msg(st == TW_OK || (st == TW_E_NOMEM && says_memory()), "%s %d: %s: %s",
                      calls[_i].name, n, tw_status_name(st), tw_last_error()->text);
        ck_assert_uint_eq(fake_is->memory_left, before);
        load();
        ck_assert_msg(live() == alone, "%s %d: %d things live, not %d", calls[_i].name, n, live(),
                      alone);
        must_be_untouched();
    }
    ck_assert_msg(cuda_fake->calls(calls[_i].name) >= used + (unsigned)calls[_i].at[1],
                  "%s is not called so often", calls[_i].name);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("cuda_tune");
    TCase *t = tcase_create("tune");

    tcase_add_checked_fixture(t, setup, rig_teardown);
    tcase_add_test(t, each_configuration_is_measured);
    tcase_add_test(t, tuning_again_and_again_keeps_nothing);
    tcase_add_loop_test(t, what_fails_keeps_nothing, 0, (int)(sizeof calls / sizeof *calls));
    suite_add_tcase(s, t);
    return s;
}
