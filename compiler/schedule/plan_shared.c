/* plan_shared: every buffer gets its place in shared memory; buffers that are not needed at the
 * same time share bytes.
 *
 * A buffer lives from the first operation that touches it to the last, in the innermost block that
 * holds them all; a loop in that block counts as a whole. One whose copies nothing waits for in
 * that block (the waits are in loops, which may not run) lives to the end. Larger buffers are
 * placed first, each as low as it goes.
 *
 * What does not fit the GPU is refused here.
 */
#include "compiler/base/check.h"
#include "compiler/base/error.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/layout.h"
#include "compiler/schedule/schedule_pass.h"
#include "compiler/schedule/shared_access.h"

enum { SWIZZLE_ALIGN = 1024, PLAIN_ALIGN = 16 };

typedef struct life {
    ir_op *alloc;
    ir_block *block; /* that holds all accesses */
    uint32_t from, to; /* numbers of ops, both included */
    int64_t bytes, align, offset;
    bool placed;
} life;

typedef struct planning {
    const ir_fn *fn;
    arena *a;
    shared_accesses all;
    VEC(life) lives;
    uint32_t counter;
} planning;

static ir_block *parent_block(const ir_block *blk)
{
    return blk->owner ? blk->owner->parent : NULL;
}

static bool holds(const ir_block *outer, const ir_block *blk)
{
    while (blk && blk != outer)
        blk = parent_block(blk);
    return blk != NULL;
}

static ir_block *common(ir_block *x, const ir_block *y)
{
    while (!holds(x, y))
        x = parent_block(x);
    return x;
}

/* The op of the block that is or contains op. */
static ir_op *in_block(const ir_block *blk, ir_op *op)
{
    while (op->parent != blk)
        op = op->parent->owner;
    return op;
}

static void number(ir_op *op, void *arg)
{
    op->mark = ++((planning *)arg)->counter;
}

static uint32_t last_number(const ir_op *op)
{
    uint32_t n = op->mark;

    for (int i = 0; i < op->nregions; i++) {
        if (op->regions[i]->last)
            n = last_number(op->regions[i]->last) > n ? last_number(op->regions[i]->last) : n;
    }
    return n;
}

static void find_block(planning *p, life *l)
{
    for (uint32_t i = 0; i < p->all.at.n; i++) {
        const shared_access *x = &p->all.at.at[i];
        if (x->alloc == l->alloc)
            l->block = l->block ? common(l->block, x->op->parent) : x->op->parent;
    }
}

static bool waited_for(const ir_op *copy)
{
    for (const ir_op *op = copy->next; op; op = op->next) {
        if (op->code == OP_COPY_WAIT)
            return true;
    }
    return false;
}

static void find_span(planning *p, life *l)
{
    for (uint32_t i = 0; i < p->all.at.n; i++) {
        const shared_access *x = &p->all.at.at[i];
        if (x->alloc != l->alloc)
            continue;
        const ir_op *at = in_block(l->block, x->op);
        l->from = l->from && l->from < at->mark ? l->from : at->mark;
        l->to = last_number(at) > l->to ? last_number(at) : l->to;
        if (x->op->code == OP_COPY_ASYNC && x->op->parent == l->block && !waited_for(x->op))
            l->to = UINT32_MAX;
    }
}

static void find_lives(planning *p)
{
    ir_walk(p->fn->body, number, p);
    for (uint32_t i = 0; i < p->all.allocs.n; i++) {
        life l = {.alloc = p->all.allocs.at[i]};
        ir_type t = ir_type_of(p->fn, l.alloc->res);
        find_block(p, &l);
        if (!l.block)
            continue;
        find_span(p, &l);
        l.align = p->fn->layouts.at[t.layout]->row ? SWIZZLE_ALIGN : PLAIN_ALIGN;
        l.bytes = layout_slot_bytes(p->fn, t) * t.shape[0];
        vec_push(&p->lives, p->a, l);
    }
}

static bool meet(const life *x, const life *y)
{
    return x->from <= y->to && y->from <= x->to;
}

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* The lowest place where l meets nobody. */
static int64_t lowest(const planning *p, const life *l)
{
    int64_t at = 0;

    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < p->lives.n; i++) {
            const life *o = &p->lives.at[i];
            if (!o->placed || !meet(l, o) || at >= o->offset + o->bytes ||
                o->offset >= at + l->bytes)
                continue;
            at = round_up(o->offset + o->bytes, l->align);
            moved = true;
        }
    }
    return at;
}

static int64_t place_all(planning *p)
{
    int64_t total = 0;

    for (uint32_t k = 0; k < p->lives.n; k++) {
        life *next = NULL;
        for (uint32_t i = 0; i < p->lives.n; i++) {
            life *l = &p->lives.at[i];
            if (!l->placed && (!next || l->bytes > next->bytes))
                next = l;
        }
        next->offset = lowest(p, next);
        next->placed = true;
        next->alloc->attr[0].i = next->offset;
        total = next->offset + next->bytes > total ? next->offset + next->bytes : total;
    }
    return round_up(total, PLAIN_ALIGN);
}

/* Where the largest buffer comes from. */
static span largest(const planning *p)
{
    int64_t most = 0;
    span where = {0};

    for (uint32_t i = 0; i < p->lives.n; i++) {
        const life *l = &p->lives.at[i];
        if (l->bytes > most && l->alloc->where.src) {
            most = l->bytes;
            where = l->alloc->where;
        }
    }
    return where;
}

static tw_status check_limit(const schedule *s, const planning *p, int64_t bytes)
{
    if (bytes <= s->gpu->shared_per_block)
        return TW_OK;
    return error_diag_at(
        TW_E_LIMIT, DIAG_LIMIT, largest(p), "take smaller tiles or fewer stages",
        "the schedule needs %lld bytes of shared memory, a block on a GPU of capability "
        "%d.%d has %d (num_stages is %d)",
        (long long)bytes, s->gpu->capability / 10, s->gpu->capability % 10,
        (int)s->gpu->shared_per_block, s->params.num_stages);
}

tw_status pass_plan_shared(pass_cx *cx, ir_module *m)
{
    schedule *s = schedule_of(cx);
    planning p = {.fn = m->kernel, .a = cx->scratch};

    p.all = shared_accesses_of(cx->scratch, m->kernel);
    find_lives(&p);
    int64_t total = place_all(&p);
    TRY(check_limit(s, &p, total));
    s->result.shared_bytes = (int32_t)total;
    cx->changes = p.lives.n;
    return TW_OK;
}
