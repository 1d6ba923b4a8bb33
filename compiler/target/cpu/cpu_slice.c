#include "compiler/target/cpu/cpu_slice.h"

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

LLVMTypeRef cpu_slice_element(const cpu_emit *e, const ir_op *op)
{
    return cpu_memory_type(e, (enum dtype)ir_type_of(e->fn, op->args[0]).dtype, 1);
}

unsigned cpu_slice_align(const cpu_emit *e, const ir_op *op)
{
    return (unsigned)dtype_bytes((enum dtype)ir_type_of(e->fn, op->args[0]).dtype);
}

const cpu_view *cpu_slice_view(cpu_emit *e, const ir_op *op)
{
    return cpu_view_of(e, cpu_view_param(e->plan, op->args[0]));
}

ir_type cpu_slice_type(const cpu_emit *e, const ir_op *op)
{
    return ir_type_of(e->fn, op->code == OP_LOAD ? op->res : op->args[op->nargs - 1]);
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

LLVMValueRef cpu_slice_origin(cpu_emit *e, const ir_op *op)
{
    LLVMValueRef p = cpu_known(e, CPU_TAG_ORIGIN, op, NULL, 0), offset = ll_i64(e->cx, 0);
    const cpu_view *view = cpu_slice_view(e, op);

    if (p)
        return p;
    for (int d = 0; d < (int)op->attr[0].ints.n; d++) {
        if (!cpu_is_gathered(e->fn, op, d))
            offset = cpu_add(e, offset, cpu_mul(e, start_of(e, op, d), view->stride[d], 0), 0);
    }
    p = step_address(e, cpu_slice_element(e, op), view->base, offset, 0);
    cpu_note(e, CPU_TAG_ORIGIN, op, NULL, p, 0);
    return p;
}

cpu_got cpu_slice_given(cpu_emit *e, const ir_op *op, const cpu_at *at, int t)
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
    cpu_got got = cpu_slice_given(e, op, at, t);
    LLVMValueRef wide = cpu_known(e, CPU_TAG_SEXT, got.v, NULL, got.depth);
    if (!wide) {
        cpu_hoist(e, got.depth);
        wide = LLVMBuildSExt(e->cx->b, got.v, e->cx->i64, "");
        cpu_home(e);
        cpu_note(e, CPU_TAG_SEXT, got.v, NULL, wide, got.depth);
    }
    return (cpu_index){wide, 0, got.depth};
}

LLVMValueRef cpu_slice_address(cpu_emit *e, const ir_op *op, const cpu_at *at, int depth)
{
    int rank = cpu_slice_type(e, op).rank;
    cpu_term t[TILE_MAX_RANK];

    for (int d = 0; d < rank; d++) {
        bool in_lanes = d == at->lane && cpu_is_gathered(e->fn, op, cpu_view_dim(op, d));
        t[d].i = in_lanes ? (cpu_index){0} : place_along(e, op, at, d);
        t[d].stride = cpu_slice_view(e, op)->stride[cpu_view_dim(op, d)];
    }
    return cpu_address(e, cpu_slice_element(e, op), cpu_slice_origin(e, op), t, rank, depth);
}

int cpu_slice_limit(const cpu_emit *e, ir_type t, const cpu_at *at)
{
    int64_t left = t.shape[at->lane] - at->i[at->lane].off;

    return at->i[at->lane].base || left > e->isa->lanes ? e->isa->lanes : (int)left;
}

/* ---- what is inside -------------------------------------------------------------------------- */

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

LLVMValueRef cpu_slice_outer(cpu_emit *e, const ir_op *op)
{
    LLVMValueRef c = cpu_known(e, CPU_TAG_OUTER, op, NULL, 0);

    if (c)
        return c;
    for (int d = 0; d < (int)op->attr[0].ints.n; d++) {
        if (op->attr[0].ints.at[d] == 0 && !cpu_slice_proved(op, d))
            c = both(e, c, below(e, start_of(e, op, d), cpu_slice_view(e, op)->extent[d], 0), 0);
    }
    if (c)
        cpu_note(e, CPU_TAG_OUTER, op, NULL, c, 0);
    return c;
}

LLVMValueRef cpu_slice_rows(cpu_emit *e, const ir_op *op, const cpu_at *at)
{
    LLVMValueRef c = cpu_slice_outer(e, op);
    int rank = cpu_slice_type(e, op).rank, depth = 0;

    for (int t = 0; t < rank; t++) {
        int d = cpu_view_dim(op, t);
        if (t == at->lane || cpu_slice_proved(op, d))
            continue;
        cpu_index i = place_along(e, op, at, t);
        int own = i.base ? i.depth : 0;
        LLVMValueRef x = cpu_index_value(e, i);
        if (!cpu_is_gathered(e->fn, op, d))
            x = cpu_add(e, start_of(e, op, d), x, own);
        depth = own > depth ? own : depth;
        c = both(e, c, below(e, x, cpu_slice_view(e, op)->extent[d], own), depth);
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
    LLVMValueRef extent = cpu_slice_view(e, op)->extent[d];
    int64_t lo, hi;

    if (cpu_slice_proved(op, d))
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

/* Where a tile gives the lanes' indices: those below the extent, by one unsigned comparison. */
static LLVMValueRef given_mask(cpu_emit *e, const ir_op *op, const cpu_at *at, int limit,
                               int *depth)
{
    int d = cpu_view_dim(op, at->lane), lanes = e->isa->lanes;
    LLVMValueRef rows = cpu_slice_rows(e, op, at);
    cpu_got got = cpu_slice_given(e, op, at, at->lane);
    LLVMValueRef index = cpu_vector(e, got), extent = cpu_slice_view(e, op)->extent[d];

    *depth = cpu_at_depth(at, cpu_slice_type(e, op).rank);
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

LLVMValueRef cpu_slice_mask(cpu_emit *e, const ir_op *op, const cpu_at *at, int limit, int *depth)
{
    if (cpu_is_gathered(e->fn, op, cpu_view_dim(op, at->lane)))
        return given_mask(e, op, at, limit, depth);
    int lanes = e->isa->lanes;
    LLVMValueRef rows = cpu_slice_rows(e, op, at), iota = ll_iota(e->cx, 0, lanes), mask;
    stretch s = lanes_inside(e, op, at, limit);

    *depth = rows ? cpu_at_depth(at, cpu_slice_type(e, op).rank) : s.depth;
    if (!rows && cpu_slice_proved(op, cpu_view_dim(op, at->lane)))
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

LLVMValueRef cpu_slice_inside(cpu_emit *e, const ir_op *op)
{
    LLVMValueRef c = cpu_slice_outer(e, op);

    for (int d = 0; d < (int)op->attr[0].ints.n; d++) {
        int64_t n = op->attr[0].ints.at[d];
        if (n == 0 || cpu_slice_proved(op, d))
            continue;
        LLVMValueRef first = start_of(e, op, d), end = cpu_add(e, first, ll_i64(e->cx, n), 0);
        LLVMValueRef fits =
            LLVMBuildICmp(e->cx->b, LLVMIntSLE, end, cpu_slice_view(e, op)->extent[d], "");
        LLVMValueRef from = LLVMBuildICmp(e->cx->b, LLVMIntSGE, first, ll_i64(e->cx, 0), "");
        c = both(e, c, both(e, from, fits, 0), 0);
    }
    return c;
}
