#ifndef TW_TUNER_RACE_H
#define TW_TUNER_RACE_H
/* Times and what they say. A challenger is compared with the incumbent in pairs measured one right
 * after the other, so that what drifts (clocks, heat, neighbours) cancels, and only until the
 * answer is clear. */
#include <stdbool.h>
#include <stdint.h>

#define RACE_MAX_PAIRS 15

typedef struct race {
    uint32_t n;
    double noise;                     /* of a log ratio, as known before; 0: it is not */
    double log_ratio[RACE_MAX_PAIRS]; /* of challenger to incumbent: below 0 is faster */
} race;
enum race_verdict {
    RACE_GO_ON,
    RACE_SLOWER,
    RACE_FASTER,
    RACE_EVEN /* no clear difference after all pairs */
};

void race_add(race *r, double challenger_s, double incumbent_s);
enum race_verdict race_verdict(const race *r);
double race_log_ratio(const race *r); /* median; 0 of an empty race */

double median_of(const double *x, uint32_t n); /* 0 for n = 0 */
double spread_of(const double *x, uint32_t n); /* median absolute deviation */
/* A time that can be ranked: finite and above 0. */
bool is_time(double seconds);

#endif
