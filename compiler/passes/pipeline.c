#include "compiler/passes/pipeline.h"
#include "compiler/base/error.h"
#include "compiler/base/guard.h"
#include "compiler/ir/irtext.h"
#include <string.h>
#include <time.h>

#define PASS(name, help) tw_status pass_##name(pass_cx *cx, ir_module *m);
#define STEP(name)
#include "compiler/passes/passes.def"

static const pass_row rows[] = {
#define PASS(name, help) {#name, pass_##name, false},
#define STEP(name)
#include "compiler/passes/passes.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

static const char *const steps[] = {
#define PASS(name, help)
#define STEP(name) #name,
#include "compiler/passes/passes.def"
};
enum { STEPS = sizeof steps / sizeof *steps };

static const pass_table level_1 = {rows, ROWS, steps, STEPS};

static const char *const tail_steps[] = {"peel_tails", "prove_bounds", "simplify", "cse", "dce"};
static const pass_table tails = {rows, ROWS, tail_steps, sizeof tail_steps / sizeof *tail_steps};

typedef struct pipeline {
    const pass_table *table;
    void *shared;
    ir_module *m;
    diag_list *diags;
    const pipeline_options *options; /* or NULL */
    arena *scratch;
    const char *only; /* run this pass, or NULL: all steps */
} pipeline;

static const pass_row *row_of(const pass_table *t, const char *name)
{
    for (size_t i = 0; i < t->rows; i++) {
        if (strcmp(t->row[i].name, name) == 0)
            return &t->row[i];
    }
    return NULL;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void say(const pipeline *p, const char *heading, const char *text)
{
    if (p->options && p->options->text)
        p->options->text(p->options->user, heading, text);
}

static void dump(const pipeline *p, const pass_row *row, uint32_t changes)
{
    const char *what = p->options ? p->options->dump : NULL;
    strbuf heading, text;

    if (!what || !(strcmp(what, row->name) == 0 || (changes && strcmp(what, "changed") == 0)))
        return;
    sb_init(&heading, p->scratch);
    sb_init(&text, p->scratch);
    sb_fmt(&heading, "after %s (%u changes)", row->name, changes);
    ir_print(&text, p->m, 0);
    say(p, heading.s, text.s);
}

static void report_time(const pipeline *p, const pass_row *row, double seconds)
{
    strbuf text;

    if (!p->options || !p->options->time)
        return;
    sb_init(&text, p->scratch);
    sb_fmt(&text, "%8.3f ms  %s", 1e3 * seconds, row->name);
    say(p, "time", text.s);
}

static bool verifies(const pipeline *p)
{
#ifndef NDEBUG
    (void)p;
    return true;
#else
    return p->options && p->options->verify_each;
#endif
}

static tw_status verify(const pipeline *p, const pass_row *row)
{
    diag_list broken;
    strbuf text;

    if (row->partial || !verifies(p))
        return TW_OK;
    diag_init(&broken, p->scratch);
    if (ir_verify(p->m, &broken))
        return TW_OK;
    sb_init(&text, p->scratch);
    diag_render(&broken, &text, 0);
    return error_set(TW_E_INTERNAL, "pass %s broke the IR:\n%s", row->name, text.s);
}

static tw_status run_pass(pipeline *p, const pass_row *row)
{
    pass_cx cx = {.scratch = p->scratch, .diags = p->diags, .shared = p->shared};
    arena_mark mark = arena_save(p->scratch);
    double start = now();
    tw_status st = row->run(&cx, p->m);
    double seconds = now() - start;

    if (st == TW_OK) {
        report_time(p, row, seconds);
        dump(p, row, cx.changes);
        st = verify(p, row);
    }
    arena_rewind(p->scratch, mark);
    return st;
}

static tw_status run_steps(void *arg)
{
    pipeline *p = arg;

    if (p->only)
        return run_pass(p, row_of(p->table, p->only));
    for (size_t i = 0; i < p->table->steps; i++) {
        tw_status st = run_pass(p, row_of(p->table, p->table->step[i]));
        if (st != TW_OK)
            return st;
    }
    return TW_OK;
}

/* The scratch arena must not be lost when a pass throws. */
static tw_status run_guarded(pipeline *p)
{
    arena scratch;

    arena_init(&scratch);
    p->scratch = &scratch;
    tw_status st = guard_run(run_steps, p);
    arena_release(&scratch);
    return st;
}

tw_status pipeline_run_table(const pass_table *table, const char *only, void *shared, ir_module *m,
                             diag_list *diags, const pipeline_options *options)
{
    pipeline p = {.table = table, .shared = shared, .m = m, .diags = diags, .options = options,
                  .only = only};

    if (only && !row_of(table, only))
        return error_set(TW_E_ARG, "there is no pass '%s'", only);
    return run_guarded(&p);
}

tw_status pipeline_run(ir_module *m, diag_list *diags, const pipeline_options *options)
{
    if (m->level != 1)
        return TW_OK;
    return pipeline_run_table(&level_1, NULL, NULL, m, diags, options);
}

tw_status pipeline_run_tails(ir_module *m, diag_list *diags, const pipeline_options *options)
{
    return pipeline_run_table(&tails, NULL, NULL, m, diags, options);
}

tw_status pipeline_run_pass(ir_module *m, const char *pass, diag_list *diags,
                            const pipeline_options *options)
{
    if (m->level != 1)
        return error_set(TW_E_ARG, "pass '%s' is one for tile IR of level 1", pass);
    return pipeline_run_table(&level_1, pass, NULL, m, diags, options);
}

const char *pipeline_pass_name(size_t i)
{
    return i < ROWS ? rows[i].name : NULL;
}
