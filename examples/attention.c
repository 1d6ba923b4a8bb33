#include "tilewright.h"
#include <stdio.h>

static float q[8][512][64], k[8][512][64], v[8][512][64], o[8][512][64], lse[8][512];
static int64_t shape[] = {1, 8, 512, 64}; /* batch, heads, rows, head dimension */
#define TENSOR(at, rank) (DLTensor[1]){{at, {kDLCPU, 0}, rank, {kDLFloat, 32, 1}, shape, NULL, 0}}

int main(void)
{
    tw_context *cx = NULL;
    tw_device *device;
    tw_kernel *kernel;
    tw_arg args[] = {TW_TENSOR("q", TENSOR(q, 4)), TW_TENSOR("k", TENSOR(k, 4)),
                     TW_TENSOR("v", TENSOR(v, 4)), TW_TENSOR("o", TENSOR(o, 4)),
                     TW_TENSOR("lse", TENSOR(lse, 3)), TW_BOOL("CAUSAL", true)};
    if (tw_context_create(NULL, &cx) || tw_device_open(cx, "cpu", &device) ||
        tw_kernel_load(cx, "kernels/attention_fwd.tw", NULL, &kernel) ||
        tw_launch(kernel, device, NULL, args, 6))
        return fprintf(stderr, "%s\n", tw_last_error()->text), 1;
    tw_kernel_destroy(kernel);
    tw_device_close(device);
    tw_context_destroy(cx);
    printf("the last row of head 0 sees 512 keys: lse = %g\n", (double)lse[0][511]);
}
