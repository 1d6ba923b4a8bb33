#ifndef TW_TESTS_MATH_RIG_H
#define TW_TESTS_MATH_RIG_H
/* One elementwise operation of floats on the code paths of the CPU, over arrays that end at pages
 * which fault. */
#include "compiler/target/target.h"

enum { MATH_BLOCK = 1024 }; /* elements of a program */

typedef struct math_rig {
    enum ir_opcode code;
    enum dtype t; /* f32 or f64 */
    int nargs;
    int64_t n; /* elements: whole blocks */
    void *arg[3], *out;
} math_rig;

/* Arrays for arguments and results. */
void math_rig_open(math_rig *r, enum dtype t, int nargs, int64_t n);
void math_rig_close(math_rig *r);
void math_rig_put(math_rig *r, int arg, int64_t i, double v);
double math_rig_get(const math_rig *r, int64_t i);

/* out = code(args), as tiles; scalar: of the first element of each block, as a scalar. Fails the
 * test when that cannot be. */
void math_rig_run(const math_rig *r, const target *on, bool scalar);

/* The i-th code path that this machine can run; NULL after the last. */
const target *math_rig_path(size_t i);

/* How far got is from want, in units of the last place of want as t; 0 for equal infinities and
 * NaN. */
double math_rig_error(enum dtype t, long double want, double got);

#endif
