/* estimate_registers: how many registers a thread will want at once; far too many is refused.
 *
 * Counts what tiles hold in a thread, from a value's definition to its last use (in a loop that it
 * comes into from outside: to the loop's end). Splats are made where they are read, and a broadcast
 * is its operand. To the peak comes a fixed number for addresses, counters and what is being worked
 * on. The compiler of the target has the last word, and spills what does not fit.
 */
#include "compiler/base/error.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/layout.h"
#include "compiler/schedule/schedule_pass.h"

enum {
    OTHER = 55,    /* measured on attention, sm_80 to sm_120: 50 to 60 */
    REFUSED = 1024 /* four times what a thread has: minutes to compile, and it runs from memory */
};

typedef struct estimating {
    const ir_fn *fn;
    uint32_t now;
    uint32_t *born, *dies; /* op numbers, of each value */
    ir_val *root;          /* what a value is made from without registers of its own, or itself */
} estimating;

/* 32-bit registers of a thread. */
static int words(const ir_fn *fn, ir_type t)
{
    layout_map map;
    const char *why;

    if (t.kind != TYPE_TILE || !layout_map_of(fn, t, fn->warps, &map, &why))
        return 0;
    return (int)(((int64_t)layout_registers(&map) * dtype_bits((enum dtype)t.dtype) + 31) / 32);
}

static void define(estimating *e, ir_val v)
{
    e->born[v] = e->dies[v] = e->now;
    e->root[v] = v;
}

static void number(estimating *e, ir_block *blk);

/* The arms of a choice run side by side: one of them does. */
static void number_regions(estimating *e, const ir_op *op)
{
    uint32_t first = e->now, last = e->now;

    for (int i = 0; i < op->nregions; i++) {
        e->now = op->code == OP_IF ? first : e->now;
        number(e, op->regions[i]);
        last = e->now > last ? e->now : last;
    }
    e->now = last;
}

/* Numbers ops, by their marks: those in regions before the next of the block. */
static void number(estimating *e, ir_block *blk)
{
    for (uint32_t i = 0; i < blk->nargs; i++)
        define(e, blk->arg + i);
    for IR_EACH_OP(op, blk) {
        op->mark = ++e->now;
        number_regions(e, op);
        for (int i = 0; i < op->nres; i++)
            define(e, op->res + (ir_val)i);
        bool alias = op->code == OP_BROADCAST || op->code == OP_EXPAND || op->code == OP_TRANS ||
                     op->code == OP_RESHAPE;
        if (alias)
            e->root[op->res] = e->root[op->args[0]];
    }
}

static uint32_t end_of(const ir_op *op)
{
    return op->next ? op->next->mark : op->mark;
}

static void use(ir_op *op, void *arg)
{
    estimating *e = arg;

    for (int i = 0; i < op->nargs; i++) {
        ir_val v = e->root[op->args[i]];
        uint32_t at = op->mark;
        for (const ir_op *in = op->parent->owner; in; in = in->parent->owner) {
            if ((in->code == OP_FOR || in->code == OP_WHILE) && ir_defined_outside(e->fn, v, in))
                at = end_of(in);
        }
        e->dies[v] = at > e->dies[v] ? at : e->dies[v];
    }
}

static bool takes_registers(const estimating *e, ir_val v)
{
    const ir_op *def = ir_def(e->fn, v);

    return e->root[v] == v && e->dies[v] > e->born[v] &&
           !(def && (def->code == OP_SPLAT || def->code == OP_ARANGE));
}

/* The largest sum of what is alive behind an op. */
static int64_t peak(const estimating *e, arena *a)
{
    int64_t *change = ARENA_ARRAY(a, int64_t, (size_t)e->now + 2), live = 0, most = 0;

    for (ir_val v = 1; v < e->fn->values.n; v++) {
        if (!takes_registers(e, v))
            continue;
        int n = words(e->fn, ir_type_of(e->fn, v));
        change[e->born[v]] += n;
        change[e->dies[v]] -= n;
    }
    for (uint32_t i = 0; i <= e->now; i++) {
        live += change[i];
        most = live > most ? live : most;
    }
    return most;
}

tw_status pass_estimate_registers(pass_cx *cx, ir_module *m)
{
    schedule *s = schedule_of(cx);
    uint32_t n = m->kernel->values.n;
    estimating e = {.fn = m->kernel};

    e.born = ARENA_ARRAY(cx->scratch, uint32_t, n);
    e.dies = ARENA_ARRAY(cx->scratch, uint32_t, n);
    e.root = ARENA_ARRAY(cx->scratch, ir_val, n);
    number(&e, m->kernel->body);
    ir_walk(m->kernel->body, use, &e);
    int64_t most = peak(&e, cx->scratch);
    s->result.registers = (int)most + OTHER;
    if (most <= REFUSED)
        return TW_OK;
    return error_set(TW_E_LIMIT,
                     "the schedule needs about %lld registers a thread, a thread has %d: take "
                     "smaller tiles or more warps (num_warps is %d)",
                     (long long)most + OTHER, (int)s->gpu->registers_per_thread,
                     s->params.num_warps);
}
