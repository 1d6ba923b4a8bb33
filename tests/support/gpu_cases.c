#include "tests/support/gpu_cases.h"
#include "tests/support/numeric_dtype.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void run_text(const gpu_place *p, const char *text, const tw_arg *args, size_t n)
{
    num_device d;

    if (!num_open(&d, p->spec, p->target))
        return;
    tw_kernel *k = num_load_text(&d, text);
    num_launch(&d, k, args, n, NULL);
    tw_kernel_destroy(k);
    num_close(&d);
}

static void make(num_tensor *t, const char *name, const char *type, int64_t m, int64_t n)
{
    int64_t extent[] = {m ? m : n, n};

    num_alloc_as(t, name, num_dtype_named(type), m ? 2 : 1, extent, NUM_DENSE, NUM_AT_END);
}

/* ---- strides and alignment ------------------------------------------------------------------- */

static void swapped_views(const gpu_place *p)
{
    static const int which[] = {0, 1, 2, 3};
    num_subject s;

    if (!subject_open(&s, p->spec, p->target, "attention_fwd", 9001))
        return;
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        attention_case c = {1, 2, 2, 33, 40, 32, 32, .causal = i % 2, .type = "bf16"};
        enum num_layout *of[] = {&c.q, &c.k, &c.v, &c.o};
        *of[which[i]] = NUM_SWAPPED;
        attention_check(&s, &c, NUM_AT_END);
    }
    subject_close(&s);
}

/* The first 64 columns of rows that are `apart` elements apart; what lies between stays. */
static void rows_apart(const gpu_place *p, const char *type, int64_t apart)
{
    enum { ROWS = 5, COLUMNS = 64 };
    num_tensor x, y;
    char text[200];

    make(&x, "x", type, ROWS, apart);
    make(&y, "y", type, ROWS, apart);
    x.extent[1] = y.extent[1] = COLUMNS;
    for (int64_t i = 0; i < num_elements(&x); i++)
        num_set_at(&x, i, (double)(i % 251));
    num_protect(&x);
    snprintf(text, sizeof text,
             "kernel copy(x: %s[M, N], out y: %s[M, N]) grid (1) {\n"
             "    store(y[0 :+ 4, 0 :+ 64], load(x[1 :+ 4, 0 :+ 64]));\n"
             "}\n",
             type, type);
    const tw_arg args[] = {TW_TENSOR("x", &x.dl), TW_TENSOR("y", &y.dl)};
    run_text(p, text, args, 2);
    for (int64_t i = 0; i < 4 * COLUMNS; i++)
        ck_assert_double_eq(num_value_at(&y, i), (double)((i + COLUMNS) % 251));
    ck_assert(num_padding_intact(&y));
    num_free(&x);
    num_free(&y);
}

static void odd_rows(const gpu_place *p)
{
    rows_apart(p, "f32", 1185);
    rows_apart(p, "f32", 1186);
    rows_apart(p, "f16", 1185);
    rows_apart(p, "bf16", 1188);
}

static void a_remainder(const gpu_place *p)
{
    num_tensor x, y;

    make(&x, "x", "i32", 0, 128);
    make(&y, "y", "i32", 0, 128);
    for (int i = 0; i < 128; i++)
        num_put(x.type, x.base, i, (num_value){.i = i});
    const tw_arg args[] = {TW_TENSOR("x", &x.dl), TW_TENSOR("y", &y.dl)};
    run_text(p,
             "kernel rest(x: i32[N], out y: i32[N]) grid (1) {\n"
             "    store(y[0 :+ 128], load(x[64 % (32 + arange(128))]));\n"
             "}\n",
             args, 2);
    for (int i = 0; i < 128; i++)
        ck_assert_int_eq((int)num_get(y.type, y.base, i).i, 64 % (32 + i));
    num_free(&x);
    num_free(&y);
}

/* One kernel, one context: a base that is aligned, then one that is not. */
static void aligned_then_not(const gpu_place *p)
{
    num_device d;
    num_tensor x, y;

    if (!num_open(&d, p->spec, p->target))
        return;
    tw_kernel *k = num_load_text(&d, "kernel twice[T: float](x: T[N], out y: T[N]) grid (1) {\n"
                                 "    store(y[0 :+ 256], load(x[0 :+ 256]) * 2.0);\n"
                                 "}\n");
    for (int turn = 0; turn < 6; turn++) {
        const char *type = turn < 3 ? "f32" : "f16";
        int64_t n = 200, off = turn % 3 == 1;
        make(&x, "x", type, 0, 256);
        make(&y, "y", type, 0, 256);
        x.extent[0] = y.extent[0] = n;
        x.dl.byte_offset = y.dl.byte_offset = (uint64_t)(off * x.type->bits / 8);
        for (int i = 0; i < 256; i++)
            num_put(x.type, x.base, i, (num_value){.f = i});
        const tw_arg args[] = {TW_TENSOR("x", &x.dl), TW_TENSOR("y", &y.dl)};
        num_launch(&d, k, args, 2, NULL);
        for (int64_t i = 0; i < n; i++)
            ck_assert_double_eq(num_get(y.type, y.base, i + off).f, 2.0 * (double)(i + off));
        num_free(&x);
        num_free(&y);
    }
    tw_kernel_destroy(k);
    num_close(&d);
}

static void a_scatter(const gpu_place *p)
{
    num_tensor x, t, y;

    make(&x, "x", "i32", 0, 196);
    make(&t, "t", "i32", 0, 196);
    make(&y, "y", "i32", 0, 1200);
    for (int i = 0; i < 1200; i++) {
        num_put(y.type, y.base, i, (num_value){.i = -1});
        if (i < 196) {
            num_put(x.type, x.base, i, (num_value){.i = 7 * i});
            num_put(t.type, t.base, i, (num_value){.i = i % 2});
        }
    }
    const tw_arg args[] = {TW_TENSOR("x", &x.dl), TW_TENSOR("t", &t.dl), TW_TENSOR("y", &y.dl)};
    run_text(p,
             "kernel jump(x: i32[N], t: i32[N], inout y: i32[M]) grid (1) {\n"
             "    let i = arange(256);\n"
             "    let at = where(i < N, i + 1000 * load(t[0 :+ 256]), -1);\n"
             "    store(y[at], load(x[0 :+ 256]));\n"
             "}\n",
             args, 3);
    for (int i = 0; i < 1200; i++) {
        int from = i % 1000;
        bool there = from < 196 && i / 1000 == from % 2;
        ck_assert_int_eq((int)num_get(y.type, y.base, i).i, there ? 7 * from : -1);
    }
    num_free(&x);
    num_free(&t);
    num_free(&y);
}

/* Rows of a bias 43 elements apart, a multiple of nothing. q is 0: it is all of the scores. */
static void a_bias_of_odd_rows(const gpu_place *p)
{
    enum { H = 2, M = 16, N = 43, D = 16 };
    static const char *const name[] = {"q", "k", "v", "bias", "o", "lse"};
    const int64_t extent[6][4] = {{1, H, M, D}, {1, H, N, D}, {1, H, N, D},
                                  {1, H, M, N}, {1, H, M, D}, {1, H, M}};
    num_random r = {9005};
    num_tensor t[6];
    tw_arg args[6];
    num_device d;

    if (!num_open(&d, p->spec, p->target))
        return;
    tw_kernel *k = num_load(&d, "kernels/variants/attention_bias.tw");
    for (int i = 0; i < 6; i++) {
        num_alloc_as(&t[i], name[i], num_dtype_named(i < 5 ? "f16" : "f32"), i < 5 ? 4 : 3,
                     extent[i], NUM_DENSE, NUM_AT_END);
        num_fill(&t[i], &r, i ? 1.0 : 0.0);
        args[i] = TW_TENSOR(name[i], &t[i].dl);
    }
    num_launch(&d, k, args, 6, NULL);
    for (int i = 0; i < H * M * D; i++) {
        double sum = 0.0, o = 0.0;
        for (int j = 0; j < N; j++) {
            double weight = exp(num_value_at(&t[3], (int64_t)i / D * N + j));
            sum += weight;
            o += weight * num_value_at(&t[2], ((int64_t)i / (M * D) * N + j) * D + i % D);
        }
        ck_assert_double_eq_tol(num_value_at(&t[4], i), o / sum, 2e-3);
        ck_assert_double_eq_tol(num_value_at(&t[5], i / D), log(sum), 1e-5);
    }
    for (int i = 0; i < 6; i++)
        num_free(&t[i]);
    tw_kernel_destroy(k);
    num_close(&d);
}

/* ---- integers -------------------------------------------------------------------------------- */

/* A product of two values of 32 bits, widened first. */
static void a_wide_product(const gpu_place *p)
{
    num_tensor y;

    make(&y, "y", "i64", 0, 2);
    const tw_arg args[] = {TW_TENSOR("y", &y.dl), TW_INT("a", 319), TW_INT("b", 7864320)};
    run_text(p,
             "kernel wide(out y: i64[N], a: i32, b: i32) grid (1) {\n"
             "    store(y[0], cast(a, i64) * cast(b, i64));\n"
             "    store(y[1 :+ 1], cast(full(i32[1], a), i64) * cast(b, i64));\n"
             "}\n",
             args, 3);
    for (int i = 0; i < 2; i++)
        ck_assert(num_get(y.type, y.base, i).i == INT64_C(2508718080));
    num_free(&y);
}

/* More keys than 16 bits count: all zeros, so lse is log(N). */
static void many_keys(const gpu_place *p)
{
    static const int64_t length[] = {65535, 65536, 33728};
    num_subject s;

    if (!subject_open(&s, p->spec, p->target, "attention_fwd", 9003))
        return;
    s.schedule = strncmp(p->spec, "cuda", 4) == 0 ? "num_warps=1" : NULL;
    for (int i = 0; i < (p->is_quick ? 3 : 1); i++) {
        attention_case c = attention_sizes(1, 1, 1, 2, length[i], 16, 16);
        attention_tensors t;
        c.type = "f16";
        c.config = "BLOCK_M=16,BLOCK_N=128";
        attention_alloc(&t, &c, NUM_AT_END);
        num_tensor *in[] = {&t.q, &t.k, &t.v};
        for (int k = 0; k < 3; k++)
            memset(in[k]->base, 0, (size_t)num_elements(in[k]) * 2);
        attention_launch(&s, &c, &t);
        s.cases++;
        for (int64_t j = 0; j < num_elements(&t.o); j++)
            ck_assert_double_eq(num_value_at(&t.o, j), 0.0);
        ck_assert_float_eq_tol(*num_at(&t.lse, 1), (float)log((double)length[i]), 1e-5f);
        attention_free(&t);
    }
    subject_close(&s);
}

/* ---- large grids ----------------------------------------------------------------------------- */

/* The first and the last programs of a grid, which say who they are. */
static void ends_of_a_grid(const gpu_place *p, int64_t x, int64_t y, int64_t z, int64_t whole)
{
    const int64_t all = x * y * z;
    const int32_t last[] = {(int32_t)x - 1, (int32_t)y - 1, (int32_t)z - 1};
    tw_launch_options options = TW_LAUNCH_OPTIONS_INIT;
    num_tensor t;
    num_device d;

    if (!num_open(&d, p->spec, p->target))
        return;
    make(&t, "y", "i32", 0, 6);
    const tw_arg args[] = {TW_TENSOR("y", &t.dl), TW_INT("a", x), TW_INT("b", y), TW_INT("c", z)};
    tw_kernel *k = num_load_text(
        &d, "kernel ends(inout y: i32[N], a: i32, b: i32, c: i32) grid (a, b, c) {\n"
            "    let i = program_id(0), j = program_id(1), k = program_id(2);\n"
            "    if (i == 0 && j == 0 && k == 0) store(y[0 :+ 4], full(i32[4], 7));\n"
            "    if (i == a - 1 && j == b - 1 && k == c - 1) {\n"
            "        store(y[3], i);\n"
            "        store(y[4], j);\n"
            "        store(y[5], k);\n"
            "    }\n"
            "}\n");
    options.program_count = p->is_quick && whole ? 0 : 5;
    for (int end = 0; end < (options.program_count ? 2 : 1); end++) {
        options.program_first = end ? all - 5 : 0;
        num_launch(&d, k, args, 4, &options);
    }
    ck_assert_int_eq((int)num_get(t.type, t.base, 0).i, 7);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq((int)num_get(t.type, t.base, 3 + i).i, last[i]);
    tw_kernel_destroy(k);
    num_free(&t);
    num_close(&d);
}

static void more_than_32_bits(const gpu_place *p)
{
    ends_of_a_grid(p, 16384, 16384, 16, 0);
    ends_of_a_grid(p, INT32_MAX, 2, 3, 0);
}

static void more_than_16_bits(const gpu_place *p)
{
    num_subject s;

    ends_of_a_grid(p, 1, 8, 65535, 1);
    ends_of_a_grid(p, 1, 8, 65536, 1);
    ends_of_a_grid(p, 1, 65536, 3, 1);
    if (!p->is_quick || !subject_open(&s, p->spec, p->target, "attention_fwd", 9004))
        return;
    for (int64_t b = 65535; b <= 65536; b++) {
        attention_case c = {b, 1, 1, 4, 4, 16, 16, .type = "f16"};
        attention_check(&s, &c, NUM_AT_END);
        c.B = 1, c.H = c.HK = b;
        attention_check(&s, &c, NUM_AT_END);
    }
    subject_close(&s);
}

/* ---- loops and values ------------------------------------------------------------------------ */

/* A step of 0, known when it runs, makes no round. */
static void a_step_of_zero(const gpu_place *p)
{
    num_tensor y;

    make(&y, "y", "i32", 0, 3);
    const tw_arg args[] = {TW_TENSOR("y", &y.dl), TW_INT("n", 10), TW_INT("s", 0)};
    run_text(p,
             "kernel steps(out y: i32[N], n: i32, s: i32) grid (1) {\n"
             "    var rounds = 0, down = 0;\n"
             "    for i in range(0, n, s) rounds += 1;\n"
             "    for i in range(n, -1, s - 4) down += i;\n"
             "    store(y[0], rounds);\n"
             "    store(y[1], down);\n"
             "    store(y[2], n / s + n % s);\n"
             "}\n",
             args, 3);
    ck_assert_int_eq((int)num_get(y.type, y.base, 0).i, 0);
    ck_assert_int_eq((int)num_get(y.type, y.base, 1).i, 10 + 6 + 2);
    ck_assert_int_eq((int)num_get(y.type, y.base, 2).i, 10);
    num_free(&y);
}

/* Reductions whose results go through shared memory, in both arms of an if, two loops deep. */
static void reductions_in_loops(const gpu_place *p)
{
    num_tensor y;
    int32_t want = 0;

    make(&y, "y", "i32", 0, 1);
    const tw_arg args[] = {TW_TENSOR("y", &y.dl), TW_INT("n", 5)};
    run_text(p,
             "kernel nested(out y: i32[N], n: i32) grid (1) {\n"
             "    var t = arange(256), total = 0, i = 0;\n"
             "    while (i < n) {\n"
             "        for k in range(0, i) {\n"
             "            if ((i + k) % 2 == 0) total += max(t, 0); else total -= min(t, 0);\n"
             "            t = t + where(arange(256) % 2 == 0, 1, -1);\n"
             "        }\n"
             "        i += 1;\n"
             "    }\n"
             "    store(y[0], total);\n"
             "}\n",
             args, 2);
    for (int i = 0, step = 0; i < 5; i++)
        for (int k = 0; k < i; k++, step++) {
            int high = 254 + step > 255 - step ? 254 + step : 255 - step;
            int low = 1 - step < step ? 1 - step : step;
            want += (i + k) % 2 == 0 ? high : -low;
        }
    ck_assert_int_eq((int)num_get(y.type, y.base, 0).i, want);
    num_free(&y);
}

static void on_the_interpreter(const char *text, const tw_arg *args, size_t n)
{
    const gpu_place interp = {.spec = "interp"};

    run_text(&interp, text, args, n);
}

/* From each dtype to each, on awkward values: the bits that the interpreter gives. */
static void casts(const gpu_place *p)
{
    static const double value[] = {
        0,     -0.0, 1,    -1,  0.5,      1.5, 2.5, -2.5, 127.5,    -129,      256,  3e5,  -1e10,
        65504, 1e-6, 1e20, NAN, INFINITY, -3,  254, 1e-9, 1.000977, -INFINITY, 2049, 32768};
    enum { VALUES = sizeof value / sizeof *value };
    num_tensor x, got[NUM_DTYPES], want[NUM_DTYPES];
    tw_arg args[NUM_DTYPES + 1], same[NUM_DTYPES + 1];

    for (int from = 0; from < NUM_DTYPES; from++) {
        const num_dtype *t = &num_dtypes[from];
        char text[3000];
        int n = sprintf(text, "kernel casts(x: %s[N]", t->name);
        for (int to = 0; to < NUM_DTYPES; to++)
            n += sprintf(text + n, ", out %s_: %s[N]", num_dtypes[to].name, num_dtypes[to].name);
        n += sprintf(text + n, ") grid (1) {\n    let v = load(x[0 :+ 32]);\n");
        make(&x, "x", t->name, 0, VALUES);
        for (int i = 0; i < VALUES; i++) {
            bool fits = fabs(value[i]) < 1e18;
            num_put(t, x.base, i,
                    t->is_float ? (num_value){.f = num_round(t, value[i])}
                                : (num_value){.i = fits ? (num_wide)value[i] : (num_wide)-i});
        }
        args[0] = same[0] = TW_TENSOR("x", &x.dl);
        static char name[NUM_DTYPES][8];
        for (int to = 0; to < NUM_DTYPES; to++) {
            const char *type = num_dtypes[to].name;
            n += sprintf(text + n, "    store(%s_[0 :+ 32], cast(v, %s));\n", type, type);
            snprintf(name[to], sizeof name[to], "%s_", type);
            make(&got[to], name[to], type, 0, VALUES);
            make(&want[to], name[to], type, 0, VALUES);
            args[to + 1] = TW_TENSOR(name[to], &got[to].dl);
            same[to + 1] = TW_TENSOR(name[to], &want[to].dl);
        }
        sprintf(text + n, "}\n");
        run_text(p, text, args, NUM_DTYPES + 1);
        on_the_interpreter(text, same, NUM_DTYPES + 1);
        for (int to = 0; to < NUM_DTYPES; to++) {
            for (int i = 0; i < VALUES; i++) {
                num_value a = num_get(got[to].type, got[to].base, i);
                num_value b = num_get(got[to].type, want[to].base, i);
                bool equal = num_dtypes[to].is_float ? a.f == b.f || (isnan(a.f) && isnan(b.f))
                                                     : a.i == b.i;
                ck_assert_msg(equal, "%g, of %s, as %s", value[i], t->name, num_dtypes[to].name);
            }
            num_free(&got[to]);
            num_free(&want[to]);
        }
        num_free(&x);
    }
}

/* Each function of each float but f64, beside the interpreter's. */
static void functions(const gpu_place *p)
{
    static const char *const types[] = {"f32", "f16", "bf16"};
    static const char *const fns[] = {"exp",  "exp2", "log",   "log2",  "sin", "cos", "tanh",
                                      "erf",  "sqrt", "rsqrt", "floor", "ceil", "abs"};
    enum { FNS = sizeof fns / sizeof *fns, VALUES = 96 };

    for (int i = 0; i < 3; i++) {
        char text[2000];
        num_tensor x, y, z;
        num_random r = {9006};
        int n = sprintf(text, "kernel functions(x: %s[N], out y: %s[M, N]) grid (1) {\n", types[i],
                        types[i]);
        for (int f = 0; f < FNS; f++)
            n += sprintf(text + n, "    store(y[%d, 0 :+ 128], %s(load(x[0 :+ 128])));\n", f,
                         fns[f]);
        sprintf(text + n, "}\n");
        make(&x, "x", types[i], 0, VALUES);
        make(&y, "y", types[i], FNS, VALUES);
        make(&z, "y", types[i], FNS, VALUES);
        num_fill(&x, &r, 4.0);
        num_set_at(&x, 0, 0.0);
        num_set_at(&x, 1, INFINITY);
        num_set_at(&x, 2, NAN);
        run_text(p, text, (tw_arg[]){TW_TENSOR("x", &x.dl), TW_TENSOR("y", &y.dl)}, 2);
        on_the_interpreter(text, (tw_arg[]){TW_TENSOR("x", &x.dl), TW_TENSOR("y", &z.dl)}, 2);
        double relative = i ? 1.01 * ldexp(1.0, -x.type->mantissa) : 16.0 * 0x1p-24;
        for (int64_t j = 0; j < FNS * VALUES; j++) {
            double a = num_value_at(&y, j), b = num_value_at(&z, j);
            bool near = isfinite(b) ? fabs(a - b) <= relative * fabs(b) + 0x1p-126
                                    : a == b || (isnan(a) && isnan(b));
            ck_assert_msg(near, "%s(%g) of %s is %g, not %g", fns[j / VALUES],
                          num_value_at(&x, j % VALUES), types[i], a, b);
        }
        num_free(&x);
        num_free(&y);
        num_free(&z);
    }
}

/* What a checked kernel says of an index that leaves its tensor. */
static void a_checked_kernel(const gpu_place *p)
{
    num_device d;
    num_tensor x, y;

    if (!num_open(&d, p->spec, p->target))
        return;
    make(&x, "x", "f32", 0, 64);
    make(&y, "y", "f32", 0, 64);
    tw_kernel *k = num_load_text(&d, "kernel behind(x: f32[N], out y: f32[N]) grid (N) {\n"
                                 "    store(y[program_id(0)], load(x[program_id(0) + 1]));\n"
                                 "}\n");
    num_must(tw_kernel_set_checked(k), "checked");
    const tw_arg args[] = {TW_TENSOR("x", &x.dl), TW_TENSOR("y", &y.dl)};
    tw_status st = num_try(&d, k, args, 2, NULL);
    ck_assert_int_eq(st, TW_E_ASSERT);
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text,
                                 "index 64 of dimension 0 of 'x' is outside of its extent of 64 "
                                 "(case.tw:2), in program 63, 0, 0"));
    tw_kernel_destroy(k);
    num_free(&x);
    num_free(&y);
    num_close(&d);
}

const gpu_case gpu_cases[] = {
    {"STR-01", "swapped views", false, swapped_views},
    {"STR-05", "rows 1185 apart", false, odd_rows},
    {"STR-07", "a remainder", false, a_remainder},
    {"STR-09", "aligned, then not", false, aligned_then_not},
    {"STR-11", "a bias of odd rows", false, a_bias_of_odd_rows},
    {"STR-13", "a scatter", false, a_scatter},
    {"OVF-01", "members far apart", true, case_members_far_apart},
    {"OVF-05", "offsets beyond 32 bits", true, case_offsets_beyond_32_bits},
    {"OVF-07", "a wide product", false, a_wide_product},
    {"OVF-09", "a bias beyond 32 bits", true, case_bias_beyond_32_bits},
    {"OVF-11", "many keys", false, many_keys},
    {"LAU-01", "more programs than 32 bits count", false, more_than_32_bits},
    {"LAU-03", "more members than 16 bits count", false, more_than_16_bits},
    {"CMP-03", "a step of 0", false, a_step_of_zero},
    {"CMP-05", "reductions in loops", false, reductions_in_loops},
    {"CMP-07", "casts", false, casts},
    {"CMP-09", "functions", false, functions},
    {"DSL-07", "a checked kernel", false, a_checked_kernel},
};
const int gpu_cases_count = sizeof gpu_cases / sizeof *gpu_cases;
