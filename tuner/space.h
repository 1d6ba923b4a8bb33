#ifndef TW_TUNER_SPACE_H
#define TW_TUNER_SPACE_H
/* The search space: every valid combination of the candidate values of each parameter, as points
 * of indices. Point 0 is the configuration the search starts from. */
#include "compiler/base/arena.h"
#include <stdbool.h>
#include <stdint.h>

#define SPACE_MAX_PARAMS 24
#define SPACE_MAX_VALUES 64
#define SPACE_MAX_POINTS 2048 /* of a larger space, that many taken at random */

typedef struct space_param {
    const char *name;
    uint32_t n;
    int64_t value[SPACE_MAX_VALUES];
} space_param;
typedef struct space_point {
    uint8_t at[SPACE_MAX_PARAMS]; /* index of each parameter's value */
} space_point;
typedef struct space {
    uint32_t nparams, npoints;
    space_param param[SPACE_MAX_PARAMS];
    space_point *point;
} space;

/* May these values (one a parameter) be used together? */
typedef bool (*space_valid_fn)(void *user, const int64_t *value);

/* Fills s->point from s->param. start: the values of point 0, each among its parameter's; it is
 * taken as valid. Under guard_run. */
void space_enumerate(space *s, arena *a, const int64_t *start, space_valid_fn valid, void *user);
void space_values(const space *s, uint32_t point, int64_t *out);
/* Adds v to a parameter's values if it is not there. False when there is no room. */
bool space_param_add(space_param *p, int64_t v);

#endif
