/* Operations of level 2 on tiles and buffers, as one warp runs them. The cell of a buffer is the
 * byte where it, or its slot, begins. */
#include "compiler/target/interp/interp_block.h"
#include <math.h>
#include <string.h>

/* ---- walking what a warp holds ---- */

typedef struct walk {
    const interp_hold *h;
    const int32_t *move;
    int64_t n, stride[TILE_MAX_RANK]; /* of the whole tile, row-major */
    int32_t i[TILE_MAX_RANK];
} walk;

static walk walk_of(const interp_agent *ag, ir_val v)
{
    const interp_hold *h = ag->p->hold[v];
    ir_type whole = ir_type_of(ag->p->fn, v);
    walk w = {.h = h, .move = h->move[ag->warp - h->first], .n = (int64_t)ag->p->length[v]};
    int64_t step = 1;

    for (int d = h->rank - 1; d >= 0; d--) {
        w.stride[d] = step;
        step *= whole.shape[d];
    }
    return w;
}

static void advance(walk *w)
{
    for (int d = w->h->rank - 1; d >= 0 && ++w->i[d] == w->h->n[d]; d--)
        w->i[d] = 0;
}

/* The row-major number in the whole tile. */
static int64_t number_of(const walk *w)
{
    int64_t n = 0;

    for (int d = 0; d < w->h->rank; d++)
        n += (w->h->at[d][w->i[d]] + w->move[d]) * w->stride[d];
    return n;
}

static int lane_of(const walk *w)
{
    int lane = 0;

    for (int d = 0; d < w->h->rank; d++)
        lane += w->h->lane[d][w->i[d]];
    return lane;
}

/* ---- buffers ---- */

static bool take_slot(interp_agent *ag, const ir_op *op)
{
    ir_type ty = ir_type_of(ag->p->fn, op->args[0]);
    int64_t slot = cells_of(ag, op->args[1])->i;

    if (slot < 0 || slot >= ty.shape[0])
        return interp_fail(ag, TW_E_SOURCE, op, "buffer.slot: slot %lld of %d", (long long)slot,
                           ty.shape[0]);
    cells_of(ag, op->res)->i =
        cells_of(ag, op->args[0])->i + slot * layout_slot_bytes(ag->p->fn, ty);
    return true;
}

static bool load_buffer(interp_agent *ag, const ir_op *op)
{
    interp_block *b = ag->block;
    enum dtype t = (enum dtype)type_of(ag, op->res).dtype;
    const int32_t *offset = ag->p->offset[op->args[0]];
    int64_t base = cells_of(ag, op->args[0])->i;
    ir_scalar *out = cells_of(ag, op->res);
    race_access x = interp_access(ag, op, HOLD_MANY);
    walk w = walk_of(ag, op->res);
    race_report report;

    for (int64_t i = 0; i < w.n; i++, advance(&w)) {
        int64_t at = base + offset[number_of(&w)];
        x.lane = w.h->lane_copies ? HOLD_MANY : lane_of(&w);
        if (!race_read(b->race, &x, at, dtype_bytes(t), &report))
            return interp_report(ag, op, &report);
        out[i] = element_read(t, b->shared + at);
    }
    return true;
}

static bool store_buffer(interp_agent *ag, const ir_op *op)
{
    interp_block *b = ag->block;
    ir_val v = op->args[1];
    enum dtype t = (enum dtype)type_of(ag, v).dtype;
    const int32_t *offset = ag->p->offset[op->args[0]];
    int64_t base = cells_of(ag, op->args[0])->i;
    const ir_scalar *in = cells_of(ag, v);
    race_access x = interp_access(ag, op, HOLD_MANY);
    walk w = walk_of(ag, v);
    race_report report;

    if (!w.h->acts[ag->warp - w.h->first])
        return true;
    for (int64_t i = 0; i < w.n; i++, advance(&w)) {
        int64_t at = base + offset[number_of(&w)];
        x.lane = lane_of(&w);
        if (!race_write(b->race, &x, at, dtype_bytes(t), &report))
            return interp_report(ag, op, &report);
        element_write(t, b->shared + at, in[i]);
    }
    return true;
}

/* ---- products ---- */

/* The 13 low bits that tf32 lacks, rounded to nearest, ties away from zero: cvt.rna.tf32.f32. */
static ir_scalar round_tf32(ir_scalar v)
{
    float f = (float)v.f;
    uint32_t bits;

    if (isnan(f) || isinf(f))
        return v;
    memcpy(&bits, &f, sizeof bits);
    bits = (bits + 0x1000) & ~UINT32_C(0x1fff);
    memcpy(&f, &bits, sizeof bits);
    return (ir_scalar){.f = (double)f};
}

typedef struct gathering {
    interp_agent *ag;
    const ir_op *op;
    ir_val slot;
    race_access x;
    bool product; /* read by an engine until its wait */
    ir_scalar *out;
} gathering;

static bool gather_one(gathering *g, int64_t number)
{
    interp_block *b = g->ag->block;
    enum dtype t = (enum dtype)ir_type_of(g->ag->p->fn, g->slot).dtype;
    int64_t at = cells_of(g->ag, g->slot)->i + g->ag->p->offset[g->slot][number];
    race_report report;
    bool ok = g->product ? race_read_product(b->race, &g->x, at, dtype_bytes(t), &report)
                         : race_read(b->race, &g->x, at, dtype_bytes(t), &report);

    if (!ok)
        return interp_report(g->ag, g->op, &report);
    *g->out++ = element_read(t, b->shared + at);
    return true;
}

/* The rows (dim 0) or columns (dim 1) of a slot that the warp's part of the product needs. */
static bool gather_factor(gathering *g, int dim)
{
    const interp_hold *h = g->ag->p->hold[g->op->res];
    ir_type slot = ir_type_of(g->ag->p->fn, g->slot);
    int32_t move = h->move[g->ag->warp - h->first][dim], rows = slot.shape[1];
    int32_t m = dim == 0 ? h->n[0] : rows, n = dim == 1 ? h->n[1] : slot.shape[2];

    for (int32_t i = 0; i < m; i++)
        for (int32_t k = 0; k < n; k++) {
            int32_t row = dim == 0 ? h->at[0][i] + move : i;
            int32_t column = dim == 1 ? h->at[1][k] + move : k;
            if (!gather_one(g, (int64_t)row * slot.shape[2] + column))
                return false;
        }
    return true;
}

static bool multiply(interp_agent *ag, const ir_op *op)
{
    int64_t k = ir_type_of(ag->p->fn, op->args[1]).shape[1];
    ir_scalar *x = ag->cell + ag->p->scratch, *y = x + k * type_of(ag, op->res).shape[0];
    gathering g = {.ag = ag, .op = op, .slot = op->args[0], .out = x};
    bool tile = type_of(ag, op->args[0]).kind == TYPE_TILE;

    g.product = op->code == OP_WGMMA;
    g.x = interp_access(ag, op, HOLD_MANY);
    g.x.proxy = g.product;
    if (tile)
        memcpy(x, cells_of(ag, op->args[0]), ag->p->length[op->args[0]] * sizeof *x);
    else if (!gather_factor(&g, 0))
        return false;
    g.slot = op->args[1];
    g.out = y;
    if (!gather_factor(&g, 1))
        return false;
    bool rounds = op->code != OP_DOT && op->attr[0].i && !ag->launch.f64;
    for (ir_scalar *v = x; rounds && v < g.out; v++)
        *v = round_tf32(*v);
    interp_multiply(ag, op->args[2], op->res, x, y, k);
    if (g.product)
        ag->flight[op->res] = race_product_group(ag->block->race, ag->warp);
    return true;
}

/* ---- between threads ---- */

/* Where the warp has index `wanted` of dimension d; -1 when it does not hold it. */
static int32_t find_index(const interp_hold *h, int d, int32_t wanted)
{
    int32_t lo = 0, hi = h->n[d] - 1;

    while (lo < hi) {
        int32_t middle = (lo + hi) / 2;
        if (h->at[d][middle] < wanted)
            lo = middle + 1;
        else
            hi = middle;
    }
    return h->at[d][lo] == wanted ? lo : -1;
}

static bool convert(interp_agent *ag, const ir_op *op)
{
    const interp_hold *from = ag->p->hold[op->args[0]];
    const int32_t *move = from->move[ag->warp - from->first];
    const ir_scalar *in = cells_of(ag, op->args[0]);
    ir_scalar *out = cells_of(ag, op->res);
    walk w = walk_of(ag, op->res);

    for (int64_t i = 0; i < w.n; i++, advance(&w)) {
        int64_t cell = 0;
        for (int d = 0; d < from->rank; d++) {
            int32_t wanted = w.h->at[d][w.i[d]] + w.move[d] - move[d];
            int32_t at = find_index(from, d, wanted);
            if (at < 0)
                return interp_fail(ag, TW_E_SOURCE, op,
                                   "warp %d, 'convert': index %d of dimension %d is in another "
                                   "warp; such a conversion goes through shared memory",
                                   ag->warp, wanted + move[d], d);
            cell = cell * from->n[d] + at;
        }
        out[i] = in[cell];
    }
    return true;
}

/* The sum of each row, in f32. */
static void add_rows(interp_agent *ag, const ir_op *op)
{
    int64_t n = ag->p->hold[op->args[0]]->n[1];
    const ir_scalar *in = cells_of(ag, op->args[0]);
    ir_scalar *out = cells_of(ag, op->res);

    for (int64_t i = 0; i < (int64_t)ag->p->length[op->res]; i++) {
        ir_scalar v[2] = {in[i * n]};
        for (int64_t k = 1; k < n; k++) {
            v[1] = in[i * n + k];
            v[0] = eval_op(OP_ADD, DT_F32, DT_F32, v, ag->launch.f64);
        }
        out[i] = v[0];
    }
}

/* Each lane along the axis adds what it holds. */
static void add_parts(interp_agent *ag, const ir_op *op)
{
    const interp_hold *from = ag->p->hold[op->args[0]], *to = ag->p->hold[op->res];
    enum dtype t = (enum dtype)type_of(ag, op->res).dtype;
    const ir_scalar *in = cells_of(ag, op->args[0]);
    ir_scalar *out = cells_of(ag, op->res);
    int axis = (int)op->attr[0].i;
    int64_t n = from->n[axis], parts = to->n[axis], inner = 1;

    for (int d = axis + 1; d < from->rank; d++)
        inner *= from->n[d];
    for (int64_t i = 0; i < (int64_t)ag->p->length[op->res]; i++) {
        const ir_scalar *run = in + i / (parts * inner) * n * inner + i % inner;
        uint8_t lane = to->lane[axis][i / inner % parts];
        ir_scalar v[2] = {{0}};
        bool first = true;
        for (int64_t k = 0; k < n; k++) {
            if (from->lane[axis][k] != lane)
                continue;
            v[1] = run[k * inner];
            v[0] = first ? v[1] : eval_op(OP_ADD, t, t, v, ag->launch.f64);
            first = false;
        }
        out[i] = v[0];
    }
}

static void vote(interp_agent *ag, const ir_op *op)
{
    const ir_scalar *in = cells_of(ag, op->args[0]);
    int64_t any = 0;

    for (uint64_t i = 0; i < ag->p->length[op->args[0]]; i++)
        any |= in[i].i;
    cells_of(ag, op->res)->i = any;
}

bool interp_tile_op(interp_agent *ag, const ir_op *op)
{
    switch ((unsigned)op->code) {
    case OP_ALLOC:
        cells_of(ag, op->res)->i = ag->p->place[interp_op_number(ag->p, op)];
        return true;
    case OP_BUFFER_SLOT:
        return take_slot(ag, op);
    case OP_BUFFER_TRANS:
    case OP_BUFFER_VIEW:
        *cells_of(ag, op->res) = *cells_of(ag, op->args[0]);
        return true;
    case OP_BUFFER_LOAD:
        return load_buffer(ag, op);
    case OP_BUFFER_STORE:
        return store_buffer(ag, op);
    case OP_CONVERT:
        return convert(ag, op);
    case OP_MMA_SUM:
        add_rows(ag, op);
        return true;
    case OP_PARTIAL_SUM:
        add_parts(ag, op);
        return true;
    case OP_VOTE_ANY:
        vote(ag, op);
        return true;
    default:
        return multiply(ag, op);
    }
}
