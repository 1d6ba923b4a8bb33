#ifndef TW_TESTS_GPU_CASES_H
#define TW_TESTS_GPU_CASES_H
/* The rows of docs/CASES.md that a GPU's code sees in another way than the CPU's: strides, 64-bit
 * offsets, large grids, loops, values, asserts. gpu/verify_cases runs them. */
#include "tests/support/numeric_kernels.h"

typedef struct gpu_place {
    const char *spec, *target; /* as num_open takes them */
    bool is_quick;             /* what is large runs whole */
} gpu_place;

typedef struct gpu_case {
    const char *row, *name; /* "STR-05" */
    bool is_huge; /* takes gigabytes of the device's memory; without room for them it says so */
    void (*run)(const gpu_place *p); /* fails the test that it runs in */
} gpu_case;
extern const gpu_case gpu_cases[];
extern const int gpu_cases_count;

/* gpu_far_cases.c */
void case_members_far_apart(const gpu_place *p);
void case_offsets_beyond_32_bits(const gpu_place *p);
void case_bias_beyond_32_bits(const gpu_place *p);

#endif
