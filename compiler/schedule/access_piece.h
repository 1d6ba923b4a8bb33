#ifndef TW_SCHEDULE_ACCESS_PIECE_H
#define TW_SCHEDULE_ACCESS_PIECE_H
#include "compiler/schedule/schedule_pass.h"

/* The bytes (16, 8, ... down to an element's) in which the tile that a load, store or atomic op
 * moves can be moved along the last dimension of its view: memory is contiguous along it, every
 * piece is aligned, and pieces divide the tile's rows. 0 when memory is not contiguous along a
 * dimension of the tile. Facts are about level 1: s->facts may be NULL, and then nothing is
 * known of indices. */
int access_piece(const schedule *s, const ir_fn *fn, const ir_op *op, ir_type tile);
/* The same for asynchronous copies: only of loads of `in` tensors at scalar indices, and only 16, 8
 * and 4 bytes; else 0. */
int copy_piece(const schedule *s, const ir_fn *fn, const ir_op *load);

#endif
