#ifndef TW_SCHEDULE_SLOT_READERS_H
#define TW_SCHEDULE_SLOT_READERS_H
#include "compiler/ir/ir.h"

/* The first (last) op of the block that reads the slot or a view of it, itself or inside of it;
 * NULL when none does. */
ir_op *first_reader(const ir_fn *fn, const ir_block *blk, ir_val slot);
ir_op *last_reader(const ir_fn *fn, const ir_block *blk, ir_val slot);

#endif
