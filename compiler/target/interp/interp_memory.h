#ifndef TW_TARGET_INTERP_MEMORY_H
#define TW_TARGET_INTERP_MEMORY_H
/* Accesses to tensors, and what level 2 asks of them: a warp takes its part, and accesses to what
 * is not `in` must be ordered. */
#include "compiler/target/interp/interp_block.h"

/* The part of a tensor that an access names, with leading extents of 1 up to rank 4. Elements
 * lo..hi - 1 of each extent are inside the tensor; where a tile gives the indices, those in 0..all
 * - 1 are. Offsets are unsigned: the one of a first element that is far outside may wrap, and comes
 * back when an element inside is counted from it. */
typedef struct slice {
    unsigned char *base;
    enum dtype dtype;
    bool outside;    /* an index that picks one element is outside: so is the whole slice */
    uint64_t offset; /* in bytes, of the first element */
    uint64_t stride[TILE_MAX_RANK];
    int64_t n[TILE_MAX_RANK], lo[TILE_MAX_RANK], hi[TILE_MAX_RANK];
    const ir_scalar *index[TILE_MAX_RANK]; /* a tile of indices, or NULL */
    int64_t all[TILE_MAX_RANK];

    /* level 2 */
    bool races;                        /* accesses must be ordered */
    race_op number;                    /* of the op */
    const interp_hold *hold;           /* n counts what the warp holds ... */
    const int32_t *held[TILE_MAX_RANK]; /* ... which are these indices */
    int32_t move[TILE_MAX_RANK];       /* and so much more, each */
} slice;


enum touch { TOUCH_READ, TOUCH_WRITE, TOUCH_ATOMIC };
/* Fails unless the access to the element at p, cell `cell` of the warp's part, is ordered. */
bool interp_touch_element(interp_agent *ag, const ir_op *op, const slice *s, int64_t cell,
                          const void *p, enum touch touch);
/* The result of an atomic op that several warps have: has another one done it? Else it is done and
 * kept for them. */
bool interp_has_result(interp_agent *ag, const ir_op *op);
bool interp_keep_result(interp_agent *ag, const ir_op *op);

#endif
