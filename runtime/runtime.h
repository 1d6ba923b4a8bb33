#ifndef TW_RUNTIME_H
#define TW_RUNTIME_H
/* The runtime's objects and the path of a launch; internal. docs/RUNTIME.md tells it in prose.
 *
 *   args -> launch_args (checked)      runtime_resolve_args   names, dtypes, shapes, facts
 *        -> spec (lock-free table)     by compile-time values, facts and size classes
 *        -> executable                 configuration (resolve.h), lower, passes, target, load
 *        -> steps on the driver        runtime_launch_exe
 *
 * Functions that return tw_status set this thread's error (error.h) when they fail. */
#include "compiler/base/error.h"
#include "compiler/base/hash.h"
#include "compiler/ir/ireval.h"
#include "compiler/ir/irsource.h"
#include "compiler/target/target.h"
#include "runtime/driver.h"
#include "runtime/profile.h"
#include "store/store.h"
#include <pthread.h>
#include <stdatomic.h>

struct dsl_unit;

/* A kernel above one of these is refused at load. The mask `given` of launch_eval is 64 bits. */
#define RUNTIME_MAX_PARAMS 64  /* tensors and scalars                     */
#define RUNTIME_MAX_SYMBOLS 64 /* run-time dimensions                     */
#define RUNTIME_MAX_CONSTS 32  /* bracket parameters                      */
#define RUNTIME_MAX_CONFIG 24  /* tune and schedule parameters together   */
#define RUNTIME_MAX_SLOTS 1024 /* arguments of one step of a recipe       */
#define RUNTIME_MAX_WORKSPACES 16
#define RUNTIME_CONFIG_TEXT 256 /* with its NUL; tw_answer.config         */

/* tw_version() and target_codegen_version(): what a row of the store names as its driver. */
#define RUNTIME_DRIVER_FORMAT "tilewright-%s %s"

/* ---- configurations -------------------------------------------------------------------------- */

/* A value for every tune parameter of the kernel, in the order written, then for every schedule
 * parameter of the target. */
typedef struct config {
    uint32_t n;
    ir_binding value[RUNTIME_MAX_CONFIG];
} config;

/* ---- problems and arguments ------------------------------------------------------------------ */

/* What a specialisation promises about a tensor. */
typedef struct tensor_facts {
    bool unit_inner; /* innermost stride is 1 element, or its extent is at most 1           */
    uint16_t align;  /* base and the other strides are multiples of this many bytes: 16 (the
                        widest class in use), or the element's size                         */
} tensor_facts;

/* What code is generated for, and for what sizes a configuration is chosen. */
typedef struct problem {
    uint32_t nconsts; /* = sig.nconsts, in its order */
    ir_binding cons[RUNTIME_MAX_CONSTS];
    tensor_facts facts[RUNTIME_MAX_PARAMS]; /* by parameter; of tensors only */
    int64_t symbol[RUNTIME_MAX_SYMBOLS];    /* value of each run-time dimension, sig order */
    hash128 content;                        /* zero until runtime_content_hash has been asked */
} problem;

/* Of a tensor's elements or a scalar, where the compile-time values are known. */
static inline enum dtype param_dtype(const sig_param *param, const problem *p)
{
    return param->dtype_const < 0 ? param->dtype : (enum dtype)p->cons[param->dtype_const].value;
}

/* Checked arguments of one launch. Large, and mostly unused: never cleared as a whole, so read only
 * what the kernel's signature says is there. The tuner may replace tensor[i].base by a scratch
 * copy of the same alignment. */
typedef struct launch_args {
    problem p;
    uint64_t given; /* bit i: parameter i was passed */
    uint64_t values; /* arguments with the same number differ in places of tensors alone; 0: none */
    tensor_arg tensor[RUNTIME_MAX_PARAMS];
    ir_scalar scalar[RUNTIME_MAX_PARAMS];
} launch_args;

enum resolve_flags {
    RESOLVE_SHAPES_ONLY = 1, /* outputs may be missing; no device, overlap or null checks        */
    RESOLVE_BY_POSITION = 2  /* args are the tensors and scalars in parameter order; out->p.cons
                                holds every compile-time value already and must agree           */
};
/* Checks args against the kernel's signature. dev may be NULL with RESOLVE_SHAPES_ONLY. No
 * allocation unless it fails. TW_E_ARG. */
tw_status runtime_resolve_args(const tw_kernel *k, const tw_device *dev, const tw_arg *args,
                               size_t count, unsigned flags, launch_args *out);
/* The same for a launch by name, or of exe, bound under a serial number, by position. *out is the
 * thread's, until its next call of either. */
tw_status runtime_resolve_named(const tw_kernel *k, const tw_device *dev, const tw_arg *args,
                                size_t count, launch_args **out);
struct executable;
tw_status runtime_resolve_bound(uint64_t serial, const struct executable *exe, const tw_arg *args,
                                size_t count, launch_args **out);
/* From 1 on, each once in a process: addresses come again, these do not. */
uint64_t runtime_serial(void);
/* ---- executables ----------------------------------------------------------------------------- */

/* A kernel lowered with one configuration: what the host evaluates at a launch. */
typedef struct launch_plan {
    launch_program *program;
    uint32_t nparams; /* of the kernel function: visible, then dimensions */
    uint32_t nvisible;
    int32_t *in_symbol;  /* [nparams - nvisible]: sig symbol of each hidden parameter            */
    uint32_t ndims;      /* fn->dims, which SLOT_DIM indexes */
    int32_t *dim_symbol; /* [ndims]: sig symbol, or -1 and the constant in dim_value            */
    int64_t *dim_value;
} launch_plan;

typedef struct executable {
    atomic_int refs;
    uint64_t serial; /* runtime_serial() */
    tw_kernel *kernel;
    tw_device *device;
    arena a; /* owns plan and art */
    config cfg;
    problem p;   /* what the code assumes; symbols: those of the problem it was first made for */
    hash128 key; /* of the artifact in the store */
    launch_plan plan;
    artifact *art;
    void *loaded; /* driver's handle; NULL until runtime_exe_load */
    pthread_mutex_t load_lock;
    atomic_bool is_loaded;
    struct executable *twin; /* whose plan, art and loaded code these are; NULL: its own */
    int threads; /* from the configuration, for the CPU */
    bool from_store;
    double compile_s; /* text to machine code; 0 when from the store */
} executable;

/* One with the code of another, for a configuration that differs from that one's in dynamic
 * schedule parameters only. *out has one reference, and holds one of `of`. TW_E_NOMEM, or why that
 * does not load. */
tw_status runtime_exe_twin(executable *of, const config *cfg, executable **out);

enum compile_flags {
    COMPILE_NO_STORE_READ = 1,
    COMPILE_NO_STORE_WRITE = 2, /* a candidate that may lose */
    COMPILE_NO_LOAD = 4,        /* call runtime_exe_load before the launch */
    COMPILE_NO_FINISH = 8       /* and runtime_exe_finish before that */
};
/* lower, set facts, passes, target (or the store, by artifact key). Any thread; several compile at
 * once. cfg has every parameter. *out has one reference. TW_E_SOURCE, TW_E_LIMIT,
 * TW_E_UNSUPPORTED, TW_E_NOMEM, TW_E_INTERNAL. */
tw_status runtime_compile(tw_kernel *k, tw_device *dev, const problem *p, const config *cfg,
                          unsigned flags, executable **out);
/* What the device's driver does of a compile, any thread: of a GPU's, the longer part. */
tw_status runtime_exe_finish(executable *exe);
/* Code from the store that does not load is compiled again. */
tw_status runtime_exe_load(executable *exe);
/* Writes its artifact to the store, if it is not there: for a candidate that won. */
void runtime_exe_store(executable *exe);
void runtime_exe_retain(executable *exe);
void runtime_exe_release(executable *exe);

typedef struct launch_options {
    tw_stream *stream;
    bool f64, running_max_low;
    bool prints; /* what the kernel prints goes to the log; else it is lost */
    bool (*stop)(void *user); /* interp: asked now and then, by any thread; true ends the launch
                                 with TW_E_CANCELLED. May be NULL */
    void *stop_user;
    int64_t program_first, program_count; /* count 0: all */
} launch_options;
/* options may be NULL. An empty grid succeeds. */
tw_status runtime_launch_exe(executable *exe, const launch_args *args, const launch_options *opt);
/* The same, waited for and timed: by the device's events where it has them. */
tw_status runtime_time_exe(executable *exe, const launch_args *args, const launch_options *opt,
                           double *seconds);
/* The grid of a launch; TW_E_ARG when a require does not hold. */
tw_status runtime_grid(const executable *exe, const launch_args *args, int64_t grid[3]);

/* ---- kernels --------------------------------------------------------------------------------- */

typedef struct kernel_use kernel_use; /* a kernel's code on one device: spec.h */

struct tw_kernel {
    tw_context *cx;
    arena a;
    struct dsl_unit *unit;       /* of kernel text, or NULL */
    const kernel_source *source; /* owned by unit, or by the kernel (tir) */
    const char *warnings;
    bool checked; /* see tw_kernel_set_checked */
    uint64_t serial; /* runtime_serial() */
    tw_param_info *params;      /* tw_kernel_param_count(k) of them */
    _Atomic(kernel_use *) uses; /* append-only; one per device it ran on */
    pthread_mutex_t lock;       /* inserts into the tables */
    pthread_cond_t built;       /* a spec left the state BUILDING */
    tw_kernel *next, **link;    /* in the context's list */
};

/* A kernel of a source that is not text. src->destroy is called with the kernel, and also when
 * this fails. */
tw_status runtime_kernel_of(tw_context *cx, const kernel_source *src, tw_kernel **out);
/* Hash of the level-1 IR lowered with p's compile-time values and the default configuration of
 * dev's target (see config_of_content): the first part of a configuration's key, kept in
 * p->content. Costs a lowering. */
tw_status runtime_content_hash(const tw_kernel *k, const tw_device *dev, const char *pin,
                               problem *p);
/* From now on launches of this problem on this device use exe (the tuner's winner). */
void runtime_adopt(tw_kernel *k, tw_device *dev, const launch_args *args, executable *exe,
                   tw_layer layer, double seconds);

/* ---- devices --------------------------------------------------------------------------------- */

struct tw_device {
    tw_context *cx;
    const driver *drv;
    const target *target;
    atomic_bool used; /* compiled for once: the target is fixed */
    uint64_t id;      /* never reused in a process */
    char spec[24];    /* "cpu" */
    char name[96];    /* "AMD EPYC 9354" */
    int threads;
    size_t l1_bytes, l2_bytes;
    DLDevice memory;    /* where its tensors are */
    gpu_profile gpu;    /* of a GPU; capability 0: it is none */
    char code_key[64];  /* what finished code depends on beyond the target: part of its key */
    void *self;                /* the driver's own */
    _Atomic(void *) workspace; /* one kept block between launches; launch.c */
    tw_device *next, **link;
};

/* ---- context --------------------------------------------------------------------------------- */

/* How the runtime reaches the tuner, which is above it. */
typedef struct tuner_ops {
    /* Tunes for args within budget_s and stores what it learned; *cfg is the winner, *seconds its
     * median, *layer says whether it was tuned now or taken from somebody who knew. Called without
     * locks, for TW_TUNE_ON_MISS. */
    tw_status (*tune_on_miss)(tw_kernel *k, tw_device *dev, const launch_args *args,
                              double budget_s, config *cfg, double *seconds, tw_layer *layer);
} tuner_ops;

struct tw_context {
    tw_config cfg;          /* store_path is a copy; seeds_path is gone */
    store *store;           /* always there; in memory when no file is */
    struct seed_list *seeds; /* what the store answers for what nobody tuned; seeds.h */
    const tuner_ops *tuner; /* NULL: none */
    pthread_mutex_t lock;   /* lists of devices and kernels */
    pthread_mutex_t log_lock;
    tw_device *devices;
    tw_kernel *kernels;
};

/* cfg may be NULL; tuner may be NULL. tw_context_create is tuner/context_create.c. */
tw_status runtime_context_create(const tw_config *cfg, const tuner_ops *tuner, tw_context **out);
void runtime_log(tw_context *cx, tw_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void runtime_log_text(tw_context *cx, tw_log_level level, const char *text); /* of any length */

#endif
