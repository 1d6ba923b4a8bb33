#include "compiler/target/nvptx/nvptx_access.h"
#include "compiler/base/check.h"

/* ---- what is accessed ------------------------------------------------------------------------ */

static LLVMValueRef index_of(nv_emit *e, const nv_access *x, int d)
{
    return nv_get(e, x->op->args[1 + d], 0);
}

/* The i64 index of dimension d without what registers add. */
static LLVMValueRef wide_index(nv_emit *e, const nv_access *x, int d)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMValueRef i =
        x->gathered[d] ? ll_i64(e->cx, 0) : LLVMBuildSExt(b, index_of(e, x, d), e->cx->i64, "");

    if (x->gathered[d] || !x->lane[d])
        return i;
    return ll_add(e->cx, i, LLVMBuildZExt(b, x->lane[d], e->cx->i64, ""));
}

/* In elements; NULL stride: 1. */
static LLVMValueRef strided(nv_emit *e, const nv_access *x, int d, LLVMValueRef i)
{
    LLVMValueRef stride = e->stride[x->param][d];

    return stride ? ll_mul(e->cx, i, stride) : i;
}

nv_access nv_access_of(nv_emit *e, const ir_op *op, ir_type tile, const layout_map *map)
{
    nv_access x = {.op = op,
                   .map = *map,
                   .param = ir_value_of(e->fn, op->args[0])->index,
                   .tile = tile,
                   .run = 1,
                   .inside = (unsigned)op->attr[1].i};
    int k = 0;
    LLVMValueRef at = ll_i64(e->cx, 0);

    x.tensor = &e->fn->params.at[x.param];
    x.t = (enum dtype)x.tensor->type.dtype;
    x.rank = x.tensor->type.rank;
    x.n = layout_registers(&x.map);
    for (int d = 0; d < x.rank; d++) {
        uint32_t bits;
        bool tiled = op->attr[0].ints.at[d] > 0;
        x.tile_dim[d] = tiled ? k++ : -1;
        x.gathered[d] = tiled && nv_type(e, op->args[1 + d]).kind == TYPE_TILE;
        if (tiled && !x.gathered[d])
            x.lane[d] = nv_lane_index(e, &x.map, x.tile_dim[d], &bits);
        at = ll_add(e->cx, at, strided(e, &x, d, wide_index(e, &x, d)));
    }
    at = ll_mul(e->cx, at, ll_i64(e->cx, dtype_bytes(x.t)));
    x.base = ll_gep(e->cx, e->cx->i8, e->pointer[x.param], at);
    return x;
}

void nv_access_forget(nv_access *x)
{
    x->offsets.n = x->checks.n = 0;
}

static LLVMValueRef find(const nv_known *at, uint32_t n, int dim, int32_t index)
{
    for (uint32_t i = 0; i < n; i++) {
        if (at[i].dim == dim && at[i].at == index)
            return at[i].v;
    }
    return NULL;
}

/* The index for what has index `want` in thread 0, from the same register of the index tile. */
static LLVMValueRef gathered_index(nv_emit *e, const nv_access *x, int d, int32_t want)
{
    ir_val v = x->op->args[1 + d];
    layout_map map;

    nv_map(e, nv_type(e, v), &map);
    for (int i = 0; i < layout_registers(&map); i++) {
        int32_t got[TILE_MAX_RANK];
        layout_element(&map, i, 0, 0, got);
        if (got[0] == want)
            return nv_get(e, v, i);
    }
    ICHECK(0, "a tile of indices is laid out like the dimension that it picks");
    return NULL;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* Bytes that index `at` adds along dimension d, i64. */
static LLVMValueRef register_offset(nv_emit *e, nv_access *x, int d, int32_t at)
{
    LLVMValueRef v = find(x->offsets.at, x->offsets.n, d, at);

    if (v)
        return v;
    v = strided(e, x, d, ll_i64(e->cx, (int64_t)at * dtype_bytes(x->t)));
    nv_known k = {d, at, v};
    vec_push(&x->offsets, e->a, k);
    return v;
}

LLVMValueRef nv_access_pointer(nv_emit *e, nv_access *x, const int32_t *index)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMValueRef p = x->base;

    for (int d = 0; d < x->rank; d++) {
        int k = x->tile_dim[d];
        if (k < 0)
            continue;
        LLVMValueRef by = NULL;
        if (x->gathered[d]) {
            by = LLVMBuildSExt(b, gathered_index(e, x, d, index[k]), e->cx->i64, "");
            by = strided(e, x, d, ll_mul(e->cx, by, ll_i64(e->cx, dtype_bytes(x->t))));
        } else {
            by = register_offset(e, x, d, index[k]);
        }
        p = ll_gep(e->cx, e->cx->i8, p, by);
    }
    return p;
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static const ir_dim *dim_of(const nv_emit *e, const nv_access *x, int d)
{
    return &e->fn->dims.at[x->tensor->dim[d]];
}

/* Is index `at` known to be inside in every thread, with those that count for it? */
static bool surely_inside(const nv_emit *e, const nv_access *x, int d, int32_t at)
{
    const ir_op *index = ir_def(e->fn, x->op->args[1 + d]);
    int64_t last = (int64_t)at + x->run;

    if (!dim_of(e, x, d)->is_const || !index || index->code != OP_CONST_INT)
        return false;
    for (int i = 0; i < x->map.n; i++) {
        const layout_digit *g = &x->map.digit[i];
        if (g->place != PLACE_REGISTER && g->dim == x->tile_dim[d])
            last += (int64_t)(g->extent - 1) * g->stride;
    }
    return index->attr[0].i >= 0 && index->attr[0].i + last <= dim_of(e, x, d)->value;
}

/* As unsigned, an index below 0, or one that wrapped, is above every extent. */
static LLVMValueRef check(nv_emit *e, nv_access *x, int d, LLVMValueRef index)
{
    return LLVMBuildICmp(e->cx->b, LLVMIntULT, index, nv_dim(e, x->tensor->dim[d]), "");
}

static LLVMValueRef check_at(nv_emit *e, nv_access *x, int d, int32_t at)
{
    LLVMValueRef v = find(x->checks.at, x->checks.n, d, at);

    if (x->gathered[d])
        return check(e, x, d, gathered_index(e, x, d, at));
    if (v)
        return v;
    v = nv_plus(e, index_of(e, x, d), x->lane[d]);
    v = check(e, x, d, ll_add(e->cx, v, nv_i32(e, at)));
    nv_known k = {d, at, v};
    vec_push(&x->checks, e->a, k);
    return v;
}

LLVMValueRef nv_access_inside(nv_emit *e, nv_access *x, const int32_t *index, unsigned inside)
{
    LLVMValueRef c = NULL;

    for (int d = 0; d < x->rank; d++) {
        int k = x->tile_dim[d];
        bool known = k >= 0 && !x->gathered[d] && surely_inside(e, x, d, index[k]);
        if (!(inside >> d & 1) && !known)
            c = nv_both(e, c, check_at(e, x, d, k < 0 ? 0 : index[k]));
    }
    return c;
}

LLVMValueRef nv_access_left(nv_emit *e, const nv_access *x, int d, int32_t at)
{
    LLVMValueRef index = ll_add(e->cx, nv_plus(e, index_of(e, x, d), x->lane[d]), nv_i32(e, at));

    return LLVMBuildSub(e->cx->b, nv_dim(e, x->tensor->dim[d]), index, "");
}

LLVMValueRef nv_access_whole(nv_emit *e, nv_access *x, int d)
{
    LLVMBuilderRef b = e->cx->b;
    LLVMValueRef lo = index_of(e, x, d), extent = nv_dim(e, x->tensor->dim[d]);
    LLVMValueRef last = LLVMBuildSub(b, extent, nv_i32(e, x->op->attr[0].ints.at[d]), "");

    return LLVMBuildAnd(b, LLVMBuildICmp(b, LLVMIntSGE, lo, nv_i32(e, 0), ""),
                        LLVMBuildICmp(b, LLVMIntSLE, lo, last, ""), "");
}

bool nv_access_never_whole(const nv_emit *e, const nv_access *x, int d)
{
    const ir_op *index = ir_def(e->fn, x->op->args[1 + d]);

    return dim_of(e, x, d)->is_const && index && index->code == OP_CONST_INT &&
           index->attr[0].i + x->op->attr[0].ints.at[d] > dim_of(e, x, d)->value;
}

bool nv_access_splits(const nv_emit *e, const nv_access *x, int d, int n)
{
    const ir_dim *dim = dim_of(e, x, d);

    return !dim->is_const || dim->value % n || nv_divisor(e, x->op->args[1 + d]) % n;
}

LLVMValueRef nv_access_step(nv_emit *e, const nv_access *x, int tile_dim, int32_t by)
{
    int d = 0;

    while (x->tile_dim[d] != tile_dim)
        d++;
    return strided(e, x, d, ll_i64(e->cx, (int64_t)by * dtype_bytes(x->t)));
}
