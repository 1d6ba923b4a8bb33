#ifndef TW_PASSES_PIPELINE_H
#define TW_PASSES_PIPELINE_H
/* Runs the passes in the order that passes.def gives (a pass may run twice). The runner, not the
 * pass, verifies, dumps and times. A pass `foo_bar` is the function pass_foo_bar in foo_bar.c,
 * with tests in tests/pass/foo_bar/. */
#include "compiler/ir/ir.h"
#include "tilewright.h"

typedef struct pass_cx {
    arena *scratch;  /* rewound after the pass */
    diag_list *diags;
    uint32_t changes; /* what the pass did, in its own unit; 0 = nothing changed. Starts at 0 */
    void *shared;     /* what the passes of a table know in common, see pass_table; or NULL */
} pass_cx;
typedef tw_status (*pass_fn)(pass_cx *cx, ir_module *m);

/* Passes and the order in which they run. */
typedef struct pass_row {
    const char *name;
    pass_fn run;
    bool partial; /* leaves IR that only a later pass of the table makes whole: not verified */
} pass_row;
typedef struct pass_table {
    const pass_row *row;
    size_t rows;
    const char *const *step; /* names */
    size_t steps;
} pass_table;

typedef struct pipeline_options {
    const char *dump; /* NULL, a pass name, or "changed" */
    bool verify_each; /* always on in debug builds */
    void (*text)(void *user, const char *heading, const char *text); /* dumps and times */
    void *user;
    bool time;
} pipeline_options;

/* Runs every pass; options may be NULL. Under guard_run. A module of level 2 stays as it is. */
tw_status pipeline_run(ir_module *m, diag_list *diags, const pipeline_options *options);
/* After pipeline_run: peel_tails, and what its whole blocks let other passes do. For targets whose
 * code is better without bounds than short. */
tw_status pipeline_run_tails(ir_module *m, diag_list *diags, const pipeline_options *options);
/* Runs one pass, for tests and tools. TW_E_ARG when no pass has that name. */
tw_status pipeline_run_pass(ir_module *m, const char *pass, diag_list *diags,
                            const pipeline_options *options);
/* The same with another table; only: one pass, or NULL for all steps. */
tw_status pipeline_run_table(const pass_table *table, const char *only, void *shared, ir_module *m,
                             diag_list *diags, const pipeline_options *options);
/* The i-th of the distinct passes, or NULL. */
const char *pipeline_pass_name(size_t i);

#endif
