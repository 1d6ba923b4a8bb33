#include "compiler/schedule/gpu.h"

/* CUDA C++ Programming Guide 13, "Compute Capabilities", tables "Technical Specifications per
 * Compute Capability"; registers are allocated in units of 256 a warp. Multiprocessors and L2
 * belong to a product, not to a capability. */
static const gpu_limits table[] = {
    {80, 166912, 167936, 1024, 65536, 255, 1024, 2048, 32, 0, 0},
    {86, 101376, 102400, 1024, 65536, 255, 1024, 1536, 16, 0, 0},
    {87, 166912, 167936, 1024, 65536, 255, 1024, 1536, 16, 0, 0},
    {89, 101376, 102400, 1024, 65536, 255, 1024, 1536, 24, 0, 0},
    {90, 232448, 233472, 1024, 65536, 255, 1024, 2048, 32, 0, 0},
    {100, 232448, 233472, 1024, 65536, 255, 1024, 2048, 32, 0, 0},
    {120, 101376, 102400, 1024, 65536, 255, 1024, 1536, 24, 0, 0},
};
enum { ROWS = sizeof table / sizeof *table, REGISTER_UNIT = 256, WARP = 32 };

gpu_limits gpu_limits_of(int capability)
{
    int best = 0;

    for (int i = 1; i < ROWS && table[i].capability <= capability; i++)
        best = i;
    return table[best];
}

static int least(int x, int y)
{
    return x < y ? x : y;
}

int gpu_blocks_per_sm(const gpu_limits *gpu, int threads, int registers, int32_t shared_bytes)
{
    int warps = (threads + WARP - 1) / WARP;
    int per_warp = (registers * WARP + REGISTER_UNIT - 1) / REGISTER_UNIT * REGISTER_UNIT;

    if (threads < 1 || threads > gpu->threads_per_block || registers > gpu->registers_per_thread ||
        shared_bytes > gpu->shared_per_block)
        return 0;
    int blocks = least(gpu->blocks_per_sm, gpu->threads_per_sm / (warps * WARP));
    if (per_warp)
        blocks = least(blocks, gpu->registers_per_sm / per_warp / warps);
    return least(blocks, gpu->shared_per_sm / (shared_bytes + gpu->shared_reserved));
}
