#include "compiler/schedule/loop_copies.h"
#include "compiler/base/check.h"
#include "compiler/ir/iredit.h"
#include "compiler/passes/purity.h"
#include <string.h>

/* Does v follow from the counter and from outside by pure operations on scalars? */
static bool follows(const ir_fn *fn, const ir_op *loop, ir_val v)
{
    const ir_op *def = ir_def(fn, v);

    if (v == loop->regions[0]->arg || ir_defined_outside(fn, v, loop))
        return true;
    if (!def || def->nregions || !op_is_pure(fn, def) ||
        ir_type_of(fn, v).kind != TYPE_SCALAR)
        return false;
    for (int i = 0; i < def->nargs; i++) {
        if (!follows(fn, loop, def->args[i]))
            return false;
    }
    return true;
}

/* Fills *c when op is a copy in the form that can be taken apart. */
static bool is_copy(const ir_fn *fn, const ir_op *loop, ir_op *op, loop_copy *c)
{
    if (op->code != OP_COPY_ASYNC || !op->next || op->next->code != OP_COPY_COMMIT ||
        !op->next->next || op->next->next->code != OP_COPY_WAIT)
        return false;
    ir_op *slot = ir_def(fn, op->args[op->nargs - 1]);
    if (!slot || slot->code != OP_BUFFER_SLOT || slot->parent != op->parent)
        return false;
    ir_op *alloc = ir_def(fn, slot->args[0]);
    *c = (loop_copy){alloc, slot, op, op->next, op->next->next};
    for (int i = 0; i + 1 < op->nargs; i++) {
        if (!follows(fn, loop, op->args[i]))
            return false;
    }
    return alloc && alloc->code == OP_ALLOC;
}

static void find_copies(arena *a, const ir_fn *fn, loop_copies *l, const ir_block *blk)
{
    loop_copy c;

    for IR_EACH_OP(op, blk) {
        if (is_copy(fn, l->loop, op, &c))
            vec_push(&l->at, a, c);
    }
}

bool loop_copies_of(arena *a, ir_fn *fn, ir_op *loop, loop_copies *res)
{
    const ir_op *step = loop->code == OP_FOR ? ir_def(fn, loop->args[2]) : NULL;

    *res = (loop_copies){.loop = loop};
    if (!step || step->code != OP_CONST_INT || step->attr[0].i == 0 ||
        step->attr[0].i == INT32_MIN)
        return false;
    res->step = step->attr[0].i;
    find_copies(a, fn, res, loop->regions[0]);
    if (res->at.n)
        return true;
    for IR_EACH_OP(op, loop->regions[0]) {
        if (op->code != OP_IF || !follows(fn, loop, op->args[0]))
            continue;
        find_copies(a, fn, res, op->regions[0]);
        res->guard = op;
        if (res->at.n)
            return true;
    }
    return false;
}

static bool same_slice(const ir_fn *fn, const loop_copy *x, const loop_copy *y)
{
    const ir_op *p = x->copy, *q = y->copy;
    uint32_t n = p->attr[0].ints.n;

    return p->args[0] == q->args[0] && p->attr[2].i == q->attr[2].i && n == q->attr[0].ints.n &&
           memcmp(p->attr[0].ints.at, q->attr[0].ints.at, n * sizeof *p->attr[0].ints.at) == 0 &&
           type_equal(ir_type_of(fn, x->alloc->res), ir_type_of(fn, y->alloc->res));
}

bool loop_copies_alike(const ir_fn *fn, const loop_copies *x, const loop_copies *y)
{
    if (x->at.n != y->at.n)
        return false;
    for (uint32_t i = 0; i < x->at.n; i++) {
        if (!same_slice(fn, &x->at.at[i], &y->at.at[i]))
            return false;
    }
    return true;
}

ir_val loop_value_at(ir_builder *b, const loop_copies *l, ir_val v, ir_val counter)
{
    ir_val args[VIEW_MAX_RANK + 1];
    const ir_op *def = ir_def(b->fn, v);

    if (v == l->loop->regions[0]->arg)
        return counter;
    if (ir_defined_outside(b->fn, v, l->loop))
        return v;
    ICHECK(def->nargs <= VIEW_MAX_RANK + 1, "a pure operation has few operands");
    for (int i = 0; i < def->nargs; i++)
        args[i] = loop_value_at(b, l, def->args[i], counter);
    return ir_build(b, def->code, args, def->nargs, def->attr, ir_type_of(b->fn, v))->res;
}

static bool leaves_of(const ir_fn *fn, const loop_copies *l, ir_val v, loop_leaf_fn visit,
                      void *arg)
{
    const ir_op *def = ir_def(fn, v);

    if (v == l->loop->regions[0]->arg)
        return true;
    if (ir_defined_outside(fn, v, l->loop))
        return visit(v, arg);
    for (int i = 0; i < def->nargs; i++) {
        if (!leaves_of(fn, l, def->args[i], visit, arg))
            return false;
    }
    return true;
}

bool loop_leaves(const ir_fn *fn, const loop_copies *l, loop_leaf_fn visit, void *arg)
{
    for (int i = 0; i < 3; i++) {
        if (!visit(l->loop->args[i], arg))
            return false;
    }
    if (l->guard && !leaves_of(fn, l, l->guard->args[0], visit, arg))
        return false;
    for (uint32_t k = 0; k < l->at.n; k++) {
        const ir_op *copy = l->at.at[k].copy;
        for (int i = 0; i + 1 < copy->nargs; i++) {
            if (!leaves_of(fn, l, copy->args[i], visit, arg))
                return false;
        }
    }
    return true;
}

ir_op *loop_after(const ir_fn *fn, const ir_op *loop)
{
    for (ir_op *op = loop->next; op; op = op->next) {
        if (op->code == OP_FOR)
            return op;
        if (op->nregions || !op_is_pure(fn, op))
            return NULL;
    }
    return NULL;
}
