#ifndef TW_TARGET_INTERP_BLOCK_H
#define TW_TARGET_INTERP_BLOCK_H
/* A block of warps that runs one program of level 2: what the warps share. */
#include "compiler/target/interp/interp_agent.h"
#include "compiler/target/interp/interp_race.h"

typedef struct interp_barrier {
    int want; /* warps; 0: nobody waits */
    uint32_t arrived;
    const ir_op *op; /* of the first to arrive */
} interp_barrier;

typedef struct interp_mbar {
    int64_t arrivals, pending; /* of a phase; still to come */
    int64_t bytes;             /* expected and not landed */
    int parity;                /* of the phase that runs */
    uint32_t inits;            /* mask: who has executed the alloc ... */
    uint32_t when[IR_MAX_WARPS]; /* ... and the warp's clock then */
    const ir_op *op;           /* the alloc */
} interp_mbar;

/* A copy that has not landed for all. */
typedef struct interp_copy interp_copy;
struct interp_copy {
    interp_copy *next;
    const ir_op *op;
    uint32_t count;        /* which execution of the op */
    uint32_t group, to_wait; /* masks: the warps that take part, that have not waited yet */
    race_copy *race;
    unsigned char *data;   /* what will be there, in the order of shared memory */
    int64_t at, bytes;
    int64_t mbar;          /* of a bulk copy, else -1 */
    bool issued, late, landed;
};

/* The result of an atomic op whose elements several warps hold: the first to come acts for all.
 * Also what a print collects. */
typedef struct interp_shared_result interp_shared_result;
struct interp_shared_result {
    interp_shared_result *next;
    const ir_op *op;
    uint32_t count;
    int32_t move[TILE_MAX_RANK];
    ir_scalar *cell;
    int to_come; /* of a print: warps that have not added their part */
};

typedef struct interp_block {
    const interp_program *p;
    int warps;
    interp_agent *warp[IR_MAX_WARPS];
    unsigned char *shared;
    race *race;
    interp_barrier barrier[16];
    interp_mbar *mbar;
    interp_copy *copies;
    interp_shared_result *results;
    uint64_t random;
    int turn; /* the warp that runs */
} interp_block;

/* interp_run for level 2. */
tw_status interp_run_blocks(const interp_program *p, const interp_launch *l, int64_t first,
                            int64_t total, int64_t count, interp_fault *fault);

uint32_t interp_random(interp_block *b, uint32_t below);
/* Ends the wait of all warps whose condition holds now. */
void interp_wake(interp_block *b);
bool interp_mbar_passed(const interp_block *b, const interp_agent *ag);
/* Lands bulk copies of the mbarrier (-1: of all) that have not landed; were there some? */
bool interp_land_bulk(interp_block *b, int64_t mbar);
/* Which execution of the op this is for the warp, from 1. */
uint32_t interp_count(interp_agent *ag, const ir_op *op);

/* ---- reporting ---- */
/* Fails with what the detector found about op; false. */
bool interp_report(interp_agent *ag, const ir_op *op, const race_report *report);
/* "'barrier' (line 12)" */
const char *interp_op_text(const ir_op *op, char *text, size_t size);
race_access interp_access(const interp_agent *ag, const ir_op *op, int lane);

/* ---- operations, in their files ---- */
bool interp_copy_async(interp_agent *ag, const ir_op *op);
bool interp_copy_bulk(interp_agent *ag, const ir_op *op);
void interp_copy_wait(interp_agent *ag, int pending);
void interp_free_copies(interp_block *b);
/* The mbarrier that operands arg and arg + 1 name; fails when it is none, or not ready. */
bool interp_mbar_at(interp_agent *ag, const ir_op *op, int arg, int64_t *mbar);
void interp_mbar_complete(interp_block *b, int64_t m); /* the phase, when nothing is missing */
bool interp_tile_op(interp_agent *ag, const ir_op *op);
/* Does op touch no value that a wgmma still makes? Else fails. */
bool interp_flights_end(interp_agent *ag, const ir_op *op);
/* interp_memory.c: the source of a copy as it will lie in the slot: elements outside are 0. */
bool interp_gather(interp_agent *ag, const ir_op *op, unsigned char *data);

#endif
