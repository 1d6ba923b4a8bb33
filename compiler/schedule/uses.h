#ifndef TW_SCHEDULE_USES_H
#define TW_SCHEDULE_USES_H
/* Who uses each value of a function, as of one moment. */
#include "compiler/ir/ir.h"

typedef struct use {
    ir_op *op;
    int arg;
} use;
typedef struct uses {
    uint32_t nvals;
    uint32_t *first; /* nvals + 1 entries into at; values in text order of their uses */
    use *at;
} uses;

uses uses_of(arena *a, const ir_fn *fn);
#define EACH_USE(u, all, v) \
    (const use *u = (all)->at + (all)->first[v]; u < (all)->at + (all)->first[(v) + 1]; u++)

#endif
