/* Reductions of a nest: running values, one a vector of the group (for maximum and minimum of
 * floats with a mask of the lanes that met a NaN), and what becomes of them. */
#include "compiler/base/check.h"
#include "compiler/target/cpu/cpu_nests.h"
#include <math.h>
#include <string.h>

enum dtype cpu_reduced_type(const cpu_nesting *s, const ir_op *op)
{
    ir_type t = ir_type_of(s->e->fn, op->res);

    return cpu_held((enum dtype)t.dtype);
}

LLVMValueRef cpu_widen(cpu_emit *e, enum dtype from, enum dtype to, LLVMValueRef v)
{
    return from == to ? v : cpu_op(e, OP_CAST, from, to, &v);
}

/* A sum of 16-bit floats is rounded once, at its end. */
static LLVMValueRef rounded_sum(const cpu_nesting *s, const ir_op *op, LLVMValueRef v)
{
    if (op->code != OP_REDUCE_SUM)
        return v;
    return cpu_round(s->e, (enum dtype)ir_type_of(s->e->fn, op->res).dtype, v);
}

static bool tracks_nan(const cpu_nesting *s, const ir_op *op)
{
    return op->code != OP_REDUCE_SUM && dtype_is_float(cpu_reduced_type(s, op));
}

static LLVMTypeRef mask_type(const cpu_nesting *s, enum dtype t)
{
    const cpu_emit *e = s->e;
    LLVMTypeRef bit = t == DT_F64 ? e->cx->i64 : e->cx->i32;

    return ll_lanes(e->isa->avx512 ? e->cx->i1 : bit, e->isa->lanes);
}

void cpu_reduce_begin(cpu_nesting *s, int nr)
{
    cpu_emit *e = s->e;

    s->nr = nr;
    s->ncarried = 0;
    if (s->n->alone) {
        cpu_fold_begin(s, nr);
        return;
    }
    for (uint32_t i = 0; i < s->n->items.n; i++) {
        const ir_op *op = s->n->items.at[i].op;
        if (s->n->items.at[i].kind != ITEM_REDUCE)
            continue;
        enum dtype t = cpu_reduced_type(s, op);
        bool nan = tracks_nan(s, op);
        ICHECK(s->ncarried + 2 * nr <= CPU_MAX_CARRIED, "reductions of a nest are few");
        for (int j = 0; j < nr; j++)
            s->carried[s->ncarried++] = cpu_neutral(e, (enum ir_opcode)op->code, t, e->isa->lanes);
        for (int j = 0; j < nr && nan; j++)
            s->carried[s->ncarried++] = LLVMConstNull(mask_type(s, t));
    }
}

static LLVMValueRef as_mask(const cpu_nesting *s, enum dtype t, LLVMValueRef bits)
{
    return s->e->isa->avx512 ? bits : LLVMBuildSExt(s->e->cx->b, bits, mask_type(s, t), "");
}

/* x: mr rows of one vector, which are combined with each other first: each round adds but one step
 * to the chain of running values. One comparison looks for NaN in two rows: the fast maximum keeps
 * a NaN only of its second operand. */
static void reduce_rows(cpu_nesting *s, const ir_op *op, LLVMValueRef *acc, LLVMValueRef *nan,
                        const LLVMValueRef *x, int mr)
{
    cpu_emit *e = s->e;
    enum dtype t = cpu_reduced_type(s, op);
    LLVMValueRef y[CPU_MAX_LANES];

    memcpy(y, x, sizeof *x * (size_t)mr);
    for (int n = mr; n > 1; n = (n + 1) / 2) {
        for (int r = 0; r < n / 2; r++)
            y[r] = cpu_combine(e, (enum ir_opcode)op->code, t, y[2 * r], y[2 * r + 1]);
        if (n % 2)
            y[n / 2] = y[n - 1];
    }
    *acc = cpu_combine(e, (enum ir_opcode)op->code, t, *acc, y[0]);
    for (int r = 0; r < mr && nan; r += 2) {
        LLVMValueRef other = r + 1 < mr ? x[r + 1] : x[r];
        LLVMValueRef bits = LLVMBuildFCmp(e->cx->b, LLVMRealUNO, x[r], other, "");
        *nan = LLVMBuildOr(e->cx->b, *nan, as_mask(s, t, bits), "");
    }
}

/* The first of op's running values. */
static LLVMValueRef *running(cpu_nesting *s, const ir_op *op)
{
    LLVMValueRef *at = s->carried;

    for (uint32_t i = 0; i < s->n->items.n; i++) {
        const cpu_item *item = &s->n->items.at[i];
        if (item->kind != ITEM_REDUCE)
            continue;
        if (item->op == op)
            return at;
        at += s->nr * (tracks_nan(s, item->op) ? 2 : 1);
    }
    ICHECK(0, "a reduction of the nest");
    return NULL;
}

static LLVMValueRef with_nan(const cpu_nesting *s, LLVMValueRef v, LLVMValueRef mask)
{
    const ll_cx *cx = s->e->cx;

    if (LLVMGetTypeKind(ll_scalar_of(LLVMTypeOf(mask))) == LLVMIntegerTypeKind &&
        LLVMGetIntTypeWidth(ll_scalar_of(LLVMTypeOf(mask))) > 1)
        mask = LLVMBuildICmp(cx->b, LLVMIntNE, mask, LLVMConstNull(LLVMTypeOf(mask)), "");
    return ll_select(cx, mask, ll_float(LLVMTypeOf(v), (double)NAN), v);
}

static void store_vertical(cpu_nesting *s, const cpu_item *item)
{
    LLVMValueRef *acc = running(s, item->op);
    uint32_t buf = s->e->plan->value.at[item->v].buf;

    for (int j = 0; j < s->nr && buf; j++) {
        cpu_at at = cpu_without(s, cpu_vector_at(s, j), (int)item->op->attr[0].i);
        LLVMValueRef v = acc[j];
        if (tracks_nan(s, item->op))
            v = with_nan(s, v, acc[s->nr + j]);
        v = rounded_sum(s, item->op, v);
        cpu_store_buf(s->e, buf, &at, (cpu_got){v, s->e->depth});
    }
}

/* Halves on halves. */
static LLVMValueRef across_lanes(cpu_nesting *s, const ir_op *op, LLVMValueRef v)
{
    cpu_emit *e = s->e;
    enum dtype t = cpu_reduced_type(s, op);

    for (int n = e->isa->lanes / 2; n > 0; n /= 2) {
        LLVMValueRef poison = LLVMGetPoison(LLVMTypeOf(v));
        LLVMValueRef low = ll_iota(e->cx, 0, n), high = ll_iota(e->cx, n, n);
        if (n == 1) {
            low = LLVMBuildExtractElement(e->cx->b, v, ll_i64(e->cx, 0), "");
            high = LLVMBuildExtractElement(e->cx->b, v, ll_i64(e->cx, 1), "");
        } else {
            low = LLVMBuildShuffleVector(e->cx->b, v, poison, low, "");
            high = LLVMBuildShuffleVector(e->cx->b, v, poison, high, "");
        }
        v = cpu_combine(e, (enum ir_opcode)op->code, t, low, high);
    }
    return v;
}

static LLVMValueRef any_lane(cpu_nesting *s, LLVMValueRef mask)
{
    const ll_cx *cx = s->e->cx;
    LLVMTypeRef type = LLVMTypeOf(mask);

    if (LLVMGetIntTypeWidth(ll_scalar_of(type)) > 1)
        mask = LLVMBuildICmp(cx->b, LLVMIntNE, mask, LLVMConstNull(type), "");
    LLVMTypeRef bits = LLVMIntTypeInContext(cx->context, (unsigned)s->e->isa->lanes);
    mask = LLVMBuildBitCast(cx->b, mask, bits, "");
    return LLVMBuildICmp(cx->b, LLVMIntNE, mask, LLVMConstNull(bits), "");
}

static void finish_horizontal(cpu_nesting *s, const cpu_item *item)
{
    cpu_emit *e = s->e;
    const ir_op *op = item->op;
    LLVMValueRef *acc = running(s, op), v = acc[0], nan = acc[s->nr];

    for (int j = 1; j < s->nr; j++)
        v = cpu_combine(e, (enum ir_opcode)op->code, cpu_reduced_type(s, op), v, acc[j]);
    v = across_lanes(s, op, v);
    if (tracks_nan(s, op)) {
        for (int j = 1; j < s->nr; j++)
            nan = LLVMBuildOr(e->cx->b, nan, acc[s->nr + j], "");
        v = with_nan(s, v, any_lane(s, nan));
    }
    v = rounded_sum(s, op, v);
    if (ir_type_of(e->fn, op->res).kind == TYPE_SCALAR) {
        e->scalar[op->res] = v;
    } else if (e->plan->value.at[op->res].buf) {
        cpu_at at = cpu_without(s, s->at, s->n->lane);
        cpu_store_buf(e, e->plan->value.at[op->res].buf, &at, (cpu_got){v, e->depth});
    }
}

void cpu_reduce_end(cpu_nesting *s)
{
    if (s->n->alone)
        cpu_fold_end(s);
    for (uint32_t i = 0; i < s->n->items.n; i++) {
        if (s->n->items.at[i].kind != ITEM_REDUCE)
            continue;
        if (s->n->horizontal)
            finish_horizontal(s, &s->n->items.at[i]);
        else
            store_vertical(s, &s->n->items.at[i]);
    }
}

/* Lanes beyond the tile's end do not count in a reduction along the lanes. */
static LLVMValueRef only_tile(cpu_nesting *s, const ir_op *op, const cpu_at *at, LLVMValueRef v)
{
    const cpu_emit *e = s->e;
    int64_t left = s->n->space.shape[s->n->lane] - at->i[s->n->lane].off;

    if (at->i[s->n->lane].base || left >= e->isa->lanes)
        return v;
    LLVMValueRef none =
        cpu_neutral(s->e, (enum ir_opcode)op->code, cpu_reduced_type(s, op), e->isa->lanes);
    return ll_select(e->cx, ll_first_lanes(e->cx, (int)left, e->isa->lanes), v, none);
}

void cpu_reduce_units(cpu_nesting *s, const cpu_item *item, const cpu_at *at, int mr, int nr)
{
    cpu_emit *e = s->e;
    LLVMValueRef *acc = running(s, item->op), x[CPU_MAX_LANES];
    enum dtype from = (enum dtype)ir_type_of(e->fn, item->op->args[0]).dtype;
    bool nan = tracks_nan(s, item->op);

    for (int j = 0; j < nr; j++) {
        for (int r = 0; r < mr; r++) {
            x[r] = cpu_vector(e, cpu_eval(e, item->op->args[0], &at[r * nr + j]));
            x[r] = cpu_widen(e, from, cpu_reduced_type(s, item->op), x[r]);
            if (s->n->horizontal)
                x[r] = only_tile(s, item->op, &at[r * nr + j], x[r]);
        }
        reduce_rows(s, item->op, &acc[j], nan ? &acc[s->nr + j] : NULL, x, mr);
    }
}
