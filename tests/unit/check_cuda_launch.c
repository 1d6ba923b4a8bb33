/* The CUDA driver: loading, launches, asserts and faults. Over a fake libcuda, whose kernels are
 * functions here. */
#include "compiler/base/mem.h"
#include "store/store.h"
#include "tests/support/cuda_rig.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static CUstream const stream = (CUstream)0x5000;

/* ---- launches -------------------------------------------------------------------------------- */

static void add_one(const fake_launch *l)
{
    const float *from = (const float *)(uintptr_t)l->slot[0];
    float *to = (float *)(uintptr_t)l->slot[1];

    for (int i = 0; i < RIG_N; i++)
        to[i] = from[i] + 1.0f;
}

START_TEST(a_launch_arrives)
{
    float back[RIG_N], in[RIG_N];

    for (int i = 0; i < RIG_N; i++)
        in[i] = (float)i;
    fake_is->kernel = add_one;
    RT_OK(tw_memory_copy(rig_dev, rig_x, in, sizeof in, TW_COPY_TO_DEVICE, NULL));
    RT_OK(rig_launch_on(stream));
    RT_OK(tw_memory_copy(rig_dev, back, rig_y, sizeof back, TW_COPY_FROM_DEVICE, NULL));
    for (int i = 0; i < RIG_N; i++)
        ck_assert(back[i] == in[i] + 1.0f);
    ck_assert_str_eq(fake_is->last.kernel, "add");
    ck_assert_uint_eq(fake_is->last.blocks, (RIG_N + 31) / 32);
    ck_assert_uint_eq(fake_is->last.threads, 128);
    ck_assert_uint_eq(fake_is->last.slots, 2);
    ck_assert_ptr_eq(fake_is->last.stream, stream);
}
END_TEST

/* A warm launch makes two calls of the driver, and allocates nothing. */
START_TEST(what_a_warm_launch_costs)
{
    RT_OK(rig_launch());
    RT_OK(rig_launch());
    unsigned calls = cuda_fake->calls("");
    mem_fail_after(1);
    RT_OK(rig_launch());
    mem_fail_after(0);
    ck_assert_uint_eq(cuda_fake->calls("cuLaunchKernel"), 3);
    ck_assert_uint_le(cuda_fake->calls("") - calls, 4); /* current?, push, launch, pop */
    ck_assert_int_eq(
        cuda_of(rig_dev)->api->cuCtxPushCurrent(atomic_load(&cuda_of(rig_dev)->cx->handle)), 0);
    calls = cuda_fake->calls("");
    RT_OK(rig_launch());
    ck_assert_uint_eq(cuda_fake->calls("") - calls,
                      2); /* its context is current: current?, launch */
    CUcontext now;
    ck_assert_int_eq(cuda_of(rig_dev)->api->cuCtxPopCurrent(&now), 0);
}
END_TEST

/* LAU-09: cold, then with work, then empty again; nothing is compiled for the first. */
START_TEST(empty_shapes_launch_nothing)
{
    rig_shape[0] = 0;
    RT_OK(rig_launch());
    ck_assert_int_eq(atomic_load(&rig_compiles), 0);
    rig_shape[0] = RIG_N;
    RT_OK(rig_launch());
    rig_shape[0] = 0;
    rig_tx.data = rig_ty.data = NULL;
    RT_OK(rig_launch());
    ck_assert_uint_eq(cuda_fake->calls("cuLaunchKernel"), 1);
}
END_TEST

/* LAU-01, LAU-03: grids above 2^31 - 1 go in parts, and a dimension above 65535 is no matter. */
static uint64_t firsts[4][3], blocks_run;
static int parts;

static void note_part(const fake_launch *l)
{
    memcpy(firsts[parts++ % 4], l->slot, sizeof *firsts);
    blocks_run += l->blocks;
}

static tw_status launch_step(int32_t gx, int32_t gy, int32_t gz, int64_t first, int64_t count)
{
    const recipe_step step = {
        .symbol = "add", .block_threads = 32, .nslots = rig_nslots, .slot = rig_slots};
    static code_object object = {OBJECT_PTX, 0, NULL};
    static const char text[] = ".version 7.0\n.entry add()";
    artifact art = {.nobjects = 1, .nsteps = 1, .object = &object};
    uint64_t slots[3] = {0};
    int32_t failed = 0;
    void *loaded;

    object.bytes = (const uint8_t *)text;
    object.size = sizeof text - 1;
    art.step = (recipe_step *)&step;
    const driver_step s = {.art = &art,
                           .step = art.step,
                           .slots = slots,
                           .grid = {gx, gy, gz},
                           .first = first,
                           .count = count};
    RT_OK(rig_dev->drv->load(rig_dev, &art, &loaded));
    tw_status st = rig_dev->drv->launch(rig_dev, loaded, &s, NULL, &failed);
    rig_dev->drv->unload(rig_dev, loaded);
    return st;
}

static bool began_at(int part, uint64_t x, uint64_t y, uint64_t z)
{
    return firsts[part][0] == x && firsts[part][1] == y && firsts[part][2] == z;
}

START_TEST(large_grids)
{
    rig_nslots = 3;
    for (uint8_t d = 0; d < 3; d++)
        rig_slots[d] = (recipe_slot){SLOT_FIRST, d, 0};
    fake_is->kernel = note_part;
    RT_OK(launch_step(16384, 16384, 16, 0, (int64_t)1 << 32));
    ck_assert_int_eq(parts, 3);
    ck_assert_uint_eq(blocks_run, (uint64_t)1 << 32);
    ck_assert(began_at(0, 0, 0, 0)); /* 2^31 - 1 and 2^32 - 2 in digits of base 2^14 */
    ck_assert(began_at(1, 16383, 16383, 7) && began_at(2, 16382, 16383, 15));
    parts = 0;
    RT_OK(launch_step(1, 65536, 8, 0, 65536 * 8));
    ck_assert_int_eq(parts, 1);
    RT_OK(launch_step(100, 1, 1, 40, 20)); /* a range of programs */
    ck_assert(began_at(1, 40, 0, 0));
    RT_OK(launch_step(10, 4, 5, 57, 20));
    ck_assert(began_at(2, 7, 1, 1));
    rig_nslots = 1;
    rig_slots[0] = (recipe_slot){SLOT_GRID, 0, 0}; /* all programs are alike */
    blocks_run = 0;
    RT_OK(launch_step(100, 1, 1, 40, 20));
    ck_assert_uint_eq(blocks_run, 20);
    RT_OK(launch_step(16384, 16384, 16, 0, (int64_t)1 << 32));
    ck_assert_uint_eq(blocks_run, ((uint64_t)1 << 32) + 20);
}
END_TEST

START_TEST(shared_memory_is_asked_for)
{
    rig_step.shared_bytes = 100000;
    RT_OK(rig_launch());
    ck_assert_uint_eq(fake_is->last.shared_bytes, 100000);
}
END_TEST

/* ---- limits and code ------------------------------------------------------------------------- */

/* AUT-19: which kernel, how much, and how much there is. */
START_TEST(limits)
{
    rig_step.shared_bytes = 200000;
    RT_FAILS(rig_launch(), TW_E_LIMIT, "kernel 'add' needs 200000 bytes of shared memory a block");
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "(Fake GPU 0) has 166912"));
    rig_step.shared_bytes = 0;
    rig_step.block_threads = 2048;
    RT_FAILS(rig_launch(), TW_E_LIMIT, "needs 2048 threads a block");
    rig_step.block_threads = 256;
    fake_is->fn_threads = 128;
    fake_is->fn_registers = 255;
    RT_FAILS(rig_launch(), TW_E_LIMIT, "needs 65280 registers a block");
    fake_is->fn_threads = 1024;
    rig_step.block_threads = 0;
    RT_FAILS(rig_launch(), TW_E_UNSUPPORTED, "not for a GPU");
    rig_step.block_threads = 128;
    rig_ptx = ".version 7.0\n// too_large\n.entry add()";
    RT_FAILS(rig_launch(), TW_E_LIMIT, "uses too much shared data");
    rig_ptx = ".version 7.0\n.entry other()";
    RT_FAILS(rig_launch(), TW_E_DRIVER, "cuModuleGetFunction: CUDA_ERROR_NOT_FOUND (500)");
    rig_ptx = "nonsense";
    RT_FAILS(rig_launch(), TW_E_INTERNAL, "no .version in the text"); /* the assembler's words */
    rig_ptx = NULL;
    RT_OK(rig_launch());
}
END_TEST

/* What the assembler says goes to the log, its numbers into the artifact. */
START_TEST(what_the_assembler_says)
{
    tw_config cfg = TW_CONFIG_INIT;
    const tw_arg args[] = {TW_TENSOR("x", &rig_tx), TW_TENSOR("y", &rig_ty)};
    launch_args resolved;
    config none = {0};
    executable *exe;

    tw_kernel_destroy(rig_kernel);
    tw_device_close(rig_dev);
    cfg.log_level = TW_LOG_DEBUG;
    rt_context(&cfg, NULL);
    rig_open();
    RT_OK(runtime_resolve_args(rig_kernel, rig_dev, args, 2, 0, &resolved));
    RT_OK(runtime_compile(rig_kernel, rig_dev, &resolved.p, &none, 0, &exe));
    ck_assert_int_eq(exe->art->registers, 40);
    ck_assert_int_eq(exe->art->spill_bytes, 24);
    ck_assert_int_eq((int)exe->art->object[0].kind, OBJECT_CUBIN);
    ck_assert_ptr_nonnull(strstr(rt_log, "add on cuda:0, as the driver's assembler has it:"));
    ck_assert_ptr_nonnull(strstr(rt_log, "Used 40 registers"));
    runtime_exe_release(exe);
}
END_TEST

/* GPU-05: a second process loads the machine code without linking; another GPU's or another
 * driver's is not its own; what cannot be loaded is compiled afresh. */
START_TEST(code_is_kept_by_gpu_and_driver)
{
    tw_config cfg = TW_CONFIG_INIT;
    char folder[] = "/tmp/cudaXXXXXX", path[64];

    tw_kernel_destroy(rig_kernel);
    tw_device_close(rig_dev);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/store.db", folder);
    cfg.store_path = path;
    rt_context(&cfg, NULL);
    rig_open();
    RT_OK(rig_launch());
    ck_assert_uint_eq(cuda_fake->calls("cuLinkComplete"), 1);
    rig_reopen("cuda:0");
    RT_OK(rig_launch());
    ck_assert_uint_eq(cuda_fake->calls("cuLinkComplete"), 1);
    rig_reopen("cuda:1"); /* of another capability */
    RT_OK(rig_launch());
    ck_assert_uint_eq(cuda_fake->calls("cuLinkComplete"), 2);
    tw_kernel_destroy(rig_kernel);
    tw_device_close(rig_dev);
    cuda_api_forget();
    fake_is->version = 13010;
    rig_open();
    RT_OK(rig_launch());
    ck_assert_uint_eq(cuda_fake->calls("cuLinkComplete"), 3);
    rig_reopen("cuda:0");
    fake_fails("cuModuleLoadData", 1, 209);
    RT_OK(rig_launch());
    ck_assert_uint_eq(cuda_fake->calls("cuLinkComplete"), 4);
    unlink(path);
    rmdir(folder);
}
END_TEST

/* GPU-03 */
START_TEST(a_driver_older_than_the_ptx)
{
    fake_fails("cuLinkAddData_v2", 1, 222);
    RT_FAILS(rig_launch(), TW_E_DRIVER, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)");
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "the driver is older than the PTX"));
    RT_OK(rig_launch()); /* nothing else is wrong */
}
END_TEST

/* ---- several GPUs ---------------------------------------------------------------------------- */

/* MGP-01, MGP-05: tensors and work on one GPU while another is current; current stays as it was. */
START_TEST(another_gpu_is_current)
{
    CUcontext other = cuda_fake->context(0), now = NULL;
    const cuda_api *api = cuda_of(rig_dev)->api;

    rig_reopen("cuda:1");
    RT_OK(rig_launch());
    ck_assert_int_eq(fake_is->last.device, 1);
    ck_assert_int_eq(api->cuCtxGetCurrent(&now), 0);
    ck_assert_ptr_eq(now, other);
    ck_assert_int_eq(api->cuCtxPopCurrent(&now), 0);
}
END_TEST

/* ---- asserts --------------------------------------------------------------------------------- */

static bool fails_assert;
static const int32_t program[] = {7, 0, 2}, later[] = {8, 1, 2}, value[] = {-70, 64, INT32_MIN};

static void may_assert(const fake_launch *l)
{
    if (fails_assert)
        rig_fails(l->slot[0], 0, program, NULL);
}

/* Of the blocks that fail the first is told, whole. */
static void asserts_values(const fake_launch *l)
{
    rig_fails(l->slot[0], 1, program, value);
    rig_fails(l->slot[0], 1, later, later);
    rig_fails(l->slot[0], 0, later, NULL);
}

static const char told[] =
    "kernel 'add': assert failed: index -70 of 64, -2147483648 (line 9), in program 7, 0, 2";

/* By a wait, by the next launch, by a launch that waits; then the record is free again. */
START_TEST(asserts_tell_their_values)
{
    rig_nslots = 1;
    rig_slots[0] = (recipe_slot){SLOT_ASSERT, 0, 0};
    fake_is->kernel = asserts_values;
    for (int i = 0; i < 2; i++) {
        RT_OK(rig_launch());
        RT_FAILS(tw_stream_sync(rig_dev, NULL), TW_E_ASSERT, told);
        RT_OK(rig_launch());
        RT_FAILS(rig_launch(), TW_E_ASSERT, told);
        RT_OK(tw_stream_sync(rig_dev, NULL));
    }
    fake_is->kernel = may_assert; /* without values, though the record held some */
    fails_assert = true;
    RT_OK(rig_launch());
    RT_FAILS(tw_stream_sync(rig_dev, NULL), TW_E_ASSERT, "x is not negative (line 7)");
    ck_assert_ptr_null(strstr(tw_last_error()->text, "in program"));
    rt_cx->cfg.checked = true;
    fake_is->kernel = asserts_values;
    RT_FAILS(rig_launch(), TW_E_ASSERT, told);
    rt_cx->cfg.checked = false;
}
END_TEST

/* A device that broke writes no more, but what it wrote is there. */
START_TEST(asserts_are_told_after_a_fault)
{
    rig_nslots = 1;
    rig_slots[0] = (recipe_slot){SLOT_ASSERT, 0, 0};
    fake_is->kernel = asserts_values;
    RT_OK(rig_launch());
    fake_breaks("cuStreamSynchronize", 700);
    RT_FAILS(tw_stream_sync(rig_dev, NULL), TW_E_DEVICE, "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
    RT_FAILS(rig_launch(), TW_E_DEVICE, "context is broken");
    tw_kernel_destroy(rig_kernel);
    rig_kernel = NULL;
    ck_assert_ptr_nonnull(strstr(rt_log, told));
}
END_TEST

START_TEST(asserts)
{
    rig_nslots = 1;
    rig_slots[0] = (recipe_slot){SLOT_ASSERT, 0, 0};
    fake_is->kernel = may_assert;
    fails_assert = true;
    RT_OK(rig_launch()); /* it is queued: nobody knows yet */
    RT_FAILS(tw_stream_sync(rig_dev, NULL), TW_E_ASSERT,
             "kernel 'add': assert failed: x is not neg");
    RT_OK(tw_stream_sync(rig_dev, NULL)); /* told once */
    RT_OK(rig_launch());
    unsigned launches = cuda_fake->calls("cuLaunchKernel");
    RT_FAILS(rig_launch(), TW_E_ASSERT, "x is not negative (line 7)"); /* the next launch tells */
    ck_assert_uint_eq(cuda_fake->calls("cuLaunchKernel"), launches);
    fails_assert = false;
    RT_OK(rig_launch());
    RT_OK(tw_stream_sync(rig_dev, NULL));
    fails_assert = true;
    RT_OK(rig_launch());
    tw_kernel_destroy(rig_kernel);
    rig_kernel = NULL;
    ck_assert_ptr_nonnull(strstr(rt_log, "x is not negative (line 7): nothing asked for it"));
}
END_TEST

/* ---- faults ---------------------------------------------------------------------------------- */

static void must_stay_broken(const char *call)
{
    char said[80];
    void *more = NULL;
    unsigned asked = cuda_fake->calls("");

    snprintf(said, sizeof said, "the GPU's context is broken: %s", call);
    for (int i = 0; i < 3; i++) {
        RT_FAILS(rig_launch(), TW_E_DEVICE, said);
        ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "a fault is final for its process"));
        RT_FAILS(tw_stream_sync(rig_dev, NULL), TW_E_DEVICE, said);
        RT_FAILS(tw_memory_alloc(rig_dev, 16, &more), TW_E_DEVICE, said);
    }
    ck_assert_uint_eq(cuda_fake->calls(""), asked); /* the driver is left alone */
}

/* A kernel that faults breaks the context, for good: the driver gives the process no new one. */
START_TEST(a_fault_is_final)
{
    RT_OK(rig_launch());
    fake_breaks("cuStreamSynchronize", 700);
    RT_FAILS(tw_stream_sync(rig_dev, NULL), TW_E_DEVICE, "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
    ck_assert_ptr_nonnull(
        strstr(tw_last_error()->text, "launched last on device 'cuda:0' was 'add'"));
    must_stay_broken("cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS");
    tw_memory_free(rig_dev, rig_x); /* which needs no driver */
    must_stay_broken("cuStreamSynchronize");
}
END_TEST

/* What the driver would say of a device that is opened once more is what it said before. */
START_TEST(a_fault_outlives_its_device)
{
    void *more = NULL;

    RT_OK(rig_launch());
    fake_breaks("cuLaunchKernel", 719);
    RT_FAILS(rig_launch(), TW_E_DEVICE, "CUDA_ERROR_LAUNCH_FAILED (719)");
    tw_kernel_destroy(rig_kernel);
    rig_kernel = NULL;
    tw_device_close(rig_dev);
    RT_OK(tw_device_open(rt_cx, "cuda", &rig_dev));
    RT_FAILS(tw_memory_alloc(rig_dev, 16, &more), TW_E_DEVICE, "CUDA_ERROR_LAUNCH_FAILED (719)");
    RT_FAILS(tw_memory_alloc(rig_dev, 16, &more), TW_E_DEVICE, "context is broken: cuMemAlloc");
}
END_TEST

START_TEST(a_fault_with_workspaces_and_asserts)
{
    rig_with_workspace();
    rig_nslots = 3;
    rig_slots[2] = (recipe_slot){SLOT_ASSERT, 0, 0};
    RT_OK(rig_launch_on(stream));
    fake_breaks("cuLaunchKernel", 716);
    RT_FAILS(rig_launch_on(stream), TW_E_DEVICE, "CUDA_ERROR_MISALIGNED_ADDRESS (716)");
    must_stay_broken("cuLaunchKernel: CUDA_ERROR_MISALIGNED_ADDRESS");
}
END_TEST

START_TEST(a_fault_in_the_applications_context)
{
    CUcontext now;
    const cuda_api *api = cuda_of(rig_dev)->api;

    cuda_fake->context(1);
    rig_reopen("cuda:1");
    RT_OK(rig_launch());
    fake_breaks("cuStreamSynchronize", 715);
    RT_FAILS(tw_stream_sync(rig_dev, NULL), TW_E_DEVICE, "CUDA_ERROR_ILLEGAL_INSTRUCTION (715)");
    must_stay_broken("cuStreamSynchronize: CUDA_ERROR_ILLEGAL_INSTRUCTION");
    api->cuCtxPopCurrent(&now);
    tw_kernel_destroy(rig_kernel);
    rig_kernel = NULL;
    tw_device_close(rig_dev);
    cuda_fake->reset(); /* a new process */
    cuda_api_forget();
    rig_open();
    RT_OK(rig_launch());
}
END_TEST

/* ---- every call ------------------------------------------------------------------------------ */

static tw_status whole_launch(void)
{
    const tw_arg args[] = {TW_TENSOR("x", &rig_tx), TW_TENSOR("y", &rig_ty)};
    double seconds;
    tw_status st = rig_launch_on(stream);

    if (st == TW_OK)
        st = tw_launch_timed(rig_kernel, rig_dev, NULL, args, 2, NULL, &seconds);
    if (st == TW_OK)
        st = tw_stream_sync(rig_dev, (tw_stream *)(void *)stream);
    return st;
}

static tw_status from_nothing(void)
{
    tw_kernel_destroy(rig_kernel);
    rig_kernel = rt_add_kernel();
    return whole_launch();
}

/* Each call of the driver on the way fails in turn: the error names it or the launch does without;
 * nothing is lost, and the next launch works. */
START_TEST(each_call_fails)
{
    rig_with_workspace();
    rig_slots[2] = (recipe_slot){SLOT_ASSERT, 0, 0};
    rig_nslots = 3;
    RT_OK(from_nothing());
    unsigned before = cuda_fake->calls("");
    RT_OK(from_nothing());
    unsigned total = cuda_fake->calls("") - before;
    for (unsigned n = 1; n <= total; n++) {
        fake_fails("", (int)n, 999);
        tw_status st = from_nothing();
        if (st != TW_OK)
            ck_assert_msg(strstr(tw_last_error()->text, "(999)") != NULL ||
                              strstr(tw_last_error()->text, "no pinned memory") != NULL,
                          "%u: %s", n, tw_last_error()->text);
        fake_is->fails = NULL;
        RT_OK(whole_launch());
    }
    ck_assert_uint_gt(total, 20);
}
END_TEST

START_TEST(each_allocation_fails)
{
    tw_status st = TW_E_NOMEM;
    int n;

    rig_with_workspace();
    for (n = 1; st == TW_E_NOMEM && n < 2000; n++) {
        tw_kernel_destroy(rig_kernel);
        rig_kernel = rt_add_kernel();
        mem_fail_after(n);
        st = whole_launch();
        mem_fail_after(0);
    }
    RT_OK(st);
    ck_assert_int_gt(n, 10);
}
END_TEST

START_TEST(timed_by_events)
{
    const tw_arg args[] = {TW_TENSOR("x", &rig_tx), TW_TENSOR("y", &rig_ty)};
    double seconds = 0.0;

    RT_OK(tw_launch_timed(rig_kernel, rig_dev, NULL, args, 2, NULL, &seconds));
    ck_assert_double_eq_tol(seconds, 0.5e-3, 1e-9); /* the fake's events are half a ms apart */
    ck_assert_uint_eq(cuda_fake->calls("cuMemsetD8Async"), 1); /* its cache was emptied */
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("cuda_launch");
    TCase *t = tcase_create("launch"), *old = tcase_create("old");

    tcase_add_checked_fixture(t, rig_setup, rig_teardown);
    tcase_add_test(t, a_launch_arrives);
    tcase_add_test(t, what_a_warm_launch_costs);
    tcase_add_test(t, empty_shapes_launch_nothing);
    tcase_add_test(t, large_grids);
    tcase_add_test(t, shared_memory_is_asked_for);
    tcase_add_test(t, limits);
    tcase_add_test(t, what_the_assembler_says);
    tcase_add_test(t, code_is_kept_by_gpu_and_driver);
    tcase_add_test(t, a_driver_older_than_the_ptx);
    tcase_add_test(t, another_gpu_is_current);
    tcase_add_test(t, asserts);
    tcase_add_test(t, asserts_tell_their_values);
    tcase_add_test(t, asserts_are_told_after_a_fault);
    tcase_add_test(t, a_fault_is_final);
    tcase_add_test(t, a_fault_outlives_its_device);
    tcase_add_test(t, a_fault_with_workspaces_and_asserts);
    tcase_add_test(t, a_fault_in_the_applications_context);
    tcase_add_test(t, each_call_fails);
    tcase_add_test(t, each_allocation_fails);
    tcase_add_test(t, timed_by_events);
    suite_add_tcase(s, t);
    tcase_add_checked_fixture(old, rig_setup_old, rig_teardown);
    tcase_add_test(old, a_launch_arrives);
    suite_add_tcase(s, old);
    return s;
}
