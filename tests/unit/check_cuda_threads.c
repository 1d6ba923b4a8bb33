/* The CUDA driver from many threads: opening, compiling, launching with workspaces, faults. Over a
 * fake libcuda; the thread sanitizer looks on. */
#include "compiler/base/mem.h"
#include "tests/support/cuda_rig.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 50, N = 64 };
static tw_device *dev;
static tw_kernel *kernel;
static void *x, *y;
static int64_t shape[] = {N};
static atomic_int wrong;

static tw_status launch_on(tw_kernel *k, tw_device *d, uintptr_t stream)
{
    DLTensor tx = {x, {kDLCUDA, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0}, ty = tx;
    const tw_arg args[] = {TW_TENSOR("x", &tx), TW_TENSOR("y", &ty)};

    ty.data = y;
    return tw_launch(k, d, (tw_stream *)stream, args, 2); /* a number is enough of a stream here */
}

static void in_threads(void *(*run)(void *))
{
    pthread_t thread[THREADS];

    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, run, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    ck_assert_int_eq(atomic_load(&wrong), 0);
}

static void setup(void)
{
    cuda_setup();
    dev = rt_device("cuda");
    kernel = rt_add_kernel();
    RT_OK(tw_memory_alloc(dev, sizeof(float) * N, &x));
    RT_OK(tw_memory_alloc(dev, sizeof(float) * N, &y));
    atomic_store(&wrong, 0);
}

static void teardown(void)
{
    tw_kernel_destroy(kernel);
    tw_device_close(dev);
    cuda_teardown();
}

/* Launches at the same time have blocks of their own: each finds what it wrote. */
static void fill(const fake_launch *l)
{
    volatile char *at = (volatile char *)(uintptr_t)l->slot[0];
    char mine = (char)(uintptr_t)l->stream;

    for (int i = 0; i < 1000; i++)
        at[i] = mine;
    for (int i = 0; i < 1000; i++)
        if (at[i] != mine)
            atomic_fetch_add(&wrong, 1);
}

static void *launch_rounds(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        uintptr_t stream = 0x1000 + ((uintptr_t)arg * 3 + (uintptr_t)i % 3);
        if (launch_on(kernel, dev, stream) != TW_OK)
            atomic_fetch_add(&wrong, 1);
    }
    error_clear();
    return NULL;
}

START_TEST(launches)
{
    rig_nslots = 2;
    rig_slots[0] = (recipe_slot){SLOT_WORKSPACE, 0, 0};
    rig_slots[1] = (recipe_slot){SLOT_ASSERT, 0, 0};
    rig_nworkspaces = 1;
    fake_is->kernel = fill;
    in_threads(launch_rounds);
    RT_OK(tw_stream_sync(dev, NULL));
}
END_TEST

/* Kernels loaded and unloaded, devices opened and closed, while others do the same. */
static void *come_and_go(void *arg)
{
    for (int i = 0; i < ROUNDS / 5; i++) {
        tw_kernel *k = rt_add_kernel();
        tw_device *d = NULL;
        if (tw_device_open(rt_cx, "cuda:0", &d) != TW_OK ||
            launch_on(k, d, (uintptr_t)arg) != TW_OK || tw_stream_sync(d, NULL) != TW_OK)
            atomic_fetch_add(&wrong, 1);
        tw_kernel_destroy(k);
        tw_device_close(d);
    }
    error_clear();
    return NULL;
}

START_TEST(devices_come_and_go)
{
    in_threads(come_and_go);
    ck_assert_uint_eq(cuda_fake->calls("cuDevicePrimaryCtxRetain"), 1);
}
END_TEST

static void *link_rounds(void *arg)
{
    static const char text[] = ".version 7.0\n.entry add()";
    const code_object ptx = {OBJECT_PTX, sizeof text - 1, (const uint8_t *)text};
    void *cubin = NULL;
    size_t size = 0;
    int32_t registers = 0, spills = 0;

    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        if (cuda_link(cuda_of(dev), &ptx, "add", &cubin, &size, &registers, &spills) != TW_OK ||
            registers != 40 || spills != 24)
            atomic_fetch_add(&wrong, 1);
        mem_free(cubin);
    }
    return NULL;
}

START_TEST(linking)
{
    in_threads(link_rounds);
}
END_TEST

/* Whoever comes to a broken context fails cleanly. */
static void *launch_anyhow(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        tw_status st = launch_on(kernel, dev, 0x100 + (uintptr_t)arg);
        if (st != TW_OK && st != TW_E_DEVICE)
            atomic_fetch_add(&wrong, 1);
    }
    error_clear();
    return NULL;
}

START_TEST(a_fault_among_launches)
{
    RT_OK(launch_on(kernel, dev, 0));
    fake_breaks("cuLaunchKernel", 700);
    in_threads(launch_anyhow);
    RT_FAILS(launch_on(kernel, dev, 0), TW_E_DEVICE, "the GPU's context is broken");
}
END_TEST

/* All that is told of a failure is of one stream's launch. */
static void fails_always(const fake_launch *l)
{
    int32_t n = (int32_t)(uintptr_t)l->stream;

    rig_fails(l->slot[0], 1, (int32_t[]){n, n, n}, (int32_t[]){n, n, n});
}

static bool is_whole(const char *text)
{
    const char *at = strstr(text, "index "), *in = strstr(text, "in program ");
    int v[6] = {0};

    if (!at || sscanf(at, "index %d of %d, %d", &v[0], &v[1], &v[2]) != 3 || !in ||
        sscanf(in, "in program %d, %d, %d", &v[3], &v[4], &v[5]) != 3)
        return false;
    for (int i = 1; i < 6; i++)
        if (v[i] != v[0])
            return false;
    return true;
}

static void *fail_or_read(void *arg)
{
    for (uintptr_t i = 1; i <= 4 * ROUNDS; i++) {
        tw_status st =
            arg ? launch_on(kernel, dev, (uintptr_t)arg * 1000 + i) : tw_stream_sync(dev, NULL);
        if (st != TW_OK && (st != TW_E_ASSERT || !is_whole(tw_last_error()->text)))
            atomic_fetch_add(&wrong, 1);
    }
    error_clear();
    return NULL;
}

START_TEST(asserts_of_many_launches_do_not_mix)
{
    rig_nslots = 1;
    rig_slots[0] = (recipe_slot){SLOT_ASSERT, 0, 0};
    fake_is->kernel = fails_always;
    RT_OK(launch_on(kernel, dev, 5));
    RT_FAILS(tw_stream_sync(dev, NULL), TW_E_ASSERT, "index 5 of 5, 5 (line 9), in program 5");
    in_threads(fail_or_read);
}
END_TEST

/* One of them breaks the context, halfway. */
static void *wait_or_launch(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        tw_status st = arg ? tw_stream_sync(dev, NULL) : launch_on(kernel, dev, 0);
        if (!arg && i == ROUNDS / 2)
            cuda_context_break(cuda_of(dev)->cx, "a fault");
        if (st != TW_OK && st != TW_E_DEVICE && st != TW_E_ASSERT)
            atomic_fetch_add(&wrong, 1);
    }
    error_clear();
    return NULL;
}

START_TEST(asserts_are_read_while_a_context_breaks)
{
    rig_nslots = 1;
    rig_slots[0] = (recipe_slot){SLOT_ASSERT, 0, 0};
    fake_is->kernel = fails_always;
    RT_OK(launch_on(kernel, dev, 0));
    RT_FAILS(tw_stream_sync(dev, NULL), TW_E_ASSERT, "index 0 of 0, 0");
    in_threads(wait_or_launch);
    RT_FAILS(tw_stream_sync(dev, NULL), TW_E_DEVICE, "the GPU's context is broken: a fault");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("cuda_threads");
    TCase *t = tcase_create("threads");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, launches);
    tcase_add_test(t, devices_come_and_go);
    tcase_add_test(t, linking);
    tcase_add_test(t, a_fault_among_launches);
    tcase_add_test(t, asserts_of_many_launches_do_not_mix);
    tcase_add_test(t, asserts_are_read_while_a_context_breaks);
    suite_add_tcase(s, t);
    return s;
}
