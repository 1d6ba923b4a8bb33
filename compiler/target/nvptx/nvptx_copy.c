/* copy.async: cp.async, of which all threads of the block issue as many as there are pieces to
 * each.
 *
 * Consecutive lanes take consecutive pieces of a panel's row (8 lanes a 128-byte line), the other
 * lanes and then the warps the next rows. The piece of a thread moves by constants from row to row
 * and from panel to panel, so that its address in shared memory is computed once. */
#include "compiler/base/check.h"
#include "compiler/target/nvptx/nvptx_access.h"
#include <string.h>

typedef struct plan {
    layout_map map;
    int32_t once[TILE_MAX_RANK]; /* elements that the threads take at once */
    int32_t shape[TILE_MAX_RANK];
    int rank;
} plan;

static void add_digit(plan *p, enum layout_place place, int dim, int32_t extent, int32_t stride)
{
    if (extent > 1)
        p->map.digit[p->map.n++] =
            (layout_digit){(uint8_t)place, (int8_t)dim, extent, dim < 0 ? 0 : stride};
}

/* Spreads n lanes or warps over the rows, from the last dimension but one to the first. */
static void spread_rows(plan *p, enum layout_place place, int32_t n)
{
    for (int d = p->rank - 2; d >= 0 && n > 1; d--) {
        int32_t take = 1;
        while (take < n && n % (2 * take) == 0 && p->shape[d] / p->once[d] % (2 * take) == 0)
            take *= 2;
        add_digit(p, place, d, take, p->once[d]);
        p->once[d] *= take;
        n /= take;
    }
    add_digit(p, place, -1, n, 0);
}

/* Pieces of a row that lie in one panel. */
static int32_t pieces_of(const nv_emit *e, const nv_slot *slot, int32_t pieces, int64_t bytes)
{
    int32_t row = e->fn->layouts.at[slot->type.layout]->row, n = 1;

    if (row)
        return (int32_t)(row / bytes);
    while (n < NV_WARP && pieces % (2 * n) == 0)
        n *= 2;
    return n;
}

static plan plan_of(const nv_emit *e, const ir_op *op, const nv_slot *slot)
{
    plan p = {.map = {.warps = e->fn->warps}, .rank = slot->rank};
    int last = slot->rank - 1;
    int32_t piece = (int32_t)(op->attr[2].i / dtype_bytes((enum dtype)slot->type.dtype)), row;

    for (int d = 0; d < p.rank; d++) {
        p.shape[d] = slot->type.shape[1 + slot->perm[d]];
        p.once[d] = 1;
    }
    ICHECK(slot->perm[last] == last && p.shape[last] % piece == 0, "pieces lie along rows");
    p.map.rank = p.rank;
    memcpy(p.map.shape, p.shape, sizeof p.shape);
    row = pieces_of(e, slot, p.shape[last] / piece, op->attr[2].i);
    p.once[last] = row * piece;
    add_digit(&p, PLACE_LANE, last, row, piece);
    spread_rows(&p, PLACE_LANE, NV_WARP / row);
    spread_rows(&p, PLACE_WARP, e->fn->warps);
    return p;
}

/* The next constant index, the last dimension fastest: which one moved; -1: that was all. */
static int advance(const plan *p, int32_t *index)
{
    for (int d = p->rank - 1; d >= 0; d--) {
        index[d] += p->once[d];
        if (index[d] < p->shape[d])
            return d;
        index[d] = 0;
    }
    return -1;
}

/* Rows are a step apart: a pointer that moves takes fewer registers than a pointer for each. */
static LLVMValueRef row_pointer(nv_emit *e, nv_access *x, const plan *p, const int32_t *index,
                                int moved, LLVMValueRef last)
{
    int32_t row[TILE_MAX_RANK] = {0};

    if (last && moved == p->rank - 2)
        return ll_gep(e->cx, e->cx->i8, last, nv_access_step(e, x, moved, p->once[moved]));
    memcpy(row, index, sizeof *row * (size_t)(p->rank - 1));
    return nv_access_pointer(e, x, row);
}

/* Bytes of a piece that lie inside, i32; NULL: all. Of a piece across the tensor's end, a part. */
static LLVMValueRef bytes_inside(nv_emit *e, nv_access *x, const int32_t *index, int64_t bytes)
{
    LLVMValueRef inside = nv_access_inside(e, x, index, x->inside), size = nv_i32(e, bytes);
    int last = 0;

    if (!inside)
        return NULL;
    for (int d = 0; d < x->rank; d++)
        last = x->tile_dim[d] > x->tile_dim[last] ? d : last;
    if (!(x->inside >> last & 1) && nv_access_splits(e, x, last, x->run)) {
        LLVMValueRef left = nv_access_left(e, x, last, index[x->tile_dim[last]]);
        left = LLVMBuildMul(e->cx->b, ll_binary(e->cx, "llvm.umin", left, size),
                            nv_i32(e, dtype_bytes(x->t)), "");
        size = ll_binary(e->cx, "llvm.umin", left, size);
    }
    return ll_select(e->cx, inside, size, nv_i32(e, 0));
}

static void copy_piece(nv_emit *e, nv_access *x, LLVMValueRef to, LLVMValueRef row,
                       const int32_t *index, int64_t bytes)
{
    static const char *const name[2][3] = {
        {"llvm.nvvm.cp.async.ca.shared.global.4", "llvm.nvvm.cp.async.ca.shared.global.8",
         "llvm.nvvm.cp.async.cg.shared.global.16"},
        {"llvm.nvvm.cp.async.ca.shared.global.4.s", "llvm.nvvm.cp.async.ca.shared.global.8.s",
         "llvm.nvvm.cp.async.cg.shared.global.16.s"}};
    LLVMValueRef inside = nv_access_inside(e, x, index, x->inside);
    LLVMValueRef size = bytes_inside(e, x, index, bytes);
    int last = x->map.rank - 1, which = bytes == 4 ? 0 : bytes == 8 ? 1 : 2;

    if (inside) /* what is outside is neither read nor pointed at */
        row = ll_select(e->cx, inside, row, e->pointer[x->param]);
    LLVMValueRef column = ll_i64(e->cx, (int64_t)index[last] * dtype_bytes(x->t));
    LLVMValueRef args[] = {to, ll_gep(e->cx, e->cx->i8, row, column), size};
    (void)ll_call(e->cx, name[inside != NULL][which], NULL, 0, args, inside ? 3 : 2);
}

void nv_copy_async(nv_emit *e, const ir_op *op)
{
    nv_slot slot = nv_slot_of(e, op->args[op->nargs - 1]);
    plan p = plan_of(e, op, &slot);
    int32_t index[TILE_MAX_RANK] = {0};
    nv_access x = nv_access_of(e, op, (ir_type){.kind = TYPE_TILE}, &p.map);
    nv_guard g = nv_guard_begin(e, nv_first_copy(e, &p.map));
    LLVMValueRef row = NULL;

    x.run = (int32_t)(op->attr[2].i / dtype_bytes(x.t));
    for (int moved = 0; moved >= 0; moved = advance(&p, index)) {
        if (moved != p.rank - 1 || !row)
            row = row_pointer(e, &x, &p, index, moved, row);
        copy_piece(e, &x, nv_shared_pointer(e, &slot, &p.map, index), row, index, op->attr[2].i);
    }
    nv_guard_end(e, &g);
}
