/* join_loops: loops that follow one another and copy the same slices share their buffers.
 *
 *   for %i = %w to %n step 64 {                  %b = alloc
 *     %b = alloc                                 for %i = %w to %n step 64 {
 *     copy.async %x, %i, %b[0]                     copy.async %x, %i, %b[0]
 *     ... masked ...                               ... masked ...
 *   }                                      ->    }
 *   for %j = %0 to %w step 64 {                  for %j = %0 to %w step 64 {
 *     %c = alloc                                   copy.async %x, %j, %b[0]
 *     copy.async %x, %j, %c[0]                     ... not masked ...
 *     ... not masked ...                         }
 *   }
 *
 * To pass_pipeline_loops they are then one loop with segments: what it copies early runs on across
 * the seam. What the bounds and the copies of the later loop follow from is computed in front of
 * the first.
 */
#include "compiler/ir/iredit.h"
#include "compiler/schedule/loop_copies.h"
#include "compiler/schedule/schedule_pass.h"

typedef struct joining {
    ir_fn *fn;
    arena *a;
    uint32_t joined;
} joining;

static bool stands_between(const ir_op *op, const ir_op *first, const ir_op *last)
{
    for (const ir_op *at = first; at && at != last; at = at->next) {
        if (at == op)
            return true;
    }
    return false;
}

/* Can v be computed in front of first, when it is computed between first and last? */
static bool can_rise(const ir_fn *fn, ir_val v, const ir_op *first, const ir_op *last)
{
    const ir_op *def = ir_def(fn, v);

    if (!def || !stands_between(def, first, last))
        return true;
    if (def->nregions)
        return false; /* a loop's result; all others between are pure */
    for (int i = 0; i < def->nargs; i++) {
        if (!can_rise(fn, def->args[i], first, last))
            return false;
    }
    return true;
}

static void raise(const ir_fn *fn, ir_val v, ir_op *first, const ir_op *last)
{
    ir_op *def = ir_def(fn, v);

    if (!def || !stands_between(def, first, last))
        return;
    for (int i = 0; i < def->nargs; i++)
        raise(fn, def->args[i], first, last);
    ir_move_before(def, first);
}

typedef struct span_between {
    ir_fn *fn;
    ir_op *first, *last;
} span_between;

static bool leaf_can_rise(ir_val v, void *arg)
{
    const span_between *s = arg;

    return can_rise(s->fn, v, s->first, s->last);
}

static bool raise_leaf(ir_val v, void *arg)
{
    const span_between *s = arg;

    raise(s->fn, v, s->first, s->last);
    return true;
}

static void share(joining *j, const loop_copies *x, const loop_copies *y)
{
    for (uint32_t i = 0; i < x->at.n; i++) {
        ir_replace_uses(j->fn, y->at.at[i].alloc->res, x->at.at[i].alloc->res);
        ir_unlink(y->at.at[i].alloc);
    }
    j->joined++;
}

static void join_block(joining *j, ir_block *blk);

/* Does nobody else use the buffers? */
static bool owns(const joining *j, const loop_copies *x)
{
    for (uint32_t i = 0; i < x->at.n; i++) {
        if (ir_count_uses(j->fn, x->at.at[i].alloc->res) != 1)
            return false;
    }
    return true;
}

/* Joins the loops behind first to it; returns the last. */
static ir_op *join_from(joining *j, ir_op *first)
{
    loop_copies x, y;
    ir_op *last = first;

    if (!loop_copies_of(j->a, j->fn, first, &x) || !owns(j, &x))
        return first;
    for (uint32_t i = 0; i < x.at.n; i++)
        ir_move_before(x.at.at[i].alloc, first);
    for (ir_op *next; (next = loop_after(j->fn, last)) != NULL; last = next) {
        join_block(j, next->regions[0]);
        span_between between = {j->fn, first, next};
        if (!loop_copies_of(j->a, j->fn, next, &y) || !owns(j, &y) ||
            !loop_copies_alike(j->fn, &x, &y) ||
            !loop_leaves(j->fn, &y, leaf_can_rise, &between))
            return last;
        loop_leaves(j->fn, &y, raise_leaf, &between);
        share(j, &x, &y);
    }
    return last;
}

static void join_block(joining *j, ir_block *blk)
{
    for IR_EACH_OP(op, blk) {
        for (int i = 0; i < op->nregions; i++)
            join_block(j, op->regions[i]);
        if (op->code == OP_FOR)
            op = join_from(j, op); /* which has been through the loops it passes */
    }
}

tw_status pass_join_loops(pass_cx *cx, ir_module *m)
{
    joining j = {.fn = m->kernel, .a = cx->scratch};

    join_block(&j, m->kernel->body);
    cx->changes = j.joined;
    return TW_OK;
}
