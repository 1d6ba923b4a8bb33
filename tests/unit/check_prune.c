#include "tests/support/runtime_fixture.h"
#include "tuner/session.h"
#include <check.h>
#include <string.h>

static tw_device *dev;
static tw_kernel *k;
static problem p;
static config cfg;
static char why[160];

static void setup(void)
{
    rt_setup();
    dev = rt_device("interp");
    RT_OK(tw_kernel_load(rt_cx, "kernels/matmul.tw", NULL, &k));
    memset(&p, 0, sizeof p);
    p.nconsts = 1;
    p.cons[0] = (ir_binding){"T", BIND_DTYPE, DT_F32};
    for (int i = 0; i < 3; i++)
        p.symbol[i] = 512;
    RT_OK(config_default(k, dev->target, dev, &p, &cfg));
}

static void teardown(void)
{
    tw_kernel_destroy(k);
    tw_device_close(dev);
    rt_teardown();
}

static bool pruned(size_t l2_bytes, int64_t block)
{
    for (uint32_t i = 0; i < 3; i++)
        cfg.value[i].value = block;
    dev->l2_bytes = l2_bytes;
    return prune(k, dev, &p, &cfg, why, sizeof why);
}

/* 64 x 64 tiles of f32 are 16 KiB: the accumulator, carried, and the dot's operands and result. */
START_TEST(tiles_far_beyond_the_cache_are_refused)
{
    ck_assert(!pruned(1 << 20, 64));
    ck_assert_str_eq(why, "");
    ck_assert(!pruned(20 << 10, 64));
    ck_assert(pruned(19 << 10, 64));
    ck_assert_ptr_nonnull(strstr(why, "needs 80 KiB at once"));
    ck_assert_ptr_nonnull(strstr(why, "level-2 cache"));
    ck_assert(pruned(20 << 10, 128));
}
END_TEST

START_TEST(an_unknown_cache_refuses_nothing)
{
    ck_assert(!pruned(0, 128));
}
END_TEST

/* The compiler's own error says more. */
START_TEST(what_does_not_lower_is_left_to_the_compiler)
{
    ck_assert(!pruned(1, 1 << 21));
    ck_assert_str_eq(why, "");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("prune");
    TCase *t = tcase_create("prune");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, tiles_far_beyond_the_cache_are_refused);
    tcase_add_test(t, an_unknown_cache_refuses_nothing);
    tcase_add_test(t, what_does_not_lower_is_left_to_the_compiler);
    suite_add_tcase(s, t);
    return s;
}
