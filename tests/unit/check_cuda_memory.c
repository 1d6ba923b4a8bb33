/* The CUDA driver: which memory it takes, what a stream capture may hold, and memory of launches.
 * Over a fake libcuda. */
#include "compiler/base/mem.h"
#include "tests/support/cuda_rig.h"
#include <check.h>
#include <string.h>

static CUstream const stream = (CUstream)0x5000;

/* ---- which memory ---------------------------------------------------------------------------- */

static float host[RIG_N];

/* LAU-07: refused before the launch, by name; the context is as good as before. */
START_TEST(host_pointers)
{
    rig_ty.data = host;
    RT_FAILS(rig_launch(), TW_E_ARG, "tensor 'y': its first byte");
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "is not memory of a GPU, nor pinned"));
    rig_ty = rig_tensor(host);
    rig_ty.device.device_type = kDLCPU;
    RT_FAILS(rig_launch(), TW_E_ARG, "tensor 'y' is in memory of DLPack device type 1");
    rig_ty = rig_tensor(NULL);
    RT_FAILS(rig_launch(), TW_E_ARG, "tensor 'y': data is NULL");
    rig_ty = rig_tensor(rig_y);
    RT_OK(rig_launch());
    tw_device *cpu = rt_device("cpu"); /* and the other way round */
    const tw_arg args[] = {TW_TENSOR("x", &rig_tx), TW_TENSOR("y", &rig_ty)};
    RT_FAILS(tw_launch(rig_kernel, cpu, NULL, args, 2), TW_E_ARG, "device type 2, number 0");
    tw_device_close(cpu);
}
END_TEST

START_TEST(memory_of_another_gpu)
{
    static float there[RIG_N];

    cuda_fake->region(there, sizeof there, CU_MEMORYTYPE_DEVICE, 1, false);
    rig_ty.data = there;
    RT_FAILS(rig_launch(), TW_E_ARG, "is memory of another GPU");
    rig_ty.device.device_id = 1;
    RT_FAILS(rig_launch(), TW_E_ARG, "device type 2, number 1, which device 'cuda:0' cannot use");
}
END_TEST

START_TEST(managed_and_pinned_memory)
{
    static float managed[RIG_N], pinned[RIG_N];

    cuda_fake->region(managed, sizeof managed, CU_MEMORYTYPE_HOST, 1, true);
    cuda_fake->region(pinned, sizeof pinned, CU_MEMORYTYPE_HOST, 0, false);
    rig_tx = rig_tensor(managed);
    rig_tx.device.device_type = kDLCUDAManaged;
    rig_ty = rig_tensor(pinned);
    rig_ty.device.device_type = kDLCUDAHost;
    RT_OK(rig_launch());
}
END_TEST

START_TEST(a_tensor_that_ends_elsewhere)
{
    static float pool[4 * RIG_N];

    cuda_fake->region(pool, sizeof(float) * 2 * RIG_N, CU_MEMORYTYPE_DEVICE, 0, false);
    rig_ty.data = pool + RIG_N + 1;
    RT_FAILS(rig_launch(), TW_E_ARG, "tensor 'y': its last byte");
    cuda_fake->region(pool + 2 * RIG_N, sizeof(float) * RIG_N, CU_MEMORYTYPE_DEVICE, 0, false);
    RT_OK(rig_launch()); /* mapped piece by piece: two ranges side by side */
}
END_TEST

/* An allocation is asked about once, until something is given back; with checked launches, each
 * time. */
START_TEST(allocations_are_asked_about_once)
{
    void *p;

    RT_OK(rig_launch());
    unsigned asked = cuda_fake->calls("cuPointerGetAttributes");
    ck_assert_uint_ge(asked, 1);
    rig_tx.data = rig_x + 4;
    rig_shape[0] = RIG_N - 4;
    RT_OK(rig_launch());
    ck_assert_uint_eq(cuda_fake->calls("cuPointerGetAttributes"), asked);
    RT_OK(tw_memory_alloc(rig_dev, 10, &p));
    tw_memory_free(rig_dev, p);
    RT_OK(rig_launch());
    ck_assert_uint_gt(cuda_fake->calls("cuPointerGetAttributes"), asked);
}
END_TEST

START_TEST(checked_mode)
{
    tw_config cfg = TW_CONFIG_INIT;

    tw_kernel_destroy(rig_kernel);
    tw_device_close(rig_dev);
    cfg.checked = true;
    rt_context(&cfg, NULL);
    rig_open();
    RT_OK(rig_launch());
    unsigned asked = cuda_fake->calls("cuPointerGetAttributes"),
             waited = cuda_fake->calls("cuStreamSynchronize");
    RT_OK(rig_launch());
    ck_assert_uint_eq(cuda_fake->calls("cuPointerGetAttributes"), asked + 2);
    ck_assert_uint_eq(cuda_fake->calls("cuStreamSynchronize"), waited + 1);
    fake_breaks("cuStreamSynchronize", 700);
    RT_FAILS(rig_launch(), TW_E_DEVICE, "CUDA_ERROR_ILLEGAL_ADDRESS (700)"); /* the guilty one */
}
END_TEST

/* ---- captures -------------------------------------------------------------------------------- */

/* LAU-05: nothing that is not loaded is compiled, and the capture stays whole. */
START_TEST(captures)
{
    fake_is->capturing = stream;
    RT_FAILS(rig_launch_on(stream), TW_E_UNSUPPORTED,
             "kernel 'add' is not loaded on device 'cuda:0'");
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "before the capture"));
    ck_assert(!fake_is->capture_broken);
    ck_assert_int_eq(atomic_load(&rig_compiles), 0);
    fake_is->capturing = NULL;
    RT_OK(rig_launch_on(stream));
    fake_is->capturing = stream;
    RT_OK(rig_launch_on(stream));
    rig_shape[0] = RIG_N / 4; /* another size class: a row of its own, the same code */
    RT_OK(rig_launch_on(stream));
    RT_FAILS(tw_stream_sync(rig_dev, (tw_stream *)(void *)stream), TW_E_ARG, "capturing");
    ck_assert(!fake_is->capture_broken);
    rig_shape[0] = 0;
    RT_OK(rig_launch_on(stream));
    fake_is->capturing = NULL;
}
END_TEST

/* Compiling, loading and allocating while another stream captures does not disturb it. */
START_TEST(another_stream_captures)
{
    void *p;

    fake_is->capturing = (CUstream)0x7000;
    RT_OK(rig_launch_on(stream));
    RT_OK(tw_memory_alloc(rig_dev, 100, &p));
    tw_memory_free(rig_dev, p);
    rig_ncounters = 1;
    rig_reopen("cuda:0");
    RT_OK(rig_launch_on(stream));
    ck_assert(!fake_is->capture_broken);
    fake_is->capturing = NULL;
}
END_TEST

/* ---- workspaces and counters ----------------------------------------------------------------- */

START_TEST(workspaces_belong_to_streams)
{
    rig_with_workspace();
    RT_OK(rig_launch_on(stream));
    const uint64_t first = rig_seen[0];
    ck_assert(first % 256 == 0 && rig_seen[1] - rig_seen[0] >= 1000 && rig_seen[2] == 0);
    unsigned allocated = cuda_fake->calls("cuMemAlloc_v2");
    mem_fail_after(1);
    RT_OK(rig_launch_on(stream)); /* the same stream: the same memory, cleared again */
    mem_fail_after(0);
    ck_assert(rig_seen[0] == first && rig_seen[2] == 0);
    ck_assert_uint_eq(cuda_fake->calls("cuMemAlloc_v2"), allocated);
    RT_OK(rig_launch_on((CUstream)0x6000)); /* another, which may run at the same time */
    ck_assert(rig_seen[0] != first);
    for (uintptr_t i = 0; i < 40; i++)
        RT_OK(rig_launch_on((CUstream)(0x10000 + 64 * i)));
    RT_OK(rig_launch_on(stream));
}
END_TEST

/* A graph's memory is its own. */
START_TEST(captured_workspaces)
{
    rig_with_workspace();
    RT_OK(rig_launch_on(stream));
    fake_is->capturing = stream;
    RT_OK(rig_launch_on(stream));
    ck_assert_uint_eq(cuda_fake->calls("cuMemAllocAsync"), 1);
    ck_assert_uint_eq(cuda_fake->calls("cuMemFreeAsync"), 1);
    ck_assert(!fake_is->capture_broken);
    fake_is->capturing = NULL;
}
END_TEST

START_TEST(an_old_driver_cannot_capture_workspaces)
{
    rig_with_workspace();
    RT_OK(rig_launch_on(stream));
    fake_is->capturing = stream;
    RT_FAILS(rig_launch_on(stream), TW_E_UNSUPPORTED, "cannot be captured with this driver");
    fake_is->capturing = NULL;
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("cuda_memory");
    TCase *t = tcase_create("memory"), *old = tcase_create("old");

    tcase_add_checked_fixture(t, rig_setup, rig_teardown);
    tcase_add_test(t, host_pointers);
    tcase_add_test(t, memory_of_another_gpu);
    tcase_add_test(t, managed_and_pinned_memory);
    tcase_add_test(t, a_tensor_that_ends_elsewhere);
    tcase_add_test(t, allocations_are_asked_about_once);
    tcase_add_test(t, checked_mode);
    tcase_add_test(t, captures);
    tcase_add_test(t, another_stream_captures);
    tcase_add_test(t, workspaces_belong_to_streams);
    tcase_add_test(t, captured_workspaces);
    suite_add_tcase(s, t);
    tcase_add_checked_fixture(old, rig_setup_old, rig_teardown);
    tcase_add_test(old, an_old_driver_cannot_capture_workspaces);
    suite_add_tcase(s, old);
    return s;
}
