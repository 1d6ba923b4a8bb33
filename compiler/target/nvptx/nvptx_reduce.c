/* Reductions and scans along an axis that no warp splits: first in a thread's registers, then
 * between lanes by shuffles. */
#include "compiler/base/check.h"
#include "compiler/target/llvm/llvm_ops.h"
#include "compiler/target/nvptx/nvptx_emit.h"
#include <string.h>

/* ---- shuffles -------------------------------------------------------------------------------- */

static LLVMValueRef shuffle_word(nv_emit *e, enum nv_shuffle kind, LLVMValueRef x,
                                 LLVMValueRef lane)
{
    const char *name =
        kind == NV_BUTTERFLY ? "llvm.nvvm.shfl.sync.bfly.i32" : "llvm.nvvm.shfl.sync.idx.i32";
    LLVMValueRef args[] = {nv_i32(e, -1), x, lane, nv_i32(e, NV_WARP - 1)};

    return ll_call(e->cx, name, NULL, 0, args, 4);
}

static LLVMValueRef shuffle_wide(nv_emit *e, enum nv_shuffle kind, LLVMValueRef x,
                                 LLVMValueRef lane)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMTypeRef pair = LLVMVectorType(e->cx->i32, 2);
    LLVMValueRef from = LLVMBuildBitCast(b, x, pair, ""), to = LLVMGetPoison(pair);

    for (int i = 0; i < 2; i++) {
        LLVMValueRef word = LLVMBuildExtractElement(b, from, nv_i32(e, i), "");
        to = LLVMBuildInsertElement(b, to, shuffle_word(e, kind, word, lane), nv_i32(e, i), "");
    }
    return LLVMBuildBitCast(b, to, LLVMTypeOf(x), "");
}

LLVMValueRef nv_shuffle(nv_emit *e, enum nv_shuffle kind, LLVMValueRef x, LLVMValueRef lane)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMTypeRef type = LLVMTypeOf(x);

    if (type == e->cx->i64 || type == e->cx->f64)
        return shuffle_wide(e, kind, x, lane);
    if (type == e->cx->f32) {
        x = shuffle_word(e, kind, LLVMBuildBitCast(b, x, e->cx->i32, ""), lane);
        return LLVMBuildBitCast(b, x, type, "");
    }
    if (type == e->cx->i32)
        return shuffle_word(e, kind, x, lane);
    x = shuffle_word(e, kind, LLVMBuildZExt(b, x, e->cx->i32, ""), lane);
    return LLVMBuildTrunc(b, x, type, "");
}

/* ---- reductions ------------------------------------------------------------------------------ */

typedef struct combine {
    enum ir_opcode code;    /* ADD, MUL, MAX, MIN */
    enum dtype t;           /* held */
    const ir_block *region; /* instead of code, or NULL */
} combine;

static LLVMValueRef apply(nv_emit *e, const combine *c, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef args[] = {x, y};

    if (!x || !y)
        return x ? x : y;
    if (c->region)
        return nv_call_region(e, c->region, x, y);
    return dtype_is_float(c->t) ? ll_float_op(e->cx, c->code, args)
                                : ll_int_op(e->cx, c->code, c->t, args);
}

static combine combine_of(const nv_emit *e, const ir_op *op)
{
    combine c = {OP_ADD, nv_held((enum dtype)nv_type(e, op->res).dtype),
                 op->nregions ? op->regions[0] : NULL};

    if (op->code == OP_REDUCE_MAX)
        c.code = OP_MAX;
    else if (op->code == OP_REDUCE_MIN)
        c.code = OP_MIN;
    else if (op->code == OP_SCAN_PROD)
        c.code = OP_MUL;
    return c;
}

static LLVMValueRef operand(nv_emit *e, const ir_op *op, const combine *c, int r)
{
    enum dtype from = nv_held((enum dtype)nv_type(e, op->args[0]).dtype);

    return ll_cast(e->cx, from, c->t, nv_get(e, op->args[0], r));
}

static int32_t digit_weight(const layout_map *map, int digit)
{
    int32_t w = 1;

    for (int i = 0; i < digit; i++)
        w *= map->digit[i].place == map->digit[digit].place ? map->digit[i].extent : 1;
    return w;
}

static LLVMValueRef across_lanes(nv_emit *e, const combine *c, const layout_map *map, int axis,
                                 LLVMValueRef x)
{
    for (int i = 0; i < map->n; i++) {
        const layout_digit *d = &map->digit[i];
        if (d->dim != axis || d->place == PLACE_REGISTER)
            continue;
        ICHECK(d->place == PLACE_LANE && (d->extent & (d->extent - 1)) == 0,
               "an axis that is reduced lies in one warp");
        int32_t w = digit_weight(map, i);
        for (int32_t step = 1; step < d->extent; step *= 2)
            x = apply(e, c, x, nv_shuffle(e, NV_BUTTERFLY, x, nv_i32(e, step * w)));
    }
    return x;
}

static bool same_row(const int32_t *index, const int32_t *row, int rank, int axis)
{
    for (int d = 0; d < rank - 1; d++) {
        if (index[d < axis ? d : d + 1] != row[d])
            return false;
    }
    return true;
}

/* What this thread holds of a row, which is an index without the axis. Two chains, which halves the
 * wait for each other. */
static LLVMValueRef reduce_held(nv_emit *e, const ir_op *op, const combine *c,
                                const layout_map *map, const int32_t *row)
{
    LLVMValueRef part[2] = {NULL, NULL};
    int axis = (int)op->attr[0].i, n = layout_registers(map), turn = 0;

    for (int r = 0; r < n; r++) {
        int32_t index[TILE_MAX_RANK];
        layout_element(map, r, 0, 0, index);
        if (!same_row(index, row, map->rank, axis))
            continue;
        part[turn] = apply(e, c, part[turn], operand(e, op, c, r));
        turn = !turn;
    }
    return apply(e, c, part[0], part[1]);
}

void nv_reduce(nv_emit *e, const ir_op *op)
{
    ir_type t = nv_type(e, op->res);
    combine c = combine_of(e, op);
    int n = nv_registers(e, t);
    LLVMValueRef *out = ARENA_ARRAY(e->a, LLVMValueRef, (size_t)n);
    layout_map from, to = {0};

    nv_map(e, nv_type(e, op->args[0]), &from);
    if (t.kind == TYPE_TILE)
        nv_map(e, t, &to);
    for (int r = 0; r < n; r++) {
        int32_t row[TILE_MAX_RANK] = {0};
        if (t.kind == TYPE_TILE)
            layout_element(&to, r, 0, 0, row);
        out[r] = reduce_held(e, op, &c, &from, row);
        out[r] = across_lanes(e, &c, &from, (int)op->attr[0].i, out[r]);
    }
    nv_set(e, op->res, out);
}

void nv_partial_sum(nv_emit *e, const ir_op *op)
{
    combine c = combine_of(e, op);
    int axis = (int)op->attr[0].i, n = nv_registers(e, nv_type(e, op->res));
    LLVMValueRef *out = ARENA_ARRAY(e->a, LLVMValueRef, (size_t)n);
    layout_map from, to;

    nv_map(e, nv_type(e, op->args[0]), &from);
    nv_map(e, nv_type(e, op->res), &to);
    for (int r = 0; r < n; r++) {
        int32_t index[TILE_MAX_RANK], row[TILE_MAX_RANK] = {0};
        layout_element(&to, r, 0, 0, index);
        for (int d = 0; d < to.rank - 1; d++)
            row[d] = index[d < axis ? d : d + 1];
        out[r] = reduce_held(e, op, &c, &from, row);
    }
    nv_set(e, op->res, out);
}

/* ---- scans ----------------------------------------------------------------------------------- */

/* Digits of the axis are taken in by growing stride. Of the blocks of elements that those taken in
 * count through, each thread knows: sum[r], of the elements up to its own, and all[r], of the whole
 * block. */
typedef struct scanning {
    combine c;
    const layout_map *map;
    int n;
    LLVMValueRef *sum, *all, *next;
} scanning;

static void scan_registers(nv_emit *e, scanning *s, int digit)
{
    int32_t w = digit_weight(s->map, digit), extent = s->map->digit[digit].extent;

    for (int r = 0; r < s->n; r++) {
        int v = r / w % extent, first = r - v * w;
        LLVMValueRef before = NULL, whole = NULL;
        for (int i = 0; i < extent; i++) {
            if (i == v)
                before = whole;
            whole = apply(e, &s->c, whole, s->all[first + i * w]);
        }
        s->next[r] = whole;
        s->sum[r] = apply(e, &s->c, before, s->sum[r]);
    }
    memcpy(s->all, s->next, sizeof *s->all * (size_t)s->n);
}

/* Of the block of the lane whose digit is lower by `by`; where there is none, x. */
static LLVMValueRef with_lower(nv_emit *e, scanning *s, LLVMValueRef x, LLVMValueRef from,
                               LLVMValueRef value, int32_t by, int32_t w)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMValueRef lane = LLVMBuildSub(b, e->lane, nv_i32(e, by * w), "");
    LLVMValueRef other = nv_shuffle(e, NV_INDEX, from, lane);
    LLVMValueRef is = LLVMBuildICmp(b, LLVMIntUGE, value, nv_i32(e, by), "");

    return ll_select(e->cx, is, apply(e, &s->c, other, x), x);
}

static void scan_lanes(nv_emit *e, scanning *s, int digit)
{
    LLVMBuilderRef b = e->cx->b;
    int32_t w = digit_weight(s->map, digit), extent = s->map->digit[digit].extent;
    LLVMValueRef value = nv_digit(e, s->map, digit, 1);
    LLVMValueRef low = LLVMBuildSub(b, e->lane, LLVMBuildMul(b, value, nv_i32(e, w), ""), "");
    LLVMValueRef last = LLVMBuildAdd(b, low, nv_i32(e, (extent - 1) * w), "");

    for (int r = 0; r < s->n; r++) {
        LLVMValueRef upto = s->all[r];
        for (int32_t by = 1; by < extent; by *= 2)
            upto = with_lower(e, s, upto, upto, value, by, w);
        s->sum[r] = with_lower(e, s, s->sum[r], upto, value, 1, w);
        s->next[r] = nv_shuffle(e, NV_INDEX, upto, last);
    }
    memcpy(s->all, s->next, sizeof *s->all * (size_t)s->n);
}

static int next_digit(const layout_map *map, int axis, int32_t above)
{
    int best = -1;

    for (int i = 0; i < map->n; i++) {
        const layout_digit *d = &map->digit[i];
        if (d->dim == axis && d->stride > above &&
            (best < 0 || d->stride < map->digit[best].stride))
            best = i;
    }
    return best;
}

void nv_scan(nv_emit *e, const ir_op *op)
{
    layout_map map;
    int axis = (int)op->attr[0].i, digit;

    nv_map(e, nv_type(e, op->args[0]), &map);
    size_t n = (size_t)layout_registers(&map);
    scanning s = {combine_of(e, op),
                  &map,
                  (int)n,
                  ARENA_ARRAY(e->a, LLVMValueRef, n),
                  ARENA_ARRAY(e->a, LLVMValueRef, n),
                  ARENA_ARRAY(e->a, LLVMValueRef, n)};
    for (int r = 0; r < s.n; r++)
        s.sum[r] = s.all[r] = operand(e, op, &s.c, r);
    for (int32_t above = 0; (digit = next_digit(&map, axis, above)) >= 0;
         above = map.digit[digit].stride) {
        ICHECK(map.digit[digit].place != PLACE_WARP, "an axis that is scanned lies in one warp");
        if (map.digit[digit].place == PLACE_REGISTER)
            scan_registers(e, &s, digit);
        else
            scan_lanes(e, &s, digit);
    }
    nv_set(e, op->res, s.sum);
}

/* ---- votes ----------------------------------------------------------------------------------- */

void nv_vote(nv_emit *e, const ir_op *op)
{
    int n = nv_registers(e, nv_type(e, op->args[0]));
    LLVMValueRef any = nv_get(e, op->args[0], 0);

    for (int r = 1; r < n; r++)
        any = LLVMBuildOr(e->cx->b, any, nv_get(e, op->args[0], r), "");
    LLVMValueRef args[] = {nv_i32(e, -1), any};
    nv_new(e, op->res)->at[0] = ll_call(e->cx, "llvm.nvvm.vote.any.sync", NULL, 0, args, 2);
}
