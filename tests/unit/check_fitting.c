/* A kernel whose first configuration is above a limit runs, and is tuned, from the first one below.
 */
#include "tilewright.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 17, N = 64 };

static tw_context *cx;
static tw_device *dev;
static tw_kernel *k;
static float x[N][N], y[N][N];
static int64_t shape[] = {N, N};
static DLTensor tx = {x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0};
static DLTensor ty = {y, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0};
static tw_arg args[2];

/* MANY = 2: more code than one kernel may have; 1: is not valid. */
static void setup(void)
{
    char *text = malloc(ROOM);
    size_t n = (size_t)snprintf(text, ROOM,
                                "kernel k(x: f32[M, N], out y: f32[N, M])\n"
                                "tune MANY in {2, 1, 0} with MANY != 1\n"
                                "grid (1) {\nif (MANY == 2) {\n");

    for (int i = 0; i < 900; i++)
        n += (size_t)snprintf(text + n, ROOM - n,
                              "store(y[%d :+ 64, 0 :+ 64], trans(load(x[0 :+ 64, 0 :+ 64])) + "
                              "%d.5);\n",
                              i, i);
    n += (size_t)snprintf(text + n, ROOM - n,
                          "}\nstore(y[0 :+ 64, 0 :+ 64], trans(load(x[0 :+ 64, 0 :+ 64])));\n}\n");
    ck_assert_uint_lt(n, ROOM);
    ck_assert_int_eq(tw_context_create(NULL, &cx), TW_OK);
    ck_assert_int_eq(tw_device_open(cx, "cpu:1", &dev), TW_OK);
    ck_assert_msg(tw_kernel_load_text(cx, "k.tw", text, n, NULL, &k) == TW_OK, "%s",
                  tw_last_error()->text);
    free(text);
    x[3][5] = 7.0f;
    args[0] = TW_TENSOR("x", &tx);
    args[1] = TW_TENSOR("y", &ty);
}

static void teardown(void)
{
    tw_kernel_destroy(k);
    tw_device_close(dev);
    tw_context_destroy(cx);
}

START_TEST(launched)
{
    tw_answer answer = TW_ANSWER_INIT;
    tw_launch_options opt = TW_LAUNCH_OPTIONS_INIT;

    ck_assert_msg(tw_launch(k, dev, NULL, args, 2) == TW_OK, "%s", tw_last_error()->text);
    ck_assert(y[5][3] == 7.0f);
    ck_assert_str_eq(tw_last_error()->text, "");
    ck_assert_int_eq(tw_query(k, dev, args, 2, NULL, &answer), TW_OK);
    ck_assert_int_eq(answer.layer, TW_LAYER_DEFAULT);
    ck_assert_ptr_nonnull(strstr(answer.config, "MANY=0"));
    opt.config = "MANY=2"; /* who asks for it is told */
    ck_assert_int_eq(tw_launch_with(k, dev, NULL, args, 2, &opt), TW_E_LIMIT);
}
END_TEST

START_TEST(tuned)
{
    tw_tune_options opt = TW_TUNE_OPTIONS_INIT;
    tw_tune_report *r = NULL;

    opt.budget_s = 1.0;
    ck_assert_msg(tw_tune(k, dev, args, 2, &opt, &r) == TW_OK, "%s", tw_last_error()->text);
    const tw_trial *first = tw_tune_report_trial(r, tw_tune_report_default(r));
    ck_assert_ptr_nonnull(strstr(first->config, "MANY=0"));
    tw_tune_report_destroy(r);
    opt.config = "MANY=2";
    ck_assert_int_eq(tw_tune(k, dev, args, 2, &opt, NULL), TW_E_LIMIT);
}
END_TEST

/* No configuration fits, and there are 65536: it ends, soon. */
START_TEST(none_fits)
{
    char *text = malloc(ROOM);
    tw_kernel *many;
    tw_tune_options opt = TW_TUNE_OPTIONS_INIT;
    size_t n = (size_t)snprintf(text, ROOM,
                                "kernel k(x: f32[M, N], out y: f32[N, M])\n"
                                "tune A in range(256), B in range(256)\n"
                                "grid (1) {\nvar t = load(x[0 :+ 128, 0 :+ 128]);\n");

    for (int i = 0; i < 300; i++)
        n += (size_t)snprintf(text + n, ROOM - n, "t = dot(t, t);\n");
    n += (size_t)snprintf(text + n, ROOM - n, "store(y[0 :+ 128, 0 :+ 128], t);\n}\n");
    ck_assert_int_eq(tw_kernel_load_text(cx, "many.tw", text, n, NULL, &many), TW_OK);
    free(text);
    ck_assert_int_eq(tw_launch(many, dev, NULL, args, 2), TW_E_LIMIT);
    ck_assert_int_eq(tw_tune(many, dev, args, 2, &opt, NULL), TW_E_LIMIT);
    tw_kernel_destroy(many);
}
END_TEST

/* Too many combinations to look at: nothing is claimed of those that were not. */
START_TEST(none_is_found)
{
    static const char text[] = "kernel k(x: f32[M, N], out y: f32[N, M])\n"
                               "tune A in range(256), B in range(256), C in range(256)\n"
                               "     with A == 255 && B == 255 && C == 255\n"
                               "grid (1) { }\n";
    tw_kernel *far;

    ck_assert_int_eq(tw_kernel_load_text(cx, "far.tw", text, sizeof text - 1, NULL, &far), TW_OK);
    ck_assert_int_eq(tw_launch(far, dev, NULL, args, 2), TW_E_LIMIT);
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "none of the first 100000 configurations"));
    tw_kernel_destroy(far);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("fitting");
    TCase *t = tcase_create("fitting");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, launched);
    tcase_add_test(t, tuned);
    tcase_add_test(t, none_fits);
    tcase_add_test(t, none_is_found);
    suite_add_tcase(s, t);
    return s;
}
