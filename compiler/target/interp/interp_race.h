#ifndef TW_TARGET_INTERP_RACE_H
#define TW_TARGET_INTERP_RACE_H
/* Finds accesses to shared memory, and to elements of tensors, that nothing orders.
 *
 * Every agent has a clock: each warp, and three engines beside it - the copies of copy.async that
 * its threads issued, its wgmmas, and the copies that count at each mbarrier. A warp knows how far
 * it is behind each agent (its vector clock); barriers, mbarriers and waits join these vectors.
 * For each granule of shared memory the last write is kept, and for each warp its last read and the
 * last read of its wgmmas (FastTrack: Flanagan, Freund, PLDI 2009, with reads by warp). An access
 * is an error when its warp does not know of the last write, a write also when it does not know of
 * a read.
 *
 * Threads of a warp: an access has a lane. Two of different lanes are ordered by what orders lanes
 * (barrier.warp, barriers, arrivals), which raises the warp's floor: accesses at or below it are
 * before what comes. A copy.wait is one of each thread for its own copies, so the others of the
 * warp see what landed only after the next such op.
 *
 * A copy by several warps is one write of all of them, because nobody knows who copies which piece:
 * it is over when each has waited and that is known. What the engines of wgmma and copy.bulk touch
 * (the async proxy) and a warp wrote before must also lie behind a fence.async of that warp. */
#include "compiler/ir/ir.h"
#include "compiler/target/interp/interp_hold.h"

typedef struct race race;
#define RACE_MAX_OPS (1 << 19)
typedef uint32_t race_op; /* a number for an op, given by the caller, below that */

enum race_kind {
    RACE_NONE,
    RACE_UNWRITTEN,  /* a read of what nobody wrote */
    RACE_ORDER,      /* two accesses without order */
    RACE_LANES,      /* the same, by two threads of one warp */
    RACE_LANDING,    /* a copy has not landed, or not for this warp */
    RACE_ENGINE,     /* an engine may still read */
    RACE_FENCE       /* the async proxy does not see it yet */
};
/* What was found first. */
typedef struct race_report {
    enum race_kind kind;
    race_op before;       /* the op of the other access */
    int warp;             /* whose it was; -1: several */
    bool wrote;           /* it was a write */
    int64_t byte;         /* where: of shared memory; -1: of a tensor */
} race_report;

typedef struct race_shape {
    int warps, mbarriers;
    int64_t bytes; /* of shared memory */
    int granule;   /* the smallest element */
    bool products; /* are there wgmmas? */
} race_shape;

race *race_new(const race_shape *shape); /* NULL: no memory */
void race_free(race *r);
void race_reset(race *r); /* for the next program */

/* ---- accesses; each false when *report has something ---- */
typedef struct race_access {
    int warp, lane; /* HOLD_MANY: several */
    race_op op;
    bool proxy;     /* by an engine on behalf of the warp */
} race_access;
bool race_read(race *r, const race_access *x, int64_t at, int bytes, race_report *report);
bool race_write(race *r, const race_access *x, int64_t at, int bytes, race_report *report);
/* A read that ends with the warp's wgmma group to come. */
bool race_read_product(race *r, const race_access *x, int64_t at, int bytes, race_report *report);
/* Was shared memory read that nothing had written? It may be written later, which is then a race
 * with both sides; so this is asked at the end. report->before is the op that read. */
bool race_unwritten(const race *r, race_report *report);
/* Elements of tensors, by address; atomic ones do not race with each other. */
bool race_read_element(race *r, const race_access *x, const void *p, race_report *report);
bool race_write_element(race *r, const race_access *x, const void *p, bool atomic,
                        race_report *report);

/* ---- copies: one instance for each execution of a copy op by its group ---- */
typedef struct race_copy race_copy;
/* mbarrier: the one that a bulk copy counts at; -1 for copy.async by the warps of the mask. */
race_copy *race_copy_new(race *r, race_op op, uint32_t warps, int mbarrier); /* NULL: no memory */
/* A warp issues its part of bytes at .. at + n - 1; the first call also writes them. */
bool race_copy_issue(race *r, race_copy *c, const race_access *x, int64_t at, int64_t n,
                     race_report *report);
void race_commit(race *r, int warp);
/* Does a wait of warp for all but `pending` groups cover the copy? */
bool race_wait_covers(const race *r, const race_copy *c, int warp, int pending);
void race_wait(race *r, int warp, int pending);
void race_commit_products(race *r, int warp);
void race_wait_products(race *r, int warp, int pending);
/* The number of the group to come, and of the last one that has ended. */
uint32_t race_product_group(const race *r, int warp);
uint32_t race_products_done(const race *r, int warp);

/* ---- order ---- */
typedef struct race_clock race_clock; /* what a barrier knows */
race_clock *race_clock_at(race *r, int number); /* of the shape's: 16 barriers, then two for each
                                                   mbarrier: arriving, and of the last phase */
void race_clock_clear(race *r, race_clock *c);
void race_clock_copy(race *r, race_clock *to, const race_clock *from);
void race_order_lanes(race *r, int warp);              /* barrier.warp */
void race_release(race *r, int warp, race_clock *c);   /* orders lanes, then joins into c */
void race_acquire(race *r, int warp, const race_clock *c);
void race_land(race *r, race_copy *c, race_clock *to); /* a bulk copy counts at its mbarrier */
void race_fence(race *r, int warp);
/* The warp's own clock, and whether another warp (or, of its own, its lanes) knows of it. */
uint32_t race_now(const race *r, int warp);
bool race_knows(const race *r, int warp, int other, uint32_t clock);

#endif
