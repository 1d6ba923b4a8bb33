#ifndef TW_TARGET_INTERP_RACE_CORE_H
#define TW_TARGET_INTERP_RACE_CORE_H
/* Inside of the race detector.
 *
 * A record is a word: 0 nothing; else from the low end the op (19 bits), the lane (6), the warp
 * (5), flags (2) and the clock or, for a copy, its number (32). */
#include "compiler/target/interp/interp_race.h"

typedef uint64_t race_record;
#define RECORD_COPY (UINT64_C(1) << 30)
#define RECORD_ATOMIC (UINT64_C(1) << 31)

typedef struct race_warp {
    uint32_t floor;     /* accesses at or below this clock are before what all lanes do now */
    uint32_t committed; /* groups of copies */
    uint32_t waited;    /* of them, known to each thread for its own copies */
    uint32_t products;  /* groups of wgmmas */
} race_warp;

struct race_copy {
    uint32_t number;
    race_op op;
    uint32_t warps, to_issue;     /* masks: who takes part, who has not issued yet */
    uint32_t seen, seen_proxy;    /* masks: who knows that it landed */
    int mbarrier;                 /* -1: copy.async */
    uint32_t group[IR_MAX_WARPS]; /* by warp; of a bulk copy [0] its number at the mbarrier */
    race_record *before;          /* what it overwrote, until all have issued */
    int64_t first, n;             /* granules */
};

struct race {
    race_shape shape;
    int64_t granules;
    int agents, nclocks; /* warps, their copies, their products, mbarriers */
    race_record *write;  /* by granule */
    race_record *read;   /* by granule and warp */
    race_record *products;
    uint32_t *known;     /* by warp: of each agent */
    uint32_t *fenced;    /* by warp: of each agent, what the async proxy may see */
    uint32_t *clocks;
    race_warp *warp;
    uint32_t *engine;    /* by mbarrier: bulk copies issued */
    race_report unwritten; /* the first read of what nothing had written */
    race_copy **copy;
    uint32_t ncopies, copies_cap;
    uint64_t *element;   /* open addressing; of each: address, write, reads by warp */
    uint32_t nelements, elements_cap;
    size_t element_words;
};

static inline uint32_t *known_of(const race *r, int warp)
{
    return r->known + (size_t)warp * (size_t)r->agents;
}
static inline race_record record_of(const race_access *x, uint32_t clock)
{
    return (uint64_t)clock << 32 | (uint64_t)x->warp << 25 | (uint64_t)x->lane << 19 | x->op;
}
static inline uint32_t record_clock(race_record w) { return (uint32_t)(w >> 32); }
static inline int record_warp(race_record w) { return (int)(w >> 25 & 31); }
static inline int record_lane(race_record w) { return (int)(w >> 19 & 63); }
static inline race_op record_op(race_record w) { return (race_op)(w & (RACE_MAX_OPS - 1)); }

#endif
