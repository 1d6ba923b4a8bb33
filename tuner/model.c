#include "tuner/model.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* Reaches tried for each parameter, in octaves or ranks: from "tells nothing about its neighbour"
 * to "hardly matters". */
static const double reach_choice[] = {0.8, 2.0, 5.0, 15.0};
#define REACH_COUNT (sizeof reach_choice / sizeof reach_choice[0])
/* Variances of a measured log time, against 1 for what is modelled: a quiet machine, a busy one. */
static const double noise_choice[] = {1e-4, 2e-3, 2e-2, 1e-1};
#define NOISE_COUNT (sizeof noise_choice / sizeof noise_choice[0])
#define ADDITIVE 0.5 /* share of what parameters do each by itself */
#define FIT_ROUNDS 2 /* of fitting each parameter's reach in turn */
#define FIT_MIN_SEEN 4

struct model {
    const space *s;
    double *coord; /* [npoints][nparams] */
    double reach[SPACE_MAX_PARAMS];
    double *near[SPACE_MAX_PARAMS]; /* by that, how near two values are, [n][n] */
    double noise;
    uint32_t nseen;
    uint32_t seen[MODEL_MAX_SEEN];
    double value[MODEL_MAX_SEEN];
    /* of the last fit: values are mean + scale * z, z has a prior variance of 1 */
    double mean, scale, best;
    uint32_t nfit;
    double *factor; /* Cholesky factor of the covariance, [MODEL_MAX_SEEN]^2, lower half */
    double weight[MODEL_MAX_SEEN];
    double z[MODEL_MAX_SEEN];
};

static double *coord_of(const model *m, uint32_t point)
{
    return m->coord + (size_t)point * m->s->nparams;
}

static double coordinate(const space_param *p, uint32_t at)
{
    bool positive = true;

    for (uint32_t k = 0; k < p->n; k++)
        positive = positive && p->value[k] > 0;
    return positive ? log2((double)p->value[at]) : (double)at;
}

static void set_coords(model *m)
{
    for (uint32_t j = 0; j < m->s->nparams; j++)
        for (uint32_t i = 0; i < m->s->npoints; i++)
            coord_of(m, i)[j] = coordinate(&m->s->param[j], m->s->point[i].at[j]);
}

static void set_reach(model *m, uint32_t j, double reach)
{
    const space_param *p = &m->s->param[j];

    m->reach[j] = reach;
    for (uint32_t a = 0; a < p->n; a++)
        for (uint32_t b = 0; b < p->n; b++) {
            double d = (coordinate(p, a) - coordinate(p, b)) / reach;
            m->near[j][a * p->n + b] = exp(-0.5 * d * d);
        }
}

model *model_create(const space *s, arena *a)
{
    model *m = ARENA_NEW(a, model);

    m->s = s;
    m->coord = ARENA_ARRAY(a, double, (size_t)s->npoints * s->nparams + 1);
    m->factor = ARENA_ARRAY(a, double, (size_t)MODEL_MAX_SEEN *MODEL_MAX_SEEN);
    for (uint32_t j = 0; j < s->nparams; j++) {
        m->near[j] = ARENA_ARRAY(a, double, (size_t)s->param[j].n * s->param[j].n + 1);
        set_reach(m, j, 2.0);
    }
    m->noise = noise_choice[0];
    set_coords(m);
    return m;
}

void model_add(model *m, uint32_t point, double log_time)
{
    uint32_t at = m->nseen;

    if (m->nseen == MODEL_MAX_SEEN) {
        at = 0;
        for (uint32_t i = 1; i < m->nseen; i++)
            if (m->value[i] > m->value[at])
                at = i;
        if (m->value[at] <= log_time)
            return;
    } else {
        m->nseen++;
    }
    m->seen[at] = point;
    m->value[at] = log_time;
}

static double covariance(const model *m, uint32_t a, uint32_t b)
{
    const uint8_t *x = m->s->point[a].at, *y = m->s->point[b].at;
    double product = 1.0, sum = 0.0;

    for (uint32_t j = 0; j < m->s->nparams; j++) {
        double k = m->near[j][x[j] * m->s->param[j].n + y[j]];
        product *= k;
        sum += k;
    }
    return (1.0 - ADDITIVE) * product + ADDITIVE * sum / m->s->nparams;
}

double model_closeness(const model *m, uint32_t a, uint32_t b)
{
    const double *x = coord_of(m, a), *y = coord_of(m, b);
    double sum = 0.0;

    for (uint32_t j = 0; j < m->s->nparams; j++)
        sum += (x[j] - y[j]) * (x[j] - y[j]);
    return exp(-sum);
}

/* factor = the lower triangle L of L L^T = K + noise. Returns log det(K) / 2. */
static double factorise(model *m)
{
    uint32_t n = m->nfit;
    double *l = m->factor, half_log_det = 0.0;

    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j <= i; j++) {
            double sum = covariance(m, m->seen[i], m->seen[j]) + (i == j ? m->noise : 0.0);
            for (uint32_t k = 0; k < j; k++)
                sum -= l[i * n + k] * l[j * n + k];
            l[i * n + j] = i == j ? sqrt(fmax(sum, m->noise * 0.1)) : sum / l[j * n + j];
        }
        half_log_det += log(l[i * n + i]);
    }
    return half_log_det;
}

static void solve_lower(const model *m, double *x)
{
    uint32_t n = m->nfit;

    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < i; k++)
            x[i] -= m->factor[i * n + k] * x[k];
        x[i] /= m->factor[i * n + i];
    }
}

static void solve_upper(const model *m, double *x)
{
    uint32_t n = m->nfit;

    for (uint32_t i = n; i-- > 0;) {
        for (uint32_t k = i + 1; k < n; k++)
            x[i] -= m->factor[k * n + i] * x[k];
        x[i] /= m->factor[i * n + i];
    }
}

/* How badly the reaches explain what was seen: minus the log of its likelihood. */
static double misfit(model *m)
{
    double half_log_det = factorise(m), sum = 0.0;

    memcpy(m->weight, m->z, m->nfit * sizeof m->z[0]);
    solve_lower(m, m->weight);
    for (uint32_t i = 0; i < m->nfit; i++)
        sum += m->weight[i] * m->weight[i];
    return 0.5 * sum + half_log_det;
}

static void fit_reach(model *m, uint32_t j)
{
    double best = DBL_MAX, kept = m->reach[j];

    for (size_t c = 0; c < REACH_COUNT; c++) {
        set_reach(m, j, reach_choice[c]);
        double f = misfit(m);
        if (f < best) {
            best = f;
            kept = reach_choice[c];
        }
    }
    set_reach(m, j, kept);
}

static void fit_noise(model *m)
{
    double best = DBL_MAX, kept = m->noise;

    for (size_t c = 0; c < NOISE_COUNT; c++) {
        m->noise = noise_choice[c];
        double f = misfit(m);
        if (f < best) {
            best = f;
            kept = noise_choice[c];
        }
    }
    m->noise = kept;
}

static void normalise(model *m)
{
    double sum = 0.0, squares = 0.0;

    m->best = INFINITY;
    for (uint32_t i = 0; i < m->nfit; i++) {
        sum += m->value[i];
        m->best = fmin(m->best, m->value[i]);
    }
    m->mean = m->nfit ? sum / m->nfit : 0.0;
    for (uint32_t i = 0; i < m->nfit; i++)
        squares += (m->value[i] - m->mean) * (m->value[i] - m->mean);
    /* Few points say little about how much times differ: begin with 20 %. */
    m->scale = sqrt((squares + 0.04) / (m->nfit + 1));
    for (uint32_t i = 0; i < m->nfit; i++)
        m->z[i] = (m->value[i] - m->mean) / m->scale;
}

void model_fit(model *m)
{
    m->nfit = m->nseen;
    normalise(m);
    for (int round = 0; round < FIT_ROUNDS && m->nfit >= FIT_MIN_SEEN; round++) {
        for (uint32_t j = 0; j < m->s->nparams; j++)
            if (m->s->param[j].n > 1)
                fit_reach(m, j);
        fit_noise(m);
    }
    misfit(m);
    solve_upper(m, m->weight);
}

static void predict(const model *m, uint32_t point, double *mean, double *deviation)
{
    double k[MODEL_MAX_SEEN], sum = 0.0, explained = 0.0;

    for (uint32_t i = 0; i < m->nfit; i++) {
        k[i] = covariance(m, point, m->seen[i]);
        sum += k[i] * m->weight[i];
    }
    solve_lower(m, k);
    for (uint32_t i = 0; i < m->nfit; i++)
        explained += k[i] * k[i];
    *mean = m->mean + m->scale * sum;
    *deviation = m->scale * sqrt(fmax(1.0 - explained, 0.0));
}

double model_improvement(const model *m, uint32_t point)
{
    double mean, deviation;

    if (m->nfit == 0)
        return 1.0;
    predict(m, point, &mean, &deviation);
    if (deviation < 1e-9)
        return fmax(m->best - mean, 0.0);
    double u = (m->best - mean) / deviation;
    double density = exp(-0.5 * u * u) * 0.3989422804014327; /* 1 / sqrt(2 pi) */
    double below = 0.5 * erfc(-u * 0.7071067811865476);      /* 1 / sqrt(2) */
    return deviation * (u * below + density);
}
