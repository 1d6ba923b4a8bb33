#ifndef TW_TARGET_INTERP_H
#define TW_TARGET_INTERP_H
/* Executes tile IR directly: the oracle of every pass and target.
 *
 * A module is prepared once; the result is immutable and may be run by any number of agents, in any
 * threads. An agent runs one program of the grid at a time: its state is explicit frames on a stack
 * of its own, so that control can pass to another agent between any two ops.
 *
 * Arithmetic is that of ireval.h: every op rounds to its dtype. dot and reduce_sum of f32 add in
 * f32, one after the other in ascending order, after the accumulator. With `f64` all floats stay in
 * double and are rounded only where they are stored.
 *
 * Every access is checked whatever the `inside` bits say: outside of the tensor a load gives 0 and
 * a store does nothing. An access outside where `inside` was set is a wrong proof of a pass, and
 * fails as TW_E_INTERNAL.
 *
 * At level 2 a program is a block of warps. Each is an agent that holds only the elements that its
 * threads hold, runs until it must wait, and then another runs. Shared memory begins poisoned;
 * copies land as early or as late as they may; a race (interp_race.h), a wait for what never comes
 * and a barrier that not all reach fail as TW_E_SOURCE, with both ops. */
#include "compiler/ir/ireval.h"

typedef struct interp_program interp_program;
/* The module must be verified and outlive the program; both may live in a. Under guard_run. */
interp_program *interp_prepare(arena *a, const ir_module *m);

typedef struct interp_view {
    void *base;
    int64_t stride[VIEW_MAX_RANK]; /* in elements */
    int64_t extent[VIEW_MAX_RANK];
} interp_view;

/* The value of one parameter of the kernel function: tensors use view, all others scalar. */
typedef struct interp_arg {
    interp_view view;
    ir_scalar scalar;
} interp_arg;

typedef struct interp_launch {
    const interp_arg *arg; /* one a parameter, in order */
    int64_t grid[3];
    bool f64;             /* keep every float in double and round only at stores */
    bool running_max_low; /* what is left open comes out the other way: running_max gives its lowest
                             value, some is always true and every never */
    uint64_t step_limit;  /* ops that one program (level 2: one warp) may execute; 0 = no limit */
    /* What a program prints: which of the kernel's prints, in text order from 0; row-major
     * elements. NULL: nothing. */
    void (*print)(void *user, int32_t index, const int64_t program[3], const void *elements);
    void *print_user;
    uint64_t seed;        /* level 2: which warp runs next, and which copies land early or late */
    bool (*stop)(
        void *user); /* asked now and then, by any thread; true ends the run. May be NULL */
    void *stop_user;
} interp_launch;

/* Why a run stopped. text: the assert's text, or what went wrong. */
typedef struct interp_fault {
    tw_status status;
    const ir_op *op; /* or NULL */
    const ir_op *other; /* level 2: what op collides with, or waits for; or NULL */
    int32_t assert_index; /* TW_E_ASSERT: which of the kernel's asserts, in text order from 0 */
    int nvalues;          /* that its text shows */
    int32_t value[ASSERT_MAX_VALUES];
    int64_t program[3];
    char text[256];
} interp_fault;

/* Runs programs first .. first + count - 1 of the grid, numbered with the first dimension fastest;
 * programs beyond the grid's end are not run. fault may be NULL. Fails with TW_E_ASSERT,
 * TW_E_LIMIT (the step limit), TW_E_CANCELLED (stop), TW_E_NOMEM, TW_E_INTERNAL. */
tw_status interp_run(const interp_program *p, const interp_launch *l, int64_t first, int64_t count,
                     interp_fault *fault);

/* ---- one step at a time: level 1 ---- */
typedef struct interp_agent interp_agent;
enum interp_state { INTERP_RUNNING, INTERP_DONE, INTERP_FAILED, INTERP_BLOCKED };

/* NULL when there is no memory. The launch is copied, its arguments are not. */
interp_agent *interp_agent_create(const interp_program *p, const interp_launch *l);
void interp_agent_destroy(interp_agent *ag);
/* Puts the agent at the first op of a program of the grid. */
void interp_agent_start(interp_agent *ag, const int64_t program[3]);
/* Executes one op. After INTERP_DONE or INTERP_FAILED only interp_agent_start may follow. */
enum interp_state interp_step(interp_agent *ag);
/* The op that interp_step would execute next; NULL when done. */
const ir_op *interp_agent_next(const interp_agent *ag);
/* The elements that v holds now, row-major; for tests and for looking inside. */
const ir_scalar *interp_agent_value(const interp_agent *ag, ir_val v);

#endif
