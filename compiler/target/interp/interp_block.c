/* Blocks: their warps take turns, each until it must wait. */
#include "compiler/target/interp/interp_block.h"
#include "compiler/base/mem.h"
#include <stdio.h>
#include <string.h>

/* ---- life ---- */

static bool add_warps(interp_block *b, const interp_launch *l)
{
    for (int w = 0; w < b->warps; w++) {
        interp_agent *ag = b->warp[w] = interp_agent_create(b->p, l);
        if (!ag)
            return false;
        ag->block = b;
        ag->warp = w;
        ag->count = mem_zalloc(b->p->nops * sizeof *ag->count);
        if (b->p->products)
            ag->flight = mem_zalloc(2 * b->p->fn->values.n * sizeof *ag->flight);
        if (!ag->count || (b->p->products && !ag->flight))
            return false;
    }
    return true;
}

static void free_results(interp_block *b)
{
    while (b->results) {
        interp_shared_result *next = b->results->next;
        mem_free(b->results->cell);
        mem_free(b->results);
        b->results = next;
    }
}

static void destroy(interp_block *b)
{
    for (int w = 0; w < b->warps; w++)
        interp_agent_destroy(b->warp[w]);
    interp_free_copies(b);
    free_results(b);
    race_free(b->race);
    mem_free(b->shared);
    mem_free(b->mbar);
}

static bool create(interp_block *b, const interp_program *p, const interp_launch *l)
{
    const race_shape shape = {p->fn->warps, p->mbarriers, p->shared_bytes, p->granule, p->products};

    *b = (interp_block){.p = p, .warps = p->fn->warps, .random = l->seed};
    b->race = race_new(&shape);
    b->shared = mem_alloc((size_t)p->shared_bytes);
    b->mbar = mem_zalloc((size_t)p->mbarriers * sizeof *b->mbar);
    return b->race && b->shared && b->mbar && add_warps(b, l);
}

/* ---- one program ---- */

static void start(interp_block *b, const int64_t id[3])
{
    race_reset(b->race);
    interp_free_copies(b);
    free_results(b);
    memset(b->shared, 0xff, (size_t)b->p->shared_bytes); /* NaN in every float */
    memset(b->barrier, 0, sizeof b->barrier);
    memset(b->mbar, 0, (size_t)b->p->mbarriers * sizeof *b->mbar);
    for (int w = 0; w < b->warps; w++) {
        interp_agent *ag = b->warp[w];
        interp_agent_start(ag, id);
        ag->first = 0;
        ag->warps = b->warps;
        ag->waiting = NULL;
        memset(ag->count, 0, b->p->nops * sizeof *ag->count);
        if (ag->flight)
            memset(ag->flight, 0, b->p->fn->values.n * sizeof *ag->flight);
    }
}

uint32_t interp_random(interp_block *b, uint32_t below)
{
    b->random = b->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(b->random >> 33) % below;
}

static bool can_run(const interp_agent *ag)
{
    return ag->nframes && !ag->waiting;
}

/* A warp that can run; -1 when there is none. */
static int pick(interp_block *b)
{
    int ready[IR_MAX_WARPS], n = 0;

    for (int w = 0; w < b->warps; w++) {
        if (can_run(b->warp[w]))
            ready[n++] = w;
    }
    return n ? ready[interp_random(b, (uint32_t)n)] : -1;
}

void interp_wake(interp_block *b)
{
    for (int w = 0; w < b->warps; w++) {
        interp_agent *ag = b->warp[w];
        if (ag->waiting && ag->waiting->code == OP_MBAR_WAIT && interp_mbar_passed(b, ag)) {
            race_acquire(b->race, w, race_clock_at(b->race, 17 + 2 * (int)ag->wait_mbar));
            ag->waiting = NULL;
        }
    }
}

/* ---- deadlock ---- */

const char *interp_op_text(const ir_op *op, char *text, size_t size)
{
    if (op->where.src)
        snprintf(text, size, "'%s' (line %d)", op_info(op->code)->name,
                 source_line(op->where.src, op->where.lo));
    else
        snprintf(text, size, "'%s'", op_info(op->code)->name);
    return text;
}

/* Where the first warp is that a waiting one could wait for. */
static const interp_agent *other_than(const interp_block *b, const interp_agent *ag)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int w = 0; w < b->warps; w++) {
            const interp_agent *x = b->warp[w];
            bool in_group = w >= ag->first && w < ag->first + ag->warps;
            if (x != ag && x->waiting != ag->waiting && (in_group || pass))
                return x;
        }
    }
    return NULL;
}

static void report_deadlock(interp_block *b)
{
    interp_agent *ag = NULL;
    char here[80], there[80];

    for (int w = b->warps - 1; w >= 0; w--)
        ag = b->warp[w]->waiting ? b->warp[w] : ag;
    const interp_agent *x = other_than(b, ag);
    interp_op_text(ag->waiting, here, sizeof here);
    if (x && x->waiting)
        interp_fail(ag, TW_E_SOURCE, ag->waiting,
                    "deadlock: warp %d waits at %s, and warp %d at %s", ag->warp, here, x->warp,
                    interp_op_text(x->waiting, there, sizeof there));
    else if (x)
        interp_fail(ag, TW_E_SOURCE, ag->waiting,
                    "deadlock: warp %d waits at %s, and warp %d has ended without coming there",
                    ag->warp, here, x->warp);
    else
        interp_fail(ag, TW_E_SOURCE, ag->waiting,
                    "deadlock: all warps wait at %s for what never comes", here);
    ag->fault.other = x ? x->waiting : NULL;
    b->turn = ag->warp;
}

/* ---- running ---- */

static bool all_ended(const interp_block *b)
{
    for (int w = 0; w < b->warps; w++) {
        if (b->warp[w]->nframes)
            return false;
    }
    return true;
}

/* What all warps ran without an error found: did they read what nothing wrote? */
static tw_status end_block(interp_block *b)
{
    race_report report;
    char here[80];

    if (!race_unwritten(b->race, &report))
        return TW_OK;
    const ir_op *op = b->p->op[report.before];
    interp_fail(b->warp[report.warp], TW_E_SOURCE, op,
                "warp %d, %s: reads byte %lld of shared memory, which nothing had written",
                report.warp, interp_op_text(op, here, sizeof here), (long long)report.byte);
    b->turn = report.warp;
    return TW_E_SOURCE;
}

static tw_status run_block(interp_block *b)
{
    for (;;) {
        int w = pick(b);
        if (w < 0 && interp_land_bulk(b, -1))
            continue;
        if (w < 0 && all_ended(b))
            return end_block(b);
        if (w < 0) {
            report_deadlock(b);
            return TW_E_SOURCE;
        }
        b->turn = w;
        enum interp_state state = INTERP_RUNNING;
        while (state == INTERP_RUNNING)
            state = interp_step(b->warp[w]);
        if (state == INTERP_FAILED)
            return b->warp[w]->fault.status;
    }
}

static tw_status no_memory(interp_fault *fault)
{
    if (fault)
        *fault = (interp_fault){.status = TW_E_NOMEM, .text = "no memory for an interpreted block"};
    return TW_E_NOMEM;
}

tw_status interp_run_blocks(const interp_program *p, const interp_launch *l, int64_t first,
                            int64_t total, int64_t count, interp_fault *fault)
{
    interp_block b;
    tw_status st = TW_OK;

    if (!create(&b, p, l)) {
        destroy(&b);
        return no_memory(fault);
    }
    if (fault)
        *fault = (interp_fault){0};
    for (int64_t k = first; k < total && k - first < count && st == TW_OK; k++) {
        int64_t id[3] = {k % l->grid[0], k / l->grid[0] % l->grid[1], k / l->grid[0] / l->grid[1]};
        start(&b, id);
        st = run_block(&b);
        if (st != TW_OK && fault)
            *fault = b.warp[b.turn]->fault;
    }
    destroy(&b);
    return st;
}

/* ---- reporting ---- */

uint32_t interp_count(interp_agent *ag, const ir_op *op)
{
    return ++ag->count[interp_op_number(ag->p, op)];
}

race_access interp_access(const interp_agent *ag, const ir_op *op, int lane)
{
    return (race_access){.warp = ag->warp, .lane = lane, .op = interp_op_number(ag->p, op)};
}

bool interp_report(interp_agent *ag, const ir_op *op, const race_report *r)
{
    static const char *const text[] = {
        [RACE_ORDER] = "nothing orders them: a barrier is missing",
        [RACE_LANES] = "another thread of the warp: a barrier.warp is missing",
        [RACE_LANDING] = "which has not landed for this warp: a wait or a barrier is missing",
        [RACE_ENGINE] = "which may still read: a wait is missing",
        [RACE_FENCE] = "which the engines do not see: a fence.async is missing",
    };
    char here[80], there[80], where[64] = "a tensor";

    if (r->kind == RACE_NONE)
        return interp_fail(ag, TW_E_NOMEM, op, "no memory to look for races");
    if (r->byte >= 0)
        snprintf(where, sizeof where, "byte %lld of shared memory", (long long)r->byte);
    interp_op_text(op, here, sizeof here);
    const ir_op *other = ag->p->op[r->before];
    interp_fail(ag, TW_E_SOURCE, op, "warp %d, %s: %s was %s by %s; %s", ag->warp, here, where,
                r->wrote ? "written" : "read", interp_op_text(other, there, sizeof there),
                text[r->kind]);
    ag->fault.other = other;
    return false;
}
