#ifndef TW_NUMERIC_KERNELS_H
#define TW_NUMERIC_KERNELS_H
/* Cases of the kernels in kernels/, each checked element by element against its float64 reference.
 *
 * Tolerances. Let u = 2^-24. A sum of K terms, added in any order, is off by about
 * sqrt(K) u A, where A is the sum of the terms' magnitudes; all tolerances are twice what such
 * errors add up to:
 *   matmul      (sqrt(K) + 2) u A,  A = sum |a b| of that element
 *   softmax     (2 range + sqrt(N) + 8) u y,  range = largest - smallest finite x of the row
 *   attention   e = (sqrt(D) + 4) u S for a score, S = scale |q| max|k|, of a row of q, all of k;
 *               lse: e + (sqrt(N) + 8) u + u |lse|
 *               o:   (2 e + (sqrt(N) + 8) u) A,  A = sum p |v| of that element
 * and vector_add is exact. Of 16 bits, the rounding of the result comes on top. */
#include "tests/support/numeric_case.h"

/* A variant of attention: what its reference and its launch need beyond the case. */
typedef struct attention_extra {
    struct attention_variant *variant; /* kernel_refs.h */
    tw_arg args[5];
    size_t nargs;
    bool has_keys; /* k and v are among args: those of the case are what they mean */
    double size; /* how much it may change a score: as much larger is a score's error */
} attention_extra;

typedef struct attention_case {
    int64_t B, H, HK, M, N, D, DV;
    bool causal, has_offset;
    int64_t offset;
    double scale; /* 0: the kernel's default */
    double sigma; /* of q and k; 0: 1 */
    enum num_layout q, k, v, o;
    const char *config; /* NULL: the default */
    const char *type;   /* NULL: the subject's */
    const attention_extra *extra; /* or NULL */
} attention_case;

static inline attention_case attention_sizes(int64_t b, int64_t h, int64_t hk, int64_t m, int64_t n,
                                             int64_t d, int64_t dv)
{
    return (attention_case){.B = b, .H = h, .HK = hk, .M = m, .N = n, .D = d, .DV = dv};
}

/* Of 16 bits, with w one half unit in the last place of 1 (2^-11 for f16, 2^-8 for bf16): P is
 * rounded, each element by w of itself or, in f16, by 2^-25, and so is o:
 *   o:   2 w A + w |o| + N 2^-25 max|v| more.
 * Where sums of rows count P as it is rounded, they are off by w of themselves and N 2^-25 more:
 *   o:   w |o| + N 2^-25 max|v| more;   lse: w + N 2^-25 more. */

/* A kernel under test and what it runs on. */
typedef struct num_subject {
    num_device device;
    tw_kernel *kernel;
    num_random random;
    tw_launch_options options;
    const char *type; /* of the cases, where they name none; NULL: f32 */
    const char *schedule; /* added to every configuration: "num_warps=8"; may be NULL */
    bool rounded_sums; /* sums of rows count P as it is rounded */
    int turn; /* tables of attention: 0: each case at both ends of its memory; 1 or 2: one after the
                 other at one and the other, the first at its end (1) or its start (2) */
    int cases, failures;
    double closest; /* see num_compare */
} num_subject;

/* Opens the device and loads kernels/NAME.tw; prints the seed. False when the machine cannot. */
bool subject_open(num_subject *s, const char *spec, const char *target, const char *name,
                  uint64_t seed);
/* Prints how many cases ran and fails the test when one of them failed. */
void subject_close(num_subject *s);

void attention_check(num_subject *s, const attention_case *c, enum num_place place);
void matmul_check(num_subject *s, int64_t m, int64_t n, int64_t k, const enum num_layout layout[3],
                  const char *config, enum num_place place);
void softmax_check(num_subject *s, int64_t m, int64_t n, double sigma,
                   const enum num_layout layout[2], const char *config, enum num_place place);
void vector_add_check(num_subject *s, int64_t n, const enum num_layout layout[3],
                      const char *config, enum num_place place);

/* The pieces, for cases with inputs of their own. */
typedef struct attention_tensors {
    num_tensor q, k, v, o, lse;
} attention_tensors;
void attention_alloc(attention_tensors *t, const attention_case *c, enum num_place place);
void attention_free(attention_tensors *t);
void attention_launch(num_subject *s, const attention_case *c, attention_tensors *t);
/* Launches and compares with the reference; counts. */
void attention_compare(num_subject *s, const attention_case *c, attention_tensors *t);

#endif
