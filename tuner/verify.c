/* Right results. The start's are checked against the interpreter, on some programs of the grid, in
 * a tenth of the budget; every other candidate's against the start's, all of them. */
#include "compiler/base/check.h"
#include "compiler/base/mem.h"
#include "runtime/clock.h"
#include "tuner/session.h"
#include <string.h>

#define MAX_PROGRAMS 64
#define DIAGONAL_PROGRAMS 14
#define BUDGET_SHARE 0.1
#define LEAST_S 0.2 /* a tenth of a tiny budget would check nothing */
#define MAX_STOPS 3 /* of programs that take too long: what ended is then run once more */
#define ORACLE "interp"

tw_status verify_outputs(session *s, bool *equal, char *why, size_t size)
{
    *equal = true; /* where nothing is computed nothing is wrong */
    for (uint32_t i = 0; i < s->out.n && *equal; i++) {
        const scratch_tensor *t = &s->out.tensor[i];
        mismatch m;
        TRY(scratch_read(&s->out, i, s->buffer[i]));
        compare_views(&t->packed, s->buffer[i], s->reference[i], NULL, &m, NULL);
        *equal = !m.found;
        if (m.found)
            session_mismatch_text(s, i, &m, why, size);
    }
    return TW_OK;
}

static tw_status keep_reference(session *s)
{
    for (uint32_t i = 0; i < s->out.n; i++)
        TRY(scratch_read(&s->out, i, s->reference[i]));
    return TW_OK;
}

/* ---- the interpreter ------------------------------------------------------------------------ */

struct oracle {
    session *s;
    tw_device *dev;
    executable *exe;
    scratch out; /* the interpreter's */
    int64_t grid[3], total;
    int64_t chosen[MAX_PROGRAMS];
    int nchosen;
    double until;               /* when a program that runs is stopped; 0: never */
    double longest;             /* seconds of a program that ran to its end */
    int64_t done[MAX_PROGRAMS]; /* those; as many as the session's checked_programs */
    int stops;
};

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static int64_t on_diagonal(const oracle *o, int i)
{
    int64_t at = 0;

    for (int d = 2; d >= 0; d--)
        at = at * o->grid[d] + o->grid[d] * (i + 1) / (DIAGONAL_PROGRAMS + 1);
    return at;
}

/* Once each: what a program updates in place it may update only once. */
static void add_program(oracle *o, int64_t program)
{
    for (int i = 0; i < o->nchosen; i++)
        if (o->chosen[i] == program)
            return;
    o->chosen[o->nchosen++] = program;
}

/* All of a small grid; else first, last, along the diagonal, then anywhere. */
static void choose_programs(oracle *o)
{
    uint64_t state = 0x9e3779b97f4a7c15u;

    add_program(o, 0);
    add_program(o, o->total - 1);
    if (o->total <= MAX_PROGRAMS)
        for (int64_t i = 1; i < o->total; i++)
            add_program(o, i);
    for (int i = 0; i < DIAGONAL_PROGRAMS && o->nchosen < MAX_PROGRAMS; i++)
        add_program(o, on_diagonal(o, i));
    while (o->nchosen < MAX_PROGRAMS && o->nchosen < o->total)
        add_program(o, (int64_t)(next_random(&state) % (uint64_t)o->total));
}

/* The interpreter runs the same tune parameters; its own schedule has nothing to do with speed. */
static void oracle_config(const oracle *o, config *cfg)
{
    const tune_request *rq = &o->s->rq;
    const target *t = o->dev->target;

    *cfg = rq->start;
    cfg->n = rq->k->source->sig.ntunes;
    for (uint32_t i = 0; i < t->nsched; i++)
        cfg->value[cfg->n++] = (ir_binding){
            t->sched[i].name, BIND_INT,
            t->sched[i].dynamic || t->sched[i].n == 0 ? t->sched[i].lo : t->sched[i].value[0]};
}

static tw_status oracle_open(oracle *o)
{
    const tune_request *rq = &o->s->rq;
    config cfg;

    TRY(tw_device_open(rq->k->cx, ORACLE, &o->dev));
    oracle_config(o, &cfg);
    TRY(runtime_compile(rq->k, o->dev, &rq->args->p, &cfg,
                        COMPILE_NO_STORE_READ | COMPILE_NO_STORE_WRITE, &o->exe));
    TRY(scratch_create(&o->out, o->dev, rq->dev, rq->k, rq->args));
    TRY(runtime_grid(o->exe, rq->args, o->grid));
    o->total = o->grid[0] * o->grid[1] * o->grid[2];
    return TW_OK;
}

void verify_end(oracle *o)
{
    if (!o)
        return;
    scratch_destroy(&o->out);
    runtime_exe_release(o->exe);
    tw_device_close(o->dev);
    mem_free(o);
}

static bool is_late(void *user)
{
    const oracle *o = user;

    return o->until > 0.0 && clock_seconds() > o->until;
}

/* TW_E_CANCELLED: stopped halfway, for lack of time. */
static tw_status interpret(oracle *o, int64_t program)
{
    launch_options opt = {
        .program_first = program, .program_count = 1, .stop = is_late, .stop_user = o};
    double start = clock_seconds();
    tw_status st = runtime_launch_exe(o->exe, &o->out.args, &opt);
    double took = clock_seconds() - start;

    if (st == TW_OK && took > o->longest)
        o->longest = took;
    return st;
}

/* A program stopped halfway may have stored what it would have replaced: begin again, with those
 * that are known to end. */
static tw_status begin_again(oracle *o)
{
    o->stops++;
    o->until = 0.0;
    TRY(scratch_reset(&o->out));
    for (int i = 0; i < o->s->checked_programs; i++)
        TRY(interpret(o, o->done[i]));
    return TW_OK;
}

/* The programs of a grid may differ much in length, as those of a causal mask do. After the first,
 * each has half of the time that is left, so that a long one leaves some for shorter ones. */
static tw_status interpret_some(oracle *o, double end)
{
    session *s = o->s;

    choose_programs(o);
    for (int i = 0; i < o->nchosen && o->stops < MAX_STOPS; i++) {
        double now = clock_seconds();
        if (now + o->longest > end || !session_tick(s, "checking"))
            return TW_OK;
        o->until = i == 0 ? end : now + (end - now) / 2;
        tw_status st = interpret(o, o->chosen[i]);
        if (st == TW_E_CANCELLED) {
            TRY(begin_again(o));
            continue;
        }
        TRY(st);
        o->done[s->checked_programs++] = o->chosen[i];
    }
    return TW_OK;
}

/* What the interpreted programs wrote must be what the start wrote there. */
static tw_status compare_with_oracle(oracle *o)
{
    session *s = o->s;

    for (uint32_t i = 0, j = 0; i < o->out.n; i++) {
        const scratch_tensor *t = &o->out.tensor[i];
        mismatch m;
        char text[160];
        if (!t->is_output)
            continue;
        TRY(scratch_read(&o->out, i, s->buffer[j]));
        compare_views(&t->packed, s->reference[j], s->buffer[j], t->initial, &m, NULL);
        if (m.found) {
            session_mismatch_text(s, j, &m, text, sizeof text);
            return error_set(
                TW_E_MISMATCH,
                "kernel '%s' on '%s', default configuration: %s as the interpreter has "
                "it",
                s->rq.k->source->sig.name, s->rq.dev->target->name, text);
        }
        j++;
    }
    return TW_OK;
}

tw_status verify_interpret(session *s, oracle **out)
{
    double share = BUDGET_SHARE * s->rq.budget_s;

    *out = NULL;
    if (!s->checks || strcmp(s->rq.dev->drv->name, ORACLE) == 0)
        return TW_OK; /* it would be compared with itself */
    oracle *o = mem_zalloc(sizeof *o);
    if (!o)
        return error_set(TW_E_NOMEM, "no memory to check results");
    o->s = s;
    tw_status st = oracle_open(o);
    if (st == TW_OK && o->total > 0)
        st = interpret_some(o, clock_seconds() + (share < LEAST_S ? LEAST_S : share));
    if (st == TW_OK)
        *out = o;
    else
        verify_end(o);
    return st;
}

tw_status verify_start(session *s, oracle *o)
{
    TRY(run_for_results(s, s->trial[0].exe));
    if (!s->checks)
        return TW_OK;
    TRY(keep_reference(s));
    if (!o)
        return TW_OK;
    if (s->checked_programs > 0)
        return compare_with_oracle(o);
    if (!s->cancelled)
        runtime_log(s->rq.k->cx, TW_LOG_WARNING,
                    "kernel '%s': results are not checked: interpreting one program takes longer "
                    "than a tenth of the budget",
                    s->rq.k->source->sig.name);
    return TW_OK;
}
