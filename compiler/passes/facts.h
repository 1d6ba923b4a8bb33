#ifndef TW_PASSES_FACTS_H
#define TW_PASSES_FACTS_H
/* What is known about integer values: ranges, linear forms and divisibility. Used by the passes
 * that prove slices in bounds and masks true, and by targets for vector width. Facts are about
 * level-1 IR at one moment: compute again after a change.
 *
 * A linear form is  c0 + sum ci * vi  over values that the analysis does not look into (parameters,
 * loop counters, loads). `a <= b` is proved by bounding b - a: terms cancel symbolically, what is
 * left is bounded by loop bounds (lo <= i < hi, and i = lo + k*step, so i + step <= hi holds when
 * step divides hi - lo), clamp/min/max, div/mul patterns (x / c * c <= x) and dimensions being >=
 * 0. */
#include "compiler/ir/ir.h"

typedef struct facts facts;
facts *facts_compute(arena *a, const ir_fn *fn);
/* Inclusive bounds of an integer scalar or of all elements of an integer tile. */
void facts_range(const facts *f, ir_val v, int64_t *lo, int64_t *hi);
/* Largest power of two known to divide v (a scalar, or a tile's first element); 1 = nothing. */
int64_t facts_divisor(const facts *f, ir_val v);
/* True only if x <= y is proved wherever `at` runs (scalars of one integer dtype). */
bool facts_le(const facts *f, ir_val x, ir_val y, const ir_op *at);
/* Do all n elements from the index on lie inside dimension d of the view that load or store
 * `access` goes to? */
bool facts_inside(const facts *f, const ir_op *access, int d, int64_t n);
/* 1: every element of the i1 value is proved true; 0: proved false; -1: unknown. */
int facts_truth(const facts *f, ir_val cond);

#endif
