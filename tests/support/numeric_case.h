#ifndef TW_NUMERIC_CASE_H
#define TW_NUMERIC_CASE_H
/* What numeric tests share: tensors against guard pages, random inputs, comparison element by
 * element. Only the public interface is used, so the same case runs on every device.
 *
 * A tensor lies between two pages that cannot be touched, flush with one of them; an input cannot
 * be written. All cells that belong to no element, and all cells of an output, start as one NaN
 * with a pattern of its own: reading padding shows in the result, and writing it is found after
 * the launch (num_padding_intact). */
#include "tilewright.h"
#include <string.h>

/* ---- devices and kernels ---- */

typedef struct num_device {
    const char *label; /* "interp", "cpu-avx2": for messages */
    tw_context *cx;
    tw_device *dev;
    bool is_gpu;
} num_device;

/* target: a code path, or NULL for the device's own choice. False, and a line that says so, when
 * this machine cannot run it; aborts the test on any other failure. With TW_NUMERIC_DEVICE (and
 * TW_NUMERIC_TARGET) in the environment that device stands for the CPU, which is left out with its
 * other code paths: so the tests run on a GPU. */
bool num_open(num_device *d, const char *spec, const char *target);
/* Where a table of devices begins whose first `interpreters` are the interpreter: 0, or behind them
 * where another device stands for the CPU and the interpreter was seen without it. */
int num_first(int interpreters);
void num_close(num_device *d);
/* Is got 0 where exp and exp2 of at most f32, and what a GPU makes of them, may give 0: for results
 * below 2^-126? text is the expression, "exp2(a)". */
static inline bool num_flushed(const num_device *d, const char *text, double got, double want)
{
    bool may = d->is_gpu || strncmp(text, "exp", 3) == 0;

    return may && got == 0.0 && want < 0x1p-126 && want > -0x1p-126;
}
tw_kernel *num_load(num_device *d, const char *path);
tw_kernel *num_load_text(num_device *d, const char *text); /* as case.tw */
/* printf that is seen even when the test's process ends right after. */
void num_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* How much of a table of cases runs: every num_thin(n)-th instead of every n-th, and num_count(n)
 * random ones instead of n. All and ten times as many with TW_TEST_LONG in the environment; a
 * sixth under a sanitizer, which does not see the generated code that these cases are about. */
int num_thin(int usual);
int num_count(int usual);
/* Whether tensors of many gigabytes, reserved and barely touched, may be mapped. */
#ifdef __SANITIZE_ADDRESS__
#define NUM_HUGE 0
#else
#define NUM_HUGE 1
#endif
/* Aborts the test with the library's message when st is not TW_OK. */
void num_must(tw_status st, const char *what);

/* ---- random numbers: the same on every machine ---- */

typedef struct num_random {
    uint64_t state;
} num_random;
double num_uniform(num_random *r); /* in (0, 1) */
double num_normal(num_random *r);
int64_t num_below(num_random *r, int64_t n);

/* ---- tensors ---- */

enum num_layout {
    NUM_DENSE,
    NUM_PADDED,     /* room between rows and behind each outer slice                     */
    NUM_SWAPPED,    /* dimensions 1 and 2 change places in memory: (B, S, H, D) as (B, H, S, D) */
    NUM_TRANSPOSED, /* the last two dimensions change places: inner stride is not 1      */
    NUM_SPREAD,     /* inner stride 3                                                    */
    NUM_MISALIGNED, /* dense, from an address that is 4 beyond a multiple of 16          */
    NUM_BROADCAST,  /* inputs: the outermost dimension has stride 0                      */
    NUM_LAYOUTS
};
enum num_place { NUM_AT_END, NUM_AT_START };
#define NUM_MAX_RANK 4

struct num_dtype; /* numeric_dtype.h */

typedef struct num_tensor {
    const char *name;
    const struct num_dtype *type;
    int rank;
    int64_t extent[NUM_MAX_RANK], stride[NUM_MAX_RANK]; /* in elements */
    float *base; /* when type is f32 */
    DLTensor dl; /* of the same */
    unsigned char *map;
    size_t map_bytes, page;
    bool is_protected;
    struct num_tensor *next; /* of those that are not freed yet */
} num_tensor;

/* Of f32. */
void num_alloc(num_tensor *t, const char *name, int rank, const int64_t *extent,
               enum num_layout layout, enum num_place place);
/* Of any type; what is read as a number is of a float type. */
void num_alloc_as(num_tensor *t, const char *name, const struct num_dtype *type, int rank,
                  const int64_t *extent, enum num_layout layout, enum num_place place);
void num_free(num_tensor *t);
int64_t num_elements(const num_tensor *t);
/* Element number i in row-major order, of f32. */
float *num_at(const num_tensor *t, int64_t i);
/* The same of any type, as a number. */
double num_value_at(const num_tensor *t, int64_t i);
void num_set_at(const num_tensor *t, int64_t i, double v);
void num_fill(num_tensor *t, num_random *r, double sigma);
/* From now on a write to t faults. */
void num_protect(num_tensor *t);
bool num_padding_intact(const num_tensor *t);
/* Launches, and waits. Where the device has memory of its own, it runs on copies there: of a
 * num_tensor (arg is its dl) with all that lies between its guard pages, and what is not protected
 * is copied back if it succeeds; of another tensor in memory of the host from its first element to
 * its last, and what the kernel writes is copied back. */
tw_status num_try(num_device *d, tw_kernel *k, const tw_arg *args, size_t n,
                  const tw_launch_options *options);
/* num_try; aborts the test with the library's message when it fails. */
void num_launch(num_device *d, tw_kernel *k, const tw_arg *args, size_t n,
                const tw_launch_options *options);

/* ---- comparison ---- */

/* Every element of got against want, each within its own tolerance; NaN only where NaN is wanted,
 * infinities exactly. The first few that differ are printed under `what`. Returns how many do;
 * *closest is raised to the largest error seen, as a part of its tolerance. */
int num_compare(const num_tensor *got, const double *want, const double *tolerance,
                const char *what, double *closest);
/* The largest absolute difference. */
double num_worst(const num_tensor *got, const double *want);

#endif
