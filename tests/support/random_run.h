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
/* TW_OK; TW_E_LIMIT when the library says that it is too large; of a checked kernel also
 * TW_E_ASSERT. Anything else fails the test. */
tw_status random_run(num_device *d, const char *text, bool checked, random_tensors *t);
/* The same on the oracle and on d. False, and why is said, when they do not agree. *ran: there are
 * results. A kernel whose asserts hold gives what it gives without them. */
bool random_compare(num_device *oracle, num_device *d, uint64_t seed, bool checked, bool *ran);
/* a: the interpreter's. */
bool random_agree(const random_tensors *a, const random_tensors *b, const char *label,
                  uint64_t seed, const char *text);

#endif
