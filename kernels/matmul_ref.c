#include "kernels/kernel_refs.h"

void matmul_ref(const ref_tensor *a, const ref_tensor *b, double *c)
{
    for (int64_t i = 0; i < a->extent[0]; i++)
        for (int64_t j = 0; j < b->extent[1]; j++) {
            double sum = 0.0;

            for (int64_t k = 0; k < a->extent[1]; k++)
                sum += (double)a->at[i * a->stride[0] + k * a->stride[1]] *
                       (double)b->at[k * b->stride[0] + j * b->stride[1]];
            *c++ = sum;
        }
}
