/* Elements of tensors, read and written. Nothing outside of a tensor is touched: lanes outside are
 * masked, a scalar load outside reads zeros from elsewhere, a scalar store outside is branched
 * around. */
#include "compiler/target/cpu/cpu_slice.h"

/* ---- loads ----------------------------------------------------------------------------------- */

static cpu_got load_one(cpu_emit *e, const ir_op *op, const cpu_at *at)
{
    ir_type t = cpu_slice_type(e, op);
    cpu_got got = {.depth = cpu_at_depth(at, t.rank)};
    LLVMValueRef inside = cpu_slice_rows(e, op, at), p = cpu_slice_address(e, op, at, got.depth);

    cpu_hoist(e, got.depth);
    if (inside)
        p = ll_select(e->cx, inside, p, e->zero);
    got.v = ll_load(e->cx, cpu_slice_element(e, op), p, cpu_slice_align(e, op));
    got.v = cpu_to_register(e, (enum dtype)t.dtype, got.v);
    cpu_home(e);
    return got;
}

/* Lanes along the contiguous dimension, the first limit of them. */
static cpu_got load_along(cpu_emit *e, const ir_op *op, const cpu_at *at, int limit)
{
    ir_type t = cpu_slice_type(e, op);
    cpu_got got = {.depth = cpu_at_depth(at, t.rank)};
    int mask_depth;
    LLVMValueRef mask = cpu_slice_mask(e, op, at, limit, &mask_depth);
    LLVMValueRef p = cpu_slice_address(e, op, at, got.depth);
    LLVMTypeRef type = cpu_memory_type(e, (enum dtype)t.dtype, e->isa->lanes);

    cpu_hoist(e, got.depth);
    got.v = mask ? ll_masked_load(e->cx, type, p, cpu_slice_align(e, op), mask)
                 : ll_load(e->cx, type, p, cpu_slice_align(e, op));
    got.v = cpu_to_register(e, (enum dtype)t.dtype, got.v);
    cpu_home(e);
    return got;
}

static LLVMValueRef load_bits(cpu_emit *e, const ir_op *op, const cpu_at *at, int n,
                              LLVMValueRef mask)
{
    int depth = cpu_at_depth(at, cpu_slice_type(e, op).rank);
    LLVMTypeRef type = ll_lanes(e->cx->i16, n);
    LLVMValueRef p = cpu_slice_address(e, op, at, depth);

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
        mask[h] = cpu_slice_mask(e, op, &from[h],
                                 width < (h + 1) * lanes ? width - h * lanes : lanes, &depth);
    for (int h = 0; h < 2; h++)
        half[h] = width > h * lanes ? load_bits(e, op, &from[h], lanes, mask[h])
                                    : LLVMConstNull(ll_lanes(e->cx->i16, lanes));
    return LLVMBuildShuffleVector(e->cx->b, half[0], half[1], ll_iota(e->cx, 0, 2 * lanes), "");
}

/* Pointers to the lanes' elements. */
static LLVMValueRef lane_pointers(cpu_emit *e, const ir_op *op, const cpu_at *at, int depth)
{
    int lanes = e->isa->lanes, d = cpu_view_dim(op, at->lane);
    LLVMValueRef p = cpu_slice_address(e, op, at, depth), lane = ll_iota(e->cx, 0, lanes);
    LLVMValueRef stride = cpu_slice_view(e, op)->stride[d];

    if (cpu_is_gathered(e->fn, op, d))
        lane = cpu_vector(e, cpu_slice_given(e, op, at, at->lane));
    cpu_hoist(e, depth);
    lane = LLVMBuildSExt(e->cx->b, lane, ll_lanes(e->cx->i64, lanes), "");
    lane = LLVMBuildMul(e->cx->b, lane, ll_splat(e->cx, stride, lanes), "");
    p = ll_gep(e->cx, cpu_slice_element(e, op), p, lane);
    cpu_home(e);
    return p;
}

static LLVMValueRef full_mask(cpu_emit *e, LLVMValueRef mask)
{
    return mask ? mask : ll_first_lanes(e->cx, e->isa->lanes, e->isa->lanes);
}

static cpu_got load_across(cpu_emit *e, const ir_op *op, const cpu_at *at)
{
    ir_type t = cpu_slice_type(e, op);
    cpu_got got = {.depth = cpu_at_depth(at, t.rank)};
    int mask_depth;
    LLVMValueRef mask =
        full_mask(e, cpu_slice_mask(e, op, at, cpu_slice_limit(e, t, at), &mask_depth));
    LLVMValueRef p = lane_pointers(e, op, at, got.depth);
    LLVMTypeRef type = cpu_memory_type(e, (enum dtype)t.dtype, e->isa->lanes);

    cpu_hoist(e, got.depth);
    got.v = ll_gather(e->cx, type, p, cpu_slice_align(e, op), mask);
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
    ir_type t = cpu_slice_type(e, op);
    int d = cpu_view_dim(op, along), lanes = e->isa->lanes;

    return dtype_bits((enum dtype)t.dtype) == 32 && e->block_rows == lanes &&
           cpu_slice_limit(e, t, at) == lanes && cpu_slice_proved(op, d) &&
           !cpu_is_gathered(e->fn, op, d);
}

/* Turns a square in squares of 128 bits: they are loaded to where they belong in a register, so
 * only within them anything is moved. A row outside of the tensor is read from where zeros lie. */
static void load_square(cpu_emit *e, const ir_op *op, const cpu_at *at, int along,
                        LLVMValueRef *rows)
{
    enum { PART = 4 };
    int lanes = e->isa->lanes, depth = cpu_at_depth(at, cpu_slice_type(e, op).rank);
    LLVMTypeRef elem = cpu_slice_element(e, op), part = ll_lanes(elem, PART);
    LLVMValueRef from[CPU_MAX_LANES];

    for (int i = 0; i < lanes; i++) {
        cpu_at row = turned_row(e, at, along, i);
        LLVMValueRef inside = cpu_slice_rows(e, op, &row);
        from[i] = cpu_slice_address(e, op, &row, depth);
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
            p = ll_load(e->cx, part, p, cpu_slice_align(e, op));
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
    ir_type t = cpu_slice_type(e, op);
    int lanes = e->isa->lanes, limit = cpu_slice_limit(e, t, at);
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
    int depth = cpu_at_depth(at, cpu_slice_type(e, op).rank);
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
    ir_type t = cpu_slice_type(e, op);
    int along = cpu_contiguous_dim(e->plan, op);

    if (at->lane < 0)
        return load_one(e, op, at);
    if (along == at->lane)
        return load_along(e, op, at, cpu_slice_limit(e, t, at));
    if (along >= 0 && in_block(e, at->i[along]) && t.dtype != DT_I1)
        return load_turned(e, op, at, along);
    return load_across(e, op, at);
}

/* ---- stores ---------------------------------------------------------------------------------- */

static void store_along(cpu_emit *e, const ir_op *op, const cpu_at *at, int limit, LLVMValueRef v)
{
    int mask_depth;
    LLVMValueRef mask = cpu_slice_mask(e, op, at, limit, &mask_depth);
    LLVMValueRef p = cpu_slice_address(e, op, at, e->depth);

    v = cpu_to_memory(e, (enum dtype)cpu_slice_type(e, op).dtype, v);
    if (mask)
        ll_masked_store(e->cx, v, p, cpu_slice_align(e, op), mask);
    else
        ll_store(e->cx, v, p, cpu_slice_align(e, op));
}

void cpu_store_tensor(cpu_emit *e, const ir_op *op, const cpu_at *at, cpu_got got)
{
    ir_type t = cpu_slice_type(e, op);
    LLVMValueRef v = cpu_vector(e, got);
    int limit = cpu_slice_limit(e, t, at), mask_depth;

    if (cpu_contiguous_dim(e->plan, op) == at->lane) {
        store_along(e, op, at, limit, v);
        return;
    }
    v = cpu_to_memory(e, (enum dtype)t.dtype, v);
    LLVMValueRef mask = full_mask(e, cpu_slice_mask(e, op, at, limit, &mask_depth));
    ll_scatter(e->cx, v, lane_pointers(e, op, at, e->depth), cpu_slice_align(e, op), mask);
}

void cpu_store_block(cpu_emit *e, const ir_op *op, const cpu_at *at, const cpu_got *got, int inner)
{
    LLVMValueRef rows[CPU_MAX_LANES];
    ir_type t = cpu_slice_type(e, op);
    int lanes = e->isa->lanes, limit = cpu_slice_limit(e, t, at);
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
    LLVMValueRef inside = cpu_slice_outer(e, op), p = cpu_slice_origin(e, op);
    enum dtype t = (enum dtype)cpu_slice_type(e, op).dtype;
    LLVMValueRef v = cpu_to_memory(e, t, e->scalar[op->args[op->nargs - 1]]);
    LLVMBasicBlockRef then = NULL, after = NULL;

    if (inside) {
        then = ll_block(e->cx, "inside");
        after = ll_block(e->cx, "");
        LLVMBuildCondBr(e->cx->b, inside, then, after);
        cpu_goto(e, then);
    }
    ll_store(e->cx, v, p, cpu_slice_align(e, op));
    if (inside) {
        LLVMBuildBr(e->cx->b, after);
        cpu_goto(e, after);
    }
}

LLVMValueRef cpu_element_pointer(cpu_emit *e, const ir_op *op, LLVMValueRef *inside)
{
    *inside = cpu_slice_outer(e, op);
    return cpu_slice_origin(e, op);
}

LLVMValueRef cpu_lane_pointers(cpu_emit *e, const ir_op *op, const cpu_at *at, LLVMValueRef *mask)
{
    int limit = cpu_slice_limit(e, cpu_slice_type(e, op), at), mask_depth;

    *mask = full_mask(e, cpu_slice_mask(e, op, at, limit, &mask_depth));
    return lane_pointers(e, op, at, e->depth);
}

/* ---- direct loads ---------------------------------------------------------------------------- */

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
    cpu_direct d = {.base = cpu_slice_origin(e, s->op)};
    int rank = cpu_slice_type(e, s->op).rank;

    for (int t = 0; t < rank; t++)
        d.stride[t] = cpu_slice_view(e, s->op)->stride[cpu_view_dim(s->op, t)];
    if (s->nest)
        choose_place(e, s, &d, rank);
    e->direct[s->op->res] = d;
}
