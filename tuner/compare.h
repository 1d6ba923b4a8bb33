#ifndef TW_TUNER_COMPARE_H
#define TW_TUNER_COMPARE_H
/* Results of two configurations side by side, element by element. The order of additions inside a
 * dot or a sum is free, so floats may differ by a tolerance of their dtype: relative to the element
 * or, for small ones, to the root mean square of the tensor or of the elements beside it in its row
 * (the last dimension), whichever is larger: the first rows of causal attention are a hundred times
 * as large as the last. Integers, infinities and NaN (as such) must agree. */
#include "compiler/ir/type.h"

typedef struct compare_view {
    enum dtype dtype;
    int rank;
    const int64_t *extent, *stride; /* in elements */
} compare_view;

typedef struct mismatch {
    bool found;
    int64_t index[VIEW_MAX_RANK];
    double got, want;
} mismatch;

/* got, want: the address of element 0 in each. initial (may be NULL): only elements whose bits in
 * want differ from those in initial are compared. *compared (may be NULL): how many were. */
void compare_views(const compare_view *v, const void *got, const void *want, const void *initial,
                   mismatch *out, int64_t *compared);
double compare_tolerance(enum dtype t);
/* The value of one element. */
double element_value(enum dtype t, const void *p);

#endif
