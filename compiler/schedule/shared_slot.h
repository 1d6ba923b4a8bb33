#ifndef TW_SCHEDULE_SHARED_SLOT_H
#define TW_SCHEDULE_SHARED_SLOT_H
/* Buffers in shared memory for whole tiles. */
#include "compiler/ir/irbuild.h"

/* The one slot of a new buffer for a tile. */
ir_val new_shared_slot(ir_builder *b, ir_type tile, uint16_t layout);
/* Gives a buffer more slots. */
void set_shared_slots(ir_fn *fn, ir_val buffer, int slots);
/* In both, a buffer that no GPU's shared memory holds ends the schedule with TW_E_LIMIT. */

#endif
