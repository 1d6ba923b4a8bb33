#ifndef TW_TESTS_GPU_COVER_H
#define TW_TESTS_GPU_COVER_H
/* Attention on GPUs that are not there, over head dim, mask, dtype, BLOCK_M, BLOCK_N, stages,
 * warps, where the left operand is kept, and GPU. `gpu_cover_set` is a seeded set in which each
 * pair of values of two factors comes together at least once, unless no configuration of the space
 * that fits the GPU has both. */
#include "runtime/runtime.h"

enum gpu_factor {
    COVER_HEAD_DIM,
    COVER_MASK,
    COVER_DTYPE,
    COVER_BLOCK_M,
    COVER_BLOCK_N,
    COVER_STAGES,
    COVER_WARPS,
    COVER_OPERANDS,
    COVER_GPU,
    COVER_FACTORS
};
enum { COVER_MAX_ROWS = 300, COVER_MASKS = 3, COVER_GPUS = 3, COVER_TEXT = 200 };
enum { COVER_ALL = 200000 }; /* more than there are configurations */

typedef struct gpu_cover_row {
    uint8_t at[COVER_FACTORS]; /* index of each factor's value */
} gpu_cover_row;

typedef struct gpu_cover {
    tw_context *cx;
    tw_kernel *kernel[COVER_MASKS];
    tw_device gpu[COVER_GPUS]; /* a target and limits; nothing can run there */
    char reason[160];          /* why the last one that did not fit does not */
    hash128 code;              /* of the last one that fits: on one GPU, the same PTX */
    uint8_t known[COVER_ALL];  /* what gpu_cover_set has asked of each */
} gpu_cover;

/* The text of the error is where the others are. */
tw_status gpu_cover_open(gpu_cover *c);
void gpu_cover_close(gpu_cover *c);

int gpu_cover_count(enum gpu_factor f);
int64_t gpu_cover_value(enum gpu_factor f, const gpu_cover_row *row); /* of a mask: its index */
/* Is the configuration one that the tuner would compile for this GPU? */
bool gpu_cover_fits(gpu_cover *c, const gpu_cover_row *row);
/* As tilewright compile takes them: "kernels/attention_fwd.tw", "sm_89",
 * "T=bf16,D=64,DV=64,CAUSAL=true,BLOCK_M=64,..." */
const char *gpu_cover_kernel(const gpu_cover_row *row);
const char *gpu_cover_target(const gpu_cover_row *row);
void gpu_cover_values(const gpu_cover_row *row, char out[COVER_TEXT]);
/* The reverse; false: not a configuration that there is. */
bool gpu_cover_parse(const char *kernel, const char *path, const char *values, gpu_cover_row *row);
/* Number n of all configurations, those that do not fit too; false past the last. */
bool gpu_cover_nth(int64_t n, gpu_cover_row *row);

/* How many rows; 0: more than COVER_MAX_ROWS. *impossible (may be NULL): pairs that no row has. */
int gpu_cover_set(gpu_cover *c, uint64_t seed, gpu_cover_row row[COVER_MAX_ROWS], int *impossible);

#endif
