#ifndef TW_TUNER_MODEL_H
#define TW_TUNER_MODEL_H
/* A guess at how long configurations take that were not measured: a Gaussian process over the
 * points of a space. Coordinates are log2 of a parameter's value where all its values are positive,
 * else the value's rank; how far each parameter reaches is fitted to what was seen. */
#include "tuner/space.h"

#define MODEL_MAX_SEEN 160 /* of more, the fastest ones */

typedef struct model model;
/* Under guard_run, as all that takes an arena. */
model *model_create(const space *s, arena *a);
/* The logarithm of a point's time. */
void model_add(model *m, uint32_t point, double log_time);
/* Fits to all that was added. The fastest is what improvement is measured against. */
void model_fit(model *m);
/* Expected amount by which log time falls below the fastest seen, from the state at the last fit;
 * 1 when nothing was seen. */
double model_improvement(const model *m, uint32_t point);
/* From 0 to 1: how near two points are, whatever the fit says of what matters. */
double model_closeness(const model *m, uint32_t a, uint32_t b);

#endif
