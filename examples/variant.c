/* A variant of attention from C: a batch of two texts of different lengths, padded to one, in one
 * call. kernels/variants has it as five lines of text; a mask of rows and columns alone needs no
 * file. */
#include "tilewright.h"
#include <math.h>
#include <stdio.h>

enum { BATCH = 2, HEADS = 4, ROWS = 96, DIM = 32 };

static float q[BATCH][HEADS][ROWS][DIM], k[BATCH][HEADS][ROWS][DIM], v[BATCH][HEADS][ROWS][DIM];
static float o[BATCH][HEADS][ROWS][DIM], lse[BATCH][HEADS][ROWS];
static int32_t lengths[BATCH] = {96, 7};
static int64_t shape[] = {BATCH, HEADS, ROWS, DIM}, batch[] = {BATCH};

#define TENSOR(at, rank) (DLTensor[1]){{at, {kDLCPU, 0}, rank, {kDLFloat, 32, 1}, shape, NULL, 0}}
#define LENGTHS (DLTensor[1]){{lengths, {kDLCPU, 0}, 1, {kDLInt, 32, 1}, batch, NULL, 0}}
#define TENSORS                                                                                    \
    TW_TENSOR("q", TENSOR(q, 4)), TW_TENSOR("k", TENSOR(k, 4)), TW_TENSOR("v", TENSOR(v, 4)),      \
        TW_TENSOR("o", TENSOR(o, 4)), TW_TENSOR("lse", TENSOR(lse, 3))

/* q = 0 makes all scores 0: a row that sees n keys has lse = log(n). What lies beyond a text's end
 * is never looked at, so it may be anything. */
static void fill(void)
{
    for (int b = 0; b < BATCH; b++)
        for (int h = 0; h < HEADS; h++)
            for (int i = 0; i < ROWS; i++)
                for (int d = 0; d < DIM; d++)
                    k[b][h][i][d] = v[b][h][i][d] = i < lengths[b] ? 1.0f : (float)NAN;
}

static int run(tw_context *cx, tw_device *device, const char *path, const tw_arg *args, size_t n)
{
    tw_kernel *kernel;

    if (tw_kernel_load(cx, path, NULL, &kernel))
        return 1;
    int failed = tw_launch(kernel, device, NULL, args, n) != TW_OK;
    tw_kernel_destroy(kernel);
    return failed;
}

static int differs(float got, double want)
{
    return !(fabs((double)got - want) <= 1e-5);
}

int main(void)
{
    tw_arg padded[] = {TENSORS, TW_TENSOR("lengths", LENGTHS)};
    tw_arg newest[] = {TENSORS, TW_TEXT("visible", "row - col < 3"), TW_BOOL("CAUSAL", true)};
    tw_context *cx = NULL;
    tw_device *device;

    fill();
    if (tw_context_create(NULL, &cx) || tw_device_open(cx, "cpu", &device) ||
        run(cx, device, "kernels/variants/attention_padded.tw", padded, 6))
        return fprintf(stderr, "%s\n", tw_last_error()->text), 1;
    printf("text 1 has 7 tokens: lse = %g, log(7) = %g\n", (double)lse[1][3][95], log(7.0));
    if (differs(lse[0][0][0], log(96.0)) || differs(lse[1][3][95], log(7.0)) ||
        o[1][0][0][0] != 1.0f)
        return 1;

    lengths[1] = ROWS;
    fill();
    if (run(cx, device, "kernels/attention_fwd.tw", newest, 7))
        return fprintf(stderr, "%s\n", tw_last_error()->text), 1;
    printf("a row sees its three newest keys: lse = %g, log(3) = %g\n", (double)lse[1][0][50],
           log(3.0));
    tw_device_close(device);
    tw_context_destroy(cx);
    return differs(lse[1][0][50], log(3.0)) || differs(lse[1][0][1], log(2.0));
}
