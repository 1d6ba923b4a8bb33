/* Attention built from C, examples/attention_builder.c: the same bits as the text in the same
 * configuration, on every device and for every dtype; and it is tuned and stored like text. */
#include "tests/support/numeric_case.h"
#include "tests/support/numeric_dtype.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int example_main(void);
#define main example_main
#include "examples/attention_builder.c"
#undef main

enum { H_ = 4, HK_ = 2, M_ = 70, N_ = 133, D_ = 32, DV_ = 48 };

static tw_kernel *build(tw_context *cx)
{
    tw_ir_kernel def = TW_IR_KERNEL_INIT;
    tw_kernel *built;

    def.name = "attention_fwd";
    def.params = params;
    def.param_count = COUNT(params);
    def.consts = consts;
    def.const_count = COUNT(consts);
    def.tunes = tunes;
    def.tune_count = COUNT(tunes);
    def.launch = build_launch;
    def.body = build_body;
    num_must(tw_ir_kernel_create(cx, &def, &built), "tw_ir_kernel_create");
    return built;
}

typedef struct problem {
    num_tensor q, k, v, o, lse;
    tw_arg args[6];
} problem;

static void make(problem *p, const num_dtype *type, bool causal, uint64_t seed)
{
    static const int64_t q_[] = {1, H_, M_, D_}, k_[] = {1, HK_, N_, D_}, v_[] = {1, HK_, N_, DV_},
                         o_[] = {1, H_, M_, DV_};
    num_random r = {seed};

    num_alloc_as(&p->q, "q", type, 4, q_, NUM_DENSE, NUM_AT_END);
    num_alloc_as(&p->k, "k", type, 4, k_, NUM_PADDED, NUM_AT_END);
    num_alloc_as(&p->v, "v", type, 4, v_, NUM_SWAPPED, NUM_AT_END);
    num_alloc_as(&p->o, "o", type, 4, o_, NUM_DENSE, NUM_AT_END);
    num_alloc(&p->lse, "lse", 3, o_, NUM_DENSE, NUM_AT_END);
    num_fill(&p->q, &r, 1.0);
    num_fill(&p->k, &r, 1.0);
    num_fill(&p->v, &r, 1.0);
    const tw_arg args[] = {TW_TENSOR("q", &p->q.dl),     TW_TENSOR("k", &p->k.dl),
                           TW_TENSOR("v", &p->v.dl),     TW_TENSOR("o", &p->o.dl),
                           TW_TENSOR("lse", &p->lse.dl), TW_BOOL("CAUSAL", causal)};
    memcpy(p->args, args, sizeof args);
}

static void drop(problem *p)
{
    num_free(&p->q);
    num_free(&p->k);
    num_free(&p->v);
    num_free(&p->o);
    num_free(&p->lse);
}

static void same_bits(const num_tensor *x, const num_tensor *y)
{
    size_t n = (size_t)num_elements(x) * ((x->dl.dtype.bits + 7u) / 8u);

    ck_assert_msg(memcmp((char *)x->dl.data + x->dl.byte_offset,
                         (char *)y->dl.data + y->dl.byte_offset, n) == 0,
                  "%s differs", x->name);
}

static const struct {
    const char *spec, *target, *type;
} subject[] = {{"interp", NULL, "f32"},      {"cpu:2", NULL, "f32"},
               {"cpu:2", NULL, "bf16"},      {"cpu:2", NULL, "f16"},
               {"cpu:2", "cpu-avx2", "f32"}, {"cpu:1", "cpu-generic", "f32"}};
static const struct {
    const char *config;
    bool causal;
} way[] = {{NULL, true}, {"BLOCK_M=32,BLOCK_N=128", false}, {"BLOCK_M=96,BLOCK_N=32", true}};

START_TEST(the_same_bits_as_the_text)
{
    const num_dtype *type = num_dtype_named(subject[_i].type);
    num_device d;

    if (!num_open(&d, subject[_i].spec, subject[_i].target))
        return;
    tw_kernel *from_c = build(d.cx), *from_text = num_load(&d, "kernels/attention_fwd.tw");
    for (size_t at = 0; at < sizeof way / sizeof *way; at++) {
        tw_launch_options options = TW_LAUNCH_OPTIONS_INIT;
        problem x, y;
        options.config = way[at].config;
        make(&x, type, way[at].causal, 17);
        make(&y, type, way[at].causal, 17);
        num_must(tw_launch_with(from_c, d.dev, NULL, x.args, 6, &options), "built");
        num_must(tw_launch_with(from_text, d.dev, NULL, y.args, 6, &options), "text");
        same_bits(&x.o, &y.o);
        same_bits(&x.lse, &y.lse);
        drop(&x);
        drop(&y);
    }
    tw_kernel_destroy(from_c);
    tw_kernel_destroy(from_text);
    num_close(&d);
}
END_TEST

START_TEST(what_is_wrong_is_refused_with_the_same_words)
{
    num_device d;
    problem x;

    ck_assert(num_open(&d, "cpu:1", NULL));
    tw_kernel *built = build(d.cx);
    make(&x, num_dtype_named("f32"), false, 3);
    tw_arg args[7];
    memcpy(args, x.args, sizeof x.args);
    args[6] = TW_F32("scale", -1.0);
    ck_assert_int_eq(tw_launch(built, d.dev, NULL, args, 7), TW_E_ARG);
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "scale > 0.0"));
    args[6] = TW_INT("offset", 1 << 30);
    num_must(tw_launch(built, d.dev, NULL, args, 7), "offset");
    drop(&x);
    tw_kernel_destroy(built);
    num_close(&d);
}
END_TEST

static tw_context *open_store(const char *path)
{
    tw_config cfg = TW_CONFIG_INIT;
    tw_context *cx;

    cfg.store_path = path;
    num_must(tw_context_create(&cfg, &cx), "tw_context_create");
    return cx;
}

static void ask(const char *path, problem *x, bool tune, tw_answer *answer)
{
    tw_context *cx = open_store(path);
    tw_tune_options options = TW_TUNE_OPTIONS_INIT;
    tw_device *dev;

    num_must(tw_device_open(cx, "cpu:2", &dev), "tw_device_open");
    tw_kernel *built = build(cx);
    options.budget_s = 1.0;
    if (tune)
        num_must(tw_tune(built, dev, x->args, 6, &options, NULL), "tw_tune");
    *answer = (tw_answer)TW_ANSWER_INIT;
    num_must(tw_query(built, dev, x->args, 6, NULL, answer), "tw_query");
    tw_kernel_destroy(built);
    tw_device_close(dev);
    tw_context_destroy(cx);
}

START_TEST(it_is_tuned_and_stored)
{
    char dir[] = "/tmp/tw_built_XXXXXX", path[64];
    tw_answer first, second;
    problem x;

    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/store.db", dir);
    make(&x, num_dtype_named("f32"), true, 5);
    ask(path, &x, true, &first);
    ck_assert_int_eq(first.layer, TW_LAYER_TUNED);
    ask(path, &x, false, &second);
    ck_assert_int_eq(second.layer, TW_LAYER_EXACT);
    ck_assert_str_eq(first.config, second.config);
    ck_assert(second.artifact_stored);
    drop(&x);
    unlink(path);
    rmdir(dir);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("attention built from C");
    TCase *t = tcase_create("built");

    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, the_same_bits_as_the_text, 0, (int)(sizeof subject / sizeof *subject));
    tcase_add_test(t, what_is_wrong_is_refused_with_the_same_words);
    tcase_add_test(t, it_is_tuned_and_stored);
    suite_add_tcase(s, t);
    return s;
}
