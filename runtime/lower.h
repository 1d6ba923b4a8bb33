#ifndef TW_RUNTIME_LOWER_H
#define TW_RUNTIME_LOWER_H
/* A kernel's source lowered with one configuration, and what the host needs of it at a launch. */
#include "runtime/runtime.h"

/* Values of every bracket and tune parameter, as kernel_source.lower wants them. */
typedef struct binding_list {
    uint32_t n;
    ir_binding at[RUNTIME_MAX_CONSTS + RUNTIME_MAX_CONFIG];
} binding_list;
void bindings_of(const tw_kernel *k, const problem *p, const config *cfg, binding_list *out);

/* Everything of one lowering; release it with lowering_end whatever lowering_run returned. */
typedef struct lowering {
    const tw_kernel *k;
    const target *t;
    arena a;
    intern names;
    diag_list diags;
    ir_module *module; /* level 1, before the passes */
    hash128 hash;      /* ir_hash of it, but for the asserts of a checked kernel */
    const pipeline_options *passes; /* dumps and times, or NULL */
} lowering;
void lowering_begin(lowering *l, const tw_kernel *k, const target *t);
/* Not under guard_run; sets the error. */
tw_status lowering_run(lowering *l, const problem *p, const config *cfg);
void lowering_end(lowering *l);
/* Sets this thread's error from diags, or from st alone when there are none. A text whose only
 * mistakes are limits that it exceeds fails with TW_E_LIMIT, wherever that was found. */
tw_status diags_failed(diag_list *diags, tw_status st);

/* Writes what the specialisation promises to the kernel's parameters. */
void set_facts(ir_module *m, const kernel_sig *sig, const tensor_facts *facts);

/* Copies into a; keeps nothing of m. Under guard_run. */
void plan_make(const tw_kernel *k, const ir_module *m, arena *a, launch_plan *out);
/* in: room for RUNTIME_MAX_PARAMS + RUNTIME_MAX_SYMBOLS; on return the value of each parameter of
 * the kernel function, defaults included. TW_E_ARG when a require does not hold. */
tw_status plan_eval(const tw_kernel *k, const launch_plan *plan, const launch_args *args,
                    ir_scalar *in, int64_t grid[3]);
static inline bool grid_is_empty(const int64_t grid[3])
{
    return grid[0] <= 0 || grid[1] <= 0 || grid[2] <= 0;
}

#endif
