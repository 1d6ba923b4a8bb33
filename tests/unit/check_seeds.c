/* Seeds: what a launch takes when nobody tuned, from the library or from a file. */
#include "tests/support/runtime_fixture.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[] = "/tmp/tw_seeds_XXXXXX";
static rt_vector x, y;

/* The answer for 1000 elements of the tuned kernel, with a file of seeds. */
static tw_answer ask(const char *seeds_path)
{
    const tw_arg list[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t)};
    tw_config cfg = TW_CONFIG_INIT;
    tw_answer a = TW_ANSWER_INIT;

    rt_vector_init(&x, 1000, 1.0f);
    rt_vector_init(&y, 1000, 1.0f);
    cfg.seeds_path = seeds_path;
    rt_log[0] = 0;
    rt_context(&cfg, NULL);
    tw_kernel *k = rt_tuned_kernel();
    tw_device *dev = rt_device("null");
    RT_OK(tw_query(k, dev, list, 2, NULL, &a));
    tw_kernel_destroy(k);
    tw_device_close(dev);
    return a;
}

static tw_answer ask_text(const char *text)
{
    FILE *f = fopen(path, "w");

    ck_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
    return ask(path);
}

static void setup(void)
{
    rt_setup();
    strcpy(path, "/tmp/tw_seeds_XXXXXX");
    close(mkstemp(path));
}

static void teardown(void)
{
    unlink(path);
    rt_teardown();
}

START_TEST(a_file_answers)
{
    tw_answer a = ask_text("# mine\n\n  tuned\t- N~1024,FLAG=false  BLOCK=32 # best\n");

    ck_assert_int_eq(a.layer, TW_LAYER_DEFAULT); /* '-' is no code path */
    a = ask_text(
        "other i - BLOCK=32\ntuned interp N~2048 BLOCK=8\n"
        "tuned interp - BLOCK=128\ntuned i N~1024,FLAG=false BLOCK=32\ntuned i - BLOCK=16\n");
    ck_assert_int_eq(a.layer, TW_LAYER_SEED); /* the third breaks a constraint: the fourth */
    ck_assert_ptr_nonnull(strstr(a.config, "BLOCK=32"));
    ck_assert_str_eq(rt_log, "");
}
END_TEST

START_TEST(what_is_wrong_is_said_once)
{
    tw_answer a = ask_text("tuned i -\ntuned i - BLOCK=32 and more\ntuned i - BLOCK=32\n");

    ck_assert_int_eq(a.layer, TW_LAYER_SEED);
    ck_assert_ptr_nonnull(strstr(rt_log, ": line 1 is wrong"));
    ck_assert_ptr_null(strstr(rt_log, "line 2"));
    a = ask("/tmp/no/such/file");
    ck_assert_int_eq(a.layer, TW_LAYER_DEFAULT);
    ck_assert_ptr_nonnull(strstr(rt_log, "/tmp/no/such/file: No such file"));
    a = ask("");
    ck_assert_int_eq(a.layer, TW_LAYER_DEFAULT);
    ck_assert_str_eq(rt_log, "");
}
END_TEST

/* None of these is read to its end, which it does not have, or waited for. */
START_TEST(what_is_no_file_is_not_read)
{
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    const char *const no_file[] = {"/tmp", "/dev/zero", path};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(ask(no_file[i]).layer, TW_LAYER_DEFAULT);
        ck_assert_ptr_nonnull(strstr(rt_log, ": not a regular file; "));
    }
}
END_TEST

START_TEST(what_is_not_text_is_wrong)
{
    static const char zeros[] = "tuned i - BLOCK=32\n\0\0";
    FILE *f = fopen(path, "w");

    ck_assert(f && fwrite(zeros, sizeof zeros, 1, f) == 1 && fclose(f) == 0);
    ck_assert_int_eq(ask(path).layer, TW_LAYER_SEED);
    ck_assert_ptr_nonnull(strstr(rt_log, ": line 1 is wrong"));
    ck_assert_int_eq(truncate(path, 2 << 20), 0);
    ck_assert_int_eq(ask(path).layer, TW_LAYER_DEFAULT);
    ck_assert_ptr_nonnull(strstr(rt_log, ": too long; "));
}
END_TEST

/* Of attention as shipped, where this machine has such a code path. */
START_TEST(those_shipped_are_there)
{
    static float data[4][64 * 128], lse[64];
    int64_t shape[] = {1, 1, 64, 64};
    DLTensor t[5];
    tw_arg args[5];
    tw_answer a = TW_ANSWER_INIT;
    tw_kernel *k;

    rt_context(NULL, NULL);
    tw_device *dev = rt_device("cpu");
    if (tw_device_force_target(dev, "cpu-avx512") == TW_OK) {
        static const char *const name[] = {"q", "k", "v", "o", "lse"};
        for (int i = 0; i < 5; i++) {
            t[i] = (DLTensor){i < 4 ? data[i] : lse,
                              {kDLCPU, 0},
                              i < 4 ? 4 : 3,
                              {kDLFloat, 32, 1},
                              shape,
                              NULL,
                              0};
            args[i] = TW_TENSOR(name[i], &t[i]);
        }
        RT_OK(tw_kernel_load(rt_cx, "kernels/attention_fwd.tw", NULL, &k));
        RT_OK(tw_query(k, dev, args, 5, NULL, &a));
        ck_assert_int_eq(a.layer, TW_LAYER_SEED);
        ck_assert_ptr_nonnull(strstr(a.config, "BLOCK_M=64,BLOCK_N=64"));
        shape[3] = 96; /* nothing is known of it */
        RT_OK(tw_query(k, dev, args, 5, NULL, &a));
        ck_assert_int_eq(a.layer, TW_LAYER_DEFAULT);
        tw_kernel_destroy(k);
    }
    tw_device_close(dev);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("seeds");
    TCase *t = tcase_create("seeds");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_file_answers);
    tcase_add_test(t, what_is_wrong_is_said_once);
    tcase_add_test(t, what_is_no_file_is_not_read);
    tcase_add_test(t, what_is_not_text_is_wrong);
    tcase_add_test(t, those_shipped_are_there);
    suite_add_tcase(s, t);
    return s;
}
