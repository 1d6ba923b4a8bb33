#ifndef TW_SCHEDULE_SEGMENTS_H
#define TW_SCHEDULE_SEGMENTS_H
/* Where an iteration so many ahead is in a chain of loops, as scalar IR. */
#include "compiler/schedule/loop_copies.h"

enum { MAX_SEGMENTS = 16 };

typedef struct loop_chain {
    uint32_t n;
    loop_copies *at; /* one a loop, in order */
} loop_chain;

/* The iteration is in the first loop k from `first` on whose in[k] holds, with this counter; in
 * none when none does. */
typedef struct ahead {
    uint32_t first;
    ir_val in[MAX_SEGMENTS], counter[MAX_SEGMENTS];
} ahead;

/* The iteration `distance` ahead of the one of loop number seg whose counter is `counter`. */
ahead segments_ahead(ir_builder *b, const loop_chain *c, uint32_t seg, ir_val counter,
                     int distance);
/* The same ahead of the chain's first iteration, which need not exist. */
ahead segments_from_start(ir_builder *b, const loop_chain *c, int distance);
/* Does that iteration exist, and does it copy anything? */
ir_val segments_copies(ir_builder *b, const loop_chain *c, const ahead *at);
/* Its operand number arg of copy number i. */
ir_val segments_operand(ir_builder *b, const loop_chain *c, const ahead *at, uint32_t i, int arg);

#endif
