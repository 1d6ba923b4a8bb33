#include "tuner/compare.h"
#include "compiler/ir/element.h"
#include <math.h>
#include <string.h>

/* A few hundred roundings of the dtype: dots of some thousand terms reordered, probabilities
 * rounded to the dtype on the way. Real mistakes are of the size of the values. */
double compare_tolerance(enum dtype t)
{
    switch (t) {
    case DT_BF16:
        return 4e-2;
    case DT_F16:
        return 1e-2;
    case DT_F32:
        return 2e-4;
    case DT_F64:
        return 1e-9;
    case DT_I1:
    case DT_I8:
    case DT_I16:
    case DT_I32:
    case DT_I64:
    case DT_U8:
    case DT_U16:
    case DT_U32:
    case DT_U64:
    case DT_COUNT:
        break;
    }
    return 0.0;
}

double element_value(enum dtype t, const void *p)
{
    ir_scalar v = element_read(t, p);

    if (dtype_is_float(t))
        return v.f;
    return t == DT_U64 ? (double)(uint64_t)v.i : (double)v.i;
}

/* ---- runs of elements ----------------------------------------------------------------------- */

/* Outputs have tens of millions of elements, most of them equal to the last bit, and a tuning of
 * seconds compares them several times: whatever lies one after the other is looked at in blocks. */
#define BLOCK 64
#define SAMPLED ((int64_t)1 << 20) /* elements that a root mean square is taken of */
#define PART 256                   /* elements of a row that one is taken of */

typedef struct comparison {
    const compare_view *v;
    size_t bytes;
    const char *got, *want, *initial;
    int outer;     /* dimensions that are walked over; of the others all elements are one run */
    int64_t run;   /* elements of it */
    int64_t at[VIEW_MAX_RANK], offset; /* where the run begins, in elements */
    double relative, absolute;         /* absolute: below 0 until it is needed */
    int64_t part;                      /* of a row whose mean square is in part_rms; -1: none */
    double part_rms;
    uint64_t exponent, steps;          /* of is_close */
    int64_t compared;
    mismatch *out;
} comparison;

static void find_runs(comparison *c)
{
    const compare_view *v = c->v;

    c->run = 1;
    for (c->outer = v->rank; c->outer > 0; c->outer--) {
        int d = c->outer - 1;
        if (v->stride[d] != c->run && v->extent[d] != 1)
            return;
        c->run *= v->extent[d];
    }
}

static bool next_run(comparison *c)
{
    for (int i = c->outer; i-- > 0;) {
        c->offset += c->v->stride[i];
        if (++c->at[i] < c->v->extent[i])
            return true;
        c->offset -= c->at[i] * c->v->stride[i];
        c->at[i] = 0;
    }
    return false;
}

static const char *element(const comparison *c, const char *base, int64_t k)
{
    return base + (c->offset + k) * (int64_t)c->bytes;
}

/* Of n elements from the k-th of the run on. */
static bool same(const comparison *c, const char *base, int64_t k, int64_t n)
{
    return memcmp(element(c, c->want, k), element(c, base, k), (size_t)n * c->bytes) == 0;
}

/* One element; no dtype has more than 64 bits. */
static uint64_t bits(const comparison *c, const char *base, int64_t k)
{
    const char *p = element(c, base, k);
    uint64_t all = 0;

    switch (c->bytes) {
    case 1:
        return (unsigned char)*p;
    case 2:
        memcpy(&all, p, 2);
        return all;
    case 4:
        memcpy(&all, p, 4);
        return all;
    default:
        memcpy(&all, p, 8);
        return all;
    }
}

/* Does none of them count? */
static bool is_ignored(const comparison *c, int64_t k, int64_t n)
{
    return c->initial && same(c, c->initial, k, n);
}

/* ---- tolerance ------------------------------------------------------------------------------ */

typedef struct mean_square {
    double sum;
    int64_t n;
} mean_square;

static void add_block(const comparison *c, int64_t k, int64_t n, mean_square *m)
{
    for (int64_t i = k; i < k + n; i++) {
        double x = element_value(c->v->dtype, element(c, c->want, i));
        if (is_ignored(c, i, 1) || !isfinite(x))
            continue;
        m->sum += x * x;
        m->n++;
    }
}

/* Of all elements that count, or of blocks that are spread evenly over a run. */
static double root_mean_square(const comparison *of)
{
    comparison c = *of;
    int64_t step = c.initial || c.run <= SAMPLED ? BLOCK : BLOCK * (c.run / SAMPLED);
    mean_square m = {0.0, 0};

    c.offset = 0;
    memset(c.at, 0, sizeof c.at);
    do {
        for (int64_t k = 0; k < c.run; k += step) {
            int64_t n = c.run - k < BLOCK ? c.run - k : BLOCK;
            if (!is_ignored(&c, k, n))
                add_block(&c, k, n, &m);
        }
    } while (next_run(&c));
    return m.n ? sqrt(m.sum / (double)m.n) : 0.0;
}

/* Of the part of its row, along the last dimension, that the k-th element of the run is in. */
static double part_mean_square(comparison *c, int64_t k)
{
    const compare_view *v = c->v;
    bool strided = c->outer == v->rank; /* the run is one element */
    int64_t step = strided ? v->stride[v->rank - 1] : 1;
    int64_t row = strided ? c->at[v->rank - 1] : k % v->extent[v->rank - 1];
    int64_t first = k - row % PART * step, left = v->extent[v->rank - 1] - (row - row % PART);
    mean_square m = {0.0, 0};

    if (c->part == c->offset + first)
        return c->part_rms;
    for (int64_t i = 0; i < left && i < PART; i++)
        add_block(c, first + i * step, 1, &m);
    c->part = c->offset + first;
    c->part_rms = m.n ? sqrt(m.sum / (double)m.n) : 0.0;
    return c->part_rms;
}

static bool agree(comparison *c, int64_t k, double got, double want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got))
        return isinf(want) && isinf(got) && signbit(want) == signbit(got);
    double off = fabs(got - want);
    if (off <= c->relative * fabs(want))
        return true;
    if (c->absolute < 0.0)
        c->absolute = c->relative * root_mean_square(c);
    return off <= c->absolute || (c->v->rank && off <= c->relative * part_mean_square(c, k));
}

/* Floats of the same sign that are so few steps apart are within the relative tolerance; neither
 * may be subnormal, infinite or NaN. This is asked of most elements that differ. */
static void prepare_close(comparison *c)
{
    enum dtype t = c->v->dtype;
    int fraction = t == DT_BF16 ? 7 : t == DT_F16 ? 10 : t == DT_F32 ? 23 : 52;

    if (c->relative <= 0.0)
        return;
    c->exponent = (UINT64_C(1) << (8 * c->bytes - 1)) - (UINT64_C(1) << fraction);
    c->steps = (uint64_t)(c->relative * (double)(UINT64_C(1) << fraction));
}

static bool is_close(const comparison *c, uint64_t x, uint64_t y)
{
    uint64_t steps = x > y ? x - y : y - x, sign = (x ^ y) >> (8 * c->bytes - 1);
    uint64_t ex = x & c->exponent, ey = y & c->exponent;

    return steps <= c->steps && sign == 0 && ex != 0 && ey != 0 && ex != c->exponent &&
           ey != c->exponent;
}

/* ---- elements ------------------------------------------------------------------------------- */

static void set_index(comparison *c, int64_t k)
{
    memcpy(c->out->index, c->at, sizeof c->at);
    for (int d = c->v->rank - 1; d >= c->outer; d--) {
        c->out->index[d] = k % c->v->extent[d];
        k /= c->v->extent[d];
    }
}

/* True when the k-th differs. */
static bool differs(comparison *c, int64_t k)
{
    mismatch *out = c->out;

    if (is_ignored(c, k, 1))
        return false;
    c->compared++;
    uint64_t x = bits(c, c->got, k), y = bits(c, c->want, k);
    if (x == y || is_close(c, x, y))
        return false;
    out->got = element_value(c->v->dtype, element(c, c->got, k));
    out->want = element_value(c->v->dtype, element(c, c->want, k));
    out->found = c->relative <= 0.0 || !agree(c, k, out->got, out->want);
    if (out->found)
        set_index(c, k);
    return out->found;
}

static bool run_differs(comparison *c)
{
    for (int64_t k = 0; k < c->run; k += BLOCK) {
        int64_t n = c->run - k < BLOCK ? c->run - k : BLOCK;
        if (is_ignored(c, k, n))
            continue;
        if (!c->initial && same(c, c->got, k, n)) {
            c->compared += n;
            continue;
        }
        for (int64_t i = k; i < k + n; i++)
            if (differs(c, i))
                return true;
    }
    return false;
}

void compare_views(const compare_view *v, const void *got, const void *want, const void *initial,
                   mismatch *out, int64_t *compared)
{
    comparison c = {.v = v,
                    .bytes = (size_t)dtype_bytes(v->dtype),
                    .got = got,
                    .want = want,
                    .initial = initial,
                    .relative = compare_tolerance(v->dtype),
                    .absolute = -1.0,
                    .part = -1,
                    .out = out};
    bool empty = false;

    memset(out, 0, sizeof *out);
    for (int i = 0; i < v->rank; i++)
        empty = empty || v->extent[i] <= 0;
    find_runs(&c);
    prepare_close(&c);
    while (!empty && !run_differs(&c) && next_run(&c))
        ;
    if (compared)
        *compared = c.compared;
}
