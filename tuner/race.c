#include "tuner/race.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STATS_MAX 256

/* After so few pairs that spread means nothing, only plain losers and winners are told. */
#define FAR_SLOWER_ONE 0.405 /* log 1.5, after one pair  */
#define FAR_SLOWER_FEW 0.095 /* log 1.1, in every of two */
#define FAR_FASTER_FEW 0.095 /* the same, in every of three */
#define SLOWER_FEW 0.02      /* where noise is known to be less: in every of two ... */
#define SLOWER_DOUBT 4.0     /* ... by so many standard errors */
#define MIN_PAIRS 5          /* for any other verdict    */
/* Of the normal law: a median's standard error is 1.2533 sigma / sqrt(n), sigma = 1.4826 MAD. */
#define MEDIAN_ERROR (1.2533 * 1.4826)
#define CONFIDENCE 3.0     /* standard errors */
#define LEAST_ERROR 0.0015 /* of a log ratio: two runs are never more alike than that */
#define LEAST_GAIN 0.003   /* below this a difference is none */

bool is_time(double seconds)
{
    return isfinite(seconds) && seconds > 0.0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double median_of(const double *x, uint32_t n)
{
    double sorted[STATS_MAX];

    if (n == 0)
        return 0.0;
    if (n > STATS_MAX)
        n = STATS_MAX;
    memcpy(sorted, x, n * sizeof *x);
    qsort(sorted, n, sizeof *sorted, by_value);
    return n % 2 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

double spread_of(const double *x, uint32_t n)
{
    double away[STATS_MAX], middle = median_of(x, n);

    if (n > STATS_MAX)
        n = STATS_MAX;
    for (uint32_t i = 0; i < n; i++)
        away[i] = fabs(x[i] - middle);
    return median_of(away, n);
}

void race_add(race *r, double challenger_s, double incumbent_s)
{
    if (r->n < RACE_MAX_PAIRS)
        r->log_ratio[r->n++] = log(challenger_s / incumbent_s);
}

double race_log_ratio(const race *r)
{
    return median_of(r->log_ratio, r->n);
}

static bool all_above(const race *r, double limit, double sign)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->log_ratio[i] * sign <= limit)
            return false;
    return r->n > 0;
}

static double far_slower(const race *r)
{
    if (r->n == 1)
        return FAR_SLOWER_ONE;
    if (r->noise <= 0.0)
        return FAR_SLOWER_FEW;
    return fmin(FAR_SLOWER_FEW, fmax(SLOWER_FEW, SLOWER_DOUBT * r->noise / sqrt(r->n)));
}

enum race_verdict race_verdict(const race *r)
{
    if (all_above(r, far_slower(r), 1.0))
        return RACE_SLOWER;
    if (r->n >= 3 && all_above(r, FAR_FASTER_FEW, -1.0))
        return RACE_FASTER;
    if (r->n < MIN_PAIRS)
        return RACE_GO_ON;
    double middle = race_log_ratio(r);
    double error = MEDIAN_ERROR * spread_of(r->log_ratio, r->n) / sqrt(r->n);
    double doubt = CONFIDENCE * fmax(error, LEAST_ERROR);
    if (middle - doubt > 0.0)
        return RACE_SLOWER;
    if (middle + doubt < -LEAST_GAIN)
        return RACE_FASTER;
    return r->n < RACE_MAX_PAIRS ? RACE_GO_ON : RACE_EVEN;
}
