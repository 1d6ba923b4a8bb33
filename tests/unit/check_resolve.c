/* Configurations: text, pins, constraints, and which layer answers. */
#include "runtime/resolve.h"
#include "compiler/base/guard.h"
#include "tests/support/runtime_fixture.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static tw_kernel *kernel;
static tw_device *dev;
static launch_args args;
static rt_vector x, y;

static void setup_with(const tw_config *cfg, const tuner_ops *tuner)
{
    rt_context(cfg, tuner);
    kernel = rt_tuned_kernel();
    dev = rt_device("null");
    rt_vector_init(&x, 1000, 1.0f);
    rt_vector_init(&y, 1000, 1.0f);
}

static void setup(void)
{
    rt_setup();
    setup_with(NULL, NULL);
}

static void close_all(void)
{
    tw_kernel_destroy(kernel);
    tw_device_close(dev);
}

static void teardown(void)
{
    close_all();
    rt_teardown();
}

/* The problem of n elements with FLAG, its content known. */
static const problem *problem_of(int64_t n, bool flag)
{
    const tw_arg a[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t), TW_BOOL("FLAG", flag)};

    x.shape[0] = y.shape[0] = n;
    y.t.data = n > 4096 ? (void *)((uintptr_t)1 << 40) : y.x; /* not touched */
    RT_OK(runtime_resolve_args(kernel, dev, a, 3, 0, &args));
    RT_OK(runtime_content_hash(kernel, dev, NULL, &args.p));
    return &args.p;
}

static const char *pinned(const problem *p, const char *text)
{
    static char out[RUNTIME_CONFIG_TEXT];
    config cfg;

    RT_OK(config_pin(kernel, dev->target, dev, p, text, &cfg, NULL));
    RT_OK(config_text(&cfg, out));
    return out;
}

START_TEST(first_valid_is_the_default)
{
    const problem *p = problem_of(100, false);
    config cfg;
    int64_t c[64];

    RT_OK(config_default(kernel, dev->target, dev, p, &cfg));
    ck_assert_int_eq(cfg.value[0].value, 64);
    ck_assert_int_eq(config_candidates(kernel, dev->target, dev, 0, c), 3);
    ck_assert_int_eq(c[2], 128);
    const char *why = NULL;
    ck_assert(config_valid(kernel, dev->target, p, &cfg, &why) && !why);
    cfg.value[0].value = 128;
    ck_assert(!config_valid(kernel, dev->target, p, &cfg, &why));
    ck_assert_str_eq(why, "BLOCK < 128 || FLAG");
}
END_TEST

START_TEST(pins)
{
    const problem *p = problem_of(100, false);
    config cfg;

    ck_assert_str_eq(pinned(p, ""), "BLOCK=64");
    ck_assert_str_eq(pinned(p, "BLOCK=32"), "BLOCK=32");
    ck_assert_str_eq(pinned(p, " BLOCK=48 ,"), "BLOCK=48"); /* not in the set, but valid */
    RT_FAILS(config_pin(kernel, dev->target, dev, p, "BLOCK=128", &cfg, NULL), TW_E_ARG,
             "BLOCK < 128 || FLAG");
    ck_assert_str_eq(pinned(problem_of(100, true), "BLOCK=128"), "BLOCK=128");
    RT_FAILS(config_pin(kernel, dev->target, dev, p, "BLOK=32", &cfg, NULL), TW_E_ARG,
             "no parameter 'BLOK'");
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "it has BLOCK"));
    RT_FAILS(config_pin(kernel, dev->target, dev, p, "BLOCK", &cfg, NULL), TW_E_ARG, "NAME=NUMBER");
    RT_FAILS(config_pin(kernel, dev->target, dev, p, "BLOCK=x", &cfg, NULL), TW_E_ARG, "'x'");
    RT_FAILS(config_pin(kernel, dev->target, dev, p, "BLOCK=0", &cfg, NULL), TW_E_ARG,
             "at least 1");
    RT_FAILS(config_pin(kernel, dev->target, dev, p, "BLOCK=8,BLOCK=8", &cfg, NULL), TW_E_ARG,
             "twice");
    RT_FAILS(config_pin(kernel, dev->target, dev, p, "FLAG=1", &cfg, NULL), TW_E_ARG,
             "compile-time value");
}
END_TEST

/* Constraints that nothing in the sets meets: what is pinned by hand runs, and is tuned. */
START_TEST(pins_run_where_the_sets_hold_nothing_valid)
{
    static const char text[] = "kernel k(x: f32[N], out y: f32[N]) tune BLOCK in {64, 32}, PART in "
                               "{4, 2} with BLOCK < 16\n"
                               "grid (cdiv(N, BLOCK)) {\n"
                               "    let i = program_id(0) * BLOCK;\n"
                               "    store(y[i :+ BLOCK], load(x[i :+ BLOCK]) + 1.0);\n"
                               "}\n";
    const tw_arg list[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t)};
    tw_launch_options opt = TW_LAUNCH_OPTIONS_INIT;
    tw_device *interp = rt_device("interp");
    tw_kernel *k;

    RT_OK(tw_kernel_load_text(rt_cx, "k.tw", text, sizeof text - 1, NULL, &k));
    RT_FAILS(tw_launch(k, interp, NULL, list, 2), TW_E_ARG,
             "no configuration is valid: BLOCK < 16");
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "pin values"));
    opt.config = " ,";
    RT_FAILS(tw_launch_with(k, interp, NULL, list, 2, &opt), TW_E_ARG, "no configuration");
    opt.config = "PART=2";
    RT_FAILS(tw_launch_with(k, interp, NULL, list, 2, &opt), TW_E_ARG, "no configuration");
    opt.config = "BLOCK=16";
    RT_FAILS(tw_launch_with(k, interp, NULL, list, 2, &opt), TW_E_ARG, "BLOCK < 16");
    opt.config = "BLOCK=8";
    RT_OK(tw_launch_with(k, interp, NULL, list, 2, &opt));
    for (int i = 0; i < 1000; i++)
        ck_assert(y.x[i] == 2.0f);
    tw_kernel_destroy(k);
    tw_device_close(interp);
}
END_TEST

START_TEST(texts_read_back)
{
    const problem *p = problem_of(100, false);
    config a, b;
    char text[RUNTIME_CONFIG_TEXT];

    RT_OK(config_pin(kernel, dev->target, dev, p, "BLOCK=32", &a, NULL));
    RT_OK(config_text(&a, text));
    ck_assert(config_parse(kernel, dev->target, dev, p, text, &b));
    ck_assert(config_equal(&a, &b));
    ck_assert(!config_parse(kernel, dev->target, dev, p, "", &b)); /* all must be named */
    ck_assert(!config_parse(kernel, dev->target, dev, p, "BLOCK=128", &b));
    ck_assert(!config_parse(kernel, dev->target, dev, p, "BLOCK=32,threads=2", &b));
}
END_TEST

/* ---- layers ---------------------------------------------------------------------------------- */

typedef struct put_job {
    const problem *p;
    const char *config;
    const char *driver; /* NULL: this one */
    const char *device_name;
    arena a;
} put_job;

static tw_status put_guarded(void *arg)
{
    put_job *j = arg;
    store_key key;
    store_coord device[8];

    config_store_key(kernel, dev, j->p, &j->a, &key);
    if (j->driver)
        key.driver = j->driver;
    if (j->device_name) {
        memcpy(device, key.device, sizeof *device * key.ndevice);
        device[0].text = j->device_name;
        key.device = device;
    }
    return store_put_best(rt_cx->store, &key, j->config, 0.001, 0.0);
}

static void put(put_job j)
{
    arena_init(&j.a);
    tw_status st = guard_run(put_guarded, &j);
    arena_release(&j.a);
    ck_assert(st == TW_OK || st == TW_E_STORE); /* E_STORE: kept in memory, as there is no file */
}

static config_answer ask(const problem *p, const char *pin)
{
    config_answer a;

    RT_OK(config_resolve(kernel, dev, p, pin, &a));
    return a;
}

START_TEST(layers_in_order)
{
    static problem far, near;
    far = *problem_of(1000000, false);
    near = *problem_of(1000, false);

    ck_assert_int_eq(ask(&near, NULL).layer, TW_LAYER_DEFAULT);
    ck_assert_int_eq(ask(&near, NULL).cfg.value[0].value, 64);
    put((put_job){.p = &near, .config = "BLOCK=31", .device_name = "another processor"});
    ck_assert_int_eq(ask(&near, NULL).layer, TW_LAYER_NEAREST_DEVICE);
    ck_assert_int_eq(ask(&near, NULL).cfg.value[0].value, 31);
    put((put_job){.p = &far, .config = "BLOCK=30"});
    ck_assert_int_eq(ask(&near, NULL).layer, TW_LAYER_NEAREST_PROBLEM);
    ck_assert_int_eq(ask(&near, NULL).cfg.value[0].value, 30);
    put((put_job){.p = &near, .config = "BLOCK=29", .driver = "of last year"});
    ck_assert_int_eq(ask(&near, NULL).layer, TW_LAYER_OTHER_DRIVER);
    ck_assert_int_eq(ask(&near, NULL).cfg.value[0].value, 29);
    put((put_job){.p = &near, .config = "BLOCK=28"});
    ck_assert_int_eq(ask(&near, NULL).layer, TW_LAYER_EXACT);
    ck_assert_int_eq(ask(&near, NULL).cfg.value[0].value, 28);
    ck_assert(ask(&near, NULL).seconds == 0.001);
    ck_assert_int_eq(ask(&near, "BLOCK=8").layer, TW_LAYER_PINNED);
    ck_assert_int_eq(ask(&near, "").cfg.value[0].value, 64);
}
END_TEST

START_TEST(what_does_not_fit_is_skipped)
{
    static problem p;
    p = *problem_of(1000, false);

    put((put_job){.p = &p, .config = "BLOCK=128"}); /* breaks the constraint */
    ck_assert_int_eq(ask(&p, NULL).layer, TW_LAYER_DEFAULT);
    put((put_job){.p = &p, .config = "BLOCK=32,stages=2"}); /* of another target */
    ck_assert_int_eq(ask(&p, NULL).layer, TW_LAYER_DEFAULT);
    put((put_job){.p = &p, .config = "garbage"});
    ck_assert_int_eq(ask(&p, NULL).layer, TW_LAYER_DEFAULT);
    ck_assert_str_eq(tw_last_error()->text, "");
}
END_TEST

/* Meets the constraints, and is a tile too large. */
START_TEST(what_cannot_be_compiled_is_passed_over)
{
    static const char text[] = "kernel twice(x: f32[N], out y: f32[N])\n"
                               "tune B in {64, 2097152}\n"
                               "grid (cdiv(N, B))\n"
                               "{\n"
                               "    let at = program_id(0) * B;\n"
                               "    store(y[at :+ B], 2.0 * load(x[at :+ B]));\n"
                               "}\n";
    const tw_arg list[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t)};
    tw_answer a = TW_ANSWER_INIT;

    close_all();
    dev = rt_device("interp");
    RT_OK(tw_kernel_load_text(rt_cx, "twice.tw", text, strlen(text), NULL, &kernel));
    RT_OK(runtime_resolve_args(kernel, dev, list, 2, 0, &args));
    RT_OK(runtime_content_hash(kernel, dev, NULL, &args.p));
    put((put_job){.p = &args.p, .config = "B=2097152"});
    ck_assert_int_eq(ask(&args.p, NULL).layer, TW_LAYER_EXACT);
    RT_OK(tw_launch(kernel, dev, NULL, list, 2));
    ck_assert(y.x[999] == 2.0f);
    ck_assert_str_eq(tw_last_error()->text, "");
    RT_OK(tw_query(kernel, dev, list, 2, NULL, &a));
    ck_assert_int_eq(a.layer, TW_LAYER_DEFAULT);
    ck_assert_str_eq(a.config, "B=64");
    tw_launch_options opt = TW_LAUNCH_OPTIONS_INIT;
    opt.config = "B=2097152"; /* who asks for it is told */
    RT_FAILS(tw_launch_with(kernel, dev, NULL, list, 2, &opt), TW_E_SOURCE,
             "note: with B = 2097152");
}
END_TEST

START_TEST(queries_and_launches_agree)
{
    static problem p;
    tw_answer a = TW_ANSWER_INIT;
    const tw_arg list[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t)};
    tw_launch_options opt = TW_LAUNCH_OPTIONS_INIT;
    tw_null_stats stats;

    p = *problem_of(1000, false);
    put((put_job){.p = &p, .config = "BLOCK=28"});
    RT_OK(tw_query(kernel, dev, list, 2, NULL, &a));
    ck_assert_int_eq(a.layer, TW_LAYER_EXACT);
    ck_assert_str_eq(a.config, "BLOCK=28");
    ck_assert(a.seconds == 0.001 && a.compile_s > 0.0 && a.ir_ops > 0 && a.code_bytes > 0);
    ck_assert_int_eq(a.text_lines, 30);
    RT_OK(tw_null_query(dev, &stats));
    ck_assert_int_eq((int)stats.launches, 0);
    RT_OK(tw_launch(kernel, dev, NULL, list, 2));
    RT_OK(tw_null_query(dev, &stats));
    ck_assert_int_eq((int)stats.loads, 1);
    opt.config = "BLOCK=28"; /* the same code under another key */
    RT_OK(tw_launch_with(kernel, dev, NULL, list, 2, &opt));
    RT_OK(tw_null_query(dev, &stats));
    ck_assert_int_eq((int)stats.loads, 1);
    RT_OK(tw_query(kernel, dev, list, 2, &opt, &a));
    ck_assert_int_eq(a.layer, TW_LAYER_PINNED);
    opt.config = "BLOCK=7,";
    RT_OK(tw_query(kernel, dev, list, 2, &opt, &a));
    ck_assert_str_eq(a.config, "BLOCK=7");
    opt.config = "nothing=1";
    RT_FAILS(tw_launch_with(kernel, dev, NULL, list, 2, &opt), TW_E_ARG, "'nothing'");
}
END_TEST

/* ---- the tuner, from the runtime's side ------------------------------------------------------ */

static int tunings;
static tw_status tuning_status;

static tw_status tune(tw_kernel *k, tw_device *d, const launch_args *a, double budget_s,
                      config *cfg, double *seconds, tw_layer *layer)
{
    tunings++;
    ck_assert(budget_s == 3.0);
    if (tuning_status != TW_OK)
        return error_set(tuning_status, "tuning failed");
    *seconds = 0.5;
    *layer = TW_LAYER_TUNED;
    return config_pin(k, d->target, d, &a->p, "BLOCK=17", cfg, NULL);
}

START_TEST(a_miss_tunes_once)
{
    static const tuner_ops ops = {tune};
    tw_config cfg = TW_CONFIG_INIT;
    tw_answer a = TW_ANSWER_INIT;
    const tw_arg list[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t)};
    tw_launch_options opt = TW_LAUNCH_OPTIONS_INIT;

    cfg.tune = TW_TUNE_ON_MISS;
    cfg.tune_budget_s = 3.0;
    tunings = 0;
    close_all();
    setup_with(&cfg, &ops);
    RT_OK(tw_query(kernel, dev, list, 2, NULL, &a)); /* a query measures nothing */
    ck_assert_int_eq(tunings, 0);
    ck_assert_int_eq(a.layer, TW_LAYER_DEFAULT);
    opt.config = "BLOCK=32"; /* neither does a pin */
    RT_OK(tw_launch_with(kernel, dev, NULL, list, 2, &opt));
    ck_assert_int_eq(tunings, 0);
    tuning_status = TW_E_MISMATCH;
    RT_FAILS(tw_launch(kernel, dev, NULL, list, 2), TW_E_MISMATCH, "tuning failed");
    tuning_status = TW_OK;
    for (int i = 0; i < 3; i++)
        RT_OK(tw_launch(kernel, dev, NULL, list, 2));
    ck_assert_int_eq(tunings, 2);
    RT_OK(tw_query(kernel, dev, list, 2, NULL, &a));
    ck_assert_int_eq(a.layer, TW_LAYER_TUNED);
    ck_assert_str_eq(a.config, "BLOCK=17");
    ck_assert(a.seconds == 0.5);
    x.shape[0] = y.shape[0] = 100; /* another size class is another miss */
    RT_OK(tw_launch(kernel, dev, NULL, list, 2));
    ck_assert_int_eq(tunings, 3);
    x.shape[0] = y.shape[0] = 10; /* no memory for copies: the launch is none the worse for it */
    tuning_status = TW_E_NOMEM;
    RT_OK(tw_launch(kernel, dev, NULL, list, 2));
    RT_OK(tw_launch(kernel, dev, NULL, list, 2));
    tuning_status = TW_OK;
    ck_assert_int_eq(tunings, 4);
    ck_assert_str_eq(tw_last_error()->text, "");
    RT_OK(tw_query(kernel, dev, list, 2, NULL, &a));
    ck_assert_int_ne(a.layer, TW_LAYER_TUNED);
}
END_TEST

START_TEST(a_winner_is_adopted)
{
    const tw_arg list[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t)};
    tw_answer a = TW_ANSWER_INIT;
    executable *exe;
    config cfg;

    RT_OK(tw_launch(kernel, dev, NULL, list, 2));
    const problem *p = problem_of(1000, false);
    RT_OK(config_pin(kernel, dev->target, dev, p, "BLOCK=8", &cfg, NULL));
    RT_OK(runtime_compile(kernel, dev, p, &cfg, COMPILE_NO_STORE_WRITE | COMPILE_NO_LOAD, &exe));
    runtime_exe_store(exe);
    runtime_adopt(kernel, dev, &args, exe, TW_LAYER_TUNED, 0.25);
    runtime_exe_release(exe);
    RT_OK(tw_launch(kernel, dev, NULL, list, 2));
    RT_OK(tw_query(kernel, dev, list, 2, NULL, &a));
    ck_assert_str_eq(a.config, "BLOCK=8");
    ck_assert_int_eq(a.layer, TW_LAYER_TUNED);
}
END_TEST

static uint64_t loads(void)
{
    tw_null_stats n;

    RT_OK(tw_null_query(dev, &n));
    return n.loads;
}

/* At once, or when it is loaded later. */
START_TEST(stored_code_that_does_not_load_is_compiled_again)
{
    const tw_arg list[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t)};
    char dir[] = "/tmp/tw-resolve-XXXXXX", path[64];
    tw_config cfg = TW_CONFIG_INIT;
    tw_answer a = TW_ANSWER_INIT;
    executable *exe;
    config chosen;

    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/store.db", dir);
    cfg.store_path = path;
    close_all();
    for (int round = 0; round < 3; round++) {
        setup_with(&cfg, NULL);
        if (round == 1)
            RT_OK(tw_null_fail(dev, "load", 1, TW_E_DRIVER));
        RT_OK(tw_launch(kernel, dev, NULL, list, 2));
        RT_OK(tw_query(kernel, dev, list, 2, NULL, &a));
        ck_assert_int_eq(a.artifact_stored, round == 2);
        ck_assert_int_eq((int)loads(), round == 1 ? 2 : 1);
        if (round < 2)
            close_all();
    }
    const problem *p = problem_of(1000, false);
    RT_OK(config_default(kernel, dev->target, dev, p, &chosen));
    RT_OK(runtime_compile(kernel, dev, p, &chosen, COMPILE_NO_LOAD, &exe));
    ck_assert(exe->from_store);
    RT_OK(tw_null_fail(dev, "load", 1, TW_E_DRIVER));
    RT_OK(runtime_exe_load(exe));
    ck_assert(!exe->from_store && exe->compile_s > 0.0);
    ck_assert_int_eq((int)loads(), 3);
    runtime_exe_release(exe);
    RT_OK(runtime_compile(kernel, dev, p, &chosen, COMPILE_NO_STORE_READ | COMPILE_NO_LOAD, &exe));
    RT_OK(tw_null_fail(dev, "load", 1, TW_E_DRIVER)); /* new code that fails is no reason */
    ck_assert_int_eq(runtime_exe_load(exe), TW_E_DRIVER);
    runtime_exe_release(exe);
    close_all();
    rt_context(NULL, NULL);
    setup_with(NULL, NULL);
    unlink(path);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

static const char *symbol_of(const char *name, bool stored)
{
    static char symbol[32];
    char text[400];
    executable *exe;
    config chosen;

    snprintf(text, sizeof text,
             "kernel %s(x: f32[N], out y: f32[N]) grid (cdiv(N, 64)) {\n"
             "    store(y[program_id(0) * 64 :+ 64], load(x[program_id(0) * 64 :+ 64]));\n"
             "}\n",
             name);
    tw_kernel_destroy(kernel);
    RT_OK(tw_kernel_load_text(rt_cx, "copy.tw", text, strlen(text), NULL, &kernel));
    const tw_arg list[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t)};
    RT_OK(tw_launch(kernel, dev, NULL, list, 2));
    RT_OK(runtime_resolve_args(kernel, dev, list, 2, 0, &args));
    RT_OK(config_default(kernel, dev->target, dev, &args.p, &chosen));
    RT_OK(runtime_compile(kernel, dev, &args.p, &chosen, COMPILE_NO_LOAD, &exe));
    ck_assert_int_eq(exe->from_store, stored);
    snprintf(symbol, sizeof symbol, "%s", exe->art->step->symbol);
    runtime_exe_release(exe);
    return symbol;
}

/* What drivers, profilers and their messages call code: kernels of equal IR do not share it. */
START_TEST(code_has_the_name_of_its_kernel)
{
    char dir[] = "/tmp/tw-resolve-XXXXXX", path[64];
    tw_config cfg = TW_CONFIG_INIT;

    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/store.db", dir);
    cfg.store_path = path;
    close_all();
    setup_with(&cfg, NULL);
    ck_assert_str_eq(symbol_of("first", true), "first");
    ck_assert_str_eq(symbol_of("second", true), "second");
    ck_assert_str_eq(symbol_of("first", true), "first");
    close_all();
    rt_context(NULL, NULL);
    setup_with(NULL, NULL);
    unlink(path);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("resolve");
    TCase *t = tcase_create("resolve");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, first_valid_is_the_default);
    tcase_add_test(t, pins);
    tcase_add_test(t, pins_run_where_the_sets_hold_nothing_valid);
    tcase_add_test(t, texts_read_back);
    tcase_add_test(t, layers_in_order);
    tcase_add_test(t, what_does_not_fit_is_skipped);
    tcase_add_test(t, what_cannot_be_compiled_is_passed_over);
    tcase_add_test(t, queries_and_launches_agree);
    tcase_add_test(t, a_miss_tunes_once);
    tcase_add_test(t, a_winner_is_adopted);
    tcase_add_test(t, stored_code_that_does_not_load_is_compiled_again);
    tcase_add_test(t, code_has_the_name_of_its_kernel);
    suite_add_tcase(s, t);
    return s;
}
