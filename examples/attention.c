#include "tilewright.h"
#include <stdio.h>

#define TENSOR(at, rank)                                                                           \
    {                                                                                              \
        (at), {kDLCPU, 0}, (rank), {kDLFloat, 32, 1}, shape, NULL, 0                               \
    }

static float q[8][512][64], k[8][512][64], v[8][512][64], o[8][512][64], lse[8][512];
static int64_t shape[] = {1, 8, 512, 64}; /* batch, heads, rows, head dimension */

int main(void)
{
    DLTensor tq = TENSOR(q, 4), tk = TENSOR(k, 4), tv = TENSOR(v, 4);
    DLTensor to = TENSOR(o, 4), tlse = TENSOR(lse, 3);
    tw_arg args[] = {TW_TENSOR("q", &tq), TW_TENSOR("k", &tk),     TW_TENSOR("v", &tv),
                     TW_TENSOR("o", &to), TW_TENSOR("lse", &tlse), TW_BOOL("CAUSAL", true)};
    tw_context *cx;
    tw_device *device;
    tw_kernel *kernel;

    if (tw_context_create(NULL, &cx) || tw_device_open(cx, "auto", &device) ||
        tw_kernel_load(cx, "kernels/attention_fwd.tw", NULL, &kernel) ||
        tw_launch(kernel, device, NULL, args, 6)) {
        fprintf(stderr, "%s\n", tw_last_error()->text);
        return 1;
    }
    printf("the last row of head 0 sees 512 keys: lse = %g\n", (double)lse[0][511]);
    tw_kernel_destroy(kernel);
    tw_device_close(device);
    tw_context_destroy(cx);
    return 0;
}
