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

static double largest(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

static double attend(const attention_problem *p, int64_t b, int64_t h, int64_t i, double *o)
{
    int64_t hk = h / (p->q.extent[1] / p->k.extent[1]), n = columns_seen(p, i);
    int64_t dv = p->v.extent[3];
    const float *q = row_of(&p->q, b, h, i);
    double max = -INFINITY, sum = 0.0;

    for (int64_t d = 0; d < dv; d++)
        o[d] = 0.0;
    for (int64_t j = 0; j < n; j++)
        max = largest(max, score(p, q, row_of(&p->k, b, hk, j)));
    for (int64_t j = 0; j < n && max != -INFINITY; j++) {
        const float *v = row_of(&p->v, b, hk, j);
        double w = exp(score(p, q, row_of(&p->k, b, hk, j)) - max);

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
                *lse++ = attend(p, b, h, i, o);
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

static float attend_f32(const attention_problem *p, int64_t b, int64_t h, int64_t i, float *o)
{
    int64_t hk = h / (p->q.extent[1] / p->k.extent[1]), n = columns_seen(p, i);
    int64_t dv = p->v.extent[3];
    const float *q = row_of(&p->q, b, h, i);
    float max = -INFINITY, sum = 0.0f;

    for (int64_t d = 0; d < dv; d++)
        o[d] = 0.0f;
    for (int64_t j = 0; j < n; j++)
        max = fmaxf(max, score_f32(p, q, row_of(&p->k, b, hk, j)));
    for (int64_t j = 0; j < n; j++)
        sum += expf(score_f32(p, q, row_of(&p->k, b, hk, j)) - max);
    for (int64_t j = 0; j < n; j++) {
        const float *v = row_of(&p->v, b, hk, j);
        float w = expf(score_f32(p, q, row_of(&p->k, b, hk, j)) - max) / sum;

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
                *lse++ = attend_f32(p, b, h, i, o);
                o += p->v.extent[3];
            }
}
