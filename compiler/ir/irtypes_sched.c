/* Result types at level 2: its operations, and what layouts add to those of level 1. */
#include "compiler/base/check.h"
#include "compiler/ir/irtyping.h"
#include "compiler/ir/layout.h"

/* ---- maps ---- */

/* Rules about layouts do not depend on who runs the op: `warps` are as many as fit. */
static bool map_of(const typing *t, ir_type tile, int warps, layout_map *map)
{
    return layout_map_of(t->fn, tile, warps, map, t->why);
}

/* A number of warps that fits both layouts. */
static int warps_for(const typing *t, uint16_t a, uint16_t b)
{
    int x = layout_own_warps(t->fn, a), y = layout_own_warps(t->fn, b);

    return x % y == 0 ? x : y % x == 0 ? y : x * y;
}

/* Has the tile a layout of registers? */
static bool distributed(const typing *t, ir_type tile)
{
    if (tile.kind != TYPE_TILE || !tile.layout || tile.layout >= t->fn->layouts.n ||
        layout_is_shared(t->fn, tile.layout))
        return refuse(t, "every tile of level 2 has a layout, which is not one of shared memory");
    return true;
}

typedef void (*map_change)(const typing *t, layout_map *map);

/* Has tile `res` the map of tile x after `change`? */
static bool changed_map(const typing *t, ir_type x, ir_type res, map_change change, bool of_result)
{
    layout_map a, b;

    if (!distributed(t, x) || !distributed(t, res))
        return false;
    int warps = warps_for(t, x.layout, res.layout);
    if (!map_of(t, x, warps, &a) || !map_of(t, res, warps, &b))
        return false;
    change(t, of_result ? &b : &a);
    return layout_same_threads(&a, &b, NULL) ||
           refuse(t, "the layouts of operand and result do not belong together");
}

static void drop_axis(const typing *t, layout_map *map)
{
    layout_map_drop(map, (int)t->attrs[0].i);
}

static void permute(const typing *t, layout_map *map)
{
    layout_map_permute(map, t->attrs[0].ints.at);
}

/* The map of the elements' row-major numbers. */
static void flatten(layout_map *map)
{
    int32_t step = 1, stride[TILE_MAX_RANK];

    for (int d = map->rank - 1; d >= 0; d--) {
        stride[d] = step;
        step *= map->shape[d];
    }
    for (int i = 0; i < map->n; i++) {
        layout_digit *d = &map->digit[i];
        if (d->dim < 0)
            continue;
        d->stride *= stride[d->dim];
        d->dim = 0;
    }
    map->rank = 1;
    map->shape[0] = step;
}

static bool reshaped(const typing *t, ir_type x, ir_type res)
{
    layout_map a, b;

    if (!distributed(t, x) || !distributed(t, res))
        return false;
    int warps = warps_for(t, x.layout, res.layout);
    if (!map_of(t, x, warps, &a) || !map_of(t, res, warps, &b))
        return false;
    flatten(&a);
    flatten(&b);
    return layout_same_threads(&a, &b, NULL) ||
           refuse(t, "reshape leaves each element in its thread");
}

/* ---- operations of level 1 ---- */

static bool axis_in_warp(const typing *t, ir_type x)
{
    layout_map map;

    if (!distributed(t, x) || !map_of(t, x, layout_own_warps(t->fn, x.layout), &map))
        return false;
    return layout_warps_along(&map, (int)t->attrs[0].i) == 1 ||
           refuse(t, "a reduction or scan has its axis in one warp");
}

static bool give_reduced(const typing *t, ir_type x)
{
    ir_type res = *t->res;

    if (!axis_in_warp(t, x))
        return false;
    if (res.kind == TYPE_SCALAR)
        return true;
    const ir_layout slice = {
        .kind = LAYOUT_SLICE, .rank = res.rank, .parent = x.layout, .dim = (uint8_t)t->attrs[0].i};
    res.layout = t->want.layout ? t->want.layout : layout_find(t->fn, &slice);
    return changed_map(t, x, res, drop_axis, false) && give(t, res);
}

static bool give_expanded(const typing *t, ir_type x)
{
    ir_type res = *t->res;

    if (!distributed(t, x))
        return false;
    res.layout =
        t->want.layout ? t->want.layout : layout_slice_of(t->fn, x.layout, (int)t->attrs[0].i);
    return changed_map(t, x, res, drop_axis, true) && give(t, res);
}

static bool give_transposed(const typing *t, ir_type x)
{
    ir_type res = *t->res;
    int perm[TILE_MAX_RANK];

    if (!distributed(t, x))
        return false;
    for (int i = 0; i < x.rank; i++)
        perm[i] = (int)t->attrs[0].ints.at[i];
    res.layout = t->want.layout ? t->want.layout : layout_trans_of(t->fn, x.layout, x.rank, perm);
    return changed_map(t, x, res, permute, false) && give(t, res);
}

static bool give_broadcast(const typing *t, ir_type x)
{
    ir_type res = *t->res;

    res.layout = t->want.layout ? t->want.layout : x.layout;
    if (!distributed(t, res) || res.layout != x.layout)
        return refuse(t, "operand and result of broadcast have one layout");
    return give(t, res);
}

/* A tile of indices is distributed as the dimension that it picks. */
static bool indices_fit(const typing *t, ir_type tile, int nindex)
{
    for (int i = 0, dim = 0; i < nindex; i++) {
        ir_type index = arg_type(t, 1 + i);
        layout_map a, b;

        if (index.kind == TYPE_TILE) {
            if (!distributed(t, index))
                return false;
            int warps = warps_for(t, index.layout, tile.layout);
            if (!map_of(t, index, warps, &a) || !map_of(t, tile, warps, &b))
                return false;
            for (int d = tile.rank - 1; d >= 0; d--) {
                if (d != dim)
                    layout_map_drop(&b, d);
            }
            if (!layout_same_threads(&a, &b, NULL))
                return refuse(t, "a tile of indices has the layout of its dimension");
        }
        dim += t->attrs[0].ints.at[i] != 0;
    }
    return true;
}

static bool give_as_written(const typing *t, enum ir_opcode code)
{
    ir_type res = *t->res;

    if (res.kind != TYPE_TILE)
        return true;
    res.layout = t->want.layout;
    if (!distributed(t, res) || (code == OP_LOAD && !indices_fit(t, res, t->nargs - 1)))
        return false;
    return (code != OP_RESHAPE || reshaped(t, arg_type(t, 0), res)) && give(t, res);
}

static bool store_layouts(const typing *t, int values)
{
    ir_type value = arg_type(t, t->nargs - 1);

    return value.kind != TYPE_TILE ||
           (distributed(t, value) && indices_fit(t, value, t->nargs - 1 - values));
}

static bool is_slot(ir_type t)
{
    return t.kind == TYPE_BUFFER && t.shape[0] == 1;
}

/* The tile that a slot holds, without a layout. */
static ir_type slot_tile(ir_type slot)
{
    return type_tile((enum dtype)slot.dtype, slot.rank - 1, slot.shape + 1);
}

static bool scheduled_dot(const typing *t)
{
    ir_type x = arg_type(t, 0), y = arg_type(t, 1), acc = arg_type(t, 2);

    if (!is_slot(x) || !is_slot(y))
        return refuse(t, "the factors of dot at level 2 are slots of shared memory");
    return typing_dot(t, slot_tile(x), slot_tile(y), acc) && distributed(t, acc);
}

bool typing_layouts(const typing *t, enum ir_opcode code)
{
    switch ((unsigned)code) {
    case OP_SPLAT:
    case OP_ARANGE:
    case OP_RESHAPE:
    case OP_LOAD:
        return give_as_written(t, code);
    case OP_BROADCAST:
        return give_broadcast(t, arg_type(t, 0));
    case OP_EXPAND:
        return give_expanded(t, arg_type(t, 0));
    case OP_TRANS:
        return give_transposed(t, arg_type(t, 0));
    case OP_REDUCE_MAX:
    case OP_REDUCE_MIN:
    case OP_REDUCE_SUM:
    case OP_REDUCE:
        return give_reduced(t, arg_type(t, 0));
    case OP_SCAN_SUM:
    case OP_SCAN_PROD:
    case OP_SCAN:
        return axis_in_warp(t, arg_type(t, 0));
    case OP_WHERE:
        return arg_type(t, 0).layout == arg_type(t, 1).layout ||
               refuse(t, "the condition has the layout of the other operands");
    case OP_STORE:
    case OP_ATOMIC_ADD:
    case OP_ATOMIC_MAX:
    case OP_ATOMIC_MIN:
    case OP_ATOMIC_XCHG:
        return store_layouts(t, 1);
    case OP_ATOMIC_CAS:
        return store_layouts(t, 2);
    case OP_DOT:
        return scheduled_dot(t);
    default:
        return true;
    }
}

/* ---- tiles and shared memory ---- */

static bool convert(const typing *t)
{
    ir_type x = arg_type(t, 0), res = x;

    if (!distributed(t, x))
        return false;
    res.layout = t->want.layout;
    return distributed(t, res) && give(t, res);
}

static bool alloc(const typing *t)
{
    ir_type b = t->want;
    int64_t offset = t->attrs[0].i;

    if (b.kind != TYPE_BUFFER || b.rank < 2 || b.rank > TILE_MAX_RANK + 1 || b.shape[0] < 1 ||
        !typing_tile_in_limits(slot_tile(b)))
        return refuse(t, "alloc gives a buffer of tiles");
    if (b.layout == 0 || b.layout >= t->fn->layouts.n || !layout_fits_buffer(t->fn, b, t->why))
        return b.layout ? false : refuse(t, "a buffer has a layout of shared memory");
    if (b.shape[0] > SHARED_MAX_BYTES / layout_slot_bytes(t->fn, b) || offset < -1 ||
        offset > SHARED_MAX_BYTES - b.shape[0] * layout_slot_bytes(t->fn, b))
        return refuse(t, "shared memory has at most 1 MiB");
    int align = t->fn->layouts.at[b.layout]->row ? 128 : 16;
    if (offset >= 0 && offset % align)
        return refuse(t, "a buffer begins at a multiple of 16 bytes, a swizzled one of 128");
    return give(t, b);
}

static bool buffer_slot(const typing *t)
{
    ir_type b = arg_type(t, 0);

    if (b.kind != TYPE_BUFFER || !is_scalar(arg_type(t, 1), DT_I32))
        return refuse(t, "buffer.slot takes a buffer and an i32");
    b.shape[0] = 1;
    return give(t, b);
}

static bool buffer_trans(const typing *t)
{
    ir_type x = arg_type(t, 0), y = x;
    int rank = x.rank - 1, perm[TILE_MAX_RANK];

    if (!is_slot(x) || t->attrs[0].ints.n != (uint32_t)rank ||
        !typing_is_permutation(&t->attrs[0], rank))
        return refuse(t, "buffer.trans takes a slot and a permutation of its dimensions");
    for (int i = 0; i < rank; i++) {
        perm[i] = (int)t->attrs[0].ints.at[i];
        y.shape[i + 1] = x.shape[perm[i] + 1];
    }
    y.layout = layout_trans_of(t->fn, x.layout, rank, perm);
    return y.layout ? give(t, y) : refuse(t, "the result has the layout trans of the operand's");
}

static bool buffer_view(const typing *t)
{
    ir_type x = arg_type(t, 0), y = t->want;

    if (!is_slot(x) || !is_slot(y) || y.rank < 2 || !typing_tile_in_limits(slot_tile(y)) ||
        !y.layout || y.layout != x.layout || !layout_fits_buffer(t->fn, y, t->why) ||
        t->fn->layouts.at[x.layout]->kind != LAYOUT_SHARED || t->fn->layouts.at[x.layout]->row)
        return refuse(t, "buffer.view takes and gives a slot with the layout shared(row=0)");
    if (layout_slot_bytes(t->fn, x) != layout_slot_bytes(t->fn, y))
        return refuse(t, "buffer.view keeps the number of bytes");
    return give(t, y);
}

static bool holds_tile(const typing *t, ir_type slot, ir_type tile)
{
    if (!is_slot(slot) || tile.kind != TYPE_TILE || slot.dtype != tile.dtype ||
        !type_same_shape(slot_tile(slot), tile))
        return refuse(t, "a slot holds a tile of its extents and type");
    return distributed(t, tile);
}

static bool buffer_load(const typing *t)
{
    return holds_tile(t, arg_type(t, 0), t->want) && give(t, t->want);
}

static bool buffer_store(const typing *t)
{
    return holds_tile(t, arg_type(t, 0), arg_type(t, 1)) && give(t, (ir_type){0});
}

/* ---- copies ---- */

/* View, indices and slot of a copy, which has `after` operands more. */
static bool copied(const typing *t, int after)
{
    int at = t->nargs - 1 - after;
    ir_type tile;

    if (at < 1 || !typing_slice(t, at - 1, &tile))
        return at < 1 ? refuse(t, "a copy has a view, indices and a slot") : false;
    for (int i = 1; i < at; i++) {
        if (arg_type(t, i).kind != TYPE_SCALAR)
            return refuse(t, "the indices of a copy are scalars");
    }
    ir_type slot = arg_type(t, at);
    if (!is_slot(slot) || tile.kind != TYPE_TILE || slot.dtype != tile.dtype ||
        !type_same_shape(slot_tile(slot), tile))
        return refuse(t, "a slot holds a tile of its extents and type");
    return t->attrs[0].ints.at[at - 2] > 0 ||
           refuse(t, "a copy takes consecutive elements of the last dimension");
}

/* The tensor parameter that a view is. */
static const ir_param *view_param(const typing *t)
{
    const ir_value *v = ir_value_of(t->fn, t->args[0]);

    return v->block == t->fn->body ? &t->fn->params.at[v->index] : NULL;
}

static bool copy_async(const typing *t)
{
    if (!copied(t, 0))
        return false;
    const ir_param *p = view_param(t);
    ir_type slot = arg_type(t, t->nargs - 1);
    int64_t bytes = t->attrs[2].i, element = dtype_bytes(slot.dtype);

    if (bytes != 4 && bytes != 8 && bytes != 16)
        return refuse(t, "the pieces of copy.async have 4, 8 or 16 bytes");
    if (t->fn->layouts.at[slot.layout]->kind != LAYOUT_SHARED ||
        slot.shape[slot.rank - 1] * element % bytes)
        return refuse(t, "pieces divide the rows of the slot");
    if (!p || !p->unit_inner || (p->align < bytes && element < bytes))
        return refuse(t, "the tensor is unit, and aligned to the pieces");
    return give(t, (ir_type){0});
}

static bool is_mbar(const typing *t, int at)
{
    return (arg_type(t, at).kind == TYPE_MBAR && is_scalar(arg_type(t, at + 1), DT_I32)) ||
           refuse(t, "an mbarrier is named by an mbar and an i32");
}

static bool copy_bulk(const typing *t)
{
    if (!copied(t, 2) || !is_mbar(t, t->nargs - 2))
        return false;
    const ir_param *p = view_param(t);
    return (p && p->unit_inner && p->align >= 16) ||
           refuse(t, "the tensor is unit, and aligned to 16 bytes");
}

static bool copy_wait(const typing *t)
{
    return (t->attrs[0].i >= 0 && t->attrs[0].i <= 64) ||
           refuse(t, "pending lies between 0 and 64");
}

/* ---- barriers ---- */

static bool barrier(const typing *t)
{
    if (t->attrs[0].i < 0 || t->attrs[0].i > 15)
        return refuse(t, "barriers have the numbers 0 to 15");
    return (t->attrs[1].i >= 0 && t->attrs[1].i <= t->fn->warps) ||
           refuse(t, "no more warps meet than the block has");
}

static bool mbar_alloc(const typing *t)
{
    int64_t offset = t->attrs[0].i, count = t->attrs[1].i, arrivals = t->attrs[2].i;

    if (t->want.kind != TYPE_MBAR)
        return refuse(t, "mbar.alloc gives an mbar");
    if (count < 1 || count > 64 || arrivals < 1 || arrivals > 1 << 20)
        return refuse(t, "1 to 64 mbarriers, each with 1 to 1048576 arrivals");
    if (offset < -1 || offset > SHARED_MAX_BYTES - 8 * count || (offset >= 0 && offset % 8))
        return refuse(t, "mbarriers begin at a multiple of 8 bytes, below 1 MiB");
    return give(t, (ir_type){.kind = TYPE_MBAR});
}

static bool mbar_wait(const typing *t)
{
    return is_mbar(t, 0) && (is_scalar(arg_type(t, 2), DT_I32) || refuse(t, "a parity is an i32"));
}

static bool mbar_expect(const typing *t)
{
    return is_mbar(t, 0) && ((t->attrs[0].i >= 0 && t->attrs[0].i < 1 << 20) ||
                             refuse(t, "an mbarrier waits for less than 1 MiB"));
}

static bool role(const typing *t)
{
    int64_t first = t->attrs[0].i, warps = t->attrs[1].i, registers = t->attrs[2].i;

    if (first < 0 || warps < 1 || warps > t->fn->warps || first > t->fn->warps - warps)
        return refuse(t, "a role has warps of the block");
    return (registers >= 0 && registers <= 255) || refuse(t, "a thread has at most 255 registers");
}

/* ---- products ---- */

static bool is_mma_a(const typing *t, ir_type a, ir_type acc)
{
    const ir_layout *lay = t->fn->layouts.at[acc.layout];
    ir_layout want = {.kind = LAYOUT_MMA_A, .rank = 2, .warps = {lay->warps[0], lay->warps[1]}};
    layout_map x, y;

    if (!distributed(t, a))
        return false;
    int warps = warps_for(t, a.layout, acc.layout);
    return (map_of(t, a, warps, &x) && layout_map_with(t->fn, a, &want, warps, &y, t->why) &&
            layout_same_threads(&x, &y, NULL)) ||
           refuse(t, "a factor in registers has the layout mma_a of the accumulator's warps");
}

static bool product_dtype(const typing *t, ir_type x)
{
    bool half = x.dtype == DT_F16 || x.dtype == DT_BF16;

    if (t->attrs[0].i != (x.dtype == DT_F32))
        return refuse(t, "tf32 is 1 for f32, where it means to round the factors, else 0");
    return half || x.dtype == DT_F32 || refuse(t, "the factors are f16, bf16, or f32 with tf32=1");
}

static bool mma(const typing *t)
{
    ir_type x = arg_type(t, 0), y = arg_type(t, 1), acc = arg_type(t, 2);
    ir_type a = is_slot(x) ? slot_tile(x) : x;

    if (!is_slot(y) || (!is_slot(x) && x.kind != TYPE_TILE))
        return refuse(t, "the first factor is a tile or a slot, the second a slot");
    if (!typing_dot(t, a, slot_tile(y), acc) || !product_dtype(t, a) || !distributed(t, acc))
        return false;
    if (t->fn->layouts.at[acc.layout]->kind != LAYOUT_MMA)
        return refuse(t, "the accumulator has a layout mma");
    if (a.shape[1] % (a.dtype == DT_F32 ? 8 : 16))
        return refuse(t, "the inner extent is a multiple of 16, for f32 of 8");
    return (is_slot(x) || is_mma_a(t, x, acc)) && give(t, acc);
}

static bool wgmma(const typing *t)
{
    if (!mma(t))
        return false;
    ir_type acc = arg_type(t, 2);
    const ir_layout *lay = t->fn->layouts.at[acc.layout];
    return (lay->warps[0] % 4 == 0 && lay->warps[1] == 1 && acc.shape[0] == 16 * lay->warps[0]) ||
           refuse(t, "four warps of wgmma have 64 rows, 16 each");
}

/* A factor in registers whose rows lie in one warp. */
static bool mma_sum(const typing *t)
{
    ir_type x = arg_type(t, 0), res = {.kind = TYPE_TILE, .dtype = DT_F32, .rank = 1};

    if (!distributed(t, x))
        return false;
    const ir_layout *lay = t->fn->layouts.at[x.layout];
    bool factor = lay->kind == LAYOUT_MMA_A || (lay->kind == LAYOUT_MMA && lay->warps[1] == 1);
    if (!factor || (x.dtype != DT_F16 && x.dtype != DT_BF16))
        return refuse(t, "mma.sum takes f16 or bf16 with the layout mma_a or its map");
    if (x.shape[1] % 16)
        return refuse(t, "the extent that is summed is a multiple of 16");
    const ir_layout rows = {.kind = LAYOUT_SLICE, .rank = 1, .parent = x.layout, .dim = 1};
    res.layout = layout_find(t->fn, &rows);
    res.shape[0] = x.shape[0];
    return res.layout ? give(t, res)
                      : refuse(t, "the result has the layout slice of the operand's");
}

static bool partial_sum(const typing *t)
{
    ir_type x = arg_type(t, 0), res = x;
    int64_t axis = t->attrs[0].i;
    layout_map map;

    if (!distributed(t, x))
        return false;
    if (axis < 0 || axis >= x.rank)
        return refuse(t, "the axis is one of the tile's");
    if (!axis_in_warp(t, x) || !map_of(t, x, layout_own_warps(t->fn, x.layout), &map))
        return false;
    if (x.dtype == DT_I1 || dtype_bytes((enum dtype)x.dtype) < 4)
        return refuse(t, "partial_sum takes numbers of 32 or 64 bits");
    const ir_layout lanes = {
        .kind = LAYOUT_LANES, .rank = x.rank, .parent = x.layout, .dim = (uint8_t)axis};
    res.layout = layout_find(t->fn, &lanes);
    res.shape[axis] = layout_lanes_along(&map, (int)axis);
    return res.layout ? give(t, res)
                      : refuse(t, "the result has the layout lanes of the operand's");
}

static bool vote_any(const typing *t)
{
    ir_type x = arg_type(t, 0);

    if (x.kind != TYPE_TILE || x.dtype != DT_I1)
        return refuse(t, "vote.any takes a tile of i1");
    return distributed(t, x) && give(t, type_scalar(DT_I1));
}

static bool wgmma_wait(const typing *t)
{
    for (int i = 0; i < t->nargs; i++) {
        if (!distributed(t, arg_type(t, i)))
            return false;
    }
    return copy_wait(t) && give(t, (ir_type){0});
}

bool typing_scheduled(const typing *t, enum ir_opcode code)
{
    switch ((unsigned)code) {
    case OP_CONVERT:
        return convert(t);
    case OP_ALLOC:
        return alloc(t);
    case OP_BUFFER_SLOT:
        return buffer_slot(t);
    case OP_BUFFER_TRANS:
        return buffer_trans(t);
    case OP_BUFFER_VIEW:
        return buffer_view(t);
    case OP_BUFFER_LOAD:
        return buffer_load(t);
    case OP_BUFFER_STORE:
        return buffer_store(t);
    case OP_COPY_ASYNC:
        return copy_async(t);
    case OP_COPY_WAIT:
        return copy_wait(t);
    case OP_BARRIER:
        return barrier(t);
    case OP_MMA:
        return mma(t);
    case OP_MMA_SUM:
        return mma_sum(t);
    case OP_PARTIAL_SUM:
        return partial_sum(t);
    case OP_VOTE_ANY:
        return vote_any(t);
    case OP_MBAR_ALLOC:
        return mbar_alloc(t);
    case OP_MBAR_ARRIVE:
        return is_mbar(t, 0);
    case OP_MBAR_EXPECT:
        return mbar_expect(t);
    case OP_MBAR_WAIT:
        return mbar_wait(t);
    case OP_COPY_BULK:
        return copy_bulk(t);
    case OP_WGMMA:
        return wgmma(t);
    case OP_WGMMA_WAIT:
        return wgmma_wait(t);
    case OP_ROLE:
        return role(t);
    default:
        return give(t, (ir_type){0});
    }
}
