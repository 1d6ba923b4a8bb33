/* Nests of one item: scans, and reductions with a function of the text.
 *
 * A function has no neutral element: the first value that comes is taken as it is, by a select on
 * the index where that is not constant. The function's region is emitted on whole vectors, as
 * elementwise code; lanes beyond a tile's end compute garbage that is not taken. */
#include "compiler/base/check.h"
#include "compiler/ir/iredit.h"
#include "compiler/target/cpu/cpu_nests.h"

/* ---- the function ---------------------------------------------------------------------------- */

static LLVMValueRef region_value(cpu_emit *e, const ir_op *op)
{
    LLVMTypeRef type = cpu_type(e, (enum dtype)ir_type_of(e->fn, op->res).dtype, e->isa->lanes);
    LLVMValueRef arg[3];

    if (op->code == OP_CONST_INT)
        return ll_int(type, op->attr[0].i);
    if (op->code == OP_CONST_FLOAT)
        return ll_float(type, op->attr[0].f);
    for (int i = 0; i < op->nargs; i++) /* what comes from outside is a scalar */
        arg[i] = cpu_vector(e, (cpu_got){e->scalar[op->args[i]], 0});
    ir_val typed = op->args[op->code == OP_WHERE];
    return cpu_op(e, (enum ir_opcode)op->code, (enum dtype)ir_type_of(e->fn, typed).dtype,
                  (enum dtype)ir_type_of(e->fn, op->res).dtype, arg);
}

static LLVMValueRef apply_region(cpu_emit *e, const ir_block *region, LLVMValueRef x,
                                 LLVMValueRef y)
{
    e->scalar[region->arg] = x;
    e->scalar[region->arg + 1] = y;
    for (const ir_op *op = region->first; op != region->last; op = op->next)
        e->scalar[op->res] = region_value(e, op);
    return cpu_vector(e, (cpu_got){e->scalar[region->last->args[0]], 0});
}

static LLVMValueRef combine(const cpu_nesting *s, const ir_op *op, LLVMValueRef x, LLVMValueRef y)
{
    enum dtype t = cpu_reduced_type(s, op);
    LLVMValueRef arg[] = {x, y};

    if (op->nregions)
        return apply_region(s->e, op->regions[0], x, y);
    return cpu_op(s->e, op->code == OP_SCAN_SUM ? OP_ADD : OP_MUL, t, t, arg);
}

/* combine(acc, x), or x where index i is that of the first element. */
static LLVMValueRef step(const cpu_nesting *s, const ir_op *op, cpu_index i, LLVMValueRef acc,
                         LLVMValueRef x)
{
    const ll_cx *cx = s->e->cx;

    if (!i.base && i.off == 0)
        return x;
    LLVMValueRef v = combine(s, op, acc, x);
    if (!i.base || i.off > 0)
        return v;
    LLVMValueRef first = LLVMBuildICmp(cx->b, LLVMIntEQ, i.base, ll_i64(cx, 0), "");
    return ll_select(cx, first, x, v);
}

static LLVMValueRef element(cpu_nesting *s, const ir_op *op, const cpu_at *at)
{
    cpu_emit *e = s->e;
    enum dtype from = (enum dtype)ir_type_of(e->fn, op->args[0]).dtype;

    return cpu_widen(e, from, cpu_reduced_type(s, op), cpu_vector(e, cpu_eval(e, op->args[0], at)));
}

static int axis_of(const cpu_nesting *s)
{
    return (int)s->n->items.at[0].op->attr[0].i;
}

/* Along the lanes there is one running vector; of a scan, its lanes all hold the last value. */
void cpu_fold_begin(cpu_nesting *s, int nr)
{
    const ir_op *op = s->n->items.at[0].op;
    LLVMTypeRef type = ll_type(s->e->cx, cpu_reduced_type(s, op), s->e->isa->lanes);

    s->nr = s->ncarried = s->n->horizontal ? 1 : nr;
    for (int j = 0; j < s->nr; j++)
        s->carried[j] = LLVMConstNull(type);
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* The first n lanes of x, the others of y. */
static LLVMValueRef first_lanes(const cpu_nesting *s, int64_t n, LLVMValueRef x, LLVMValueRef y)
{
    int lanes = s->e->isa->lanes;

    return n >= lanes ? x : ll_select(s->e->cx, ll_first_lanes(s->e->cx, (int)n, lanes), x, y);
}

void cpu_fold_units(cpu_nesting *s, const cpu_item *item, const cpu_at *at, int mr, int nr)
{
    int axis = axis_of(s), lane = s->n->lane;

    for (int u = 0; u < mr * nr; u++) {
        cpu_index i = at[u].i[axis];
        LLVMValueRef *acc = &s->carried[s->n->horizontal ? 0 : u % nr];
        LLVMValueRef x = step(s, item->op, i, *acc, element(s, item->op, &at[u]));
        bool tail = s->n->horizontal && !i.base && i.off > 0;
        *acc = tail ? first_lanes(s, s->n->space.shape[lane] - i.off, x, *acc) : x;
    }
}

/* Of n lanes one: halves on halves, where the upper one may be short. */
static LLVMValueRef across_lanes(const cpu_nesting *s, const ir_op *op, LLVMValueRef v, int n)
{
    const ll_cx *cx = s->e->cx;
    int lanes = s->e->isa->lanes;
    LLVMValueRef from[CPU_MAX_LANES];

    for (int k = lanes / 2; k > 0; k /= 2) {
        if (n <= k)
            continue;
        for (int i = 0; i < lanes; i++)
            from[i] = ll_int(cx->i32, (i + k) % lanes);
        LLVMValueRef mask = LLVMConstVector(from, (unsigned)lanes);
        LLVMValueRef upper = LLVMBuildShuffleVector(cx->b, v, v, mask, "");
        v = first_lanes(s, n - k, combine(s, op, v, upper), v);
        n = k;
    }
    return LLVMBuildExtractElement(cx->b, v, ll_i64(cx, 0), "");
}

static void end_horizontal(cpu_nesting *s, const cpu_item *item)
{
    cpu_emit *e = s->e;
    int extent = s->n->space.shape[s->n->lane], lanes = e->isa->lanes;
    LLVMValueRef v = across_lanes(s, item->op, s->carried[0], extent < lanes ? extent : lanes);
    uint32_t buf = e->plan->value.at[item->v].buf;
    cpu_at at = cpu_without(s, s->at, s->n->lane);

    if (ir_type_of(e->fn, item->v).kind == TYPE_SCALAR)
        e->scalar[item->v] = v;
    else if (buf)
        cpu_store_buf(e, buf, &at, (cpu_got){v, e->depth});
}

void cpu_fold_end(cpu_nesting *s)
{
    const cpu_item *item = &s->n->items.at[0];
    uint32_t buf = s->e->plan->value.at[item->v].buf;

    if (item->kind != ITEM_FOLD)
        return;
    if (s->n->horizontal) {
        end_horizontal(s, item);
        return;
    }
    for (int j = 0; j < s->nr && buf; j++) {
        cpu_at at = cpu_without(s, cpu_vector_at(s, j), axis_of(s));
        cpu_store_buf(s->e, buf, &at, (cpu_got){s->carried[j], s->e->depth});
    }
}

/* ---- scans ----------------------------------------------------------------------------------- */

/* Each lane with those before it: with the one before, then two before, four, ... */
static LLVMValueRef scan_lanes(const cpu_nesting *s, const ir_op *op, LLVMValueRef x)
{
    const ll_cx *cx = s->e->cx;
    int lanes = s->e->isa->lanes;
    LLVMValueRef from[CPU_MAX_LANES];

    for (int k = 1; k < lanes; k *= 2) {
        for (int i = 0; i < lanes; i++)
            from[i] = ll_int(cx->i32, i < k ? i : i - k);
        LLVMValueRef mask = LLVMConstVector(from, (unsigned)lanes);
        LLVMValueRef moved = LLVMBuildShuffleVector(cx->b, x, x, mask, "");
        x = first_lanes(s, k, x, combine(s, op, moved, x));
    }
    return x;
}

static LLVMValueRef last_lane(const cpu_nesting *s, LLVMValueRef x)
{
    const cpu_emit *e = s->e;
    LLVMValueRef last = ll_i64(e->cx, e->isa->lanes - 1);

    return ll_splat(e->cx, LLVMBuildExtractElement(e->cx->b, x, last, ""), e->isa->lanes);
}

/* The units in order, rows outside. */
void cpu_scan_units(cpu_nesting *s, const cpu_item *item, const cpu_at *at, int mr, int nr,
                    cpu_got *got)
{
    cpu_emit *e = s->e;
    enum dtype to = (enum dtype)ir_type_of(e->fn, item->op->res).dtype;

    for (int u = 0; u < mr * nr; u++) {
        LLVMValueRef *acc = &s->carried[s->n->horizontal ? 0 : u % nr];
        LLVMValueRef x = element(s, item->op, &at[u]);
        if (s->n->horizontal)
            x = scan_lanes(s, item->op, x);
        x = step(s, item->op, at[u].i[axis_of(s)], *acc, x);
        got[u] = (cpu_got){item->op->nregions ? x : cpu_round(e, to, x), e->depth};
        *acc = s->n->horizontal ? last_lane(s, x) : x;
    }
}
