/* estimate_registers: how many registers a thread will want at once; far too many is refused.
 *
 * Counts what tiles hold in a thread, backwards from a value's last use to its definition (in a
 * loop that it comes into from outside: from the loop's end). Of two branches only one runs, so
 * what one makes anew takes the place of what only the other keeps. Splats are made where they are
 * read, and a broadcast is its operand. A product in FMA works on pieces of its factors. To the
 * peak comes a fixed number for addresses, counters and what is being worked on, and one for calls
 * of which nothing is seen here. The compiler of the target has the last word, and spills what
 * does not fit.
 */
#include "compiler/base/error.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/layout.h"
#include "compiler/schedule/layout_plan.h"
#include "compiler/schedule/schedule_pass.h"
#include <string.h>

enum {
    OTHER = 55,   /* measured on attention, sm_80 to sm_120: 50 to 60 */
    PIECE = 16,   /* bytes that a product in FMA reads at once of a row of its left factor */
    WALKING = 12, /* its counter and addresses: 4 to 14 more than the others, f32 attention */
    CALLS = 72,   /* see `meeting`; spills of f32 attention begin so much earlier with them */
    KNOWS_MEETINGS = 90, /* the first capability without them */
    REFUSED = 1024 /* four times what a thread has: minutes to compile, and it runs from memory */
};

typedef struct estimating {
    const ir_fn *fn;
    arena *a;
    int *words;   /* of each value, in a thread */
    ir_val *root; /* what a value is made from without registers of its own, or itself */
    int64_t most;
    span at; /* where that is wanted */
    bool calls;
} estimating;

typedef struct live {
    bool *has; /* by value */
    int64_t words;
} live;

/* 32-bit registers of a thread. */
static int words(const ir_fn *fn, ir_type t)
{
    layout_map map;
    const char *why;

    if (t.kind != TYPE_TILE || !layout_map_of(fn, t, fn->warps, &map, &why))
        return 0;
    return (int)(((int64_t)layout_registers(&map) * dtype_bits((enum dtype)t.dtype) + 31) / 32);
}

static bool is_alias(const ir_op *op)
{
    return op->code == OP_BROADCAST || op->code == OP_EXPAND || op->code == OP_TRANS ||
           op->code == OP_RESHAPE;
}

static void find_root(ir_op *op, void *arg)
{
    estimating *e = arg;

    if (is_alias(op))
        e->root[op->res] = e->root[op->args[0]];
    if (is_alias(op) || op->code == OP_SPLAT || op->code == OP_ARANGE)
        e->words[op->res] = 0;
}

static void set_up(estimating *e, ir_block *body)
{
    uint32_t n = e->fn->values.n;

    e->words = ARENA_ARRAY(e->a, int, n);
    e->root = ARENA_ARRAY(e->a, ir_val, n);
    for (ir_val v = 1; v < n; v++) {
        e->words[v] = words(e->fn, ir_type_of(e->fn, v));
        e->root[v] = v;
    }
    ir_walk(body, find_root, e);
}

static void begin_life(const estimating *e, live *l, ir_val v)
{
    v = e->root[v];
    l->words += l->has[v] ? 0 : e->words[v];
    l->has[v] = true;
}

static void end_life(const estimating *e, live *l, ir_val first, uint32_t n)
{
    for (ir_val v = first; v < first + n; v++) {
        l->words -= l->has[v] ? e->words[v] : 0;
        l->has[v] = false;
    }
}

static int held_along(const layout_map *map, int dim)
{
    int n = 1;

    for (int i = 0; i < map->n; i++)
        n *= map->digit[i].place == PLACE_REGISTER && map->digit[i].dim == dim
                 ? map->digit[i].extent
                 : 1;
    return n;
}

/* What a product in FMA works on: a piece of each of its rows of the left factor, its columns of
 * one row of the right one, and where they are read. */
static int factor_words(const ir_fn *fn, const ir_op *dot)
{
    ir_type acc = ir_type_of(fn, dot->res), right = ir_type_of(fn, dot->args[1]);
    int piece = PIECE / dtype_bytes((enum dtype)right.dtype), depth = right.shape[right.rank - 2];
    layout_map map;
    const char *why;

    if (!layout_map_of(fn, acc, fn->warps, &map, &why))
        return 0;
    int n = held_along(&map, 0) * (piece < depth ? piece : depth) + held_along(&map, 1);
    return (n * dtype_bits((enum dtype)acc.dtype) + 31) / 32 + WALKING;
}

static void look(estimating *e, const live *l, const ir_op *op, int more)
{
    if (l->words + more <= e->most)
        return;
    e->most = l->words + more;
    e->at = op->where.src ? op->where : e->at;
}

static live copy_of(const estimating *e, const live *l)
{
    live c = {ARENA_ARRAY(e->a, bool, e->fn->values.n), l->words};

    memcpy(c.has, l->has, e->fn->values.n * sizeof *c.has);
    return c;
}

typedef struct entering {
    const estimating *e;
    live *l;
    const ir_op *loop;
} entering;

static void enter(ir_op *op, void *arg)
{
    entering *n = arg;

    for (int i = 0; i < op->nargs; i++)
        if (ir_defined_outside(n->e->fn, n->e->root[op->args[i]], n->loop))
            begin_life(n->e, n->l, op->args[i]);
}

static void walk_back(estimating *e, const ir_block *blk, live *l);

/* From behind op, whose results are gone, to what its regions want of before it. */
static void walk_regions(estimating *e, const ir_op *op, live *l)
{
    bool again = op->code == OP_FOR || op->code == OP_WHILE;
    live behind = copy_of(e, l);

    for (int i = 0; i < op->nregions; i++) {
        entering n = {e, &behind, op};
        if (again)
            ir_walk(op->regions[i], enter, &n);
    }
    for (int i = 0; i < op->nregions; i++) {
        live inside = copy_of(e, &behind);
        walk_back(e, op->regions[i], &inside);
        end_life(e, &inside, op->regions[i]->arg, op->regions[i]->nargs);
        if (i == 0)
            *l = inside;
        for (ir_val v = 1; i > 0 && v < e->fn->values.n; v++)
            if (inside.has[v])
                begin_life(e, l, v);
    }
}

/* l: what lives behind the block; then what lives before it. */
static void walk_back(estimating *e, const ir_block *blk, live *l)
{
    for (const ir_op *op = blk->last; op; op = op->prev) {
        look(e, l, op, op->code == OP_DOT ? factor_words(e->fn, op) : 0);
        end_life(e, l, op->res, op->nres);
        if (op->nregions)
            walk_regions(e, op, l);
        for (int i = 0; i < op->nargs; i++)
            begin_life(e, l, op->args[i]);
        look(e, l, op, 0);
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Before sm_90 ptxas makes a shuffle twice, the second time as a call, where it cannot tell that
 * the lanes of a warp run together: behind a branch on what they have voted, when those that hold
 * copies sat out a store before that. The call never happens, but registers are given out as if it
 * did. (f32 attention, 32 x 32, D 144, 2 stages, sm_80: 748 bytes are spilled; none without the
 * store's branch, none without the vote's, none on sm_90 and sm_120.) */
typedef struct meeting {
    const ir_fn *fn;
    bool apart, unsure, calls;
} meeting;

/* Over lanes or warps along dim; -1: do they hold copies? */
static bool is_spread(const ir_fn *fn, ir_val v, int dim)
{
    layout_map map;
    const char *why;

    if (!layout_map_of(fn, ir_type_of(fn, v), fn->warps, &map, &why))
        return false;
    for (int i = 0; i < map.n; i++) {
        const layout_digit *d = &map.digit[i];
        if (d->place != PLACE_REGISTER && d->dim == dim && d->extent > 1)
            return true;
    }
    return false;
}

static bool is_vote(const ir_fn *fn, ir_val v)
{
    const ir_op *def = ir_def(fn, v);

    return def && def->code == OP_VOTE_ANY;
}

static void follow(ir_op *op, void *arg)
{
    meeting *m = arg;

    if (op->code == OP_BUFFER_STORE)
        m->apart |= is_spread(m->fn, op->args[1], -1);
    else if (op->code == OP_IF)
        m->unsure |= m->apart && is_vote(m->fn, op->args[0]);
    else if (is_reduction(op))
        m->calls |= m->unsure && is_spread(m->fn, op->args[0], (int)op->attr[0].i);
}

static void find_calls(ir_op *op, void *arg)
{
    estimating *e = arg;
    meeting m = {.fn = e->fn};

    if (op->code != OP_FOR && op->code != OP_WHILE)
        return;
    for (int i = 0; i < op->nregions; i++)
        ir_walk(op->regions[i], follow, &m);
    e->calls |= m.calls;
}

tw_status pass_estimate_registers(pass_cx *cx, ir_module *m)
{
    schedule *s = schedule_of(cx);
    estimating e = {.fn = m->kernel, .a = cx->scratch};
    live l = {ARENA_ARRAY(cx->scratch, bool, m->kernel->values.n), 0};

    set_up(&e, m->kernel->body);
    walk_back(&e, m->kernel->body, &l);
    if (s->gpu->capability < KNOWS_MEETINGS)
        ir_walk(m->kernel->body, find_calls, &e);
    s->result.registers = (int)e.most + OTHER + (e.calls ? CALLS : 0);
    if (e.most <= REFUSED)
        return TW_OK;
    return error_diag_at(TW_E_LIMIT, DIAG_LIMIT, e.at, "take smaller tiles or more warps",
                         "the schedule needs about %d registers a thread, a thread has %d "
                         "(num_warps is %d)",
                         s->result.registers, (int)s->gpu->registers_per_thread,
                         s->params.num_warps);
}
