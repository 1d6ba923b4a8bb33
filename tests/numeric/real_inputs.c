/* attention_fwd on what two language models hand to it: the error in f32 is at most twice that of
 * the naive formula in f32. */
#include "kernels/kernel_refs.h"
#include "tests/support/npy_file.h"
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
    {"interp", NULL, NULL, false},        {"interp", NULL, NULL, true},
    {"cpu", NULL, NULL, false},           {"cpu", NULL, "BLOCK_M=96,BLOCK_N=48", false},
    {"cpu:1", "cpu-avx512", NULL, false}, {"cpu:1", "cpu-avx2", NULL, false},
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
    suite_add_tcase(s, t);
    return s;
}
