#ifndef TW_TESTS_RUNTIME_FIXTURE_H
#define TW_TESTS_RUNTIME_FIXTURE_H
/* A context without a store file, and small kernels for tests of the runtime. */
#include "runtime/runtime.h"

extern tw_context *rt_cx;
extern char rt_log[4096]; /* what the context logged */

void rt_setup(void);    /* for tcase_add_checked_fixture */
void rt_teardown(void); /* asserts that every block allocated since rt_setup is free again */
void rt_context(const tw_config *cfg, const tuner_ops *tuner); /* instead of rt_setup's context */

/* Asserts success; what went wrong is in the failure's text. */
#define RT_OK(call)                                                                                \
    do {                                                                                           \
        tw_status rt_status_ = (call);                                                             \
        ck_assert_msg(rt_status_ == TW_OK, "%s: %s: %s", #call, tw_status_name(rt_status_),        \
                      tw_last_error()->text);                                                      \
    } while (0)
/* Asserts that call fails with st and says text. */
#define RT_FAILS(call, st, said)                                                                   \
    do {                                                                                           \
        tw_status rt_status_ = (call);                                                             \
        ck_assert_msg(rt_status_ == (st), "%s: %s: %s", #call, tw_status_name(rt_status_),         \
                      tw_last_error()->text);                                                      \
        ck_assert_msg(strstr(tw_last_error()->text, (said)) != NULL, "%s: %s", #call,              \
                      tw_last_error()->text);                                                      \
    } while (0)

tw_device *rt_device(const char *spec); /* asserts success */
/* y[i] = x[i] + by for i < N, in programs of 32 elements; by defaults to 1, N <= 1000000; asserts
 * in the program that element 0 of its block of x is not negative. */
tw_kernel *rt_add_kernel(void);
/* The same with a tune parameter BLOCK in {64, 32, 128} of which 128 needs FLAG = true, a dtype T
 * (f32, f64) and a bool FLAG with default false; written as a kernel_source that counts its
 * lowerings. */
tw_kernel *rt_tuned_kernel(void);
extern atomic_int rt_lowerings;

typedef struct rt_vector {
    int64_t shape[1], stride[1];
    DLTensor t;
    _Alignas(64) float x[4096];
} rt_vector;
/* n elements that are all `value`. */
void rt_vector_init(rt_vector *v, int64_t n, float value);

#endif
