/* kernels/variants against their references: on the interpreter, also when it visits every block,
 * and on each code path of the CPU. Shapes, masks and layouts are drawn at random; what is compiled
 * (head dimensions, blocks, dtypes, causal or not) is one of a few sets. TW_TEST_LONG: ten times as
 * many. */
#include "kernels/kernel_refs.h"
#include "tests/support/numeric_dtype.h"
#include "tests/support/numeric_kernels.h"
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_B = 2, MAX_H = 4, MAX_N = 300 };

static const struct {
    const char *spec, *target;
    bool low;
    int64_t most; /* rows and columns */
    int count;
} device[] = {
    {"interp", NULL, false, 90, 3},          {"interp", NULL, true, 90, 3},
    {"cpu", NULL, false, MAX_N, 8},          {"cpu:1", "cpu-avx2", false, MAX_N, 4},
    {"cpu:1", "cpu-generic", false, 150, 4},
};
enum { DEVICES = sizeof device / sizeof *device, INTERPRETERS = 2 };

/* ---- inputs of a variant ---- */

typedef struct inputs {
    attention_variant variant;
    attention_extra extra;
    int32_t member[MAX_B], token[MAX_B * MAX_N];
    float head[MAX_H];
    num_tensor bias, k, v, k_scale, v_scale; /* those that have memory are freed */
    int64_t extent[2][2];
    DLTensor dl[2];
    int vectors;
} inputs;

static void give_vector(inputs *in, const char *name, void *at, uint8_t code, int64_t n, int64_t m)
{
    int64_t *extent = in->extent[in->vectors];
    DLTensor *dl = &in->dl[in->vectors++];

    extent[0] = n;
    extent[1] = m;
    *dl = (DLTensor){at, {kDLCPU, 0}, m ? 2 : 1, {code, 32, 1}, extent, NULL, 0};
    in->extra.args[in->extra.nargs++] = TW_TENSOR(name, dl);
}

static void make_window(inputs *in, attention_case *c, num_random *r)
{
    in->variant.window = num_below(r, 4) ? 1 + num_below(r, c->N + 10) : 1 << 30;
    in->variant.causal = c->causal;
    in->extra.args[in->extra.nargs++] = TW_INT("window", in->variant.window);
}

static void make_alibi(inputs *in, attention_case *c, num_random *r)
{
    for (int64_t h = 0; h < c->H; h++)
        in->head[h] = ldexpf(1.0f, -(int)num_below(r, 9));
    in->variant.head = in->head;
    in->extra.size = (double)(c->M + c->N);
    give_vector(in, "slopes", in->head, kDLFloat, c->H, 0);
}

static void make_soft_cap(inputs *in, attention_case *c, num_random *r)
{
    (void)c;
    in->variant.cap = num_below(r, 2) ? 50.0 : 1.5;
    in->extra.size = 2.0 * in->variant.cap;
    if (in->variant.cap != 50.0) /* the default */
        in->extra.args[in->extra.nargs++] = TW_F32("cap", in->variant.cap);
}

static void make_members(inputs *in, const attention_case *c, num_random *r, const char *name)
{
    for (int64_t b = 0; b < c->B; b++)
        in->member[b] = (int32_t)(num_below(r, c->N + 8) - 2);
    in->variant.member = in->member;
    give_vector(in, name, in->member, kDLInt, c->B, 0);
}

static void make_prefix(inputs *in, attention_case *c, num_random *r)
{
    c->causal = false;
    make_members(in, c, r, "prefix");
}

static void make_padded(inputs *in, attention_case *c, num_random *r)
{
    make_members(in, c, r, "lengths");
}

/* Ascending, or in no order. */
static void make_document(inputs *in, attention_case *c, num_random *r)
{
    bool ascending = num_below(r, 3) != 0;

    for (int64_t b = 0; b < c->B; b++) {
        int32_t id = (int32_t)num_below(r, 3) - 1;
        for (int64_t j = 0; j < c->N; j++) {
            id = !ascending ? (int32_t)num_below(r, 4) : num_below(r, 20) ? id : id + 1;
            in->token[b * c->N + j] = id;
        }
    }
    in->variant.token = in->token;
    in->variant.columns = c->N;
    give_vector(in, "document", in->token, kDLInt, c->B, c->N);
}

static void make_sink(inputs *in, attention_case *c, num_random *r)
{
    for (int64_t h = 0; h < c->H; h++)
        in->head[h] = (float)num_below(r, 100) * 0.1f - 5.0f;
    in->variant.head = in->head;
    give_vector(in, "sinks", in->head, kDLFloat, c->H, 0);
}

/* Some elements are -inf; batch, heads, rows or columns may share. */
static void make_bias(inputs *in, attention_case *c, num_random *r)
{
    int64_t extent[4] = {num_below(r, 2) ? 1 : c->B, num_below(r, 2) ? 1 : c->H, c->M, c->N};
    enum num_layout layout = (enum num_layout)num_below(r, NUM_BROADCAST);
    num_tensor *t = &in->bias;

    num_alloc(t, "bias", 4, extent, layout, NUM_AT_END);
    num_fill(t, r, 3.0);
    for (int64_t i = 0, n = num_elements(t); i < n; i++)
        if (num_below(r, 10) == 0)
            *num_at(t, i) = -INFINITY;
    int64_t shared = num_below(r, 4);
    if (shared >= 2) /* rows, columns */
        t->stride[shared] = 0;
    num_protect(t);
    in->variant.bias.at = t->base;
    memcpy(in->variant.bias.extent, t->extent, sizeof t->extent);
    memcpy(in->variant.bias.stride, t->stride, sizeof t->stride);
    in->extra.size = 16.0;
    in->extra.args[in->extra.nargs++] = TW_TENSOR("bias", &t->dl);
}

static void make_nothing(inputs *in, attention_case *c, num_random *r)
{
    (void)in, (void)c, (void)r;
}

static void make_relative(inputs *in, attention_case *c, num_random *r)
{
    int64_t extent[2] = {c->H, 2 * num_below(r, c->N + 4) + 1};
    num_tensor *t = &in->bias;

    num_alloc(t, "bias", 2, extent, num_below(r, 2) ? NUM_DENSE : NUM_PADDED, NUM_AT_END);
    num_fill(t, r, 3.0);
    num_protect(t);
    in->variant.bias.at = t->base;
    memcpy(in->variant.bias.extent, t->extent, sizeof t->extent);
    memcpy(in->variant.bias.stride, t->stride, sizeof t->stride);
    in->extra.size = 16.0;
    in->extra.args[in->extra.nargs++] = TW_TENSOR("bias", &t->dl);
}

static void make_neighborhood(inputs *in, attention_case *c, num_random *r)
{
    int64_t height = 1 + num_below(r, 9), width = 1 + num_below(r, 9);

    c->M = c->N = height * width;
    c->has_offset = false;
    c->offset = 0;
    in->variant.columns = c->N;
    in->variant.width = width;
    in->variant.window = 2 * num_below(r, ((height < width ? height : width) + 1) / 2) + 1;
    in->extra.args[in->extra.nargs++] = TW_INT("width", width);
    in->extra.args[in->extra.nargs++] = TW_INT("window", in->variant.window);
}

/* ---- keys and values that are stored otherwise ---- */

static void make_stored(inputs *in, attention_case *c, num_random *r)
{
    (void)c, (void)r;
    in->extra.has_keys = true;
}

/* The rows of t as i8 with scales; t becomes what those mean. */
static void quantize(num_tensor *t, num_tensor *whole, num_tensor *scale)
{
    int64_t d = t->extent[3], rows = num_elements(t) / d;

    num_alloc_as(whole, t->name, num_dtype_named("i8"), 4, t->extent, NUM_PADDED, NUM_AT_END);
    num_alloc(scale, "scale", 3, t->extent, NUM_DENSE, NUM_AT_END);
    for (int64_t row = 0; row < rows; row++) {
        double most = 0x1p-20;
        for (int64_t i = row * d; i < (row + 1) * d; i++)
            most = fmax(most, fabs(num_value_at(t, i)));
        *num_at(scale, row) = (float)(most / 127.0);
        for (int64_t i = row * d; i < (row + 1) * d; i++) {
            float v = (float)round(num_value_at(t, i) / (double)*num_at(scale, row));
            num_set_at(whole, i, (double)v);
            num_set_at(t, i, (double)(v * *num_at(scale, row)));
        }
    }
}

static void store_quantized(inputs *in, const attention_case *c, attention_tensors *t,
                            num_random *r)
{
    (void)c, (void)r;
    quantize(&t->k, &in->k, &in->k_scale);
    quantize(&t->v, &in->v, &in->v_scale);
    in->extra.args[in->extra.nargs++] = TW_TENSOR("k", &in->k.dl);
    in->extra.args[in->extra.nargs++] = TW_TENSOR("v", &in->v.dl);
    in->extra.args[in->extra.nargs++] = TW_TENSOR("k_scale", &in->k_scale.dl);
    in->extra.args[in->extra.nargs++] = TW_TENSOR("v_scale", &in->v_scale.dl);
}

static void make_paged(inputs *in, attention_case *c, num_random *r)
{
    make_stored(in, c, r);
    make_members(in, c, r, "lengths");
    in->variant.rows = c->M;
    in->variant.causal = c->causal;
}

/* Rows of t go to their slots; all others hold what would spoil every sum. */
static void fill_slots(const inputs *in, const num_tensor *t, num_tensor *pool, int64_t slots)
{
    int64_t heads = t->extent[1], n = t->extent[2], d = t->extent[3];

    num_alloc_as(pool, t->name, t->type, 3, (int64_t[]){slots, heads, d}, NUM_PADDED, NUM_AT_END);
    for (int64_t i = 0; i < slots * heads * d; i++)
        num_set_at(pool, i, (double)NAN);
    for (int64_t i = 0; i < num_elements(t); i++) {
        int64_t j = i / d % n, h = i / d / n % heads, b = i / d / n / heads;
        if (j < in->member[b])
            num_set_at(pool, (in->token[b * n + j] * heads + h) * d + i % d, num_value_at(t, i));
    }
}

/* Slots in no order, of which those beyond a length name nothing or what is no number. */
static void store_paged(inputs *in, const attention_case *c, attention_tensors *t, num_random *r)
{
    int64_t n = c->B * c->N;

    for (int64_t i = 0; i < n; i++) {
        int64_t other = num_below(r, i + 1);
        in->token[i] = in->token[other];
        in->token[other] = (int32_t)i;
    }
    fill_slots(in, &t->k, &in->k, n + 1);
    fill_slots(in, &t->v, &in->v, n + 1);
    for (int64_t i = 0; i < n; i++)
        if (i % c->N >= in->member[i / c->N])
            in->token[i] = (int32_t[]){-1, INT32_MAX, (int32_t)n, in->token[i]}[num_below(r, 4)];
    in->extra.args[in->extra.nargs++] = TW_TENSOR("k", &in->k.dl);
    in->extra.args[in->extra.nargs++] = TW_TENSOR("v", &in->v.dl);
    give_vector(in, "slots", in->token, kDLInt, c->B, c->N);
}

static const struct {
    const char *name;
    const attention_variant *ref;
    void (*make)(inputs *in, attention_case *c, num_random *r);
    void (*store)(inputs *in, const attention_case *c, attention_tensors *t, num_random *r);
} variants[] = {
    {"window", &attention_window_ref, make_window, NULL},
    {"alibi", &attention_alibi_ref, make_alibi, NULL},
    {"soft_cap", &attention_soft_cap_ref, make_soft_cap, NULL},
    {"prefix", &attention_prefix_ref, make_prefix, NULL},
    {"document", &attention_document_ref, make_document, NULL},
    {"padded", &attention_padded_ref, make_padded, NULL},
    {"sink", &attention_sink_ref, make_sink, NULL},
    {"bias", &attention_bias_ref, make_bias, NULL},
    {"rounded", &attention_rounded_ref, make_nothing, NULL},
    {"relative", &attention_relative_ref, make_relative, NULL},
    {"neighborhood", &attention_neighborhood_ref, make_neighborhood, NULL},
    {"quantized", &attention_quantized_ref, make_stored, store_quantized},
    {"paged", &attention_paged_ref, make_paged, store_paged},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

/* ---- cases ---- */

/* What is compiled: few, since a compile takes longer than a case. */
static const struct {
    int64_t D, DV;
    bool causal;
    const char *config, *type;
} compiled[] = {
    {32, 32, false, "BLOCK_M=32,BLOCK_N=32", "f32"},
    {40, 24, true, "BLOCK_M=24,BLOCK_N=40", "f32"},
    {64, 64, true, NULL, "bf16"},
    {16, 16, false, "BLOCK_M=7,BLOCK_N=13", "f16"},
};
enum { COMPILED = sizeof compiled / sizeof *compiled };

static int64_t size_of(num_random *r, int64_t most)
{
    static const int64_t edge[] = {1, 2, 31, 32, 33, 40, 64, 65, 80};

    return num_below(r, 2) ? edge[num_below(r, sizeof edge / sizeof *edge)]
                           : 1 + num_below(r, most);
}

static attention_case draw_case(num_subject *s, int i, int64_t most)
{
    num_random *r = &s->random;
    int64_t groups = 1 + num_below(r, 2), heads = groups * (1 + num_below(r, 2));
    attention_case c =
        attention_sizes(1 + num_below(r, MAX_B), heads, groups, size_of(r, most), size_of(r, most),
                        compiled[i % COMPILED].D, compiled[i % COMPILED].DV);

    c.M = num_below(r, 2) ? c.N : c.M;
    c.causal = compiled[i % COMPILED].causal;
    c.config = compiled[i % COMPILED].config;
    c.type = compiled[i % COMPILED].type;
    c.has_offset = num_below(r, 3) == 0;
    c.offset = c.has_offset ? num_below(r, 2 * c.N) - c.N : c.N - c.M;
    if (i >= COMPILED && num_below(r, 2)) { /* strides that need code of their own are rarer */
        c.q = num_below(r, 2) ? NUM_SWAPPED : NUM_PADDED;
        c.k = num_below(r, 2) ? NUM_SWAPPED : NUM_PADDED;
        c.v = num_below(r, 2) ? NUM_SWAPPED : NUM_PADDED;
        c.o = num_below(r, 2) ? NUM_SWAPPED : NUM_PADDED;
    }
    return c;
}

/* Rows of k and v that nobody sees hold what would spoil every sum. */
static void spoil_hidden_rows(const inputs *in, const attention_case *c, attention_tensors *t)
{
    for (int64_t b = 0; b < c->B; b++)
        for (int64_t h = 0; h < c->HK; h++)
            for (int64_t j = 0; j < c->N; j++) {
                int64_t row = (b * c->HK + h) * c->N + j;
                if (j < in->member[b])
                    continue;
                for (int64_t d = 0; d < c->D; d++)
                    num_set_at(&t->k, row * c->D + d, (double)NAN);
                for (int64_t d = 0; d < c->DV; d++)
                    num_set_at(&t->v, row * c->DV + d, (double)NAN);
            }
}

static void run_case(num_subject *s, int variant, attention_case c)
{
    inputs in = {.variant = *variants[variant].ref};
    attention_tensors t;

    variants[variant].make(&in, &c, &s->random);
    in.variant.offset = c.offset;
    in.extra.variant = &in.variant;
    c.extra = &in.extra;
    attention_alloc(&t, &c, NUM_AT_END);
    num_fill(&t.q, &s->random, 1.0);
    num_fill(&t.k, &s->random, 1.0);
    num_fill(&t.v, &s->random, 1.0);
    if (variants[variant].make == make_padded)
        spoil_hidden_rows(&in, &c, &t);
    if (variants[variant].store)
        variants[variant].store(&in, &c, &t, &s->random);
    attention_compare(s, &c, &t);
    attention_free(&t);
    num_tensor *const own[] = {&in.bias, &in.k, &in.v, &in.k_scale, &in.v_scale};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (own[i]->map)
            num_free(own[i]);
}

START_TEST(a_variant)
{
    int variant = _i / DEVICES, d = _i % DEVICES;
    char name[64];
    num_subject s;

    snprintf(name, sizeof name, "variants/attention_%s", variants[variant].name);
    if (d < num_first(INTERPRETERS) ||
        !subject_open(&s, device[d].spec, device[d].target, name, 9000 + (uint64_t)_i))
        return;
    s.options.running_max_low = device[d].low;
    s.rounded_sums = variants[variant].ref == &attention_rounded_ref;
    for (int i = 0, n = num_count(device[d].count); i < n; i++)
        run_case(&s, variant, draw_case(&s, i, device[d].most));
    subject_close(&s);
}
END_TEST

/* A bias that hides the first blocks of keys by its size, not by -inf: no rounding of it shows. */
static void hide_by_size(num_subject *s, const char *type, float bias)
{
    const int64_t extent[4] = {1, 1, 40, 128};
    attention_case c = attention_sizes(1, 2, 1, extent[2], extent[3], 16, 16);
    inputs in = {.variant = attention_bias_ref, .extra = {.size = 16.0, .nargs = 1}};
    attention_tensors t;

    num_alloc(&in.bias, "bias", 4, extent, NUM_DENSE, NUM_AT_END);
    num_fill(&in.bias, &s->random, 3.0);
    for (int64_t i = 0, n = num_elements(&in.bias); i < n; i++)
        if (i % extent[3] < 64)
            *num_at(&in.bias, i) = bias;
    in.variant.bias.at = in.bias.base;
    memcpy(in.variant.bias.extent, in.bias.extent, sizeof in.bias.extent);
    memcpy(in.variant.bias.stride, in.bias.stride, sizeof in.bias.stride);
    in.extra.args[0] = TW_TENSOR("bias", &in.bias.dl);
    in.extra.variant = &in.variant;
    c.extra = &in.extra;
    c.type = type;
    c.config = "BLOCK_M=32,BLOCK_N=32";
    attention_alloc(&t, &c, NUM_AT_END);
    num_fill(&t.q, &s->random, 1.0);
    num_fill(&t.k, &s->random, 1.0);
    num_fill(&t.v, &s->random, 1.0);
    attention_compare(s, &c, &t);
    attention_free(&t);
    num_free(&in.bias);
}

START_TEST(a_bias_that_hides_by_its_size)
{
    static const char *const type[] = {"f32", "f16", "bf16"};
    static const float bias[] = {-1e9f, -1e30f, -FLT_MAX};
    num_subject s;

    if (_i < num_first(INTERPRETERS) ||
        !subject_open(&s, device[_i].spec, device[_i].target, "variants/attention_bias", 9900))
        return;
    s.options.running_max_low = device[_i].low;
    for (int i = 0; i < 9; i++)
        hide_by_size(&s, type[i / 3], bias[i % 3]);
    subject_close(&s);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("variants of attention");
    TCase *t = tcase_create("random cases");

    tcase_add_loop_test(t, a_variant, 0, VARIANTS * DEVICES);
    tcase_add_loop_test(t, a_bias_that_hides_by_its_size, 0, DEVICES);
    suite_add_tcase(s, t);
    return s;
}
