/* What the planner of the CPU decides for kernels whose plan we know. */
#include "compiler/base/guard.h"
#include "compiler/ir/iredit.h"
#include "compiler/target/cpu/cpu_plan.h"
#include "compiler/target/target.h"
#include "tests/support/schedule_fixture.h"
#include <check.h>
#include <string.h>

static const cpu_isa wide = {.name = "test", .lanes = 16, .mr = 4, .nr = 4, .fma = true};

static void setup(void)
{
    schedule_setup();
    schedule_path = "cpu-avx512";
}

static void under_guard(guard_fn fn)
{
    ck_assert_int_eq(guard_run(fn, NULL), TW_OK);
}

/* Steps of a kind in b and its regions. */
static int count_steps(const cpu_block *b, enum cpu_step_kind kind, bool only_in_loops)
{
    int n = 0;

    for (const cpu_step *s = b->first; s; s = s->next) {
        n += s->kind == kind && !(only_in_loops && !b->owner);
        for (int r = 0; r < 2 && s->region[r]; r++)
            n += count_steps(s->region[r], kind, only_in_loops);
    }
    return n;
}

typedef bool (*nest_test)(const cpu_plan *p, const cpu_nest *n);

static int count_nests(const cpu_plan *p, const cpu_block *b, nest_test test)
{
    int n = 0;

    for (const cpu_step *s = b->first; s; s = s->next) {
        n += s->kind == STEP_NEST && test(p, s->nest);
        for (int r = 0; r < 2 && s->region[r]; r++)
            n += count_nests(p, s->region[r], test);
    }
    return n;
}

static bool is_row_dot(const cpu_plan *p, const cpu_nest *n)
{
    (void)p;
    return n->dot && n->lane == 0;
}

static bool is_column_dot(const cpu_plan *p, const cpu_nest *n)
{
    (void)p;
    return n->dot && n->lane == 1;
}

static bool is_horizontal(const cpu_plan *p, const cpu_nest *n)
{
    (void)p;
    return n->horizontal;
}

static bool turns(const cpu_plan *p, const cpu_nest *n)
{
    (void)p;
    return n->blocks;
}

/* A dot whose epilogue holds a reduction. */
static bool dot_with_maximum(const cpu_plan *p, const cpu_nest *n)
{
    (void)p;
    return n->dot && n->vertical;
}

static int copies(const cpu_block *b)
{
    int n = 0;

    for (const cpu_step *s = b->first; s; s = s->next) {
        for (int r = 0; r < 2 && s->region[r]; r++) {
            for (uint32_t i = 0; i < s->leave[r].n; i++)
                n++;
            n += copies(s->region[r]);
        }
    }
    return n;
}

static cpu_plan *attention_plan(enum dtype type, const cpu_isa *isa, int block_m, int block_n,
                                int d, bool causal)
{
    const char *values =
        arena_printf(&schedule_memory, "T=%s,D=%d,DV=%d,CAUSAL=%s,BLOCK_M=%d,BLOCK_N=%d",
                     dtype_name(type), d, d, causal ? "true" : "false", block_m, block_n);
    ir_module *m = schedule_lower("kernels/attention_fwd.tw", values, 0);

    return cpu_plan_new(&schedule_memory, m->kernel, isa);
}

static tw_status plan_attention(void *arg)
{
    const cpu_plan *p = attention_plan(DT_F32, &wide, 64, 64, 128, true);

    (void)arg;
    /* lanes are queries in all four dots; nothing is reduced across lanes */
    ck_assert_int_eq(count_nests(p, p->body, is_row_dot), 4);
    ck_assert_int_eq(count_nests(p, p->body, is_horizontal), 0);
    /* Q is turned once, O once; K and V stay where they are */
    ck_assert_int_eq(count_nests(p, p->body, turns), 2);
    ck_assert_int_eq(count_steps(p->body, STEP_DIRECT, true), 4);
    /* the maximum is the epilogue of the first dot of each loop, and no carried tile is copied */
    ck_assert_int_eq(count_nests(p, p->body, dot_with_maximum), 2);
    /* but where a block with hidden columns may be skipped: three values, two ways */
    ck_assert_int_eq(copies(p->body), 6);
    /* five nests an iteration, two loops; Q, 1 / l with lse, O */
    ck_assert_int_eq(count_steps(p->body, STEP_NEST, false), 13);
    /* Q, O, S (with P in its place), K or V when ragged, rows of 64 */
    ck_assert_int_le(p->scratch_bytes, 4 * (2 * 64 * 128 + 64 * 64 + 2 * 64 * 128) + 4096);
    return TW_OK;
}

START_TEST(attention_has_queries_in_its_lanes)
{
    under_guard(plan_attention);
}
END_TEST

static bool stores_pairs(const cpu_plan *p, const cpu_nest *n)
{
    (void)p;
    return n->pairs;
}

static tw_status plan_pairs(void *arg)
{
    cpu_isa isa = wide;

    (void)arg;
    isa.bf16_pairs = true;
    const cpu_plan *p = attention_plan(DT_BF16, &isa, 64, 64, 128, true);
    ck_assert_int_eq(count_nests(p, p->body, is_row_dot), 4);
    ck_assert_int_eq(count_nests(p, p->body, turns), 2);
    /* K stays where it is; Q, and P and V in each loop, are stored in pairs */
    ck_assert_int_eq(count_steps(p->body, STEP_DIRECT, true), 2);
    ck_assert_int_eq(count_nests(p, p->body, stores_pairs), 5);
    ck_assert_int_eq(copies(p->body), 6);
    /* O and S in f32; Q, P, V, and K when ragged in 16 bits; rows of 64 */
    ck_assert_int_le(p->scratch_bytes,
                     4 * (64 * 128 + 64 * 64) + 2 * (64 * 128 + 64 * 64 + 2 * 64 * 128) + 4096);
    return TW_OK;
}

START_TEST(bf16_is_multiplied_in_pairs)
{
    under_guard(plan_pairs);
}
END_TEST

/* Q is turned once, which must not weigh as if each block of keys did it: blocks of many rows and
 * few keys had the keys in their lanes. kind: f32, and bf16 in f32, in pairs, in tiles. */
static void plan_shape(int kind, int d, int m, int n)
{
    cpu_isa isa = wide;

    isa.bf16_pairs = kind == 2;
    isa.tiles = kind == 3 ? CPU_TILES_EMULATED : CPU_TILES_NONE;
    const cpu_plan *p = attention_plan(kind ? DT_BF16 : DT_F32, &isa, m, n, d, false);
    ck_assert_msg(count_nests(p, p->body, is_row_dot) > 0 &&
                      count_nests(p, p->body, is_horizontal) == 0,
                  "kind %d, D %d, %d x %d", kind, d, m, n);
}

static tw_status plan_shapes(void *arg)
{
    static const int d[] = {32, 64, 128, 256}, m[] = {32, 64, 128, 256}, n[] = {32, 64, 128};

    for (int i = 0; i < 4 * 4 * 3; i++)
        plan_shape(*(const int *)arg, d[i / 12], m[i / 3 % 4], n[i % 3]);
    return TW_OK;
}

START_TEST(keys_lie_in_no_lanes)
{
    ck_assert_int_eq(guard_run(plan_shapes, &(int){_i}), TW_OK);
}
END_TEST

static tw_status plan_product(void *arg)
{
    ir_module *m = schedule_lower("kernels/matmul.tw", "T=f32,BLOCK_M=64,BLOCK_N=64,BLOCK_K=32", 0);
    const cpu_plan *p = cpu_plan_new(&schedule_memory, m->kernel, &wide);

    (void)arg;
    ck_assert_int_eq(count_nests(p, p->body, is_column_dot), 1);
    ck_assert_int_eq(count_nests(p, p->body, turns), 0);
    ck_assert_int_eq(count_steps(p->body, STEP_DIRECT, true), 1); /* the rows of a */
    ck_assert_int_eq(copies(p->body), 0);
    return TW_OK;
}

START_TEST(a_product_has_columns_in_its_lanes)
{
    under_guard(plan_product);
}
END_TEST

static tw_status plan_swap(void *arg)
{
    static const char text[] = "kernel k(x: f32[N], y: f32[N], out z: f32[N], n: i32)\n"
                               "grid (1)\n"
                               "{\n"
                               "    var a = load(x[0 :+ 64]), b = load(y[0 :+ 64]);\n"
                               "    for i in range(0, n) { let c = a; a = b; b = c; }\n"
                               "    store(z[0 :+ 64], a - b);\n"
                               "}\n";
    ir_module *m = schedule_lower_text(text, "", 0);
    const cpu_plan *p = cpu_plan_new(&schedule_memory, m->kernel, &wide);

    (void)arg;
    /* both are read before either is written */
    ck_assert_int_eq(count_steps(p->body, STEP_NEST, true), 1);
    ck_assert_int_eq(copies(p->body), 0);
    return TW_OK;
}

START_TEST(a_swap_is_one_nest_in_place)
{
    under_guard(plan_swap);
}
END_TEST

/* x = x + x * 0.5 - abs(x), n times over. */
static const char *shared_text(int n)
{
    strbuf b;

    sb_init(&b, &schedule_memory);
    sb_str(&b, "kernel k(x: f32[N], out z: f32[N])\ngrid (1)\n{\n    var a = load(x[0 :+ 64]);\n");
    for (int i = 0; i < n; i++)
        sb_str(&b, "    a = a + a * 0.5 - abs(a);\n");
    sb_str(&b, "    store(z[0 :+ 64], a);\n}\n");
    return b.s;
}

static tw_status plan_shared(void *arg)
{
    ir_module *m = schedule_lower_text(shared_text(400), "", 0);
    target_input in = {.module = m, .diags = &schedule_diags};
    const target *t = target_find("cpu");
    artifact *art;

    (void)arg;
    ck_assert_int_eq(t->compile(t, &in, &schedule_memory, &art), TW_OK);
    ck_assert_uint_lt(art->code_bytes, 400 * 400);
    return TW_OK;
}

START_TEST(parts_shared_at_every_level_cost_once)
{
    under_guard(plan_shared);
}
END_TEST

static tw_status plan_too_large(void *arg)
{
    /* each tile is alive to the end: 80 of 4 MiB */
    strbuf b;
    artifact *art;

    (void)arg;
    sb_init(&b, &schedule_memory);
    sb_str(&b, "kernel k(x: f32[N, M], out z: f32[N, M])\ngrid (1)\n{\n");
    for (int i = 0; i < 80; i++)
        sb_fmt(&b, "    let t%d = exp2(load(x[%d :+ 1024, 0 :+ 1024]));\n", i, i);
    for (int i = 0; i < 80; i++)
        sb_fmt(&b, "    store(z[%d :+ 1024, 0 :+ 1024], t%d);\n", i, i);
    for (int i = 0; i < 80; i++)
        sb_fmt(&b, "    store(z[%d :+ 1024, 1 :+ 1024], t%d);\n", i, i);
    sb_str(&b, "}\n");
    ir_module *m = schedule_lower_text(b.s, "", 0);
    target_input in = {.module = m, .diags = &schedule_diags};
    const target *t = target_find("cpu");
    ck_assert_int_eq(t->compile(t, &in, &schedule_memory, &art), TW_E_LIMIT);
    ck_assert_uint_eq(schedule_diags.errors, 1);
    ck_assert_int_eq(schedule_diags.all.at[0]->id, DIAG_LIMIT);
    ck_assert_ptr_nonnull(schedule_diags.all.at[0]->where.src);
    ck_assert_ptr_nonnull(schedule_diags.all.at[0]->hint);
    return TW_OK;
}

START_TEST(tiles_beyond_the_limit_are_refused)
{
    under_guard(plan_too_large);
}
END_TEST

/* ---- what is asked for ahead ----------------------------------------------------------------- */

/* A product with something added: t, against its order, and u, along it, move with the loop; w does
 * not. */
static const char ahead_text[] =
    "kernel k(x: f32[M, 64], y: f32[N, 64], t: f32[M, N], u: f32[N, M], w: f32[M, 64],\n"
    "         out z: f32[M, 64])\n"
    "grid (cdiv(M, 64))\n"
    "{\n"
    "    let m0 = program_id(0) * 64, q = load(x[m0 :+ 64, :]);\n"
    "    var acc = zeros(f32[64, 64]);\n"
    "    for n0 in range(0, N, 64) {\n"
    "        let s = dot(q, trans(load(y[n0 :+ 64, :])));\n"
    "        let a = s + load(t[m0 :+ 64, n0 :+ 64]) + trans(load(u[n0 :+ 64, m0 :+ 64]));\n"
    "        acc = dot(exp2(a + load(w[m0 :+ 64, :])), load(y[n0 :+ 64, :]), acc);\n"
    "    }\n"
    "    store(z[m0 :+ 64, :], acc);\n"
    "}\n";

/* How often b and its regions ask for something: always for t, 64 columns on. */
static int count_ahead(const cpu_plan *p, const cpu_block *b)
{
    int n = 0;

    for (const cpu_step *s = b->first; s; s = s->next) {
        for (uint32_t i = 0; s->kind == STEP_NEST && i < s->nest->ahead.n; i++, n++) {
            const cpu_ahead *a = &s->nest->ahead.at[i];
            ck_assert_str_eq(p->fn->params.at[cpu_view_param(p, a->load->args[0])].name, "t");
            ck_assert_int_eq(a->lane, 0);
            ck_assert_int_eq(a->by[0], 0);
            ck_assert_int_eq(a->by[1], 64);
        }
        for (int r = 0; r < 2 && s->region[r]; r++)
            n += count_ahead(p, s->region[r]);
    }
    return n;
}

static tw_status plan_ahead(void *arg)
{
    ir_module *m = schedule_lower_text(ahead_text, "", 16);
    const cpu_plan *p = cpu_plan_new(&schedule_memory, m->kernel, &wide);

    (void)arg;
    ck_assert_int_eq(count_ahead(p, p->body), 1);
    p = attention_plan(DT_F32, &wide, 64, 64, 128, true);
    ck_assert_int_eq(count_ahead(p, p->body), 0);
    return TW_OK;
}

START_TEST(a_block_against_its_order_is_asked_for_ahead)
{
    under_guard(plan_ahead);
}
END_TEST

static int count_text(const char *text, const char *what)
{
    int n = 0;

    while ((text = strstr(text, what)) != NULL) {
        text += strlen(what);
        n++;
    }
    return n;
}

/* 16 steps of a nest share 64 rows of 4 lines: each asks for 16; so in the loop over whole blocks
 * and in the one over what is left. */
static tw_status emit_ahead(void *arg)
{
    const target *t = target_find("cpu-avx512");
    target_input in = {.module = schedule_lower_text(ahead_text, "", 16), .diags = &schedule_diags};
    const char *ll;
    size_t size;

    (void)arg;
    if (!t)
        return TW_OK; /* another architecture */
    ck_assert_int_eq(t->emit(t, &in, "ll", &schedule_memory, &ll, &size), TW_OK);
    ck_assert_int_eq(count_text(ll, "call void @llvm.prefetch"), 2 * 16);
    return TW_OK;
}

START_TEST(each_line_is_asked_for_once)
{
    under_guard(emit_ahead);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("plans of the CPU");
    TCase *t = tcase_create("plans");

    tcase_add_checked_fixture(t, setup, schedule_teardown);
    tcase_add_test(t, attention_has_queries_in_its_lanes);
    tcase_add_test(t, bf16_is_multiplied_in_pairs);
    tcase_add_loop_test(t, keys_lie_in_no_lanes, 0, 4);
    tcase_add_test(t, a_product_has_columns_in_its_lanes);
    tcase_add_test(t, a_swap_is_one_nest_in_place);
    tcase_add_test(t, parts_shared_at_every_level_cost_once);
    tcase_add_test(t, tiles_beyond_the_limit_are_refused);
    tcase_add_test(t, a_block_against_its_order_is_asked_for_ahead);
    tcase_add_test(t, each_line_is_asked_for_once);
    suite_add_tcase(s, t);
    return s;
}
