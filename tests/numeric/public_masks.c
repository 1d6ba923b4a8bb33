/* Cases drawn from public bug reports about masks and biases of attention, on a kernel of their
 * own: a bias tensor, and what a row sees as a function given by text. docs/CASES.md lists them. */
#include "tests/support/numeric_case.h"
#include "tests/support/numeric_dtype.h"
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char text[] =
    "fn everything(row, col) { return true; }\n"
    "kernel biased[T: float, D: int, visible: fn(row, col) = everything](\n"
    "    q: T[B, H, M, D], k: T[B, H, N, D], v: T[B, H, N, D], bias: T[B, H, M, N],\n"
    "    out o: f32[B, H, M, D], out lse: f32[B, H, M], scale: f32 = 1.0 / sqrt(D))\n"
    "tune BLOCK_M in {32, 16}, BLOCK_N in {32, 64, 128}\n"
    "grid (cdiv(M, BLOCK_M), H, B)\n"
    "{\n"
    "    let m0 = program_id(0) * BLOCK_M, h = program_id(1), b = program_id(2);\n"
    "    let row = m0 + arange(BLOCK_M);\n"
    "    let tq = load(q[b, h, m0 :+ BLOCK_M, :]);\n"
    "    var m = full(f32[BLOCK_M], -inf);\n"
    "    var l = zeros(f32[BLOCK_M]);\n"
    "    var acc = zeros(f32[BLOCK_M, D]);\n"
    "    for n0 in range(0, N, BLOCK_N) {\n"
    "        let col = n0 + arange(BLOCK_N);\n"
    "        let keep = (col < N)[None, :] & visible(row[:, None], col[None, :]);\n"
    "        let score = dot(tq, trans(load(k[b, h, n0 :+ BLOCK_N, :]))) * scale;\n"
    "        let more = cast(load(bias[b, h, m0 :+ BLOCK_M, n0 :+ BLOCK_N]), f32);\n"
    "        let s = where(keep, score + more, -inf);\n"
    "        let m_new = maximum(m, max(s, 1));\n"
    "        let base = where(m_new == -inf, 0.0, m_new);\n"
    "        let p = exp(s - base[:, None]);\n"
    "        let alpha = exp(m - base);\n"
    "        let used = max(cast(s != -inf, i32), 0) == 1;      // by some row\n"
    "        let tv = where(used[:, None], load(v[b, h, n0 :+ BLOCK_N, :]), 0.0);\n"
    "        l = l * alpha + sum(p, 1);\n"
    "        acc = dot(cast(p, T), tv, acc * alpha[:, None]);\n"
    "        m = m_new;\n"
    "    }\n"
    "    store(o[b, h, m0 :+ BLOCK_M, :], acc * where(l == 0.0, 0.0, 1.0 / l)[:, None]);\n"
    "    store(lse[b, h, m0 :+ BLOCK_M], m + log(l));\n"
    "}\n";

static const char *const specs[] = {"interp", "cpu"};
enum { SPECS = sizeof specs / sizeof *specs };

typedef bool (*visible_fn)(int64_t row, int64_t col);

typedef struct subject {
    num_device d;
    tw_kernel *k;
    const num_dtype *type;
    int64_t b, h, m, n, width;
    double scale, tolerance;
    const char *visible; /* text, or NULL: everything */
    visible_fn sees;
    num_tensor q, key, v, bias, o, lse;
} subject;

static bool everything(int64_t row, int64_t col)
{
    (void)row, (void)col;
    return true;
}

static void open_subject(subject *s, int spec, const char *type, int64_t m, int64_t n,
                         int64_t width)
{
    *s = (subject){.type = num_dtype_named(type),
                   .b = 1,
                   .h = 1,
                   .m = m,
                   .n = n,
                   .width = width,
                   .scale = 1.0 / sqrt((double)width),
                   .tolerance = 1e-5,
                   .sees = everything};
    ck_assert(num_open(&s->d, specs[spec], NULL));
    num_must(tw_kernel_load_text(s->d.cx, "biased.tw", text, strlen(text), NULL, &s->k), "load");
}

static void alloc(subject *s)
{
    const int64_t q[] = {s->b, s->h, s->m, s->width}, k[] = {s->b, s->h, s->n, s->width},
                  bias[] = {s->b, s->h, s->m, s->n};
    num_random r = {77};

    num_alloc_as(&s->q, "q", s->type, 4, q, NUM_DENSE, NUM_AT_END);
    num_alloc_as(&s->key, "k", s->type, 4, k, NUM_DENSE, NUM_AT_END);
    num_alloc_as(&s->v, "v", s->type, 4, k, NUM_DENSE, NUM_AT_END);
    num_alloc_as(&s->bias, "bias", s->type, 4, bias, NUM_DENSE, NUM_AT_END);
    num_alloc(&s->o, "o", 4, q, NUM_DENSE, NUM_AT_END);
    num_alloc(&s->lse, "lse", 3, q, NUM_DENSE, NUM_AT_END);
    num_fill(&s->q, &r, 1.0);
    num_fill(&s->key, &r, 1.0);
    num_fill(&s->v, &r, 1.0);
    for (int64_t i = 0; i < num_elements(&s->bias); i++)
        num_set_at(&s->bias, i, 0.0);
}

/* All that a row sees is what `visible` says, and `sees` of the same in C. */
static void open_masked(subject *s, int spec, int64_t m, int64_t n, const char *visible,
                        visible_fn sees)
{
    open_subject(s, spec, "f32", m, n, 16);
    s->visible = visible;
    s->sees = sees;
    alloc(s);
}

static void close_subject(subject *s)
{
    num_tensor *all[] = {&s->q, &s->key, &s->v, &s->bias, &s->o, &s->lse};

    for (int i = 0; i < 6; i++)
        num_free(all[i]);
    tw_kernel_destroy(s->k);
    num_close(&s->d);
}

static void launch(subject *s, const char *config)
{
    tw_launch_options options = TW_LAUNCH_OPTIONS_INIT;
    tw_arg args[] = {TW_TENSOR("q", &s->q.dl),  TW_TENSOR("k", &s->key.dl),
                     TW_TENSOR("v", &s->v.dl),  TW_TENSOR("bias", &s->bias.dl),
                     TW_TENSOR("o", &s->o.dl),  TW_TENSOR("lse", &s->lse.dl),
                     TW_F32("scale", s->scale), TW_TEXT("visible", s->visible)};

    options.config = config;
    num_must(num_try(&s->d, s->k, args, s->visible ? 8 : 7, &options), "launch");
}

static double score(const subject *s, int64_t slice, int64_t row, int64_t col)
{
    double sum = 0.0;

    for (int64_t i = 0; i < s->width; i++)
        sum += num_value_at(&s->q, (slice * s->m + row) * s->width + i) *
               num_value_at(&s->key, (slice * s->n + col) * s->width + i);
    return sum * s->scale + num_value_at(&s->bias, (slice * s->m + row) * s->n + col);
}

/* One row of o and lse, in double. */
static double reference(const subject *s, int64_t slice, int64_t row, double *o)
{
    double top = -INFINITY, sum = 0.0;

    memset(o, 0, sizeof *o * (size_t)s->width);
    for (int64_t j = 0; j < s->n; j++)
        if (s->sees(row, j))
            top = fmax(top, score(s, slice, row, j));
    for (int64_t j = 0; j < s->n; j++) {
        if (!s->sees(row, j))
            continue;
        double p = exp(score(s, slice, row, j) - top);
        sum += p;
        for (int64_t i = 0; i < s->width; i++)
            o[i] += p * num_value_at(&s->v, (slice * s->n + j) * s->width + i);
    }
    for (int64_t i = 0; i < s->width && sum > 0.0; i++)
        o[i] /= sum;
    return sum > 0.0 ? top + log(sum) : -INFINITY;
}

static void near(const subject *s, const char *what, int64_t row, double got, double want)
{
    bool right =
        isinf(want) ? got == want : fabs(got - want) <= s->tolerance * fmax(1.0, fabs(want));

    ck_assert_msg(right, "%s: %s of row %lld: %.9g, not %.9g", s->d.label, what, (long long)row,
                  got, want);
}

static void compare(subject *s, const char *config)
{
    double o[128];

    launch(s, config);
    for (int64_t at = 0; at < s->b * s->h * s->m; at++) {
        double lse = reference(s, at / s->m, at % s->m, o);
        near(s, "lse", at % s->m, *num_at(&s->lse, at), lse);
        for (int64_t i = 0; i < s->width; i++)
            near(s, "o", at % s->m, *num_at(&s->o, at * s->width + i), o[i]);
    }
}

static void set_all(num_tensor *t, double v)
{
    for (int64_t i = 0, n = num_elements(t); i < n; i++)
        num_set_at(t, i, v);
}

/* ---- biases ---- */

/* The least finite number as a bias over the whole first block of keys. */
START_TEST(the_least_finite_bias)
{
    static const char *const config[] = {"BLOCK_N=128", "BLOCK_N=64", "BLOCK_N=32"};
    subject s;

    open_subject(&s, _i, "f32", _i ? 441 : 45, 441, 64);
    alloc(&s);
    for (int64_t i = 0; i < num_elements(&s.bias); i++)
        num_set_at(&s.bias, i, i % s.n < 128 ? (double)-FLT_MAX : 0.0);
    for (int i = 0; i < (_i ? 3 : 1); i++)
        compare(&s, config[i]);
    close_subject(&s);
}
END_TEST

/* Logits 0 and 1 under a bias of 9984: a sum in bf16 would lose their difference. */
START_TEST(a_large_bias_swallows_no_logit)
{
    subject s;

    open_subject(&s, _i, "bf16", 1, 2, 16);
    s.scale = 1.0;
    s.tolerance = 1e-2;
    alloc(&s);
    set_all(&s.q, 0.0);
    set_all(&s.key, 0.0);
    set_all(&s.bias, 9984.0);
    num_set_at(&s.q, 0, 1.0);
    num_set_at(&s.key, 16, 1.0);
    for (int64_t i = 0; i < 32; i++)
        num_set_at(&s.v, i, i < 16 ? 0.0 : 1.0);
    launch(&s, NULL);
    near(&s, "o", 0, *num_at(&s.o, 3), 0.7310585786);
    near(&s, "lse", 0, *num_at(&s.lse, 0), 9984.0 + 1.3132616875);
    close_subject(&s);
}
END_TEST

static bool causal(int64_t row, int64_t col)
{
    return col <= row;
}

/* A mask and a bias together, with lengths that blocks divide and that they do not. */
START_TEST(a_bias_drops_no_mask)
{
    static const int64_t length[] = {48, 64};

    for (int at = 0; at < 2; at++) {
        subject s;
        num_random r = {5};
        open_masked(&s, _i, length[at], length[at], "col <= row", causal);
        num_fill(&s.bias, &r, 2.0);
        compare(&s, "BLOCK_M=32,BLOCK_N=32");
        close_subject(&s);
    }
}
END_TEST

/* Rows of a bias 43 elements apart, a multiple of nothing. */
START_TEST(rows_of_a_bias_43_apart)
{
    subject s;
    num_random r = {6};

    open_subject(&s, _i, "f16", 16, 43, 32);
    s.b = 2;
    s.h = 3;
    s.tolerance = 2e-3;
    alloc(&s);
    num_fill(&s.bias, &r, 1.0);
    compare(&s, NULL);
    close_subject(&s);
}
END_TEST

/* A bias of 32 x 12180 x 12184 elements, more than 32 bits count, in memory that is reserved and
 * touched at the last rows of the last head alone. */
START_TEST(a_bias_beyond_32_bits)
{
    enum { HEADS = 32, ROWS = 12180, KEYS = 12184, WIDTH = 16 };
    const size_t elements = (size_t)HEADS * ROWS * KEYS, last = elements - KEYS;
    int64_t q_[] = {1, HEADS, ROWS, WIDTH}, k_[] = {1, HEADS, KEYS, WIDTH},
            b_[] = {1, HEADS, ROWS, KEYS};
    size_t bytes[] = {HEADS * ROWS * WIDTH * 2, HEADS * KEYS * WIDTH * 2, elements * 2,
                      HEADS * ROWS * WIDTH * 4, HEADS * ROWS * 4};
    void *at[5];
    num_device d;
    tw_kernel *kernel;
    tw_launch_options options = TW_LAUNCH_OPTIONS_INIT;

    ck_assert(num_open(&d, specs[_i], NULL));
    num_must(tw_kernel_load_text(d.cx, "biased.tw", text, strlen(text), NULL, &kernel), "load");
    for (int i = 0; i < 5; i++) {
        at[i] = mmap(NULL, bytes[i], PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        ck_assert_ptr_ne(at[i], MAP_FAILED);
    }
    const DLDataType f16 = {kDLFloat, 16, 1}, f32 = {kDLFloat, 32, 1};
    DLTensor q = {at[0], {kDLCPU, 0}, 4, f16, q_, NULL, 0},
             k = {at[1], {kDLCPU, 0}, 4, f16, k_, NULL, 0}, v = k,
             bias = {at[2], {kDLCPU, 0}, 4, f16, b_, NULL, 0},
             o = {at[3], {kDLCPU, 0}, 4, f32, q_, NULL, 0},
             lse = {at[4], {kDLCPU, 0}, 3, f32, q_, NULL, 0};
    const tw_arg args[] = {TW_TENSOR("q", &q),       TW_TENSOR("k", &k), TW_TENSOR("v", &v),
                           TW_TENSOR("bias", &bias), TW_TENSOR("o", &o), TW_TENSOR("lse", &lse)};
    ((uint16_t *)at[2])[last + 7] = 0x4c00; /* 16 */
    options.config = "BLOCK_M=16,BLOCK_N=128";
    options.program_first = (int64_t)HEADS * ((ROWS + 15) / 16) - 1;
    options.program_count = 1;
    num_must(num_try(&d, kernel, args, 6, &options), "launch");
    const float *got = (const float *)at[4] + HEADS * ROWS - 2;
    ck_assert_float_eq_tol(got[0], (float)log(KEYS), 1e-4f);
    ck_assert_float_eq_tol(got[1], (float)log(exp(16.0) + KEYS - 1), 1e-4f);
    for (int i = 0; i < 5; i++)
        munmap(at[i], bytes[i]);
    tw_kernel_destroy(kernel);
    num_close(&d);
}
END_TEST

/* ---- masks ---- */

static bool window_2_0(int64_t row, int64_t col)
{
    return col <= row && row - col <= 2;
}

/* A window of two keys back and the row's own is three wide. */
START_TEST(a_window_is_as_wide_as_it_says)
{
    subject s;

    open_masked(&s, _i, 40, 40, "col <= row & row - col <= 2", window_2_0);
    set_all(&s.q, 0.0);
    for (int64_t i = 0; i < num_elements(&s.v); i++)
        num_set_at(&s.v, i, (double)(i / 16));
    compare(&s, NULL);
    near(&s, "o", 5, *num_at(&s.o, 5 * 16), 4.0);
    near(&s, "o", 0, *num_at(&s.o, 0), 0.0);
    s.visible = "col <= row & row - col <= 39";
    s.sees = causal;
    compare(&s, NULL);
    close_subject(&s);
}
END_TEST

static bool window_32_64(int64_t row, int64_t col)
{
    int64_t at = row + 65 - 129; /* the last query stands at the last key */

    return col >= at - 32 && col <= at + 64;
}

/* Fewer keys than queries: rows whose window holds none give 0 and -inf. */
START_TEST(a_window_over_unequal_lengths)
{
    subject s;

    open_masked(&s, _i, 129, 65, "{ let at = row - 64; return col >= at - 32 & col <= at + 64; }",
                window_32_64);
    compare(&s, NULL);
    ck_assert(!isinf(*num_at(&s.lse, 0)) && !isinf(*num_at(&s.lse, 128)));
    close_subject(&s);
}
END_TEST

static bool chunks(int64_t row, int64_t col)
{
    return col / 4 <= row / 4 && row / 4 - col / 4 <= 10;
}

/* Chunks of keys, of which a row sees its own and ten before it: blocks that are seen in part, in
 * whole and not at all in one row. */
START_TEST(a_window_of_chunks)
{
    subject s;

    open_subject(&s, _i, "f32", 128, 128, 16);
    s.h = _i ? 4 : 1;
    s.visible = "col / 4 <= row / 4 & row / 4 - col / 4 <= 10";
    s.sees = chunks;
    alloc(&s);
    compare(&s, "BLOCK_M=16,BLOCK_N=32");
    close_subject(&s);
}
END_TEST

static bool corner(int64_t row, int64_t col)
{
    return row < 4 && col < 4;
}

START_TEST(rows_that_see_nothing)
{
    subject s;

    open_masked(&s, _i, 8, 8, "row < 4 & col < 4", corner);
    compare(&s, NULL);
    ck_assert(isinf(*num_at(&s.lse, 7)) && *num_at(&s.o, 7 * 16) == 0.0f);
    close_subject(&s);
}
END_TEST

static bool first_key(int64_t row, int64_t col)
{
    (void)row;
    return col < 1;
}

/* NaN in a key and a value that no row sees. */
START_TEST(hidden_nan_stays_hidden)
{
    subject s;

    open_masked(&s, _i, 2, 2, "col < 1", first_key);
    for (int64_t i = 16; i < 32; i++) {
        num_set_at(&s.key, i, NAN);
        num_set_at(&s.v, i, NAN);
    }
    launch(&s, NULL);
    for (int64_t i = 0; i < 32; i++)
        ck_assert_mem_eq(num_at(&s.o, i), num_at(&s.v, i % 16), sizeof(float));
    close_subject(&s);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    int first = num_first(1);
    Suite *s = suite_create("public masks");
    TCase *t = tcase_create("masks");

    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, the_least_finite_bias, first, SPECS);
    tcase_add_loop_test(t, a_large_bias_swallows_no_logit, first, SPECS);
    tcase_add_loop_test(t, a_bias_drops_no_mask, first, SPECS);
    tcase_add_loop_test(t, rows_of_a_bias_43_apart, first, SPECS);
    tcase_add_loop_test(t, a_bias_beyond_32_bits, first, NUM_HUGE ? SPECS : 0);
    tcase_add_loop_test(t, a_window_is_as_wide_as_it_says, first, SPECS);
    tcase_add_loop_test(t, a_window_over_unequal_lengths, first, SPECS);
    tcase_add_loop_test(t, a_window_of_chunks, first, SPECS);
    tcase_add_loop_test(t, rows_that_see_nothing, first, SPECS);
    tcase_add_loop_test(t, hidden_nan_stays_hidden, first, SPECS);
    suite_add_tcase(s, t);
    return s;
}
