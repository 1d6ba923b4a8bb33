#include "tests/support/runtime_fixture.h"
#include "tuner/session.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

static tw_device *dev;
static tw_kernel *k;
static problem p;
static config cfg;
static char why[160];
static target_needs needs;

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
    return prune(k, dev, &p, &cfg, &needs, why, sizeof why);
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

/* ---- GPUs ---- */

static tw_kernel *attention;

/* attention_fwd on a GPU that is not there. */
static bool pruned_of(tw_device *gpu, enum dtype t, int64_t head_dim, const char *pins)
{
    const int64_t value[] = {(int64_t)t, head_dim, head_dim};
    problem q;
    config c;

    memset(&q, 0, sizeof q);
    q.nconsts = attention->source->sig.nconsts;
    for (uint32_t i = 0; i < q.nconsts; i++) {
        const sig_const *s = &attention->source->sig.cons[i];
        q.cons[i] = (ir_binding){s->name, s->kind, i < 3 ? value[i] : s->default_value};
    }
    for (uint32_t i = 0; i < attention->source->sig.nparams; i++)
        q.facts[i] = (tensor_facts){true, 16};
    RT_OK(config_pin(attention, gpu->target, gpu, &q, pins, &c, NULL));
    return prune(attention, gpu, &q, &c, &needs, why, sizeof why);
}

static bool pruned_on(tw_device *gpu, const char *pins)
{
    return pruned_of(gpu, DT_BF16, 128, pins);
}

START_TEST(limits_of_a_gpu)
{
    tw_device gpu = {.target = target_find("sm_89"), .gpu.limits = gpu_limits_of(89)};

    RT_OK(tw_kernel_load(rt_cx, "kernels/attention_fwd.tw", NULL, &attention));
    gpu.cx = rt_cx;
    ck_assert(!pruned_on(&gpu, "BLOCK_M=128,BLOCK_N=64"));
    ck_assert_str_eq(why, "");
    ck_assert(pruned_on(&gpu, "BLOCK_M=128,BLOCK_N=64,num_stages=3"));
    ck_assert_ptr_nonnull(strstr(why, "131072 bytes of shared memory"));
    ck_assert_ptr_nonnull(strstr(why, "has 101376"));
    ck_assert(pruned_on(&gpu, "BLOCK_M=128,BLOCK_N=128,num_stages=1"));
    ck_assert_ptr_nonnull(
        strstr(why, "registers a thread, of which one of 128 threads can have 255"));
    ck_assert(!pruned_on(&gpu, "BLOCK_M=128,BLOCK_N=64,num_stages=1,num_warps=8"));
    gpu.gpu.limits.threads_per_block = 64;
    ck_assert(pruned_on(&gpu, "BLOCK_M=64,BLOCK_N=64"));
    ck_assert_ptr_nonnull(strstr(why, "a block of 128 threads; the GPU has at most 64"));
    gpu.gpu.limits.threads_per_block = 1024;
    gpu.gpu.limits.registers_per_sm = 8192; /* a share of 64, when the estimate is 160 */
    ck_assert(pruned_on(&gpu, "BLOCK_M=64,BLOCK_N=64"));
    ck_assert_ptr_nonnull(strstr(why, "can have 64"));
    tw_kernel_destroy(attention);
}
END_TEST

static bool refused(int capability, int64_t head_dim, const char *pins)
{
    char path[16];

    snprintf(path, sizeof path, "sm_%d", capability);
    tw_device gpu = {.target = target_find(path), .gpu.limits = gpu_limits_of(capability)};
    gpu.cx = rt_cx;
    return pruned_of(&gpu, DT_F32, head_dim, pins);
}

/* Bytes of spill stores that ptxas gives, sm_80 and sm_120. */
START_TEST(what_would_spill_is_refused)
{
    static const char small[] = "BLOCK_M=32,BLOCK_N=32,num_warps=8,num_stages=2";

    RT_OK(tw_kernel_load(rt_cx, "kernels/attention_fwd.tw", NULL, &attention));
    ck_assert(refused(80, 144, small)); /* 748 */
    ck_assert_msg(strstr(why, "about 339 registers a thread"), "%s", why);
    ck_assert(!refused(120, 144, small));                                           /* 0 */
    ck_assert(!refused(80, 160, small));                                            /* 0 */
    ck_assert(!refused(80, 144, "BLOCK_M=32,BLOCK_N=32,num_warps=4,num_stages=2")); /* 0 */
    ck_assert(refused(80, 208, small));                                             /* 2936 */
    ck_assert(refused(120, 208, "BLOCK_M=32,BLOCK_N=32,num_warps=8,num_stages=1")); /* 1832 */
    ck_assert(refused(80, 64, "BLOCK_M=128,BLOCK_N=128,num_stages=1"));             /* 592 */
    ck_assert(!refused(80, 64, "BLOCK_M=128,BLOCK_N=64,num_stages=1"));             /* 0 */
    tw_kernel_destroy(attention);
}
END_TEST

static hash128 code_of(tw_device *gpu, const char *pins)
{
    ck_assert_msg(!pruned_on(gpu, pins), "%s: %s", pins, why);
    ck_assert(needs.code.lo | needs.code.hi);
    return needs.code;
}

/* Of one stage and of two, not: of the same by other parameters. */
START_TEST(the_same_code_is_known)
{
    tw_device gpu = {.target = target_find("sm_89"), .gpu.limits = gpu_limits_of(89)};

    RT_OK(tw_kernel_load(rt_cx, "kernels/matmul.tw", NULL, &attention));
    gpu.cx = rt_cx;
    hash128 one = code_of(&gpu, "num_stages=1");
    ck_assert(hash_equal(one, code_of(&gpu, "num_stages=1,operand_registers=1")));
    ck_assert(hash_equal(one, code_of(&gpu, "num_stages=1,operand_registers=2,lazy_rescale=0")));
    ck_assert(!hash_equal(one, code_of(&gpu, "num_stages=2")));
    ck_assert(!hash_equal(one, code_of(&gpu, "num_stages=1,min_blocks=2")));
    ck_assert(!hash_equal(one, code_of(&gpu, "num_stages=1,num_warps=8")));
    tw_kernel_destroy(attention);
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
    tcase_add_test(t, limits_of_a_gpu);
    tcase_add_test(t, what_would_spill_is_refused);
    tcase_add_test(t, the_same_code_is_known);
    suite_add_tcase(s, t);
    return s;
}
