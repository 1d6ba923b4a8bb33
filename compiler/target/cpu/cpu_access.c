/* Elements of tensors. Nothing outside of a tensor is touched: lanes outside are masked, a scalar
 * load outside reads zeros from elsewhere, a scalar store outside is branched around. */
#include "compiler/base/check.h"
#include "compiler/target/cpu/cpu_emit.h"

/* ---- addresses ------------------------------------------------------------------------------- */

static LLVMValueRef step_address(cpu_emit *e, LLVMTypeRef elem, LLVMValueRef p, LLVMValueRef by,
                                 int depth)
{
    int tag = CPU_TAG_GEP + (int)LLVMGetTypeKind(elem) * 128;

    if (LLVMGetTypeKind(elem) == LLVMIntegerTypeKind)
        tag += (int)LLVMGetIntTypeWidth(elem);
    LLVMValueRef q = cpu_known(e, tag, p, by, depth);
    if (q || ll_is_zero(by))
        return q ? q : p;
    cpu_hoist(e, depth);
    q = ll_gep(e->cx, elem, p, by);
    cpu_home(e);
    cpu_note(e, tag, p, by, q, depth);
    return q;
}

LLVMValueRef cpu_address(cpu_emit *e, LLVMTypeRef elem, LLVMValueRef base, const cpu_term *t, int n,
                         int depth)
{
    int64_t constant = 0;

    for (int level = 0; level <= depth; level++) {
        for (int i = 0; i < n; i++) {
            if (t[i].i.base ? t[i].i.depth != level : level != 0)
                continue;
            if (t[i].i.base)
                base =
                    step_address(e, elem, base, cpu_mul(e, t[i].i.base, t[i].stride, level), level);
            if (LLVMIsAConstantInt(t[i].stride))
                constant += t[i].i.off * LLVMConstIntGetSExtValue(t[i].stride);
            else
                base = step_address(e, elem, base,
                                    cpu_mul(e, t[i].stride, ll_i64(e->cx, t[i].i.off), 0), level);
        }
    }
    cpu_hoist(e, depth);
    base = ll_gep(e->cx, elem, base, ll_i64(e->cx, constant));
    cpu_home(e);
    return base;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static LLVMTypeRef element_type(const cpu_emit *e, const ir_op *op)
{
    return cpu_memory_type(e, (enum dtype)ir_type_of(e->fn, op->args[0]).dtype, 1);
}

static unsigned element_align(const cpu_emit *e, const ir_op *op)
{
    return (unsigned)dtype_bytes((enum dtype)ir_type_of(e->fn, op->args[0]).dtype);
}

static const cpu_view *view_of(cpu_emit *e, const ir_op *op)
{
    return cpu_view_of(e, cpu_view_param(e->plan, op->args[0]));
}

static ir_type slice_type(const cpu_emit *e, const ir_op *op)
{
    return ir_type_of(e->fn, op->code == OP_LOAD ? op->res : op->args[op->nargs - 1]);
}

static bool proved_inside(const ir_op *op, int view_dim)
{
    return op->attr[1].i >> view_dim & 1;
}

/* Index of view dimension d where the slice begins, i64. */
static LLVMValueRef start_of(cpu_emit *e, const ir_op *op, int d)
{
    LLVMValueRef i = e->scalar[op->args[1 + d]], wide = cpu_known(e, CPU_TAG_SEXT, i, NULL, 0);

    if (wide)
        return wide;
    cpu_hoist(e, 0);
    wide = LLVMBuildSExt(e->cx->b, i, e->cx->i64, "");
    cpu_home(e);
    cpu_note(e, CPU_TAG_SEXT, i, NULL, wide, 0);
    return wide;
}

/* Address of the slice's first element. */
static LLVMValueRef origin_of(cpu_emit *e, const ir_op *op)
{
    LLVMValueRef p = cpu_known(e, CPU_TAG_ORIGIN, op, NULL, 0), offset = ll_i64(e->cx, 0);
    const cpu_view *view = view_of(e, op);

    if (p)
        return p;
    for (int d = 0; d < (int)op->attr[0].ints.n; d++) {
        if (!cpu_is_gathered(e->fn, op, d))
            offset = cpu_add(e, offset, cpu_mul(e, start_of(e, op, d), view->stride[d], 0), 0);
    }
    p = step_address(e, element_type(e, op), view->base, offset, 0);
    cpu_note(e, CPU_TAG_ORIGIN, op, NULL, p, 0);
    return p;
}

/* x < y, unsigned: so is 0 <= x < y for a y that is not negative. */
static LLVMValueRef below(cpu_emit *e, LLVMValueRef x, LLVMValueRef y, int depth)
{
    LLVMValueRef c = cpu_known(e, CPU_TAG_BELOW, x, y, depth);

    if (c)
        return c;
    cpu_hoist(e, depth);
    c = LLVMBuildICmp(e->cx->b, LLVMIntULT, x, y, "");
    cpu_home(e);
    cpu_note(e, CPU_TAG_BELOW, x, y, c, depth);
    return c;
}

/* x and y, where NULL is true. */
static LLVMValueRef both(cpu_emit *e, LLVMValueRef x, LLVMValueRef y, int depth)
{
    if (!x || !y)
        return x ? x : y;
    cpu_hoist(e, depth);
    x = LLVMBuildAnd(e->cx->b, x, y, "");
    cpu_home(e);
    return x;
}

/* Are the dimensions that the slice drops in bounds? NULL: proved. */
static LLVMValueRef outer_inside(cpu_emit *e, const ir_op *op)
{
    LLVMValueRef c = cpu_known(e, CPU_TAG_OUTER, op, NULL, 0);

    if (c)
        return c;
    for (int d = 0; d < (int)op->attr[0].ints.n; d++) {
        if (op->attr[0].ints.at[d] == 0 && !proved_inside(op, d))
            c = both(e, c, below(e, start_of(e, op, d), view_of(e, op)->extent[d], 0), 0);
    }
    if (c)
        cpu_note(e, CPU_TAG_OUTER, op, NULL, c, 0);
    return c;
}

/* The indices that a tile gives along tile dimension t: a vector where that lies in the lanes. */
static cpu_got given_index(cpu_emit *e, const ir_op *op, const cpu_at *at, int t)
{
    cpu_at in = {.i = {at->i[t]}, .lane = at->lane == t ? 0 : -1};

    return cpu_eval(e, op->args[1 + cpu_view_dim(op, t)], &in);
}

/* Where element at lies along tile dimension t, not the lane's, from the slice's first element or,
 * where a tile gives the indices, from the tensor's. */
static cpu_index place_along(cpu_emit *e, const ir_op *op, const cpu_at *at, int t)
{
    if (!cpu_is_gathered(e->fn, op, cpu_view_dim(op, t)))
        return at->i[t];
    cpu_got got = given_index(e, op, at, t);
    LLVMValueRef wide = cpu_known(e, CPU_TAG_SEXT, got.v, NULL, got.depth);
    if (!wide) {
        cpu_hoist(e, got.depth);
        wide = LLVMBuildSExt(e->cx->b, got.v, e->cx->i64, "");
        cpu_home(e);
        cpu_note(e, CPU_TAG_SEXT, got.v, NULL, wide, got.depth);
    }
    return (cpu_index){wide, 0, got.depth};
}

/* Are all dimensions but the lane's in bounds? NULL: proved. */
static LLVMValueRef rows_inside(cpu_emit *e, const ir_op *op, const cpu_at *at)
{
    LLVMValueRef c = outer_inside(e, op);
    int rank = slice_type(e, op).rank, depth = 0;

    for (int t = 0; t < rank; t++) {
        int d = cpu_view_dim(op, t);
        if (t == at->lane || proved_inside(op, d))
            continue;
        cpu_index i = place_along(e, op, at, t);
        int own = i.base ? i.depth : 0;
        LLVMValueRef x = cpu_index_value(e, i);
        if (!cpu_is_gathered(e->fn, op, d))
            x = cpu_add(e, start_of(e, op, d), x, own);
        depth = own > depth ? own : depth;
        c = both(e, c, below(e, x, view_of(e, op)->extent[d], own), depth);
    }
    return c;
}

/* x in [0, hi]. Constants are folded here: LLVM 22 loads whole vectors where it finds only late
 * that a mask of lanes below a bound has the bound 0 (AVX2, seen with i64). */
static LLVMValueRef clamp(cpu_emit *e, LLVMValueRef x, int64_t hi)
{
    if (LLVMIsAConstantInt(x)) {
        int64_t v = LLVMConstIntGetSExtValue(x);
        return ll_int(e->cx->i32, v < 0 ? 0 : v > hi ? hi : v);
    }
    x = ll_binary(e->cx, "llvm.smax", x, ll_i64(e->cx, 0));
    x = ll_binary(e->cx, "llvm.smin", x, ll_i64(e->cx, hi));
    return LLVMBuildTrunc(e->cx->b, x, e->cx->i32, "");
}

/* The part of a vector of lanes that lies in the tensor, as lane numbers. */
typedef struct stretch {
    LLVMValueRef begin, end; /* i32; begin NULL: 0 */
    int depth;
} stretch;

/* For lanes along tile dimension at->lane, of which the first limit belong to the tile. */
static stretch lanes_inside(cpu_emit *e, const ir_op *op, const cpu_at *at, int limit)
{
    int d = cpu_view_dim(op, at->lane);
    cpu_index i = at->i[at->lane];
    stretch s = {NULL, ll_int(e->cx->i32, limit), i.base ? i.depth : 0};
    LLVMValueRef extent = view_of(e, op)->extent[d];
    int64_t lo, hi;

    if (proved_inside(op, d))
        return s;
    facts_range(e->plan->facts, op->args[1 + d], &lo, &hi);
    LLVMValueRef first = cpu_add(e, start_of(e, op, d), cpu_index_value(e, i), s.depth);
    int tag = CPU_TAG_REST + limit;
    s.end = cpu_known(e, tag, first, extent, s.depth);
    cpu_hoist(e, s.depth);
    if (!s.end) {
        s.end = clamp(e, LLVMBuildSub(e->cx->b, extent, first, ""), limit);
        cpu_note(e, tag, first, extent, s.end, s.depth);
    }
    if (lo < 0)
        s.begin = clamp(e, LLVMBuildNeg(e->cx->b, first, ""), e->isa->lanes);
    cpu_home(e);
    return s;
}

/* begin <= iota < end, as one unsigned comparison. (Two and an `and` give LLVM 22 half masks that
 * it finds to be constants late, and then takes for all ones: see clamp.) */
static LLVMValueRef between(cpu_emit *e, LLVMValueRef iota, LLVMValueRef begin, LLVMValueRef end)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMValueRef n = LLVMBuildSub(b, end, begin, "");

    n = ll_binary(e->cx, "llvm.smax", n, ll_int(e->cx->i32, 0));
    LLVMValueRef at = LLVMBuildSub(b, iota, ll_splat(e->cx, begin, e->isa->lanes), "");
    return LLVMBuildICmp(b, LLVMIntULT, at, ll_splat(e->cx, n, e->isa->lanes), "");
}

/* mask_of where a tile gives the lanes' indices: those below the extent, one unsigned comparison.
 */
static LLVMValueRef given_mask(cpu_emit *e, const ir_op *op, const cpu_at *at, int limit,
                               int *depth)
{
    int d = cpu_view_dim(op, at->lane), lanes = e->isa->lanes;
    LLVMValueRef rows = rows_inside(e, op, at);
    cpu_got got = given_index(e, op, at, at->lane);
    LLVMValueRef index = cpu_vector(e, got), extent = view_of(e, op)->extent[d];

    *depth = cpu_at_depth(at, slice_type(e, op).rank);
    *depth = got.depth > *depth ? got.depth : *depth;
    cpu_hoist(e, *depth);
    if (limit < lanes)
        index = ll_select(e->cx, ll_first_lanes(e->cx, limit, lanes), index,
                          LLVMConstAllOnes(LLVMTypeOf(index)));
    extent = LLVMBuildTrunc(e->cx->b, extent, e->cx->i32, "");
    if (rows)
        extent = ll_select(e->cx, rows, extent, ll_int(e->cx->i32, 0));
    index = LLVMBuildICmp(e->cx->b, LLVMIntULT, index, ll_splat(e->cx, extent, lanes), "");
    cpu_home(e);
    return index;
}

/* Which lanes may be accessed; NULL: all. *depth: where the mask is known. */
static LLVMValueRef mask_of(cpu_emit *e, const ir_op *op, const cpu_at *at, int limit, int *depth)
{
    if (cpu_is_gathered(e->fn, op, cpu_view_dim(op, at->lane)))
        return given_mask(e, op, at, limit, depth);
    int lanes = e->isa->lanes;
    LLVMValueRef rows = rows_inside(e, op, at), iota = ll_iota(e->cx, 0, lanes), mask;
    stretch s = lanes_inside(e, op, at, limit);

    *depth = rows ? cpu_at_depth(at, slice_type(e, op).rank) : s.depth;
    if (!rows && proved_inside(op, cpu_view_dim(op, at->lane)))
        return limit < lanes ? ll_first_lanes(e->cx, limit, lanes) : NULL;
    if (!s.begin && (mask = cpu_known(e, CPU_TAG_MASK, s.end, rows, *depth)))
        return mask;
    LLVMValueRef end = s.end;
    cpu_hoist(e, *depth);
    if (rows)
        s.end = ll_select(e->cx, rows, s.end, ll_int(e->cx->i32, 0));
    if (s.begin) {
        mask = between(e, iota, s.begin, s.end);
    } else {
        mask = LLVMBuildICmp(e->cx->b, LLVMIntSLT, iota, ll_splat(e->cx, s.end, lanes), "");
        cpu_note(e, CPU_TAG_MASK, end, rows, mask, *depth);
    }
    cpu_home(e);
    return mask;
}

static LLVMValueRef address_of(cpu_emit *e, const ir_op *op, const cpu_at *at, int depth)
{
    int rank = slice_type(e, op).rank;
    cpu_term t[TILE_MAX_RANK];

    for (int d = 0; d < rank; d++) {
        bool in_lanes = d == at->lane && cpu_is_gathered(e->fn, op, cpu_view_dim(op, d));
        t[d].i = in_lanes ? (cpu_index){0} : place_along(e, op, at, d);
        t[d].stride = view_of(e, op)->stride[cpu_view_dim(op, d)];
    }
    return cpu_address(e, element_type(e, op), origin_of(e, op), t, rank, depth);
}

/* Lanes of the tile from at on, when its end is known to be near. */
static int limit_of(const cpu_emit *e, ir_type t, const cpu_at *at)
{
    int64_t left = t.shape[at->lane] - at->i[at->lane].off;

    return at->i[at->lane].base || left > e->isa->lanes ? e->isa->lanes : (int)left;
}

/* ---- loads ----------------------------------------------------------------------------------- */

static cpu_got load_one(cpu_emit *e, const ir_op *op, const cpu_at *at)
{
    ir_type t = slice_type(e, op);
    cpu_got got = {.depth = cpu_at_depth(at, t.rank)};
    LLVMValueRef inside = rows_inside(e, op, at), p = address_of(e, op, at, got.depth);

    cpu_hoist(e, got.depth);
    if (inside)
        p = ll_select(e->cx, inside, p, e->zero);
    got.v = ll_load(e->cx, element_type(e, op), p, element_align(e, op));
    got.v = cpu_to_register(e, (enum dtype)t.dtype, got.v);
    cpu_home(e);
    return got;
}

/* Lanes along the contiguous dimension, the first limit of them. */
static cpu_got load_along(cpu_emit *e, const ir_op *op, const cpu_at *at, int limit)
{
    ir_type t = slice_type(e, op);
    cpu_got got = {.depth = cpu_at_depth(at, t.rank)};
    int mask_depth;
    LLVMValueRef mask = mask_of(e, op, at, limit, &mask_depth);
    LLVMValueRef p = address_of(e, op, at, got.depth);
    LLVMTypeRef type = cpu_memory_type(e, (enum dtype)t.dtype, e->isa->lanes);

    cpu_hoist(e, got.depth);
    got.v = mask ? ll_masked_load(e->cx, type, p, element_align(e, op), mask)
                 : ll_load(e->cx, type, p, element_align(e, op));
    got.v = cpu_to_register(e, (enum dtype)t.dtype, got.v);
    cpu_home(e);
    return got;
}

static LLVMValueRef load_bits(cpu_emit *e, const ir_op *op, const cpu_at *at, int n,
                              LLVMValueRef mask)
{
    int depth = cpu_at_depth(at, slice_type(e, op).rank);
    LLVMTypeRef type = ll_lanes(e->cx->i16, n);
    LLVMValueRef p = address_of(e, op, at, depth);

    cpu_hoist(e, depth);
    LLVMValueRef v = mask ? ll_masked_load(e->cx, type, p, 2, mask) : ll_load(e->cx, type, p, 2);
    cpu_home(e);
    return v;
}

LLVMValueRef cpu_load_inside(cpu_emit *e, const ir_op *op, const cpu_at *at, int n)
{
    return load_bits(e, op, at, n, NULL);
}

LLVMValueRef cpu_load_row(cpu_emit *e, const ir_op *op, const cpu_at *at, int width)
{
    int lanes = e->isa->lanes, depth;
    LLVMValueRef half[2], mask[2] = {NULL, NULL};
    cpu_at from[2] = {*at, *at};

    from[1].i[at->lane].off += lanes;
    for (int h = 0; h < 2 && width > h * lanes; h++)
        mask[h] =
            mask_of(e, op, &from[h], width < (h + 1) * lanes ? width - h * lanes : lanes, &depth);
    for (int h = 0; h < 2; h++)
        half[h] = width > h * lanes ? load_bits(e, op, &from[h], lanes, mask[h])
                                    : LLVMConstNull(ll_lanes(e->cx->i16, lanes));
    return LLVMBuildShuffleVector(e->cx->b, half[0], half[1], ll_iota(e->cx, 0, 2 * lanes), "");
}

/* Pointers to the lanes' elements. */
static LLVMValueRef lane_pointers(cpu_emit *e, const ir_op *op, const cpu_at *at, int depth)
{
    int lanes = e->isa->lanes, d = cpu_view_dim(op, at->lane);
    LLVMValueRef p = address_of(e, op, at, depth), lane = ll_iota(e->cx, 0, lanes);
    LLVMValueRef stride = view_of(e, op)->stride[d];

    if (cpu_is_gathered(e->fn, op, d))
        lane = cpu_vector(e, given_index(e, op, at, at->lane));
    cpu_hoist(e, depth);
    lane = LLVMBuildSExt(e->cx->b, lane, ll_lanes(e->cx->i64, lanes), "");
    lane = LLVMBuildMul(e->cx->b, lane, ll_splat(e->cx, stride, lanes), "");
    p = ll_gep(e->cx, element_type(e, op), p, lane);
    cpu_home(e);
    return p;
}

static LLVMValueRef full_mask(cpu_emit *e, LLVMValueRef mask)
{
    return mask ? mask : ll_first_lanes(e->cx, e->isa->lanes, e->isa->lanes);
}

static cpu_got load_across(cpu_emit *e, const ir_op *op, const cpu_at *at)
{
    ir_type t = slice_type(e, op);
    cpu_got got = {.depth = cpu_at_depth(at, t.rank)};
    int mask_depth;
    LLVMValueRef mask = full_mask(e, mask_of(e, op, at, limit_of(e, t, at), &mask_depth));
    LLVMValueRef p = lane_pointers(e, op, at, got.depth);
    LLVMTypeRef type = cpu_memory_type(e, (enum dtype)t.dtype, e->isa->lanes);

    cpu_hoist(e, got.depth);
    got.v = ll_gather(e->cx, type, p, element_align(e, op), mask);
    got.v = cpu_to_register(e, (enum dtype)t.dtype, got.v);
    cpu_home(e);
    return got;
}

/* Row i of a block that is turned: lanes along dimension `along`. */
static cpu_at turned_row(const cpu_emit *e, const cpu_at *at, int along, int i)
{
    cpu_at row = *at;

    row.lane = along;
    row.i[along].off = e->block_off;
    row.i[at->lane].off = at->i[at->lane].off + i;
    return row;
}

/* Is the block as wide as high, of elements of 32 bits, and inside of the tensor along its rows? */
static bool is_square(const cpu_emit *e, const ir_op *op, const cpu_at *at, int along)
{
    ir_type t = slice_type(e, op);
    int d = cpu_view_dim(op, along), lanes = e->isa->lanes;

    return dtype_bits((enum dtype)t.dtype) == 32 && e->block_rows == lanes &&
           limit_of(e, t, at) == lanes && proved_inside(op, d) && !cpu_is_gathered(e->fn, op, d);
}

/* Turns a square in squares of 128 bits: they are loaded to where they belong in a register, so
 * only within them anything is moved. A row outside of the tensor is read from where zeros lie. */
static void load_square(cpu_emit *e, const ir_op *op, const cpu_at *at, int along,
                        LLVMValueRef *rows)
{
    enum { PART = 4 };
    int lanes = e->isa->lanes, depth = cpu_at_depth(at, slice_type(e, op).rank);
    LLVMTypeRef elem = element_type(e, op), part = ll_lanes(elem, PART);
    LLVMValueRef from[CPU_MAX_LANES];

    for (int i = 0; i < lanes; i++) {
        cpu_at row = turned_row(e, at, along, i);
        LLVMValueRef inside = rows_inside(e, op, &row);
        from[i] = address_of(e, op, &row, depth);
        cpu_hoist(e, depth);
        if (inside)
            from[i] = ll_select(e->cx, inside, from[i], e->zero);
        cpu_home(e);
    }
    cpu_hoist(e, depth);
    for (int r = 0; r < lanes; r++) {
        LLVMTypeRef types[] = {ll_lanes(elem, lanes), part};
        rows[r] = LLVMGetPoison(types[0]);
        for (int i = r % PART; i < lanes; i += PART) {
            LLVMValueRef p = ll_gep(e->cx, elem, from[i], ll_i64(e->cx, r / PART * PART));
            p = ll_load(e->cx, part, p, element_align(e, op));
            LLVMValueRef arg[] = {rows[r], p, ll_i64(e->cx, i / PART * PART)};
            rows[r] = ll_call(e->cx, "llvm.vector.insert", types, 2, arg, 3);
        }
        if (r % PART == PART - 1)
            ll_transpose_squares(e->cx, &rows[r - PART + 1], PART);
    }
    cpu_home(e);
}

/* The same of any block; what is outside of it or of the tensor is 0. */
static void load_oblong(cpu_emit *e, const ir_op *op, const cpu_at *at, int along,
                        LLVMValueRef *rows)
{
    ir_type t = slice_type(e, op);
    int lanes = e->isa->lanes, limit = limit_of(e, t, at);
    LLVMTypeRef type = cpu_type(e, (enum dtype)t.dtype, lanes);

    for (int i = 0; i < lanes; i++) {
        cpu_at row = turned_row(e, at, along, i);
        rows[i] = i < limit ? load_along(e, op, &row, e->block_rows).v : LLVMConstNull(type);
    }
    cpu_hoist(e, cpu_at_depth(at, t.rank));
    ll_transpose(e->cx, rows, lanes);
    cpu_home(e);
}

/* All rows of the nest's block, which lie contiguous in the tensor, by a transposition. */
static cpu_got load_turned(cpu_emit *e, const ir_op *op, const cpu_at *at, int along)
{
    LLVMValueRef rows[CPU_MAX_LANES];
    int depth = cpu_at_depth(at, slice_type(e, op).rank);
    cpu_got wanted = {0};

    if (is_square(e, op, at, along))
        load_square(e, op, at, along, rows);
    else
        load_oblong(e, op, at, along, rows);
    for (int r = 0; r < e->block_rows; r++) {
        cpu_at to = *at;
        cpu_got got = {rows[r], depth};
        to.i[along].off = e->block_off + r;
        if (to.i[along].off == at->i[along].off)
            wanted = got;
        else
            cpu_remember(e, op->res, &to, got);
    }
    return wanted;
}

static bool in_block(const cpu_emit *e, cpu_index i)
{
    return e->block_rows && i.base == e->block_base && i.off >= e->block_off &&
           i.off < e->block_off + e->block_rows;
}

cpu_got cpu_load_tensor(cpu_emit *e, const ir_op *op, const cpu_at *at)
{
    ir_type t = slice_type(e, op);
    int along = cpu_contiguous_dim(e->plan, op);

    if (at->lane < 0)
        return load_one(e, op, at);
    if (along == at->lane)
        return load_along(e, op, at, limit_of(e, t, at));
    if (along >= 0 && in_block(e, at->i[along]) && t.dtype != DT_I1)
        return load_turned(e, op, at, along);
    return load_across(e, op, at);
}

/* ---- stores ---------------------------------------------------------------------------------- */

static void store_along(cpu_emit *e, const ir_op *op, const cpu_at *at, int limit, LLVMValueRef v)
{
    int mask_depth;
    LLVMValueRef mask = mask_of(e, op, at, limit, &mask_depth);
    LLVMValueRef p = address_of(e, op, at, e->depth);

    v = cpu_to_memory(e, (enum dtype)slice_type(e, op).dtype, v);
    if (mask)
        ll_masked_store(e->cx, v, p, element_align(e, op), mask);
    else
        ll_store(e->cx, v, p, element_align(e, op));
}

void cpu_store_tensor(cpu_emit *e, const ir_op *op, const cpu_at *at, cpu_got got)
{
    ir_type t = slice_type(e, op);
    LLVMValueRef v = cpu_vector(e, got);
    int limit = limit_of(e, t, at), mask_depth;

    if (cpu_contiguous_dim(e->plan, op) == at->lane) {
        store_along(e, op, at, limit, v);
        return;
    }
    v = cpu_to_memory(e, (enum dtype)t.dtype, v);
    LLVMValueRef mask = full_mask(e, mask_of(e, op, at, limit, &mask_depth));
    ll_scatter(e->cx, v, lane_pointers(e, op, at, e->depth), element_align(e, op), mask);
}

void cpu_store_block(cpu_emit *e, const ir_op *op, const cpu_at *at, const cpu_got *got, int inner)
{
    LLVMValueRef rows[CPU_MAX_LANES];
    ir_type t = slice_type(e, op);
    int lanes = e->isa->lanes, limit = limit_of(e, t, at);
    cpu_at row = *at;

    for (int r = 0; r < lanes; r++)
        rows[r] = r < e->block_rows ? cpu_vector(e, got[r])
                                    : LLVMGetPoison(cpu_type(e, (enum dtype)t.dtype, lanes));
    ll_transpose(e->cx, rows, lanes);
    row.lane = inner;
    row.i[inner].off = e->block_off;
    for (int i = 0; i < limit; i++) {
        row.i[at->lane].off = at->i[at->lane].off + i;
        store_along(e, op, &row, e->block_rows, rows[i]);
    }
}

/* ---- single elements ------------------------------------------------------------------------- */

LLVMValueRef cpu_load_element(cpu_emit *e, const ir_op *op)
{
    return load_one(e, op, &(cpu_at){.lane = -1}).v;
}

void cpu_store_element(cpu_emit *e, const ir_op *op)
{
    LLVMValueRef inside = outer_inside(e, op), p = origin_of(e, op);
    enum dtype t = (enum dtype)slice_type(e, op).dtype;
    LLVMValueRef v = cpu_to_memory(e, t, e->scalar[op->args[op->nargs - 1]]);
    LLVMBasicBlockRef then = NULL, after = NULL;

    if (inside) {
        then = ll_block(e->cx, "inside");
        after = ll_block(e->cx, "");
        LLVMBuildCondBr(e->cx->b, inside, then, after);
        cpu_goto(e, then);
    }
    ll_store(e->cx, v, p, element_align(e, op));
    if (inside) {
        LLVMBuildBr(e->cx->b, after);
        cpu_goto(e, after);
    }
}

LLVMValueRef cpu_element_pointer(cpu_emit *e, const ir_op *op, LLVMValueRef *inside)
{
    *inside = outer_inside(e, op);
    return origin_of(e, op);
}

LLVMValueRef cpu_lane_pointers(cpu_emit *e, const ir_op *op, const cpu_at *at, LLVMValueRef *mask)
{
    int limit = limit_of(e, slice_type(e, op), at), mask_depth;

    *mask = full_mask(e, mask_of(e, op, at, limit, &mask_depth));
    return lane_pointers(e, op, at, e->depth);
}

/* ---- direct loads ---------------------------------------------------------------------------- */

LLVMValueRef cpu_slice_inside(cpu_emit *e, const ir_op *op)
{
    LLVMValueRef c = outer_inside(e, op);

    for (int d = 0; d < (int)op->attr[0].ints.n; d++) {
        int64_t n = op->attr[0].ints.at[d];
        if (n == 0 || proved_inside(op, d))
            continue;
        LLVMValueRef first = start_of(e, op, d), end = cpu_add(e, first, ll_i64(e->cx, n), 0);
        LLVMValueRef fits = LLVMBuildICmp(e->cx->b, LLVMIntSLE, end, view_of(e, op)->extent[d], "");
        LLVMValueRef from = LLVMBuildICmp(e->cx->b, LLVMIntSGE, first, ll_i64(e->cx, 0), "");
        c = both(e, c, both(e, from, fits, 0), 0);
    }
    return c;
}

static LLVMValueRef choose(cpu_emit *e, LLVMValueRef x, LLVMBasicBlockRef from_x, LLVMValueRef y,
                           LLVMBasicBlockRef from_y)
{
    if (x == y)
        return x;
    LLVMValueRef phi = LLVMBuildPhi(e->cx->b, LLVMTypeOf(x), "");
    ll_phi_add(phi, x, from_x);
    ll_phi_add(phi, y, from_y);
    return phi;
}

/* A ragged block is read from a zero-filled copy, any other where it lies: the loops that read it
 * are the same. */
static void choose_place(cpu_emit *e, const cpu_step *s, cpu_direct *d, int rank)
{
    const ir_op *op = s->op;
    const cpu_buf *b =
        &e->plan->bufs.at[cpu_buf_root(e->plan, e->plan->value.at[op->res].direct_buf)];
    LLVMBasicBlockRef copy = ll_block(e->cx, "ragged"), after = ll_block(e->cx, "");
    LLVMBasicBlockRef before = e->here;
    LLVMValueRef inside = cpu_slice_inside(e, op);

    LLVMBuildCondBr(e->cx->b, inside, after, copy);
    cpu_goto(e, copy);
    cpu_emit_nest(e, s->nest);
    LLVMValueRef base = ll_gep(e->cx, e->cx->i8, e->arg_scratch, ll_i64(e->cx, b->offset));
    LLVMBuildBr(e->cx->b, after);
    copy = e->here;
    cpu_goto(e, after);
    d->base = choose(e, d->base, before, base, copy);
    for (int t = 0; t < rank; t++)
        d->stride[t] = choose(e, d->stride[t], before, ll_i64(e->cx, b->stride[t]), copy);
}

void cpu_prepare_direct(cpu_emit *e, const cpu_step *s)
{
    cpu_direct d = {.base = origin_of(e, s->op)};
    int rank = slice_type(e, s->op).rank;

    for (int t = 0; t < rank; t++)
        d.stride[t] = view_of(e, s->op)->stride[cpu_view_dim(s->op, t)];
    if (s->nest)
        choose_place(e, s, &d, rank);
    e->direct[s->op->res] = d;
}
