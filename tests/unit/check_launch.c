/* Launches, from arguments to the driver: on the null device, which counts, and on the interpreter,
 * which computes. */
#include "compiler/base/mem.h"
#include "tests/support/runtime_fixture.h"
#include <check.h>
#include <pthread.h>
#include <string.h>

static tw_null_stats stats_of(const tw_device *dev)
{
    tw_null_stats s;

    RT_OK(tw_null_query(dev, &s));
    return s;
}

static tw_status add(tw_kernel *k, tw_device *dev, rt_vector *x, rt_vector *y)
{
    const tw_arg args[] = {TW_TENSOR("x", &x->t), TW_TENSOR("y", &y->t)};

    return tw_launch(k, dev, NULL, args, 2);
}

START_TEST(counts_of_the_null_device)
{
    static rt_vector x, y;
    tw_device *dev = rt_device("null");
    tw_kernel *k = rt_add_kernel();

    rt_vector_init(&x, 1000, 1.0f);
    rt_vector_init(&y, 1000, 0.0f);
    for (int i = 0; i < 5; i++)
        RT_OK(add(k, dev, &x, &y));
    RT_OK(tw_stream_sync(dev, NULL));
    ck_assert_int_eq((int)stats_of(dev).opens, 1);
    ck_assert_int_eq((int)stats_of(dev).loads, 1);
    ck_assert_int_eq((int)stats_of(dev).launches, 5);
    ck_assert_int_eq((int)stats_of(dev).steps, 5);
    ck_assert_int_eq((int)stats_of(dev).syncs, 1);
    rt_vector_init(&x, 1001, 1.0f); /* the same size class: the same code */
    rt_vector_init(&y, 1001, 0.0f);
    RT_OK(add(k, dev, &x, &y));
    ck_assert_int_eq((int)stats_of(dev).loads, 1);
    tw_kernel_destroy(k);
    tw_device_close(dev);
}
END_TEST

START_TEST(injected_failures)
{
    static rt_vector x, y;
    tw_device *dev = rt_device("null");
    tw_kernel *k = rt_add_kernel();

    rt_vector_init(&x, 100, 1.0f);
    rt_vector_init(&y, 100, 0.0f);
    RT_OK(tw_null_fail(dev, "load", 1, TW_E_DRIVER));
    RT_FAILS(add(k, dev, &x, &y), TW_E_DRIVER, "load failed");
    RT_OK(add(k, dev, &x, &y)); /* and then it works */
    RT_OK(tw_null_fail(dev, "launch", 2, TW_E_DEVICE));
    RT_OK(add(k, dev, &x, &y));
    RT_FAILS(add(k, dev, &x, &y), TW_E_DEVICE, "launch failed");
    RT_OK(add(k, dev, &x, &y));
    RT_OK(tw_null_fail(dev, "sync", 1, TW_E_ASSERT));
    RT_FAILS(tw_stream_sync(dev, NULL), TW_E_ASSERT, "sync failed");
    RT_FAILS(tw_null_fail(dev, "fly", 1, TW_E_DRIVER), TW_E_ARG, "'fly'");
    tw_device *interp = rt_device("interp");
    RT_FAILS(tw_null_fail(interp, "load", 1, TW_E_DRIVER), TW_E_ARG, "not a null device");
    tw_kernel_destroy(k);
    tw_device_close(interp);
    tw_device_close(dev);
}
END_TEST

START_TEST(computes_and_takes_defaults)
{
    static rt_vector x, y;
    tw_device *dev = rt_device("interp");
    tw_kernel *k = rt_add_kernel();
    tw_arg args[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t), TW_F32("by", 0.5)};

    rt_vector_init(&x, 45, 2.0f);
    rt_vector_init(&y, 45, -9.0f);
    RT_OK(tw_launch(k, dev, NULL, args, 2));
    ck_assert(y.x[0] == 3.0f && y.x[44] == 3.0f && y.x[45] == -9.0f);
    RT_OK(tw_launch(k, dev, NULL, args, 3));
    ck_assert(y.x[0] == 2.5f && y.x[44] == 2.5f && y.x[45] == -9.0f);
    x.stride[0] = 3; /* every third */
    x.x[3] = 7.0f;
    RT_OK(tw_launch(k, dev, NULL, args, 3));
    ck_assert(y.x[1] == 7.5f && y.x[3] == 2.5f);
    tw_kernel_destroy(k);
    tw_device_close(dev);
}
END_TEST

START_TEST(asserts_and_requires)
{
    static rt_vector x, y;
    tw_device *dev = rt_device("interp");
    tw_kernel *k = rt_add_kernel();

    rt_vector_init(&x, 100, 1.0f);
    rt_vector_init(&y, 100, 0.0f);
    x.x[64] = -1.0f;
    RT_FAILS(add(k, dev, &x, &y), TW_E_ASSERT, "x is not negative");
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "'add'"));
    x.x[64] = 1.0f;
    RT_OK(add(k, dev, &x, &y));
    x.shape[0] = y.shape[0] = 1000001;
    x.stride[0] = 0;
    y.t.data = (void *)((uintptr_t)1 << 40); /* not touched */
    RT_FAILS(add(k, dev, &x, &y), TW_E_ARG, "N <= 1000000");
    tw_kernel_destroy(k);
    tw_device_close(dev);
}
END_TEST

START_TEST(a_range_of_programs)
{
    static rt_vector x, y;
    tw_device *dev = rt_device("interp");
    tw_kernel *k = rt_add_kernel();
    const tw_arg args[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t)};
    tw_launch_options opt = TW_LAUNCH_OPTIONS_INIT;

    rt_vector_init(&x, 100, 1.0f);
    rt_vector_init(&y, 100, 0.0f);
    opt.program_first = 1;
    opt.program_count = 2;
    RT_OK(tw_launch_with(k, dev, NULL, args, 2, &opt));
    ck_assert(y.x[31] == 0.0f && y.x[32] == 2.0f && y.x[95] == 2.0f && y.x[96] == 0.0f);
    opt.program_first = 3;
    opt.program_count = 100; /* beyond the end: the last program */
    RT_OK(tw_launch_with(k, dev, NULL, args, 2, &opt));
    ck_assert(y.x[96] == 2.0f && y.x[100] == 0.0f);
    opt.program_first = 4;
    RT_OK(tw_launch_with(k, dev, NULL, args, 2, &opt));
    opt.program_first = -1;
    RT_FAILS(tw_launch_with(k, dev, NULL, args, 2, &opt), TW_E_ARG, "negative");
    tw_kernel_destroy(k);
    tw_device_close(dev);
}
END_TEST

/* Cold, then with work, then empty again: success each time, and nothing compiled for the first. */
START_TEST(an_empty_grid_is_no_work)
{
    static rt_vector x, y;
    tw_device *dev = rt_device("null");
    tw_kernel *k = rt_add_kernel();

    rt_vector_init(&x, 0, 1.0f);
    rt_vector_init(&y, 0, 0.0f);
    x.t.data = y.t.data = NULL;
    RT_OK(add(k, dev, &x, &y));
    RT_OK(add(k, dev, &x, &y));
    ck_assert_int_eq((int)stats_of(dev).loads, 0);
    rt_vector_init(&x, 100, 1.0f);
    rt_vector_init(&y, 100, 0.0f);
    RT_OK(add(k, dev, &x, &y));
    ck_assert_int_eq((int)stats_of(dev).launches, 1);
    rt_vector_init(&x, 0, 1.0f);
    rt_vector_init(&y, 0, 0.0f);
    RT_OK(add(k, dev, &x, &y));
    ck_assert_int_eq((int)stats_of(dev).launches, 1);
    tw_kernel_destroy(k);
    tw_device_close(dev);
}
END_TEST

/* ---- warm launches --------------------------------------------------------------------------- */

START_TEST(warm_launches_allocate_nothing)
{
    static rt_vector x, y;
    tw_device *dev = rt_device("null");
    tw_kernel *k = rt_add_kernel();
    tw_launch_options opt = TW_LAUNCH_OPTIONS_INIT;
    const tw_arg args[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t), TW_F32("by", 2.0)};
    tw_bound *b = NULL;

    rt_vector_init(&x, 1000, 1.0f);
    rt_vector_init(&y, 1000, 0.0f);
    opt.config = "";
    RT_OK(tw_launch(k, dev, NULL, args, 3));
    RT_OK(tw_launch_with(k, dev, NULL, args, 3, &opt));
    RT_OK(tw_kernel_specialize(k, dev, args, 3, NULL, &b));
    long before = mem_live();
    mem_fail_after(1);
    for (int i = 0; i < 100000; i++) {
        RT_OK(tw_launch(k, dev, NULL, args, 3));
        RT_OK(tw_launch_with(k, dev, NULL, args, 3, &opt));
        RT_OK(tw_bound_launch(b, NULL, args, 3));
    }
    mem_fail_after(0);
    ck_assert_int_eq(mem_live(), before);
    ck_assert_int_eq((int)stats_of(dev).launches, 300002);
    tw_bound_destroy(b);
    tw_kernel_destroy(k);
    tw_device_close(dev);
}
END_TEST

/* Aligned first, then one element further, then aligned again: right each time. */
START_TEST(alignment_is_part_of_the_key)
{
    static rt_vector x, y;
    tw_device *dev = rt_device("null");
    tw_kernel *k = rt_add_kernel();

    rt_vector_init(&x, 1000, 1.0f);
    rt_vector_init(&y, 1000, 0.0f);
    RT_OK(add(k, dev, &x, &y));
    x.t.byte_offset = 4;
    RT_OK(add(k, dev, &x, &y));
    ck_assert_int_eq((int)stats_of(dev).loads, 2);
    x.t.byte_offset = 16;
    RT_OK(add(k, dev, &x, &y));
    x.t.byte_offset = 8;
    RT_OK(add(k, dev, &x, &y));
    ck_assert_int_eq((int)stats_of(dev).loads, 2);
    x.stride[0] = 2;
    RT_OK(add(k, dev, &x, &y));
    ck_assert_int_eq((int)stats_of(dev).loads, 3);
    tw_kernel_destroy(k);
    tw_device_close(dev);
}
END_TEST

/* Sizes that come again: one load for each class of sizes, and none when they are all known. */
START_TEST(sizes_that_vary_compile_nothing)
{
    static const int64_t size[] = {1, 16, 17};
    static rt_vector x, y;
    tw_device *dev = rt_device("null");
    tw_kernel *k = rt_add_kernel();

    for (int i = 0; i < 3000; i++) {
        rt_vector_init(&x, size[i % 3], 1.0f);
        rt_vector_init(&y, size[i % 3], 0.0f);
        RT_OK(add(k, dev, &x, &y));
        ck_assert_int_le((int)stats_of(dev).loads, 3);
    }
    ck_assert_int_eq((int)stats_of(dev).launches, 3000);
    tw_kernel_destroy(k);
    tw_device_close(dev);
}
END_TEST

START_TEST(bound_launches)
{
    static rt_vector x, y;
    tw_device *dev = rt_device("interp");
    tw_kernel *k = rt_tuned_kernel();
    const tw_arg named[] = {TW_TENSOR("y", &y.t), TW_TENSOR("x", &x.t), TW_BOOL("FLAG", true)};
    tw_arg args[4] = {tw_arg_tensor(NULL, &x.t), tw_arg_tensor(NULL, &y.t),
                      tw_arg_float(NULL, 0.25)};
    tw_launch_options opt = TW_LAUNCH_OPTIONS_INIT;
    tw_bound *b = NULL;

    rt_vector_init(&x, 200, 1.0f);
    rt_vector_init(&y, 200, 0.0f);
    opt.config = "BLOCK=128";
    RT_OK(tw_kernel_specialize(k, dev, named, 3, &opt, &b));
    RT_OK(tw_bound_launch(b, NULL, args, 3));
    ck_assert(y.x[199] == 1.25f && y.x[200] == 0.0f);
    x.t.byte_offset = 4; /* facts that its code does not assume to hold */
    x.x[1] = 5.0f;
    RT_OK(tw_bound_launch(b, NULL, args, 3));
    ck_assert(y.x[0] == 5.25f);
    RT_FAILS(tw_bound_launch(b, NULL, args, 4), TW_E_ARG, "3 tensors and scalars");
    RT_FAILS(tw_bound_launch(b, NULL, args, 1), TW_E_ARG, "'y'");
    x.t.dtype.bits = 64;
    RT_FAILS(tw_bound_launch(b, NULL, args, 3), TW_E_ARG, "'T' is f32 from the specialisation");
    x.t.dtype.bits = 32;
    RT_FAILS(tw_launch_with(k, dev, NULL, named, 2, &opt), TW_E_ARG, "BLOCK < 128 || FLAG");
    tw_bound_destroy(b);
    tw_kernel_destroy(k);
    tw_device_close(dev);
}
END_TEST

/* ---- the processor --------------------------------------------------------------------------- */

START_TEST(machine_code)
{
    static rt_vector x, y;
    tw_device *dev = rt_device("cpu:3");
    tw_kernel *k = rt_tuned_kernel();
    tw_launch_options opt = TW_LAUNCH_OPTIONS_INIT;
    tw_answer a = TW_ANSWER_INIT;
    const tw_arg args[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t), TW_F32("by", 0.5)};

    for (int64_t n = 1; n < 4000; n = n * 2 + 1) {
        rt_vector_init(&x, n, 2.0f);
        rt_vector_init(&y, n, -9.0f);
        RT_OK(tw_launch(k, dev, NULL, args, 3));
        for (int64_t i = 0; i < 4096; i++)
            ck_assert(y.x[i] == (i < n ? 2.5f : -9.0f));
    }
    opt.config = "BLOCK=16,threads=2";
    RT_OK(tw_launch_with(k, dev, NULL, args, 3, &opt));
    RT_OK(tw_query(k, dev, args, 3, &opt, &a));
    ck_assert_ptr_nonnull(strstr(a.config, "BLOCK=16,threads=2"));
    opt.config = "threads=0";
    RT_FAILS(tw_launch_with(k, dev, NULL, args, 3, &opt), TW_E_ARG, "'threads' must be 1");
    opt.config = NULL;
    opt.f64 = true;
    RT_FAILS(tw_launch_with(k, dev, NULL, args, 3, &opt), TW_E_ARG, "'interp'");
    tw_kernel_destroy(k);
    tw_device_close(dev);
}
END_TEST

START_TEST(asserts_of_machine_code)
{
    static rt_vector x, y;
    tw_device *dev = rt_device("cpu");
    tw_kernel *k = rt_add_kernel();

    rt_vector_init(&x, 1000, 1.0f);
    rt_vector_init(&y, 1000, 0.0f);
    x.x[64] = -1.0f;
    RT_FAILS(add(k, dev, &x, &y), TW_E_ASSERT, "x is not negative");
    x.x[64] = 1.0f;
    RT_OK(add(k, dev, &x, &y));
    ck_assert(y.x[999] == 2.0f);
    tw_kernel_destroy(k);
    tw_device_close(dev);
}
END_TEST

START_TEST(every_code_path_that_runs_here)
{
    static rt_vector x, y;
    tw_kernel *k = rt_add_kernel();
    int ran = 0;

    for (size_t i = 0; i < target_count(); i++) {
        const target *t = target_at(i);
        tw_device *dev = rt_device("cpu");
        if (strcmp(t->family, "cpu") != 0) {
            RT_FAILS(tw_device_force_target(dev, t->name), TW_E_ARG, "no code path");
        } else if (!t->usable(t)) {
            RT_FAILS(tw_device_force_target(dev, t->name), TW_E_UNSUPPORTED, t->name);
        } else {
            RT_OK(tw_device_force_target(dev, t->name));
            rt_vector_init(&x, 77, 1.0f);
            rt_vector_init(&y, 77, 0.0f);
            RT_OK(add(k, dev, &x, &y));
            ck_assert(y.x[76] == 2.0f && y.x[77] == 0.0f);
            ran++;
        }
        tw_device_close(dev);
    }
    ck_assert_int_ge(ran, 1);
    tw_kernel_destroy(k);
}
END_TEST

/* The number of programs is counted in 64 bits: the last one of 2^32 sets the flag, on both
 * devices. */
START_TEST(a_grid_of_many_programs)
{
    static const char text[] =
        "kernel last(out f: i32[N], Y: i32)\n"
        "grid (16384, Y, 16)\n"
        "{\n"
        "    if (program_id(0) == 16383 && program_id(1) == 16383 && program_id(2) == 15)\n"
        "        store(f[0 :+ 16], full(i32[16], 1));\n"
        "}\n";
    static int32_t flag[16];
    int64_t shape[] = {16};
    DLTensor t = {flag, {kDLCPU, 0}, 1, {kDLInt, 32, 1}, shape, NULL, 0};
    tw_arg args[] = {TW_TENSOR("f", &t), TW_INT("Y", 16384)};
    tw_launch_options opt = TW_LAUNCH_OPTIONS_INIT;
    tw_device *dev = rt_device(_i == 0 ? "interp" : "cpu");
    tw_kernel *k;

    memset(flag, 0, sizeof flag);
    RT_OK(tw_kernel_load_text(rt_cx, "last.tw", text, strlen(text), NULL, &k));
    opt.program_count = 1;
    for (int64_t back = 2; back >= 0; back--) {
        opt.program_first = ((int64_t)1 << 32) - back;
        RT_OK(tw_launch_with(k, dev, NULL, args, 2, &opt));
        ck_assert_int_eq(flag[15], back < 2);
    }
    args[1] = TW_INT("Y", INT32_MAX);
    opt.program_first = ((int64_t)1 << 48) - 1;
    RT_OK(tw_launch_with(k, dev, NULL, args, 2, &opt));
    args[1] = TW_INT("Y", -1); /* as good as none */
    opt.program_count = 0;
    RT_OK(tw_launch_with(k, dev, NULL, args, 2, &opt));
    tw_kernel_destroy(k);
    tw_device_close(dev);
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct user {
    tw_kernel *k;
    tw_device *dev;
    int64_t n;
    int wrong;
    rt_vector x, y;
} user;

static void *use(void *arg)
{
    user *u = arg;

    for (int i = 0; i < 40; i++) {
        int64_t n = u->n + i % 3 * 500;
        rt_vector_init(&u->x, n, (float)i);
        rt_vector_init(&u->y, n, -1.0f);
        const tw_arg args[] = {TW_TENSOR("x", &u->x.t), TW_TENSOR("y", &u->y.t)};
        if (tw_launch(u->k, u->dev, NULL, args, 2) != TW_OK)
            u->wrong++;
        for (int64_t j = 0; j < 4096; j++)
            u->wrong += u->y.x[j] != (j < n ? (float)i + 1.0f : -1.0f);
    }
    return NULL;
}

/* Cold: all of them want the same row first, then rows of their own. */
START_TEST(many_threads_one_kernel)
{
    enum { USERS = 16 };
    static user u[USERS];
    pthread_t thread[USERS];
    tw_device *dev = rt_device(_i == 0 ? "interp" : "cpu:4");
    tw_kernel *k = rt_tuned_kernel();

    for (int i = 0; i < USERS; i++) {
        u[i].k = k;
        u[i].dev = dev;
        u[i].n = 5 + 70 * i;
        ck_assert_int_eq(pthread_create(&thread[i], NULL, use, &u[i]), 0);
    }
    for (int i = 0; i < USERS; i++) {
        pthread_join(thread[i], NULL);
        ck_assert_int_eq(u[i].wrong, 0);
    }
    ck_assert_int_lt(atomic_load(&rt_lowerings), 40); /* one or two a row, never one a launch */
    tw_kernel_destroy(k);
    tw_device_close(dev);
}
END_TEST

/* ---- lifetimes ------------------------------------------------------------------------------- */

START_TEST(either_may_go_first)
{
    static rt_vector x, y;
    tw_kernel *k = rt_add_kernel();

    rt_vector_init(&x, 100, 1.0f);
    rt_vector_init(&y, 100, 0.0f);
    for (int i = 0; i < 5; i++) {
        tw_device *dev = rt_device(i % 2 ? "interp" : "null");
        RT_OK(add(k, dev, &x, &y));
        tw_device_close(dev);
    }
    tw_device *dev = rt_device("interp");
    RT_OK(add(k, dev, &x, &y));
    tw_kernel_destroy(k);
    k = rt_add_kernel();
    RT_OK(add(k, dev, &x, &y));
    tw_device_close(dev);
    tw_kernel_destroy(k);
}
END_TEST

/* Every allocation of a cold launch fails in turn: no memory is said, nothing is lost, and with
 * memory the same kernel and device work. */
START_TEST(out_of_memory_at_every_step)
{
    static rt_vector x, y;

    rt_vector_init(&x, 100, 1.0f);
    rt_vector_init(&y, 100, 0.0f);
    for (long n = 1; n < 10000; n++) {
        tw_device *dev = rt_device("interp");
        tw_kernel *k = rt_add_kernel();
        mem_fail_after(n);
        tw_status st = add(k, dev, &x, &y);
        mem_fail_after(0);
        ck_assert(st == TW_OK || st == TW_E_NOMEM);
        RT_OK(add(k, dev, &x, &y));
        tw_kernel_destroy(k);
        tw_device_close(dev);
        if (st == TW_OK && n > 50)
            return;
    }
    ck_abort_msg("it never succeeds");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("launch");
    TCase *t = tcase_create("launch");

    tcase_add_checked_fixture(t, rt_setup, rt_teardown);
    tcase_add_test(t, counts_of_the_null_device);
    tcase_add_test(t, injected_failures);
    tcase_add_test(t, computes_and_takes_defaults);
    tcase_add_test(t, asserts_and_requires);
    tcase_add_test(t, a_range_of_programs);
    tcase_add_test(t, an_empty_grid_is_no_work);
    tcase_add_test(t, warm_launches_allocate_nothing);
    tcase_add_test(t, alignment_is_part_of_the_key);
    tcase_add_test(t, sizes_that_vary_compile_nothing);
    tcase_add_test(t, bound_launches);
    tcase_add_test(t, machine_code);
    tcase_add_test(t, asserts_of_machine_code);
    tcase_add_test(t, every_code_path_that_runs_here);
    tcase_add_loop_test(t, a_grid_of_many_programs, 0, 2);
    tcase_add_loop_test(t, many_threads_one_kernel, 0, 2);
    tcase_add_test(t, either_may_go_first);
    tcase_add_test(t, out_of_memory_at_every_step);
    suite_add_tcase(s, t);
    return s;
}
