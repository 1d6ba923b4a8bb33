/* Asserts that fail on a real GPU, of cuda_proof: who is told, once, and with which values. */
#include "tests/gpu/cuda_proof.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Every block of a launch fails at once: what is told is of one of them. */
static void prove_many_asserts(tw_kernel *k)
{
    int mixed = 0;

    for (int i = 0; i < 20; i++) {
        int triple = -1, less = -1, program = -1;
        must(launch(k, NULL), "assert");
        tw_status st = tw_stream_sync(dev, NULL);
        const char *values = strstr(said(), "negative: ");
        mixed += st != TW_E_ASSERT || !values ||
                 sscanf(values, "negative: %d, %d, in program %d, 0, 0", &triple, &less,
                        &program) != 3 ||
                 triple != 3 * program || less != 1000000 - program;
    }
    row("asserts of all blocks at once", mixed == 0,
        "20 launches of %d blocks, %d told a mixture; %s", N / 128, mixed, said());
}

void prove_asserts(void)
{
    tw_kernel *k = kernel(&proof_assert);
    const float bad = -1.0f, good = 1.0f;

    must(tw_memory_copy(dev, x, &bad, sizeof bad, TW_COPY_TO_DEVICE, NULL), "copy");
    tw_status queued = launch(k, NULL), waited = tw_stream_sync(dev, NULL);
    char text[120];
    snprintf(text, sizeof text, "%s", said());
    prove_many_asserts(k);
    must(launch(k, NULL), "assert");
    usleep(100000);
    tw_status next = launch(k, NULL);
    must(tw_memory_copy(dev, x, &good, sizeof good, TW_COPY_TO_DEVICE, NULL), "copy");
    tw_status after = launch(k, NULL), last = tw_stream_sync(dev, NULL);
    row("asserts",
        queued == TW_OK && waited == TW_E_ASSERT && next == TW_E_ASSERT && after == TW_OK &&
            last == TW_OK,
        "by a wait: %s; by the next launch: %s", text, tw_status_name(next));
    tw_kernel_destroy(k);
}

/* ---- a checked kernel ------------------------------------------------------------------------ */

enum { FEW = 64, PROGRAMS = 4096 };
static const char *const gather = "kernel gather(x: f32[N], out y: f32[M])\n"
                                  "grid (M)\n"
                                  "{\n"
                                  "    store(y[program_id(0)], load(x[program_id(0) + 3]));\n"
                                  "}\n";

/* The programs from FEW - 3 on read behind the end; the report is that of one of them. */
static bool is_right(tw_status st)
{
    const char *values = strstr(said(), "assert failed: ");
    int index = -1, extent = -1, line = -1, program = -1;

    return st == TW_E_ASSERT && values &&
           sscanf(values,
                  "assert failed: index %d of dimension 0 of 'x' is outside of its extent of %d "
                  "(gather.tw:%d), in program %d, 0, 0",
                  &index, &extent, &line, &program) == 4 &&
           index == program + 3 && extent == FEW && line == 4 && index >= FEW;
}

static void report_rounds(tw_device *own, tw_kernel *k)
{
    int64_t few = FEW, many = PROGRAMS;
    DLTensor from = {x, {kDLCUDA, cuda_of(own)->ordinal}, 1, {kDLFloat, 32, 1}, &few, NULL, 0};
    DLTensor to = from;
    int right = 0;

    to.shape = &many;
    to.data = (float *)x + FEW;
    const tw_arg args[] = {TW_TENSOR("x", &from), TW_TENSOR("y", &to)};
    for (int i = 0; i < 20; i++) {
        must(tw_launch(k, own, NULL, args, 2), "a checked kernel");
        right += is_right(tw_stream_sync(own, NULL));
    }
    row("a checked kernel", right == 20, "%d of 20 reports are right: %s", right, said());
}

void prove_checked_kernel(void)
{
    tw_context *cx;
    tw_device *own;
    tw_kernel *k;

    cuda_test_target = NULL;
    must(tw_context_create(NULL, &cx), "context");
    must(tw_device_open(cx, spec, &own), "device");
    must(tw_kernel_load_text(cx, "gather.tw", gather, strlen(gather), NULL, &k), "text");
    must(tw_kernel_set_checked(k), "checked");
    report_rounds(own, k);
    tw_kernel_destroy(k);
    tw_device_close(own);
    tw_context_destroy(cx);
    cuda_test_target = &proof_target;
}
