#ifndef TW_SCHEDULE_REDUCE_WARPS_H
#define TW_SCHEDULE_REDUCE_WARPS_H
#include "compiler/ir/irbuild.h"

/* What reduction op gives for v, whose axis is split over warps: each warp reduces what it has, the
 * few results go through a conversion, and every thread reduces those. 0 when v's layout is not
 * `blocked`, the ranks do not allow it, or op has a function of its own. */
ir_val reduce_over_warps(ir_builder *b, const ir_op *op, ir_val v);

#endif
