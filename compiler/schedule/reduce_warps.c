#include "compiler/schedule/reduce_warps.h"
#include "compiler/ir/layout.h"

/* A blocked layout being made, with the extents of the tile. */
typedef struct blocks {
    int rank;
    int32_t shape[TILE_MAX_RANK + 1], regs[TILE_MAX_RANK + 1], lanes[TILE_MAX_RANK + 1];
    int32_t warps[TILE_MAX_RANK + 1];
    int order[TILE_MAX_RANK + 1];
} blocks;

static int add_dim(blocks *b, int32_t shape, int32_t regs, int32_t lanes, int32_t warps)
{
    b->shape[b->rank] = shape;
    b->regs[b->rank] = regs;
    b->lanes[b->rank] = lanes;
    b->warps[b->rank] = warps;
    return b->rank++;
}

static ir_type tile_of(ir_fn *fn, const blocks *b, ir_type like)
{
    ir_type t = type_tile((enum dtype)like.dtype, b->rank, b->shape);

    t.layout = layout_blocked(fn, b->rank, b->regs, b->lanes, b->warps, b->order);
    return t;
}

/* Dimension axis as repeats (when there are any), warps, and what one warp holds. */
static blocks split_axis(const ir_layout *l, ir_type t, int axis, int *repeat, int *inner)
{
    blocks b = {0};
    int first[TILE_MAX_RANK], n = 0;
    int32_t held = l->regs[axis] * l->lanes[axis], times = t.shape[axis] / (held * l->warps[axis]);

    *repeat = -1;
    for (int d = 0; d < t.rank; d++) {
        if (d != axis) {
            first[d] = add_dim(&b, t.shape[d], l->regs[d], l->lanes[d], l->warps[d]);
            continue;
        }
        if (times > 1)
            *repeat = add_dim(&b, times, 1, 1, 1);
        first[d] = add_dim(&b, l->warps[d], 1, 1, l->warps[d]);
        *inner = add_dim(&b, held, l->regs[d], l->lanes[d], 1);
    }
    for (int i = 0; i < t.rank; i++) {
        int d = l->order[i];
        if (d == axis)
            b.order[n++] = *inner;
        b.order[n++] = first[d];
        if (d == axis && *repeat >= 0)
            b.order[n++] = *repeat;
    }
    return b;
}

/* The same rows with all results of an axis in each thread; a last dimension of extent 1 stands for
 * the lanes and warps that the axis was split over, which now hold copies. */
static blocks gathered(const ir_layout *l, ir_type t, int axis)
{
    blocks b = {0};
    int n = 0;

    for (int d = 0; d < t.rank; d++) {
        if (d == axis)
            add_dim(&b, l->warps[d], l->warps[d], 1, 1);
        else
            add_dim(&b, t.shape[d], l->regs[d], l->lanes[d], l->warps[d]);
    }
    int last = add_dim(&b, 1, 1, l->lanes[axis], l->warps[axis]);
    for (int i = 0; i < t.rank; i++)
        b.order[n++] = l->order[i] == axis ? last : l->order[i];
    b.order[n] = axis;
    return b;
}

static ir_val reduce_parts(ir_builder *b, const ir_op *op, ir_val v, const ir_layout *l)
{
    int repeat, inner = 0, axis = (int)op->attr[0].i;
    ir_type t = ir_type_of(b->fn, v);
    blocks split = split_axis(l, t, axis, &repeat, &inner), all = gathered(l, t, axis);

    ir_val parts = ir_build(b, OP_RESHAPE, &v, 1, NULL, tile_of(b->fn, &split, t))->res;
    parts = ir_reduce(b, op->code, parts, inner);
    if (repeat >= 0)
        parts = ir_reduce(b, op->code, parts, repeat);
    uint16_t together = layout_slice(b->fn, tile_of(b->fn, &all, t).layout, t.rank);
    return ir_reduce(b, op->code, ir_convert(b, parts, together), axis);
}

ir_val reduce_over_warps(ir_builder *b, const ir_op *op, ir_val v)
{
    ir_type t = ir_type_of(b->fn, v);
    const ir_layout *l = b->fn->layouts.at[t.layout];
    int axis = (int)op->attr[0].i;

    if (l->kind != LAYOUT_BLOCKED || op->code == OP_REDUCE)
        return 0;
    bool repeats = t.shape[axis] > l->regs[axis] * l->lanes[axis] * l->warps[axis];
    if (t.rank + 1 + repeats > TILE_MAX_RANK)
        return 0;
    bool narrow = dtype_is_float((enum dtype)t.dtype) && dtype_bytes((enum dtype)t.dtype) < 4 &&
                  op->code == OP_REDUCE_SUM; /* rounded once, at the end */
    ir_val res = reduce_parts(b, op, narrow ? ir_cast(b, v, DT_F32) : v, l);
    return narrow ? ir_cast(b, res, (enum dtype)t.dtype) : res;
}
