/* place_barriers: what threads write for each other is seen, and not overwritten too early.
 *
 *   buffer.store %s, %x : #a                   buffer.store %s, %x : #a
 *   %y = buffer.load %s : #b           ->      barrier id=0 warps=0
 *                                              %y = buffer.load %s : #b
 *
 * Two accesses to the same bytes (of shared memory at its planned offset, or of a tensor that the
 * kernel writes), one of which writes, need a barrier between them, unless every thread touches
 * only what it touched itself; barrier.warp does when every warp does (an mma reads, on its left,
 * the rows of the warp alone). Walks in text order with the set of accesses since the last barrier;
 * loops are walked until the set at their top no longer grows. A barrier stands right before the
 * access that needs it; in front of the outermost loop or choice when what it waits for was before
 * it.
 *
 * needs: offsets. Between accesses to a ring (a buffer with several slots) pass_pipeline_loops has
 * put what is needed. Asynchronous copies are writes of the whole block, from the wait for them on;
 * waits stand already.
 */
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/layout.h"
#include "compiler/schedule/schedule_pass.h"
#include "compiler/schedule/shared_access.h"
#include <string.h>

enum need { NEED_NOTHING, NEED_WARP, NEED_BLOCK };

typedef struct pending {
    uint64_t *block, *warp; /* accesses since the last barrier of each kind */
    uint64_t *flying;       /* asynchronous copies that nothing has waited for */
} pending;

typedef struct placing {
    ir_fn *fn;
    arena *a;
    shared_accesses all;
    uint32_t words;
    uint32_t placed;
} placing;

/* ---- two accesses ---- */

static int64_t first_byte(const shared_access *x)
{
    return x->alloc->attr[0].i;
}

static int64_t bytes_of(const placing *p, const shared_access *x)
{
    ir_type t = ir_type_of(p->fn, x->alloc->res);

    return layout_slot_bytes(p->fn, t) * t.shape[0];
}

static bool overlap(const placing *p, const shared_access *x, const shared_access *y)
{
    if (!x->alloc || !y->alloc)
        return x->view && x->view == y->view;
    if (x->alloc == y->alloc)
        return ir_type_of(p->fn, x->alloc->res).shape[0] == 1;
    return first_byte(x) >= 0 && first_byte(y) >= 0 &&
           first_byte(x) < first_byte(y) + bytes_of(p, y) &&
           first_byte(y) < first_byte(x) + bytes_of(p, x);
}

static bool has_copies(const layout_map *map, enum layout_place place)
{
    for (int i = 0; i < map->n; i++) {
        if (map->digit[i].dim < 0 && map->digit[i].place == place)
            return true;
    }
    return false;
}

/* What v gains with each iteration of the loop: a constant, or 0 when that is not known. */
static int64_t gain(const ir_fn *fn, const ir_op *loop, ir_val v)
{
    const ir_op *def = ir_def(fn, v);

    if (loop->code != OP_FOR)
        return 0;
    if (v == loop->regions[0]->arg) {
        const ir_op *step = ir_def(fn, loop->args[2]);
        return step && step->code == OP_CONST_INT ? step->attr[0].i : 0;
    }
    if (!def || (def->code != OP_ADD && def->code != OP_MUL))
        return 0;
    for (int i = 0; i < 2; i++) {
        const ir_op *other = ir_def(fn, def->args[1 - i]);
        if (!ir_defined_outside(fn, def->args[1 - i], loop))
            continue;
        if (def->code == OP_ADD)
            return gain(fn, loop, def->args[i]);
        return other && other->code == OP_CONST_INT
                   ? other->attr[0].i * gain(fn, loop, def->args[i])
                   : 0;
    }
    return 0;
}

/* Does no iteration of the loop touch what another does, or do all touch the same? */
static bool iterations_apart(const ir_fn *fn, const ir_op *loop, const ir_op *access)
{
    bool fixed = true;

    for (uint32_t d = 0; d < access->attr[0].ints.n; d++) {
        int64_t extent = access->attr[0].ints.at[d], by = gain(fn, loop, access->args[1 + d]);
        if (ir_type_of(fn, access->args[1 + d]).kind == TYPE_SCALAR &&
            (by < 0 ? -by : by) >= (extent ? extent : 1))
            return true;
        fixed &= ir_defined_outside(fn, access->args[1 + d], loop);
    }
    return fixed;
}

/* Do both take the same place of the same memory, whenever they meet? Of a tensor: the same
 * indices, which in the loops around them are the same throughout or lead to other elements each
 * time. */
static bool same_place(const placing *p, const shared_access *x, const shared_access *y)
{
    const ir_op *a = x->op, *b = y->op;

    if (x->alloc) /* buffers of one type at one offset are one to the threads */
        return (x->alloc == y->alloc || first_byte(x) == first_byte(y)) &&
               type_equal(ir_type_of(p->fn, x->alloc->res), ir_type_of(p->fn, y->alloc->res)) &&
               type_equal(ir_type_of(p->fn, x->slot), ir_type_of(p->fn, y->slot));
    uint32_t n = a->attr[0].ints.n;
    if (memcmp(a->attr[0].ints.at, b->attr[0].ints.at, n * sizeof *a->attr[0].ints.at) != 0 ||
        memcmp(a->args, b->args, (n + 1) * sizeof *a->args) != 0)
        return false;
    for (const ir_op *loop = a->parent->owner; loop; loop = loop->parent->owner) {
        if ((loop->code == OP_FOR || loop->code == OP_WHILE) && ir_inside(b->parent, loop) &&
            !iterations_apart(p->fn, loop, a))
            return false;
    }
    return true;
}

/* Which threads hold what of the tile that x moves; false when it is none of theirs. */
static bool map_of(const placing *p, const shared_access *x, layout_map *map)
{
    ir_type t = ir_type_of(p->fn, x->tile);
    ir_layout factor;
    const char *why;

    if (!x->left)
        return layout_map_of(p->fn, t, p->fn->warps, map, &why);
    ir_type slot = ir_type_of(p->fn, x->slot);
    factor = *p->fn->layouts.at[t.layout];
    factor.kind = LAYOUT_MMA_A;
    for (int d = 0; d < t.rank; d++)
        t.shape[d] = slot.shape[1 + d];
    return layout_map_with(p->fn, t, &factor, p->fn->warps, map, &why);
}

/* What stands between x and, later, y at the same bytes. */
static enum need need_between(const placing *p, const shared_access *x, const shared_access *y)
{
    layout_map from, to;

    if (!((x->kind | y->kind) & ACCESS_WRITE) || !overlap(p, x, y))
        return NEED_NOTHING;
    if (!x->tile || !y->tile || !same_place(p, x, y))
        return NEED_BLOCK;
    ir_type a = ir_type_of(p->fn, x->tile), b = ir_type_of(p->fn, y->tile);
    if (a.kind != TYPE_TILE || b.kind != TYPE_TILE) /* one thread writes a scalar, all read it */
        return x->kind == ACCESS_WRITE && y->kind == ACCESS_WRITE ? NEED_NOTHING : NEED_BLOCK;
    if (!map_of(p, x, &from) || !map_of(p, y, &to) || has_copies(&from, PLACE_WARP) ||
        !layout_same_warps(&from, &to))
        return NEED_BLOCK;
    bool alone = !x->left && !y->left && !has_copies(&from, PLACE_LANE) &&
                 layout_same_threads(&from, &to, NULL);
    return alone ? NEED_NOTHING : NEED_WARP;
}

/* ---- sets ---- */

static pending pending_new(const placing *p)
{
    return (pending){ARENA_ARRAY(p->a, uint64_t, p->words), ARENA_ARRAY(p->a, uint64_t, p->words),
                     ARENA_ARRAY(p->a, uint64_t, p->words)};
}

static pending pending_copy(const placing *p, const pending *x)
{
    pending y = pending_new(p);

    memcpy(y.block, x->block, p->words * sizeof *y.block);
    memcpy(y.warp, x->warp, p->words * sizeof *y.warp);
    memcpy(y.flying, x->flying, p->words * sizeof *y.flying);
    return y;
}

/* True when x grew. */
static bool pending_join(const placing *p, pending *x, const pending *y)
{
    bool grew = false;

    for (uint32_t i = 0; i < p->words; i++) {
        grew |= (y->block[i] & ~x->block[i]) || (y->warp[i] & ~x->warp[i]) ||
                (y->flying[i] & ~x->flying[i]);
        x->block[i] |= y->block[i];
        x->warp[i] |= y->warp[i];
        x->flying[i] |= y->flying[i];
    }
    return grew;
}

static void pending_clear(const placing *p, pending *x, enum need reached)
{
    memset(x->warp, 0, p->words * sizeof *x->warp);
    if (reached == NEED_BLOCK)
        memset(x->block, 0, p->words * sizeof *x->block);
}

static bool in_set(const uint64_t *set, uint32_t i)
{
    return set[i / 64] >> i % 64 & 1;
}

static void put(uint64_t *set, uint32_t i)
{
    set[i / 64] |= (uint64_t)1 << i % 64;
}

/* ---- the walk ---- */

static enum need barrier_kind(const ir_op *op)
{
    if (op->code == OP_BARRIER_WARP)
        return NEED_WARP;
    return op->code == OP_BARRIER && op->attr[1].i == 0 ? NEED_BLOCK : NEED_NOTHING;
}

/* What op needs in front of it. */
static enum need need_before(const placing *p, const pending *now, const ir_op *op)
{
    enum need most = NEED_NOTHING;

    for (uint32_t k = op->mark; k && k <= p->all.at.n && p->all.at.at[k - 1].op == op; k++) {
        for (uint32_t i = 0; i < p->all.at.n; i++) {
            if (!in_set(now->block, i))
                continue;
            enum need n = need_between(p, &p->all.at.at[i], &p->all.at.at[k - 1]);
            if (n == NEED_WARP && !in_set(now->warp, i))
                n = NEED_NOTHING;
            most = n > most ? n : most;
        }
    }
    return most;
}

static void remember(const placing *p, pending *now, const ir_op *op)
{
    for (uint32_t k = op->mark; k && k <= p->all.at.n && p->all.at.at[k - 1].op == op; k++) {
        if (op->code == OP_COPY_ASYNC) {
            put(now->flying, k - 1);
            continue;
        }
        put(now->block, k - 1);
        put(now->warp, k - 1);
    }
}

/* What op, a barrier or a wait, does to what is pending. */
static void settle(const placing *p, pending *now, const ir_op *op)
{
    if (barrier_kind(op))
        pending_clear(p, now, barrier_kind(op));
    for (uint32_t i = 0; op->code == OP_COPY_WAIT && i < p->words; i++) {
        now->block[i] |= now->flying[i];
        now->warp[i] |= now->flying[i];
        now->flying[i] = 0;
    }
}

/* Does something in the block wait for what is pending, before a barrier that stands there? What is
 * needed; *now becomes what is still pending behind the block. */
static enum need block_needs(const placing *p, const ir_block *blk, pending *now)
{
    enum need most = NEED_NOTHING;

    for IR_EACH_OP(op, blk) {
        enum need n = need_before(p, now, op);
        for (int i = 0; i < op->nregions; i++) {
            pending inner = pending_copy(p, now);
            enum need m = block_needs(p, op->regions[i], &inner);
            n = m > n ? m : n;
        }
        most = n > most ? n : most;
        settle(p, now, op);
    }
    return most;
}

static void place(placing *p, ir_op *before, enum need need, pending *now)
{
    ir_builder b = ir_before(p->fn, before);

    if (need == NEED_BLOCK)
        ir_barrier(&b, 0, 0);
    else
        ir_barrier_warp(&b);
    pending_clear(p, now, need);
    p->placed++;
}

static void walk(placing *p, ir_block *blk, pending *now);

/* First what the iterations need among themselves, then what is still to be waited for in front. */
static void walk_loop(placing *p, ir_op *loop, pending *now)
{
    pending top = pending_new(p), end, before = pending_copy(p, now);
    enum need most = NEED_NOTHING;

    do {
        end = pending_copy(p, &top);
        for (int i = 0; i < loop->nregions; i++)
            walk(p, loop->regions[i], &end);
    } while (pending_join(p, &top, &end));
    for (int i = 0; i < loop->nregions; i++) {
        enum need n = block_needs(p, loop->regions[i], &before);
        most = n > most ? n : most;
    }
    if (most)
        place(p, loop, most, now);
    pending_join(p, now, &top);
}

/* What an arm needs of what was before stands in front of the choice: in one arm, it would be
 * needed again behind the other. */
static void walk_choice(placing *p, ir_op *choice, pending *now)
{
    enum need most = NEED_NOTHING;

    for (int i = 0; i < choice->nregions; i++) {
        pending inner = pending_copy(p, now);
        enum need n = block_needs(p, choice->regions[i], &inner);
        most = n > most ? n : most;
    }
    if (most)
        place(p, choice, most, now);
    pending other = pending_copy(p, now);
    walk(p, choice->regions[0], now);
    walk(p, choice->regions[1], &other);
    pending_join(p, now, &other);
}

static void walk(placing *p, ir_block *blk, pending *now)
{
    for IR_EACH_OP(op, blk) {
        enum need n = need_before(p, now, op);
        if (n)
            place(p, op, n, now);
        remember(p, now, op);
        settle(p, now, op);
        if (op->code == OP_IF)
            walk_choice(p, op, now);
        else if (op->nregions)
            walk_loop(p, op, now);
    }
}

tw_status pass_place_barriers(pass_cx *cx, ir_module *m)
{
    placing p = {.fn = m->kernel, .a = cx->scratch};

    p.all = shared_accesses_of(cx->scratch, m->kernel);
    p.words = p.all.at.n / 64 + 1;
    pending now = pending_new(&p);
    walk(&p, m->kernel->body, &now);
    cx->changes = p.placed;
    return TW_OK;
}
