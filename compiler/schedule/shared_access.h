#ifndef TW_SCHEDULE_SHARED_ACCESS_H
#define TW_SCHEDULE_SHARED_ACCESS_H
/* Which operations touch which memory that threads share: buffers, and tensors that are written. */
#include "compiler/ir/ir.h"

enum access_kind { ACCESS_READ = 1, ACCESS_WRITE = 2 };

typedef struct shared_access {
    ir_op *op;
    ir_op *alloc;     /* of a buffer; NULL: a tensor */
    ir_val view;      /* the tensor */
    ir_val slot;      /* the operand that names the slot */
    ir_val tile;      /* what is written or read, as a value; 0: no tile of threads' own */
    bool left;        /* of an mma, whose result is `tile`: a warp reads the rows it has of that */
    unsigned kind;    /* enum access_kind, or-ed */
} shared_access;

typedef struct shared_accesses {
    const ir_fn *fn;
    arena *a;
    VEC(shared_access) at;  /* in text order */
    VEC(ir_op *) allocs;
} shared_accesses;

/* op->mark of each op becomes 1 + the number of its first access, or 0. */
shared_accesses shared_accesses_of(arena *a, const ir_fn *fn);
/* The alloc behind a buffer value. */
ir_op *alloc_of(const ir_fn *fn, ir_val buffer);

#endif
