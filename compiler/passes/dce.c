/* dce: drop what nobody uses.
 *
 *   %1 = add %a, %b                       (nothing, when %1 has no use)
 *   %2, %3 = for ... (%x = %a, %y = %b)   %2 = for ... (%x = %a)     when %3 has no use and %y is
 *     ... yield %p, %q                      ... yield %p             only used to compute %q
 *
 * An op lives when it has an effect of its own (a store, an assert), when a live op uses its
 * result, or when a live op stands inside it. A carried value of a for, or a result of an if, lives
 * by itself. A while lives always: it need not end. cost: each op and value is marked once, then
 * one walk; a loop that loses a value is rebuilt.
 */
#include "compiler/passes/dce.h"
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/passes/pipeline.h"

typedef struct marking {
    ir_fn *fn;
    arena *a;
    uint8_t *live; /* of each value */
    VEC(ir_val) work;
    uint32_t removed;
} marking;

static void need(marking *m, ir_val v)
{
    if (m->live[v])
        return;
    m->live[v] = 1;
    vec_push(&m->work, m->a, v);
}

static void need_args(marking *m, const ir_op *op, int first, int n)
{
    for (int i = first; i < first + n; i++)
        need(m, op->args[i]);
}

/* op->mark: lives. */
static void keep_op(marking *m, ir_op *op)
{
    while (op && !op->mark) {
        op->mark = 1;
        if (op->code == OP_FOR)
            need_args(m, op, 0, 3);
        else if (op->code == OP_IF)
            need_args(m, op, 0, 1);
        else if (!(op_info(op->code)->traits & OPT_TERM) || op->code == OP_RETURN)
            need_args(m, op, 0, op->nargs);
        op = op->parent->owner;
    }
}

/* Carried value i of a for: its initial and next value, its argument and its result. */
static void need_carried(marking *m, const ir_op *loop, uint32_t i)
{
    const ir_block *body = loop->regions[0];

    need(m, loop->args[3 + i]);
    need(m, body->last->args[i]);
    need(m, body->arg + 1 + i);
    need(m, loop->res + i);
}

static void need_block_arg(marking *m, const ir_value *v)
{
    ir_op *owner = v->block->owner;

    if (!owner)
        return;
    keep_op(m, owner);
    if (owner->code == OP_FOR && v->index > 0)
        need_carried(m, owner, v->index - 1);
}

static void need_result(marking *m, const ir_value *v)
{
    ir_op *op = v->def;

    keep_op(m, op);
    if (op->code == OP_FOR)
        need_carried(m, op, v->index);
    if (op_is_fold((enum ir_opcode)op->code))
        need(m, op->regions[0]->last->args[0]);
    for (int i = 0; op->code == OP_IF && i < 2; i++)
        need(m, op->regions[i]->last->args[v->index]);
}

static void follow(marking *m)
{
    while (m->work.n) {
        const ir_value *v = ir_value_of(m->fn, m->work.at[--m->work.n]);
        if (v->block)
            need_block_arg(m, v);
        else
            need_result(m, v);
    }
}

static void clear_mark(ir_op *op, void *arg)
{
    (void)arg;
    op->mark = 0;
}

static void keep_terminators(marking *m, ir_op *loop)
{
    keep_op(m, loop);
    for (int i = 0; i < loop->nregions; i++) {
        ir_op *last = loop->regions[i]->last;
        last->mark = 1;
        need_args(m, last, 0, last->nargs);
    }
}

static void find_root(ir_op *op, void *arg)
{
    bool control = op->code == OP_FOR || op->code == OP_IF || op->code == OP_WHILE;

    if (op->code == OP_WHILE)
        keep_terminators(arg, op);
    else if (!control && (op_info(op->code)->traits & (OPT_EFFECT | OPT_WRITE)))
        keep_op(arg, op);
    else if (op->code == OP_RETURN)
        keep_op(arg, op);
}

/* ---- removal ---- */

static void move_ops(ir_block *from, ir_op *before)
{
    for IR_EACH_OP_SAFE(op, nx, from) {
        if (op != from->last)
            ir_move_before(op, before);
    }
}

static void copy_name(ir_fn *fn, ir_val from, ir_val to)
{
    fn->values.at[to].name = fn->values.at[from].name;
}

/* The terminator of `to` yields what `from`'s yields in the live positions. */
static void yield_live(marking *m, const ir_block *from, ir_block *to, const uint32_t *live, int n)
{
    ir_builder b = ir_at_end(m->fn, to);
    ir_val *v = ARENA_ARRAY(m->a, ir_val, (size_t)n);

    for (int i = 0; i < n; i++)
        v[i] = from->last->args[live[i]];
    b.where = from->last->where;
    ir_yield(&b, v, n);
    to->last->mark = 1;
}

static int live_results(marking *m, const ir_op *op, uint32_t *live)
{
    int n = 0;

    for (uint32_t i = 0; i < op->nres; i++) {
        if (m->live[op->res + i])
            live[n++] = i;
    }
    return n;
}

static void replace(marking *m, ir_val from, ir_val to)
{
    copy_name(m->fn, from, to);
    ir_replace_uses(m->fn, from, to);
}

static void rebuild_for(marking *m, ir_op *op, const uint32_t *live, int n)
{
    ir_builder b = ir_before(m->fn, op);
    ir_val *init = ARENA_ARRAY(m->a, ir_val, (size_t)n);

    for (int i = 0; i < n; i++)
        init[i] = op->args[3 + live[i]];
    ir_op *slim = ir_for(&b, op->args[0], op->args[1], op->args[2], init, n);
    ir_block *from = op->regions[0], *to = slim->regions[0];
    yield_live(m, from, to, live, n);
    move_ops(from, to->last);
    replace(m, from->arg, to->arg);
    for (uint32_t i = 0; i < (uint32_t)n; i++) {
        replace(m, from->arg + 1 + live[i], to->arg + 1 + i);
        replace(m, op->res + live[i], slim->res + i);
    }
    ir_unlink(op);
}

static void rebuild_if(marking *m, ir_op *op, const uint32_t *live, int n)
{
    ir_builder b = ir_before(m->fn, op);
    ir_type *types = ARENA_ARRAY(m->a, ir_type, (size_t)n);

    for (int i = 0; i < n; i++)
        types[i] = ir_type_of(m->fn, op->res + live[i]);
    ir_op *slim = ir_if(&b, op->args[0], types, n);
    for (int side = 0; side < 2; side++) {
        yield_live(m, op->regions[side], slim->regions[side], live, n);
        move_ops(op->regions[side], slim->regions[side]->last);
    }
    for (uint32_t i = 0; i < (uint32_t)n; i++)
        replace(m, op->res + live[i], slim->res + i);
    ir_unlink(op);
}

static void shrink(marking *m, ir_op *op)
{
    uint32_t *live = ARENA_ARRAY(m->a, uint32_t, op->nres);
    int n = live_results(m, op, live);

    if (n == op->nres)
        return;
    m->removed += (uint32_t)(op->nres - n);
    if (op->code == OP_FOR)
        rebuild_for(m, op, live, n);
    else
        rebuild_if(m, op, live, n);
}

static void sweep(marking *m, ir_block *blk)
{
    for IR_EACH_OP_SAFE(op, nx, blk) {
        if (op == blk->last)
            break;
        if (!op->mark) {
            m->removed++;
            ir_unlink(op);
            continue;
        }
        for (int i = 0; i < op->nregions; i++)
            sweep(m, op->regions[i]);
        if (op->code == OP_FOR || op->code == OP_IF)
            shrink(m, op);
    }
}

uint32_t dce_fn(ir_fn *fn, arena *scratch)
{
    marking m = {.fn = fn, .a = scratch};

    m.live = ARENA_ARRAY(scratch, uint8_t, fn->values.n);
    ir_walk(fn->body, clear_mark, NULL);
    ir_walk(fn->body, find_root, &m);
    follow(&m);
    sweep(&m, fn->body);
    return m.removed;
}

tw_status pass_dce(pass_cx *cx, ir_module *m)
{
    cx->changes = dce_fn(m->kernel, cx->scratch);
    if (m->launch)
        cx->changes += dce_fn(m->launch, cx->scratch);
    return TW_OK;
}
