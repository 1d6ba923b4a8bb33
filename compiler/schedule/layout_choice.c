#include "compiler/schedule/layout_choice.h"

enum { LANES = 32, PIECE_BYTES = 16 };

/* The largest power of two that divides n and is at most `most`. */
static int32_t even_part(int32_t n, int32_t most)
{
    int32_t p = 1;

    while (2 * p <= most && n % (2 * p) == 0)
        p *= 2;
    return p;
}

/* Spread over lanes and warps along the dimensions of order, fastest first: a thread holds
 * `regs` consecutive elements of the fastest; lanes fill the fastest dimensions, warps the
 * slowest. No warp is put along dimension `whole` (-1: any). */
static uint16_t blocked(ir_fn *fn, ir_type tile, const int *order, int regs, int whole)
{
    int32_t reg[TILE_MAX_RANK], lane[TILE_MAX_RANK], warp[TILE_MAX_RANK], lanes = LANES;
    int32_t warps = fn->warps;

    for (int i = 0; i < tile.rank; i++) {
        int d = order[i];
        reg[d] = i == 0 ? even_part(tile.shape[d], regs) : 1;
        lane[d] = even_part(tile.shape[d] / reg[d], lanes);
        lanes /= lane[d];
    }
    for (int i = tile.rank - 1; i >= 0; i--) {
        int d = order[i];
        warp[d] = d == whole ? 1 : even_part(tile.shape[d] / reg[d] / lane[d], warps);
        warps /= warp[d];
    }
    return layout_blocked(fn, tile.rank, reg, lane, warp, order);
}

static int elements_per_thread(const ir_fn *fn, ir_type tile)
{
    int64_t n = type_elements(tile) / (LANES * fn->warps);

    return n < 1 ? 1 : n > 64 ? 64 : (int)n;
}

static int least(int x, int y)
{
    return x < y ? x : y;
}

uint16_t choose_access(ir_fn *fn, ir_type tile, int fast, int consecutive)
{
    int order[TILE_MAX_RANK], n = 0;

    if (fast >= 0)
        order[n++] = fast;
    for (int d = tile.rank - 1; d >= 0; d--) {
        if (d != fast)
            order[n++] = d;
    }
    return blocked(fn, tile, order, least(consecutive, elements_per_thread(fn, tile)), -1);
}

uint16_t choose_default(ir_fn *fn, ir_type tile, int whole)
{
    int order[TILE_MAX_RANK];
    int regs = least(PIECE_BYTES / dtype_bytes(tile.dtype), elements_per_thread(fn, tile));

    for (int i = 0; i < tile.rank; i++)
        order[i] = tile.rank - 1 - i;
    return blocked(fn, tile, order, regs, whole);
}

uint16_t choose_beside_mma(ir_fn *fn, ir_type tile, int wm, int wn, int bytes)
{
    int32_t piece = bytes / dtype_bytes(tile.dtype);
    int32_t rows = tile.shape[0] / wm, columns = tile.shape[1] / wn;

    if (columns % piece)
        return 0;
    int32_t across = even_part(columns / piece, LANES), down = LANES / across;
    if (rows % down)
        return 0;
    int32_t regs[] = {rows / down, piece}, lanes[] = {down, across}, warps[] = {wm, wn};
    return layout_blocked(fn, 2, regs, lanes, warps, (int[]){1, 0});
}

/* Pieces of at most 4 x 4 elements: each factor read from shared memory is used four times. */
uint16_t choose_fma(ir_fn *fn, ir_type acc)
{
    int32_t side = elements_per_thread(fn, acc) >= 16  ? 4
                   : elements_per_thread(fn, acc) >= 4 ? 2
                                                       : 1;
    int32_t regs[2], lanes[2], warps[2], left;

    for (int d = 0; d < 2; d++)
        regs[d] = even_part(acc.shape[d], side);
    lanes[1] = even_part(acc.shape[1] / regs[1], 8);
    lanes[0] = even_part(acc.shape[0] / regs[0], LANES / lanes[1]);
    lanes[1] *= even_part(acc.shape[1] / regs[1] / lanes[1], LANES / lanes[0] / lanes[1]);
    warps[0] = even_part(acc.shape[0] / regs[0] / lanes[0], fn->warps);
    left = fn->warps / warps[0];
    warps[1] = even_part(acc.shape[1] / regs[1] / lanes[1], left);
    return layout_blocked(fn, 2, regs, lanes, warps, (int[]){1, 0});
}
