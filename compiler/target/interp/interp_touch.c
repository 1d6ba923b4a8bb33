#include "compiler/base/mem.h"
#include "compiler/target/interp/interp_memory.h"
#include <string.h>

/* The lane that holds a cell of the warp's part, or that acts for all that do. */
static int lane_of(const slice *s, int64_t cell, bool one)
{
    const interp_hold *h = s->hold;
    int lane = 0;

    if (!h)
        return one ? 0 : HOLD_MANY;
    if (h->lane_copies && !one)
        return HOLD_MANY;
    for (int d = h->rank - 1; d >= 0; d--) {
        lane += h->lane[d][cell % h->n[d]];
        cell /= h->n[d];
    }
    return lane;
}

bool interp_touch_element(interp_agent *ag, const ir_op *op, const slice *s, int64_t cell,
                          const void *p, enum touch touch)
{
    race_access x = {.warp = ag->warp, .op = s->number};
    race *r = ag->block->race;
    race_report report;

    x.lane = lane_of(s, cell, touch != TOUCH_READ);
    bool ok = touch == TOUCH_READ ? race_read_element(r, &x, p, &report)
                                  : race_write_element(r, &x, p, touch == TOUCH_ATOMIC, &report);

    return ok || interp_report(ag, op, &report);
}

/* ---- atomic results ---- */

static bool has_copies(const interp_agent *ag, const ir_op *op)
{
    const interp_hold *h = ag->p->hold[op->res];

    return h ? h->warp_copies : ag->warps > 1;
}

static void move_of(const interp_agent *ag, const ir_op *op, int32_t *move)
{
    const interp_hold *h = ag->p->hold[op->res];

    memset(move, 0, TILE_MAX_RANK * sizeof *move);
    if (h)
        memcpy(move, h->move[ag->warp - h->first], TILE_MAX_RANK * sizeof *move);
}

bool interp_has_result(interp_agent *ag, const ir_op *op)
{
    int32_t move[TILE_MAX_RANK];

    if (!has_copies(ag, op))
        return false;
    uint32_t count = interp_count(ag, op);
    move_of(ag, op, move);
    for (interp_shared_result *r = ag->block->results; r; r = r->next) {
        if (r->op != op || r->count != count || memcmp(r->move, move, sizeof move) != 0)
            continue;
        memcpy(cells_of(ag, op->res), r->cell, ag->p->length[op->res] * sizeof *r->cell);
        return true;
    }
    return false;
}

bool interp_keep_result(interp_agent *ag, const ir_op *op)
{
    size_t bytes = ag->p->length[op->res] * sizeof(ir_scalar);

    if (!has_copies(ag, op))
        return true;
    interp_shared_result *r = mem_zalloc(sizeof *r);
    if (!r)
        return interp_fail(ag, TW_E_NOMEM, op, "no memory for the result of an atomic operation");
    r->next = ag->block->results;
    ag->block->results = r;
    r->op = op;
    r->count = ag->count[interp_op_number(ag->p, op)];
    move_of(ag, op, r->move);
    r->cell = mem_alloc(bytes);
    if (!r->cell)
        return interp_fail(ag, TW_E_NOMEM, op, "no memory for the result of an atomic operation");
    memcpy(r->cell, cells_of(ag, op->res), bytes);
    return true;
}
