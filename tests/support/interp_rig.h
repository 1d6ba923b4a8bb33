#ifndef TW_TESTS_INTERP_RIG_H
#define TW_TESTS_INTERP_RIG_H
/* Kernels built op by op and run by the interpreter, for tests of it. */
#include "compiler/ir/irbuild.h"
#include "compiler/target/interp/interp.h"

/* A kernel of up to four tensor parameters, built op by op, and the arguments of its launch. */
typedef struct rig {
    arena a;
    intern names;
    ir_module *m;
    ir_fn *fn;
    ir_builder b;
    interp_arg arg[4];
    interp_launch launch;
    interp_fault fault;
} rig;

void irig_open(rig *r);
int irig_tensor(rig *r, enum dtype t, int rank);
void irig_begin(rig *r);
/* Contiguous storage for parameter p. */
void irig_bind(rig *r, int p, void *base, int rank, const int64_t *extent);
tw_status irig_run(rig *r);
void irig_close(rig *r);
ir_val irig_i32(rig *r, int64_t v);
ir_val irig_f32(rig *r, double v);
/* A kernel that ends with storing a value of n elements (or a scalar, n = 0) in parameter 0. */
void irig_store(rig *r, ir_val v, int32_t n);

#endif
