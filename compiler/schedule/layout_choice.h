#ifndef TW_SCHEDULE_LAYOUT_CHOICE_H
#define TW_SCHEDULE_LAYOUT_CHOICE_H
/* Which layout suits a tile, from its shape and what is done with it. */
#include "compiler/ir/layout.h"

/* The last dimension fastest, up to 16 bytes a thread. */
uint16_t choose_default(ir_fn *fn, ir_type tile, int whole);
/* For a load or store of so many consecutive elements along tile dimension fast (-1: none). */
uint16_t choose_access(ir_fn *fn, ir_type tile, int fast, int consecutive);
/* For a store in pieces of so many bytes along dimension 1 of what has the layout mma(warps=[wm,
 * wn]): each warp has the rows that it has there, so that the way from one to the other needs no
 * barrier of the block when wn is 1. 0 when the extents do not allow it. */
uint16_t choose_beside_mma(ir_fn *fn, ir_type tile, int wm, int wn, int bytes);
/* For the accumulator of a dot in FMA. */
uint16_t choose_fma(ir_fn *fn, ir_type acc);

#endif
