#include "compiler/target/cpu/cpu_emit.h"
#include "compiler/base/check.h"
#include <string.h>

/* ---- memo ------------------------------------------------------------------------------------ */

static uint32_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15ull;
    return (uint32_t)(h >> 32);
}

static uint32_t chain_of(const cpu_memo *m)
{
    uint64_t h = m->v;

    if (!m->v)
        return mix(mix((uint64_t)m->tag, (uintptr_t)m->x), (uintptr_t)m->y) % CPU_MEMO_CHAINS;
    h = mix(h, (uint64_t)(m->at.lane + 1));
    for (int d = 0; d < TILE_MAX_RANK; d++)
        h = mix(mix(h, (uintptr_t)m->at.i[d].base), (uint64_t)m->at.i[d].off);
    return (uint32_t)h % CPU_MEMO_CHAINS;
}

static bool same_key(const cpu_memo *a, const cpu_memo *b)
{
    if (a->v != b->v)
        return false;
    if (!a->v)
        return a->tag == b->tag && a->x == b->x && a->y == b->y;
    if (a->at.lane != b->at.lane)
        return false;
    for (int d = 0; d < TILE_MAX_RANK; d++) {
        if (a->at.i[d].base != b->at.i[d].base || a->at.i[d].off != b->at.i[d].off)
            return false;
    }
    return true;
}

static const cpu_memo *memo_find(const cpu_emit *e, const cpu_memo *key)
{
    for (uint32_t i = e->chain[chain_of(key)]; i; i = e->memo.at[i].next) {
        if (same_key(&e->memo.at[i], key))
            return &e->memo.at[i];
    }
    return NULL;
}

static void memo_link(cpu_emit *e, uint32_t i)
{
    uint32_t *head = &e->chain[chain_of(&e->memo.at[i])];

    e->memo.at[i].next = *head;
    *head = i;
}

static void memo_add(cpu_emit *e, const cpu_memo *m)
{
    vec_push(&e->memo, e->a, *m);
    memo_link(e, e->memo.n - 1);
}

void cpu_memo_clear(cpu_emit *e)
{
    cpu_memo none = {0};

    memset(e->chain, 0, sizeof e->chain);
    e->memo.n = 0;
    vec_push(&e->memo, e->a, none);
}

void cpu_memo_close(cpu_emit *e, int depth)
{
    uint32_t kept = 1;

    memset(e->chain, 0, sizeof e->chain);
    for (uint32_t i = 1; i < e->memo.n; i++) {
        if (e->memo.at[i].got.depth >= depth)
            continue;
        e->memo.at[kept] = e->memo.at[i];
        memo_link(e, kept++);
    }
    e->memo.n = kept;
}

/* Indices beyond the rank do not count. */
static cpu_memo key_of(const cpu_emit *e, ir_val v, const cpu_at *at)
{
    cpu_memo m = {.v = v};
    int rank = ir_type_of(e->fn, v).rank;

    m.at.lane = at->lane;
    for (int d = 0; d < rank; d++)
        m.at.i[d] = at->i[d];
    return m;
}

void cpu_remember(cpu_emit *e, ir_val v, const cpu_at *at, cpu_got got)
{
    cpu_memo m = key_of(e, v, at);

    m.got = got;
    memo_add(e, &m);
}

/* ---- arithmetic on indices ------------------------------------------------------------------- */

LLVMValueRef cpu_known(const cpu_emit *e, int tag, const void *x, const void *y, int depth)
{
    cpu_memo m = {.tag = tag, .x = x, .y = y};
    const cpu_memo *known = memo_find(e, &m);

    return known && known->got.depth <= depth ? known->got.v : NULL;
}

void cpu_note(cpu_emit *e, int tag, const void *x, const void *y, LLVMValueRef v, int depth)
{
    cpu_memo m = {.tag = tag, .x = x, .y = y, .got = {v, depth}};

    memo_add(e, &m);
}

static LLVMValueRef arithmetic(cpu_emit *e, int tag, LLVMValueRef x, LLVMValueRef y, int depth)
{
    LLVMValueRef v = cpu_known(e, tag, x, y, depth);

    if (v)
        return v;
    cpu_hoist(e, depth);
    v = tag == CPU_TAG_ADD ? ll_add(e->cx, x, y) : ll_mul(e->cx, x, y);
    cpu_home(e);
    cpu_note(e, tag, x, y, v, depth);
    return v;
}

LLVMValueRef cpu_mul(cpu_emit *e, LLVMValueRef x, LLVMValueRef y, int depth)
{
    return arithmetic(e, CPU_TAG_MUL, x, y, depth);
}

LLVMValueRef cpu_add(cpu_emit *e, LLVMValueRef x, LLVMValueRef y, int depth)
{
    return arithmetic(e, CPU_TAG_ADD, x, y, depth);
}

LLVMValueRef cpu_index_value(cpu_emit *e, cpu_index i)
{
    if (!i.base)
        return ll_i64(e->cx, i.off);
    return cpu_add(e, i.base, ll_i64(e->cx, i.off), i.depth);
}

LLVMValueRef cpu_vector(cpu_emit *e, cpu_got got)
{
    LLVMValueRef v;

    if (ll_lanes_of(LLVMTypeOf(got.v)) > 1)
        return got.v;
    if ((v = cpu_known(e, CPU_TAG_SPLAT, got.v, NULL, got.depth)))
        return v;
    cpu_hoist(e, got.depth);
    v = ll_splat(e->cx, got.v, e->isa->lanes);
    cpu_home(e);
    cpu_note(e, CPU_TAG_SPLAT, got.v, NULL, v, got.depth);
    return v;
}

int cpu_at_depth(const cpu_at *at, int rank)
{
    int depth = 0;

    for (int d = 0; d < rank; d++) {
        if (at->i[d].base && at->i[d].depth > depth)
            depth = at->i[d].depth;
    }
    return depth;
}

/* ---- buffers --------------------------------------------------------------------------------- */

LLVMValueRef cpu_buf_address(cpu_emit *e, const cpu_buf *b, const cpu_at *at, int depth)
{
    enum dtype held = b->pairs ? DT_I32 : (enum dtype)b->type.dtype;
    LLVMTypeRef elem = cpu_memory_type(e, held, 1);
    cpu_term t[TILE_MAX_RANK + 1];
    int n = b->type.rank;

    for (int d = 0; d < n; d++) {
        t[d].i = at->i[d];
        t[d].stride = ll_i64(e->cx, b->stride[d]);
    }
    /* the offset is a multiple of 64, and so of every element's size */
    t[n].i = (cpu_index){.off = b->offset / dtype_bytes(held)};
    t[n].stride = ll_i64(e->cx, 1);
    return cpu_address(e, elem, e->arg_scratch, t, n + 1, depth);
}

static unsigned element_align(const cpu_buf *b)
{
    return (unsigned)dtype_bytes((enum dtype)b->type.dtype);
}

static unsigned vector_align(const cpu_emit *e, const cpu_buf *b)
{
    unsigned bytes = element_align(b) * (unsigned)e->isa->lanes;

    return bytes < 64 ? bytes : 64;
}

/* Pointers to the lanes' elements, along a dimension that is not the buffer's lane. */
static LLVMValueRef lane_pointers(cpu_emit *e, LLVMTypeRef elem, LLVMValueRef base,
                                  LLVMValueRef stride)
{
    LLVMValueRef step = ll_splat(e->cx, stride, e->isa->lanes);
    LLVMTypeRef wide = ll_lanes(e->cx->i64, e->isa->lanes);
    LLVMValueRef lane = LLVMBuildZExt(e->cx->b, ll_iota(e->cx, 0, e->isa->lanes), wide, "");

    return ll_gep(e->cx, elem, base, LLVMBuildMul(e->cx->b, lane, step, ""));
}

static int lanes_inside(const cpu_emit *e, const cpu_buf *b, const cpu_at *at)
{
    int64_t left = b->type.shape[at->lane] - at->i[at->lane].off;

    return at->i[at->lane].base || left > e->isa->lanes ? e->isa->lanes : (int)left;
}

static cpu_got load_across(cpu_emit *e, const cpu_buf *b, const cpu_at *at)
{
    cpu_got got = {.depth = cpu_at_depth(at, b->type.rank)};
    enum dtype t = (enum dtype)b->type.dtype;
    LLVMTypeRef elem = cpu_memory_type(e, t, 1);
    LLVMValueRef base = cpu_buf_address(e, b, at, got.depth);

    cpu_hoist(e, got.depth);
    LLVMValueRef at_lanes = lane_pointers(e, elem, base, ll_i64(e->cx, b->stride[at->lane]));
    LLVMValueRef mask = ll_first_lanes(e->cx, lanes_inside(e, b, at), e->isa->lanes);
    got.v =
        ll_gather(e->cx, cpu_memory_type(e, t, e->isa->lanes), at_lanes, element_align(b), mask);
    got.v = cpu_to_register(e, t, got.v);
    cpu_home(e);
    return got;
}

static bool in_block(const cpu_emit *e, cpu_index i)
{
    return e->block_rows && i.base == e->block_base && i.off >= e->block_off &&
           i.off < e->block_off + e->block_rows;
}

static cpu_got load_buf(cpu_emit *e, ir_val v, const cpu_buf *b, const cpu_at *at);

/* Rows of the nest's block lie along the buffer's lanes: all of them at once, by a transposition.
 */
static cpu_got load_turned(cpu_emit *e, ir_val v, const cpu_buf *b, const cpu_at *at)
{
    LLVMValueRef rows[CPU_MAX_LANES];
    int lanes = e->isa->lanes, inside = lanes_inside(e, b, at),
        depth = cpu_at_depth(at, b->type.rank);
    cpu_at row = *at;
    cpu_got wanted = {0};

    row.lane = b->lane;
    row.i[b->lane].off = e->block_off;
    for (int i = 0; i < lanes; i++) {
        row.i[at->lane].off = at->i[at->lane].off + (i < inside ? i : 0);
        rows[i] = load_buf(e, v, b, &row).v;
    }
    cpu_hoist(e, depth);
    ll_transpose(e->cx, rows, lanes);
    cpu_home(e);
    for (int r = 0; r < e->block_rows; r++) {
        cpu_at to = *at;
        cpu_got got = {rows[r], depth};
        to.i[b->lane].off = e->block_off + r;
        if (to.i[b->lane].off == at->i[b->lane].off)
            wanted = got;
        else
            cpu_remember(e, v, &to, got);
    }
    return wanted;
}

static cpu_got load_buf(cpu_emit *e, ir_val v, const cpu_buf *b, const cpu_at *at)
{
    enum dtype t = (enum dtype)b->type.dtype;
    bool vector = at->lane >= 0;
    cpu_got got = {.depth = cpu_at_depth(at, b->type.rank)};

    if (vector && at->lane != b->lane)
        return in_block(e, at->i[b->lane]) && t != DT_I1 ? load_turned(e, v, b, at)
                                                         : load_across(e, b, at);
    LLVMValueRef p = cpu_buf_address(e, b, at, got.depth);
    cpu_hoist(e, got.depth);
    got.v = ll_load(e->cx, cpu_memory_type(e, t, vector ? e->isa->lanes : 1), p,
                    vector ? vector_align(e, b) : element_align(b));
    got.v = cpu_to_register(e, t, got.v);
    cpu_home(e);
    return got;
}

/* v as it lies in memory: the elements of one vector, or one. */
static void store_held(cpu_emit *e, const cpu_buf *b, const cpu_at *at, LLVMValueRef v)
{
    LLVMValueRef p = cpu_buf_address(e, b, at, e->depth);

    if (at->lane < 0 || at->lane == b->lane) {
        ll_store(e->cx, v, p, at->lane < 0 ? element_align(b) : vector_align(e, b));
        return;
    }
    LLVMTypeRef elem = cpu_memory_type(e, (enum dtype)b->type.dtype, 1);
    LLVMValueRef at_lanes = lane_pointers(e, elem, p, ll_i64(e->cx, b->stride[at->lane]));
    ll_scatter(e->cx, v, at_lanes, element_align(b),
               ll_first_lanes(e->cx, lanes_inside(e, b, at), e->isa->lanes));
}

void cpu_store_buf(cpu_emit *e, uint32_t buf, const cpu_at *at, cpu_got got)
{
    const cpu_buf *b = &e->plan->bufs.at[cpu_buf_root(e->plan, buf)];
    LLVMValueRef v = at->lane < 0 ? got.v : cpu_vector(e, got);

    store_held(e, b, at, cpu_to_memory(e, (enum dtype)b->type.dtype, v));
}

void cpu_store_narrow(cpu_emit *e, uint32_t buf, const cpu_at *at, cpu_got got)
{
    const cpu_buf *b = &e->plan->bufs.at[cpu_buf_root(e->plan, buf)];
    LLVMValueRef v = at->lane < 0 ? got.v : cpu_vector(e, got);

    ICHECK(b->type.dtype == DT_BF16, "an operand of tiles");
    store_held(e, b, at, cpu_rounded_bits(e, v));
}

/* ---- virtual tiles --------------------------------------------------------------------------- */

static cpu_got eval_arange(cpu_emit *e, const ir_op *op, const cpu_at *at)
{
    cpu_index i = at->i[0];
    int lanes = at->lane < 0 ? 1 : e->isa->lanes;
    LLVMValueRef first = ll_iota(e->cx, op->attr[0].i + i.off, lanes);

    if (!i.base)
        return (cpu_got){first, 0};
    cpu_hoist(e, i.depth);
    LLVMValueRef base = LLVMBuildTrunc(e->cx->b, i.base, e->cx->i32, "");
    LLVMValueRef v = LLVMBuildAdd(e->cx->b, ll_splat(e->cx, base, lanes), first, "");
    cpu_home(e);
    return (cpu_got){v, i.depth};
}

/* Where element `at` of a view op's result lies in its operand. */
static cpu_at through_view(const cpu_emit *e, const ir_op *op, const cpu_at *at)
{
    ir_type from = ir_type_of(e->fn, op->args[0]), to = ir_type_of(e->fn, op->res);
    cpu_at in = {.lane = -1};

    for (int d = 0; d < from.rank; d++) {
        int out = d;
        if (op->code == OP_EXPAND)
            out = d + (d >= op->attr[0].i);
        for (int i = 0; op->code == OP_TRANS && i < from.rank; i++)
            out = op->attr[0].ints.at[i] == d ? i : out;
        if (op->code == OP_BROADCAST && from.shape[d] != to.shape[d])
            continue;
        in.i[d] = at->i[out];
        if (at->lane == out)
            in.lane = d;
    }
    return in;
}

/* Extents without those of 1 agree: dimension d of the operand is dimension out[d] of the result.
 */
static bool reshape_maps(ir_type from, ir_type to, int *out)
{
    int k = 0;

    for (int d = 0; d < from.rank; d++) {
        out[d] = -1;
        if (from.shape[d] == 1)
            continue;
        while (k < to.rank && to.shape[k] == 1)
            k++;
        if (k == to.rank || to.shape[k] != from.shape[d])
            return false;
        out[d] = k++;
    }
    return true;
}

static cpu_got element_of_reshape(cpu_emit *e, const ir_op *op, const cpu_at *at)
{
    ir_type from = ir_type_of(e->fn, op->args[0]), to = ir_type_of(e->fn, op->res);
    int depth = cpu_at_depth(at, to.rank);
    LLVMValueRef linear = ll_i64(e->cx, 0);
    cpu_at in = {.lane = -1};

    for (int d = 0, known = 0; d < to.rank; d++) {
        linear = cpu_mul(e, linear, ll_i64(e->cx, to.shape[d]), known);
        known = cpu_at_depth(at, d + 1);
        linear = cpu_add(e, linear, cpu_index_value(e, at->i[d]), known);
    }
    cpu_hoist(e, depth);
    for (int d = from.rank - 1; d >= 0; d--) {
        LLVMValueRef n = ll_i64(e->cx, from.shape[d]);
        in.i[d].depth = depth;
        in.i[d].base = d ? LLVMBuildURem(e->cx->b, linear, n, "") : linear;
        linear = LLVMBuildUDiv(e->cx->b, linear, n, "");
    }
    cpu_home(e);
    return cpu_eval(e, op->args[0], &in);
}

static cpu_got eval_reshape(cpu_emit *e, const ir_op *op, const cpu_at *at)
{
    ir_type from = ir_type_of(e->fn, op->args[0]), to = ir_type_of(e->fn, op->res);
    int out[TILE_MAX_RANK];
    cpu_at in = {.lane = -1}, one = *at;

    if (reshape_maps(from, to, out)) {
        for (int d = 0; d < from.rank; d++) {
            if (out[d] < 0)
                continue;
            in.i[d] = at->i[out[d]];
            if (out[d] == at->lane)
                in.lane = d;
        }
        return cpu_eval(e, op->args[0], &in);
    }
    if (at->lane < 0)
        return element_of_reshape(e, op, at);
    cpu_got got = {LLVMGetPoison(cpu_type(e, (enum dtype)to.dtype, e->isa->lanes)),
                   cpu_at_depth(at, to.rank)};
    int64_t last = to.shape[at->lane] - 1;
    one.lane = -1;
    for (int i = 0; i < e->isa->lanes; i++) {
        if (at->i[at->lane].base || at->i[at->lane].off + i <= last)
            one.i[at->lane].off = at->i[at->lane].off + i;
        cpu_got lane = element_of_reshape(e, op, &one);
        cpu_hoist(e, got.depth);
        got.v = LLVMBuildInsertElement(e->cx->b, got.v, lane.v, ll_i64(e->cx, i), "");
        cpu_home(e);
    }
    return got;
}

static cpu_got eval_elementwise(cpu_emit *e, const ir_op *op, const cpu_at *at)
{
    LLVMValueRef arg[3];
    cpu_got in[3], got = {0};
    bool vector = false;

    for (int i = 0; i < op->nargs; i++) {
        in[i] = cpu_eval(e, op->args[i], at);
        vector = vector || ll_lanes_of(LLVMTypeOf(in[i].v)) > 1;
        got.depth = in[i].depth > got.depth ? in[i].depth : got.depth;
    }
    for (int i = 0; i < op->nargs; i++)
        arg[i] = vector ? cpu_vector(e, in[i]) : in[i].v;
    ir_val typed = op->args[op->code == OP_WHERE];
    cpu_hoist(e, got.depth);
    got.v = cpu_op(e, (enum ir_opcode)op->code, (enum dtype)ir_type_of(e->fn, typed).dtype,
                   (enum dtype)ir_type_of(e->fn, op->res).dtype, arg);
    cpu_home(e);
    return got;
}

static cpu_got eval_op(cpu_emit *e, const ir_op *op, const cpu_at *at)
{
    cpu_at in;

    switch (op->code) {
    case OP_ARANGE:
        return eval_arange(e, op, at);
    case OP_SPLAT:
        return (cpu_got){e->scalar[op->args[0]], 0};
    case OP_EXPAND:
    case OP_BROADCAST:
    case OP_TRANS:
        in = through_view(e, op, at);
        return cpu_eval(e, op->args[0], &in);
    case OP_RESHAPE:
        return eval_reshape(e, op, at);
    case OP_LOAD:
        return cpu_load_tensor(e, op, at);
    default:
        return eval_elementwise(e, op, at);
    }
}

cpu_got cpu_eval_item(cpu_emit *e, ir_val v, const cpu_at *at)
{
    cpu_memo key = key_of(e, v, at);
    const cpu_memo *known = memo_find(e, &key);

    if (known)
        return known->got;
    cpu_got got = eval_op(e, ir_def(e->fn, v), at);
    cpu_remember(e, v, at, got);
    return got;
}

cpu_got cpu_eval(cpu_emit *e, ir_val v, const cpu_at *at)
{
    const cpu_value *value = &e->plan->value.at[v];
    cpu_memo key = key_of(e, v, at);
    const cpu_memo *known;
    cpu_got got;

    if (value->place == CPU_SCALAR)
        return (cpu_got){e->scalar[v], 0};
    if ((known = memo_find(e, &key)))
        return known->got;
    if (value->place == CPU_VIRTUAL) {
        got = eval_op(e, ir_def(e->fn, v), at);
    } else {
        ICHECK(value->buf && !value->pairs && !value->narrow,
               "a tile that another step reads has a buffer");
        got = load_buf(e, v, &e->plan->bufs.at[cpu_buf_root(e->plan, value->buf)], at);
    }
    cpu_remember(e, v, at, got);
    return got;
}

/* ---- operands of dots ------------------------------------------------------------------------ */

ir_val cpu_operand(const cpu_emit *e, ir_val v, cpu_at *at)
{
    int dim[TILE_MAX_RANK], rank = ir_type_of(e->fn, v).rank;
    ir_val base = cpu_strip(e->plan, v, dim);
    cpu_at in = {.lane = at->lane < 0 ? -1 : dim[at->lane]};

    for (int d = 0; d < rank; d++)
        in.i[dim[d]] = at->i[d];
    *at = in;
    return base;
}

LLVMValueRef cpu_direct_address(cpu_emit *e, ir_val v, const cpu_at *at, int depth)
{
    const cpu_direct *d = &e->direct[v];
    ir_type t = ir_type_of(e->fn, v);
    LLVMTypeRef elem = cpu_memory_type(e, (enum dtype)t.dtype, 1);
    cpu_term term[TILE_MAX_RANK];

    for (int i = 0; i < t.rank; i++)
        term[i] = (cpu_term){at->i[i], d->stride[i]};
    return cpu_address(e, elem, d->base, term, t.rank, depth);
}

cpu_got cpu_eval_operand(cpu_emit *e, ir_val v, const cpu_at *at)
{
    cpu_at in = *at;
    ir_val base = cpu_operand(e, v, &in);
    enum dtype t = (enum dtype)ir_type_of(e->fn, base).dtype;

    if (in.lane >= 0 || !e->plan->value.at[base].direct)
        return cpu_eval(e, base, &in);
    cpu_got got = {.depth = cpu_at_depth(&in, ir_type_of(e->fn, base).rank)};
    LLVMValueRef p = cpu_direct_address(e, base, &in, got.depth);
    cpu_hoist(e, got.depth);
    got.v = ll_load(e->cx, cpu_memory_type(e, t, 1), p, (unsigned)dtype_bytes(t));
    got.v = cpu_to_register(e, t, got.v);
    cpu_home(e);
    return got;
}
