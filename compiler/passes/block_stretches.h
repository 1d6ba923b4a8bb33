#ifndef TW_PASSES_BLOCK_STRETCHES_H
#define TW_PASSES_BLOCK_STRETCHES_H
/* For which blocks i of a loop from 0 to n a condition holds, without running it.
 *
 * Conditions join by and, or, not and where comparisons of integers which are linear in i (facts.h:
 * nothing wraps) or do not depend on it. minimum, maximum and division by a constant may stand
 * between. Each comparison holds on a stretch of blocks; a condition is the union of at most
 * STRETCHES of them. What is built stands in front of the loop, in i64, where nothing wraps. */
#include "compiler/ir/irbuild.h"
#include "compiler/passes/facts_core.h"
#include "compiler/passes/rename.h"

enum { STRETCHES = 4 };

/* Blocks lo <= i < hi, in i64, 0 <= lo and hi <= n; 0: from the first, to the last. */
typedef struct stretch {
    ir_val lo, hi;
} stretch;
/* Blocks that lie in one of them. */
typedef struct stretches {
    int n;
    stretch at[STRETCHES];
} stretches;

typedef struct solving {
    ir_fn *fn;
    const facts *f;
    uint32_t nvalues; /* that f knows of */
    arena *a;
    ir_op *loop;             /* the one at hand */
    ir_builder b;            /* in front of it */
    ir_val counter, n, zero; /* n, zero: i64 */
    renames first;           /* values of the loop -> what they are in its first turn */
    int budget;              /* of steps: operands may be shared, so a walk of them may not end */
} solving;

/* Where all of the loop's i1 scalars c[n] hold. False: not to be said, and what was built is of no
 * use. */
bool stretches_solve(solving *s, const ir_val *c, int n, stretches *out);
/* The first block of x, or n. These are i64. */
ir_val stretches_first(solving *s, const stretches *x);
/* Behind the last block of x, or 0. */
ir_val stretches_behind_last(solving *s, const stretches *x);
/* Behind the first run of blocks of x, or 0. */
ir_val stretches_end_of_run(solving *s, const stretches *x);

#endif
