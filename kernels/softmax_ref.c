#include "kernels/kernel_refs.h"
#include <math.h>

static void softmax_row(const float *x, int64_t n, int64_t stride, double *y)
{
    double max = -INFINITY, sum = 0.0;

    for (int64_t j = 0; j < n; j++) {
        double v = x[j * stride];

        max = isnan(v) || v > max ? v : max;
        if (isnan(max))
            break;
    }
    for (int64_t j = 0; j < n; j++) {
        y[j] = max == -INFINITY ? 0.0 : exp(x[j * stride] - max);
        sum += y[j];
    }
    for (int64_t j = 0; j < n && sum != 0.0; j++)
        y[j] /= sum;
}

void softmax_ref(const ref_tensor *x, double *y)
{
    for (int64_t i = 0; i < x->extent[0]; i++, y += x->extent[1])
        softmax_row(x->at + i * x->stride[0], x->extent[1], x->stride[1], y);
}
