/* Schedules give what level 1 gives, on the interpreter and its race detector: kernels of the
 * library in many configurations. Without any of its waits and barriers a schedule is found out. */
#include "compiler/base/error.h"
#include "tests/support/ir_fixture.h"
#include "tests/support/patience.h"
#include "tests/support/sched_rig.h"
#include "tests/support/schedule_fixture.h"
#include "tests/support/schedule_run.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct trial {
    const char *kernel, *values;
    int n;
    run_tensor t[RUN_MAX_TENSORS];
    double tolerance; /* of an element, relative to 1 + its size */
    int align;
} trial;

static void take_memory(run_case *c)
{
    for (int i = 0; i < c->n; i++) {
        size_t bytes = run_elements(&c->t[i]) * (size_t)dtype_bytes(c->t[i].dtype);
        c->t[i].data = arena_alloc(&schedule_memory, bytes + 16);
    }
}

static bool is_output(const ir_module *m, const char *name)
{
    for (uint32_t i = 0; i < m->kernel->params.n; i++) {
        const ir_param *p = &m->kernel->params.at[i];
        if (p->kind == PARAM_TENSOR && strcmp(p->name, name) == 0)
            return p->direction != DIR_IN;
    }
    return false;
}

/* The last rows are of one document, long enough for whole blocks, or of two. */
static void number_documents(run_tensor *t)
{
    for (int32_t i = 0; i < (int32_t)run_elements(t); i++)
        ((int32_t *)t->data)[i] = (i >= 8) + (i >= 30) + (i >= 60) + (i >= 140);
}

static void prepare(const ir_module *m, run_case *c)
{
    for (int i = 0; i < c->n; i++) {
        if (is_output(m, c->t[i].name))
            run_poison(&c->t[i]);
        else if (c->t[i].dtype == DT_I32)
            number_documents(&c->t[i]);
        else
            run_fill(&c->t[i], (uint64_t)i + 1, 1.0);
    }
}

static void compare(const ir_module *m, const trial *t, const run_case *want, const run_case *got,
                    const char *label)
{
    for (int k = 0; k < t->n; k++) {
        if (!is_output(m, t->t[k].name))
            continue;
        for (size_t i = 0; i < run_elements(&want->t[k]); i++) {
            double x = run_element(&want->t[k], i), y = run_element(&got->t[k], i);
            bool same = x == y || (isnan(x) && isnan(y)) ||
                        fabs(x - y) <= t->tolerance * (1 + fabs(x));
            if (!same)
                ck_abort_msg("%s: %s[%zu] is %g, not %g", label, t->t[k].name, i, y, x);
        }
    }
}

static void check_one(const trial *t, const run_case *want, schedule_params p, uint64_t seed)
{
    char label[300];
    interp_fault fault = {0};
    ir_module *m = schedule_lower(t->kernel, t->values, t->align);
    run_case got = {.n = t->n, .seed = seed};

    snprintf(label, sizeof label, "%s %s warps=%d stages=%d of %d registers=%d lazy=%d seed=%d",
             t->kernel, t->values, p.num_warps, p.num_stages, p.stage_blocks, p.operand_registers,
             p.lazy_rescale, (int)seed);
    memcpy(got.t, t->t, sizeof got.t);
    take_memory(&got);
    prepare(m, &got);
    ck_assert_msg(schedule_make(m, 90, p, NULL) == TW_OK, "%s: %s", label, error_get()->text);
    tw_status st = run_module(m, &got, &fault);
    ck_assert_msg(st == TW_OK, "%s: %s: %s", label, tw_status_name(st), fault.text);
    compare(m, t, want, &got, label);
}

static void check_all(const trial *t)
{
    static const schedule_params tried[] = {
        {4, 2, 0, 1, 0, 1}, {4, 1, 0, 1, 1, 1}, {2, 3, 1, 0, 1, 1}, {1, 2, 1, 1, 0, 1},
        {8, 1, 1, 1, 0, 1}, {2, 4, 0, 0, 0, 1}, {4, 2, 2, 1, 0, 2}, {4, 1, 2, 1, 0, 2},
        {2, 3, 2, 0, 1, 2}, {2, 2, 0, 1, 0, 4}};
    run_case want = {.n = t->n};
    ir_module *m = schedule_lower(t->kernel, t->values, t->align);

    memcpy(want.t, t->t, sizeof want.t);
    take_memory(&want);
    prepare(m, &want);
    ck_assert_int_eq(run_module(m, &want, NULL), TW_OK);
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
        check_one(t, &want, tried[i], i);
}

#define ATTENTION(heads, d, m, n, block_m, block_n, causal, tol)                                   \
    ATTENTION_OF("attention_fwd", heads, d, m, n, block_m, block_n, causal, tol)
#define ATTENTION_OF(name, heads, d, m, n, block_m, block_n, causal, tol)                          \
    {"kernels/" name ".tw",                                                                        \
     "T=bf16,D=" #d ",DV=" #d ",CAUSAL=" causal ",BLOCK_M=" #block_m ",BLOCK_N=" #block_n,         \
     5,                                                                                            \
     {{"q", DT_BF16, 4, {1, heads, m, d}, NULL},                                                   \
      {"k", DT_BF16, 4, {1, 1, n, d}, NULL},                                                       \
      {"v", DT_BF16, 4, {1, 1, n, d}, NULL},                                                       \
      {"o", DT_BF16, 4, {1, heads, m, d}, NULL},                                                   \
      {"lse", DT_F32, 3, {1, heads, m}, NULL}},                                                    \
     tol,                                                                                          \
     16}

START_TEST(attention_schedules)
{
    static const trial trials[] = {
        ATTENTION(2, 64, 64, 96, 32, 16, "false", 0x1p-7),
        ATTENTION(2, 64, 64, 96, 32, 16, "true", 0x1p-7),
        ATTENTION(2, 32, 40, 75, 16, 32, "true", 0x1p-7),
        ATTENTION(2, 48, 70, 33, 64, 16, "true", 0x1p-7),
        ATTENTION(2, 16, 70, 90, 48, 16, "false", 0x1p-7),
        ATTENTION_OF("variants/attention_rounded", 2, 32, 40, 75, 32, 32, "true", 0x1p-7),
        {"kernels/variants/attention_relative.tw",
         "T=bf16,D=32,DV=32,CAUSAL=true,BLOCK_M=32,BLOCK_N=16", 6,
         {{"q", DT_BF16, 4, {1, 2, 40, 32}, NULL},
          {"k", DT_BF16, 4, {1, 1, 75, 32}, NULL},
          {"v", DT_BF16, 4, {1, 1, 75, 32}, NULL},
          {"o", DT_BF16, 4, {1, 2, 40, 32}, NULL},
          {"lse", DT_F32, 3, {1, 2, 40}, NULL},
          {"bias", DT_F32, 2, {2, 33}, NULL}},
         0x1p-7, 16},
        {"kernels/variants/attention_quantized.tw",
         "T=bf16,D=32,DV=32,CAUSAL=false,BLOCK_M=32,BLOCK_N=16", 7,
         {{"q", DT_BF16, 4, {1, 2, 40, 32}, NULL},
          {"k", DT_I8, 4, {1, 1, 75, 32}, NULL},
          {"v", DT_I8, 4, {1, 1, 75, 32}, NULL},
          {"o", DT_BF16, 4, {1, 2, 40, 32}, NULL},
          {"lse", DT_F32, 3, {1, 2, 40}, NULL},
          {"k_scale", DT_F32, 3, {1, 1, 75}, NULL},
          {"v_scale", DT_F32, 3, {1, 1, 75}, NULL}},
         0x1p-7, 16},
    };

    check_all(&trials[_i]);
}
END_TEST

static const trial trials[] = {
    {"kernels/vector_add.tw", "T=f32,BLOCK=256", 3,
     {{"a", DT_F32, 1, {1000}, NULL},
      {"b", DT_F32, 1, {1000}, NULL},
      {"c", DT_F32, 1, {1000}, NULL}},
     0, 16},
    {"kernels/softmax.tw", "T=f32,BLOCK_M=4,BLOCK_N=64", 2,
     {{"x", DT_F32, 2, {11, 150}, NULL}, {"y", DT_F32, 2, {11, 150}, NULL}}, 1e-6, 4},
    {"kernels/matmul.tw", "T=f16,BLOCK_M=32,BLOCK_N=16,BLOCK_K=16", 3,
     {{"a", DT_F16, 2, {70, 112}, NULL},
      {"b", DT_F16, 2, {112, 40}, NULL},
      {"c", DT_F16, 2, {70, 40}, NULL}},
     0x1p-10, 16},
    {"kernels/matmul.tw", "T=f32,BLOCK_M=32,BLOCK_N=16,BLOCK_K=16", 3,
     {{"a", DT_F32, 2, {37, 52}, NULL},
      {"b", DT_F32, 2, {52, 20}, NULL},
      {"c", DT_F32, 2, {37, 20}, NULL}},
     0, 16},
    {"kernels/matmul.tw", "T=bf16,BLOCK_M=24,BLOCK_N=8,BLOCK_K=8", 3,
     {{"a", DT_BF16, 2, {37, 51}, NULL},
      {"b", DT_BF16, 2, {51, 19}, NULL},
      {"c", DT_BF16, 2, {37, 19}, NULL}},
     0x1p-7, 2},
    {"tests/data/running_sums.tw", "", 3,
     {{"x", DT_F32, 2, {37, 150}, NULL},
      {"y", DT_F32, 1, {37}, NULL},
      {"z", DT_I32, 1, {37}, NULL}},
     1e-5, 16},
    {"tests/data/lagging_max.tw", "", 2,
     {{"x", DT_F32, 2, {37, 160}, NULL}, {"y", DT_F32, 1, {37}, NULL}}, 1e-5, 16},
};

START_TEST(other_schedules)
{
    check_all(&trials[_i]);
}
END_TEST

/* ---- every wait and barrier is needed ---- */

/* Of kernels that have one, shape by shape. */
static const int windows[] = {40, 90, 130, 1000};

/* Does the interpreter find fault with m on one of the shapes? */
static bool found_out(const ir_module *m, const trial *shape, int nshapes)
{
    for (int i = 0; i < nshapes; i++) {
        arena_mark mark = arena_save(&schedule_memory);
        run_case c = {.n = shape[i].n, .scalar = "window", .value = windows[i % 4]};
        bool wrong = false;
        memcpy(c.t, shape[i].t, sizeof c.t);
        take_memory(&c);
        prepare(m, &c);
        for (c.seed = 0; c.seed < 2 && !wrong; c.seed++) {
            interp_fault fault = {0};
            tw_status st = run_module(m, &c, &fault);
            ck_assert_msg(st == TW_OK || st == TW_E_SOURCE || st == TW_E_ASSERT, "%s: %s",
                          tw_status_name(st), fault.text);
            wrong = st != TW_OK;
        }
        arena_rewind(&schedule_memory, mark);
        if (wrong)
            return true;
    }
    return false;
}

/* Without any one of them that is reached the interpreter reports an error. The shapes, which one
 * module serves, run each loop more often than it has stages. */
static void without_each(const trial *shape, int nshapes, schedule_params p)
{
    ir_module *whole = schedule_lower(shape->kernel, shape->values, shape->align);
    const char *what;

    ck_assert_int_eq(schedule_make(whole, 90, p, NULL), TW_OK);
    ck_assert(!found_out(whole, shape, nshapes));
    for (int k = 0;; k++) {
        arena_mark mark = arena_save(&ir_arena);
        ir_module *m = sched_weakened(whole, k, &what);
        if (!m)
            break;
        if (!found_out(m, shape, nshapes) && found_out(sched_trapped(whole, k), shape, nshapes))
            ck_abort_msg("%s, %d warps, %d stages of %d, registers %d: %s, it still runs",
                         shape->values, p.num_warps, p.num_stages, p.stage_blocks,
                         p.operand_registers, what);
        arena_rewind(&ir_arena, mark);
    }
}

START_TEST(gradients)
{
    static const trial t = {"tests/data/attention_gradients.tw",
                            "T=bf16,D=32,BLOCK_M=32,BLOCK_N=64",
                            9,
                            {{"q", DT_BF16, 4, {1, 2, 70, 32}, NULL},
                             {"k", DT_BF16, 4, {1, 2, 90, 32}, NULL},
                             {"v", DT_BF16, 4, {1, 2, 90, 32}, NULL},
                             {"g", DT_BF16, 4, {1, 2, 70, 32}, NULL},
                             {"lse", DT_F32, 3, {1, 2, 70}, NULL},
                             {"delta", DT_F32, 3, {1, 2, 70}, NULL},
                             {"dq", DT_F32, 4, {1, 2, 70, 32}, NULL},
                             {"dk", DT_BF16, 4, {1, 2, 90, 32}, NULL},
                             {"dv", DT_BF16, 4, {1, 2, 90, 32}, NULL}},
                            0x1p-6,
                            16};

    check_all(&t);
    without_each(&t, 1, (schedule_params){4, 2, 0, 1, 0, 1});
    without_each(&t, 1, (schedule_params){4, 1, 1, 1, 0, 1});
}
END_TEST

/* Three shapes, so that loops end in different slots; of one program, as all are alike. */
typedef struct thorough {
    trial shape[3];
    int warps;
} thorough;

#define SHAPES(d, n, block_m, block_n, causal)                                                     \
    {                                                                                              \
        ATTENTION(1, d, block_m, n, block_m, block_n, causal, 0),                                  \
            ATTENTION(1, d, block_m, n + block_n, block_m, block_n, causal, 0),                    \
            ATTENTION(1, d, block_m, n + 2 * block_n, block_m, block_n, causal, 0)                 \
    }

static const thorough attention[] = {
    {SHAPES(32, 155, 32, 16, "false"), 2}, {SHAPES(32, 160, 64, 16, "true"), 4},
    {SHAPES(64, 190, 64, 64, "false"), 4}, {SHAPES(16, 75, 128, 16, "false"), 8},
    {SHAPES(128, 75, 64, 16, "false"), 4},
};

START_TEST(no_wait_and_no_barrier_too_many)
{
    int i = _i * SPARSE + _i / 3 % SPARSE; /* each number of stages, also of few */
    const thorough *t = &attention[i / 9];

    without_each(t->shape, 3, (schedule_params){t->warps, i % 3 + 1, i / 3 % 3, 1, 0, 1});
}
END_TEST

/* The same where iterations share a stage: loops end in the middle of one, too. */
START_TEST(no_wait_and_no_barrier_too_many_in_stages)
{
    static const trial shape[] = {
        ATTENTION(1, 32, 32, 155, 32, 16, "true", 0), ATTENTION(1, 32, 32, 171, 32, 16, "true", 0),
        ATTENTION(1, 32, 32, 203, 32, 16, "true", 0)};

    without_each(shape, 3, (schedule_params){2, _i % 2 + 2, _i / 2, 1, 0, 2});
}
END_TEST

/* Blocks between others of which nothing is seen: a loop whose copies stand under a condition that
 * does not hold each time. */
#define BANDS(n)                                                                                   \
    {"tests/data/attention_bands.tw",                                                              \
     "T=bf16,D=32,BLOCK_M=32,BLOCK_N=16",                                                          \
     4,                                                                                            \
     {{"q", DT_BF16, 2, {40, 32}, NULL},                                                           \
      {"k", DT_BF16, 2, {n, 32}, NULL},                                                            \
      {"v", DT_BF16, 2, {n, 32}, NULL},                                                            \
      {"o", DT_F32, 2, {40, 32}, NULL}},                                                           \
     0x1p-6,                                                                                       \
     16}

START_TEST(copies_under_a_condition)
{
    static const trial bands[] = {BANDS(200), BANDS(230), BANDS(90)};

    for (int i = 0; i < 3; i++)
        check_all(&bands[i]);
    for (int stages = 1; stages <= 3; stages++)
        without_each(bands, 3, (schedule_params){2, stages, 0, 1, 0, 1});
    without_each(bands, 3, (schedule_params){2, 2, 0, 1, 0, 2});
}
END_TEST

/* Variants whose mask hides blocks: two loops that copy different things, of which the first goes
 * over blocks that are seen in part. (Of a padded batch it has one round at most.) */
#define MASKED(name, n, causal)                                                                    \
    {"kernels/variants/attention_" name ".tw",                                                     \
     "T=bf16,D=32,DV=32,BLOCK_M=32,BLOCK_N=16,CAUSAL=" causal,                                     \
     6,                                                                                            \
     {{"q", DT_BF16, 4, {1, 1, 32, 32}, NULL},                                                     \
      {"k", DT_BF16, 4, {1, 1, n, 32}, NULL},                                                      \
      {"v", DT_BF16, 4, {1, 1, n, 32}, NULL},                                                      \
      {"o", DT_BF16, 4, {1, 1, 32, 32}, NULL},                                                     \
      {"lse", DT_F32, 3, {1, 1, 32}, NULL},                                                        \
      {"document", DT_I32, 2, {1, n}, NULL}},                                                      \
     0,                                                                                            \
     16}
#define MASKED_SHAPES(name, causal)                                                                \
    {                                                                                              \
        MASKED(name, 155, causal), MASKED(name, 171, causal), MASKED(name, 187, causal),           \
            MASKED(name, 251, causal)                                                              \
    }

static const trial masked[][4] = {MASKED_SHAPES("window", "false"), MASKED_SHAPES("window", "true"),
                                  MASKED_SHAPES("document", "true")};
static const schedule_params of_masked[] = {
    {2, 1, 0, 1, 0, 1}, {2, 2, 0, 1, 0, 1}, {2, 3, 0, 1, 0, 1},
    {2, 3, 1, 1, 0, 1}, {2, 2, 2, 1, 0, 1}};
enum { OF_MASKED = sizeof of_masked / sizeof *of_masked };

START_TEST(no_wait_and_no_barrier_too_many_under_a_mask)
{
    without_each(masked[_i / OF_MASKED], 4, of_masked[_i % OF_MASKED]);
}
END_TEST

START_TEST(no_barrier_too_many_elsewhere)
{
    without_each(&trials[_i], 1, (schedule_params){4, 2, 0, 1, 0, 1});
}
END_TEST

static void setup(void)
{
    ir_fixture_setup();
    schedule_setup();
}

static void teardown(void)
{
    arena_release(&ir_arena);
    schedule_teardown(); /* asserts that nothing is left */
}

Suite *test_suite(void)
{
    Suite *s = suite_create("schedule_run");
    TCase *c = tcase_create("kernels");

    tcase_set_timeout(c, 300);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, gradients);
    tcase_add_loop_test(c, no_wait_and_no_barrier_too_many, 0,
                        9 * (int)(sizeof attention / sizeof *attention) / SPARSE);
    tcase_add_loop_test(c, no_wait_and_no_barrier_too_many_in_stages, 0, 4);
    tcase_add_loop_test(c, no_wait_and_no_barrier_too_many_under_a_mask, 0,
                        sizeof masked / sizeof *masked * OF_MASKED);
    tcase_add_test(c, copies_under_a_condition);
    tcase_add_loop_test(c, no_barrier_too_many_elsewhere, 0,
                        (int)(sizeof trials / sizeof *trials));
    tcase_add_loop_test(c, attention_schedules, 0, 8);
    tcase_add_loop_test(c, other_schedules, 0, (int)(sizeof trials / sizeof *trials));
    suite_add_tcase(s, c);
    return s;
}
