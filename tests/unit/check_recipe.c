/* Launch recipes: what is put into the slots of each step, workspaces, counters, scalars' bits. The
 * recipe is written by hand; a driver of the test's own looks at what arrives. */
#include "compiler/base/mem.h"
#include "runtime/launch.h"
#include "tests/support/runtime_fixture.h"
#include <check.h>
#include <string.h>

static tw_device *dev;
static tw_kernel *kernel;
static executable *exe;
static launch_args args;
static rt_vector x, y;
static driver spy;
static tw_status spy_status;

enum { SLOTS = 8, CALLS = 4 };
static struct call {
    const recipe_step *step;
    uint64_t slot[SLOTS];
    uint64_t counters[2]; /* as the step found them */
    int64_t first, count;
} calls[CALLS];
static int ncalls;

static tw_status spy_launch(tw_device *d, void *loaded, const driver_step *s, tw_stream *stream,
                            int32_t *failed)
{
    struct call *c = &calls[ncalls++];

    (void)d, (void)loaded, (void)stream, (void)failed;
    c->step = s->step;
    c->first = s->first;
    c->count = s->count;
    memcpy(c->slot, s->slots, sizeof *s->slots * s->step->nslots);
    for (uint32_t i = 0; i < s->step->nslots; i++)
        if (s->step->slot[i].kind == SLOT_COUNTER) {
            uint64_t *counter =
                (uint64_t *)(uintptr_t)s->slots[i]; /* a pointer, as code reads it */
            c->counters[s->step->slot[i].index] = *counter;
            *counter = 77;
        }
    return spy_status;
}

static void setup(void)
{
    const tw_arg list[] = {TW_TENSOR("x", &x.t), TW_TENSOR("y", &y.t), TW_F32("by", 1.5)};
    config none = {0};

    rt_setup();
    rt_vector_init(&x, 100, 1.0f);
    rt_vector_init(&y, 100, 1.0f);
    x.stride[0] = 3;
    dev = rt_device("null");
    spy = null_driver;
    spy.launch = spy_launch;
    dev->drv = &spy;
    ncalls = 0;
    spy_status = TW_OK;
    kernel = rt_add_kernel();
    RT_OK(runtime_resolve_args(kernel, dev, list, 3, 0, &args));
    RT_OK(runtime_compile(kernel, dev, &args.p, &none, 0, &exe));
}

static void teardown(void)
{
    runtime_exe_release(exe);
    tw_kernel_destroy(kernel);
    tw_device_close(dev);
    rt_teardown();
}

START_TEST(slots_in_order)
{
    static recipe_slot slot[] = {{SLOT_POINTER, 0, 1}, {SLOT_STRIDE, 0, 0}, {SLOT_DIM, 0, 0},
                                 {SLOT_SCALAR, 0, 2},  {SLOT_GRID, 0, 0},   {SLOT_GRID, 2, 0}};
    float by = 1.5f;
    uint32_t bits;

    exe->art->step[0].slot = slot;
    exe->art->step[0].nslots = 6;
    RT_OK(runtime_launch_exe(exe, &args, NULL));
    ck_assert_int_eq(ncalls, 1);
    ck_assert_uint_eq(calls[0].slot[0], (uintptr_t)y.x);
    ck_assert_uint_eq(calls[0].slot[1], 3);
    ck_assert_uint_eq(calls[0].slot[2], 100);
    memcpy(&bits, &by, sizeof bits);
    ck_assert_uint_eq(calls[0].slot[3], bits);
    ck_assert_uint_eq(calls[0].slot[4], 4);
    ck_assert_uint_eq(calls[0].slot[5], 1);
    ck_assert_int_eq((int)calls[0].count, 4);
}
END_TEST

static recipe_slot shared_slot[] = {
    {SLOT_WORKSPACE, 0, 0}, {SLOT_WORKSPACE, 1, 0}, {SLOT_COUNTER, 0, 0}, {SLOT_COUNTER, 1, 0}};

static void add_workspaces(void)
{
    static recipe_step step[2];
    static recipe_count work[2] = {{.factor = 10},
                                   {.factor = 8, .more = 2, .nterms = 1, .dim = {0}, .per = {1}}};

    for (int i = 0; i < 2; i++) {
        step[i] = exe->art->step[0];
        step[i].slot = shared_slot;
        step[i].nslots = 4;
    }
    exe->art->step = step;
    exe->art->nsteps = 2;
    exe->art->workspace = work;
    exe->art->nworkspaces = 2;
    exe->art->ncounters = 2;
}

/* The parts do not overlap, both steps see the same ones, counters start at 0 in each, and the
 * block is kept for the next launch. */
START_TEST(workspaces_and_counters)
{
    add_workspaces();
    RT_OK(runtime_launch_exe(exe, &args, NULL));
    ck_assert_int_eq(ncalls, 2);
    const struct call first = calls[0];
    ck_assert_uint_ge(first.slot[1] - first.slot[0], 10);
    ck_assert_uint_ge(first.slot[2] - first.slot[1], 816);
    ck_assert_uint_eq(first.slot[3] - first.slot[2], 8);
    ck_assert_uint_eq(first.slot[0] % 64, 0);
    ck_assert_uint_eq(first.slot[1] % 64, 0);
    ck_assert_int_eq(memcmp(first.slot, calls[1].slot, sizeof *first.slot * 4), 0);
    for (int i = 0; i < 2; i++)
        ck_assert(calls[i].counters[0] == 0 && calls[i].counters[1] == 0);
    long before = mem_live();
    mem_fail_after(1);
    ncalls = 0;
    RT_OK(runtime_launch_exe(exe, &args, NULL));
    mem_fail_after(0);
    ck_assert_uint_eq(calls[0].slot[0], first.slot[0]);
    ck_assert_int_eq(mem_live(), before);
}
END_TEST

START_TEST(workspaces_that_cannot_be)
{
    add_workspaces();
    mem_fail_after(1);
    RT_FAILS(runtime_launch_exe(exe, &args, NULL), TW_E_NOMEM, "workspace");
    mem_fail_after(0);
    exe->art->workspace[1].factor = INT64_MAX / 2;
    RT_FAILS(runtime_launch_exe(exe, &args, NULL), TW_E_LIMIT, "larger than memory");
    exe->art->workspace[1].factor = 8;
    ck_assert_int_eq(ncalls, 0);
    spy_status = error_set(TW_E_DRIVER, "no");
    ck_assert_int_eq(runtime_launch_exe(exe, &args, NULL), TW_E_DRIVER);
    ck_assert_int_eq(ncalls, 1); /* the second step is not run */
}
END_TEST

/* One program a block of 64 of the 100 elements, and one more, whatever part of the kernel's grid
 * is launched. */
START_TEST(a_step_with_a_grid_of_its_own)
{
    const launch_options part = {.program_first = 1, .program_count = 1};
    recipe_count *programs;

    add_workspaces();
    programs = &exe->art->step[0].programs;
    *programs = (recipe_count){.factor = 1, .more = 1, .nterms = 1, .dim = {0}, .per = {64}};
    for (int i = 0; i < 2; i++) {
        ncalls = 0;
        RT_OK(runtime_launch_exe(exe, &args, i ? &part : NULL));
        ck_assert_int_eq(ncalls, 2);
        ck_assert_int_eq((int)calls[0].first, 0);
        ck_assert_int_eq((int)calls[0].count, 3);
        ck_assert_int_eq((int)calls[1].first, i);
        ck_assert_int_eq((int)calls[1].count, i ? 1 : 4);
    }
    programs->factor = INT32_MAX;
    RT_FAILS(runtime_launch_exe(exe, &args, NULL), TW_E_LIMIT, "more than 2147483647 programs");
}
END_TEST

START_TEST(timing_counts_one_launch)
{
    double seconds = -1.0;

    RT_OK(runtime_time_exe(exe, &args, NULL, &seconds));
    ck_assert_int_eq(ncalls, 1);
    ck_assert(seconds >= 0.0);
}
END_TEST

static void refuse(recipe_slot s)
{
    static recipe_slot slot[1];

    slot[0] = s;
    exe->art->step[0].slot = slot;
    exe->art->step[0].nslots = 1;
    RT_FAILS(recipe_check(exe), TW_E_LIMIT, "does not fit");
}

START_TEST(recipes_that_do_not_fit)
{
    RT_OK(recipe_check(exe));
    refuse((recipe_slot){SLOT_POINTER, 0, 2}); /* a scalar */
    refuse((recipe_slot){SLOT_POINTER, 0, 3});
    refuse((recipe_slot){SLOT_STRIDE, 1, 0});
    refuse((recipe_slot){SLOT_SCALAR, 0, 0});
    refuse((recipe_slot){SLOT_DIM, 1, 0});
    refuse((recipe_slot){SLOT_GRID, 3, 0});
    refuse((recipe_slot){SLOT_WORKSPACE, 0, 0});
    refuse((recipe_slot){SLOT_COUNTER, 0, 0});
    refuse((recipe_slot){99, 0, 0});
    exe->art->step[0].nslots = 0;
    RT_OK(recipe_check(exe));
    exe->art->step[0].grid_map[2] = 1;
    RT_FAILS(recipe_check(exe), TW_E_LIMIT, "does not fit");
    exe->art->step[0].grid_map[2] = 2;
    add_workspaces();
    RT_OK(recipe_check(exe));
    exe->art->workspace[1].dim[0] = 1;
    RT_FAILS(recipe_check(exe), TW_E_LIMIT, "does not fit");
    exe->art->workspace[1].dim[0] = 0;
    exe->art->step[1].programs = (recipe_count){.factor = 1, .nterms = 1};
    RT_FAILS(recipe_check(exe), TW_E_LIMIT, "does not fit"); /* in blocks of 0 */
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("recipe");
    TCase *t = tcase_create("recipe");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, slots_in_order);
    tcase_add_test(t, workspaces_and_counters);
    tcase_add_test(t, workspaces_that_cannot_be);
    tcase_add_test(t, a_step_with_a_grid_of_its_own);
    tcase_add_test(t, timing_counts_one_launch);
    tcase_add_test(t, recipes_that_do_not_fit);
    suite_add_tcase(s, t);
    return s;
}
