#ifndef TW_SCHEDULE_LAYOUT_PLAN_H
#define TW_SCHEDULE_LAYOUT_PLAN_H
/* What pass_assign_layouts decides before it changes anything, for its parts:
 *   assign_layouts.c  which values there are, seeds and propagation
 *   dot_choice.c      how each dot is computed
 *   apply_layouts.c   types, conversions and copies of cheap values
 *
 * Every value of a tile has one home layout; where it is needed in another, it is converted. Cheap
 * values (splats, aranges, masks made of those) have none: each layout in which one is needed gets
 * a copy of its own. Nor have tiles that only dots read and that shared memory is filled with
 * directly: pass_place_operands deals with them. */
#include "compiler/ir/layout.h"
#include "compiler/schedule/schedule_pass.h"
#include "compiler/schedule/uses.h"

enum value_role { ROLE_NONE, ROLE_TILE, ROLE_CHEAP, ROLE_OPERAND };

typedef struct layout_plan {
    schedule *s;
    ir_fn *fn;
    arena *a;
    uint32_t nvals;
    uses uses;
    uint8_t *role;    /* of each value: enum value_role */
    uint16_t *home;   /* of each value of ROLE_TILE, at its leader */
    ir_val *leader;   /* of each value: the one whose home it shares (carried values), or itself */
    VEC(ir_val) queue;
    VEC(ir_op *) dots; /* in text order */
} layout_plan;

static inline bool is_reduction(const ir_op *op)
{
    return (op->code >= OP_REDUCE_MAX && op->code <= OP_REDUCE_SUM) || op->code == OP_REDUCE;
}
static inline bool is_scan(const ir_op *op)
{
    return op->code == OP_SCAN_SUM || op->code == OP_SCAN_PROD || op->code == OP_SCAN;
}
static inline bool is_atomic(const ir_op *op)
{
    return op->code >= OP_ATOMIC_ADD && op->code <= OP_ATOMIC_CAS;
}
/* Operands and result are distributed alike: element by element. */
static inline bool is_elementwise(const ir_op *op)
{
    return (op_info(op->code)->traits & OPT_EWISE) || op->code == OP_CAST || op->code == OP_BITCAST;
}

static inline uint16_t plan_home(const layout_plan *p, ir_val v) { return p->home[p->leader[v]]; }

/* assign_layouts.c */
/* Gives v a home, unless it has one, needs none or the layout does not fit it; true when it did. */
bool plan_assign(layout_plan *p, ir_val v, uint16_t lay);
void plan_propagate(layout_plan *p); /* from what was assigned since */
/* The layout of a tile of indices that picks dimension dim of a tile with this layout. */
uint16_t index_layout(ir_fn *fn, uint16_t lay, int rank, int dim);

/* dot_choice.c: the layout of each dot's accumulator, assigned and propagated one after the other;
 * it is also the mark of the dot. */
void choose_dots(layout_plan *p);

/* apply_layouts.c: m becomes level 2. The number of conversions. */
uint32_t apply_layouts(layout_plan *p);

#endif
