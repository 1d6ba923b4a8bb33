#ifndef TW_TUNER_SEARCH_H
#define TW_TUNER_SEARCH_H
/* Which point of the space to try next, from what was learned about the others. Knows nothing of
 * kernels or clocks. The start first, then what was good elsewhere, then those at the far ends of
 * single parameters, then what the model expects most of. */
#include "tuner/model.h"

typedef struct search search;
#define SEARCH_DONE UINT32_MAX

/* limit: how many points to propose at most, those not counted that turn out useless; 0: all. Under
 * guard_run. */
search *search_create(const space *s, arena *a, uint32_t limit);
/* A point that is known to be good elsewhere: it comes right after the start. */
void search_hint(search *s, uint32_t point);
/* A point not proposed before, or SEARCH_DONE. Several may be asked for before their results are
 * told; those are then spread out. */
uint32_t search_next(search *s);
/* What came of a point: the log of its time, or INFINITY when it cannot be used. */
void search_tell(search *s, uint32_t point, double log_time);
/* A point that would run the same code as another: there is nothing to learn of it. */
void search_leave(search *s, uint32_t point);
/* Largest improvement of log time that the model expects of any untried point: when that is next
 * to nothing, more trials are hardly worth their time. 0 when all were tried. */
double search_outlook(search *s);

#endif
