#include "tuner/search.h"
#include <math.h>

enum point_state { POINT_NEW, POINT_PENDING, POINT_SEEN, POINT_USELESS, POINT_LEFT };

struct search {
    const space *s;
    model *m;
    uint8_t *state;
    uint32_t proposed, limit;
    uint32_t ncorners, corner[2 * SPACE_MAX_PARAMS]; /* to begin with */
    uint32_t next_corner;
    uint32_t hint; /* 0: none */
    bool stale;    /* told since the last fit */
    double *gain;  /* [npoints]: expected by the last fit; below 0: not asked yet */
    double *good;  /* [npoints]: how near those are that could be used, added up */
    double *known; /* [npoints]: and all that were told */
};

/* The points that differ from the start in one parameter, which has its least or greatest value:
 * they tell which parameters matter. */
static void list_corners(search *s)
{
    const space *sp = s->s;

    for (uint32_t j = 0; j < sp->nparams; j++) {
        int64_t start = sp->param[j].value[sp->point[0].at[j]];
        uint32_t low = 0, high = 0;
        int64_t least = start, most = start;
        for (uint32_t i = 1; i < sp->npoints; i++) {
            bool single = true;
            for (uint32_t k = 0; k < sp->nparams; k++)
                single = single && (k == j || sp->point[i].at[k] == sp->point[0].at[k]);
            int64_t v = sp->param[j].value[sp->point[i].at[j]];
            if (single && v < least)
                least = v, low = i;
            if (single && v > most)
                most = v, high = i;
        }
        if (low)
            s->corner[s->ncorners++] = low;
        if (high)
            s->corner[s->ncorners++] = high;
    }
}

search *search_create(const space *sp, arena *a, uint32_t limit)
{
    search *s = ARENA_NEW(a, search);

    s->s = sp;
    s->m = model_create(sp, a);
    s->state = ARENA_ARRAY(a, uint8_t, sp->npoints);
    s->gain = ARENA_ARRAY(a, double, sp->npoints);
    s->good = ARENA_ARRAY(a, double, sp->npoints);
    s->known = ARENA_ARRAY(a, double, sp->npoints);
    s->stale = true; /* no gain is known */
    s->limit = limit && limit < sp->npoints ? limit : sp->npoints;
    list_corners(s);
    return s;
}

static void refit(search *s)
{
    if (!s->stale)
        return;
    model_fit(s->m);
    for (uint32_t i = 0; i < s->s->npoints; i++)
        s->gain[i] = -1.0;
    s->stale = false;
}

static double gain_of(search *s, uint32_t point)
{
    if (s->gain[point] < 0.0)
        s->gain[point] = model_improvement(s->m, point);
    return s->gain[point];
}

static uint32_t propose(search *s, uint32_t point)
{
    s->state[point] = POINT_PENDING;
    s->proposed++;
    return point;
}

/* Steps between two points, for spreading out what is tried at once. */
static uint32_t steps_apart(const space *s, uint32_t a, uint32_t b)
{
    uint32_t n = 0;

    for (uint32_t j = 0; j < s->nparams; j++)
        n += s->point[a].at[j] != s->point[b].at[j];
    return n;
}

static bool beside_pending(const search *s, uint32_t point)
{
    for (uint32_t i = 0; i < s->s->npoints; i++)
        if (s->state[i] == POINT_PENDING && steps_apart(s->s, i, point) <= 1)
            return true;
    return false;
}

/* How likely a point can be used, by those tried near it: limits cut off whole regions. */
static double usable(const search *s, uint32_t point)
{
    return (0.5 + s->good[point]) / (1.0 + s->known[point]);
}

/* A point may be told of again. */
static void count_usable(search *s, uint32_t told, bool useful)
{
    bool before = s->state[told] == POINT_SEEN, anew = !before && s->state[told] != POINT_USELESS;

    for (uint32_t i = 0; i < s->s->npoints; i++) {
        double weight = model_closeness(s->m, told, i);
        s->known[i] += anew ? weight : 0.0;
        s->good[i] += weight * (useful - before);
    }
}

static uint32_t most_promising(search *s)
{
    double best = -1.0;
    uint32_t at = SEARCH_DONE;

    refit(s);
    for (uint32_t i = 0; i < s->s->npoints; i++) {
        if (s->state[i] != POINT_NEW)
            continue;
        double gain = gain_of(s, i) * usable(s, i);
        if (beside_pending(s, i))
            gain *= 0.5; /* what is known soon may make this one pointless */
        if (gain > best) {
            best = gain;
            at = i;
        }
    }
    return at;
}

void search_hint(search *s, uint32_t point)
{
    s->hint = point;
}

uint32_t search_next(search *s)
{
    if (s->proposed >= s->limit)
        return SEARCH_DONE;
    if (s->state[0] == POINT_NEW)
        return propose(s, 0);
    if (s->hint && s->state[s->hint] == POINT_NEW)
        return propose(s, s->hint);
    /* Corners cost up to two trials a parameter: at most half of a limited number. */
    while (s->next_corner < s->ncorners && s->proposed * 2 < s->limit) {
        uint32_t point = s->corner[s->next_corner++];
        if (s->state[point] == POINT_NEW)
            return propose(s, point);
    }
    uint32_t point = most_promising(s);
    return point == SEARCH_DONE ? SEARCH_DONE : propose(s, point);
}

void search_tell(search *s, uint32_t point, double log_time)
{
    bool useful = isfinite(log_time);

    count_usable(s, point, useful);
    s->state[point] = useful ? POINT_SEEN : POINT_USELESS;
    if (!useful) {
        s->proposed--;
        return;
    }
    model_add(s->m, point, log_time);
    s->stale = true;
}

void search_leave(search *s, uint32_t point)
{
    s->state[point] = POINT_LEFT;
    s->proposed--;
}

double search_outlook(search *s)
{
    double best = 0.0;

    refit(s);
    for (uint32_t i = 0; i < s->s->npoints && s->proposed < s->limit; i++)
        if (s->state[i] == POINT_NEW)
            best = fmax(best, gain_of(s, i));
    return best;
}
