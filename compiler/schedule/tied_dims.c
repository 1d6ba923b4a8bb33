#include "compiler/schedule/tied_dims.h"
#include "compiler/ir/iredit.h"

enum { MOST_ADDED = 16, LARGEST_INDEX = 1 << 30 };

static uint32_t root_of(const tied_dims *t, uint32_t node)
{
    while (t->parent[node] != node)
        node = t->parent[node] = t->parent[t->parent[node]];
    return node;
}

uint32_t tied_class(const tied_dims *t, ir_val v, int d)
{
    return root_of(t, v * TILE_MAX_RANK + (uint32_t)d);
}

static bool is_tile(const tied_dims *t, ir_val v)
{
    return ir_type_of(t->fn, v).kind == TYPE_TILE;
}

static int rank_of(const tied_dims *t, ir_val v)
{
    return is_tile(t, v) ? ir_type_of(t->fn, v).rank : 0;
}

static void stop(tied_dims *t, ir_val v, int d, const char *why, const ir_op *op)
{
    tied_stop *s = &t->stop[tied_class(t, v, d)];

    if (!s->why)
        *s = (tied_stop){why, op};
}

static void stop_all(tied_dims *t, ir_val v, const char *why, const ir_op *op)
{
    for (int d = 0; d < rank_of(t, v); d++)
        stop(t, v, d, why, op);
}

static void tie(tied_dims *t, ir_val x, int dx, ir_val y, int dy)
{
    uint32_t to = tied_class(t, x, dx), from = tied_class(t, y, dy);

    t->parent[from] = to;
    if (!t->stop[to].why)
        t->stop[to] = t->stop[from];
}

static void tie_all(tied_dims *t, ir_val x, ir_val y)
{
    for (int d = 0; d < rank_of(t, x) && d < rank_of(t, y); d++)
        tie(t, x, d, y, d);
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Does the slice of dimension d reach the tensor's end, whatever it adds behind? */
static bool reaches_end(const tied_dims *t, const ir_op *op, int d)
{
    const ir_param *p = &t->fn->params.at[ir_value_of(t->fn, op->args[0])->index];
    const ir_dim *dim = &t->fn->dims.at[p->dim[d]];
    const ir_op *index = ir_def(t->fn, op->args[1 + d]);

    return dim->is_const && index && index->code == OP_CONST_INT &&
           index->attr[0].i <= LARGEST_INDEX && index->attr[0].i >= -LARGEST_INDEX &&
           index->attr[0].i + op->attr[0].ints.at[d] >= dim->value;
}

static void tie_access(tied_dims *t, const ir_op *op)
{
    int rank = (int)op->attr[0].ints.n, k = 0;
    ir_val tile = op->nres ? op->res : op->args[op->nargs - 1];

    for (int i = 1 + rank; i < op->nargs; i++)
        tie_all(t, tile, op->args[i]);
    for (int d = 0; d < rank; d++) {
        if (op->attr[0].ints.at[d] == 0)
            continue;
        if (is_tile(t, op->args[1 + d])) {
            stop(t, op->args[1 + d], 0, "a tile of indices picks elements", op);
            stop(t, tile, k, "a tile of indices picks elements", op);
        } else if (!reaches_end(t, op, d)) {
            stop(t, tile, k, "a slice takes a part of a dimension", op);
        }
        k++;
    }
}

/* ---- operations ------------------------------------------------------------------------------ */

static void tie_reduction(tied_dims *t, const ir_op *op)
{
    int axis = (int)op->attr[0].i;

    for (int d = 0; d < rank_of(t, op->res); d++)
        tie(t, op->res, d, op->args[0], d + (d >= axis));
    if (op->code == OP_REDUCE)
        stop(t, op->args[0], axis, "a function of the text reduces it", op);
}

static void tie_view(tied_dims *t, const ir_op *op)
{
    ir_type from = ir_type_of(t->fn, op->args[0]), to = ir_type_of(t->fn, op->res);

    for (int d = 0; d < from.rank; d++) {
        int at = op->code == OP_EXPAND ? d + (d >= (int)op->attr[0].i) : d;
        if (op->code == OP_TRANS)
            tie(t, op->args[0], (int)op->attr[0].ints.at[d], op->res, d);
        else if (from.shape[d] == to.shape[at]) /* an extent of 1 that is widened is not tied */
            tie(t, op->args[0], d, op->res, at);
    }
}

static void tie_dot(tied_dims *t, const ir_op *op)
{
    ir_val a = op->args[0], b = op->args[1];

    tie(t, a, 1, b, 0);
    tie(t, a, 0, op->res, 0);
    tie(t, b, 1, op->res, 1);
    tie_all(t, op->args[2], op->res);
}

static void tie_loop(tied_dims *t, const ir_op *op)
{
    int skip = op->code == OP_FOR;
    const ir_block *first = op->regions[0], *body = op->regions[op->nregions - 1];

    for (int i = 0; i < op->nres; i++) {
        ir_val carried = first->arg + (ir_val)(i + skip), res = op->res + (ir_val)i;
        tie_all(t, carried, op->args[3 * skip + i]);
        tie_all(t, carried, body->last->args[i]);
        tie_all(t, skip ? carried : first->last->args[1 + i], res);
        if (!skip)
            tie_all(t, body->arg + (ir_val)i, res);
    }
}

static void tie_if(tied_dims *t, const ir_op *op)
{
    for (int i = 0; i < op->nres; i++) {
        for (int r = 0; r < op->nregions; r++)
            tie_all(t, op->regions[r]->last->args[i], op->res + (ir_val)i);
    }
}

static const char *why_not(const ir_op *op)
{
    return op->code == OP_PRINT     ? "print shows it"
           : op->code == OP_RESHAPE ? "reshape counts its elements"
                                    : "an operation would show it";
}

static void tie_other(tied_dims *t, const ir_op *op)
{
    bool elementwise = (op_info((enum ir_opcode)op->code)->traits & OPT_EWISE) ||
                       op->code == OP_CAST || op->code == OP_BITCAST || op->code == OP_SCAN ||
                       op->code == OP_SCAN_SUM || op->code == OP_SCAN_PROD;

    for (int i = 0; i < op->nargs; i++) {
        if (elementwise)
            tie_all(t, op->args[i], op->res);
        else
            stop_all(t, op->args[i], why_not(op), op);
    }
    if (!elementwise && op->nres == 1)
        stop_all(t, op->res, why_not(op), op);
}

static void tie_op(ir_op *op, void *arg)
{
    tied_dims *t = arg;

    if (op_is_access((enum ir_opcode)op->code)) {
        tie_access(t, op);
        return;
    }
    switch ((int)op->code) {
    case OP_SPLAT:
    case OP_YIELD:
    case OP_CONDITION:
        return; /* theirs is tied where they belong to */
    case OP_ARANGE:
        if (op->attr[0].i + ir_type_of(t->fn, op->res).shape[0] > INT32_MAX - MOST_ADDED)
            stop(t, op->res, 0, "it counts up to the end of i32", op);
        return;
    case OP_EXPAND:
    case OP_BROADCAST:
    case OP_TRANS:
        tie_view(t, op);
        return;
    case OP_DOT:
        tie_dot(t, op);
        return;
    case OP_REDUCE:
    case OP_REDUCE_MAX:
    case OP_REDUCE_MIN:
    case OP_REDUCE_SUM:
        tie_reduction(t, op);
        return;
    case OP_FOR:
    case OP_WHILE:
        tie_loop(t, op);
        return;
    case OP_IF:
        tie_if(t, op);
        return;
    default:
        tie_other(t, op);
    }
}

tied_dims tied_dims_of(arena *a, const ir_fn *fn)
{
    tied_dims t = {.fn = fn, .n = fn->values.n * TILE_MAX_RANK};

    t.parent = ARENA_ARRAY(a, uint32_t, t.n);
    t.stop = ARENA_ARRAY(a, tied_stop, t.n);
    for (uint32_t i = 0; i < t.n; i++)
        t.parent[i] = i;
    ir_walk(fn->body, tie_op, &t);
    return t;
}
