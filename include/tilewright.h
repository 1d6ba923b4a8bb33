/* Tilewright: a just-in-time compiler and autotuner for tile kernels.
 *
 * This header is the whole public interface; what is not in it is not published.
 * C11 and C++11. Copyright the Tilewright authors; Apache License 2.0.
 *
 * Conventions
 * - A function that can fail returns tw_status; what went wrong is in tw_last_error() of the
 *   calling thread. Output parameters are written only on success unless said otherwise.
 * - A config or options struct starts with its size (set by its TW_..._INIT macro); NULL: defaults.
 * - Strings are UTF-8 and NUL-terminated. "Borrowed" means owned by the object it came from.
 * - Contexts, devices, kernels, bound kernels and reports may be used from any thread at once.
 *   Destroy an object only when no other thread uses it; a context last of all. Destroying NULL
 *   does nothing.
 * - "Fails with" lists what a caller can meet and act on; a NULL where none is allowed is TW_E_ARG,
 *   and any call may find a bug of ours: TW_E_INTERNAL.
 * - The library never prints, exits or reads the environment by itself.
 */
#ifndef TILEWRIGHT_H
#define TILEWRIGHT_H

#include "dlpack.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- version, export, status ---------------------------------------------------------------- */

#define TW_VERSION_MAJOR 0
#define TW_VERSION_MINOR 1
#define TW_VERSION_PATCH 0

#if defined(__GNUC__)
#define TW_API __attribute__((visibility("default")))
#define TW_CHECKED __attribute__((warn_unused_result))
#else
#define TW_API
#define TW_CHECKED
#endif

/* name, exit code of the command, what it means */
#define TW_STATUS_MAP(X)                                                                     \
    X(OK, 0, "success")                                                                      \
    X(E_SOURCE, 3, "the kernel's text is wrong; the error says where")                       \
    X(E_ARG, 4, "an argument of the call is wrong; the error names it")                      \
    X(E_LIMIT, 5, "a limit of the language, the compiler or the device was exceeded")        \
    X(E_UNSUPPORTED, 6, "understood, but this version or this device cannot do it")          \
    X(E_IO, 7, "a file is missing, unreadable, malformed or cannot be written")              \
    X(E_DEVICE, 8, "no such device, or it failed")                                           \
    X(E_DRIVER, 9, "a device driver refused a call")                                         \
    X(E_NOMEM, 10, "out of memory")                                                          \
    X(E_ASSERT, 11, "an assert in the kernel failed")                                        \
    X(E_MISMATCH, 12, "results differ from the reference by more than the tolerance")        \
    X(E_CANCELLED, 13, "cancelled by the caller")                                            \
    X(E_STORE, 14, "the store cannot be used for what was asked of it")                      \
    X(E_INTERNAL, 70, "a bug in Tilewright; please report it with the error text")

typedef enum tw_status {
#define TW_STATUS_ENUM(name, code, text) TW_##name,
    TW_STATUS_MAP(TW_STATUS_ENUM)
#undef TW_STATUS_ENUM
} tw_status;

TW_API const char *tw_version(void);               /* "0.1.0" */
TW_API const char *tw_codegen_version(void);       /* "llvm-22.1.8/5": what makes machine code */
TW_API const char *tw_status_name(tw_status st);   /* "E_SOURCE"; never NULL */
TW_API const char *tw_status_meaning(tw_status st);
TW_API int tw_status_exit_code(tw_status st);

/* One diagnostic: line and column count from 1, 0 where there is no position. */
typedef struct tw_diagnostic {
    const char *id; /* "type-mismatch": stable, listed in docs/LANGUAGE.md */
    bool is_warning;
    const char *file;
    int line, column;
    const char *text;
    const char *hint; /* or NULL */
} tw_diagnostic;

/* The last failure in this thread; valid until this thread's next call into the library that can
 * fail. Never NULL; text is "" after a success. */
typedef struct tw_error {
    tw_status status;
    const char *text; /* rendered: message, source line, caret, hints; no newline at the end */
    const tw_diagnostic *diagnostics;
    size_t diagnostic_count;
} tw_error;
TW_API const tw_error *tw_last_error(void);

/* ---- objects -------------------------------------------------------------------------------- */

typedef struct tw_context tw_context; /* settings, store, caches; everything hangs off one       */
typedef struct tw_device tw_device;   /* a place to run: a GPU, the host's processors, ...       */
typedef struct tw_kernel tw_kernel;   /* a kernel as loaded: checked, immutable, not specialised */
typedef struct tw_bound tw_bound;     /* a kernel bound to a device and compile-time values      */
typedef struct tw_stream tw_stream;   /* an ordered queue of a device; NULL on the host          */

/* ---- context -------------------------------------------------------------------------------- */

typedef enum tw_tune_mode {
    TW_TUNE_NEVER,   /* best known, nearest or default configuration; never measures (default) */
    TW_TUNE_ON_MISS, /* a launch that the store does not know exactly tunes first, in budget    */
} tw_tune_mode;

typedef enum tw_log_level {
    TW_LOG_ERROR,
    TW_LOG_WARNING,
    TW_LOG_INFO,
    TW_LOG_DEBUG,
    TW_LOG_PRINT /* what a kernel prints; told whatever log_level is */
} tw_log_level;
typedef void (*tw_log_fn)(void *user, tw_log_level level, const char *text);

typedef struct tw_config {
    size_t size;
    const char *store_path; /* NULL: no persistence; see tw_config_from_env for the usual place */
    tw_tune_mode tune;
    double tune_budget_s; /* for TW_TUNE_ON_MISS; default 10 */
    int threads;          /* compile threads; 0 = processors of this process */
    tw_log_fn log;        /* NULL: silent. Called from any thread, one at a time; it may not call
                             the library */
    void *log_user;
    tw_log_level log_level; /* default TW_LOG_WARNING */
    bool checked;         /* checked launches, on GPUs: the driver is asked about every pointer of
                             every launch, and a launch waits for its end, so that it is the one to
                             report its fault and its assert. The code is the same: asserts before
                             accesses are a kernel's, see tw_kernel_set_checked */
    const char *seeds_path; /* configurations for what nobody tuned: a file like the installed
                             share/tilewright/seeds.txt. NULL: what that holds; "": none */
} tw_config;
#define TW_CONFIG_INIT \
    {sizeof(tw_config), NULL, TW_TUNE_NEVER, 10.0, 0, NULL, NULL, TW_LOG_WARNING, false, NULL}

/* Fills cfg from the environment: TILEWRIGHT_STORE ("none": no store), else
 * $XDG_CACHE_HOME/tilewright/store.db, else $HOME/.cache/tilewright/store.db;
 * TILEWRIGHT_TUNE=never|on-miss; TILEWRIGHT_BUDGET=seconds; TILEWRIGHT_CHECKED=0|1;
 * TILEWRIGHT_SEEDS=path.
 * The paths are kept in buffers of this thread until its next call. Fails with TW_E_ARG. */
TW_API TW_CHECKED tw_status tw_config_from_env(tw_config *cfg);

/* A store that cannot be used (full, read-only, locked, foreign, corrupt) costs persistence and one
 * warning through log, not the call; so does a file of seeds that is none.
 * Fails with TW_E_ARG, TW_E_NOMEM. */
TW_API TW_CHECKED tw_status tw_context_create(const tw_config *cfg, tw_context **out);
TW_API void tw_context_destroy(tw_context *cx);

/* ---- devices -------------------------------------------------------------------------------- */

/* spec: "cuda" or "cuda:N" (the N-th NVIDIA GPU that the driver shows), "cpu", "cpu:N" (N threads),
 * "auto" (cuda if there is one that can be used, else cpu: ask tw_device_query where its tensors
 * are), "interp" (the interpreter, the oracle), "null" (accepts everything, runs nothing: for
 * tests). A GPU is used in the context that is current in this thread if that is one of the
 * application's own on that GPU, else in its primary context, which the CUDA runtime uses too.
 * On a processor with AMX, opening a cpu asks the kernel for tile registers, for the whole process
 * (arch_prctl); signal frames then grow by 8 KiB. Refused, other code paths are used.
 * Fails with TW_E_DEVICE (no such device), TW_E_UNSUPPORTED (a GPU older than capability 8.0),
 * TW_E_DRIVER, TW_E_ARG, TW_E_NOMEM. */
TW_API TW_CHECKED tw_status tw_device_open(tw_context *cx, const char *spec, tw_device **out);
TW_API void tw_device_close(tw_device *dev);

/* Restricts dev to a code path it can run ("cpu-amx", "cpu-avx512-bf16", "cpu-avx512", "cpu-avx2",
 * "cpu-generic"; "" = the best). Call before the first use of dev. Fails with TW_E_ARG (unknown
 * path; the error lists those known), TW_E_UNSUPPORTED (this machine cannot run it). */
TW_API TW_CHECKED tw_status tw_device_force_target(tw_device *dev, const char *target);

typedef struct tw_device_info {
    size_t size;
    const char *spec;     /* "cpu"                                        borrowed from dev */
    const char *name;     /* processor or GPU name                                          */
    const char *target;   /* code path in use: "cpu-avx512"                                 */
    const char *features; /* what the code path may use, as LLVM names it                   */
    int threads;          /* worker threads (CPU) or multiprocessors                        */
    size_t l1_bytes, l2_bytes; /* per core; L2 of a GPU: of all of it; 0 = unknown          */
    DLDevice memory;      /* where tensors that it works on are, as DLPack has it           */
    const char *driver;   /* of a GPU: "13.0 (580.95.05)"; else ""                          */
    int capability;       /* 90 for a GPU of compute capability 9.0; 0: no GPU, as is all below */
    size_t memory_bytes;
    int block_shared_bytes, block_threads; /* most shared memory and threads of one block   */
    int registers;        /* of a multiprocessor                                            */
} tw_device_info;
#define TW_DEVICE_INFO_INIT \
    {sizeof(tw_device_info), NULL, NULL, NULL, NULL, 0, 0, 0, {kDLCPU, 0}, "", 0, 0, 0, 0, 0}
/* Its texts are valid until dev is closed or its target forced. Fails with TW_E_ARG. */
TW_API TW_CHECKED tw_status tw_device_query(const tw_device *dev, tw_device_info *info);

/* The null device counts the calls it gets and can be told to fail. TW_E_ARG on another device. */
typedef struct tw_null_stats {
    uint64_t opens, loads, launches, steps, syncs;
} tw_null_stats;
TW_API TW_CHECKED tw_status tw_null_query(const tw_device *dev, tw_null_stats *stats);
/* op: "load", "launch" or "sync"; its n-th call from now fails with st (n = 0: none does).
 * Fails with TW_E_ARG (another op, another device). */
TW_API TW_CHECKED tw_status tw_null_fail(tw_device *dev, const char *op, unsigned n, tw_status st);

/* Waits for a stream's work; a host launch is complete when it returns, so this returns at once
 * there. Returns a failed assert of an earlier queued launch, or a fault of the device. stream is a
 * CUstream of a GPU, and may be NULL: the default one. Fails with TW_E_ASSERT, TW_E_DEVICE,
 * TW_E_DRIVER, TW_E_ARG (it is capturing). */
TW_API TW_CHECKED tw_status tw_stream_sync(tw_device *dev, tw_stream *stream);

/* Memory that kernels on dev can use, for callers without a way of their own to get it; tensors may
 * be in any memory that dev reaches. Aligned to 256 bytes on a GPU, else to 64; freed before dev is
 * closed. Fails with TW_E_NOMEM, TW_E_DEVICE, TW_E_DRIVER. */
TW_API TW_CHECKED tw_status tw_memory_alloc(tw_device *dev, size_t size, void **out);
TW_API void tw_memory_free(tw_device *dev, void *p); /* waits for what uses it */
typedef enum tw_copy { TW_COPY_TO_DEVICE, TW_COPY_FROM_DEVICE, TW_COPY_ON_DEVICE } tw_copy;
/* Ordered with the stream's work. When the host takes part, the copy is complete on return.
 * Fails with TW_E_ARG, TW_E_DEVICE, TW_E_DRIVER. */
TW_API TW_CHECKED tw_status tw_memory_copy(tw_device *dev, void *dst, const void *src, size_t size,
                                           tw_copy direction, tw_stream *stream);

/* ---- kernels -------------------------------------------------------------------------------- */

/* Loads a kernel from a file of kernel text (.tw) or tile IR (.tir; .sched: level 2). kernel: its
 * name, or NULL for the file's only one. Parses and checks what can be checked without compile-time
 * values.
 * Fails with TW_E_IO, TW_E_SOURCE (tw_last_error has the diagnostics), TW_E_ARG (no such kernel;
 * the error lists those there), TW_E_LIMIT, TW_E_NOMEM. */
TW_API TW_CHECKED tw_status tw_kernel_load(tw_context *cx, const char *path, const char *kernel,
                                           tw_kernel **out);
/* The same from memory; name is used in messages. text is copied. */
TW_API TW_CHECKED tw_status tw_kernel_load_text(tw_context *cx, const char *name, const char *text,
                                                size_t length, const char *kernel,
                                                tw_kernel **out);
TW_API void tw_kernel_destroy(tw_kernel *k);
TW_API const char *tw_kernel_name(const tw_kernel *k); /* borrowed from k, as the texts below are */
/* Warnings of the load, rendered; "" when there are none. */
TW_API const char *tw_kernel_warnings(const tw_kernel *k);

/* Checked mode of a kernel, on any device: before every access and integer division of k stands an
 * assert, so that a launch fails (TW_E_ASSERT, naming line, values and program)
 * where an index lies outside of its tensor, a slice meets nothing of it, a tile of indices holds
 * what is neither inside nor -1, or an integer is divided by 0. Slower; configurations are those of
 * the unchecked kernel, and tuning keeps nothing. Call it before the first use of k.
 * Fails with TW_E_ARG. */
TW_API TW_CHECKED tw_status tw_kernel_set_checked(tw_kernel *k);

typedef enum tw_param_kind {
    TW_PARAM_TENSOR,
    TW_PARAM_SCALAR,   /* run-time value                                             */
    TW_PARAM_CONST,    /* compile-time value in [...]: dtype, int, bool, a member of
                          an enumeration, or a function                              */
    TW_PARAM_TUNE,     /* a tune parameter; the tuner chooses, a configuration pins  */
} tw_param_kind;
typedef enum tw_direction { TW_IN, TW_OUT, TW_INOUT } tw_direction;

typedef struct tw_param_info {
    size_t size;
    const char *name;
    tw_param_kind kind;
    tw_direction direction;  /* tensors                                                        */
    const char *type;        /* "T" or "f32" of a tensor or scalar; else "dtype", "int", "bool", the
                                name of an enumeration, or "fn(b, h, row, col)"                */
    int rank;                /* tensors                                                        */
    const char *dims[8];     /* tensors: "B", "64", ... in order                               */
    bool has_default;        /* scalars and compile-time values                                */
    const char *value;       /* the default as text, "1.0 / sqrt(D)", or NULL: none, or the source
                                is no text; of a tune parameter what is tried, the default first:
                                "64, 32; on cpu-amx: 128, 64"                                  */
} tw_param_info;
#define TW_PARAM_INFO_INIT \
    {sizeof(tw_param_info), NULL, TW_PARAM_TENSOR, TW_IN, NULL, 0, {NULL}, false, NULL}
/* Tensors and scalars in the order written, then compile-time values, then tune parameters.
 * tw_kernel_param fails with TW_E_ARG (i is not below the count). */
TW_API size_t tw_kernel_param_count(const tw_kernel *k);
TW_API TW_CHECKED tw_status tw_kernel_param(const tw_kernel *k, size_t i, tw_param_info *info);

/* ---- arguments and launches ----------------------------------------------------------------- */

typedef enum tw_arg_kind {
    TW_ARG_TENSOR,
    TW_ARG_INT,
    TW_ARG_FLOAT,
    TW_ARG_BOOL,
    TW_ARG_TEXT
} tw_arg_kind;

/* An argument by name: a tensor, a run-time scalar or a compile-time value. Numbers are converted
 * to the parameter's type where that loses nothing, else the launch fails with TW_E_ARG. */
typedef struct tw_arg {
    const char *name;
    tw_arg_kind kind;
    union {
        const DLTensor *tensor; /* borrowed for the call                         */
        int64_t i;              /* ints and bools                                */
        double f;
        const char *text;       /* a dtype ("f32"), a member of an enumeration, a function by
                                   name or text ("col <= row"), or any value ("1e-3"); NULL: as if
                                   it were left out */
    } value;
} tw_arg;

static inline tw_arg tw_arg_tensor(const char *name, const DLTensor *t)
{
    tw_arg a;
    a.name = name;
    a.kind = TW_ARG_TENSOR;
    a.value.tensor = t;
    return a;
}
static inline tw_arg tw_arg_int(const char *name, int64_t v)
{
    tw_arg a;
    a.name = name;
    a.kind = TW_ARG_INT;
    a.value.i = v;
    return a;
}
static inline tw_arg tw_arg_float(const char *name, double v)
{
    tw_arg a;
    a.name = name;
    a.kind = TW_ARG_FLOAT;
    a.value.f = v;
    return a;
}
static inline tw_arg tw_arg_bool(const char *name, bool v)
{
    tw_arg a;
    a.name = name;
    a.kind = TW_ARG_BOOL;
    a.value.i = v ? 1 : 0;
    return a;
}
static inline tw_arg tw_arg_text(const char *name, const char *v)
{
    tw_arg a;
    a.name = name;
    a.kind = TW_ARG_TEXT;
    a.value.text = v;
    return a;
}
#define TW_TENSOR(name, t) tw_arg_tensor((name), (t))
#define TW_INT(name, v) tw_arg_int((name), (v))
#define TW_F32(name, v) tw_arg_float((name), (v))
#define TW_BOOL(name, v) tw_arg_bool((name), (v))
#define TW_TEXT(name, v) tw_arg_text((name), (v))

typedef struct tw_launch_options {
    size_t size;
    const char *config;   /* "BLOCK_M=64,BLOCK_N=64": pins what it names, the rest takes its default
                             and nothing is tuned; NULL: the store, then the context's tune mode  */
    bool f64;             /* interp only: keep every float in double and round only at stores     */
    bool running_max_low; /* interp only: running_max returns its lowest allowed value, and
                             masked_range visits every block as one with hidden elements          */
    int64_t program_first, program_count; /* run only these programs of the grid, numbered with
                                             the first grid dimension fastest; count 0: all       */
    bool quiet;           /* what the kernel prints is lost                                       */
} tw_launch_options;
#define TW_LAUNCH_OPTIONS_INIT {sizeof(tw_launch_options), NULL, false, false, 0, 0, false}

/* Checks the arguments, specialises and compiles on the first use of a combination, and launches.
 * k and dev are of one context.
 * A tensor argument needs: the parameter's dtype and rank, agreement of dimensions of one name,
 * the device's memory, natural alignment, no null base unless empty; an out or inout tensor
 * overlaps no other argument and has no zero stride over an extent above 1.
 * On the host the work is done on return; on a GPU it is queued on the stream, a CUstream or NULL
 * (the default one). While the stream is capturing, nothing is compiled or loaded: a kernel that
 * was not launched with such arguments before fails with TW_E_UNSUPPORTED, and the capture stays
 * whole.
 * An empty grid succeeds without compiling.
 * Fails with TW_E_ARG, TW_E_SOURCE, TW_E_LIMIT, TW_E_UNSUPPORTED (the target lacks what the kernel
 * needs, or this process may not make memory executable), TW_E_ASSERT, TW_E_NOMEM, TW_E_DEVICE,
 * TW_E_DRIVER; and, where TW_TUNE_ON_MISS tunes, as tw_tune. */
TW_API TW_CHECKED tw_status tw_launch(tw_kernel *k, tw_device *dev, tw_stream *stream,
                                      const tw_arg *args, size_t count);
TW_API TW_CHECKED tw_status tw_launch_with(tw_kernel *k, tw_device *dev, tw_stream *stream,
                                           const tw_arg *args, size_t count,
                                           const tw_launch_options *options);

/* Launches, waits, and tells how long the kernel ran: by the device's own events where it has them,
 * with its caches emptied first. Fails as tw_launch and tw_stream_sync do. */
TW_API TW_CHECKED tw_status tw_launch_timed(tw_kernel *k, tw_device *dev, tw_stream *stream,
                                            const tw_arg *args, size_t count,
                                            const tw_launch_options *options, double *seconds);

/* The shape that the other arguments give to tensor parameter name (an output to allocate).
 * Outputs may be missing from args. dims has room for 8. Fails with TW_E_ARG, TW_E_SOURCE. */
TW_API TW_CHECKED tw_status tw_kernel_shape(tw_kernel *k, const tw_arg *args, size_t count,
                                            const char *name, int *rank, int64_t *dims,
                                            DLDataType *dtype);

/* Binds compile-time values and the configuration once; its launches take tensors and scalars by
 * position (in parameter order, names ignored; one that has a default may be left out: at the end,
 * or by TW_TEXT("", NULL) in its place) and skip the lookup.
 * k and dev must outlive it. Fails as tw_launch. */
TW_API TW_CHECKED tw_status tw_kernel_specialize(tw_kernel *k, tw_device *dev, const tw_arg *args,
                                                 size_t count, const tw_launch_options *options,
                                                 tw_bound **out);
TW_API TW_CHECKED tw_status tw_bound_launch(tw_bound *b, tw_stream *stream, const tw_arg *args,
                                            size_t count);
TW_API void tw_bound_destroy(tw_bound *b);

/* ---- tuning --------------------------------------------------------------------------------- */

/* Which layer knew the configuration, best first. */
#define TW_LAYER_MAP(X)                                                  \
    X(PINNED, "pinned by the caller")                                    \
    X(TUNED, "tuned now")                                                \
    X(EXACT, "store: this problem, this device")                         \
    X(OTHER_DRIVER, "store: tuned under another driver or LLVM version") \
    X(SEED, "shipped seed")                                              \
    X(NEAREST_PROBLEM, "store: nearest problem")                         \
    X(NEAREST_DEVICE, "store: nearest device")                           \
    X(DEFAULT, "the kernel's default")
typedef enum tw_layer {
#define TW_LAYER_ENUM(name, text) TW_LAYER_##name,
    TW_LAYER_MAP(TW_LAYER_ENUM)
#undef TW_LAYER_ENUM
} tw_layer;
TW_API const char *tw_layer_text(tw_layer layer);

typedef struct tw_answer {
    size_t size;
    tw_layer layer;
    char config[256];   /* "BLOCK_M=64,BLOCK_N=64,threads=2" */
    double seconds;     /* measured median of that configuration; 0 = never measured  */
    bool artifact_stored; /* compiled code came from the store                        */
    double compile_s;   /* text to loaded machine code, 0 if it came from the store   */
    size_t code_bytes;  /* machine code                                               */
    int ir_ops, text_lines;
    int64_t programs;   /* in the grid of these arguments with that configuration */
} tw_answer;
#define TW_ANSWER_INIT {sizeof(tw_answer), TW_LAYER_DEFAULT, {0}, 0.0, false, 0.0, 0, 0, 0, 0}
/* What a launch with these arguments would use; compiles it if need be, launches nothing, tunes
 * nothing. Fails as tw_launch, but for what only running shows. */
TW_API TW_CHECKED tw_status tw_query(tw_kernel *k, tw_device *dev, const tw_arg *args, size_t count,
                                     const tw_launch_options *options, tw_answer *answer);

typedef struct tw_tune_progress {
    size_t tried, total;  /* candidates */
    double best_s;        /* best median so far, 0 = none yet */
    double elapsed_s, budget_s;
    const char *phase;    /* "compiling", "measuring", "checking"; "waiting" for another process */
} tw_tune_progress;
/* Called by the thread that is in tw_tune. Return false to stop: the best so far is kept, if it
 * beat the default, and tw_tune returns TW_E_CANCELLED. */
typedef bool (*tw_tune_progress_fn)(void *user, const tw_tune_progress *p);

typedef struct tw_tune_options {
    size_t size;
    double budget_s;          /* default 60 */
    const char *config;       /* restricts: parameters named here keep that value */
    bool again;               /* tune even if the store has an exact answer */
    tw_tune_progress_fn progress;
    void *progress_user;
} tw_tune_options;
#define TW_TUNE_OPTIONS_INIT {sizeof(tw_tune_options), 60.0, NULL, false, NULL, NULL}

typedef enum tw_trial_state {
    TW_TRIAL_OK,       /* measured; reason: what its code spills, if it does              */
    TW_TRIAL_STOPPED,  /* measured, given up early: clearly slower than the best          */
    TW_TRIAL_PRUNED,   /* not measured; reason: a limit, spills, or whose code it has     */
    TW_TRIAL_FAILED,   /* did not compile or run; reason                                  */
    TW_TRIAL_WRONG,    /* ran, but its results differ from the default configuration's    */
    TW_TRIAL_SKIPPED   /* the budget ran out first                                        */
} tw_trial_state;
typedef struct tw_trial {
    char config[256];
    tw_trial_state state;
    double median_s;   /* by runs in pairs with the best so far                           */
    double spread_s;   /* median absolute deviation of its samples                        */
    int samples;
    char reason[160];
} tw_trial;

typedef struct tw_tune_report tw_tune_report;
/* Searches the kernel's and the device's space for these arguments on scratch copies of the outputs
 * and stores every trial. Another process tuning the same key is waited for and its result taken.
 * *report may be NULL if not wanted; it is written too when the call is cancelled.
 * Fails as tw_launch, and with TW_E_CANCELLED, TW_E_MISMATCH (the default configuration's results
 * are not the interpreter's). */
TW_API TW_CHECKED tw_status tw_tune(tw_kernel *k, tw_device *dev, const tw_arg *args, size_t count,
                                    const tw_tune_options *options, tw_tune_report **report);
TW_API void tw_tune_report_destroy(tw_tune_report *r);
TW_API size_t tw_tune_report_count(const tw_tune_report *r);
TW_API const tw_trial *tw_tune_report_trial(const tw_tune_report *r, size_t i);
TW_API size_t tw_tune_report_winner(const tw_tune_report *r);  /* index of a trial */
TW_API size_t tw_tune_report_default(const tw_tune_report *r); /* index of a trial */
/* How many configurations this call made code for, or took it from the store; 0 when another
 * process tuned or the answer was known. More than were measured when time ran out. */
TW_API size_t tw_tune_report_compiled(const tw_tune_report *r);
/* TUNED; EXACT: it was known, or another process found it; DEFAULT: the grid is empty; any other
 * layer: another process took longer than the budget, and this was the best known without it. */
TW_API tw_layer tw_tune_report_layer(const tw_tune_report *r);

/* ---- the store ------------------------------------------------------------------------------ */

typedef struct tw_store_row {
    int64_t id;
    const char *kernel, *problem, *target, *device, *config; /* borrowed for the callback */
    double seconds;
    int trials, artifacts;
    int64_t bytes;      /* of its artifacts */
    int64_t unix_time;
} tw_store_row;
typedef bool (*tw_store_fn)(void *user, const tw_store_row *row); /* false stops */
/* Every best known configuration, newest first. TW_E_STORE without a usable store. */
TW_API TW_CHECKED tw_status tw_store_list(tw_context *cx, tw_store_fn fn, void *user);
/* Every trial of one row of tw_store_list; none if there is no such row. TW_E_STORE, TW_E_NOMEM. */
typedef bool (*tw_trial_fn)(void *user, const tw_trial *trial);
TW_API TW_CHECKED tw_status tw_store_trials(tw_context *cx, int64_t id, tw_trial_fn fn, void *user);
/* Forgets everything (kernel = NULL) or what belongs to one kernel name; code in use stays in use.
 * *removed (may be NULL): configurations forgotten. TW_E_STORE, also when it is read-only. */
TW_API TW_CHECKED tw_status tw_store_clear(tw_context *cx, const char *kernel, int64_t *removed);

/* Where the store is and whether it is used. */
typedef struct tw_store_info {
    size_t size;
    const char *path; /* NULL: none was asked for; borrowed from cx */
    bool reads, writes;
    const char *why;  /* what is wrong and what to do, NULL if nothing; borrowed from cx */
    int64_t bytes;    /* of the file                                                     */
} tw_store_info;
#define TW_STORE_INFO_INIT {sizeof(tw_store_info), NULL, false, false, NULL, 0}
/* Succeeds without a store, too. Fails with TW_E_ARG. */
TW_API TW_CHECKED tw_status tw_store_query(tw_context *cx, tw_store_info *info);

typedef struct tw_store_counts {
    size_t size;
    int64_t configs, trials, artifacts; /* written, taken over or removed              */
    int64_t known;                      /* import: left out, the store knows as much   */
    int64_t refused;                    /* import: left out, not what a store writes   */
} tw_store_counts;
#define TW_STORE_COUNTS_INIT {sizeof(tw_store_counts), 0, 0, 0, 0, 0}
/* Writes what the store knows to a new file, for tw_store_import on this or another machine;
 * artifacts: the compiled code too. done may be NULL.
 * Fails with TW_E_IO (path exists, cannot be written), TW_E_STORE, TW_E_ARG. */
TW_API TW_CHECKED tw_status tw_store_export(tw_context *cx, const char *path, bool artifacts,
                                            tw_store_counts *done);
/* Takes over what a file of tw_store_export knows and the store does not, or knows to be faster on
 * the same device; every value is checked. Artifacts are code that will run in this process: ask
 * for them only from whom you trust. They are taken only from a file that this user or root owns
 * and nobody else can write. All or nothing is taken over. done may be NULL.
 * Fails with TW_E_IO (missing, or not such a file), TW_E_STORE, TW_E_ARG. */
TW_API TW_CHECKED tw_status tw_store_import(tw_context *cx, const char *path, bool artifacts,
                                            tw_store_counts *done);

typedef struct tw_prune_options {
    size_t size;
    bool other_versions; /* artifacts of other versions of Tilewright and LLVM: none reads them   */
    double older_s;      /* all that was stored longer ago; 0: nothing                            */
    int64_t max_bytes;   /* until the file has at most this size: the oldest artifacts, then
                            trials, never configurations; 0: any size                             */
} tw_prune_options;
#define TW_PRUNE_OPTIONS_INIT {sizeof(tw_prune_options), true, 0.0, 0}
/* Removes what options (NULL: the defaults) say. removed may be NULL.
 * Fails with TW_E_STORE, TW_E_ARG. */
TW_API TW_CHECKED tw_status tw_store_prune(tw_context *cx, const tw_prune_options *options,
                                           tw_store_counts *removed);

/* ---- looking inside ------------------------------------------------------------------------- */

typedef struct tw_compile_options {
    size_t size;
    const char *target; /* "cpu", "cpu-avx512", ...: a code path; NULL: the profile's, or "cpu" */
    const char *emit;   /* "ast", "tir", "ll", "obj", "asm"; GPUs: "sched", "ptx"; "explain" */
    const char *set;    /* "T=f32,D=128,BLOCK_M=128,generic=true": brackets, tune and schedule */
    const char *dump;   /* pass name: IR after that pass goes to the log (debug level); "changed".
                           Those of the target count too; one that does not run is TW_E_ARG */
    bool time;          /* time of each pass to the log (info level) */
    const char *profile; /* GPUs: what the code is for, by the name of a profile that is built in
                           ("rtx4080"), or a file; NULL: what all of the target's capability have */
} tw_compile_options;
#define TW_COMPILE_OPTIONS_INIT {sizeof(tw_compile_options), NULL, "ll", NULL, NULL, false, NULL}
/* Compiles without tensors: assumes innermost stride 1, bases and other strides multiples of 16
 * bytes, unknown run-time extents; set generic=true to assume nothing. Where set names nothing of
 * the configuration it is the kernel's default, of those the first that the GPU's limits allow.
 * *data is freed with tw_free; text has a NUL after its *size bytes. Fails with TW_E_SOURCE,
 * TW_E_ARG, TW_E_LIMIT, TW_E_NOMEM, TW_E_UNSUPPORTED (the target lacks what the kernel needs; no
 * syntax tree of a .tir), TW_E_IO (the profile). */
TW_API TW_CHECKED tw_status tw_kernel_compile(tw_kernel *k, const tw_compile_options *options,
                                              char **data, size_t *size);
TW_API void tw_free(void *data);

#ifdef __cplusplus
}
#endif
#endif
