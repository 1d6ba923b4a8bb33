#ifndef TW_NUMERIC_DTYPE_H
#define TW_NUMERIC_DTYPE_H
/* Elements of each dtype, for tests: computed in 128 bits or in double, sharing nothing with the
 * compiler. */
#include "tests/support/numeric_case.h"

__extension__ typedef __int128 num_wide;

typedef struct num_dtype {
    const char *name;
    uint8_t code; /* DLPack's */
    int bits;
    bool is_float, is_signed;
    int mantissa, least_exponent; /* floats: bits after the point; of the least normal number */
} num_dtype;

enum { NUM_DTYPES = 12 };
extern const num_dtype num_dtypes[NUM_DTYPES]; /* all but i1 */
const num_dtype *num_dtype_named(const char *name);

typedef union num_value {
    num_wide i;
    double f;
} num_value;

num_wide num_wrap(const num_dtype *t, num_wide v);
/* To the nearest value of t, ties to even. */
double num_round(const num_dtype *t, double x);
/* Element i of a dense run. */
void num_put(const num_dtype *t, void *base, int64_t i, num_value v);
num_value num_get(const num_dtype *t, const void *base, int64_t i);

DLTensor num_vector(const num_dtype *t, void *at, int64_t *n);
/* Loads and launches a text. False where a code path has no such operation yet, or a GPU no room
 * for its tiles, be it with 16 warps; aborts the test on any other failure. */
bool num_run_text(num_device *d, const char *source, const tw_arg *args, size_t n);

#endif
