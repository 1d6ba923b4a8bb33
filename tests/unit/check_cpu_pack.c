/* Which operands of dots are packed once a launch, and what the step that does it must be. Numbers:
 * check_cpu_tiles.c. */
#include "compiler/base/guard.h"
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/irtext.h"
#include "compiler/target/cpu/cpu_pack.h"
#include "tests/support/schedule_fixture.h"
#include <check.h>
#include <string.h>

static void setup(void)
{
    schedule_setup();
    schedule_path = "cpu-amx";
}

typedef struct packed {
    ir_module *m;
    cpu_packs packs;
    bool sound; /* what the verifier says of the kernel and of each step */
} packed;

static tw_status pack(void *arg)
{
    packed *p = arg;

    cpu_pack_operands(p->m, &p->packs);
    p->sound = ir_verify(p->m, &schedule_diags);
    for (uint32_t i = 0; i < p->packs.n; i++)
        p->sound = ir_verify(p->packs.at[i].module, &schedule_diags) && p->sound;
    return TW_OK;
}

static packed pack_module(ir_module *m)
{
    packed p = {.m = m};

    ck_assert_int_eq(guard_run(pack, &p), TW_OK);
    ck_assert(p.sound);
    return p;
}

/* ---- decisions ------------------------------------------------------------------------------- */

/* The body of a kernel with a: bf16[M, K], b: bf16[K, N], bt: bf16[N, K], at: bf16[K, M],
 * e: f32[K, N], out c: f32[M, N], inout d: bf16[K, N]; m0 and n0 are multiples of 32. */
typedef struct decision {
    const char *loop, *x, *y; /* s = dot(x, y, s) for k in that range */
    uint32_t packs;
} decision;
static const decision decisions[] = {
    {"range(0, K, 32)", "load(a[m0 :+ 32, k :+ 32])", "load(b[k :+ 32, n0 :+ 32])", 1},
    /* against the order on both sides; along it */
    {"range(0, K, 32)", "trans(load(at[k :+ 32, m0 :+ 32]))", "load(b[k :+ 32, n0 :+ 32])", 2},
    {"range(0, K, 32)", "load(a[m0 :+ 32, k :+ 32])", "trans(load(bt[n0 :+ 32, k :+ 32]))", 0},
    /* the same blocks twice are one workspace, others are another */
    {"range(0, K, 32)", "trans(load(b[k :+ 32, n0 :+ 32]))", "load(b[k :+ 32, n0 :+ 32])", 1},
    {"range(0, K, 32)", "trans(load(b[k :+ 32, n0 :+ 16]))", "load(b[k :+ 32, n0 :+ 32])", 2},
    /* no multiples of a block's extents */
    {"range(0, K, 32)", "load(a[m0 :+ 32, k :+ 32])", "load(b[k + 1 :+ 32, n0 :+ 32])", 0},
    {"range(16, K, 32)", "load(a[m0 :+ 32, k :+ 32])", "load(b[k :+ 32, n0 :+ 32])", 0},
    {"range(0, K, 16)", "load(a[m0 :+ 32, k :+ 32])", "load(b[k :+ 32, n0 :+ 32])", 0},
    {"range(32, K, 64)", "load(a[m0 :+ 32, k :+ 32])", "load(b[k :+ 32, n0 + 64 :+ 32])", 1},
    /* rows that a tile gives; a tensor that changes; a value that is more than a load */
    {"range(0, K, 32)", "load(a[m0 :+ 32, k :+ 32])", "load(b[k + 2 * arange(32), n0 :+ 32])", 0},
    {"range(0, K, 32)", "load(a[m0 :+ 32, k :+ 32])", "load(d[k :+ 32, n0 :+ 32])", 0},
    {"range(0, K, 32)", "load(a[m0 :+ 32, k :+ 32])", "-load(b[k :+ 32, n0 :+ 32])", 0},
    {"range(0, K, 32)", "cast(load(a[m0 :+ 32, k :+ 32]), f32)", "load(e[k :+ 32, n0 :+ 32])", 0},
};
enum { DECISIONS = sizeof decisions / sizeof *decisions };

static ir_module *lower_decision(const decision *d)
{
    const char *rows = strstr(d->x, ":+ 16") ? "16" : "32";

    return schedule_lower_text(
        arena_printf(&schedule_memory,
                     "kernel k(a: bf16[M, K], b: bf16[K, N], bt: bf16[N, K], at: bf16[K, M],\n"
                     "    e: f32[K, N], out c: f32[M, N], inout d: bf16[K, N])\n"
                     "grid (cdiv(M, 32), cdiv(N, 32)) {\n"
                     "    let m0 = program_id(0) * 32, n0 = program_id(1) * 32;\n"
                     "    var s = zeros(f32[%s, 32]);\n"
                     "    for k in %s s = dot(%s, %s, s);\n"
                     "    store(c[m0 :+ %s, n0 :+ 32], s);\n"
                     "}\n",
                     rows, d->loop, d->x, d->y, rows),
        "", 0);
}

START_TEST(what_is_packed)
{
    const decision *d = &decisions[_i];
    packed p = pack_module(lower_decision(d));

    ck_assert_msg(p.packs.n == d->packs, "%s, %s, %s: %u packed, not %u", d->loop, d->x, d->y,
                  p.packs.n, d->packs);
}
END_TEST

/* What a program loads once, it turns once. */
START_TEST(not_outside_of_loops)
{
    const char *text = "kernel k(a: bf16[32, 32], b: bf16[32, 32], out c: f32[32, 32]) grid (1) {\n"
                       "    store(c[0 :+ 32, :], dot(load(a[:, :]), load(b[:, :])));\n"
                       "}\n";

    ck_assert_uint_eq(pack_module(schedule_lower_text(text, "", 0)).packs.n, 0);
}
END_TEST

/* ---- V of attention -------------------------------------------------------------------------- */

static int find_param(const ir_fn *fn, const char *name)
{
    for (uint32_t i = 0; i < fn->params.n; i++) {
        if (strcmp(fn->params.at[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

static bool reads_workspace(const ir_fn *fn, const ir_op *op)
{
    if (op->code != OP_LOAD && op->code != OP_STORE)
        return false;
    return fn->params.at[ir_value_of(fn, op->args[0])->index].kind == PARAM_WORKSPACE;
}

/* Does a dot read that load of v? */
static bool reads_v(const ir_fn *fn, const ir_op *op)
{
    return op->code == OP_LOAD && ir_count_uses(fn, op->res) &&
           ir_value_of(fn, op->args[0])->index == (uint32_t)find_param(fn, "v");
}

START_TEST(values_of_attention)
{
    const char *values = "T=bf16,D=128,DV=64,CAUSAL=false,BLOCK_M=64,BLOCK_N=32";
    packed p = pack_module(schedule_lower("kernels/attention_fwd.tw", values, 0));

    ck_assert_uint_eq(p.packs.n, 1);
    const ir_fn *fn = p.m->kernel, *step = p.packs.at[0].module->kernel;
    int v = find_param(fn, "v"), w = find_param(fn, "packed_v_0");
    ck_assert_int_eq(w, (int)fn->params.n - 1);
    ck_assert_int_gt(count_if(fn, fn->body, reads_workspace), 0);
    ck_assert_int_eq(count_if(fn, fn->body, reads_v), 0);
    ck_assert_int_eq(count_if(step, step->body, reads_workspace), 1);
    ck_assert_str_eq(step->name, "attention_fwd.pack0");
    ck_assert_int_eq(find_param(step, "packed_v_0"), w);
    ck_assert_int_eq(fn->params.at[w].align, 64);
    /* blocks of [64, 32] of each batch and head, and one of zeros */
    const recipe_count *n = &p.packs.at[0].programs, *bytes = &p.packs.at[0].bytes;
    static const int32_t per[4] = {1, 1, 32, 64};
    ck_assert_int_eq((int)n->factor, 1);
    ck_assert_int_eq((int)bytes->factor, 64 * 32 * 2);
    ck_assert_int_eq((int)n->more, 1);
    ck_assert_int_eq(n->nterms, 4);
    for (int d = 0; d < 4; d++) {
        ck_assert_int_eq(n->dim[d], fn->params.at[v].dim[d]);
        ck_assert_int_eq(n->per[d], per[d]);
        ck_assert_int_eq(bytes->per[d], per[d]);
    }
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("operands packed once a launch");
    TCase *t = tcase_create("pack");

    tcase_add_checked_fixture(t, setup, schedule_teardown);
    tcase_add_loop_test(t, what_is_packed, 0, DECISIONS);
    tcase_add_test(t, not_outside_of_loops);
    tcase_add_test(t, values_of_attention);
    suite_add_tcase(s, t);
    return s;
}
