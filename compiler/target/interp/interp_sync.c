/* What orders the warps of a block: barriers, mbarriers, waits. */
#include "compiler/target/interp/interp_block.h"
#include <string.h>

/* ---- barriers ---- */

static bool same_barrier(interp_agent *ag, const ir_op *op, const interp_barrier *bar, int want)
{
    char here[80], there[80];

    if (bar->want == want && !(bar->arrived >> ag->warp & 1))
        return true;
    interp_fail(ag, TW_E_SOURCE, op, "barrier %lld: %d warps are to meet at %s, but %d at %s",
                (long long)op->attr[0].i, want, interp_op_text(op, here, sizeof here), bar->want,
                interp_op_text(bar->op, there, sizeof there));
    ag->fault.other = bar->op;
    return false;
}

static void release_all(interp_block *b, int id)
{
    interp_barrier *bar = &b->barrier[id];
    race_clock *clock = race_clock_at(b->race, id);

    for (int w = 0; w < b->warps; w++) {
        if (!(bar->arrived >> w & 1))
            continue;
        race_acquire(b->race, w, clock);
        b->warp[w]->waiting = NULL;
    }
    race_clock_clear(b->race, clock);
    *bar = (interp_barrier){0};
}

static bool barrier_op(interp_agent *ag, const ir_op *op)
{
    interp_block *b = ag->block;
    int id = (int)op->attr[0].i, want = op->attr[1].i ? (int)op->attr[1].i : b->warps;
    interp_barrier *bar = &b->barrier[id];

    if (!bar->want)
        *bar = (interp_barrier){.want = want, .op = op};
    if (!same_barrier(ag, op, bar, want))
        return false;
    race_release(b->race, ag->warp, race_clock_at(b->race, id));
    bar->arrived |= 1u << ag->warp;
    ag->waiting = op;
    if (__builtin_popcount(bar->arrived) == want)
        release_all(b, id);
    return true;
}

/* ---- mbarriers: clock 16 + 2 m is of the phase that runs, 17 + 2 m of the last one ---- */

/* Every warp executes the alloc; the first one initialises. */
static bool init_mbars(interp_agent *ag, const ir_op *op)
{
    interp_block *b = ag->block;
    int first = ag->p->mbar[interp_op_number(ag->p, op)];

    for (int m = first; m < first + op->attr[1].i; m++) {
        interp_mbar *bar = &b->mbar[m];
        if (bar->inits >> ag->warp & 1)
            return interp_fail(ag, TW_E_SOURCE, op, "mbar.alloc is executed twice");
        if (!bar->inits)
            *bar = (interp_mbar){.arrivals = op->attr[2].i, .pending = op->attr[2].i, .op = op};
        bar->inits |= 1u << ag->warp;
        bar->when[ag->warp] = race_now(b->race, ag->warp);
    }
    cells_of(ag, op->res)->i = first;
    return true;
}

/* Whoever initialised it, the warp must know. */
static bool is_ready(interp_agent *ag, const ir_op *op, const interp_mbar *bar)
{
    const interp_block *b = ag->block;
    char here[80], there[80];

    for (int w = 0; w < b->warps; w++) {
        if ((bar->inits >> w & 1) && race_knows(b->race, ag->warp, w, bar->when[w]))
            continue;
        interp_fail(ag, TW_E_SOURCE, op,
                    "warp %d, %s: the mbarrier of %s is not initialised for this warp: a barrier "
                    "is missing",
                    ag->warp, interp_op_text(op, here, sizeof here),
                    interp_op_text(bar->op, there, sizeof there));
        ag->fault.other = bar->op;
        return false;
    }
    return true;
}

bool interp_mbar_at(interp_agent *ag, const ir_op *op, int arg, int64_t *mbar)
{
    const interp_block *b = ag->block;
    int64_t first = cells_of(ag, op->args[arg])->i, index = cells_of(ag, op->args[arg + 1])->i;
    int64_t count = b->mbar[first].op->attr[1].i;

    if (index < 0 || index >= count)
        return interp_fail(ag, TW_E_SOURCE, op, "%s: mbarrier %lld of %lld",
                           op_info(op->code)->name, (long long)index, (long long)count);
    *mbar = first + index;
    return is_ready(ag, op, &b->mbar[*mbar]);
}

void interp_mbar_complete(interp_block *b, int64_t m)
{
    interp_mbar *bar = &b->mbar[m];
    race_clock *now = race_clock_at(b->race, 16 + 2 * (int)m);

    if (!bar->inits || bar->pending > 0 || bar->bytes != 0)
        return;
    race_clock_copy(b->race, race_clock_at(b->race, 17 + 2 * (int)m), now);
    race_clock_clear(b->race, now);
    bar->pending = bar->arrivals;
    bar->parity ^= 1;
}

bool interp_mbar_passed(const interp_block *b, const interp_agent *ag)
{
    return b->mbar[ag->wait_mbar].parity != ag->wait_parity;
}

static bool arrive(interp_agent *ag, const ir_op *op, int64_t m, int64_t bytes)
{
    interp_block *b = ag->block;
    interp_mbar *bar = &b->mbar[m];

    if (bar->pending == 0)
        return interp_fail(ag, TW_E_SOURCE, op, "warp %d: one arrival more than the phase takes",
                           ag->warp);
    race_release(b->race, ag->warp, race_clock_at(b->race, 16 + 2 * (int)m));
    bar->bytes += bytes;
    bar->pending--;
    interp_mbar_complete(b, m);
    interp_wake(b);
    return true;
}

static void wait_mbar(interp_agent *ag, const ir_op *op, int64_t m)
{
    ag->wait_mbar = m;
    ag->wait_parity = cells_of(ag, op->args[2])->i & 1;
    ag->waiting = op;
    if (!interp_mbar_passed(ag->block, ag))
        interp_land_bulk(ag->block, m);
    interp_wake(ag->block);
}

static bool mbar_op(interp_agent *ag, const ir_op *op)
{
    int64_t m;

    if (op->code == OP_MBAR_ALLOC)
        return init_mbars(ag, op);
    if (!interp_mbar_at(ag, op, 0, &m))
        return false;
    if (op->code != OP_MBAR_WAIT)
        return arrive(ag, op, m, op->code == OP_MBAR_EXPECT ? op->attr[0].i : 0);
    wait_mbar(ag, op, m);
    return true;
}

/* ---- wgmma ---- */

static bool ends_flight(const ir_op *op, int arg)
{
    return op->code == OP_WGMMA_WAIT || op->code == OP_YIELD || op->code == OP_CONDITION ||
           op->code == OP_FOR || op->code == OP_WHILE || (op->code == OP_WGMMA && arg == 2);
}

bool interp_flights_end(interp_agent *ag, const ir_op *op)
{
    uint32_t done = race_products_done(ag->block->race, ag->warp);

    for (int i = 0; i < op->nargs; i++) {
        if (ag->flight[op->args[i]] > done && !ends_flight(op, i))
            return interp_fail(
                ag, TW_E_SOURCE, op,
                "warp %d, '%s': operand %d is still made by a wgmma: a wgmma.wait is "
                "missing",
                ag->warp, op_info(op->code)->name, i);
    }
    for (int i = 0; i < op->nres; i++)
        ag->flight[op->res + (ir_val)i] = 0;
    return true;
}

static void wait_products(interp_agent *ag, const ir_op *op)
{
    race_wait_products(ag->block->race, ag->warp, (int)op->attr[0].i);
    for (int i = 0; i < op->nargs; i++) {
        memcpy(cells_of(ag, op->res + (ir_val)i), cells_of(ag, op->args[i]),
               ag->p->length[op->args[i]] * sizeof(ir_scalar));
        ag->flight[op->res + (ir_val)i] = ag->flight[op->args[i]];
    }
}

/* ---- dispatch ---- */

bool interp_scheduled(interp_agent *ag, const ir_op *op)
{
    race *r = ag->block->race;

    switch ((unsigned)op->code) {
    case OP_COPY_ASYNC:
        return interp_copy_async(ag, op);
    case OP_COPY_BULK:
        return interp_copy_bulk(ag, op);
    case OP_COPY_COMMIT:
        race_commit(r, ag->warp);
        return true;
    case OP_COPY_WAIT:
        interp_copy_wait(ag, (int)op->attr[0].i);
        return true;
    case OP_BARRIER:
        return barrier_op(ag, op);
    case OP_BARRIER_WARP:
        race_order_lanes(r, ag->warp);
        return true;
    case OP_FENCE_ASYNC:
        race_fence(r, ag->warp);
        return true;
    case OP_WGMMA_COMMIT:
        race_commit_products(r, ag->warp);
        return true;
    case OP_WGMMA_WAIT:
        wait_products(ag, op);
        return true;
    case OP_MBAR_ALLOC:
    case OP_MBAR_ARRIVE:
    case OP_MBAR_EXPECT:
    case OP_MBAR_WAIT:
        return mbar_op(ag, op);
    default:
        return interp_tile_op(ag, op);
    }
}
