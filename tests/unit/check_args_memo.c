/* Launches that follow one like them: each thing that may differ from the one before is seen, by
 * name and bound. The wrong launch comes right after the one that is kept. */
#include "tests/support/cuda_rig.h"
#include <check.h>
#include <string.h>

static rt_vector x, y, z;
static tw_device *dev;
static tw_kernel *k;
static tw_bound *bound;

static void setup(void)
{
    rt_setup();
    dev = rt_device("interp");
    k = rt_add_kernel();
    rt_vector_init(&x, 100, 1.0f);
    rt_vector_init(&y, 100, 0.0f);
    rt_vector_init(&z, 100, 0.0f);
    const tw_arg args[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t), TW_F32("by", 0.5)};
    RT_OK(tw_kernel_specialize(k, dev, args, 3, NULL, &bound));
}

static void teardown(void)
{
    tw_bound_destroy(bound);
    tw_kernel_destroy(k);
    tw_device_close(dev);
    rt_teardown();
}

static tw_status launch(bool is_bound, DLTensor *from, DLTensor *to, double by)
{
    const tw_arg args[] = {TW_TENSOR("x", from), TW_TENSOR("y", to), TW_F32("by", by)};

    return is_bound ? tw_bound_launch(bound, NULL, args, 3) : tw_launch(k, dev, NULL, args, 3);
}

/* What is kept, and right. */
static void usual(bool is_bound)
{
    RT_OK(launch(is_bound, &x.t, &y.t, 0.5));
    ck_assert(y.x[0] == 1.5f && y.x[99] == 1.5f);
    y.x[0] = y.x[99] = 0.0f;
}

START_TEST(what_differs_is_seen)
{
    bool b = _i != 0;
    DLTensor t = x.t, to = y.t;

    usual(b);
    RT_OK(launch(b, &x.t, &y.t, 0.75)); /* a number */
    ck_assert(y.x[99] == 1.75f);
    usual(b);
    RT_OK(launch(b, &x.t, &z.t, 0.5)); /* a place */
    ck_assert(z.x[99] == 1.5f && y.x[99] == 0.0f);
    usual(b);
    t.data = NULL;
    RT_FAILS(launch(b, &t, &y.t, 0.5), TW_E_ARG, "tensor 'x': data is NULL");
    usual(b);
    t = x.t, t.byte_offset = 2;
    RT_FAILS(launch(b, &t, &y.t, 0.5), TW_E_ARG, "not aligned to its elements");
    usual(b);
    t.byte_offset = 40; /* ten elements on, aligned otherwise */
    x.x[109] = 5.0f;
    RT_OK(launch(b, &t, &y.t, 0.5));
    ck_assert(y.x[0] == 1.5f && y.x[99] == 5.5f);
    usual(b);
    to.data = x.x + 50;
    RT_FAILS(launch(b, &x.t, &to, 0.5), TW_E_ARG, "overlap in memory");
    usual(b);
    t = x.t, t.dtype.bits = 64;
    RT_FAILS(launch(b, &t, &y.t, 0.5), TW_E_ARG, "tensor 'x' must be f32, not f64");
    usual(b);
    t = x.t, t.device.device_type = kDLCUDA;
    RT_FAILS(launch(b, &t, &y.t, 0.5), TW_E_ARG, "DLPack device type 2");
    usual(b);
    t = x.t, t.ndim = 2;
    RT_FAILS(launch(b, &t, &y.t, 0.5), TW_E_ARG, "must have 1 dimension");
    usual(b);
    t = x.t, t.shape = (int64_t[]){99};
    RT_FAILS(launch(b, &t, &y.t, 0.5), TW_E_ARG, "'N' is 99");
    usual(b);
    x.shape[0] = y.shape[0] = 50; /* the same arrays, with other numbers in them */
    RT_OK(launch(b, &x.t, &y.t, 0.5));
    ck_assert(y.x[0] == 1.5f && y.x[99] == 0.0f);
    x.shape[0] = y.shape[0] = 100;
    usual(b);
    x.stride[0] = 2;
    x.x[2] = 3.0f;
    RT_OK(launch(b, &x.t, &y.t, 0.5));
    ck_assert(y.x[1] == 3.5f);
    x.t.strides = NULL;
    RT_OK(launch(b, &x.t, &y.t, 0.5));
    ck_assert(y.x[2] == 3.5f);
}
END_TEST

START_TEST(names_and_counts)
{
    char name[] = "x";
    tw_arg args[] = {TW_TENSOR(name, &x.t), TW_TENSOR("y", &y.t), TW_F32("by", 0.5)};

    RT_OK(tw_launch(k, dev, NULL, args, 3));
    name[0] = 'w'; /* the same array, with another name in it */
    RT_FAILS(tw_launch(k, dev, NULL, args, 3), TW_E_ARG, "no parameter 'w'");
    name[0] = 'x';
    RT_OK(tw_launch(k, dev, NULL, args, 3));
    RT_FAILS(tw_launch(k, dev, NULL, args, 1), TW_E_ARG, "tensor 'y'");
    RT_OK(tw_launch(k, dev, NULL, args, 3));
    RT_OK(tw_launch(k, dev, NULL, args, 2)); /* by is 1 again */
    ck_assert(y.x[0] == 2.0f);
    RT_OK(tw_launch(k, dev, NULL, args, 3));
    args[2] = TW_TEXT("by", "0.25");
    RT_OK(tw_launch(k, dev, NULL, args, 3));
    ck_assert(y.x[0] == 1.25f);
    args[2] = TW_TEXT("by", "0.75");
    RT_OK(tw_launch(k, dev, NULL, args, 3));
    ck_assert(y.x[0] == 1.75f);
    RT_FAILS(tw_launch(k, dev, NULL, NULL, 3), TW_E_ARG, "args is NULL");
    args[2] = TW_TENSOR("by", &x.t);
    RT_FAILS(tw_launch(k, dev, NULL, args, 3), TW_E_ARG, "'by'");
}
END_TEST

/* A kernel or a bound one that is made where one was before is another one. */
START_TEST(kernels_come_and_go)
{
    for (int i = 0; i < 20; i++) {
        const tw_arg args[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t), TW_F32("by", 0.5)};
        usual(false);
        usual(true);
        tw_bound_destroy(bound);
        tw_kernel_destroy(k);
        k = i % 2 ? rt_add_kernel() : rt_tuned_kernel();
        RT_OK(tw_kernel_specialize(k, dev, args, 3, NULL, &bound));
        RT_OK(launch(true, &x.t, &y.t, 0.5));
        tw_device *other = rt_device("null");
        RT_OK(tw_launch(k, other, NULL, args, 3));
        tw_device_close(other);
    }
}
END_TEST

/* The grid is that of the configuration, though the arguments are those of the launch before. */
START_TEST(configurations_take_turns)
{
    tw_kernel *tuned = rt_tuned_kernel();
    const tw_arg args[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t), TW_F32("by", 0.5),
                           TW_BOOL("FLAG", true)};
    static const char *const configs[] = {"BLOCK=128", "BLOCK=32", "BLOCK=64", "BLOCK=32"};

    for (int i = 0; i < 12; i++) {
        tw_launch_options options = TW_LAUNCH_OPTIONS_INIT;
        options.config = configs[i % 4];
        y.x[0] = y.x[99] = 0.0f;
        RT_OK(tw_launch_with(tuned, dev, NULL, args, 4, &options));
        ck_assert(y.x[0] == 1.5f && y.x[99] == 1.5f && y.x[100] == 0.0f);
        options.program_first = options.program_count = 1; /* and a range is no other grid */
        y.x[0] = y.x[99] = 0.0f;
        RT_OK(tw_launch_with(tuned, dev, NULL, args, 4, &options));
        ck_assert(y.x[0] == 0.0f && (y.x[99] == 1.5f) == (i % 4 == 2));
    }
    tw_kernel_destroy(tuned);
}
END_TEST

START_TEST(another_context)
{
    tw_context *cx;
    tw_device *other;
    const tw_config cfg = TW_CONFIG_INIT;
    const tw_arg args[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t), TW_F32("by", 0.5)};

    RT_OK(runtime_context_create(&cfg, NULL, &cx));
    RT_OK(tw_device_open(cx, "interp", &other));
    usual(false);
    RT_FAILS(tw_launch(k, other, NULL, args, 3), TW_E_ARG, "are of two contexts");
    usual(false);
    tw_device_close(other);
    tw_context_destroy(cx);
}
END_TEST

/* Memory that was given back is asked about again. */
START_TEST(memory_of_a_gpu)
{
    static float host[RIG_N];
    void *p;

    RT_OK(rig_launch());
    rig_ty.data = host;
    RT_FAILS(rig_launch(), TW_E_ARG, "is not memory of a GPU, nor pinned");
    rig_ty.data = rig_y;
    RT_OK(rig_launch());
    RT_OK(tw_memory_alloc(rig_dev, sizeof host, &p));
    rig_ty.data = p;
    RT_OK(rig_launch());
    tw_memory_free(rig_dev, p);
    RT_FAILS(rig_launch(), TW_E_ARG, "is not memory of a GPU, nor pinned");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("args_memo");
    TCase *t = tcase_create("host"), *gpu = tcase_create("gpu");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, what_differs_is_seen, 0, 2);
    tcase_add_test(t, names_and_counts);
    tcase_add_test(t, kernels_come_and_go);
    tcase_add_test(t, configurations_take_turns);
    tcase_add_test(t, another_context);
    suite_add_tcase(s, t);
    tcase_add_checked_fixture(gpu, rig_setup, rig_teardown);
    tcase_add_test(gpu, memory_of_a_gpu);
    suite_add_tcase(s, gpu);
    return s;
}
