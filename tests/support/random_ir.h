#ifndef TW_TESTS_RANDOM_IR_H
#define TW_TESTS_RANDOM_IR_H
/* Random modules of level-1 IR, and the memory that stands behind their arguments.
 *
 * All floats are small integers, and what could leave them is brought back, so that every sum is
 * exact in any order and the results of two targets must be equal. */
#include "compiler/ir/irbuild.h"
#include "compiler/target/interp/interp.h"

enum { TENSORS = 13, SCALARS = 3, MAX_POOL = 256, MAX_DIMS = 40 };

typedef struct random_tensor {
    enum dtype dtype;
    int rank;
    enum ir_direction direction;
    int64_t stride[3], extent[3];
    size_t bytes; /* of the whole buffer */
    bool at_start;
} random_tensor;

typedef struct random_ir {
    uint64_t state;
    arena a;
    intern names;
    diag_list diags;
    ir_module *m;
    ir_builder b;
    random_tensor t[TENSORS];
    int32_t extent[4]; /* of tiles */
    int64_t dim[MAX_DIMS];
    ir_val pool[MAX_POOL];
    double bound[MAX_POOL]; /* of floats: largest magnitude */
    int npool, depth, statements;
    interp_arg arg[TENSORS + SCALARS + MAX_DIMS];
    int64_t grid[3];
} random_ir;

/* g: state is the seed; arena, names and diagnostics are ready. Fills m, t and dim. */
void random_ir_make(random_ir *g);
void random_ir_fill(random_ir *g, int tensor, unsigned char *memory);
uint32_t random_ir_below(random_ir *g, uint32_t n);

#endif
