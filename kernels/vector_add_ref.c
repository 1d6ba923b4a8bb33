#include "kernels/kernel_refs.h"

void vector_add_ref(const ref_tensor *a, const ref_tensor *b, double *c)
{
    for (int64_t i = 0; i < a->extent[0]; i++)
        c[i] = (double)a->at[i * a->stride[0]] + (double)b->at[i * b->stride[0]];
}
