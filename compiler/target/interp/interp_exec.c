#include "compiler/base/mem.h"
#include "compiler/ir/element.h"
#include "compiler/ir/iredit.h"
#include "compiler/target/interp/interp_agent.h"
#include <string.h>

static void fill(interp_agent *ag, const ir_op *op, ir_scalar v)
{
    ir_scalar *out = cells_of(ag, op->res);

    for (uint64_t i = 0, n = ag->p->length[op->res]; i < n; i++)
        out[i] = v;
}

static void constant(interp_agent *ag, const ir_op *op, ir_scalar v)
{
    enum dtype t = type_of(ag, op->res).dtype;
    bool keep = dtype_is_float(t) && ag->launch.f64;

    fill(ag, op, keep ? v : eval_round(t, v));
}

static void ramp(interp_agent *ag, const ir_op *op)
{
    const interp_hold *h = ag->p->scheduled ? ag->p->hold[op->res] : NULL;
    ir_scalar *out = cells_of(ag, op->res);

    for (uint64_t i = 0, n = ag->p->length[op->res]; i < n; i++)
        out[i].i = op->attr[0].i + (h ? h->at[0][i] + h->move[ag->warp - h->first][0] : (int64_t)i);
}

/* ---- shape ---- */

/* A tile seen with rank 4 (leading extents of 1) and a stride for each extent. */
typedef struct grid4 {
    int64_t n[TILE_MAX_RANK], stride[TILE_MAX_RANK];
} grid4;

static void row_major(ir_type ty, int64_t stride[TILE_MAX_RANK])
{
    int64_t step = 1;

    for (int d = ty.rank - 1; d >= 0; d--) {
        stride[d] = step;
        step *= ty.shape[d];
    }
}

static void gather(ir_scalar *out, const ir_scalar *in, const grid4 *g)
{
    for (int64_t i = 0; i < g->n[0]; i++)
        for (int64_t j = 0; j < g->n[1]; j++)
            for (int64_t k = 0; k < g->n[2]; k++) {
                const ir_scalar *from =
                    in + i * g->stride[0] + j * g->stride[1] + k * g->stride[2];

                for (int64_t l = 0; l < g->n[3]; l++)
                    *out++ = from[l * g->stride[3]];
            }
}

static void rearrange(interp_agent *ag, const ir_op *op)
{
    ir_type from = type_of(ag, op->args[0]), to = type_of(ag, op->res);
    int64_t stride[TILE_MAX_RANK];
    int lead = TILE_MAX_RANK - to.rank;
    grid4 g = {.n = {1, 1, 1, 1}};

    row_major(from, stride);
    for (int d = 0; d < to.rank; d++) {
        int64_t old = op->code == OP_TRANS ? op->attr[0].ints.at[d] : d;

        g.n[lead + d] = to.shape[d];
        g.stride[lead + d] = from.shape[old] == 1 ? 0 : stride[old];
    }
    gather(cells_of(ag, op->res), cells_of(ag, op->args[0]), &g);
}

/* ---- dispatch ---- */

typedef struct place_count {
    const ir_op *wanted;
    int32_t seen, index;
} place_count;

static void count_op(ir_op *op, void *arg)
{
    place_count *c = arg;

    if (op == c->wanted)
        c->index = c->seen;
    c->seen += op->code == c->wanted->code;
}

/* Which op of its kind in the kernel, in text order. */
static int32_t index_among(const interp_agent *ag, const ir_op *op)
{
    place_count c = {.wanted = op};

    ir_walk(ag->p->fn->body, count_op, &c);
    return c.index;
}

static bool check_assert(interp_agent *ag, const ir_op *op)
{
    if (cells_of(ag, op->args[0])->i)
        return true;
    ag->fault.assert_index = index_among(ag, op);
    ag->fault.nvalues = op->nargs - 1;
    for (int i = 1; i < op->nargs; i++)
        ag->fault.value[i - 1] = (int32_t)cells_of(ag, op->args[i])->i;
    memcpy(ag->fault.program, ag->id, sizeof ag->id);
    return interp_fail(ag, TW_E_ASSERT, op, "%s", op->attr[0].s);
}

static bool print(interp_agent *ag, const ir_op *op)
{
    ir_type ty = ir_type_of(ag->p->fn, op->args[0]);
    enum dtype t = (enum dtype)ty.dtype;
    const ir_scalar *in = cells_of(ag, op->args[0]);
    uint64_t n = (uint64_t)type_elements(ty), size = (uint64_t)dtype_bytes(t);

    if (!ag->launch.print)
        return true;
    if (ag->block && (!interp_print_part(ag, op, &in) || !in))
        return in != NULL || ag->fault.status == TW_OK;
    char *elements = mem_alloc(n * size);
    if (!elements)
        return interp_fail(ag, TW_E_NOMEM, op, "no memory for what is printed");
    for (uint64_t i = 0; i < n; i++)
        element_write(t, elements + i * size, in[i]);
    ag->launch.print(ag->launch.print_user, index_among(ag, op), ag->id, elements);
    mem_free(elements);
    return true;
}

bool interp_exec(interp_agent *ag, const ir_op *op)
{
    switch (op->code) {
    case OP_CONST_INT:
    case OP_CONST_FLOAT: {
        ir_scalar v = {.i = op->attr[0].i};
        if (op->code == OP_CONST_FLOAT)
            v.f = op->attr[0].f;
        constant(ag, op, v);
        return true;
    }
    case OP_PROGRAM_ID:
        cells_of(ag, op->res)->i = ag->id[op->attr[0].i];
        return true;
    case OP_NUM_PROGRAMS:
        cells_of(ag, op->res)->i = ag->launch.grid[op->attr[0].i];
        return true;
    case OP_ARANGE:
        ramp(ag, op);
        return true;
    case OP_SPLAT:
        fill(ag, op, *cells_of(ag, op->args[0]));
        return true;
    case OP_EXPAND:
    case OP_RESHAPE:
        memcpy(cells_of(ag, op->res), cells_of(ag, op->args[0]),
               ag->p->length[op->res] * sizeof(ir_scalar));
        return true;
    case OP_BROADCAST:
    case OP_TRANS:
        rearrange(ag, op);
        return true;
    case OP_BITCAST:
        interp_bitcast(ag, op);
        return true;
    case OP_DOT:
        if (ag->p->scheduled)
            return interp_scheduled(ag, op);
        interp_dot(ag, op);
        return true;
    case OP_REDUCE_MAX:
        interp_reduce(ag, op, OP_MAX);
        return true;
    case OP_REDUCE_MIN:
        interp_reduce(ag, op, OP_MIN);
        return true;
    case OP_REDUCE_SUM:
        interp_reduce(ag, op, OP_ADD);
        return true;
    case OP_SOME:
    case OP_EVERY:
        interp_estimate(ag, op);
        return true;
    case OP_SCAN_SUM:
        interp_scan(ag, op, OP_ADD);
        return true;
    case OP_SCAN_PROD:
        interp_scan(ag, op, OP_MUL);
        return true;
    case OP_REDUCE:
    case OP_SCAN:
        return interp_fold(ag, op);
    case OP_LOAD:
        return interp_load(ag, op);
    case OP_STORE:
        return interp_store(ag, op);
    case OP_ATOMIC_ADD:
    case OP_ATOMIC_MAX:
    case OP_ATOMIC_MIN:
    case OP_ATOMIC_XCHG:
    case OP_ATOMIC_CAS:
        return interp_atomic(ag, op);
    case OP_PRINT:
        return print(ag, op);
    case OP_ASSERT:
        return check_assert(ag, op);
    default:
        if (op_info(op->code)->traits & OPT_SCHED)
            return interp_scheduled(ag, op);
        if (op->code != OP_CAST && !(op_info(op->code)->traits & OPT_EWISE))
            return interp_fail(ag, TW_E_INTERNAL, op, "the interpreter has no rule for %s",
                               op_info(op->code)->name);
        interp_elementwise(ag, op);
        return true;
    }
}
