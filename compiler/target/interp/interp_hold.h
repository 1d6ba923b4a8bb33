#ifndef TW_TARGET_INTERP_HOLD_H
#define TW_TARGET_INTERP_HOLD_H
/* Which elements of a tile each warp holds. What a warp holds is a product of one list of indices
 * for each dimension, so a warp runs an op of a tile as that of a smaller tile: level 2 in a warp
 * is level 1 on what the warp holds. */
#include "compiler/ir/layout.h"

#define HOLD_MANY 32 /* instead of a lane: several, or nobody knows which */

typedef struct interp_hold {
    int rank, first, warps; /* the group: warps first .. first + warps - 1 of the block */
    int32_t n[TILE_MAX_RANK];        /* how many indices */
    int32_t *at[TILE_MAX_RANK];      /* ascending, of a warp that does not move the dimension */
    uint8_t *lane[TILE_MAX_RANK];    /* what each index adds to the number of the lane */
    int32_t (*move)[TILE_MAX_RANK];  /* by warp of the group: what it adds to the indices */
    bool *acts;                      /* by warp of the group: are its copies the first ones? */
    bool lane_copies;                /* several lanes hold the same */
    bool warp_copies;                /* several warps hold the same */
} interp_hold;

/* Of a verified tile in a group of warps. */
interp_hold *interp_hold_new(arena *a, const ir_fn *fn, ir_type tile, int first, int warps);

#endif
