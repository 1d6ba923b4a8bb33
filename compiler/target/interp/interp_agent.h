#ifndef TW_TARGET_INTERP_AGENT_H
#define TW_TARGET_INTERP_AGENT_H
/* Inside of the interpreter: what its files share.
 *
 * Each value owns a run of cells for the whole life of an agent (SSA: an op writes only the cells
 * of its results, so operands and results never overlap). A view's one cell is the number of the
 * parameter it came from. */
#include "compiler/ir/element.h"
#include "compiler/target/interp/interp.h"

struct interp_program {
    const ir_fn *fn;
    uint64_t *slot;   /* by value id: first cell */
    uint64_t *length; /* by value id: number of cells */
    uint64_t cells;   /* of all values, then room to stage one block's yielded values */
    uint64_t stage;   /* where that room begins */
    uint32_t depth;   /* deepest nesting of blocks */
};

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
};

static inline ir_scalar *cells_of(const interp_agent *ag, ir_val v)
{
    return ag->cell + ag->p->slot[v];
}
static inline ir_type type_of(const interp_agent *ag, ir_val v)
{
    return ir_type_of(ag->p->fn, v);
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
bool interp_load(interp_agent *ag, const ir_op *op);
bool interp_store(interp_agent *ag, const ir_op *op);
bool interp_atomic(interp_agent *ag, const ir_op *op);

#endif
