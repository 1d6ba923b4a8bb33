#include "compiler/ir/iredit.h"
#include "compiler/base/check.h"

void ir_walk(ir_block *blk, ir_visit_fn visit, void *arg)
{
    for IR_EACH_OP_SAFE(op, nx, blk) {
        visit(op, arg);
        if (op->parent != blk)
            continue; /* unlinked or moved by the visitor */
        nx = op->next;
        for (int i = 0; i < op->nregions; i++)
            ir_walk(op->regions[i], visit, arg);
    }
}

typedef struct renaming {
    ir_val from, to;
    int uses;
} renaming;

static void rename_args(ir_op *op, void *arg)
{
    const renaming *r = arg;

    for (int i = 0; i < op->nargs; i++) {
        if (op->args[i] == r->from)
            op->args[i] = r->to;
    }
}

void ir_replace_uses(ir_fn *fn, ir_val from, ir_val to)
{
    ir_walk(fn->body, rename_args, &(renaming){from, to, 0});
}

ir_val ir_append_param(ir_fn *fn, ir_param p)
{
    ir_block *body = fn->body;
    ir_val first = fn->values.n;

    p.name = intern_str(fn->module->names, p.name);
    vec_push(&fn->params, fn->module->a, p);
    for (uint32_t i = 0; i < body->nargs; i++) {
        ir_value moved = fn->values.at[body->arg + i];
        vec_push(&fn->values, fn->module->a, moved);
        fn->values.at[body->arg + i].block = NULL;
        ir_replace_uses(fn, body->arg + i, first + i);
    }
    ir_value added = {.type = p.type, .block = body, .index = body->nargs, .name = p.name};
    vec_push(&fn->values, fn->module->a, added);
    body->arg = first;
    return first + body->nargs++;
}

static void count_args(ir_op *op, void *arg)
{
    renaming *r = arg;

    for (int i = 0; i < op->nargs; i++)
        r->uses += op->args[i] == r->from;
}

int ir_count_uses(const ir_fn *fn, ir_val v)
{
    renaming r = {v, 0, 0};

    ir_walk(fn->body, count_args, &r);
    return r.uses;
}

void ir_unlink(ir_op *op)
{
    ir_block *blk = op->parent;

    ICHECK(blk, "the op is linked");
    *(op->prev ? &op->prev->next : &blk->first) = op->next;
    *(op->next ? &op->next->prev : &blk->last) = op->prev;
    op->prev = op->next = NULL;
    op->parent = NULL;
}

void ir_move_before(ir_op *op, ir_op *before)
{
    if (op == before)
        return;
    ir_unlink(op);
    op->parent = before->parent;
    op->prev = before->prev;
    op->next = before;
    *(before->prev ? &before->prev->next : &before->parent->first) = op;
    before->prev = op;
}

int ir_depth(const ir_block *blk)
{
    int depth = 0;

    for (const ir_op *owner = blk->owner; owner; owner = owner->parent->owner)
        depth += owner->code == OP_FOR || owner->code == OP_WHILE;
    return depth;
}

bool ir_inside(const ir_block *blk, const ir_op *op)
{
    const ir_op *owner = blk->owner;

    while (owner && owner != op)
        owner = owner->parent ? owner->parent->owner : NULL;
    return owner != NULL;
}

bool ir_defined_outside(const ir_fn *fn, ir_val v, const ir_op *loop)
{
    const ir_value *val = ir_value_of(fn, v);

    if (val->def == loop)
        return false; /* its own results come after it */
    return !ir_inside(val->def ? val->def->parent : val->block, loop);
}

static void count_op(ir_op *op, void *arg)
{
    (void)op;
    ++*(int *)arg;
}

int ir_op_count(const ir_fn *fn)
{
    int n = 0;

    ir_walk(fn->body, count_op, &n);
    return n;
}
