/* licm: move what a loop does not change in front of it.
 *
 *   for %i = ... {                        %q = load %t, %m0, 0
 *     %q = load %t, %m0, 0       ->       for %i = ... {
 *     ... %q ...                            ... %q ...
 *   }                                     }
 *
 * Pure ops (purity.h) of a loop's own blocks move when all operands come from outside; those in an
 * `if` stay, for it may be there to skip them. Innermost loops first, so a value climbs as far as
 * it can. What a target makes on the fly from less (splats, broadcasts, and elementwise ops on
 * nothing but those) stays beside its users, unless something that moves needs it: kept across a
 * loop it would take a tile of memory to save one operation.
 */
#include "compiler/ir/iredit.h"
#include "compiler/passes/pipeline.h"
#include "compiler/passes/purity.h"

typedef struct hoisting {
    ir_fn *fn;
    ir_op *loop;
    uint8_t *cheap; /* of each value: costs a target less to make again than to keep */
    uint32_t moved;
} hoisting;

enum { STAYS, MAY_GO, MUST_GO }; /* op->mark, of the ops in the loop at hand */

static bool is_costly(enum ir_opcode code)
{
    return code == OP_EXP || code == OP_EXP2 || code == OP_LOG || code == OP_LOG2 ||
           code == OP_SQRT || code == OP_RSQRT || (code >= OP_SIN && code <= OP_ERF) ||
           code == OP_DIV || code == OP_REM;
}

static bool is_cheap(const hoisting *h, const ir_op *op)
{
    if (ir_type_of(h->fn, op->res).kind != TYPE_TILE)
        return op->code == OP_CONST_INT || op->code == OP_CONST_FLOAT;
    if (op->code == OP_SPLAT || op->code == OP_EXPAND || op->code == OP_BROADCAST ||
        op->code == OP_ARANGE)
        return true;
    bool ewise = (op_info(op->code)->traits & OPT_EWISE) && !is_costly(op->code);
    if (!ewise || ir_type_of(h->fn, op->res).rank < 2)
        return false;
    for (int i = 0; i < op->nargs; i++) {
        if (!h->cheap[op->args[i]])
            return false;
    }
    return true;
}

static void classify(ir_op *op, void *arg)
{
    const hoisting *h = arg;

    op->mark = STAYS;
    if (op->nres == 1)
        h->cheap[op->res] = is_cheap(h, op);
}

/* Outside the loop, or of a cheap op in it that could go. */
static bool is_invariant(const hoisting *h, ir_val v)
{
    const ir_op *def = ir_def(h->fn, v);

    return ir_defined_outside(h->fn, v, h->loop) || (def && def->mark == MAY_GO);
}

static bool all_invariant(const hoisting *h, const ir_op *op)
{
    for (int i = 0; i < op->nargs; i++) {
        if (!is_invariant(h, op->args[i]))
            return false;
    }
    return true;
}

/* The number of operands that have to follow op out of the loop. */
static int call_operands(const hoisting *h, const ir_op *op)
{
    int n = 0;

    for (int i = 0; i < op->nargs; i++) {
        ir_op *def = ir_def(h->fn, op->args[i]);
        if (def && def->mark == MAY_GO) {
            def->mark = MUST_GO;
            n++;
        }
    }
    return n;
}

static void move_out(hoisting *h, ir_op *op, ir_op *before)
{
    ir_move_before(op, before);
    op->mark = STAYS;
    h->moved++;
}

/* op, and before it whatever cheap ops it needs: they stand above it in the same block. */
static void hoist(hoisting *h, ir_op *op)
{
    ir_op *above = op->prev, *before = op;
    int missing = call_operands(h, op);

    move_out(h, op, h->loop);
    while (missing) {
        ir_op *next = above->prev;
        if (above->mark == MUST_GO) {
            missing += call_operands(h, above) - 1;
            move_out(h, above, before);
            before = above;
        }
        above = next;
    }
}

static void hoist_from(hoisting *h, ir_block *body)
{
    for IR_EACH_OP_SAFE(op, nx, body) {
        if (op->nres != 1 || !op_is_pure(h->fn, op) || !all_invariant(h, op))
            continue;
        if (h->cheap[op->res])
            op->mark = MAY_GO;
        else
            hoist(h, op);
    }
    for IR_EACH_OP(op, body)
        op->mark = STAYS;
}

static void visit_block(hoisting *h, ir_block *blk)
{
    for IR_EACH_OP(op, blk) {
        for (int i = 0; i < op->nregions; i++)
            visit_block(h, op->regions[i]);
        if (op->code != OP_FOR && op->code != OP_WHILE)
            continue;
        h->loop = op;
        for (int i = 0; i < op->nregions; i++)
            hoist_from(h, op->regions[i]);
    }
}

tw_status pass_licm(pass_cx *cx, ir_module *m)
{
    hoisting h = {.fn = m->kernel};

    h.cheap = ARENA_ARRAY(cx->scratch, uint8_t, m->kernel->values.n);
    ir_walk(m->kernel->body, classify, &h);
    visit_block(&h, m->kernel->body);
    cx->changes = h.moved;
    return TW_OK;
}
