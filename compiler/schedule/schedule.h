#ifndef TW_SCHEDULE_H
#define TW_SCHEDULE_H
/* Makes scheduled tile IR (level 2) from level 1, for NVIDIA GPUs.
 *
 * docs/SCHEDULE.md tells how. The input is a level-1 module after the passes of compiler/passes;
 * the result is the same module, changed to level 2: verified, every buffer with its offset in
 * shared memory, every barrier in place, every `convert` free. What does not fit the GPU is
 * refused here (TW_E_LIMIT and a text that says which limit), before any code is made. */
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/gpu.h"

typedef struct schedule_params {
    int num_warps;         /* 1, 2, 4, 8, 16 */
    int num_stages;        /* buffers of a loop's copies: 1, 2, 3, 4 */
    int operand_registers; /* operands that a loop does not change (Q): 0 read from shared memory
                              each time, 1 kept in registers, 2 and read before anything else is
                              copied, which may take its place in shared memory */
    int lazy_rescale;      /* 1: running_max keeps the old maximum while it may */
    int program_order;     /* 0 as the grid counts; 1 the first dimension from its end, in sections
                              of the others whose tensors fit in L2 */
    int stage_blocks;      /* 1, 2, 4: iterations whose copies share a stage, from two stages on */
} schedule_params;
/* 4 warps, 2 stages, 0, 1, 0, 1 */
schedule_params schedule_defaults(void);

/* A dimension of dots that is no multiple of the matrix unit's. */
typedef struct padded_dim {
    const char *name; /* of a tensor's dimension that it comes from, or NULL */
    int32_t from, to;
    const char *why; /* what stopped it from growing; NULL: it did */
    span where;      /* of that */
} padded_dim;

typedef struct schedule_result {
    int warps;
    int32_t shared_bytes; /* dynamic shared memory of a block */
    int registers;        /* of a thread: an estimate, from what is live at once */
    const padded_dim *padded; /* in the module's arena */
    uint32_t npadded;
} schedule_result;

/* Under guard_run. options (may be NULL): dumps, times, verification after each pass.
 * TW_E_ARG: parameters out of bounds. TW_E_LIMIT: see above. */
tw_status schedule_run(ir_module *m, const gpu_limits *gpu, const schedule_params *params,
                       diag_list *diags, const pipeline_options *options, schedule_result *result);
/* The distinct passes; NULL behind the last. */
const char *schedule_pass_name(size_t i);
/* Runs one pass, for tests and tools; result may be NULL. */
tw_status schedule_run_pass(ir_module *m, const char *pass, const gpu_limits *gpu,
                            const schedule_params *params, diag_list *diags,
                            const pipeline_options *options, schedule_result *result);

#endif
