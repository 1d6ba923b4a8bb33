/* The CUDA driver: finding it, what it must have, what its failures become, devices and their
 * contexts. Over a fake libcuda. */
#include "compiler/base/mem.h"
#include "tests/support/cuda_rig.h"
#include <check.h>
#include <string.h>

static tw_device *dev;

static tw_status open_cuda(const char *spec)
{
    return tw_device_open(rt_cx, spec, &dev);
}

/* ---- the library ----------------------------------------------------------------------------- */

START_TEST(no_driver_is_a_clear_error)
{
    cuda_library = "/nowhere/libcuda.so.1";
    RT_FAILS(open_cuda("cuda"), TW_E_DEVICE, "no CUDA driver on this machine: /nowhere/libcuda");
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "the CUDA toolkit is not needed"));
    ck_assert_str_eq(tw_last_error()->diagnostics[0].id, "device");
    RT_OK(open_cuda("auto"));
    ck_assert_str_eq(dev->spec, "cpu");
    tw_device_close(dev);
}
END_TEST

START_TEST(auto_takes_the_gpu)
{
    tw_device_info info = TW_DEVICE_INFO_INIT;

    RT_OK(open_cuda("auto"));
    RT_OK(tw_device_query(dev, &info));
    ck_assert_str_eq(info.spec, "cuda:0");
    ck_assert_str_eq(info.name, "Fake GPU 0");
    ck_assert_int_eq(info.capability, 90);
    ck_assert_int_eq(info.threads, 8);
    ck_assert_int_eq((int)info.l2_bytes, 4 << 20);
    ck_assert_int_eq(info.block_shared_bytes, 166912);
    ck_assert_int_eq(info.block_threads, 1024);
    ck_assert_int_eq(info.registers, 65536);
    ck_assert_int_eq(info.memory.device_type, kDLCUDA);
    ck_assert(info.memory_bytes == (size_t)1 << 34);
    ck_assert(strncmp(info.driver, "13.0", 4) == 0);
    tw_device_close(dev);
}
END_TEST

/* A device costs no context until something needs one. */
START_TEST(contexts_come_late_and_are_shared)
{
    tw_device *one, *two;
    void *p;

    RT_OK(tw_device_open(rt_cx, "cuda:1", &one));
    RT_OK(tw_device_open(rt_cx, "cuda:1", &two));
    ck_assert_uint_eq(cuda_fake->calls("cuDevicePrimaryCtxRetain"), 0);
    RT_OK(tw_memory_alloc(one, 100, &p));
    ck_assert_uint_eq((uintptr_t)p % 256, 0);
    tw_memory_free(one, p);
    RT_OK(tw_memory_alloc(two, 100, &p));
    tw_memory_free(two, p);
    ck_assert_uint_eq(cuda_fake->calls("cuDevicePrimaryCtxRetain"), 1);
    tw_device_close(one);
    ck_assert_uint_eq(cuda_fake->calls("cuDevicePrimaryCtxRelease_v2"), 0);
    tw_device_close(two);
    ck_assert_uint_eq(cuda_fake->calls("cuDevicePrimaryCtxRelease_v2"), 1);
}
END_TEST

START_TEST(the_applications_context_is_used)
{
    CUcontext theirs = cuda_fake->context(0), now = NULL;
    void *p;

    RT_OK(open_cuda("cuda:0"));
    RT_OK(tw_memory_alloc(dev, 100, &p));
    ck_assert_ptr_eq(atomic_load(&cuda_of(dev)->cx->handle), theirs);
    tw_memory_free(dev, p);
    tw_device_close(dev);
    RT_OK(open_cuda("cuda:1")); /* that of another GPU is current: it stays so */
    RT_OK(tw_memory_alloc(dev, 100, &p));
    ck_assert(cuda_of(dev)->cx->primary);
    ck_assert_int_eq(cuda_of(dev)->api->cuCtxGetCurrent(&now), 0);
    ck_assert_ptr_eq(now, theirs);
    tw_memory_free(dev, p);
    ck_assert_int_eq(cuda_of(dev)->api->cuCtxPopCurrent(&now), 0);
    tw_device_close(dev);
}
END_TEST

/* A primary context that the application's runtime made current is the primary one. */
START_TEST(a_current_primary_context_is_shared)
{
    const cuda_api *api;
    CUcontext theirs = NULL, now;

    RT_OK(cuda_api_open(&api));
    ck_assert_int_eq(api->cuDevicePrimaryCtxRetain(&theirs, 0), 0);
    ck_assert_int_eq(api->cuCtxPushCurrent(theirs), 0);
    RT_OK(open_cuda("cuda"));
    ck_assert(cuda_of(dev)->cx->primary);
    tw_device_close(dev);
    ck_assert_int_eq(api->cuCtxPopCurrent(&now), 0);
    ck_assert_int_eq(api->cuDevicePrimaryCtxRelease(0), 0);
}
END_TEST

START_TEST(bad_specs)
{
    RT_FAILS(open_cuda("cuda:x"), TW_E_ARG, "that is no number of a GPU");
    RT_FAILS(open_cuda("cuda:-1"), TW_E_ARG, "that is no number of a GPU");
    RT_FAILS(open_cuda("cuda:2"), TW_E_DEVICE, "the driver shows 2 GPUs, from cuda:0 on");
    RT_FAILS(open_cuda("gpu"), TW_E_DEVICE, "no device 'gpu'");
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "cuda:N"));
    fake_is->devices = 0;
    cuda_api_forget();
    RT_FAILS(open_cuda("cuda"), TW_E_DEVICE, "CUDA_ERROR_NO_DEVICE (100)");
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "CUDA_VISIBLE_DEVICES"));
}
END_TEST

/* GPU-01: what is newer than all that is known takes the newest code path; older is refused. */
START_TEST(capabilities)
{
    fake_is->devices = 4;
    RT_FAILS(open_cuda("cuda:2"), TW_E_UNSUPPORTED, "compute capability 7.5");
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "from capability 8.0 (Ampere) on"));
    RT_OK(open_cuda("cuda:3"));
    ck_assert_int_eq(dev->gpu.limits.capability, 123);
    ck_assert_str_eq(dev->target->name, "sm_80");
    tw_device_close(dev);
}
END_TEST

static bool path_runs(const char *name, int capability)
{
    const target t = {.name = name};
    const tw_device d = {.gpu = {.limits = {.capability = capability}}};

    return cuda_runs(&d, &t);
}

START_TEST(which_code_paths_run)
{
    ck_assert(path_runs("sm_80", 80) && path_runs("sm_80", 90) && path_runs("sm_80", 123));
    ck_assert(path_runs("sm_90", 103) && path_runs("sm_120", 121));
    ck_assert(!path_runs("sm_90", 89) && !path_runs("sm_120", 103));
    ck_assert(path_runs("sm_90a", 90) && !path_runs("sm_90a", 100)); /* of that capability only */
    ck_assert(!path_runs("cpu-avx2", 90));
}
END_TEST

/* ---- what it must have ----------------------------------------------------------------------- */

static const char *const optional[] = {"cuFuncLoad", "cuMemAllocAsync", "cuMemFreeAsync",
                                       "cuThreadExchangeStreamCaptureMode", "cuStreamGetId"};

static bool is_optional(const char *name)
{
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
        if (strcmp(optional[i], name) == 0)
            return true;
    return false;
}

static const char *const every_call[] = {
#define CALL(need, name, suffix, version, params) #name,
#include "runtime/cuda/cuda_api.def"
};
enum { CALLS = sizeof every_call / sizeof *every_call };

/* Each call missing in turn: the required ones are named, the others do without. */
START_TEST(each_call_missing)
{
    for (int i = 0; i < CALLS; i++) {
        fake_is->missing = every_call[i];
        if (is_optional(every_call[i])) {
            RT_OK(open_cuda("cuda"));
            tw_device_close(dev);
        } else {
            RT_FAILS(open_cuda("cuda"), TW_E_DRIVER, every_call[i]);
            ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "update the NVIDIA driver"));
        }
        cuda_api_forget();
    }
    fake_is->missing = NULL;
}
END_TEST

START_TEST(a_driver_that_is_too_old)
{
    fake_is->version = 10020;
    RT_FAILS(open_cuda("cuda"), TW_E_DRIVER, "came with version 11.0; it is of version 10.2");
}
END_TEST

START_TEST(a_driver_of_11_0)
{
    void *p;

    RT_OK(open_cuda("cuda"));
    ck_assert(!cuda_of(dev)->api->cuMemAllocAsync && !cuda_of(dev)->api->cuFuncLoad);
    RT_OK(tw_memory_alloc(dev, 1, &p));
    tw_memory_free(dev, p);
    tw_device_close(dev);
}
END_TEST

/* ---- failures -------------------------------------------------------------------------------- */

static tw_status whole_session(void)
{
    char text[64] = "abc", back[64] = "";
    double seconds;
    void *p = NULL, *from = NULL, *to = NULL;
    tw_status st = open_cuda("cuda:1");

    if (st != TW_OK)
        return st;
    st = tw_memory_alloc(dev, sizeof text, &p);
    if (st == TW_OK)
        st = tw_memory_copy(dev, p, text, sizeof text, TW_COPY_TO_DEVICE, NULL);
    if (st == TW_OK)
        st = tw_memory_copy(dev, back, p, sizeof text, TW_COPY_FROM_DEVICE, NULL);
    if (st == TW_OK)
        st = dev->drv->flush(dev, NULL);
    if (st == TW_OK)
        st = dev->drv->event_create(dev, &from);
    if (st == TW_OK)
        st = dev->drv->event_create(dev, &to);
    if (st == TW_OK)
        st = dev->drv->event_record(dev, from, NULL);
    if (st == TW_OK)
        st = dev->drv->event_record(dev, to, NULL);
    if (st == TW_OK)
        st = dev->drv->event_seconds(dev, from, to, &seconds);
    if (st == TW_OK)
        st = tw_stream_sync(dev, NULL);
    if (to)
        dev->drv->event_destroy(dev, to);
    if (from)
        dev->drv->event_destroy(dev, from);
    tw_memory_free(dev, p);
    dev->drv->flush_end(dev);
    if (st == TW_OK)
        st = dev->drv->flush(dev, NULL); /* takes memory anew */
    tw_device_close(dev);
    ck_assert(st != TW_OK || strcmp(back, "abc") == 0);
    return st;
}

/* Each call of the driver fails in turn: the error names it, and nothing is lost. */
START_TEST(each_call_fails)
{
    unsigned total;
    int failed = 0;

    RT_OK(whole_session());
    total = cuda_fake->calls("");
    for (unsigned n = 1; n <= total; n++) {
        fake_fails("", (int)n, 999);
        tw_status st = whole_session();
        failed += st != TW_OK;
        if (st != TW_OK)
            ck_assert_msg(st == TW_E_DRIVER && strstr(tw_last_error()->text, "(999)"), "%u: %s", n,
                          tw_last_error()->text);
        fake_is->fails = NULL;
    }
    ck_assert_int_gt(failed, 20);
}
END_TEST

/* Those that nothing can do without. */
START_TEST(switching_contexts_fails)
{
    void *p;

    RT_OK(open_cuda("cuda"));
    fake_fails("cuCtxGetCurrent", 1, 999);
    RT_FAILS(tw_memory_alloc(dev, 10, &p), TW_E_DRIVER, "cuCtxGetCurrent: ");
    fake_fails("cuCtxPushCurrent_v2", 1, 999);
    RT_FAILS(tw_memory_alloc(dev, 10, &p), TW_E_DRIVER, "cuCtxPushCurrent: ");
    fake_fails("cuThreadExchangeStreamCaptureMode", 1, 999);
    RT_OK(tw_memory_alloc(dev, 10, &p));
    tw_memory_free(dev, p);
    tw_device_close(dev);
}
END_TEST

START_TEST(each_allocation_fails)
{
    tw_status st = TW_E_NOMEM;

    for (int n = 1; st == TW_E_NOMEM && n < 100; n++) {
        mem_fail_after(n);
        st = whole_session();
        mem_fail_after(0);
    }
    RT_OK(st);
}
END_TEST

START_TEST(texts_of_failures)
{
    void *p;

    RT_OK(open_cuda("cuda"));
    fake_is->memory_left = 1000;
    RT_FAILS(tw_memory_alloc(dev, 4096, &p), TW_E_NOMEM,
             "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "4096 bytes were asked for; 1000 of"));
    fake_fails("cuMemAlloc_v2", 1, 46); /* no name from the driver: the table's */
    RT_FAILS(tw_memory_alloc(dev, 10, &p), TW_E_DEVICE, "CUDA_ERROR_DEVICE_UNAVAILABLE (46)");
    fake_fails("cuMemAlloc_v2", 1, 12345);
    RT_FAILS(tw_memory_alloc(dev, 10, &p), TW_E_DRIVER, "unknown result (12345)");
    tw_device_close(dev);
}
END_TEST

START_TEST(memory_of_the_caller)
{
    char text[8] = "1234567", back[8];
    void *p, *q;

    RT_OK(open_cuda("cuda"));
    RT_OK(tw_memory_alloc(dev, 8, &p));
    RT_OK(tw_memory_alloc(dev, 0, &q));
    RT_OK(tw_memory_copy(dev, p, text, 8, TW_COPY_TO_DEVICE, NULL));
    RT_OK(tw_memory_copy(dev, back, p, 8, TW_COPY_FROM_DEVICE, NULL));
    ck_assert_str_eq(back, text);
    RT_OK(tw_memory_copy(dev, NULL, NULL, 0, TW_COPY_ON_DEVICE, NULL));
    RT_FAILS(tw_memory_copy(dev, NULL, p, 8, TW_COPY_ON_DEVICE, NULL), TW_E_ARG, "NULL");
    RT_FAILS(tw_memory_copy(dev, p, q, 1, (tw_copy)7, NULL), TW_E_ARG, "not a tw_copy");
    tw_memory_free(dev, q);
    tw_device_close(dev); /* p goes with it */
    dev = rt_device("cpu");
    RT_OK(tw_memory_alloc(dev, 8, &p));
    RT_OK(tw_memory_copy(dev, p, text, 8, TW_COPY_TO_DEVICE, NULL));
    ck_assert_str_eq(p, text);
    tw_memory_free(dev, p);
    tw_device_close(dev);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("cuda_open");
    TCase *t = tcase_create("driver"), *old = tcase_create("old");

    tcase_add_checked_fixture(t, cuda_setup, cuda_teardown);
    tcase_add_test(t, no_driver_is_a_clear_error);
    tcase_add_test(t, auto_takes_the_gpu);
    tcase_add_test(t, contexts_come_late_and_are_shared);
    tcase_add_test(t, the_applications_context_is_used);
    tcase_add_test(t, a_current_primary_context_is_shared);
    tcase_add_test(t, bad_specs);
    tcase_add_test(t, capabilities);
    tcase_add_test(t, which_code_paths_run);
    tcase_add_test(t, each_call_missing);
    tcase_add_test(t, a_driver_that_is_too_old);
    tcase_add_test(t, each_call_fails);
    tcase_add_test(t, switching_contexts_fails);
    tcase_add_test(t, each_allocation_fails);
    tcase_add_test(t, texts_of_failures);
    tcase_add_test(t, memory_of_the_caller);
    suite_add_tcase(s, t);
    tcase_add_checked_fixture(old, cuda_setup_old, cuda_teardown);
    tcase_add_test(old, a_driver_of_11_0);
    suite_add_tcase(s, old);
    return s;
}
