/* convert: free where both layouts give each thread the same elements; else, within a warp, by
 * shuffles: for each register of the result, one for each register that some lane has the element
 * in. Which lane has it is computed from the element's index by the digits of the old layout. */
#include "compiler/base/check.h"
#include "compiler/target/nvptx/nvptx_emit.h"
#include <string.h>

typedef struct moving {
    const ir_op *op;
    layout_map from, to;
} moving;

/* The number at the place of who holds the element at index, from the digits of `from`; what the
 * digits of a place weigh is their product so far. */
static int holder(const layout_map *from, int place, const int32_t *index, const int32_t *warp_at)
{
    int number = 0, weight = 1;

    for (int i = 0; i < from->n; i++) {
        const layout_digit *d = &from->digit[i];
        if (d->place != place)
            continue;
        if (d->dim >= 0)
            number += (index[d->dim] - warp_at[d->dim]) / d->stride % d->extent * weight;
        weight *= d->extent;
    }
    return number;
}

/* What the warp adds to the index in `from`. */
static void warp_index(const layout_map *from, int warp, int32_t *out)
{
    layout_element(from, 0, 0, warp, out);
}

/* The register of `from` that holds what register r of `to` holds in this lane and warp. */
static int source_register(const moving *m, int r, int lane, int warp)
{
    int32_t index[TILE_MAX_RANK], base[TILE_MAX_RANK], seen[TILE_MAX_RANK];

    layout_element(&m->to, r, lane, warp, index);
    warp_index(&m->from, warp, base);
    int reg = holder(&m->from, PLACE_REGISTER, index, base);
    int at = holder(&m->from, PLACE_LANE, index, base);
    layout_element(&m->from, reg, at, warp, seen);
    ICHECK(memcmp(seen, index, sizeof *seen * (size_t)m->to.rank) == 0,
           "a conversion that is left stays in its warp");
    return reg;
}

/* The element's index along dim less what the warp adds in `from`, i32. */
static LLVMValueRef index_in_warp(nv_emit *e, const moving *m, int dim, int32_t constant)
{
    layout_map warps = m->from;
    uint32_t bits;
    LLVMValueRef i = nv_lane_index(e, &m->to, dim, &bits);

    i = nv_plus(e, i, nv_i32(e, constant));
    for (int k = 0; k < warps.n; k++) {
        if (warps.digit[k].place != PLACE_WARP)
            warps.digit[k].dim = -1;
    }
    LLVMValueRef base = nv_lane_index(e, &warps, dim, &bits);
    return base ? LLVMBuildSub(e->cx->b, i, base, "") : i;
}

/* The same number as holder gives, as code. */
static LLVMValueRef holder_code(nv_emit *e, const moving *m, int place, const int32_t *constant)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMValueRef number = nv_i32(e, 0);
    int weight = 1;

    for (int i = 0; i < m->from.n; i++) {
        const layout_digit *d = &m->from.digit[i];
        if (d->place != place)
            continue;
        if (d->dim >= 0) {
            LLVMValueRef v = index_in_warp(e, m, d->dim, constant[d->dim]);
            v = LLVMBuildUDiv(b, v, nv_i32(e, d->stride), "");
            v = LLVMBuildURem(b, v, nv_i32(e, d->extent), "");
            number = ll_add(e->cx, number, ll_mul(e->cx, v, nv_i32(e, weight)));
        }
        weight *= d->extent;
    }
    return number;
}

static LLVMValueRef fetch(nv_emit *e, const moving *m, int r)
{
    int n = layout_registers(&m->from);
    bool *needed = ARENA_ARRAY(e->a, bool, (size_t)n);
    int32_t constant[TILE_MAX_RANK];
    LLVMValueRef v = NULL, reg = NULL;

    for (int warp = 0; warp < e->fn->warps; warp++) {
        for (int lane = 0; lane < NV_WARP; lane++)
            needed[source_register(m, r, lane, warp)] = true;
    }
    layout_element(&m->to, r, 0, 0, constant);
    LLVMValueRef lane = holder_code(e, m, PLACE_LANE, constant);
    for (int i = 0; i < n; i++) {
        if (!needed[i])
            continue;
        LLVMValueRef x = nv_shuffle(e, NV_INDEX, nv_get(e, m->op->args[0], i), lane);
        if (v && !reg)
            reg = holder_code(e, m, PLACE_REGISTER, constant);
        v = v ? ll_select(e->cx, LLVMBuildICmp(e->cx->b, LLVMIntEQ, reg, nv_i32(e, i), ""), x, v)
              : x;
    }
    return v;
}

void nv_convert(nv_emit *e, const ir_op *op)
{
    moving m = {.op = op};

    nv_map(e, nv_type(e, op->args[0]), &m.from);
    nv_map(e, nv_type(e, op->res), &m.to);
    int n = layout_registers(&m.to);
    int *reg_of = ARENA_ARRAY(e->a, int, (size_t)n);
    if (layout_same_threads(&m.from, &m.to, reg_of)) {
        nv_permute(e, op->res, op->args[0], reg_of);
        return;
    }
    LLVMValueRef *out = ARENA_ARRAY(e->a, LLVMValueRef, (size_t)n);
    for (int r = 0; r < n; r++)
        out[r] = fetch(e, &m, r);
    nv_set(e, op->res, out);
}
