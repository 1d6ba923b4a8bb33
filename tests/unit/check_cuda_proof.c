/* The kernels of tests/gpu/cuda_proof.c, over a fake libcuda: with one store and one context each
 * launch runs the code of its own kernel, with the slots that this code takes, cold and warm. */
#include "tests/support/cuda_rig.h"
#include "tests/support/proof_kernels.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 1024, BLOCKS = N / 128 };
static const proof_code *const codes[] = {&proof_add, &proof_count, &proof_assert, &proof_fault,
                                          &proof_shared};
enum { CODES = sizeof codes / sizeof *codes };
static char folder[] = "/tmp/proofXXXXXX", path[64];
static int64_t shape[] = {N};
static float *x, *y;
static tw_device *dev;
static const proof_code *ran;
static unsigned parts;
static uint64_t first;

static void setup(void)
{
    tw_config cfg = TW_CONFIG_INIT;

    cuda_setup();
    strcpy(folder, "/tmp/proofXXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/store.db", folder);
    cfg.store_path = path;
    rt_context(&cfg, NULL);
    cuda_test_target = &proof_target;
}

static void teardown(void)
{
    cuda_teardown();
    unlink(path);
    rmdir(folder);
}

static void open_device(void)
{
    void *p, *q;

    dev = rt_device("cuda:0");
    RT_OK(tw_memory_alloc(dev, sizeof *x * N, &p));
    RT_OK(tw_memory_alloc(dev, sizeof *y * N, &q));
    x = p;
    y = q;
}

static void close_device(void)
{
    tw_memory_free(dev, x);
    tw_memory_free(dev, y);
    tw_device_close(dev);
}

static tw_status launch(tw_kernel *k)
{
    const DLTensor tx = {x, {kDLCUDA, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0};
    DLTensor from = tx, to = tx;
    const tw_arg args[] = {TW_TENSOR("x", &from), TW_TENSOR("y", &to)};

    to.data = y;
    return tw_launch(k, dev, NULL, args, 2);
}

/* ---- what the code does, in C ---------------------------------------------------------------- */

static void count(const uint64_t *slot, unsigned blocks)
{
    uint64_t *space = (uint64_t *)(uintptr_t)slot[0], *counter = (uint64_t *)(uintptr_t)slot[1];
    float *out = (float *)(uintptr_t)slot[2];

    for (unsigned i = 0; i < blocks; i++) {
        uint64_t number = (*counter)++;
        space[number] = number;
        if (number + 1 == blocks)
            out[0] = (float)blocks;
    }
}

static void add(const uint64_t *slot, unsigned blocks)
{
    const float *from = (const float *)(uintptr_t)slot[0];
    float *to = (float *)(uintptr_t)slot[1];

    for (uint64_t i = slot[3] * 128; i < (slot[3] + blocks) * 128 && i < slot[2]; i++)
        to[i] = from[i] + 1.0f;
}

static void shared(const uint64_t *slot)
{
    float *out = (float *)(uintptr_t)slot[0];

    for (int i = 0; i < 128; i++)
        out[i] = (float)(127 - i);
}

static void run(const fake_launch *l)
{
    ran = NULL;
    for (int i = 0; i < CODES; i++)
        if (strcmp(l->text, codes[i]->ptx) == 0)
            ran = codes[i];
    ck_assert_ptr_nonnull(ran);
    ck_assert_uint_eq(l->slots, ran->nslots);
    ck_assert_int_eq((int)l->shared_bytes, ran->shared_bytes);
    ck_assert_uint_eq(l->blocks, BLOCKS);
    if (ran == &proof_add)
        add(l->slot, l->blocks);
    else if (ran == &proof_count)
        count(l->slot, l->blocks);
    else if (ran == &proof_assert && *(const float *)(uintptr_t)l->slot[1] < 0.0f)
        rig_fails(l->slot[0], 0, (int32_t[]){4, 0, 0}, (int32_t[]){12, 999996, 0});
    else if (ran == &proof_shared)
        shared(l->slot);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void launch_each(tw_kernel **k)
{
    static const float wanted[CODES] = {6.0f, BLOCKS, -1.0f, -1.0f, 127.0f};

    for (int i = 0; i < CODES; i++) {
        x[0] = 5.0f;
        y[0] = -1.0f;
        RT_OK(launch(k[i]));
        ck_assert_msg(ran == codes[i], "%s ran for %s", ran->name, codes[i]->name);
        ck_assert_msg(y[0] == wanted[i], "%s: y[0] = %g", codes[i]->name, (double)y[0]);
        RT_OK(tw_stream_sync(dev, NULL));
    }
}

static void check_asserts(tw_kernel *k)
{
    x[0] = -1.0f;
    RT_OK(launch(k));
    RT_FAILS(tw_stream_sync(dev, NULL), TW_E_ASSERT, "not negative: 12, 999996, in program 4");
    RT_OK(launch(k));
    RT_FAILS(launch(k), TW_E_ASSERT, "not negative: 12, 999996, in program 4");
    RT_OK(tw_stream_sync(dev, NULL));
}

START_TEST(each_runs_its_own_code)
{
    tw_kernel *k[CODES], *too_shared;

    fake_is->kernel = run;
    for (int warm = 0; warm < 2; warm++) {
        unsigned links = cuda_fake->calls("cuLinkComplete");
        open_device();
        for (int i = 0; i < CODES; i++)
            RT_OK(proof_load(rt_cx, codes[i], &k[i]));
        launch_each(k);
        launch_each(k);
        check_asserts(k[2]);
        RT_OK(proof_load(rt_cx, &proof_too_shared, &too_shared));
        RT_FAILS(launch(too_shared), TW_E_LIMIT, "needs 300000 bytes of shared memory");
        tw_kernel_destroy(too_shared);
        /* The one that does not load is never stored. */
        ck_assert_uint_eq(cuda_fake->calls("cuLinkComplete") - links, warm ? 1 : CODES + 1);
        for (int i = 0; i < CODES; i++)
            tw_kernel_destroy(k[i]);
        close_device();
    }
}
END_TEST

static void see_part(const fake_launch *l)
{
    ck_assert_str_eq(l->text, proof_last.ptx);
    parts++;
    first = l->slot[0] + 65536 * l->slot[1] + l->blocks;
    ck_assert_uint_eq(l->slot[2], (uintptr_t)y);
}

START_TEST(more_programs_than_a_grid_has)
{
    tw_kernel *k;

    open_device();
    fake_is->kernel = see_part;
    parts = 0;
    RT_OK(proof_load(rt_cx, &proof_last, &k));
    RT_OK(launch(k));
    ck_assert_uint_eq(parts, 2);
    ck_assert_uint_eq(first, 2147549184u);
    tw_kernel_destroy(k);
    close_device();
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("cuda_proof");
    TCase *t = tcase_create("kernels");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, each_runs_its_own_code);
    tcase_add_test(t, more_programs_than_a_grid_has);
    suite_add_tcase(s, t);
    return s;
}
