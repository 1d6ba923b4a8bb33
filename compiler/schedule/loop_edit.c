#include "compiler/schedule/loop_edit.h"
#include "compiler/base/check.h"
#include "compiler/ir/iredit.h"

static void move_ops(ir_block *from, ir_block *to)
{
    to->first = from->first;
    to->last = from->last;
    from->first = from->last = NULL;
    for IR_EACH_OP(op, to)
        op->parent = to;
}

/* The ops of a block know it by pointer, the blocks inside of them do not. */
ir_op *loop_carry_more(ir_fn *fn, ir_op *loop, const ir_val *init, int n)
{
    ir_builder b = ir_before(fn, loop);
    int old = loop->nargs - 3;
    ir_val *all = ARENA_ARRAY(fn->module->a, ir_val, (size_t)(old + n));

    ICHECK(loop->code == OP_FOR, "a loop that counts");
    for (int i = 0; i < old + n; i++)
        all[i] = i < old ? loop->args[3 + i] : init[i - old];
    ir_op *res = ir_for(&b, loop->args[0], loop->args[1], loop->args[2], all, old + n);
    move_ops(loop->regions[0], res->regions[0]);
    for (int i = 0; i < old + 1; i++) {
        ir_val from = loop->regions[0]->arg + (ir_val)i, to = res->regions[0]->arg + (ir_val)i;
        ir_name(fn, to, ir_value_of(fn, from)->name);
        ir_replace_uses(fn, from, to);
    }
    for (int i = 0; i < old; i++) {
        ir_name(fn, res->res + (ir_val)i, ir_value_of(fn, loop->res + (ir_val)i)->name);
        ir_replace_uses(fn, loop->res + (ir_val)i, res->res + (ir_val)i);
    }
    ir_unlink(loop);
    return res;
}

void loop_yield_more(ir_fn *fn, ir_op *loop, const ir_val *next, int n)
{
    ir_block *body = loop->regions[0];
    ir_op *end = body->last;
    int old = end->nargs;
    ir_val *all = ARENA_ARRAY(fn->module->a, ir_val, (size_t)(old + n));

    for (int i = 0; i < old + n; i++)
        all[i] = i < old ? end->args[i] : next[i - old];
    ir_unlink(end);
    ir_builder b = ir_at_end(fn, body);
    ir_yield(&b, all, old + n);
}
