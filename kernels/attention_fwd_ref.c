#include "kernels/kernel_refs.h"
#include <math.h>

static const float *row_of(const ref_tensor *t, int64_t b, int64_t h, int64_t i)
{
    return t->at + b * t->stride[0] + h * t->stride[1] + i * t->stride[2];
}

/* How many columns row i sees: the first so many. */
static int64_t columns_seen(const attention_problem *p, int64_t i)
{
    int64_t n = p->k.extent[2], last = i + p->offset + 1;

    if (!p->causal || last > n)
        return n;
    return last < 0 ? 0 : last;
}

static double score(const attention_problem *p, const float *q, const float *k)
{
    double s = 0.0;

    for (int64_t d = 0; d < p->q.extent[3]; d++)
        s += (double)q[d * p->q.stride[3]] * (double)k[d * p->k.stride[3]];
    return s * p->scale;
}

/* The row of q at hand. */
typedef struct place {
    int64_t b, h, i;
} place;

static bool is_seen(const attention_problem *p, place at, int64_t j)
{
    const attention_variant *v = p->variant;

    return !v || !v->visible || v->visible(v, at.b, at.i, j);
}

/* s as the variant has it. */
static double changed(const attention_problem *p, place at, int64_t j, double s)
{
    const attention_variant *v = p->variant;

    return v && v->score ? v->score(v, s, at.b, at.h, at.i, j) : s;
}

static double sink_of(const attention_problem *p, int64_t h)
{
    return p->variant && p->variant->sink ? p->variant->sink(p->variant, h) : -INFINITY;
}

static double largest(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

static double attend(const attention_problem *p, place at, double *o)
{
    int64_t hk = at.h / (p->q.extent[1] / p->k.extent[1]), n = columns_seen(p, at.i);
    int64_t dv = p->v.extent[3];
    const float *q = row_of(&p->q, at.b, at.h, at.i);
    double max = sink_of(p, at.h), sum;

    for (int64_t d = 0; d < dv; d++)
        o[d] = 0.0;
    for (int64_t j = 0; j < n; j++)
        if (is_seen(p, at, j))
            max = largest(max, changed(p, at, j, score(p, q, row_of(&p->k, at.b, hk, j))));
    sum = max == -INFINITY ? 0.0 : exp(sink_of(p, at.h) - max);
    for (int64_t j = 0; j < n && max != -INFINITY; j++) {
        const float *v = row_of(&p->v, at.b, hk, j);
        if (!is_seen(p, at, j))
            continue;
        double w = exp(changed(p, at, j, score(p, q, row_of(&p->k, at.b, hk, j))) - max);

        sum += w;
        for (int64_t d = 0; d < dv; d++)
            o[d] += w * (double)v[d * p->v.stride[3]];
    }
    for (int64_t d = 0; d < dv && sum != 0.0; d++)
        o[d] /= sum;
    return max + log(sum);
}

void attention_fwd_ref(const attention_problem *p, double *o, double *lse)
{
    for (int64_t b = 0; b < p->q.extent[0]; b++)
        for (int64_t h = 0; h < p->q.extent[1]; h++)
            for (int64_t i = 0; i < p->q.extent[2]; i++) {
                *lse++ = attend(p, (place){b, h, i}, o);
                o += p->v.extent[3];
            }
}

/* ---- the formula in f32 ---- */

static float score_f32(const attention_problem *p, const float *q, const float *k)
{
    float s = 0.0f;

    for (int64_t d = 0; d < p->q.extent[3]; d++)
        s += q[d * p->q.stride[3]] * k[d * p->k.stride[3]];
    return s * (float)p->scale;
}

static float changed_f32(const attention_problem *p, place at, int64_t j, float s)
{
    return (float)changed(p, at, j, (double)s);
}

static float attend_f32(const attention_problem *p, place at, float *o)
{
    int64_t hk = at.h / (p->q.extent[1] / p->k.extent[1]), n = columns_seen(p, at.i);
    int64_t dv = p->v.extent[3];
    const float *q = row_of(&p->q, at.b, at.h, at.i);
    float sink = (float)sink_of(p, at.h), max = sink, sum;

    for (int64_t d = 0; d < dv; d++)
        o[d] = 0.0f;
    for (int64_t j = 0; j < n; j++)
        if (is_seen(p, at, j))
            max = fmaxf(max, changed_f32(p, at, j, score_f32(p, q, row_of(&p->k, at.b, hk, j))));
    sum = expf(sink - max);
    for (int64_t j = 0; j < n; j++)
        if (is_seen(p, at, j))
            sum += expf(changed_f32(p, at, j, score_f32(p, q, row_of(&p->k, at.b, hk, j))) - max);
    for (int64_t j = 0; j < n; j++) {
        const float *v = row_of(&p->v, at.b, hk, j);
        if (!is_seen(p, at, j))
            continue;
        float s = changed_f32(p, at, j, score_f32(p, q, row_of(&p->k, at.b, hk, j)));
        float w = expf(s - max) / sum;

        for (int64_t d = 0; d < dv; d++)
            o[d] += w * v[d * p->v.stride[3]];
    }
    return max + logf(sum);
}

void attention_fwd_naive(const attention_problem *p, float *o, float *lse)
{
    for (int64_t b = 0; b < p->q.extent[0]; b++)
        for (int64_t h = 0; h < p->q.extent[1]; h++)
            for (int64_t i = 0; i < p->q.extent[2]; i++) {
                *lse++ = attend_f32(p, (place){b, h, i}, o);
                o += p->v.extent[3];
            }
}
