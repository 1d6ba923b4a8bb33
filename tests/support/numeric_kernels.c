#include "tests/support/numeric_kernels.h"
#include "kernels/kernel_refs.h"
#include "tests/support/numeric_dtype.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double ulp = 0x1p-24;

bool subject_open(num_subject *s, const char *spec, const char *target, const char *name,
                  uint64_t seed)
{
    char path[64];

    memset(s, 0, sizeof *s);
    snprintf(path, sizeof path, "kernels/%s.tw", name);
    if (!num_open(&s->device, spec, target))
        return false;
    s->kernel = num_load(&s->device, path);
    s->options = (tw_launch_options)TW_LAUNCH_OPTIONS_INIT;
    s->random.state = seed;
    num_say("%s on %s, seed %llu\n", name, s->device.label, (unsigned long long)seed);
    return true;
}

void subject_close(num_subject *s)
{
    num_say("%s: %d cases, %d failed, largest error %.2f of its tolerance\n", s->device.label,
            s->cases, s->failures, s->closest);
    fflush(stdout);
    tw_kernel_destroy(s->kernel);
    num_close(&s->device);
    ck_assert_int_gt(s->cases, 0);
    ck_assert_int_eq(s->failures, 0);
}

static ref_tensor ref_of(const num_tensor *t)
{
    ref_tensor r = {.at = t->base};

    memcpy(r.extent, t->extent, sizeof t->extent);
    memcpy(r.stride, t->stride, sizeof t->stride);
    return r;
}

static double *doubles(int64_t n)
{
    double *p = calloc(n > 0 ? (size_t)n : 1, sizeof *p);

    ck_assert_ptr_nonnull(p);
    return p;
}

/* The same values in f32: what references read. */
static void copy_widened(num_tensor *dst, const num_tensor *t)
{
    num_alloc(dst, t->name, t->rank, t->extent, NUM_DENSE, NUM_AT_END);
    for (int64_t i = 0, n = num_elements(t); i < n; i++)
        *num_at(dst, i) = (float)num_value_at(t, i);
}

/* A tensor of the magnitudes of t's elements. */
static void copy_magnitudes(num_tensor *dst, const num_tensor *t)
{
    copy_widened(dst, t);
    for (int64_t i = 0, n = num_elements(t); i < n; i++)
        *num_at(dst, i) = fabsf(*num_at(dst, i));
}

static void count(num_subject *s, bool failed)
{
    s->cases++;
    s->failures += failed;
}

static void launch(num_subject *s, const tw_arg *args, size_t n, const char *config)
{
    tw_launch_options options = s->options;
    char both[128];

    snprintf(both, sizeof both, "%s%s%s", config ? config : "", config && s->schedule ? "," : "",
             s->schedule ? s->schedule : "");
    options.config = both[0] ? both : NULL;
    num_launch(&s->device, s->kernel, args, n, &options);
}

/* ---- attention ---- */

void attention_alloc(attention_tensors *t, const attention_case *c, enum num_place place)
{
    const num_dtype *T = num_dtype_named(c->type ? c->type : "f32");

    num_alloc_as(&t->q, "q", T, 4, (int64_t[]){c->B, c->H, c->M, c->D}, c->q, place);
    num_alloc_as(&t->k, "k", T, 4, (int64_t[]){c->B, c->HK, c->N, c->D}, c->k, place);
    num_alloc_as(&t->v, "v", T, 4, (int64_t[]){c->B, c->HK, c->N, c->DV}, c->v, place);
    num_alloc_as(&t->o, "o", T, 4, (int64_t[]){c->B, c->H, c->M, c->DV}, c->o, place);
    num_alloc(&t->lse, "lse", 3, (int64_t[]){c->B, c->H, c->M}, c->o, place);
}

void attention_free(attention_tensors *t)
{
    num_free(&t->q);
    num_free(&t->k);
    num_free(&t->v);
    num_free(&t->o);
    num_free(&t->lse);
}

void attention_launch(num_subject *s, const attention_case *c, attention_tensors *t)
{
    bool has_keys = c->extra && c->extra->has_keys;
    tw_arg args[13];
    size_t n = 0;

    num_protect(&t->q);
    num_protect(&t->k);
    num_protect(&t->v);
    args[n++] = TW_TENSOR("q", &t->q.dl);
    if (!has_keys) {
        args[n++] = TW_TENSOR("k", &t->k.dl);
        args[n++] = TW_TENSOR("v", &t->v.dl);
    }
    args[n++] = TW_TENSOR("o", &t->o.dl);
    args[n++] = TW_TENSOR("lse", &t->lse.dl);
    args[n++] = TW_BOOL("CAUSAL", c->causal);
    if (c->scale != 0.0)
        args[n++] = TW_F32("scale", (double)(float)c->scale);
    if (c->has_offset)
        args[n++] = TW_INT("offset", c->offset);
    for (size_t i = 0; c->extra && i < c->extra->nargs; i++)
        args[n++] = c->extra->args[i];
    launch(s, args, n, c->config);
}

static double row_length(const num_tensor *t, int64_t row)
{
    int64_t n = t->extent[t->rank - 1];
    double squares = 0.0;

    for (int64_t j = 0; j < n; j++)
        squares += num_value_at(t, row * n + j) * num_value_at(t, row * n + j);
    return sqrt(squares);
}

static double longest_row(const num_tensor *t)
{
    int64_t n = t->extent[t->rank - 1], rows = n ? num_elements(t) / n : 0;
    double longest = 0.0;

    for (int64_t i = 0; i < rows; i++)
        longest = fmax(longest, row_length(t, i));
    return longest;
}

/* What the reference reads. */
typedef struct attention_inputs {
    num_tensor q, k, v, size_v;
} attention_inputs;

static void copy_inputs(attention_inputs *in, const attention_tensors *t)
{
    copy_widened(&in->q, &t->q);
    copy_widened(&in->k, &t->k);
    copy_widened(&in->v, &t->v);
    copy_magnitudes(&in->size_v, &t->v);
}

static void free_inputs(attention_inputs *in)
{
    num_free(&in->q);
    num_free(&in->k);
    num_free(&in->v);
    num_free(&in->size_v);
}

static attention_problem problem_of(const attention_case *c, const attention_inputs *in)
{
    double scale = c->scale != 0.0 ? (double)(float)c->scale : 1.0 / sqrt((double)c->D);

    return (attention_problem){.q = ref_of(&in->q),
                               .k = ref_of(&in->k),
                               .v = ref_of(&in->v),
                               .scale = scale,
                               .causal = c->causal,
                               .offset = c->has_offset ? c->offset : c->N - c->M,
                               .variant = c->extra ? c->extra->variant : NULL};
}

static double largest(const num_tensor *t)
{
    double most = 0.0;

    for (int64_t i = 0, n = num_elements(t); i < n; i++)
        most = fmax(most, fabs(num_value_at(t, i)));
    return most;
}

/* What 16 bits add to tolerances. */
typedef struct narrow_parts {
    double part, rest; /* of o: so much of what it is, and the rest */
    double lse;
} narrow_parts;

static narrow_parts narrow_tolerance(const attention_case *c, const attention_tensors *t,
                                     bool rounded_sums)
{
    double w = ldexp(1.0, -t->q.type->mantissa - 1), least = (double)c->N * 0x1p-25;

    if (t->q.type->bits != 16)
        return (narrow_parts){0};
    if (!rounded_sums)
        return (narrow_parts){3.0 * w, least * largest(&t->v), 0.0};
    return (narrow_parts){4.0 * w, 2.0 * least * largest(&t->v), w * (1.0 + w) + least};
}

/* o and lse come in with sum p |v| and lse, and leave with tolerances. */
static void attention_tolerances(const attention_case *c, const attention_tensors *t, double scale,
                                 narrow_parts narrow, double *o, double *lse)
{
    double longest_key = longest_row(&t->k), sum = sqrt((double)c->N) + 8.0;

    for (int64_t i = 0, n = num_elements(&t->lse); i < n; i++) {
        double size = scale * row_length(&t->q, i) * longest_key;
        double score = (sqrt((double)c->D) + 4.0) * size + (c->extra ? c->extra->size : 0.0);

        lse[i] = 2.0 * ulp * (score + sum + fabs(lse[i])) + narrow.lse;
        for (int64_t d = 0; d < c->DV; d++) {
            double part = 2.0 * ulp * (2.0 * score + sum) + narrow.part;
            o[i * c->DV + d] = o[i * c->DV + d] * part + narrow.rest;
        }
    }
}

static void describe_attention(char *text, size_t size, const num_subject *s,
                               const attention_case *c)
{
    char offset[32] = "";

    if (c->has_offset)
        snprintf(offset, sizeof offset, " offset=%lld", (long long)c->offset);
    snprintf(text, size,
             "%s %s: B=%lld H=%lld HK=%lld M=%lld N=%lld D=%lld DV=%lld%s%s layouts=%d%d%d%d %s",
             s->device.label, c->type ? c->type : "f32", (long long)c->B, (long long)c->H,
             (long long)c->HK, (long long)c->M, (long long)c->N, (long long)c->D, (long long)c->DV,
             c->causal ? " causal" : "", offset, (int)c->q, (int)c->k, (int)c->v, (int)c->o,
             c->config ? c->config : "");
}

void attention_compare(num_subject *s, const attention_case *c, attention_tensors *t)
{
    int64_t no = num_elements(&t->o), nlse = num_elements(&t->lse);
    double *o = doubles(no), *lse = doubles(nlse), *o_tol = doubles(no), *lse_tol = doubles(nlse);
    attention_inputs in;
    char what[256];

    copy_inputs(&in, t);
    attention_problem p = problem_of(c, &in);
    attention_fwd_ref(&p, o, lse);
    p.v = ref_of(&in.size_v);
    attention_fwd_ref(&p, o_tol, lse_tol);
    free_inputs(&in);
    attention_tolerances(c, t, p.scale, narrow_tolerance(c, t, s->rounded_sums), o_tol, lse_tol);
    attention_launch(s, c, t);
    describe_attention(what, sizeof what, s, c);
    bool failed = num_compare(&t->o, o, o_tol, what, &s->closest) != 0;
    failed |= num_compare(&t->lse, lse, lse_tol, what, &s->closest) != 0;
    failed |= !num_padding_intact(&t->o) || !num_padding_intact(&t->lse);
    count(s, failed);
    free(o);
    free(lse);
    free(o_tol);
    free(lse_tol);
}

void attention_check(num_subject *s, const attention_case *given, enum num_place place)
{
    double sigma = given->sigma != 0.0 ? given->sigma : 1.0;
    attention_case narrow = *given, *c = &narrow;
    attention_tensors t;

    narrow.type = given->type ? given->type : s->type;
    attention_alloc(&t, c, place);
    num_fill(&t.q, &s->random, sigma);
    num_fill(&t.k, &s->random, sigma);
    num_fill(&t.v, &s->random, 1.0);
    attention_compare(s, c, &t);
    attention_free(&t);
}

/* ---- matmul ---- */

/* What rounding the result to 16 bits adds, as a part of it. */
static double rounding_of(const num_dtype *type)
{
    return type->bits == 16 ? 1.01 * ldexp(1.0, -type->mantissa - 1) : 0.0;
}

static const num_dtype *type_of(const num_subject *s)
{
    return num_dtype_named(s->type ? s->type : "f32");
}

void matmul_check(num_subject *s, int64_t m, int64_t n, int64_t k, const enum num_layout layout[3],
                  const char *config, enum num_place place)
{
    const num_dtype *T = type_of(s);
    double *want = doubles(m * n), *tolerance = doubles(m * n);
    num_tensor a, b, c, wide_a, wide_b, size_a, size_b;
    char what[160];

    num_alloc_as(&a, "a", T, 2, (int64_t[]){m, k}, layout[0], place);
    num_alloc_as(&b, "b", T, 2, (int64_t[]){k, n}, layout[1], place);
    num_alloc_as(&c, "c", T, 2, (int64_t[]){m, n}, layout[2], place);
    num_fill(&a, &s->random, 1.0);
    num_fill(&b, &s->random, 1.0);
    num_protect(&a);
    num_protect(&b);
    copy_widened(&wide_a, &a);
    copy_widened(&wide_b, &b);
    copy_magnitudes(&size_a, &a);
    copy_magnitudes(&size_b, &b);
    ref_tensor ra = ref_of(&wide_a), rb = ref_of(&wide_b), rsa = ref_of(&size_a);
    ref_tensor rsb = ref_of(&size_b);
    matmul_ref(&ra, &rb, want);
    matmul_ref(&rsa, &rsb, tolerance);
    for (int64_t i = 0; i < m * n; i++)
        tolerance[i] = tolerance[i] * 2.0 * ulp * (sqrt((double)k) + 2.0) +
                       fabs(want[i]) * rounding_of(T);
    launch(s, (tw_arg[]){TW_TENSOR("a", &a.dl), TW_TENSOR("b", &b.dl), TW_TENSOR("c", &c.dl)}, 3,
           config);
    snprintf(what, sizeof what, "%s %s: M=%lld N=%lld K=%lld layouts=%d%d%d %s", s->device.label,
             T->name, (long long)m, (long long)n, (long long)k, (int)layout[0], (int)layout[1],
             (int)layout[2], config ? config : "");
    bool failed = num_compare(&c, want, tolerance, what, &s->closest) != 0;
    count(s, failed || !num_padding_intact(&c));
    num_tensor *const all[] = {&a, &b, &c, &wide_a, &wide_b, &size_a, &size_b};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        num_free(all[i]);
    free(want);
    free(tolerance);
}

/* ---- softmax ---- */

/* Below the least normal number a target may give 0; of 16 bits, steps are that coarse. */
static double least_of(const num_dtype *type)
{
    return type->bits == 16 ? fmax(ldexp(1.0, type->least_exponent - type->mantissa), 0x1p-126)
                            : 0x1p-126;
}

static double row_range(const num_tensor *x, int64_t row)
{
    int64_t n = x->extent[1];
    double low = INFINITY, high = -INFINITY;

    for (int64_t j = 0; j < n; j++) {
        double v = (double)*num_at(x, row * n + j);

        if (isfinite(v)) {
            low = v < low ? v : low;
            high = v > high ? v : high;
        }
    }
    return high > low ? high - low : 0.0;
}

void softmax_check(num_subject *s, int64_t m, int64_t n, double sigma,
                   const enum num_layout layout[2], const char *config, enum num_place place)
{
    const num_dtype *T = type_of(s);
    double *want = doubles(m * n), *tolerance = doubles(m * n);
    num_tensor x, y, wide;
    char what[160];

    num_alloc_as(&x, "x", T, 2, (int64_t[]){m, n}, layout[0], place);
    num_alloc_as(&y, "y", T, 2, (int64_t[]){m, n}, layout[1], place);
    num_fill(&x, &s->random, sigma);
    num_protect(&x);
    copy_widened(&wide, &x);
    ref_tensor rx = ref_of(&wide);
    softmax_ref(&rx, want);
    for (int64_t i = 0; i < m; i++) {
        double relative = 2.0 * ulp * (2.0 * row_range(&wide, i) + sqrt((double)n) + 8.0);

        for (int64_t j = 0; j < n; j++)
            tolerance[i * n + j] = (relative + rounding_of(T)) * want[i * n + j] + least_of(T);
    }
    launch(s, (tw_arg[]){TW_TENSOR("x", &x.dl), TW_TENSOR("y", &y.dl)}, 2, config);
    snprintf(what, sizeof what, "%s %s: M=%lld N=%lld layouts=%d%d %s", s->device.label, T->name,
             (long long)m, (long long)n, (int)layout[0], (int)layout[1], config ? config : "");
    bool failed = num_compare(&y, want, tolerance, what, &s->closest) != 0;
    count(s, failed || !num_padding_intact(&y));
    num_free(&x);
    num_free(&y);
    num_free(&wide);
    free(want);
    free(tolerance);
}

/* ---- vector add ---- */

void vector_add_check(num_subject *s, int64_t n, const enum num_layout layout[3],
                      const char *config, enum num_place place)
{
    double *want = doubles(n), *tolerance = doubles(n);
    num_tensor a, b, c;
    char what[96];

    num_alloc(&a, "a", 1, &n, layout[0], place);
    num_alloc(&b, "b", 1, &n, layout[1], place);
    num_alloc(&c, "c", 1, &n, layout[2], place);
    num_fill(&a, &s->random, 1.0);
    num_fill(&b, &s->random, 1e6);
    num_protect(&a);
    num_protect(&b);
    ref_tensor ra = ref_of(&a), rb = ref_of(&b);
    vector_add_ref(&ra, &rb, want);
    for (int64_t i = 0; i < n; i++)
        want[i] = (float)want[i];
    launch(s, (tw_arg[]){TW_TENSOR("a", &a.dl), TW_TENSOR("b", &b.dl), TW_TENSOR("c", &c.dl)}, 3,
           config);
    snprintf(what, sizeof what, "%s: N=%lld layouts=%d%d%d %s", s->device.label, (long long)n,
             (int)layout[0], (int)layout[1], (int)layout[2], config ? config : "");
    bool failed = num_compare(&c, want, tolerance, what, &s->closest) != 0;
    count(s, failed || !num_padding_intact(&c));
    num_free(&a);
    num_free(&b);
    num_free(&c);
    free(want);
    free(tolerance);
}
