#include "compiler/schedule/slot_readers.h"

/* The slot that v is a view of, maybe itself. */
static ir_val viewed(const ir_fn *fn, ir_val v)
{
    const ir_op *def = ir_def(fn, v);

    while (def && (def->code == OP_BUFFER_TRANS || def->code == OP_BUFFER_VIEW)) {
        v = def->args[0];
        def = ir_def(fn, v);
    }
    return v;
}

static bool reads(const ir_fn *fn, const ir_op *op, ir_val slot)
{
    bool looks = op->code == OP_MMA || op->code == OP_DOT || op->code == OP_BUFFER_LOAD ||
                 op->code == OP_WGMMA;

    for (int i = 0; looks && i < op->nargs; i++) {
        if (ir_type_of(fn, op->args[i]).kind == TYPE_BUFFER && viewed(fn, op->args[i]) == slot)
            return true;
    }
    for (int r = 0; r < op->nregions; r++) {
        if (first_reader(fn, op->regions[r], slot))
            return true;
    }
    return false;
}

ir_op *first_reader(const ir_fn *fn, const ir_block *blk, ir_val slot)
{
    for IR_EACH_OP(op, blk) {
        if (reads(fn, op, slot))
            return op;
    }
    return NULL;
}

ir_op *last_reader(const ir_fn *fn, const ir_block *blk, ir_val slot)
{
    for (ir_op *op = blk->last; op; op = op->prev) {
        if (reads(fn, op, slot))
            return op;
    }
    return NULL;
}
