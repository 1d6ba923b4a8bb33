#ifndef TW_TARGET_H
#define TW_TARGET_H
/* A target turns level-1 tile IR into an artifact. It is data plus a few functions; nothing outside
 * compiler/target includes llvm-c. One struct per code path ("cpu-avx512", "interp"). */
#include "compiler/base/hash.h"
#include "compiler/ir/irsource.h"
#include "compiler/passes/facts.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/gpu.h"
#include "compiler/target/artifact.h"

/* A schedule parameter: how, not what, a target computes. Tuned and pinned like tune parameters. */
typedef struct schedule_param { /* not sched_param: <sched.h> has that tag */
    const char *name;
    const char *help;
    uint32_t n;
    int64_t value[8];      /* candidates; the first is the default. 0 candidates: see dynamic */
    int64_t lo, hi;        /* what may be given by hand */
    bool dynamic;          /* "threads": candidates come from the device */
} sched_param;

typedef struct target target;

typedef struct target_input {
    ir_module *module;         /* level 1, after the passes; the target may change it */
    const ir_binding *config;  /* schedule parameters (others are ignored) */
    uint32_t nconfig;
    diag_list *diags;
    const gpu_limits *gpu; /* what the GPU has that the code is for: one that is there, or a
                              profile's; its capability may be above the target's. NULL: what all
                              of the target's capability have */
    const pipeline_options
        *passes; /* dumps and times of the passes that the target runs, or NULL */
} target_input;

/* What a block of the code would ask of a GPU. */
typedef struct target_needs {
    int threads;
    int registers;        /* of a thread: an estimate; 0: not known (text of level 2) */
    int32_t shared_bytes;
    hash128 code;         /* equal for equal code, whatever the configuration; zero: not known */
} target_needs;

struct target {
    const char *name;     /* "cpu-avx512": part of every key */
    const char *family;   /* "cpu": what --target=cpu means is the best usable of the family */
    const char *help;
    const sched_param *sched;
    uint32_t nsched;
    const char *const *emits; /* what emit accepts beyond "ast" and "tir", NULL-terminated; the
                                 first has been through all passes that compile runs */
    const void *data;     /* the family's own description */

    bool (*usable)(const target *t); /* can this machine run it? */
    /* LLVM's name for the CPU and its features, as compiled for; "" where there is none. */
    const char *(*features)(const target *t);
    /* The artifact lives in a. Errors: TW_E_LIMIT (diag says which limit), TW_E_UNSUPPORTED,
     * TW_E_NOMEM, TW_E_INTERNAL. Under guard_run. */
    tw_status (*compile)(const target *t, const target_input *in, arena *a, artifact **out);
    /* One printed stage ("ll", "asm", "obj"). Under guard_run. */
    tw_status (*emit)(const target *t, const target_input *in, const char *kind, arena *a,
                      const char **data, size_t *size);
    /* What compile's code would need, known without making it: a tenth of the time or less. The
     * errors are compile's. NULL: the target has no such limits. Under guard_run. */
    tw_status (*needs)(const target *t, const target_input *in, target_needs *out);
};

/* The families, each in a folder of its own. */
extern const target *const cpu_targets[]; /* best first; NULL ends it */
extern const target interp_target;
extern const target *const nvptx_targets[]; /* newest first; NULL ends it */

/* All code paths, best first within a family. */
size_t target_count(void);
const target *target_at(size_t i);
/* By exact name, or by family: its first usable path. NULL when unknown or none is usable. */
const target *target_find(const char *name);
const sched_param *target_sched(const target *t, const char *name);
/* Identifies the code generator: part of an artifact's key ("llvm-22.1.8/3"). */
const char *target_codegen_version(void);

#endif
