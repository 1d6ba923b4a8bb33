/* Loops and conditions whose course is known. */
#include "compiler/ir/iredit.h"
#include "compiler/passes/simplify.h"

/* Moves the ops of a region in front of op and removes op; its results become what the region
 * yields. Returns the first op to look at: one that was moved, or the one after op. */
static ir_op *take_region(simplifier *s, ir_op *op, ir_block *region)
{
    ir_op *first = region->first == region->last ? op->next : region->first;

    for IR_EACH_OP_SAFE(inner, nx, region) {
        if (inner != region->last)
            ir_move_before(inner, op);
    }
    for (uint32_t i = 0; i < op->nres; i++)
        rename_set(&s->to, op->res + i, region->last->args[i]);
    ir_unlink(op);
    s->changes++;
    return first;
}

/* ---- if ---- */

/* if %c { yield %x } else { yield %y }, scalars: where %c, %x, %y */
static bool choose_scalars(simplifier *s, ir_op *op)
{
    ir_block *yes = op->regions[0], *no = op->regions[1];
    ir_builder b = ir_before(s->fn, op);

    if (yes->first != yes->last || no->first != no->last || op->nres == 0)
        return false;
    for (uint32_t i = 0; i < op->nres; i++) {
        if (ir_type_of(s->fn, op->res + i).kind != TYPE_SCALAR)
            return false;
    }
    for (uint32_t i = 0; i < op->nres; i++)
        rename_set(&s->to, op->res + i,
                   ir_where(&b, op->args[0], rename_of(&s->to, yes->last->args[i]),
                            rename_of(&s->to, no->last->args[i])));
    return true;
}

/* A result that both sides give alike. Counts it once: dce then removes the result. */
static void join_results(simplifier *s, ir_op *op)
{
    for (uint32_t i = 0; i < op->nres; i++) {
        ir_val x = rename_of(&s->to, op->regions[0]->last->args[i]);
        ir_val y = rename_of(&s->to, op->regions[1]->last->args[i]);
        if (x != y)
            continue;
        rename_set(&s->to, op->res + i, x);
        s->changes++;
    }
}

static ir_op *simplify_if(simplifier *s, ir_op *op)
{
    const ir_op *inverted = def_of(s->fn, op->args[0], OP_NOT);
    ir_scalar c;

    if (const_of(s->fn, op->args[0], &c))
        return take_region(s, op, op->regions[c.i ? 0 : 1]);
    if (inverted) {
        ir_block *yes = op->regions[0];
        op->regions[0] = op->regions[1];
        op->regions[1] = yes;
        op->args[0] = inverted->args[0];
        s->changes++;
    }
    if (choose_scalars(s, op)) {
        ir_op *next = op->next;
        ir_unlink(op);
        s->changes++;
        return next;
    }
    join_results(s, op);
    return NULL;
}

/* ---- for ---- */

/* Known number of trips, or -1. */
static int64_t trips(const ir_fn *fn, const ir_op *op)
{
    ir_scalar lo, hi, step;

    if (op->args[0] == op->args[1] || is_int_const(fn, op->args[2], 0))
        return 0;
    if (!const_of(fn, op->args[0], &lo) || !const_of(fn, op->args[1], &hi) ||
        !const_of(fn, op->args[2], &step))
        return -1;
    int64_t way = step.i > 0 ? hi.i - lo.i : lo.i - hi.i;
    int64_t stride = step.i > 0 ? step.i : -step.i;
    return way <= 0 ? 0 : (way + stride - 1) / stride;
}

static ir_op *drop_for(simplifier *s, ir_op *op)
{
    ir_op *next = op->next;

    for (uint32_t i = 0; i < op->nres; i++)
        rename_set(&s->to, op->res + i, op->args[3 + i]);
    ir_unlink(op);
    s->changes++;
    return next;
}

static ir_op *run_once(simplifier *s, ir_op *op)
{
    ir_val arg = op->regions[0]->arg;

    rename_set(&s->to, arg, op->args[0]);
    for (uint32_t i = 0; i < op->nres; i++)
        rename_set(&s->to, arg + 1 + i, op->args[3 + i]);
    return take_region(s, op, op->regions[0]);
}

/* A carried value that every trip passes on unchanged is its initial value; dce then drops it. */
static void free_constants(simplifier *s, ir_op *op)
{
    const ir_block *body = op->regions[0];

    for (uint32_t i = 0; i < op->nres; i++) {
        ir_val arg = body->arg + 1 + i, init = op->args[3 + i];
        ir_val next = rename_of(&s->to, body->last->args[i]);
        if (next != arg && next != init)
            continue;
        rename_set(&s->to, arg, init);
        rename_set(&s->to, op->res + i, init);
        s->changes++;
    }
}

ir_op *simplify_control(simplifier *s, ir_op *op)
{
    if (op->code == OP_IF)
        return simplify_if(s, op);
    if (op->code == OP_FOR) {
        int64_t n = trips(s->fn, op);
        if (n == 0)
            return drop_for(s, op);
        if (n == 1)
            return run_once(s, op);
        free_constants(s, op);
    }
    if (op->code == OP_ASSERT && is_int_const(s->fn, op->args[0], 1)) {
        ir_op *next = op->next;
        ir_unlink(op);
        s->changes++;
        return next;
    }
    return NULL;
}
