/* Schedules of real kernels, run: they give what level 1 gives, and each wait, barrier and fence in
 * them is needed. */
#include "compiler/base/error.h"
#include "compiler/ir/element.h"
#include "tests/support/ir_fixture.h"
#include "tests/support/schedule_fixture.h"
#include "tests/support/sched_rig.h"
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct run_case {
    const char *path, *values;
    const char *sizes; /* "M=70 N=100 ...": dimensions and scalars */
    int64_t grid[3];
    int stages, warps;
    bool in_registers, lazy;
    int least; /* so many waits and barriers there are to weaken */
    int spare; /* ways to weaken it that are known to do no harm */
} run_case;

static double size_of(const run_case *c, const char *name)
{
    const char *key = arena_printf(&ir_arena, " %s=", name);
    const char *at = strstr(arena_printf(&ir_arena, " %s ", c->sizes), key);

    ck_assert_msg(at != NULL, "%s says no %s", c->sizes, name);
    return strtod(at + strlen(key), NULL);
}

static uint64_t state;

static double next_random(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(int32_t)(state >> 32) * 0x1p-31;
}

static int64_t bind_tensor(sched_rig *r, const run_case *c, int p, bool poison, void **base)
{
    const ir_param *q = &r->m->kernel->params.at[p];
    int64_t extent[VIEW_MAX_RANK], n = 1;

    for (int d = 0; d < q->type.rank; d++) {
        const ir_dim *dim = &r->m->kernel->dims.at[q->dim[d]];
        extent[d] = dim->is_const ? dim->value : (int64_t)size_of(c, dim->name);
        n *= extent[d];
    }
    int64_t bytes = n * dtype_bytes((enum dtype)q->type.dtype);
    *base = arena_alloc(&ir_arena, (size_t)bytes);
    memset(*base, 0xff, (size_t)bytes);
    for (int64_t i = 0; i < n && !poison; i++)
        element_write((enum dtype)q->type.dtype,
                      (char *)*base + i * dtype_bytes((enum dtype)q->type.dtype),
                      (ir_scalar){.f = next_random()});
    sched_bind(r, p, *base, extent);
    return n;
}

typedef struct outputs {
    void *base[8];
    int64_t n[8];
} outputs;

static void bind_all(sched_rig *r, const run_case *c, outputs *out)
{
    const ir_fn *fn = r->m->kernel;

    state = 7;
    memcpy(r->launch.grid, c->grid, sizeof c->grid);
    for (int p = 0; p < (int)fn->params.n; p++) {
        const ir_param *q = &fn->params.at[p];
        void *base;
        if (q->kind == PARAM_TENSOR) {
            bool poison = q->direction != DIR_IN;
            int64_t n = bind_tensor(r, c, p, poison, &base);
            ck_assert_int_lt(p, 8);
            out->base[p] = poison ? base : NULL;
            out->n[p] = n;
        } else if (q->kind == PARAM_DIM) {
            r->arg[p].scalar.i = (int64_t)size_of(c, fn->dims.at[q->symbol].name);
        } else if (dtype_is_float((enum dtype)q->type.dtype)) {
            r->arg[p].scalar.f = (float)size_of(c, q->name);
        } else {
            r->arg[p].scalar.i = (int64_t)size_of(c, q->name);
        }
    }
}

static void compare(const ir_fn *fn, const run_case *c, const outputs *x, const outputs *y)
{
    for (int p = 0; p < 8 && p < (int)fn->params.n; p++) {
        enum dtype t = (enum dtype)fn->params.at[p].type.dtype;
        for (int64_t i = 0; x->base[p] && i < x->n[p]; i++) {
            double u = element_read(t, (char *)x->base[p] + i * dtype_bytes(t)).f;
            double v = element_read(t, (char *)y->base[p] + i * dtype_bytes(t)).f;
            double allowed = dtype_bits(t) == 16 ? 0x1p-6 : 0x1p-8; /* P is rounded to 16 bits */
            if (!(fabs(u - v) <= allowed * (1 + fabs(u))) && u != v)
                ck_abort_msg("%s %s, output %d, element %d: %g, not %g", c->path, c->values, p,
                             (int)i, v, u);
        }
    }
}

static ir_module *level_2(const run_case *c)
{
    schedule_params params = schedule_defaults();
    ir_module *m = schedule_lower(c->path, c->values, 16);

    params.num_stages = c->stages;
    params.num_warps = c->warps;
    params.operand_registers = c->in_registers;
    params.lazy_rescale = c->lazy;
    ck_assert_msg(schedule_make(m, 80, params, NULL) == TW_OK, "%s: %s", c->values,
                  error_get()->text);
    return m;
}

static void check_case(const run_case *c, sched_rig *r)
{
    sched_rig flat;
    outputs want = {0}, got = {0};

    sched_open_module(&flat, schedule_lower(c->path, c->values, 16));
    bind_all(&flat, c, &want);
    ck_assert_int_eq(sched_run(&flat, flat.m, 0), TW_OK);
    sched_open_module(r, level_2(c));
    bind_all(r, c, &got);
    tw_status st = sched_run(r, r->m, 1);
    ck_assert_msg(st == TW_OK, "%s %s, %d stages: %s", c->path, c->values, c->stages,
                  r->fault.text);
    compare(flat.m->kernel, c, &want, &got);
}

#define ATTENTION "kernels/attention_fwd.tw"
#define SIZES "B=1 H=1 HK=1 M=150 N=330 scale=0.125 offset=180"
static const run_case cases[] = {
    {"kernels/vector_add.tw", "T=f32,BLOCK=256", "N=1000", {4, 1, 1}, .stages = 1, .warps = 4},
    {"kernels/softmax.tw",
     "T=bf16,BLOCK_M=16,BLOCK_N=128",
     "M=30 N=300",
     {2, 1, 1},
     .stages = 2,
     .warps = 4},
    {"kernels/matmul.tw",
     "T=bf16,BLOCK_M=64,BLOCK_N=64,BLOCK_K=32",
     "M=70 N=80 K=200",
     {2, 2, 1},
     .stages = 2,
     .warps = 4,
     .least = 3},
    {"kernels/matmul.tw",
     "T=f32,BLOCK_M=32,BLOCK_N=32,BLOCK_K=32",
     "M=40 N=40 K=160",
     {2, 2, 1},
     .stages = 2,
     .warps = 4,
     .least = 3},
    {ATTENTION,
     "T=bf16,D=64,DV=64,CAUSAL=true,BLOCK_M=64,BLOCK_N=32",
     SIZES,
     {3, 1, 1},
     .stages = 2,
     .warps = 4,
     .lazy = true,
     .least = 3},
    {ATTENTION,
     "T=bf16,D=64,DV=64,CAUSAL=false,BLOCK_M=64,BLOCK_N=64",
     SIZES,
     {3, 1, 1},
     .stages = 1,
     .warps = 4,
     .least = 3,
     .spare = 3},
    {ATTENTION,
     "T=bf16,D=64,DV=64,CAUSAL=false,BLOCK_M=64,BLOCK_N=32",
     SIZES,
     {3, 1, 1},
     .stages = 3,
     .warps = 4,
     .in_registers = true,
     .lazy = true,
     .least = 3},
};

START_TEST(schedules_give_what_level_1_gives)
{
    sched_rig r;

    check_case(&cases[_i], &r);
}
END_TEST

START_TEST(every_wait_and_barrier_is_needed)
{
    const char *missed;
    sched_rig r;
    int lines = 0;

    check_case(&cases[_i], &r);
    r.launch.grid[1] = r.launch.grid[2] = 1;
    ck_assert_int_ge(sched_mutate(&r, &missed), cases[_i].least);
    for (const char *at = missed; *at; at++)
        lines += *at == '\n';
    ck_assert_msg(lines <= cases[_i].spare, "%s %s:\n%s", cases[_i].path, cases[_i].values, missed);
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
    Suite *s = suite_create("schedule_runs");
    TCase *tc = tcase_create("schedule_runs");
    int n = sizeof cases / sizeof *cases;

    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, schedules_give_what_level_1_gives, 0, n);
    tcase_add_loop_test(tc, every_wait_and_barrier_is_needed, 0, n);
    suite_add_tcase(s, tc);
    return s;
}
