#ifndef TW_RANDOM_RUN_H
#define TW_RANDOM_RUN_H
/* A random kernel launched on a device, and two devices' results compared bit by bit. */
#include "tests/support/random_kernel.h"

enum { RANDOM_ROWS = 37, RANDOM_COLUMNS = 45 };
enum { RANDOM_CELLS = RANDOM_PROGRAMS * RANDOM_PLANES * RANDOM_EXTENT * RANDOM_EXTENT };

typedef struct random_tensors {
    float x[RANDOM_ROWS * RANDOM_COLUMNS], yf[RANDOM_CELLS];
    int32_t w[RANDOM_ROWS * RANDOM_COLUMNS], yi[RANDOM_CELLS];
} random_tensors;

void random_prepare(random_tensors *t, uint64_t seed);
/* True when the launch gave a result; false when the library says that it is too large. */
bool random_run(num_device *d, const char *text, random_tensors *t);
/* a: the interpreter's. */
bool random_agree(const random_tensors *a, const random_tensors *b, const char *label,
                  uint64_t seed, const char *text);

#endif
