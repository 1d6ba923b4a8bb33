/* What a program of level 2 knows before it runs: what each warp holds of each tile, where the
 * elements of each buffer are, the numbers of ops and mbarriers, and the size of shared memory. */
#include "compiler/base/check.h"
#include "compiler/ir/iredit.h"
#include "compiler/target/interp/interp_agent.h"
#include "compiler/target/interp/interp_race.h"
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

/* A value before v of the same type, in the same group; values of few types are many. */
static ir_val same_tile(const interp_program *p, ir_val v, int first, int warps)
{
    for (ir_val u = v; u-- > 1;) {
        const interp_hold *h = p->hold[u];
        ir_type x = ir_type_of(p->fn, u), y = ir_type_of(p->fn, v);
        if (h && h->first == first && h->warps == warps && x.layout == y.layout &&
            type_same_shape(x, y))
            return u;
    }
    return 0;
}

static ir_val same_buffer(const interp_program *p, ir_val v)
{
    ir_type y = ir_type_of(p->fn, v);

    for (ir_val u = v; u-- > 1;) {
        ir_type x = ir_type_of(p->fn, u);
        if (p->offset[u] && x.layout == y.layout && x.dtype == y.dtype && x.rank == y.rank &&
            !memcmp(x.shape + 1, y.shape + 1, sizeof *x.shape * (size_t)(x.rank - 1)))
            return u;
    }
    return 0;
}

static int32_t *list_offsets(const interp_program *p, arena *a, ir_type ty)
{
    int64_t n = type_elements(ty) / ty.shape[0];
    int32_t *list = ARENA_ARRAY(a, int32_t, (size_t)n), index[TILE_MAX_RANK] = {0};

    for (int64_t i = 0; i < n; i++) {
        list[i] = (int32_t)layout_shared_offset(p->fn, ty, index);
        for (int d = ty.rank - 2; d >= 0 && ++index[d] == ty.shape[d + 1]; d--)
            index[d] = 0;
    }
    return list;
}

void interp_prepare_value(interp_program *p, arena *a, ir_val v, int first, int warps)
{
    ir_type ty = ir_type_of(p->fn, v);

    if (ty.kind == TYPE_BUFFER) {
        ir_val same = same_buffer(p, v);
        p->offset[v] = same ? p->offset[same] : list_offsets(p, a, ty);
    }
    if (ty.kind != TYPE_TILE)
        return;
    ir_val same = same_tile(p, v, first, warps);
    p->hold[v] = same ? p->hold[same] : interp_hold_new(a, p->fn, ty, first, warps);
    for (int d = 0; d < ty.rank; d++)
        p->type[v].shape[d] = p->hold[v]->n[d];
}

/* ---- ops ---- */

static int by_address(const void *x, const void *y)
{
    const ir_op *a = *(const ir_op *const *)x, *b = *(const ir_op *const *)y;

    return (a > b) - (a < b);
}

uint32_t interp_op_number(const interp_program *p, const ir_op *op)
{
    const ir_op **at = bsearch(&op, p->op, p->nops, sizeof *p->op, by_address);

    ICHECK(at, "the op is one of the program");
    return (uint32_t)(at - p->op);
}

typedef struct op_list {
    interp_program *p;
    arena *a;
    VEC(const ir_op *) all;
} op_list;

static void collect(ir_op *op, void *arg)
{
    op_list *l = arg;

    vec_push(&l->all, l->a, op);
}

static void reach(interp_program *p, int64_t end)
{
    p->shared_bytes = end > p->shared_bytes ? end : p->shared_bytes;
}

/* Buffers that are not planned yet lie one after the other, behind all that are. */
static int64_t place(interp_program *p, const ir_op *op, int64_t bytes)
{
    int64_t at = op->attr[0].i;

    if (at < 0)
        at = (p->shared_bytes + 1023) / 1024 * 1024;
    reach(p, at + bytes);
    return at;
}

static void prepare_op(interp_program *p, const ir_op *op, bool planned)
{
    ir_type ty = op->nres == 1 ? ir_type_of(p->fn, op->res) : (ir_type){0};

    if ((op->code == OP_ALLOC || op->code == OP_MBAR_ALLOC) && planned == (op->attr[0].i >= 0)) {
        bool alloc = op->code == OP_ALLOC;
        int64_t bytes = alloc ? ty.shape[0] * layout_slot_bytes(p->fn, ty) : 8 * op->attr[1].i;
        p->place[interp_op_number(p, op)] = place(p, op, bytes);
        if (alloc && dtype_bytes((enum dtype)ty.dtype) < p->granule)
            p->granule = dtype_bytes((enum dtype)ty.dtype);
    }
    if (!planned)
        return;
    if (op->code == OP_MBAR_ALLOC) {
        p->mbar[interp_op_number(p, op)] = p->mbarriers;
        p->mbarriers += (int)op->attr[1].i;
    }
    p->products |= op->code == OP_WGMMA;
}

/* Room to gather both factors of a product. */
static void prepare_scratch(interp_program *p, const ir_op *op, uint64_t *room)
{
    if (op->code != OP_MMA && op->code != OP_WGMMA && op->code != OP_DOT)
        return;
    ir_type c = p->type[op->res];
    uint64_t k = (uint64_t)ir_type_of(p->fn, op->args[1]).shape[1];
    uint64_t n = k * (uint64_t)(c.shape[0] + c.shape[1]);

    *room = n > *room ? n : *room;
}

void interp_prepare_ops(interp_program *p, arena *a)
{
    op_list l = {.p = p, .a = a};
    uint64_t room = 0;

    ir_walk(p->fn->body, collect, &l);
    ICHECK(l.all.n < RACE_MAX_OPS, "a text of at most 1 MiB has fewer ops");
    qsort(l.all.at, l.all.n, sizeof *l.all.at, by_address);
    p->op = l.all.at;
    p->nops = l.all.n;
    p->mbar = ARENA_ARRAY(a, int, p->nops);
    p->place = ARENA_ARRAY(a, int64_t, p->nops);
    p->granule = 8;
    for (uint32_t i = 0; i < p->nops; i++)
        prepare_op(p, p->op[i], true);
    for (uint32_t i = 0; i < p->nops; i++)
        prepare_op(p, p->op[i], false);
    for (uint32_t i = 0; i < p->nops; i++)
        prepare_scratch(p, p->op[i], &room);
    p->scratch = p->cells;
    p->cells += room;
}
