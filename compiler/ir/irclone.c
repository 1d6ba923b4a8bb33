/* A deep copy of a module keeps value ids, so that notes about values made for one copy hold for
 * the other. */
#include "compiler/ir/iredit.h"
#include "compiler/ir/layout.h"

typedef struct cloner {
    arena *a;
    intern *names;
    ir_fn *fn; /* the copy */
} cloner;

static ir_block *clone_block(cloner *c, const ir_block *from, ir_op *owner);

static const char *clone_name(cloner *c, const char *name)
{
    return name ? intern_str(c->names, name) : NULL;
}

static ir_attr clone_attr(cloner *c, enum ir_attr_kind kind, ir_attr x)
{
    if (kind == ATTR_INTS)
        x.ints.at = arena_dup(c->a, x.ints.at, x.ints.n * sizeof *x.ints.at);
    else if (kind == ATTR_STR)
        x.s = arena_strdup(c->a, x.s);
    return x;
}

static ir_op *clone_op(cloner *c, const ir_op *from)
{
    ir_op *op = ARENA_NEW(c->a, ir_op);

    *op = *from;
    op->prev = op->next = NULL;
    op->args = arena_dup(c->a, from->args, from->nargs * sizeof *from->args);
    for (int i = 0; i < OP_MAX_ATTRS; i++)
        op->attr[i] = clone_attr(c, op_info(from->code)->attr[i].kind, from->attr[i]);
    op->regions = ARENA_ARRAY(c->a, ir_block *, from->nregions);
    for (int i = 0; i < from->nregions; i++)
        op->regions[i] = clone_block(c, from->regions[i], op);
    for (int i = 0; i < op->nres; i++)
        c->fn->values.at[op->res + (ir_val)i].def = op;
    return op;
}

static ir_block *clone_block(cloner *c, const ir_block *from, ir_op *owner)
{
    ir_block *blk = ARENA_NEW(c->a, ir_block);

    blk->owner = owner;
    blk->arg = from->arg;
    blk->nargs = from->nargs;
    for (uint32_t i = 0; i < blk->nargs; i++)
        c->fn->values.at[blk->arg + i].block = blk;
    for IR_EACH_OP(op, from) {
        ir_op *copy = clone_op(c, op);
        copy->parent = blk;
        copy->prev = blk->last;
        *(blk->last ? &blk->last->next : &blk->first) = copy;
        blk->last = copy;
    }
    return blk;
}

/* What unlinked ops defined stays as a value without a definition. */
static void clone_values(cloner *c, const ir_fn *from)
{
    for (uint32_t i = 0; i < from->values.n; i++) {
        ir_value v = from->values.at[i];
        v.def = NULL;
        v.block = NULL;
        v.name = clone_name(c, v.name);
        vec_push(&c->fn->values, c->a, v);
    }
}

static void clone_signature(cloner *c, const ir_fn *from)
{
    for (uint32_t i = 0; i < from->params.n; i++) {
        ir_param p = from->params.at[i];
        p.name = clone_name(c, p.name);
        vec_push(&c->fn->params, c->a, p);
    }
    for (uint32_t i = 0; i < from->dims.n; i++) {
        ir_dim d = from->dims.at[i];
        d.name = clone_name(c, d.name);
        vec_push(&c->fn->dims, c->a, d);
    }
}

static void clone_layouts(cloner *c, const ir_fn *from)
{
    vec_push(&c->fn->layouts, c->a, NULL);
    for (uint32_t i = 1; i < from->layouts.n; i++) {
        ir_layout *lay = arena_dup(c->a, from->layouts.at[i], sizeof *lay);
        lay->name = clone_name(c, lay->name);
        vec_push(&c->fn->layouts, c->a, lay);
    }
}

static ir_fn *clone_fn(cloner *c, ir_module *m, const ir_fn *from)
{
    if (!from)
        return NULL;
    c->fn = ARENA_NEW(c->a, ir_fn);
    c->fn->module = m;
    c->fn->name = clone_name(c, from->name);
    c->fn->nresults = from->nresults;
    c->fn->warps = from->warps;
    clone_layouts(c, from);
    clone_signature(c, from);
    clone_values(c, from);
    c->fn->body = clone_block(c, from->body, NULL);
    return c->fn;
}

ir_module *ir_clone(const ir_module *m, arena *a)
{
    ir_module *copy = ARENA_NEW(a, ir_module);
    cloner c = {.a = a, .names = ARENA_NEW(a, intern)};

    intern_init(c.names, a);
    copy->a = a;
    copy->names = c.names;
    copy->level = m->level;
    copy->kernel = clone_fn(&c, copy, m->kernel);
    copy->launch = clone_fn(&c, copy, m->launch);
    return copy;
}

/* ---- inside of one function ---- */

typedef struct copier {
    ir_fn *fn;
    ir_val *to; /* of each value that was there before; 0 = itself */
    ir_val n;
} copier;

static ir_block *copy_block(copier *c, const ir_block *from, ir_op *owner);

static ir_val copy_values(copier *c, ir_val first, uint32_t n, ir_op *def, ir_block *block)
{
    ir_val res = n ? c->fn->values.n : 0;

    for (uint32_t i = 0; i < n; i++) {
        ir_value v = c->fn->values.at[first + i];
        v.def = def;
        v.block = block;
        c->to[first + i] = (ir_val)vec_push(&c->fn->values, c->fn->module->a, v);
    }
    return res;
}

static ir_op *copy_op(copier *c, const ir_op *from)
{
    arena *a = c->fn->module->a;
    ir_op *op = ARENA_NEW(a, ir_op);

    *op = *from;
    op->prev = op->next = NULL;
    op->parent = NULL;
    op->args = ARENA_ARRAY(a, ir_val, from->nargs);
    for (int i = 0; i < from->nargs; i++)
        op->args[i] = from->args[i] < c->n && c->to[from->args[i]] ? c->to[from->args[i]]
                                                                   : from->args[i];
    for (int i = 0; i < OP_MAX_ATTRS; i++) {
        if (op_info(from->code)->attr[i].kind == ATTR_INTS)
            op->attr[i].ints.at = arena_dup(a, from->attr[i].ints.at,
                                            from->attr[i].ints.n * sizeof *from->attr[i].ints.at);
    }
    op->regions = ARENA_ARRAY(a, ir_block *, from->nregions);
    for (int i = 0; i < from->nregions; i++)
        op->regions[i] = copy_block(c, from->regions[i], op);
    op->res = copy_values(c, from->res, from->nres, op, NULL);
    return op;
}

static ir_block *copy_block(copier *c, const ir_block *from, ir_op *owner)
{
    ir_block *blk = ARENA_NEW(c->fn->module->a, ir_block);

    blk->owner = owner;
    blk->nargs = from->nargs;
    blk->arg = copy_values(c, from->arg, from->nargs, NULL, blk);
    for IR_EACH_OP(op, from) {
        ir_op *copy = copy_op(c, op);
        copy->parent = blk;
        copy->prev = blk->last;
        *(blk->last ? &blk->last->next : &blk->first) = copy;
        blk->last = copy;
    }
    return blk;
}

ir_op *ir_copy_before(ir_fn *fn, const ir_op *op, ir_op *before)
{
    copier c = {.fn = fn, .n = fn->values.n};

    c.to = ARENA_ARRAY(fn->module->a, ir_val, c.n);
    ir_op *copy = copy_op(&c, op);
    copy->parent = before->parent;
    copy->prev = before->prev;
    copy->next = before;
    *(before->prev ? &before->prev->next : &before->parent->first) = copy;
    before->prev = copy;
    return copy;
}
