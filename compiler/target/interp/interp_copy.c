/* Copies by engines: copy.async in groups of each warp, copy.bulk at mbarriers. What will be in
 * shared memory is read when the copy is issued, and appears there at once or as late as it may. */
#include "compiler/base/mem.h"
#include "compiler/target/interp/interp_block.h"
#include <string.h>

static void unlink_copy(interp_copy **at)
{
    interp_copy *c = *at;

    *at = c->next;
    mem_free(c->data);
    mem_free(c);
}

void interp_free_copies(interp_block *b)
{
    while (b->copies)
        unlink_copy(&b->copies);
}

static void land(interp_block *b, interp_copy *c)
{
    if (!c->landed)
        memcpy(b->shared + c->at, c->data, (size_t)c->bytes);
    c->landed = true;
}

static uint32_t group_mask(const interp_agent *ag)
{
    return (uint32_t)(((UINT64_C(1) << ag->warps) - 1) << ag->first);
}

/* The slot of the copy, which has `after` operands more. */
static ir_val slot_of(const ir_op *op, int after)
{
    return op->args[op->nargs - 1 - after];
}

static interp_copy *new_copy(interp_agent *ag, const ir_op *op, ir_val slot, int64_t mbar)
{
    interp_block *b = ag->block;
    interp_copy *c = mem_zalloc(sizeof *c);

    if (!c)
        return NULL;
    c->next = b->copies;
    b->copies = c;
    c->op = op;
    c->count = ag->count[interp_op_number(ag->p, op)];
    c->group = c->to_wait = group_mask(ag);
    c->at = cells_of(ag, slot)->i;
    c->bytes = layout_slot_bytes(ag->p->fn, ir_type_of(ag->p->fn, slot));
    c->mbar = mbar;
    c->late = interp_random(b, 2);
    c->race = race_copy_new(b->race, interp_op_number(ag->p, op), c->group, (int)mbar);
    c->data = mem_alloc((size_t)c->bytes);
    return c->race && c->data ? c : NULL;
}

/* Elements where they lie in the slot: the gathered ones are row-major. */
static bool fill(interp_agent *ag, const ir_op *op, interp_copy *c, ir_val slot)
{
    ir_type ty = ir_type_of(ag->p->fn, slot);
    const int32_t *offset = ag->p->offset[slot];
    int64_t n = type_elements(ty);
    size_t size = (size_t)dtype_bytes((enum dtype)ty.dtype);
    unsigned char *flat = mem_alloc((size_t)c->bytes);

    if (!flat)
        return interp_fail(ag, TW_E_NOMEM, op, "no memory for a copy");
    bool ok = interp_gather(ag, op, flat);
    for (int64_t i = 0; i < n && ok; i++)
        memcpy(c->data + offset[i], flat + (size_t)i * size, size);
    mem_free(flat);
    return ok;
}

static interp_copy *open_copy(interp_agent *ag, const ir_op *op)
{
    uint32_t count = interp_count(ag, op);

    for (interp_copy *c = ag->block->copies; c; c = c->next) {
        if (c->op == op && c->count == count)
            return c;
    }
    return NULL;
}

static bool same_slot(interp_agent *ag, const ir_op *op, const interp_copy *c, ir_val slot)
{
    return c->at == cells_of(ag, slot)->i ||
           interp_fail(ag, TW_E_SOURCE, op,
                       "warp %d, 'copy.async': another slot than that of the warps before",
                       ag->warp);
}

/* Pieces begin at multiples of their size: the tensor's base and other strides do by its facts. */
static bool is_aligned(interp_agent *ag, const ir_op *op, ir_val slot)
{
    int64_t first = cells_of(ag, op->args[op->nargs - 2])->i, bytes = op->attr[2].i;
    int64_t at = first * dtype_bytes((enum dtype)ir_type_of(ag->p->fn, slot).dtype);

    return at % bytes == 0 ||
           interp_fail(ag, TW_E_SOURCE, op,
                       "copy.async: element %lld of a row is not at a multiple of %lld bytes",
                       (long long)first, (long long)bytes);
}

bool interp_copy_async(interp_agent *ag, const ir_op *op)
{
    ir_val slot = slot_of(op, 0);
    interp_copy *c = open_copy(ag, op);
    race_access x = interp_access(ag, op, HOLD_MANY);
    race_report report;
    bool first = !c;

    if (first && !(c = new_copy(ag, op, slot, -1)))
        return interp_fail(ag, TW_E_NOMEM, op, "no memory for a copy");
    if (!same_slot(ag, op, c, slot) || !is_aligned(ag, op, slot))
        return false;
    if (!race_copy_issue(ag->block->race, c->race, &x, c->at, c->bytes, &report))
        return interp_report(ag, op, &report);
    if (first && !fill(ag, op, c, slot))
        return false;
    if (first && !c->late)
        land(ag->block, c);
    return true;
}

void interp_copy_wait(interp_agent *ag, int pending)
{
    interp_block *b = ag->block;

    for (interp_copy **at = &b->copies; *at;) {
        interp_copy *c = *at;
        if (c->mbar < 0 && (c->to_wait >> ag->warp & 1) &&
            race_wait_covers(b->race, c->race, ag->warp, pending))
            c->to_wait &= ~(1u << ag->warp);
        if (c->to_wait) {
            at = &c->next;
            continue;
        }
        land(b, c);
        unlink_copy(at);
    }
    race_wait(b->race, ag->warp, pending);
}

/* ---- bulk ---- */

static void land_bulk(interp_block *b, interp_copy *c)
{
    land(b, c);
    b->mbar[c->mbar].bytes -= c->bytes;
    race_land(b->race, c->race, race_clock_at(b->race, 16 + 2 * (int)c->mbar));
    c->to_wait = 0;
}

bool interp_land_bulk(interp_block *b, int64_t mbar)
{
    bool some = false;

    for (interp_copy **at = &b->copies; *at;) {
        interp_copy *c = *at;
        if (c->mbar < 0 || (mbar >= 0 && c->mbar != mbar) || !c->issued) {
            at = &c->next;
            continue;
        }
        land_bulk(b, c);
        unlink_copy(at);
        some = true;
    }
    for (int64_t m = 0; some && m < b->p->mbarriers; m++)
        interp_mbar_complete(b, m);
    if (some)
        interp_wake(b);
    return some;
}

bool interp_copy_bulk(interp_agent *ag, const ir_op *op)
{
    ir_val slot = slot_of(op, 2);
    int64_t mbar;
    race_access x = interp_access(ag, op, HOLD_MANY);
    race_report report;

    if (!interp_mbar_at(ag, op, op->nargs - 2, &mbar))
        return false;
    interp_count(ag, op);
    interp_copy *c = new_copy(ag, op, slot, mbar);
    if (!c)
        return interp_fail(ag, TW_E_NOMEM, op, "no memory for a copy");
    x.proxy = true;
    if (!race_copy_issue(ag->block->race, c->race, &x, c->at, c->bytes, &report))
        return interp_report(ag, op, &report);
    if (!fill(ag, op, c, slot))
        return false;
    c->issued = true;
    if (!c->late)
        interp_land_bulk(ag->block, mbar);
    return true;
}
