#include "compiler/base/check.h"
#include "compiler/target/nvptx/nvptx_emit.h"
#include <string.h>

/* ---- what a thread holds --------------------------------------------------------------------- */

enum dtype nv_held(enum dtype t)
{
    return nv_is_half(t) ? DT_F32 : t;
}

void nv_map(const nv_emit *e, ir_type tile, layout_map *map)
{
    const char *why = NULL;
    bool fits = layout_map_of(e->fn, tile, e->fn->warps, map, &why);

    ICHECK(fits, "a layout that fits its tile");
}

int nv_registers(const nv_emit *e, ir_type t)
{
    layout_map map;

    if (t.kind != TYPE_TILE)
        return 1;
    nv_map(e, t, &map);
    return layout_registers(&map);
}

static bool is_packed(ir_type t)
{
    return t.kind == TYPE_TILE && nv_is_half((enum dtype)t.dtype);
}

/* Entries of nv_value.at. */
static int words_of(const nv_emit *e, ir_type t)
{
    int n = nv_registers(e, t);

    return is_packed(t) ? (n + 1) / 2 : n;
}

LLVMTypeRef nv_word_type(const nv_emit *e, ir_type t)
{
    if (is_packed(t))
        return e->cx->i32;
    return ll_type(e->cx, nv_held((enum dtype)t.dtype), 1);
}

nv_value *nv_at(nv_emit *e, ir_val v)
{
    ICHECK(e->value[v].at, "a value is emitted before its uses");
    return &e->value[v];
}

nv_value *nv_new(nv_emit *e, ir_val v)
{
    nv_value *x = &e->value[v];

    x->n = words_of(e, nv_type(e, v));
    x->at = ARENA_ARRAY(e->a, LLVMValueRef, (size_t)x->n);
    return x;
}

/* ---- 16-bit floats --------------------------------------------------------------------------- */

static LLVMTypeRef half_pair(const nv_emit *e)
{
    return LLVMVectorType(LLVMHalfTypeInContext(e->cx->context), 2);
}

/* One half of a pair as f32. bf16 is the upper half of its f32. */
static LLVMValueRef widen(nv_emit *e, enum dtype t, LLVMValueRef pair, bool high)
{
    LLVMBuilderRef b = e->cx->b;

    if (t == DT_BF16) {
        LLVMValueRef bits = high ? LLVMBuildAnd(b, pair, nv_i32(e, 0xffff0000), "")
                                 : LLVMBuildShl(b, pair, nv_i32(e, 16), "");
        return LLVMBuildBitCast(b, bits, e->cx->f32, "");
    }
    LLVMValueRef both = LLVMBuildBitCast(b, pair, half_pair(e), "");
    LLVMValueRef one = LLVMBuildExtractElement(b, both, nv_i32(e, high), "");
    return LLVMBuildFPExt(b, one, e->cx->f32, "");
}

LLVMValueRef nv_pack(nv_emit *e, enum dtype t, LLVMValueRef lo, LLVMValueRef hi)
{
    const char *name = t == DT_BF16 ? "llvm.nvvm.ff2bf16x2.rn" : "llvm.nvvm.ff2f16x2.rn";
    LLVMValueRef pair = ll_call(e->cx, name, NULL, 0, (LLVMValueRef[]){hi, lo}, 2);

    return LLVMBuildBitCast(e->cx->b, pair, e->cx->i32, "");
}

static LLVMValueRef raw_half(nv_emit *e, LLVMValueRef pair, bool high)
{
    if (high)
        pair = LLVMBuildLShr(e->cx->b, pair, nv_i32(e, 16), "");
    return LLVMBuildTrunc(e->cx->b, pair, e->cx->i16, "");
}

/* The pair whose halves lo and hi are, if raw_half made them. */
static LLVMValueRef pair_of(LLVMValueRef lo, LLVMValueRef hi)
{
    if (!LLVMIsATruncInst(lo) || !LLVMIsATruncInst(hi))
        return NULL;
    LLVMValueRef pair = LLVMGetOperand(lo, 0), shifted = LLVMGetOperand(hi, 0);
    if (!LLVMIsAInstruction(shifted) || LLVMGetInstructionOpcode(shifted) != LLVMLShr)
        return NULL;
    return LLVMGetOperand(shifted, 0) == pair ? pair : NULL;
}

LLVMValueRef nv_join(nv_emit *e, LLVMValueRef lo, LLVMValueRef hi)
{
    LLVMValueRef pair = pair_of(lo, hi);

    if (pair)
        return pair;
    lo = LLVMBuildZExt(e->cx->b, lo, e->cx->i32, "");
    hi = LLVMBuildZExt(e->cx->b, hi, e->cx->i32, "");
    hi = LLVMBuildShl(e->cx->b, hi, nv_i32(e, 16), "");
    return LLVMBuildOr(e->cx->b, lo, hi, "");
}

/* ---- elements -------------------------------------------------------------------------------- */

LLVMValueRef nv_get(nv_emit *e, ir_val v, int r)
{
    ir_type t = nv_type(e, v);
    nv_value *x = nv_at(e, v);

    if (is_packed(t))
        return widen(e, (enum dtype)t.dtype, x->at[r / 2], r % 2);
    return x->at[t.kind == TYPE_TILE ? r : 0];
}

void nv_set(nv_emit *e, ir_val v, LLVMValueRef *element)
{
    ir_type t = nv_type(e, v);
    int n = nv_registers(e, t);
    nv_value *x = nv_new(e, v);

    if (t.kind == TYPE_SCALAR && nv_is_half((enum dtype)t.dtype)) {
        LLVMValueRef pair = nv_pack(e, (enum dtype)t.dtype, element[0], ll_float(e->cx->f32, 0.0));
        x->at[0] = widen(e, (enum dtype)t.dtype, pair, false);
        return;
    }
    for (int i = 0; i < x->n; i++) {
        if (!is_packed(t))
            x->at[i] = element[i];
        else
            x->at[i] = nv_pack(e, (enum dtype)t.dtype, element[2 * i],
                               2 * i + 1 < n ? element[2 * i + 1] : ll_float(e->cx->f32, 0.0));
    }
}

LLVMTypeRef nv_raw_type(const nv_emit *e, enum dtype t)
{
    return nv_is_half(t) ? e->cx->i16 : ll_memory_type(e->cx, t, 1);
}

LLVMValueRef nv_raw(nv_emit *e, ir_val v, int r)
{
    ir_type t = nv_type(e, v);
    nv_value *x = nv_at(e, v);

    if (is_packed(t))
        return raw_half(e, x->at[r / 2], r % 2);
    if (nv_is_half((enum dtype)t.dtype))
        return raw_half(e, nv_pack(e, (enum dtype)t.dtype, x->at[0], ll_float(e->cx->f32, 0.0)),
                        false);
    LLVMValueRef one = x->at[t.kind == TYPE_TILE ? r : 0];
    return t.dtype == DT_I1 ? LLVMBuildZExt(e->cx->b, one, e->cx->i8, "") : one;
}

LLVMValueRef nv_from_raw(nv_emit *e, enum dtype t, LLVMValueRef raw)
{
    if (t == DT_I1)
        return LLVMBuildICmp(e->cx->b, LLVMIntNE, raw, LLVMConstNull(e->cx->i8), "");
    if (!nv_is_half(t))
        return raw;
    return widen(e, t, LLVMBuildZExt(e->cx->b, raw, e->cx->i32, ""), false);
}

void nv_words_of_raw(nv_emit *e, ir_type t, LLVMValueRef *raw, LLVMValueRef *word)
{
    int n = nv_registers(e, t), words = words_of(e, t);

    for (int i = 0; i < words; i++) {
        if (is_packed(t))
            word[i] =
                nv_join(e, raw[2 * i], 2 * i + 1 < n ? raw[2 * i + 1] : LLVMConstNull(e->cx->i16));
        else
            word[i] = nv_from_raw(e, (enum dtype)t.dtype, raw[i]);
    }
}

void nv_set_raw(nv_emit *e, ir_val v, LLVMValueRef *raw)
{
    nv_words_of_raw(e, nv_type(e, v), raw, nv_new(e, v)->at);
}

void nv_permute(nv_emit *e, ir_val v, ir_val x, const int *from)
{
    ir_type t = nv_type(e, v);
    int n = nv_registers(e, t);

    if (is_packed(t)) {
        LLVMValueRef *raw = ARENA_ARRAY(e->a, LLVMValueRef, (size_t)n);
        for (int r = 0; r < n; r++)
            raw[r] = nv_raw(e, x, from[r]);
        nv_set_raw(e, v, raw);
        return;
    }
    nv_value *y = nv_new(e, v), *old = nv_at(e, x);
    for (int r = 0; r < n; r++)
        y->at[r] = old->at[from[r]];
}

/* ---- lanes and warps ------------------------------------------------------------------------- */

LLVMValueRef nv_i32(const nv_emit *e, int64_t v)
{
    return ll_int(e->cx->i32, v);
}

LLVMValueRef nv_plus(nv_emit *e, LLVMValueRef x, LLVMValueRef y)
{
    if (!x || !y)
        return x ? x : y;
    return ll_add(e->cx, x, y);
}

LLVMValueRef nv_both(nv_emit *e, LLVMValueRef x, LLVMValueRef y)
{
    if (!x || !y)
        return x ? x : y;
    return LLVMBuildAnd(e->cx->b, x, y, "");
}

/* The digits below count on: how far each carry may go is not looked into. */
uint32_t nv_bits_add(uint32_t a, uint32_t b)
{
    uint32_t both = a & b;

    return both ? a | b | ~((both & -both) - 1) : a | b;
}

uint32_t nv_bits_mul(uint32_t a, int64_t by)
{
    uint64_t low = (uint64_t)(a & -a) * (uint64_t)(by & -by);

    if (a == 0 || by == 0)
        return 0;
    if ((by & (by - 1)) == 0)
        return (uint32_t)((uint64_t)a * (uint64_t)by);
    return (uint32_t) ~(low - 1);
}

static uint32_t digit_bits(const layout_digit *d)
{
    uint32_t top = 1;

    while (top < (uint32_t)d->extent)
        top *= 2;
    return nv_bits_mul(top - 1, d->stride);
}

static int32_t weight_of(const layout_map *map, int digit)
{
    int32_t w = 1;

    for (int i = 0; i < digit; i++)
        w *= map->digit[i].place == map->digit[digit].place ? map->digit[i].extent : 1;
    return w;
}

/* How many lanes or warps there are from the digit's weight on: is it the highest of its place? */
static bool is_last(const nv_emit *e, int place, int32_t weight, int32_t extent)
{
    int all = place == PLACE_LANE ? NV_WARP : e->fn->warps;

    return weight * extent >= all;
}

static LLVMValueRef digit_value(nv_emit *e, int place, int32_t weight, int32_t extent,
                                int32_t scale)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMValueRef x = place == PLACE_LANE ? e->lane : e->warp;

    if (weight > 1)
        x = LLVMBuildUDiv(b, x, nv_i32(e, weight), "");
    if (!is_last(e, place, weight, extent))
        x = LLVMBuildURem(b, x, nv_i32(e, extent), "");
    return ll_mul(e->cx, x, nv_i32(e, scale));
}

LLVMValueRef nv_digit(nv_emit *e, const layout_map *map, int digit, int32_t scale)
{
    const layout_digit *d = &map->digit[digit];

    return digit_value(e, d->place, weight_of(map, digit), d->extent, scale);
}

static LLVMValueRef find_part(nv_emit *e, const nv_lane_part *p)
{
    for (uint32_t i = 0; i < e->lane_parts.n; i++) {
        const nv_lane_part *q = &e->lane_parts.at[i];
        if (q->n == p->n && memcmp(q->digit, p->digit, sizeof *p->digit * (size_t)p->n) == 0)
            return q->value;
    }
    return NULL;
}

LLVMValueRef nv_lane_index(nv_emit *e, const layout_map *map, int dim, uint32_t *bits)
{
    nv_lane_part p = {0};

    *bits = 0;
    for (int i = 0; i < map->n; i++) {
        const layout_digit *d = &map->digit[i];
        if (d->place == PLACE_REGISTER || d->dim != dim)
            continue;
        p.digit[p.n].place = d->place;
        p.digit[p.n].weight = weight_of(map, i);
        p.digit[p.n].extent = d->extent;
        p.digit[p.n++].stride = d->stride;
        *bits = nv_bits_add(*bits, digit_bits(d));
    }
    if (p.n == 0)
        return NULL;
    LLVMValueRef v = find_part(e, &p);
    if (v)
        return v;
    LLVMBasicBlockRef back = nv_entry_begin(e);
    for (int i = 0; i < p.n; i++)
        v = nv_plus(e, v,
                    digit_value(e, p.digit[i].place, p.digit[i].weight, p.digit[i].extent,
                                p.digit[i].stride));
    nv_entry_end(e, back);
    p.value = v;
    vec_push(&e->lane_parts, e->a, p);
    return v;
}

static bool steps_over(const layout_map *map, int dim, int n)
{
    for (int i = 0; i < map->n; i++) {
        const layout_digit *d = &map->digit[i];
        bool first = d->stride == 1 && d->place == PLACE_REGISTER;
        if (d->dim == dim && !first && d->stride % n)
            return false;
    }
    return true;
}

int nv_consecutive(const layout_map *map, int dim, int most)
{
    int all = layout_contiguous(map, dim), n = 1;

    while (2 * n <= most && all % (2 * n) == 0 && steps_over(map, dim, 2 * n))
        n *= 2;
    return n;
}

LLVMValueRef nv_first_copy(nv_emit *e, const layout_map *map)
{
    LLVMValueRef copy = NULL;

    for (int i = 0; i < map->n; i++) {
        const layout_digit *d = &map->digit[i];
        if (d->place == PLACE_REGISTER || d->dim >= 0)
            continue;
        LLVMValueRef v = nv_digit(e, map, i, 1);
        copy = copy ? LLVMBuildOr(e->cx->b, copy, v, "") : v;
    }
    return copy ? LLVMBuildICmp(e->cx->b, LLVMIntEQ, copy, nv_i32(e, 0), "") : NULL;
}

/* ---- conditions ------------------------------------------------------------------------------ */

nv_guard nv_guard_begin(nv_emit *e, LLVMValueRef c)
{
    nv_guard g = {ll_here(e->cx), NULL, NULL};

    if (!c)
        return g;
    g.inside = ll_block(e->cx, "");
    g.after = ll_block(e->cx, "");
    LLVMBuildCondBr(e->cx->b, c, g.inside, g.after);
    ll_at(e->cx, g.inside);
    return g;
}

void nv_guard_end(nv_emit *e, nv_guard *g)
{
    if (!g->inside)
        return;
    g->inside = ll_here(e->cx);
    LLVMBuildBr(e->cx->b, g->after);
    ll_at(e->cx, g->after);
}

LLVMValueRef nv_guard_value(nv_emit *e, const nv_guard *g, LLVMValueRef v, LLVMValueRef otherwise)
{
    if (!g->inside)
        return v;
    LLVMValueRef phi = LLVMBuildPhi(e->cx->b, LLVMTypeOf(v), "");
    ll_phi_add(phi, v, g->inside);
    ll_phi_add(phi, otherwise, g->before);
    return phi;
}
