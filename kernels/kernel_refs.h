#ifndef TW_KERNEL_REFS_H
#define TW_KERNEL_REFS_H
/* What each kernel computes, as plain C loops: the meaning that every target is tested against.
 *
 * Inputs are f32 tensors of any strides. Results are contiguous, and everything is computed in
 * double (the naive formula: in f32). Nothing is allocated. */
#include <stdbool.h>
#include <stdint.h>

typedef struct ref_tensor {
    const float *at;
    int64_t extent[4]; /* outermost first; as many as the kernel's parameter has */
    int64_t stride[4]; /* in elements */
} ref_tensor;

typedef struct attention_problem {
    ref_tensor q, k, v; /* [B, H, M, D], [B, HK, N, D], [B, HK, N, DV] */
    double scale;
    bool causal;
    int64_t offset; /* row i sees columns up to i + offset */
} attention_problem;

/* o: [B, H, M, DV], lse: [B, H, M], the natural logarithm. A row that sees nothing: 0 and -inf. */
void attention_fwd_ref(const attention_problem *p, double *o, double *lse);
/* The textbook formula in f32: scores, their softmax, its product with v, summed in order. What an
 * f32 kernel's errors are measured against. */
void attention_fwd_naive(const attention_problem *p, float *o, float *lse);

/* c: [M, N] */
void matmul_ref(const ref_tensor *a, const ref_tensor *b, double *c);
/* y: as x, [M, N]. A row of -inf alone gives 0. */
void softmax_ref(const ref_tensor *x, double *y);
/* c: [N] */
void vector_add_ref(const ref_tensor *a, const ref_tensor *b, double *c);

#endif
