/* Runs code of the nvptx targets on an NVIDIA GPU, through the CUDA driver. Launches are queued on
 * the caller's stream, which is a CUstream (NULL: the default one). */
#include "runtime/cuda/cuda_device.h"

const driver cuda_driver = {
    .name = "cuda",
    .family = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .runs = cuda_runs,
    .reaches = cuda_reaches,
    .check_memory = cuda_check_memory,
    .finish = cuda_finish,
    .load = cuda_load,
    .unload = cuda_unload,
    .ready = cuda_ready,
    .lost = cuda_lost,
    .launch = cuda_launch,
    .sync = cuda_sync,
    .capturing = cuda_capturing,
    .assert_record = cuda_assert_record,
    .alloc = cuda_alloc,
    .release = cuda_release,
    .copy = cuda_copy,
    .clear = cuda_clear,
    .scratch_take = cuda_scratch_take,
    .scratch_give = cuda_scratch_give,
    .flush = cuda_flush,
    .flush_end = cuda_flush_end,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_seconds = cuda_event_seconds,
};
