#ifndef TW_IR_LAYOUT_H
#define TW_IR_LAYOUT_H
/* Layouts: where the elements of a tile are, on a GPU.
 *
 * A distributed layout says which elements each thread of a group of warps holds in which register.
 * Whatever its kind, it answers through one form, the map: a list of digits. A register's number, a
 * lane and a warp are numbers with mixed radix; each digit belongs to one of the three, has an
 * extent, and moves the element's index along one dimension by its stride (or, with dim -1, does
 * not move it: then threads hold copies). The first digit of a place is its fastest.
 *
 *   index[d] = sum over the digits of dimension d of (digit's value * stride)
 *
 *   kind                                        text
 *   blocked   regs x lanes x warps x repeats    #b = blocked(regs=[1, 8], lanes=[4, 8],
 *                                                            warps=[4, 1], order=[1, 0])
 *   mma       accumulator of mma.m16n8          #acc = mma(warps=[4, 1])
 *   mma_a     its left operand, from registers  #a = mma_a(warps=[4, 1])
 *   slice     of another, along a dimension     #rows = slice(#acc, dim=1)
 *   trans     of another                        #t = trans(#acc, perm=[1, 0])
 *   lanes     of another, one element a lane    #parts = lanes(#acc, dim=1)
 *   shared    in shared memory                  #s = shared(row=128)
 *
 * blocked: along dimension d a thread holds regs[d] consecutive elements, then come lanes[d], then
 *   warps[d], then register repeats up to the extent, which is a multiple of the product. order
 *   lists the dimensions, fastest first, for registers, lanes and warps alike. Lanes and warps
 *   that are left over hold copies.
 * mma: tiles of rank 2 whose extents are multiples of 16 * warps[0] and 8 * warps[1]. With
 *   g = lane / 4 and t = lane % 4, a 16 x 8 piece has (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1) in
 *   registers 0..3 (PTX ISA, "Matrix Fragments for mma.m16n8k16"); then come the pieces of a warp,
 *   along dimension 1, then along dimension 0; a warp's rows and columns are contiguous. Warps are
 *   numbered with dimension 0 fastest.
 * mma_a: the same map without the split of dimension 1 over warps: warps along it hold copies. With
 *   warps[1] = 1 it is the map of mma, so an accumulator is an operand for free. Multiplying in
 *   this order of k is right for every dtype as long as B is read in the same order (level 2's mma
 *   does).
 * slice: the map of the parent without dimension dim: its registers along dim are dropped, its
 *   lanes and warps along dim hold copies. Rank is one less.
 * trans: dimension i of the tile is dimension perm[i] of the parent's.
 * lanes: the map of the parent with one element along dimension dim for each lane of the parent
 *   along it, numbered as the lanes are: where a thread keeps one value for all that it holds of
 *   a row (partial_sum). lanes(#acc, dim=1) is for tiles [M, 4]; part j of a row is of the columns
 *   n with n / 2 % 4 == j. The parent does not split the dimension over warps.
 * An extent of 1 is held like a slice: digits along it hold copies, their registers are dropped.
 *
 * shared: rows of all dimensions but the last (and but the first of a buffer, its slots), panels of
 *   `row` bytes of the last dimension one after the other: element (r, c) of a slot with R rows and
 *   elements of e bytes is at
 *       p * R * row + r * row + 16 * (chunk ^ (r / (128 / row)) % (row / 16)) + c * e % 16
 *   with p = c * e / row, chunk = c * e % row / 16. row is 128, 64, 32 or 16 and divides the bytes
 *   of the last dimension. This is the 128, 64 and 32 byte swizzle of TMA and wgmma when the slot
 *   is aligned to 1024 bytes. row = 0: plain row-major, no swizzle, any extents.
 *   A trans of a shared layout is a view of it.
 */
#include "compiler/ir/ir.h"

enum layout_kind {
    LAYOUT_BLOCKED, LAYOUT_MMA, LAYOUT_MMA_A, LAYOUT_SLICE, LAYOUT_TRANS,
    LAYOUT_LANES, LAYOUT_SHARED
};

#define LAYOUT_MAX_WARPS 32

struct ir_layout {
    const char *name; /* without '#' */
    enum layout_kind kind;
    uint8_t rank;     /* of the tiles it is for; shared: 0, any */
    int32_t regs[TILE_MAX_RANK], lanes[TILE_MAX_RANK]; /* blocked */
    int32_t warps[TILE_MAX_RANK];                      /* blocked, mma, mma_a */
    uint8_t order[TILE_MAX_RANK];                      /* blocked */
    uint16_t parent;                                   /* slice, trans, lanes: in fn->layouts */
    uint8_t dim;                                       /* slice, lanes */
    uint8_t perm[TILE_MAX_RANK];                       /* trans */
    int32_t row;                                       /* shared */
};

/* Finds an equal layout of the function or adds this one (with its name made unique; a layout
 * without a name gets that of its kind). So equal layouts of a function have equal numbers. */
uint16_t layout_add(ir_fn *fn, ir_layout lay);
uint16_t layout_find(const ir_fn *fn, const ir_layout *lay); /* 0 when there is none */
uint16_t layout_blocked(ir_fn *fn, int rank, const int32_t *regs, const int32_t *lanes,
                        const int32_t *warps, const int *order);
uint16_t layout_mma(ir_fn *fn, int warps_m, int warps_n);
uint16_t layout_mma_a(ir_fn *fn, int warps_m, int warps_n);
uint16_t layout_slice(ir_fn *fn, uint16_t parent, int dim);
/* rank entries of perm. Of a trans: composed; one that changes nothing: the parent itself. */
uint16_t layout_trans(ir_fn *fn, uint16_t parent, int rank, const int *perm);
/* What layout_trans would give, when the function has it; else 0. */
uint16_t layout_trans_of(const ir_fn *fn, uint16_t parent, int rank, const int *perm);
uint16_t layout_lanes(ir_fn *fn, uint16_t parent, int dim);
uint16_t layout_shared(ir_fn *fn, int row);
bool layout_is_shared(const ir_fn *fn, uint16_t lay); /* itself or what it is a trans of */

/* The parent of a slice that was made by layout_slice(fn, parent, dim); 0 when it was not. */
uint16_t layout_slice_of(const ir_fn *fn, uint16_t lay, int dim);

/* ---- the map of a distributed layout ---- */
enum layout_place { PLACE_REGISTER, PLACE_LANE, PLACE_WARP };
typedef struct layout_digit {
    uint8_t place; /* enum layout_place */
    int8_t dim;    /* -1: copies */
    int32_t extent, stride;
} layout_digit;
#define LAYOUT_MAX_DIGITS 32
typedef struct layout_map {
    int rank, warps; /* warps of the group that executes: fn->warps, or its role's */
    int32_t shape[TILE_MAX_RANK];
    int n;
    layout_digit digit[LAYOUT_MAX_DIGITS];
} layout_map;

/* False, with a reason, when the layout does not fit the tile's extents or the number of warps. */
bool layout_map_of(const ir_fn *fn, ir_type tile, int warps, layout_map *map, const char **why);
/* The same with another layout than the tile's, which need not be in the table. */
bool layout_map_with(const ir_fn *fn, ir_type tile, const ir_layout *lay, int warps,
                     layout_map *map, const char **why);
int layout_registers(const layout_map *map); /* elements a thread holds, with copies in it */
void layout_element(const layout_map *map, int reg, int lane, int warp, int32_t *index);
/* The value of one digit in the number of its place. */
int layout_digit_value(const layout_map *map, int digit, int number);
/* How many warps the layout tells apart: a group that uses it has a multiple of them. */
int layout_own_warps(const ir_fn *fn, uint16_t lay);
/* The map without dimension dim, as of a slice; that of trans, in place. */
void layout_map_drop(layout_map *map, int dim);
void layout_map_permute(layout_map *map, const int64_t *perm);
/* Do both maps give each thread the same elements? Then reg_of[r] (may be NULL, LAYOUT_registers
 * entries) is the register of `from` that holds what register r of `to` holds: free. */
bool layout_same_threads(const layout_map *from, const layout_map *to, int *reg_of);
/* Does each warp need, for `to`, only elements that it holds in `from`? Then no barrier of the
 * block is needed to convert. */
bool layout_same_warps(const layout_map *from, const layout_map *to);
/* Over how many lanes, over how many warps dimension dim is split; 1: not at all. */
int layout_lanes_along(const layout_map *map, int dim);
int layout_warps_along(const layout_map *map, int dim);
/* How many consecutive elements of dimension dim a thread holds in consecutive registers. */
int layout_contiguous(const layout_map *map, int dim);

/* ---- shared memory ---- */
#define SHARED_MAX_BYTES (1 << 20) /* far above what any GPU has */
/* False, with a reason, when the layout is none of shared memory or does not fit the buffer. */
bool layout_fits_buffer(const ir_fn *fn, ir_type buffer, const char **why);
/* Byte offset of an element within a slot of the buffer type. */
int64_t layout_shared_offset(const ir_fn *fn, ir_type buffer, const int32_t *index);
int64_t layout_slot_bytes(const ir_fn *fn, ir_type buffer);
/* The widest row for a last dimension of so many bytes: 128, 64, 32, 16, or 0. */
int layout_shared_row(int64_t bytes);

/* "#acc = mma(warps=[4, 1])"; the second form with names of its own. */
void layout_print(strbuf *b, const ir_fn *fn, uint16_t lay);
void layout_print_as(strbuf *b, const ir_layout *lay, const char *name, const char *parent);
/* False, with a reason, when the numbers of a layout make no sense. */
bool layout_is_sound(const ir_fn *fn, const ir_layout *lay, const char **why);

#endif
