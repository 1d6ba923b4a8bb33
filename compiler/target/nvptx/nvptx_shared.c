/* Shared memory. An address is what lane and warp give, computed once in the entry block, plus the
 * slot's place, plus a constant that becomes the access's immediate offset.
 *
 * With a swizzle (layout.h) that split holds when lane part and constant set different bits of the
 * row (modulo 8) and of the place within a row: then
 *   chunk ^ f(row) = (lane chunk ^ f(lane row)) ^ (constant chunk ^ f(constant row)),
 * and the second half, `flip`, is one of at most 8: as many lane addresses. Where it does not hold
 * the address is computed at the access. */
#include "compiler/base/check.h"
#include "compiler/target/nvptx/nvptx_emit.h"
#include <string.h>

enum { CHUNK = 16, GROUP = 128, MAX_ALIGN = 1024, SPACE_SHARED = 3 };

/* ---- slots ----------------------------------------------------------------------------------- */

static const ir_op *alloc_of(const nv_emit *e, ir_val v)
{
    const ir_op *op = ir_def(e->fn, v);

    while (op && op->code != OP_ALLOC)
        op = ir_def(e->fn, op->args[0]);
    ICHECK(op && op->attr[0].i >= 0, "a buffer with a planned place");
    return op;
}

static bool const_value(const nv_emit *e, ir_val v, int64_t *out)
{
    const ir_op *def = ir_def(e->fn, v);

    if (!def || def->code != OP_CONST_INT)
        return false;
    *out = def->attr[0].i;
    return true;
}

/* Of two slots the place is chosen: as a product ptxas makes it part of each lane's address, which
 * takes an instruction and a register for each; a choice is one number for all lanes. */
void nv_buffer_slot(nv_emit *e, const ir_op *op)
{
    ir_type t = nv_type(e, op->args[0]);
    int64_t known, bytes = layout_slot_bytes(e->fn, t);
    nv_value *v = &e->value[op->res];

    v->at = ARENA_ARRAY(e->a, LLVMValueRef, 1);
    if (const_value(e, op->args[1], &known))
        return;
    LLVMValueRef i = nv_get(e, op->args[1], 0), zero = nv_i32(e, 0);
    v->at[v->n++] = t.shape[0] == 2
                        ? ll_select(e->cx, LLVMBuildICmp(e->cx->b, LLVMIntNE, i, zero, ""),
                                    nv_i32(e, bytes), zero)
                        : ll_mul(e->cx, i, nv_i32(e, bytes));
}

static int32_t align_of(int64_t x, int32_t most)
{
    while (most > 1 && x % most)
        most /= 2;
    return most;
}

static void place_slot(nv_emit *e, nv_slot *s, const ir_op *op)
{
    int64_t bytes = layout_slot_bytes(e->fn, nv_type(e, op->args[0])), index;

    if (const_value(e, op->args[1], &index)) {
        s->offset += index * bytes;
    } else {
        s->moved = nv_at(e, op->res)->at[0];
        s->align = align_of(bytes, s->align);
    }
}

/* perm: dimension i of what was asked for is dimension perm[i] of op's result. */
static void compose(nv_slot *s, const ir_op *op)
{
    const int64_t *inner = op->attr[0].ints.at;

    for (int i = 0; i < s->rank; i++)
        s->perm[i] = (uint8_t)inner[s->perm[i]];
}

nv_slot nv_slot_of(nv_emit *e, ir_val v)
{
    nv_slot s = {.rank = nv_type(e, v).rank - 1, .align = MAX_ALIGN};
    const ir_op *op = ir_def(e->fn, v);
    bool viewed = false;

    for (int i = 0; i < s.rank; i++)
        s.perm[i] = (uint8_t)i;
    for (; op->code != OP_ALLOC; op = ir_def(e->fn, op->args[0])) {
        if (op->code == OP_BUFFER_TRANS && !viewed) {
            compose(&s, op);
        } else if (op->code == OP_BUFFER_VIEW && !viewed) {
            s.type = nv_type(e, op->res);
            viewed = true;
        } else if (op->code == OP_BUFFER_SLOT) {
            place_slot(e, &s, op);
        }
    }
    if (!viewed)
        s.type = nv_type(e, op->res);
    s.offset += alloc_of(e, v)->attr[0].i;
    s.align = align_of(s.offset, s.align);
    return s;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* The stored element: row (all dimensions but the last) and byte of the row. */
typedef struct place {
    nv_spot key; /* lane parts and what they count */
    uint32_t row_bits, column_bits;
    int64_t row0, column0; /* constants */
} place;
typedef struct geometry {
    int64_t rows, width; /* of a slot; bytes of a row */
    int32_t row, bytes;  /* bytes of a panel's row (0: plain); of an element */
} geometry;

static geometry geometry_of(const nv_emit *e, const nv_slot *s)
{
    geometry g = {.rows = 1,
                  .row = e->fn->layouts.at[s->type.layout]->row,
                  .bytes = dtype_bytes((enum dtype)s->type.dtype)};

    for (int d = 1; d < s->type.rank - 1; d++)
        g.rows *= s->type.shape[d];
    g.width = (int64_t)s->type.shape[s->type.rank - 1] * g.bytes;
    return g;
}

static place place_of(nv_emit *e, const nv_slot *s, const geometry *g, const layout_map *map,
                      const int32_t *constant, const nv_motion *motion)
{
    place p = {.key = {.rows = g->rows, .width = g->width, .panel = g->row}};

    for (int i = 0; i < s->rank; i++) {
        uint32_t bits;
        int d = s->perm[i];
        int64_t pitch = 1;
        p.key.lane[d] = nv_lane_index(e, map, i, &bits);
        if (motion && motion->dim == i) {
            p.key.lane[d] = nv_plus(e, p.key.lane[d], motion->by);
            bits = nv_bits_add(bits, motion->bits);
        }
        for (int k = d + 1; k < s->rank - 1; k++)
            pitch *= s->type.shape[k + 1];
        if (d == s->rank - 1) {
            p.key.scale[d] = g->bytes;
            p.key.column = d;
            p.column_bits = nv_bits_mul(bits, g->bytes);
            p.column0 = (int64_t)constant[i] * g->bytes;
        } else {
            p.key.scale[d] = pitch;
            p.row_bits = nv_bits_add(p.row_bits, nv_bits_mul(bits, pitch));
            p.row0 += constant[i] * pitch;
        }
    }
    return p;
}

static LLVMValueRef scaled(nv_emit *e, LLVMValueRef x, int64_t by)
{
    return x ? ll_mul(e->cx, x, nv_i32(e, by)) : NULL;
}

static LLVMValueRef column_of(nv_emit *e, const place *p)
{
    return scaled(e, p->key.lane[p->key.column], p->key.scale[p->key.column]);
}

static LLVMValueRef row_of(nv_emit *e, const place *p)
{
    LLVMValueRef row = NULL;

    for (int d = 0; d < p->key.column; d++)
        row = nv_plus(e, row, scaled(e, p->key.lane[d], p->key.scale[d]));
    return row;
}

static LLVMValueRef divided(nv_emit *e, LLVMValueRef x, int64_t by)
{
    return LLVMBuildUDiv(e->cx->b, x, nv_i32(e, by), "");
}

static LLVMValueRef remainder_of(nv_emit *e, LLVMValueRef x, int64_t by)
{
    return LLVMBuildURem(e->cx->b, x, nv_i32(e, by), "");
}

/* layout.h's formula, with chunk ^ f(row) ^ flip. */
static LLVMValueRef swizzled(nv_emit *e, const geometry *g, LLVMValueRef row, LLVMValueRef column,
                             int64_t flip)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMValueRef zero = nv_i32(e, 0), chunk, v, f;

    row = row ? row : zero;
    column = column ? column : zero;
    v = LLVMBuildMul(b, divided(e, column, g->row), nv_i32(e, g->rows * g->row), "");
    v = LLVMBuildAdd(b, v, LLVMBuildMul(b, row, nv_i32(e, g->row), ""), "");
    chunk = divided(e, remainder_of(e, column, g->row), CHUNK);
    f = remainder_of(e, divided(e, row, GROUP / g->row), g->row / CHUNK);
    chunk = LLVMBuildXor(b, LLVMBuildXor(b, chunk, f, ""), nv_i32(e, flip), "");
    v = LLVMBuildAdd(b, v, LLVMBuildMul(b, chunk, nv_i32(e, CHUNK), ""), "");
    return LLVMBuildAdd(b, v, remainder_of(e, column, CHUNK), "");
}

static LLVMValueRef plain(nv_emit *e, const geometry *g, LLVMValueRef row, LLVMValueRef column)
{
    LLVMValueRef v = nv_plus(e, scaled(e, row, g->width), column);

    return v ? v : nv_i32(e, 0);
}

static bool same_spot(const nv_spot *a, const nv_spot *b)
{
    return memcmp(a->lane, b->lane, sizeof a->lane) == 0 &&
           memcmp(a->scale, b->scale, sizeof a->scale) == 0 && a->column == b->column &&
           a->rows == b->rows && a->width == b->width && a->panel == b->panel && a->flip == b->flip;
}

static LLVMValueRef address_of(nv_emit *e, const geometry *g, const place *p, int64_t flip)
{
    LLVMValueRef row = row_of(e, p), column = column_of(e, p);

    return ll_add(e->cx, g->row ? swizzled(e, g, row, column, flip) : plain(e, g, row, column),
                  e->shared);
}

/* The lane's address for this flip, from the start of the address space. */
static LLVMValueRef lane_address(nv_emit *e, const geometry *g, const place *p, int64_t flip)
{
    nv_spot s = p->key;

    s.flip = flip;
    for (uint32_t i = 0; i < e->spots.n; i++) {
        if (same_spot(&e->spots.at[i], &s))
            return e->spots.at[i].value;
    }
    LLVMBasicBlockRef back = nv_entry_begin(e);
    s.value = address_of(e, g, p, flip);
    nv_entry_end(e, back);
    vec_push(&e->spots, e->a, s);
    return s.value;
}

static bool splits(const geometry *g, const place *p)
{
    uint32_t in_row = (uint32_t)g->row - 1, rows = GROUP / CHUNK - 1;

    return !g->row || ((p->column_bits & (uint32_t)p->column0 & in_row) == 0 &&
                       (p->row_bits & (uint32_t)p->row0 & rows) == 0);
}

/* The constant's share: bytes that add up, and the flip. */
static int64_t constant_part(const geometry *g, const place *p, int64_t *flip)
{
    *flip = 0;
    if (!g->row)
        return p->row0 * g->width + p->column0;
    *flip = p->column0 % g->row / CHUNK ^ p->row0 / (GROUP / g->row) % (g->row / CHUNK);
    return p->column0 / g->row * g->rows * g->row + p->row0 * g->row + p->column0 % CHUNK;
}

/* slot + lane, once a block. */
static LLVMValueRef moved(nv_emit *e, LLVMValueRef slot, LLVMValueRef lane)
{
    nv_sum s = {slot, lane, NULL, ll_here(e->cx)};

    if (!slot)
        return lane;
    for (uint32_t i = e->sums.n; i-- > 0;) {
        const nv_sum *q = &e->sums.at[i];
        if (q->slot == slot && q->lane == lane && q->block == s.block)
            return q->value;
    }
    s.value = ll_add(e->cx, lane, slot);
    vec_push(&e->sums, e->a, s);
    return s.value;
}

static LLVMValueRef pointer_to(nv_emit *e, LLVMValueRef address, int64_t offset)
{
    LLVMTypeRef type = LLVMPointerTypeInContext(e->cx->context, SPACE_SHARED);
    LLVMValueRef p = LLVMBuildIntToPtr(e->cx->b, address, type, "");

    return ll_gep(e->cx, e->cx->i8, p, nv_i32(e, offset));
}

static LLVMValueRef address_here(nv_emit *e, const geometry *g, const place *p)
{
    LLVMValueRef row = nv_plus(e, row_of(e, p), nv_i32(e, p->row0));
    LLVMValueRef column = nv_plus(e, column_of(e, p), nv_i32(e, p->column0));

    return ll_add(e->cx, swizzled(e, g, row, column, 0), e->shared);
}

LLVMValueRef nv_shared_moving(nv_emit *e, const nv_slot *slot, const layout_map *map,
                              const int32_t *constant, const nv_motion *motion)
{
    geometry g = geometry_of(e, slot);
    place p = place_of(e, slot, &g, map, constant, motion);
    int64_t flip, offset = constant_part(&g, &p, &flip);
    LLVMValueRef lane;

    if (splits(&g, &p)) {
        lane = motion ? address_of(e, &g, &p, flip) : lane_address(e, &g, &p, flip);
    } else {
        lane = address_here(e, &g, &p);
        offset = 0;
    }
    return pointer_to(e, moved(e, slot->moved, lane), offset + slot->offset);
}

LLVMValueRef nv_shared_pointer(nv_emit *e, const nv_slot *slot, const layout_map *map,
                               const int32_t *constant)
{
    return nv_shared_moving(e, slot, map, constant, NULL);
}

/* ---- vectors --------------------------------------------------------------------------------- */

/* Elements that one access may take at a time: consecutive registers, at most 16 bytes, aligned. */
static int vector_of(nv_emit *e, const nv_slot *slot, const layout_map *map)
{
    geometry g = geometry_of(e, slot);
    int dim = -1, n;

    for (int i = 0; i < slot->rank; i++)
        dim = slot->perm[i] == slot->rank - 1 ? i : dim;
    n = nv_consecutive(map, dim, CHUNK / g.bytes);
    while (n > 1 && (slot->align % (n * g.bytes) || (!g.row && g.width % (n * g.bytes))))
        n /= 2;
    return n;
}

static LLVMTypeRef vector_type(const nv_emit *e, enum dtype t, int count)
{
    if (nv_is_half(t) && count > 1)
        return ll_lanes(e->cx->i32, count / 2);
    return ll_lanes(nv_raw_type(e, t), count);
}

static LLVMValueRef lane_of(nv_emit *e, LLVMValueRef v, int i)
{
    if (LLVMGetTypeKind(LLVMTypeOf(v)) != LLVMVectorTypeKind)
        return v;
    return LLVMBuildExtractElement(e->cx->b, v, nv_i32(e, i), "");
}

static void mark_invariant(nv_emit *e, LLVMValueRef load)
{
    LLVMValueRef none =
        LLVMMetadataAsValue(e->cx->context, LLVMMDNodeInContext2(e->cx->context, NULL, 0));

    LLVMSetMetadata(load, LLVMGetMDKindIDInContext(e->cx->context, "invariant.load", 14), none);
}

int nv_vector_words(enum dtype t, int count)
{
    return nv_is_half(t) && count > 1 ? count / 2 : count;
}

void nv_vector_load(nv_emit *e, enum dtype t, int count, LLVMValueRef p, bool invariant,
                    LLVMValueRef *word)
{
    LLVMValueRef v =
        ll_load(e->cx, vector_type(e, t, count), p, (unsigned)(count * dtype_bytes(t)));

    if (invariant)
        mark_invariant(e, v);
    for (int i = 0; i < nv_vector_words(t, count); i++)
        word[i] = lane_of(e, v, i);
}

void nv_split_words(nv_emit *e, enum dtype t, int count, LLVMValueRef *word, LLVMValueRef *raw)
{
    LLVMBuilderRef b = e->cx->b;

    for (int i = 0; i < count; i++) {
        if (!nv_is_half(t) || count == 1) {
            raw[i] = word[i];
            continue;
        }
        LLVMValueRef pair = word[i / 2];
        if (i % 2)
            pair = LLVMBuildLShr(b, pair, nv_i32(e, 16), "");
        raw[i] = LLVMBuildTrunc(b, pair, e->cx->i16, "");
    }
}

void nv_vector_store(nv_emit *e, enum dtype t, int count, LLVMValueRef p, LLVMValueRef *raw)
{
    bool pairs = nv_is_half(t) && count > 1;
    LLVMTypeRef type = vector_type(e, t, count);
    LLVMValueRef v = LLVMGetPoison(type);

    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
        v = pairs ? nv_join(e, raw[0], raw[1]) : raw[0];
    for (int i = 0; LLVMGetTypeKind(type) == LLVMVectorTypeKind && i < ll_lanes_of(type); i++) {
        LLVMValueRef one = pairs ? nv_join(e, raw[2 * i], raw[2 * i + 1]) : raw[i];
        v = LLVMBuildInsertElement(e->cx->b, v, one, nv_i32(e, i), "");
    }
    (void)ll_store(e->cx, v, p, (unsigned)(count * dtype_bytes(t)));
}

/* ---- buffer.load, buffer.store --------------------------------------------------------------- */

void nv_buffer_load(nv_emit *e, const ir_op *op)
{
    nv_slot slot = nv_slot_of(e, op->args[0]);
    ir_type t = nv_type(e, op->res);
    layout_map map;

    nv_map(e, t, &map);
    int n = layout_registers(&map), step = vector_of(e, &slot, &map);
    LLVMValueRef *raw = ARENA_ARRAY(e->a, LLVMValueRef, (size_t)n);
    for (int r = 0; r < n; r += step) {
        int32_t index[TILE_MAX_RANK];
        layout_element(&map, r, 0, 0, index);
        LLVMValueRef word[CHUNK];
        nv_vector_load(e, (enum dtype)t.dtype, step, nv_shared_pointer(e, &slot, &map, index),
                       false, word);
        nv_split_words(e, (enum dtype)t.dtype, step, word, &raw[r]);
    }
    nv_set_raw(e, op->res, raw);
}

void nv_buffer_store(nv_emit *e, const ir_op *op)
{
    nv_slot slot = nv_slot_of(e, op->args[0]);
    ir_type t = nv_type(e, op->args[1]);
    layout_map map;

    nv_map(e, t, &map);
    int n = layout_registers(&map), step = vector_of(e, &slot, &map);
    LLVMValueRef *raw = ARENA_ARRAY(e->a, LLVMValueRef, (size_t)n);
    nv_guard g = nv_guard_begin(e, nv_first_copy(e, &map));
    for (int r = 0; r < n; r++)
        raw[r] = nv_raw(e, op->args[1], r);
    for (int r = 0; r < n; r += step) {
        int32_t index[TILE_MAX_RANK];
        layout_element(&map, r, 0, 0, index);
        nv_vector_store(e, (enum dtype)t.dtype, step, nv_shared_pointer(e, &slot, &map, index),
                        &raw[r]);
    }
    nv_guard_end(e, &g);
}
