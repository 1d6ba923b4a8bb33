#ifndef TW_SCHEDULE_TIED_DIMS_H
#define TW_SCHEDULE_TIED_DIMS_H
/* Which dimensions of a kernel's tiles (level 1) have one extent because operations say so: the
 * columns of q, of k, and of what is computed from them elementwise, also around loops. A class may
 * be given a larger extent, all of it at once, unless an operation would show what is added:
 *
 *   may grow: loads, stores and atomics of a dimension up to its end (what is outside reads as 0
 *   and is not written), elementwise operations, dots, scans; a reduction whose neutral element is
 *   known takes it there
 *   stops it: a slice of part of a dimension, a tile of indices, reshape, print, a reduction by a
 *   function of the text */
#include "compiler/ir/ir.h"

typedef struct tied_stop {
    const char *why; /* NULL: nothing stops it */
    const ir_op *op;
} tied_stop;

typedef struct tied_dims {
    const ir_fn *fn;
    uint32_t n;       /* nodes: a dimension of a value each */
    uint32_t *parent; /* by node; a class is a node that is its own */
    tied_stop *stop;  /* by class */
} tied_dims;

tied_dims tied_dims_of(arena *a, const ir_fn *fn);
/* Of dimension d of tile v, which was there when they were tied. */
uint32_t tied_class(const tied_dims *t, ir_val v, int d);

#endif
