/* Dots whose extents the matrix unit does not take: what is padded and what is not, that the
 * padding is never seen, and that schedules of such kernels give, under the interpreter's race
 * detector, what float64 gives. */
#include "compiler/base/error.h"
#include "compiler/ir/iredit.h"
#include "kernels/kernel_refs.h"
#include "tests/support/schedule_fixture.h"
#include "tests/support/schedule_run.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { HEADS = 2, ROWS = 40, COLUMNS = 75 };

static void take(run_tensor *t)
{
    t->data = arena_alloc(&schedule_memory, run_elements(t) * (size_t)dtype_bytes(t->dtype) + 16);
}

static run_tensor input(const char *name, enum dtype t, int rank, const int64_t *extent, int seed)
{
    run_tensor x = {.name = name, .dtype = t, .rank = rank};

    memcpy(x.extent, extent, sizeof *extent * (size_t)rank);
    take(&x);
    run_fill(&x, (uint64_t)seed, 1.0);
    return x;
}

static run_tensor output(const char *name, enum dtype t, int rank, const int64_t *extent)
{
    run_tensor x = input(name, t, rank, extent, 1);

    run_poison(&x);
    return x;
}

static void set(run_tensor *t, size_t i, float v)
{
    ck_assert_int_eq(t->dtype, DT_F32);
    memcpy((char *)t->data + 4 * i, &v, sizeof v);
}

/* Level 2 for sm_80, run; result may be NULL. */
static void run_scheduled(ir_module *m, run_case *c, schedule_params p, schedule_result *result)
{
    interp_fault fault = {0};

    ck_assert_msg(schedule_make(m, 80, p, result) == TW_OK, "%s", error_get()->text);
    tw_status st = run_module(m, c, &fault);
    ck_assert_msg(st == TW_OK, "%s: %s", tw_status_name(st), fault.text);
}

static void same(const run_tensor *got, const double *want, double tolerance)
{
    for (size_t i = 0; i < run_elements(got); i++) {
        double x = run_element(got, i);
        bool is = x == want[i] || (isnan(x) && isnan(want[i])) ||
                  fabs(x - want[i]) <= tolerance * (1 + fabs(want[i]));
        ck_assert_msg(is, "%s[%zu] is %g, not %g", got->name, i, x, want[i]);
    }
}

static int multiplied_exactly(const ir_module *m)
{
    return count_ops(m->kernel->body, OP_DOT);
}

/* ---- attention ------------------------------------------------------------------------------- */

static ref_tensor as_ref(const run_tensor *t)
{
    size_t n = run_elements(t);
    float *at = arena_alloc(&schedule_memory, n * sizeof *at);
    ref_tensor r = {.at = at};
    int64_t stride = 1;

    for (size_t i = 0; i < n; i++)
        at[i] = (float)run_element(t, i);
    for (int d = t->rank - 1; d >= 0; d--) {
        r.extent[d] = t->extent[d];
        r.stride[d] = stride;
        stride *= t->extent[d];
    }
    return r;
}

static const struct {
    const char *type;
    int d, dv, align; /* as dense tensors have it */
    schedule_params p;
} heads[] = {
    {"bf16", 8, 8, 16, {4, 2, 0, 1, 0, 1}},    {"f16", 24, 24, 16, {4, 1, 1, 1, 1, 1}},
    {"bf16", 40, 40, 16, {4, 2, 0, 1, 0, 1}},  {"bf16", 40, 40, 16, {2, 3, 1, 0, 1, 1}},
    {"f16", 40, 64, 16, {4, 2, 2, 1, 0, 2}},   {"bf16", 72, 72, 16, {4, 2, 1, 1, 0, 1}},
    {"bf16", 64, 40, 16, {4, 2, 0, 1, 0, 1}},  {"f16", 88, 88, 16, {8, 1, 0, 1, 0, 1}},
    {"bf16", 100, 100, 8, {4, 2, 0, 1, 0, 1}}, {"bf16", 100, 100, 8, {4, 3, 2, 1, 1, 1}},
    {"bf16", 33, 33, 2, {4, 2, 0, 1, 0, 1}},   {"f16", 17, 90, 2, {4, 2, 1, 1, 0, 1}},
    {"bf16", 10, 12, 4, {2, 2, 0, 1, 0, 1}},   {"f16", 9, 5, 2, {4, 2, 0, 1, 0, 1}},
};

START_TEST(attention_of_any_head)
{
    int64_t d = heads[_i].d, dv = heads[_i].dv;
    enum dtype t = dtype_parse(heads[_i].type);
    bool causal = _i % 2;
    char values[120];
    double *o, *lse;

    snprintf(values, sizeof values, "T=%s,D=%d,DV=%d,CAUSAL=%s,BLOCK_M=32,BLOCK_N=32",
             heads[_i].type, heads[_i].d, heads[_i].dv, causal ? "true" : "false");
    run_case c = {.n = 5, .seed = (uint64_t)_i};
    c.t[0] = input("q", t, 4, (int64_t[]){1, HEADS, ROWS, d}, 1);
    c.t[1] = input("k", t, 4, (int64_t[]){1, 1, COLUMNS, d}, 2);
    c.t[2] = input("v", t, 4, (int64_t[]){1, 1, COLUMNS, dv}, 3);
    c.t[3] = output("o", t, 4, (int64_t[]){1, HEADS, ROWS, dv});
    c.t[4] = output("lse", DT_F32, 3, (int64_t[]){1, HEADS, ROWS});
    ir_module *m = schedule_lower("kernels/attention_fwd.tw", values, heads[_i].align);
    run_scheduled(m, &c, heads[_i].p, NULL);
    if (dv >= 8)
        ck_assert_int_eq(multiplied_exactly(m), 0);
    o = arena_alloc(&schedule_memory, sizeof *o * run_elements(&c.t[3]));
    lse = arena_alloc(&schedule_memory, sizeof *lse * run_elements(&c.t[4]));
    attention_fwd_ref(&(attention_problem){.q = as_ref(&c.t[0]),
                                           .k = as_ref(&c.t[1]),
                                           .v = as_ref(&c.t[2]),
                                           .scale = 1 / sqrt((double)d),
                                           .causal = causal,
                                           .offset = COLUMNS - ROWS},
                      o, lse);
    same(&c.t[3], o, 0x1p-7);
    same(&c.t[4], lse, 1e-5);
}
END_TEST

/* The gradients, from their text book: a sum over rows (dk, dv) or columns (dq) at a time. */
typedef struct gradients {
    run_case *c;
    int64_t d;
    double *dq, *dk, *dv;
} gradients;

static double element(const gradients *g, int tensor, int64_t row, int64_t i)
{
    return run_element(&g->c->t[tensor], (size_t)(row * g->d + i));
}

static double product(const gradients *g, int x, int64_t row, int y, int64_t column)
{
    double sum = 0;

    for (int64_t i = 0; i < g->d; i++)
        sum += element(g, x, row, i) * element(g, y, column, i);
    return sum;
}

static void add_gradients(gradients *g, int64_t row, int64_t column)
{
    double lse = run_element(&g->c->t[4], (size_t)row);
    double delta = run_element(&g->c->t[5], (size_t)row);
    double p = exp2(product(g, 0, row, 1, column) * 0.125 - lse * 1.4426950408889634);
    double ds = p * (product(g, 3, row, 2, column) - delta);

    for (int64_t i = 0; i < g->d; i++) {
        g->dq[row * g->d + i] += ds * element(g, 1, column, i);
        g->dk[column * g->d + i] += ds * element(g, 0, row, i);
        g->dv[column * g->d + i] += p * element(g, 3, row, i);
    }
}

START_TEST(gradients_of_any_head)
{
    static const int dims[] = {40, 72, 100, 33}, aligns[] = {16, 16, 8, 2};
    int64_t d = dims[_i], q[] = {1, 1, ROWS, d}, k[] = {1, 1, COLUMNS, d};
    char values[80];
    run_case c = {.n = 9};

    snprintf(values, sizeof values, "T=bf16,D=%d,BLOCK_M=32,BLOCK_N=64", dims[_i]);
    c.t[0] = input("q", DT_BF16, 4, q, 1);
    c.t[1] = input("k", DT_BF16, 4, k, 2);
    c.t[2] = input("v", DT_BF16, 4, k, 3);
    c.t[3] = input("g", DT_BF16, 4, q, 4);
    c.t[4] = input("lse", DT_F32, 3, q, 5);
    c.t[5] = input("delta", DT_F32, 3, q, 6);
    for (size_t i = 0; i < ROWS; i++)
        set(&c.t[4], i, 4.0f);
    c.t[6] = input("dq", DT_F32, 4, q, 7);
    memset(c.t[6].data, 0, run_elements(&c.t[6]) * sizeof(float));
    c.t[7] = output("dk", DT_BF16, 4, k);
    c.t[8] = output("dv", DT_BF16, 4, k);
    ir_module *m = schedule_lower("tests/data/attention_gradients.tw", values, aligns[_i]);
    run_scheduled(m, &c, (schedule_params){4, 2, _i % 2, 1, 0, 1}, NULL);
    ck_assert_int_eq(multiplied_exactly(m), 0);
    gradients g = {.c = &c, .d = d};
    g.dq = arena_alloc(&schedule_memory, sizeof(double) * (size_t)(ROWS * d));
    g.dk = arena_alloc(&schedule_memory, sizeof(double) * (size_t)(COLUMNS * d));
    g.dv = arena_alloc(&schedule_memory, sizeof(double) * (size_t)(COLUMNS * d));
    for (int64_t row = 0; row < ROWS; row++)
        for (int64_t column = 0; column < COLUMNS; column++)
            add_gradients(&g, row, column);
    same(&c.t[6], g.dq, 0x1p-5);
    same(&c.t[7], g.dk, 0x1p-5);
    same(&c.t[8], g.dv, 0x1p-5);
}
END_TEST

/* ---- the padding is not seen ----------------------------------------------------------------- */

/* Columns 20 to 31 are padding. `by` makes them inf or NaN unless something is done: 0 * by. */
static const char seen[] =
    "kernel seen(x: bf16[M, 20], w: bf16[20, 24], by: f32[1], out y: f32[M, 24], out top: f32[M],\n"
    "    out low: f32[M], out total: f32[M], out run: f32[M, 20], inout more: f32[M, 20])\n"
    "grid (cdiv(M, 16))\n"
    "{\n"
    "    let m0 = program_id(0) * 16, f = load(by[0]);\n"
    "    let t = cast(load(x[m0 :+ 16, :]), f32) * f;\n"
    "    let tw = load(w[:, :]);\n"
    "    store(y[m0 :+ 16, :], dot(cast(t, bf16), tw));\n"
    "    store(top[m0 :+ 16], max(t - 9.0, 1));\n"
    "    store(low[m0 :+ 16], min(t + 9.0, 1));\n"
    "    store(total[m0 :+ 16], sum(exp2(t), 1));\n"
    "    store(run[m0 :+ 16, :], cumsum(t + 1.0, 1));\n"
    "    atomic_add(more[m0 :+ 16, :], t + 1.0);\n"
    "}\n";

static void run_seen(run_case *c, float by, bool scheduled)
{
    static const int64_t x[] = {ROWS, 20}, w[] = {20, 24}, y[] = {ROWS, 24}, one[] = {1};
    ir_module *m = schedule_lower_text(seen, "", 4);

    *c = (run_case){.n = 9};
    c->t[0] = input("x", DT_BF16, 2, x, 1);
    c->t[1] = input("w", DT_BF16, 2, w, 2);
    c->t[2] = input("by", DT_F32, 1, one, 3);
    set(&c->t[2], 0, by);
    c->t[3] = output("y", DT_F32, 2, y);
    c->t[4] = output("top", DT_F32, 1, x);
    c->t[5] = output("low", DT_F32, 1, x);
    c->t[6] = output("total", DT_F32, 1, x);
    c->t[7] = output("run", DT_F32, 2, x);
    c->t[8] = input("more", DT_F32, 2, x, 4);
    if (scheduled) {
        run_scheduled(m, c, schedule_defaults(), NULL);
        ck_assert_int_eq(multiplied_exactly(m), 0);
    } else {
        ck_assert_int_eq(run_module(m, c, NULL), TW_OK);
    }
}

START_TEST(padding_is_not_seen)
{
    static const float by[] = {1.0f, -0.5f, INFINITY, -INFINITY, NAN};
    run_case want, got;

    run_seen(&want, by[_i], false);
    run_seen(&got, by[_i], true);
    for (int k = 3; k < want.n; k++) {
        double *x = arena_alloc(&schedule_memory, sizeof *x * run_elements(&want.t[k]));
        for (size_t i = 0; i < run_elements(&want.t[k]); i++)
            x[i] = run_element(&want.t[k], i);
        same(&got.t[k], x, 1e-5);
    }
}
END_TEST

/* What is inf or NaN in a visible column stays in it. */
START_TEST(infinities_stay_where_they_are)
{
    static const int64_t x[] = {16, 40}, y[] = {16, 16}, w[] = {40, 16};
    static const char text[] = "kernel k(x: f16[16, 40], w: f16[40, 16], out y: f32[16, 16])\n"
                               "grid (1) { store(y[:, :], dot(load(x[:, :]), load(w[:, :]))); }\n";
    run_case c = {.n = 3};
    uint16_t inf = 0x7c00;

    c.t[0] = input("x", DT_F16, 2, x, 1);
    c.t[1] = input("w", DT_F16, 2, w, 2);
    c.t[2] = output("y", DT_F32, 2, y);
    memcpy((char *)c.t[0].data + 2 * (3 * 40 + 39), &inf, sizeof inf); /* the last column */
    ir_module *m = schedule_lower_text(text, "", 16);
    run_scheduled(m, &c, schedule_defaults(), NULL);
    ck_assert_int_eq(multiplied_exactly(m), 0);
    for (size_t i = 0; i < 256; i++)
        ck_assert_msg((i / 16 == 3) == !isfinite(run_element(&c.t[2], i)), "%zu", i);
}
END_TEST

/* ---- what grows, and what does not ----------------------------------------------------------- */

static schedule_result result_of(const char *text, const char *values, bool padded)
{
    schedule_result res = {0};
    ir_module *m = schedule_lower_text(text, values, 16);

    ck_assert_msg(schedule_make(m, 80, schedule_defaults(), &res) == TW_OK, "%s",
                  error_get()->text);
    ck_assert_int_eq(multiplied_exactly(m), !padded);
    return res;
}

START_TEST(names_and_extents_are_told)
{
    schedule_result res = {0};
    ir_module *m = schedule_lower("kernels/attention_fwd.tw",
                                  "T=bf16,D=40,DV=64,CAUSAL=true,"
                                  "BLOCK_M=64,BLOCK_N=64",
                                  16);

    ck_assert_int_eq(schedule_make(m, 80, schedule_defaults(), &res), TW_OK);
    ck_assert_uint_eq(res.npadded, 1);
    ck_assert_str_eq(res.padded[0].name, "D");
    ck_assert_int_eq(res.padded[0].from, 40);
    ck_assert_int_eq(res.padded[0].to, 48);
    ck_assert_ptr_null(res.padded[0].why);
}
END_TEST

static const struct {
    const char *why, *statement;
} stops[] = {
    {"a slice takes a part of a dimension", "t = load(x[:, 0 :+ 40]);"},
    {"a slice takes a part of a dimension", "store(z[:, 8 :+ 40], cast(t, f32));"},
    {"a tile of indices picks elements", "t = load(s[:, arange(40) * 3 % 40]);"},
    {"a function of the text reduces it", "store(r[:], reduce(cast(t, f32), 1, product));"},
    {"reshape counts its elements", "store(f[:], reshape(t, 640));"},
};

START_TEST(what_would_be_seen_is_not_padded)
{
    char text[700];

    snprintf(text, sizeof text,
             "fn product(a, b) { return a * b; }\n"
             "kernel k(s: bf16[16, 40], x: bf16[16, 80], w: bf16[40, 16], out y: f32[16, 16],\n"
             "    out z: f32[16, 80], out r: f32[16], out f: bf16[640])\n"
             "grid (1)\n"
             "{\n"
             "    var t = load(s[:, :]);\n"
             "    %s\n"
             "    store(y[:, :], dot(t, load(w[:, :])));\n"
             "}\n",
             stops[_i].statement);
    schedule_result res = result_of(text, "", false);
    ck_assert_uint_eq(res.npadded, 1);
    ck_assert_int_eq(res.padded[0].from, 40);
    ck_assert_str_eq(res.padded[0].why, stops[_i].why);
    ck_assert(res.padded[0].where.src != NULL);
}
END_TEST

START_TEST(what_would_not_fit_is_not_padded)
{
    static const char text[] = "kernel k[M: int](x: f16[M, 8], w: f16[8, 16], out y: f32[M, 16])\n"
                               "grid (1) { store(y[:, :], dot(load(x[:, :]), load(w[:, :]))); }\n";
    ir_module *m = schedule_lower_text(text, "M=6144", 16);
    schedule_params p = schedule_defaults();
    schedule_result res;

    p.num_warps = 16; /* 6144 x 16 halves are more than 164 KiB, 6144 x 8 are not */
    ck_assert_msg(schedule_make(m, 80, p, &res) == TW_OK, "%s", error_get()->text);
    ck_assert_int_eq(multiplied_exactly(m), 1);
    ck_assert_uint_eq(res.npadded, 1);
    ck_assert_str_eq(res.padded[0].why, "its factors would not fit shared memory");
    m = schedule_lower_text(text, "M=1024", 16);
    ck_assert_int_eq(schedule_make(m, 80, p, &res), TW_OK);
    ck_assert_int_eq(multiplied_exactly(m), 0);
}
END_TEST

/* Of f32 there is no exact product on the matrix unit, and short tiles are left alone. */
START_TEST(others_are_left_alone)
{
    static const char text[] = "kernel k[T: float, D: int](x: T[16, D], w: T[D, 16],\n"
                               "    out y: f32[16, 16])\n"
                               "grid (1) { store(y[:, :], dot(load(x[:, :]), load(w[:, :]))); }\n";

    ck_assert_uint_eq(result_of(text, "T=f32,D=40", false).npadded, 0);
    ck_assert_uint_eq(result_of(text, "T=bf16,D=48", true).npadded, 0);
    schedule_result res = result_of(text, "T=bf16,D=7", false);
    ck_assert_uint_eq(res.npadded, 1);
    ck_assert_str_eq(res.padded[0].why, "it is too short to be worth it");
    ck_assert_uint_eq(result_of(text, "T=bf16,D=8", true).npadded, 1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("pad_dots");
    TCase *c = tcase_create("pad_dots");

    tcase_set_timeout(c, 120);
    tcase_add_checked_fixture(c, schedule_setup, schedule_teardown);
    tcase_add_loop_test(c, attention_of_any_head, 0, sizeof heads / sizeof *heads);
    tcase_add_loop_test(c, gradients_of_any_head, 0, 4);
    tcase_add_loop_test(c, padding_is_not_seen, 0, 5);
    tcase_add_test(c, infinities_stay_where_they_are);
    tcase_add_test(c, names_and_extents_are_told);
    tcase_add_loop_test(c, what_would_be_seen_is_not_padded, 0, sizeof stops / sizeof *stops);
    tcase_add_test(c, what_would_not_fit_is_not_padded);
    tcase_add_test(c, others_are_left_alone);
    suite_add_tcase(s, c);
    return s;
}
