#ifndef TW_TARGET_INTERP_AGENT_H
#define TW_TARGET_INTERP_AGENT_H
/* Inside of the interpreter: what its files share.
 *
 * Each value owns a run of cells for the whole life of an agent (SSA: an op writes only the cells
 * of its results, so operands and results never overlap). A view's one cell is the number of the
 * parameter it came from. */
#include "compiler/ir/element.h"
#include "compiler/target/interp/interp.h"

#include "compiler/target/interp/interp_hold.h"

struct interp_program {
    const ir_fn *fn;
    ir_type *type;    /* by value id; level 2: a tile has the extents that one warp holds */
    uint64_t *slot;   /* by value id: first cell */
    uint64_t *length; /* by value id: number of cells */
    uint64_t cells;   /* of all values, then room to stage one block's yielded values */
    uint64_t stage;   /* where that room begins */
    uint32_t depth;   /* deepest nesting of blocks */

    /* level 2 */
    bool scheduled;
    const interp_hold **hold;  /* by value id: of tiles */
    const int32_t **offset;    /* by value id, of buffers: bytes of each element in a slot */
    const ir_op **op;          /* all, by address: an op's place is its number */
    uint32_t nops;
    int64_t *place;            /* by number, of alloc and mbar.alloc: where in shared memory */
    int *mbar;                 /* by number, of mbar.alloc: its first mbarrier */
    int mbarriers;
    uint64_t scratch;          /* cells to gather the factors of a product */
    int64_t shared_bytes;
    int granule;               /* smallest element of a buffer */
    bool products;             /* are there wgmmas? */
};
uint32_t interp_op_number(const interp_program *p, const ir_op *op);
/* interp_layouts.c: what level 2 adds to a prepared program. */
void interp_prepare_value(interp_program *p, arena *a, ir_val v, int first, int warps);
void interp_prepare_ops(interp_program *p, arena *a);


/* One block in execution. */
typedef struct interp_frame {
    const ir_op *next;  /* the op to execute */
    const ir_op *owner; /* whose region this is; NULL for the body */
    int64_t i, hi, step; /* a for loop's state */
} interp_frame;

struct interp_agent {
    const interp_program *p;
    interp_launch launch;
    int64_t id[3];
    interp_frame *frame; /* p->depth of them */
    uint32_t nframes;
    uint64_t steps;
    ir_scalar *cell;
    interp_fault fault;

    /* level 2 */
    struct interp_block *block;
    int warp;               /* of the block */
    int first, warps;       /* of its group: the block, or its role */
    const ir_op *waiting;   /* blocked here */
    int64_t wait_mbar, wait_parity;
    uint32_t *count;        /* by op: how often it was executed */
    uint32_t *flight;       /* by value id: the group of wgmmas that makes it, 0 = none;
                               then as many to stage moved ones */
};

static inline ir_scalar *cells_of(const interp_agent *ag, ir_val v)
{
    return ag->cell + ag->p->slot[v];
}
static inline ir_type type_of(const interp_agent *ag, ir_val v)
{
    return ag->p->type[v];
}

/* Records why op failed and returns false. */
bool interp_fail(interp_agent *ag, tw_status st, const ir_op *op, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Each executes one op without regions; false when it failed. */
bool interp_exec(interp_agent *ag, const ir_op *op);
void interp_elementwise(interp_agent *ag, const ir_op *op);
void interp_bitcast(interp_agent *ag, const ir_op *op);
void interp_dot(interp_agent *ag, const ir_op *op);
void interp_reduce(interp_agent *ag, const ir_op *op, enum ir_opcode combine);
void interp_estimate(interp_agent *ag, const ir_op *op); /* some, every */
void interp_scan(interp_agent *ag, const ir_op *op, enum ir_opcode combine);
bool interp_fold(interp_agent *ag, const ir_op *op); /* OP_REDUCE, OP_SCAN */
/* Level 2: adds the warp's part of what op prints; *elements: all of them when it was the last. */
bool interp_print_part(interp_agent *ag, const ir_op *op, const ir_scalar **elements);
/* Operations of level 2; ag->waiting is set when the warp must wait. */
bool interp_scheduled(interp_agent *ag, const ir_op *op);
void interp_multiply(interp_agent *ag, ir_val acc, ir_val res, const ir_scalar *x,
                     const ir_scalar *y, int64_t k);
bool interp_load(interp_agent *ag, const ir_op *op);
bool interp_store(interp_agent *ag, const ir_op *op);
bool interp_atomic(interp_agent *ag, const ir_op *op);

#endif
