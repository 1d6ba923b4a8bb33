/* print at level 2: each warp adds what it holds, the last one of the group prints. */
#include "compiler/base/mem.h"
#include "compiler/target/interp/interp_block.h"

/* The number, in the whole tile, of a cell of what the warp holds. */
static int64_t whole_number(const interp_agent *ag, ir_val v, int64_t cell)
{
    const interp_hold *h = ag->p->hold[v];
    ir_type ty = ir_type_of(ag->p->fn, v);
    int64_t number = 0, step = 1;

    for (int d = ty.rank - 1; d >= 0; d--) {
        int32_t move = h->move[ag->warp - h->first][d];
        number += (h->at[d][cell % h->n[d]] + move) * step;
        cell /= h->n[d];
        step *= ty.shape[d];
    }
    return number;
}

static interp_shared_result *open_print(interp_agent *ag, const ir_op *op)
{
    uint32_t count = interp_count(ag, op);
    ir_type ty = ir_type_of(ag->p->fn, op->args[0]);

    for (interp_shared_result *r = ag->block->results; r; r = r->next) {
        if (r->op == op && r->count == count)
            return r;
    }
    interp_shared_result *r = mem_zalloc(sizeof *r);
    if (!r)
        return NULL;
    r->next = ag->block->results;
    ag->block->results = r;
    r->op = op;
    r->count = count;
    r->to_come = ag->warps;
    r->cell = mem_alloc((size_t)type_elements(ty) * sizeof *r->cell);
    return r->cell ? r : NULL;
}

bool interp_print_part(interp_agent *ag, const ir_op *op, const ir_scalar **elements)
{
    ir_val v = op->args[0];
    const ir_scalar *in = cells_of(ag, v);
    interp_shared_result *r = open_print(ag, op);

    *elements = NULL;
    if (!r)
        return interp_fail(ag, TW_E_NOMEM, op, "no memory for what is printed");
    for (int64_t i = 0; i < (int64_t)ag->p->length[v]; i++)
        r->cell[ag->p->hold[v] ? whole_number(ag, v, i) : 0] = in[i];
    if (--r->to_come == 0)
        *elements = r->cell;
    return true;
}
