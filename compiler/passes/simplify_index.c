/* Tiles of indices that count by one, where a scalar says as much.
 *
 *   load %x, (arange start)                  load %x, start
 *   load %x, (add (arange start), splat %i)  load %x, %i + start
 *
 * Sums that wrap stay the same: an index that wraps is outside of every tensor, and so is the one
 * that a slice counts to there. */
#include "compiler/passes/simplify.h"

/* The scalar where a tile of indices starts to count; 0 when it does not count by one. */
static ir_val start_of(simplifier *s, ir_op *op, ir_val index)
{
    const ir_op *sum = def_of(s->fn, index, OP_ADD);
    const ir_op *range = def_of(s->fn, sum ? sum->args[0] : index, OP_ARANGE);
    const ir_op *from = sum ? def_of(s->fn, sum->args[1], OP_SPLAT) : NULL;
    ir_builder b = ir_before(s->fn, op);

    if (!range || (sum && !from))
        return 0;
    if (from && range->attr[0].i == 0)
        return from->args[0];
    ir_val start = ir_const_int(&b, DT_I32, range->attr[0].i);
    return from ? ir_binary(&b, OP_ADD, from->args[0], start) : start;
}

void simplify_indices(simplifier *s, ir_op *op)
{
    if (!op_is_access((enum ir_opcode)op->code))
        return;
    for (uint32_t d = 0; d < op->attr[0].ints.n; d++) {
        ir_val *index = &op->args[1 + d];
        ir_val start = ir_type_of(s->fn, *index).kind == TYPE_TILE ? start_of(s, op, *index) : 0;
        if (!start)
            continue;
        *index = start;
        op->attr[1].i &= ~((int64_t)1 << d);
        s->changes++;
    }
}
