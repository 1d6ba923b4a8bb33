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

/* What a variant of attention changes, for row i and column j of head h in member b of the batch,
 * and what it needs for that. A function that is NULL changes nothing. */
typedef struct attention_variant {
    double (*score)(const struct attention_variant *v, double s, int64_t b, int64_t h, int64_t i,
                    int64_t j);
    bool (*visible)(const struct attention_variant *v, int64_t b, int64_t i, int64_t j);
    double (*sink)(const struct attention_variant *v, int64_t h);
    int64_t columns, offset; /* row i is token i + offset */
    int64_t rows, width;     /* M; pixels in a row of an image */
    int64_t window;
    bool causal;
    double cap;
    const int32_t *member; /* [B]: the prefix, the length */
    const int32_t *token;  /* [B, columns]: the document */
    const float *head;     /* [H]: slopes, sinks */
    ref_tensor bias;       /* [B or 1, H or 1, M, N], or [H, distances] */
} attention_variant;

typedef struct attention_problem {
    ref_tensor q, k, v; /* [B, H, M, D], [B, HK, N, D], [B, HK, N, DV] */
    double scale;
    bool causal;
    int64_t offset; /* row i sees columns up to i + offset */
    const attention_variant *variant; /* or NULL */
} attention_problem;

/* o: [B, H, M, DV], lse: [B, H, M], the natural logarithm. A row that sees nothing: 0 and -inf. */
void attention_fwd_ref(const attention_problem *p, double *o, double *lse);
/* The textbook formula in f32: scores, their softmax, its product with v, summed in order. What an
 * f32 kernel's errors are measured against. */
void attention_fwd_naive(const attention_problem *p, float *o, float *lse);

/* kernels/variants: the members of attention_variant that each needs are given beside them. */
extern const attention_variant attention_window_ref;   /* window, offset, causal */
extern const attention_variant attention_alibi_ref;    /* head, offset */
extern const attention_variant attention_soft_cap_ref; /* cap */
extern const attention_variant attention_prefix_ref;   /* member, offset */
extern const attention_variant attention_document_ref; /* token, columns, offset */
extern const attention_variant attention_padded_ref;   /* member */
extern const attention_variant attention_sink_ref;     /* head */
extern const attention_variant attention_bias_ref;     /* bias */
extern const attention_variant attention_rounded_ref;  /* nothing: as exact in double */
extern const attention_variant attention_quantized_ref; /* nothing: k and v as they are meant */
extern const attention_variant attention_relative_ref;  /* bias, offset */
extern const attention_variant attention_neighborhood_ref; /* window, width, columns */
extern const attention_variant attention_paged_ref;     /* member, rows, causal; k, v in order */

/* c: [M, N] */
void matmul_ref(const ref_tensor *a, const ref_tensor *b, double *c);
/* y: as x, [M, N]. A row of -inf alone gives 0. */
void softmax_ref(const ref_tensor *x, double *y);
/* c: [N] */
void vector_add_ref(const ref_tensor *a, const ref_tensor *b, double *c);

#endif
