#include "tests/support/sched_rig.h"
#include "compiler/ir/irbuild.h"
#include "tests/support/ir_fixture.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

#define SEEDS 6

void sched_open_module(sched_rig *r, ir_module *m)
{
    memset(r, 0, sizeof *r);
    r->m = m;
    r->launch = (interp_launch){.arg = r->arg, .grid = {1, 1, 1}, .step_limit = 1000000};
}

void sched_open(sched_rig *r, const char *text)
{
    sched_open_module(r, ir_must(text));
}

void sched_bind(sched_rig *r, int p, void *base, const int64_t *extent)
{
    interp_view *v = &r->arg[p].view;
    int64_t step = 1;

    v->base = base;
    for (int d = r->m->kernel->params.at[p].type.rank - 1; d >= 0; d--) {
        v->extent[d] = extent[d];
        v->stride[d] = step;
        step *= extent[d];
    }
}

tw_status sched_run(sched_rig *r, const ir_module *m, uint64_t seed)
{
    r->launch.seed = seed;
    return interp_run(interp_prepare(&ir_arena, m), &r->launch, 0, INT64_MAX, &r->fault);
}

void sched_must_run(sched_rig *r)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        tw_status st = sched_run(r, r->m, seed);
        ck_assert_msg(st == TW_OK, "seed %d: %s: %s", (int)seed, tw_status_name(st), r->fault.text);
    }
}

void sched_must_fail(sched_rig *r, const char *const *text)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        tw_status st = sched_run(r, r->m, seed);
        ck_assert_msg(st == TW_E_SOURCE, "seed %d: %s %s", (int)seed, tw_status_name(st),
                      r->fault.text);
        for (const char *const *t = text; *t; t++)
            ck_assert_msg(strstr(r->fault.text, *t) != NULL, "seed %d: no '%s' in: %s", (int)seed,
                          *t, r->fault.text);
    }
}

/* ---- mutations ---- */

typedef struct mutation {
    ir_module *m; /* a copy */
    int wanted, seen;
    bool trap, done;
    char what[96];
} mutation;

/* How many ways there are to weaken the op. */
static int forms_of(const ir_op *op)
{
    switch ((unsigned)op->code) {
    case OP_COPY_WAIT:
    case OP_WGMMA_WAIT:
        return 2;
    case OP_BARRIER:
    case OP_BARRIER_WARP:
    case OP_COPY_COMMIT:
    case OP_MBAR_WAIT:
    case OP_MBAR_ARRIVE:
    case OP_MBAR_EXPECT:
    case OP_FENCE_ASYNC:
        return 1;
    default:
        return 0;
    }
}

static void weaken(ir_op *op, void *arg)
{
    mutation *mu = arg;
    int forms = forms_of(op), form = mu->wanted - mu->seen;

    mu->seen += forms;
    if (mu->done || form < 0 || form >= forms)
        return;
    mu->done = true;
    if (mu->trap) {
        ir_builder b = ir_before(mu->m->kernel, op);
        ir_assert(&b, ir_const_int(&b, DT_I1, 0), "nobody comes here");
        return;
    }
    snprintf(mu->what, sizeof mu->what, "%s '%s' of line %d",
             form ? "one group more in" : "without", op_info(op->code)->name,
             op->where.src ? source_line(op->where.src, op->where.lo) : 0);
    if (form == 1) {
        op->attr[0].i++;
        return;
    }
    for (int i = 0; i < op->nres; i++)
        ir_replace_uses(mu->m->kernel, op->res + (ir_val)i, op->args[i]);
    ir_unlink(op);
}

static bool is_found(sched_rig *r, const ir_module *m)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        tw_status st = sched_run(r, m, seed);
        if (st == TW_E_SOURCE || st == TW_E_LIMIT) /* without an end is wrong too */
            return true;
        ck_assert_msg(st == TW_OK, "%s: %s", tw_status_name(st), r->fault.text);
    }
    return false;
}

ir_module *sched_weakened(const ir_module *m, int n, const char **what)
{
    mutation mu = {.m = ir_clone(m, &ir_arena), .wanted = n};

    ir_walk(mu.m->kernel->body, weaken, &mu);
    *what = arena_printf(&ir_arena, "%s", mu.what);
    return mu.done ? mu.m : NULL;
}

ir_module *sched_trapped(const ir_module *m, int n)
{
    mutation mu = {.m = ir_clone(m, &ir_arena), .wanted = n, .trap = true};

    ir_walk(mu.m->kernel->body, weaken, &mu);
    return mu.m;
}

int sched_mutate(sched_rig *r, const char **missed)
{
    const char *what;
    strbuf list;
    int n = 0;

    sb_init(&list, &ir_arena);
    for (ir_module *m; (m = sched_weakened(r->m, n, &what)) != NULL; n++) {
        if (!is_found(r, m))
            sb_fmt(&list, "%s\n", what);
    }
    *missed = list.n ? list.s : "";
    return n;
}
