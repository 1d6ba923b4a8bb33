/* attention_fwd and attention_padded on what two language models hand to them: the error is at most
 * twice that of the naive formula in the same dtype. */
#include "kernels/kernel_refs.h"
#include "tests/support/npy_file.h"
#include "tests/support/numeric_dtype.h"
#include "tests/support/numeric_kernels.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *spec, *target, *config;
    bool low;
} device[] = {
    {"interp", NULL, NULL, false},
    {"interp", NULL, NULL, true},
    {"cpu", NULL, NULL, false},
    {"cpu", NULL, "BLOCK_M=96,BLOCK_N=48", false},
    {"cpu:1", "cpu-avx512", NULL, false},
    {"cpu:1", "cpu-avx2", NULL, false},
    {"cpu:1", "cpu-generic", NULL, false},
};
enum { DEVICES = sizeof device / sizeof *device };

static void fill(num_tensor *t, const double *from)
{
    for (int64_t i = 0, n = num_elements(t); i < n; i++)
        *num_at(t, i) = (float)from[i];
}

static double worst(const float *got, const double *want, int64_t n)
{
    double w = 0.0;

    for (int64_t i = 0; i < n; i++)
        w = fmax(w, fabs((double)got[i] - want[i]));
    return w;
}

/* Prints and counts one result against the naive formula's. */
static void judge(num_subject *s, const num_tensor *got, const double *want, double naive)
{
    double error = num_worst(got, want);

    num_say("%s %s: worst error %.3g, naive formula %.3g\n", s->device.label, got->name, error,
            naive);
    s->cases++;
    s->failures += !(error <= 2.0 * naive) || !num_padding_intact(got);
}

static bool open_device(num_subject *s, int i)
{
    if (!subject_open(s, device[i].spec, device[i].target, "attention_fwd", 0))
        return false;
    s->options.running_max_low = device[i].low;
    return true;
}

static ref_tensor contiguous(const float *at, const int64_t extent[4])
{
    return (ref_tensor){at,
                        {extent[0], extent[1], extent[2], extent[3]},
                        {extent[1] * extent[2] * extent[3], extent[2] * extent[3], extent[3], 1}};
}

/* ---- SmolLM2: causal, nine heads on three ---- */

START_TEST(smollm2_small)
{
    static const char *const path[] = {
        "examples/data/smollm2_small_q.npy", "examples/data/smollm2_small_k.npy",
        "examples/data/smollm2_small_v.npy", "tests/data/smollm2_small_o.npy",
        "tests/data/smollm2_small_lse.npy"};
    attention_case c = {1, 9, 3, 197, 197, 64, 64, .causal = true, .scale = 0.125};
    attention_tensors t;
    npy_file f[5];
    num_subject s;

    if (!open_device(&s, _i))
        return;
    for (int i = 0; i < 5; i++)
        f[i] = npy_read(path[i]);
    c.config = device[_i].config;
    attention_alloc(&t, &c, NUM_AT_END);
    fill(&t.q, f[0].at);
    fill(&t.k, f[1].at);
    fill(&t.v, f[2].at);
    attention_problem p = {.q = contiguous(t.q.base, t.q.extent),
                           .k = contiguous(t.k.base, t.k.extent),
                           .v = contiguous(t.v.base, t.v.extent),
                           .scale = c.scale,
                           .causal = true};
    float *o = malloc((size_t)f[3].count * sizeof *o);
    float *lse = malloc((size_t)f[4].count * sizeof *lse);
    ck_assert(o && lse);
    attention_fwd_naive(&p, o, lse);
    attention_launch(&s, &c, &t);
    judge(&s, &t.o, f[3].at, worst(o, f[3].at, f[3].count));
    judge(&s, &t.lse, f[4].at, worst(lse, f[4].at, f[4].count));
    for (int i = 0; i < 5; i++)
        npy_free(&f[i]);
    free(o);
    free(lse);
    attention_free(&t);
    subject_close(&s);
}
END_TEST

/* ---- MiniLM: a padded batch, one member at a time as a view of its first rows ---- */

enum { HEADS = 3, PADDED = 173, DIM = 32 };

/* Cuts a tensor to the first n rows of member b of the batch; the rest stays where it is. */
static void cut(num_tensor *t, int64_t b, int64_t n)
{
    t->base += b * t->stride[0];
    t->dl.byte_offset = (uint64_t)(b * t->stride[0]) * sizeof(float);
    t->extent[0] = 1;
    t->extent[2] = n;
}

static void minilm_member(num_subject *s, const char *config, const npy_file f[3], int64_t b,
                          int64_t n)
{
    attention_case c = {3, HEADS, HEADS, PADDED, PADDED, DIM, DIM, .config = config};
    double *want = malloc(HEADS * PADDED * DIM * sizeof *want);
    double *want_lse = malloc(HEADS * PADDED * sizeof *want_lse);
    float *naive = malloc(HEADS * PADDED * DIM * sizeof *naive);
    float *naive_lse = malloc(HEADS * PADDED * sizeof *naive_lse);
    attention_tensors t;

    ck_assert(want && want_lse && naive && naive_lse);
    attention_alloc(&t, &c, NUM_AT_START);
    fill(&t.q, f[0].at);
    fill(&t.k, f[1].at);
    fill(&t.v, f[2].at);
    num_tensor *all[5] = {&t.q, &t.k, &t.v, &t.o, &t.lse};
    for (int i = 0; i < 5; i++)
        cut(all[i], b, n);
    attention_problem p = {.q = {t.q.base, {1, HEADS, n, DIM}, {0, PADDED * DIM, DIM, 1}},
                           .k = {t.k.base, {1, HEADS, n, DIM}, {0, PADDED * DIM, DIM, 1}},
                           .v = {t.v.base, {1, HEADS, n, DIM}, {0, PADDED * DIM, DIM, 1}},
                           .scale = 1.0 / sqrt(DIM)};
    attention_fwd_ref(&p, want, want_lse);
    attention_fwd_naive(&p, naive, naive_lse);
    attention_launch(s, &c, &t);
    judge(s, &t.o, want, worst(naive, want, HEADS * n * DIM));
    judge(s, &t.lse, want_lse, worst(naive_lse, want_lse, HEADS * n));
    free(want);
    free(want_lse);
    free(naive);
    free(naive_lse);
    attention_free(&t);
}

START_TEST(minilm_padded)
{
    npy_file f[3] = {npy_read("tests/data/minilm_padded_q.npy"),
                     npy_read("tests/data/minilm_padded_k.npy"),
                     npy_read("tests/data/minilm_padded_v.npy")};
    npy_file length = npy_read("tests/data/minilm_padded_lengths.npy");
    num_subject s;

    if (!open_device(&s, _i))
        return;
    for (int64_t b = 0; b < length.count; b++)
        minilm_member(&s, device[_i].config, f, b, (int64_t)length.at[b]);
    for (int i = 0; i < 3; i++)
        npy_free(&f[i]);
    npy_free(&length);
    subject_close(&s);
}
END_TEST

/* The whole batch in one call. */
START_TEST(minilm_in_one_call)
{
    enum { ROWS = 3 * HEADS * PADDED };
    npy_file f[3] = {npy_read("tests/data/minilm_padded_q.npy"),
                     npy_read("tests/data/minilm_padded_k.npy"),
                     npy_read("tests/data/minilm_padded_v.npy")};
    npy_file length = npy_read("tests/data/minilm_padded_lengths.npy");
    attention_variant variant = attention_padded_ref;
    attention_extra extra = {.variant = &variant};
    attention_case c = {3, HEADS, HEADS, PADDED, PADDED, DIM, DIM, .extra = &extra};
    double *want = malloc(ROWS * DIM * sizeof *want), *want_lse = malloc(ROWS * sizeof *want_lse);
    float *naive = malloc(ROWS * DIM * sizeof *naive), *naive_lse = malloc(ROWS * sizeof *naive);
    int32_t member[3];
    int64_t extent[1] = {3};
    DLTensor lengths = {member, {kDLCPU, 0}, 1, {kDLInt, 32, 1}, extent, NULL, 0};
    attention_tensors t;
    num_subject s;

    if (!subject_open(&s, device[_i].spec, device[_i].target, "variants/attention_padded", 0))
        return;
    s.options.running_max_low = device[_i].low;
    ck_assert(want && want_lse && naive && naive_lse);
    for (int b = 0; b < 3; b++)
        member[b] = (int32_t)length.at[b];
    variant.member = member;
    extra.args[extra.nargs++] = TW_TENSOR("lengths", &lengths);
    c.config = device[_i].config;
    attention_alloc(&t, &c, NUM_AT_END);
    fill(&t.q, f[0].at);
    fill(&t.k, f[1].at);
    fill(&t.v, f[2].at);
    attention_problem p = {.q = contiguous(t.q.base, t.q.extent),
                           .k = contiguous(t.k.base, t.k.extent),
                           .v = contiguous(t.v.base, t.v.extent),
                           .scale = 1.0 / sqrt(DIM),
                           .variant = &variant};
    attention_fwd_ref(&p, want, want_lse);
    attention_fwd_naive(&p, naive, naive_lse);
    attention_launch(&s, &c, &t);
    judge(&s, &t.o, want, worst(naive, want, ROWS * DIM));
    judge(&s, &t.lse, want_lse, worst(naive_lse, want_lse, ROWS));
    for (int i = 0; i < 3; i++)
        npy_free(&f[i]);
    npy_free(&length);
    free(want);
    free(want_lse);
    free(naive);
    free(naive_lse);
    attention_free(&t);
    subject_close(&s);
}
END_TEST

/* ---- SmolLM2's last layer in f16: an attention sink, and outliers ---- */

enum { LONG = 1000, WIDE = 64 };

typedef struct half_inputs {
    int64_t heads, key_heads;
    const double *q, *k, *v;
} half_inputs;

/* One row as a program that keeps f16 between its steps computes it: scores, their softmax and its
 * product with v, each added up in f32 and rounded. */
static double naive_half_row(const half_inputs *in, int64_t h, int64_t i, double *o)
{
    const num_dtype *half = num_dtype_named("f16");
    int64_t hk = h / (in->heads / in->key_heads);
    const double *q = in->q + (h * LONG + i) * WIDE, *k = in->k + hk * LONG * WIDE;
    const double *v = in->v + hk * LONG * WIDE;
    double p[LONG], max = -INFINITY;
    float sum = 0.0f;

    for (int64_t j = 0; j <= i; j++) {
        float s = 0.0f;
        for (int d = 0; d < WIDE; d++)
            s += (float)q[d] * (float)k[j * WIDE + d];
        p[j] = num_round(half, num_round(half, (double)s) * 0.125);
        max = fmax(max, p[j]);
    }
    for (int64_t j = 0; j <= i; j++)
        sum += expf((float)(p[j] - max));
    for (int64_t j = 0; j <= i; j++)
        p[j] = num_round(half, (double)(expf((float)(p[j] - max)) / sum));
    for (int d = 0; d < WIDE; d++) {
        float x = 0.0f;
        for (int64_t j = 0; j <= i; j++)
            x += (float)p[j] * (float)v[j * WIDE + d];
        o[d] = num_round(half, (double)x);
    }
    return max + log((double)sum);
}

static double worst_of(const double *got, const double *want, int64_t n)
{
    double w = 0.0;

    for (int64_t i = 0; i < n; i++)
        w = fmax(w, fabs(got[i] - want[i]));
    return w;
}

static void widen(float *to, const double *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)from[i];
}

/* Answers in float64: the reference's, of the same f16 inputs. */
static void answers(const half_inputs *in, double *o, double *lse)
{
    int64_t nq = in->heads * LONG * WIDE, nk = in->key_heads * LONG * WIDE;
    float *at = malloc((size_t)(nq + 2 * nk) * sizeof *at);
    int64_t q[4] = {1, in->heads, LONG, WIDE}, k[4] = {1, in->key_heads, LONG, WIDE};

    ck_assert_ptr_nonnull(at);
    widen(at, in->q, nq);
    widen(at + nq, in->k, nk);
    widen(at + nq + nk, in->v, nk);
    attention_problem p = {.q = contiguous(at, q),
                           .k = contiguous(at + nq, k),
                           .v = contiguous(at + nq + nk, k),
                           .scale = 0.125,
                           .causal = true};
    attention_fwd_ref(&p, o, lse);
    free(at);
}

static void set_all(num_tensor *t, const double *from)
{
    for (int64_t i = 0, n = num_elements(t); i < n; i++)
        num_set_at(t, i, from[i]);
}

static void half_layer(num_subject *s, const half_inputs *in, const char *config)
{
    attention_case c = {1,
                        in->heads,
                        in->key_heads,
                        LONG,
                        LONG,
                        WIDE,
                        WIDE,
                        .causal = true,
                        .scale = 0.125,
                        .config = config,
                        .type = "f16"};
    int64_t rows = in->heads * LONG;
    double *want = malloc((size_t)(rows * WIDE) * sizeof *want);
    double *naive = malloc((size_t)(rows * WIDE) * sizeof *naive);
    double *lse = malloc((size_t)rows * sizeof *lse),
           *naive_lse = malloc((size_t)rows * sizeof *lse);
    attention_tensors t;

    ck_assert(want && naive && lse && naive_lse);
    answers(in, want, lse);
    for (int64_t i = 0; i < rows; i++)
        naive_lse[i] = naive_half_row(in, i / LONG, i % LONG, naive + i * WIDE);
    attention_alloc(&t, &c, NUM_AT_END);
    set_all(&t.q, in->q);
    set_all(&t.k, in->k);
    set_all(&t.v, in->v);
    attention_launch(s, &c, &t);
    judge(s, &t.o, want, worst_of(naive, want, rows * WIDE));
    judge(s, &t.lse, lse, worst_of(naive_lse, lse, rows));
    attention_free(&t);
    free(want);
    free(naive);
    free(lse);
    free(naive_lse);
}

/* From a folder: what ships has one group of heads, TW_TEST_DATA may have all. */
static void half_from(num_subject *s, const char *folder, const char *config)
{
    npy_file f[3];
    char path[512];

    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/smollm2_large_%c.npy", folder, "qkv"[i]);
        f[i] = npy_read(path);
    }
    half_inputs in = {f[0].extent[1], f[1].extent[1], f[0].at, f[1].at, f[2].at};
    ck_assert(f[0].extent[2] == LONG && f[0].extent[3] == WIDE);
    half_layer(s, &in, config);
    for (int i = 0; i < 3; i++)
        npy_free(&f[i]);
}

static const struct {
    const char *spec, *target;
} half_device[] = {{"cpu", NULL}, {"cpu:2", "cpu-avx2"}, {"cpu:2", "cpu-generic"}};
enum { HALF_DEVICES = sizeof half_device / sizeof *half_device };

START_TEST(smollm2_large)
{
    const char *all = getenv("TW_TEST_DATA");
    num_subject s;

    if (!subject_open(&s, half_device[_i].spec, half_device[_i].target, "attention_fwd", 0))
        return;
    half_from(&s, "tests/data", NULL);
    if (all)
        half_from(&s, all, NULL);
    subject_close(&s);
}
END_TEST

/* The answers in the files are those of the reference: another program computed them. */
START_TEST(the_reference_agrees_with_the_stored_answers)
{
    npy_file q = npy_read("tests/data/minilm_padded_q.npy");
    npy_file k = npy_read("tests/data/minilm_padded_k.npy");
    npy_file v = npy_read("tests/data/minilm_padded_v.npy");
    npy_file o = npy_read("tests/data/minilm_padded_o.npy");
    npy_file length = npy_read("tests/data/minilm_padded_lengths.npy");
    attention_case c = {3, HEADS, HEADS, PADDED, PADDED, DIM, DIM, .scale = 0};
    double *got = malloc(HEADS * PADDED * DIM * sizeof *got), lse[HEADS * PADDED];
    attention_tensors t;

    ck_assert_ptr_nonnull(got);
    attention_alloc(&t, &c, NUM_AT_END);
    fill(&t.q, q.at);
    fill(&t.k, k.at);
    fill(&t.v, v.at);
    for (int64_t b = 0; b < 3; b++) {
        int64_t stride[4] = {0, PADDED * DIM, DIM, 1}, n = (int64_t)length.at[b];
        int64_t first = b * HEADS * PADDED * DIM;
        attention_problem p = {.q = {t.q.base + first, {1, HEADS, PADDED, DIM}, {0}},
                               .k = {t.k.base + first, {1, HEADS, n, DIM}, {0}},
                               .v = {t.v.base + first, {1, HEADS, n, DIM}, {0}},
                               .scale = 1.0 / sqrt(DIM)};

        memcpy(p.q.stride, stride, sizeof stride);
        memcpy(p.k.stride, stride, sizeof stride);
        memcpy(p.v.stride, stride, sizeof stride);
        attention_fwd_ref(&p, got, lse);
        for (int64_t i = 0; i < HEADS * PADDED * DIM; i++)
            ck_assert_double_eq_tol(got[i], o.at[first + i], 1e-6 * (1.0 + fabs(got[i])));
    }
    npy_free(&q);
    npy_free(&k);
    npy_free(&v);
    npy_free(&o);
    npy_free(&length);
    attention_free(&t);
    free(got);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("real inputs");
    TCase *t = tcase_create("models");

    tcase_add_test(t, the_reference_agrees_with_the_stored_answers);
    tcase_add_loop_test(t, smollm2_small, 0, DEVICES);
    tcase_add_loop_test(t, minilm_padded, 0, DEVICES);
    tcase_add_loop_test(t, minilm_in_one_call, 0, DEVICES);
    tcase_add_loop_test(t, smollm2_large, 0, HALF_DEVICES);
    suite_add_tcase(s, t);
    return s;
}
