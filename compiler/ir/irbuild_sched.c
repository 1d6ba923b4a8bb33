/* Builders of the operations of level 2 that have no regions. */
#include "compiler/base/check.h"
#include "compiler/ir/irbuild.h"
#include "compiler/ir/layout.h"
#include <string.h>

static ir_val build(ir_builder *b, enum ir_opcode code, const ir_val *args, int nargs, ir_type type)
{
    return ir_build(b, code, args, nargs, NULL, type)->res;
}

/* An op with integers for attributes and no result. */
static void act(ir_builder *b, enum ir_opcode code, const ir_val *args, int nargs, int64_t first,
                int64_t second)
{
    ir_attr attr[OP_MAX_ATTRS] = {{.i = first}, {.i = second}};

    ir_build(b, code, args, nargs, attr, (ir_type){0});
}

ir_val ir_convert(ir_builder *b, ir_val v, uint16_t layout)
{
    return build(b, OP_CONVERT, &v, 1, (ir_type){.layout = layout});
}

ir_val ir_alloc(ir_builder *b, enum dtype t, int rank, const int32_t *shape, uint16_t layout,
                int64_t offset)
{
    ir_type type = {
        .kind = TYPE_BUFFER, .dtype = (uint8_t)t, .rank = (uint8_t)rank, .layout = layout};

    ICHECK(rank >= 2 && rank <= TILE_MAX_RANK + 1, "a buffer has slots and 1 to 4 dimensions");
    memcpy(type.shape, shape, (size_t)rank * sizeof *shape);
    return ir_build(b, OP_ALLOC, NULL, 0, (ir_attr[]){{.i = offset}}, type)->res;
}

ir_val ir_buffer_slot(ir_builder *b, ir_val buffer, ir_val index)
{
    return build(b, OP_BUFFER_SLOT, (ir_val[]){buffer, index}, 2, (ir_type){0});
}

ir_val ir_buffer_trans(ir_builder *b, ir_val slot, const int *perm)
{
    ir_type ty = ir_type_of(b->fn, slot);
    int64_t entry[TILE_MAX_RANK];
    int rank = ty.rank - 1;

    ICHECK(ty.kind == TYPE_BUFFER, "buffer.trans takes a slot");
    for (int i = 0; i < rank; i++)
        entry[i] = perm[i];
    layout_trans(b->fn, ty.layout, rank, perm); /* the layout of the result */
    ir_attr attr[] = {{.ints = {(uint32_t)rank, entry}}};
    return ir_build(b, OP_BUFFER_TRANS, &slot, 1, attr, (ir_type){0})->res;
}

ir_val ir_buffer_view(ir_builder *b, ir_val slot, ir_type type)
{
    return build(b, OP_BUFFER_VIEW, &slot, 1, type);
}

ir_val ir_buffer_load(ir_builder *b, ir_val slot, uint16_t layout)
{
    ir_type ty = ir_type_of(b->fn, slot);

    ICHECK(ty.kind == TYPE_BUFFER, "buffer.load takes a slot");
    ir_type tile = type_tile((enum dtype)ty.dtype, ty.rank - 1, ty.shape + 1);
    tile.layout = layout;
    return build(b, OP_BUFFER_LOAD, &slot, 1, tile);
}

void ir_buffer_store(ir_builder *b, ir_val slot, ir_val v)
{
    act(b, OP_BUFFER_STORE, (ir_val[]){slot, v}, 2, 0, 0);
}

void ir_copy_commit(ir_builder *b)
{
    act(b, OP_COPY_COMMIT, NULL, 0, 0, 0);
}

void ir_copy_wait(ir_builder *b, int pending)
{
    act(b, OP_COPY_WAIT, NULL, 0, pending, 0);
}

void ir_barrier(ir_builder *b, int id, int warps)
{
    act(b, OP_BARRIER, NULL, 0, id, warps);
}

void ir_barrier_warp(ir_builder *b)
{
    act(b, OP_BARRIER_WARP, NULL, 0, 0, 0);
}

static ir_val multiply(ir_builder *b, enum ir_opcode code, ir_val x, ir_val y, ir_val acc)
{
    ir_attr attr[] = {{.i = ir_type_of(b->fn, x).dtype == DT_F32}};

    return ir_build(b, code, (ir_val[]){x, y, acc}, 3, attr, (ir_type){0})->res;
}

ir_val ir_mma(ir_builder *b, ir_val x, ir_val y, ir_val acc)
{
    return multiply(b, OP_MMA, x, y, acc);
}

ir_val ir_mma_sum(ir_builder *b, ir_val v)
{
    layout_slice(b->fn, ir_type_of(b->fn, v).layout, 1); /* the layout of the result */
    return build(b, OP_MMA_SUM, &v, 1, (ir_type){0});
}

ir_val ir_partial_sum(ir_builder *b, ir_val v, int axis)
{
    layout_lanes(b->fn, ir_type_of(b->fn, v).layout, axis); /* the layout of the result */
    return ir_build(b, OP_PARTIAL_SUM, &v, 1, (ir_attr[]){{.i = axis}}, (ir_type){0})->res;
}

ir_val ir_vote_any(ir_builder *b, ir_val v)
{
    return build(b, OP_VOTE_ANY, &v, 1, (ir_type){0});
}

/* ---- engines ---- */

ir_val ir_mbar_alloc(ir_builder *b, int64_t offset, int count, int arrivals)
{
    ir_attr attr[] = {{.i = offset}, {.i = count}, {.i = arrivals}};

    return ir_build(b, OP_MBAR_ALLOC, NULL, 0, attr, (ir_type){.kind = TYPE_MBAR})->res;
}

void ir_mbar_arrive(ir_builder *b, ir_val mbar, ir_val index)
{
    act(b, OP_MBAR_ARRIVE, (ir_val[]){mbar, index}, 2, 0, 0);
}

void ir_mbar_expect(ir_builder *b, ir_val mbar, ir_val index, int64_t bytes)
{
    act(b, OP_MBAR_EXPECT, (ir_val[]){mbar, index}, 2, bytes, 0);
}

void ir_mbar_wait(ir_builder *b, ir_val mbar, ir_val index, ir_val parity)
{
    act(b, OP_MBAR_WAIT, (ir_val[]){mbar, index, parity}, 3, 0, 0);
}

void ir_fence_async(ir_builder *b)
{
    act(b, OP_FENCE_ASYNC, NULL, 0, 0, 0);
}

ir_val ir_wgmma(ir_builder *b, ir_val x, ir_val y, ir_val acc)
{
    return multiply(b, OP_WGMMA, x, y, acc);
}

void ir_wgmma_commit(ir_builder *b)
{
    act(b, OP_WGMMA_COMMIT, NULL, 0, 0, 0);
}
