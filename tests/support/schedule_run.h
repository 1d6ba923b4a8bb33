#ifndef TW_TESTS_SCHEDULE_RUN_H
#define TW_TESTS_SCHEDULE_RUN_H
/* One kernel on the interpreter, as tile IR of either level. */
#include "compiler/target/interp/interp.h"

enum { RUN_MAX_TENSORS = 16 };

typedef struct run_tensor {
    const char *name;
    enum dtype dtype;
    int rank;
    int64_t extent[4];
    void *data; /* row-major */
} run_tensor;

/* The tensors of a kernel, in any order; dimensions come from their extents, scalars are
 * defaults, but for one. */
typedef struct run_case {
    int n;
    run_tensor t[RUN_MAX_TENSORS];
    uint64_t seed;      /* see interp_launch */
    const char *scalar; /* an integer that is given, or NULL; kernels without it take no notice */
    int64_t value;
} run_case;

size_t run_elements(const run_tensor *t);
/* Fills with multiples of 1/8 from -range to range. */
void run_fill(run_tensor *t, uint64_t seed, double range);
void run_fill_whole(run_tensor *t, int range); /* whole numbers, from -range to range */
void run_poison(run_tensor *t); /* every byte 0xee */
double run_element(const run_tensor *t, size_t i);
/* Runs all programs. fault may be NULL. */
tw_status run_module(const ir_module *m, const run_case *c, interp_fault *fault);

#endif
