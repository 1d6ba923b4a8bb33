/* Dots in tiles: their numbers with emulated tiles, on any machine, against the interpreter; and
 * what LLVM makes of the real ones. */
#include "compiler/base/guard.h"
#include "compiler/target/cpu/cpu_isa.h"
#include "compiler/target/target.h"
#include "tests/support/cpu_rig.h"
#include "tests/support/patience.h"
#include "tests/support/schedule_fixture.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
static void setup(void)
{
    schedule_setup();
    schedule_path = "cpu-amx";
}

/* ---- numbers --------------------------------------------------------------------------------- */

typedef struct extent {
    const char *name;
    int64_t n;
} extent;

enum { MOST_PARAMS = 24 };

/* A launch of m, twice: what the interpreter is to write, and the machine code. */
typedef struct pair {
    const ir_module *m;
    size_t bytes[MOST_PARAMS];
    interp_arg want[MOST_PARAMS], got[MOST_PARAMS];
} pair;

static int64_t extent_of(const ir_fn *fn, int dim, const extent *e)
{
    if (fn->dims.at[dim].is_const)
        return fn->dims.at[dim].value;
    while (strcmp(e->name, fn->dims.at[dim].name) != 0)
        e++;
    return e->n;
}

static uint64_t random_state;
static double scale; /* what parameters of floats get */

/* Whole numbers of -3 .. 3, or normal-like fractions in sixteenths. */
static double random_number(bool whole)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    int v = (int)(random_state >> 33) % 7 - 3;
    int w = (int)(random_state >> 40) % 33 - 16;

    return whole ? v : v * 0.5 + w / 16.0;
}

static void put_element(enum dtype t, char *at, double x)
{
    float f = (float)x;
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    if (t == DT_F32) {
        memcpy(at, &f, sizeof f);
    } else {
        uint16_t half = (uint16_t)(u >> 16);
        memcpy(at, &half, sizeof half);
    }
}

static double get_element(enum dtype t, const char *at)
{
    uint16_t half;
    uint32_t u;
    float f;

    memcpy(&half, at, sizeof half);
    u = (uint32_t)half << 16;
    memcpy(&f, t == DT_F32 ? (const void *)at : (const void *)&u, sizeof f);
    return (double)f;
}

/* Tensors lie between pages that fault, and outputs hold garbage. */
static void make_tensor(pair *p, uint32_t i, const extent *e, bool whole)
{
    const ir_param *param = &p->m->kernel->params.at[i];
    enum dtype t = (enum dtype)param->type.dtype;
    size_t element = (size_t)dtype_bytes(t);
    int64_t n = 1;
    interp_view v = {0};

    for (int d = param->type.rank - 1; d >= 0; d--) {
        v.extent[d] = extent_of(p->m->kernel, param->dim[d], e);
        v.stride[d] = n;
        n *= v.extent[d];
    }
    p->bytes[i] = (size_t)n * element;
    p->want[i].view = p->got[i].view = v;
    p->want[i].view.base = cpu_rig_alloc(p->bytes[i], false);
    p->got[i].view.base = cpu_rig_alloc(p->bytes[i], false);
    char *want = p->want[i].view.base, *got = p->got[i].view.base;
    for (int64_t k = 0; k < n; k++)
        put_element(t, want + (size_t)k * element,
                    param->direction == DIR_IN ? random_number(whole) : 77.0);
    memcpy(got, want, p->bytes[i]);
}

static void make_args(pair *p, const extent *e, bool whole)
{
    const ir_fn *fn = p->m->kernel;

    ck_assert_uint_le(fn->params.n, MOST_PARAMS);
    for (uint32_t i = 0; i < fn->params.n; i++) {
        const ir_param *param = &fn->params.at[i];
        if (param->kind == PARAM_TENSOR)
            make_tensor(p, i, e, whole);
        else if (param->kind == PARAM_DIM)
            p->want[i].scalar.i = extent_of(fn, param->symbol, e);
        else if (dtype_is_float((enum dtype)param->type.dtype))
            p->want[i].scalar.f = scale;
        else
            p->want[i].scalar.i = 5; /* attention's offset */
        if (param->kind != PARAM_TENSOR)
            p->got[i] = p->want[i];
    }
}

/* The largest difference, relative to the larger of the element and 1; frees the tensors. */
static double worst(pair *p)
{
    double most = 0.0;

    for (uint32_t i = 0; i < p->m->kernel->params.n; i++) {
        const ir_param *param = &p->m->kernel->params.at[i];
        enum dtype t = (enum dtype)param->type.dtype;
        if (param->kind != PARAM_TENSOR)
            continue;
        for (size_t at = 0; at < p->bytes[i]; at += (size_t)dtype_bytes(t)) {
            double x = get_element(t, (char *)p->got[i].view.base + at);
            double y = get_element(t, (char *)p->want[i].view.base + at);
            double error = fabs(x - y) / fmax(1.0, fabs(y));
            if (x != y && !(error <= most))
                most = isnan(error) ? HUGE_VAL : error;
        }
        cpu_rig_free(p->want[i].view.base, p->bytes[i], false);
        cpu_rig_free(p->got[i].view.base, p->bytes[i], false);
    }
    return most;
}

/* AVX-512 where it is: the same code as AMX's around the tiles, and a fifth of the time. */
static const target *emulation(void)
{
    const target *const *t = cpu_amx_emulated;

    while (*t && !(*t)->usable(*t))
        t++;
    return *t;
}

static double run(const ir_module *m, bool pack, const extent *e, const int64_t grid[3], bool whole)
{
    pair p = {.m = m};
    interp_fault fault = {0};
    int failed = 0;

    random_state = 11;
    make_args(&p, e, whole);
    interp_launch l = {.arg = p.want, .grid = {grid[0], grid[1], grid[2]}};
    ck_assert_int_eq(interp_run(interp_prepare(&schedule_memory, m), &l, 0, INT64_MAX, &fault),
                     TW_OK);
    tw_status st = cpu_rig_run(m, emulation(), pack, p.got, grid, &failed);
    ck_assert_msg(st == TW_OK && failed == 0, "%s: %s", tw_status_name(st), tw_last_error()->text);
    return worst(&p);
}

typedef struct attention {
    int d, dv, block_m, block_n;
    bool causal;
    double scale; /* 0: 0.125 */
} attention;
/* Blocks of 1 x 1, 2 x 1, and a dot that the registers have no room for among them; row maxima that
 * grow by more than the 8 up to which the code keeps the old one, and sums are not scaled. */
static const attention attentions[] = {{64, 34, 40, 64, true, 0.0},  {80, 48, 16, 18, false, 2.0},
                                       {40, 40, 80, 24, true, 0.0},  {72, 72, 24, 80, false, 0.0},
                                       {64, 64, 32, 16, false, 2.0}, {34, 50, 17, 22, true, 0.0}};
/* Blocks of V that are turned in whole registers, and others. */
static const attention packed[] = {
    {64, 34, 40, 64, true, 0.0}, {64, 64, 32, 16, false, 2.0}, {32, 96, 32, 32, true, 0.0}};
enum {
    ATTENTIONS = sizeof attentions / sizeof *attentions,
    PACKED = sizeof packed / sizeof *packed
};

static ir_module *lower_attention(const attention *k)
{
    const char *values =
        arena_printf(&schedule_memory, "T=bf16,D=%d,DV=%d,CAUSAL=%s,BLOCK_M=%d,BLOCK_N=%d", k->d,
                     k->dv, k->causal ? "true" : "false", k->block_m, k->block_n);

    return schedule_lower("kernels/attention_fwd.tw", values, 0);
}

static tw_status run_attention(void *arg)
{
    const attention *k = *(const attention **)arg;
    extent e[] = {{"B", 1}, {"H", 2}, {"HK", 1}, {"M", 75}, {"N", 83}};
    int64_t grid[3] = {(75 + k->block_m - 1) / k->block_m, 2, 1};
    scale = k->scale > 0.0 ? k->scale : 0.125;
    bool pack = k >= packed && k < packed + PACKED;
    double error = run(lower_attention(k), pack, e, grid, false);

    /* o is rounded to bf16 on both sides, and p before it: two units of 2^-8 */
    ck_assert_msg(error <= 0x1p-7, "D %d: %g", k->d, error);
    return TW_OK;
}

START_TEST(attention_in_tiles)
{
    const attention *k = &attentions[_i];

    ck_assert_int_eq(guard_run(run_attention, &k), TW_OK);
}
END_TEST

START_TEST(attention_in_packed_tiles)
{
    const attention *k = &packed[_i];

    ck_assert_int_eq(guard_run(run_attention, &k), TW_OK);
}
END_TEST

/* Operands used along both dimensions, with other uses, and rounded on the way; sums are exact. */
static const char several[] =
    "kernel dots[TM: int, TK: int, TN: int](a: bf16[M, K], b: bf16[K, N], out c: f32[M, N],\n"
    "    out d: f32[K, K], out e: f32[N, N], out f: f32[M, N], out g: bf16[K, N]) grid (1) {\n"
    "    let x = load(a[0 :+ TM, 0 :+ TK]), y = load(b[0 :+ TK, 0 :+ TN]);\n"
    "    let z = cast(cast(x, f32) * 257.0, bf16);\n"
    "    var s = zeros(f32[TM, TN]);\n"
    "    for i in range(0, 3, 1) s = dot(x, y, s);\n"
    "    store(c[0 :+ TM, 0 :+ TN], s);\n"
    "    store(d[0 :+ TK, 0 :+ TK], dot(trans(x), x));\n"
    "    store(e[0 :+ TN, 0 :+ TN], dot(trans(y), y, 1.0));\n"
    "    store(f[0 :+ TM, 0 :+ TN], maximum(dot(z, y), -100.0));\n"
    "    store(g[0 :+ TK, 0 :+ TN], y + y);\n"
    "}\n";

typedef struct sizes {
    int m, k, n, tile_m, tile_k, tile_n;
} sizes;
static const sizes products[] = {{21, 31, 37, 24, 34, 40},
                                 {70, 95, 50, 72, 96, 50},
                                 {3, 2, 1, 4, 2, 2},
                                 {64, 96, 64, 64, 96, 64}};
enum { PRODUCTS = sizeof products / sizeof *products };

typedef struct product {
    const char *text;
    sizes size;
} product;

static tw_status run_product(void *arg)
{
    const product *p = arg;
    const sizes *k = &p->size;
    const char *values =
        arena_printf(&schedule_memory, "TM=%d,TK=%d,TN=%d", k->tile_m, k->tile_k, k->tile_n);
    extent e[] = {{"M", k->m}, {"K", k->k}, {"N", k->n}};
    double error =
        run(schedule_lower_text(p->text, values, 0), false, e, (const int64_t[]){1, 1, 1}, true);

    ck_assert_msg(error == 0.0, "%d x %d x %d: %g", k->m, k->k, k->n, error);
    return TW_OK;
}

START_TEST(operands_in_tiles)
{
    product p = {several, products[_i]};

    ck_assert_int_eq(guard_run(run_product, &p), TW_OK);
}
END_TEST

/* Operands whose rows a tile gives, some of them outside of the tensor. */
static const char gathered[] =
    "kernel dots[TM: int, TK: int, TN: int](a: bf16[M, K], b: bf16[K, N], out c: f32[M, N],\n"
    "    out d: f32[N, N]) grid (1) {\n"
    "    let ids = arange(TK) * 7 % 41 - 2, w = load(b[0 :+ TK, 0 :+ TN]);\n"
    "    let x = load(a[0 :+ TM, 0 :+ TK]), y = load(b[ids, 0 :+ TN]);\n"
    "    let z = load(b[ids + 1, 0 :+ TN]);\n"
    "    store(c[0 :+ TM, 0 :+ TN], dot(x, y));\n"
    "    store(d[0 :+ TN, 0 :+ TN], dot(trans(z), w));\n"
    "}\n";

START_TEST(gathered_operands_in_tiles)
{
    product p = {gathered, products[_i]};

    ck_assert_int_eq(guard_run(run_product, &p), TW_OK);
}
END_TEST

/* Both operands lie against the dot's order, so there are two workspaces. */
static tw_status run_against_order(void *arg)
{
    static const char text[] =
        "kernel dots(at: bf16[K, M], b: bf16[K, N], out c: f32[M, N])\n"
        "grid (cdiv(M, 32), cdiv(N, 32)) {\n"
        "    let m0 = program_id(0) * 32, n0 = program_id(1) * 32;\n"
        "    var s = zeros(f32[32, 32]);\n"
        "    for k in range(0, K, 32)\n"
        "        s = dot(trans(load(at[k :+ 32, m0 :+ 32])), load(b[k :+ 32, n0 :+ 32]), s);\n"
        "    store(c[m0 :+ 32, n0 :+ 32], s);\n"
        "}\n";
    const extent e[] = {{"M", 70}, {"K", 95}, {"N", 50}};

    (void)arg;
    double error = run(schedule_lower_text(text, "", 0), true, e, (const int64_t[]){3, 2, 1}, true);
    ck_assert_msg(error == 0.0, "%g", error);
    return TW_OK;
}

START_TEST(two_packed_operands)
{
    ck_assert_int_eq(guard_run(run_against_order, NULL), TW_OK);
}
END_TEST

/* ---- code ------------------------------------------------------------------------------------ */

static int count(const char *text, const char *what)
{
    int n = 0;

    for (; (text = strstr(text, what)) != NULL; text++)
        n++;
    return n;
}

/* Calls of an intrinsic, without its declaration. */
static int calls(const char *ll, const char *what)
{
    return count(ll, what) - 1;
}

/* The shapes of attention_tables.c in blocks of 64 x 64, its blocks, and K and rows that are even
 * but multiples of nothing else. */
static const attention compiled[] = {
    {128, 128, 64, 64, true, 0.0},    {64, 64, 64, 64, true, 0.0},   {8, 8, 64, 64, true, 0.0},
    {128, 128, 128, 128, false, 0.0}, {24, 24, 64, 64, false, 0.0},  {48, 48, 64, 64, false, 0.0},
    {72, 72, 64, 64, true, 0.0},      {80, 80, 64, 64, false, 0.0},  {96, 96, 64, 64, true, 0.0},
    {256, 256, 64, 64, false, 0.0},   {16, 256, 64, 64, false, 0.0}, {40, 24, 64, 64, true, 0.0},
    {40, 40, 96, 48, true, 0.0},      {40, 40, 80, 24, true, 0.0},   {40, 40, 24, 80, false, 0.0},
    {40, 40, 16, 16, true, 0.0},      {40, 40, 8, 40, false, 0.0},   {40, 40, 64, 256, false, 0.0},
    {40, 40, 1, 8, true, 0.0},        {40, 40, 7, 13, true, 0.0},    {34, 50, 17, 22, true, 0.0},
    {90, 58, 46, 74, false, 0.0},     {72, 40, 80, 24, true, 0.0}};
enum { COMPILED = sizeof compiled / sizeof *compiled, MANY = 400 };

/* No tile is spilled, and the registers are configured once. */
static tw_status compile_attention(void *arg)
{
    const attention *k = arg;
    const target *t = target_find("cpu-amx");
    target_input in = {.module = lower_attention(k), .diags = &schedule_diags};
    const char *ll, *code;
    size_t size;

    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(t->emit(t, &in, "ll", &schedule_memory, &ll, &size), TW_OK);
    in.module = lower_attention(k);
    tw_status st = t->emit(t, &in, "asm", &schedule_memory, &code, &size);
    ck_assert_msg(st == TW_OK, "D %d, %d, blocks of %d x %d: %s", k->d, k->dv, k->block_m,
                  k->block_n, tw_last_error()->text);
    ck_assert_int_gt(calls(ll, "llvm.x86.tdpbf16ps.internal"), 0);
    ck_assert_int_eq(count(code, "tdpbf16ps"), calls(ll, "llvm.x86.tdpbf16ps.internal"));
    ck_assert_int_eq(count(code, "tileloadd"), calls(ll, "llvm.x86.tileloadd64.internal"));
    ck_assert_int_eq(count(code, "tilestored"), calls(ll, "llvm.x86.tilestored64.internal"));
    ck_assert_int_eq(count(code, "ldtilecfg"), 1);
    ck_assert_int_eq(count(code, "call"), 0);
    if (k->d == 128 && k->dv == 128) /* the output is scaled only where a maximum moved */
        ck_assert_int_gt(count(code, "kortest"), 0);
    if (k->d >= 64 && k->dv >= 64) { /* q and v are turned in words: no bf16 is widened */
        ck_assert_int_gt(count(code, "vpunpcklwd"), 0);
        ck_assert_int_eq(count(code, "vpmovzxwd"), 0);
    }
    return TW_OK;
}

START_TEST(llvm_keeps_tiles_in_registers)
{
    attention k = compiled[_i * SPARSE];

    ck_assert_int_eq(guard_run(compile_attention, &k), TW_OK);
}
END_TEST

/* z of `several` is computed in f32, and only a dot reads it. */
static tw_status compile_rounded(void *arg)
{
    const target *t = target_find("cpu-amx");
    target_input in = {.module = schedule_lower_text(several, "TM=64,TK=96,TN=64", 0),
                       .diags = &schedule_diags};
    const char *code;
    size_t size;

    (void)arg;
    ck_assert_int_eq(t->emit(t, &in, "asm", &schedule_memory, &code, &size), TW_OK);
    ck_assert_int_gt(count(code, "vcvtneps2bf16"), 0);
    return TW_OK;
}

START_TEST(operands_are_rounded_by_an_instruction)
{
    ck_assert_int_eq(guard_run(compile_rounded, NULL), TW_OK);
}
END_TEST

START_TEST(whatever_the_shape)
{
    random_state = (uint64_t)_i * 7919 + 1;
    int n[4];

    for (int i = 0; i < 4; i++) {
        random_number(true);
        n[i] = 1 + (int)(random_state >> 40) % (i < 2 ? 128 : 64);
    }
    attention k = {2 * n[0], 2 * n[1], 2 * n[2], 2 * n[3], _i % 2, 0.0};
    ck_assert_int_eq(guard_run(compile_attention, &k), TW_OK);
}
END_TEST
#endif

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("dots in tiles");
    TCase *t = tcase_create("tiles");

#if defined(__x86_64__)
    tcase_add_checked_fixture(t, setup, schedule_teardown);
    tcase_set_timeout(t, 120);
    int emulated = emulation() ? 1 : 0;
    tcase_add_loop_test(t, attention_in_tiles, 0, ATTENTIONS * emulated);
    tcase_add_loop_test(t, attention_in_packed_tiles, 0, PACKED * emulated);
    tcase_add_loop_test(t, two_packed_operands, 0, emulated);
    tcase_add_loop_test(t, operands_in_tiles, 0, PRODUCTS * emulated);
    tcase_add_loop_test(t, gathered_operands_in_tiles, 0, PRODUCTS * emulated);
    tcase_add_loop_test(t, llvm_keeps_tiles_in_registers, 0, COMPILED / SPARSE);
    tcase_add_test(t, operands_are_rounded_by_an_instruction);
    tcase_add_loop_test(t, whatever_the_shape, 0, getenv("TW_TEST_LONG") ? MANY : 2);
#endif
    suite_add_tcase(s, t);
    return s;
}
