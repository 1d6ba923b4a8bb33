/* The search over one problem: the start first, then candidates, compiled several at a time and
 * raced one by one against whoever leads. */
#include "compiler/base/check.h"
#include "tuner/session.h"
#include <math.h>
#include <stdio.h>

/* Kept of the budget for the final pairs, and for them and another round of the close ones. */
#define FINAL_SHARE 0.05
#define CONTEST_SHARE 0.2
/* Enough is known when the model expects less than this of any point, after that many trials. */
#define OUTLOOK_END 0.002
#define OUTLOOK_TRIALS 16
#define COMPILE_S 0.5 /* of a GPU's code, before any was compiled */

/* Another round takes as long as there are close ones. */
static double reserve(const session *s)
{
    double budget = s->rq.budget_s;

    return fmin(FINAL_SHARE * budget + contest_seconds(s), CONTEST_SHARE * budget);
}

/* Compiling one more, as heavy as that, and running it against the leader must fit. */
static bool time_for(const session *s, double weight)
{
    double compile = s->ntimed > 0 ? s->compile_s * weight / s->compile_weight : COMPILE_S;

    return session_left(s) > reserve(s) + compile + 1.5 * pair_seconds(s);
}

static bool time_for_more(const session *s)
{
    return time_for(s, s->ntimed > 0 ? s->compile_weight / s->ntimed : 1.0);
}

static bool worth_more(session *s)
{
    return s->norder < OUTLOOK_TRIALS || s->norder * 4 < s->sp.npoints ||
           search_outlook(s->search) > OUTLOOK_END;
}

/* Whose code p would run, or NO_TRIAL. */
static uint32_t same_as(const session *s, uint32_t p)
{
    hash128 code = s->trial[p].code;

    for (uint32_t i = 0; i < s->sp.npoints && (code.lo | code.hi); i++)
        if (i != p && !s->trial[i].same && hash_equal(s->trial[i].code, code))
            return i;
    return NO_TRIAL;
}

/* False: why says which limit it exceeds. Attention for sm_80 takes time to compile in proportion
 * to the estimate of its registers, within 0.6 and 2.4 times that. */
static bool fits(session *s, uint32_t p, char *why, size_t size)
{
    const tune_request *rq = &s->rq;
    trial *t = &s->trial[p];
    target_needs needs;
    bool drop = prune(rq->k, rq->dev, &rq->args->p, &t->cfg, &needs, why, size);

    t->code = needs.code;
    t->weight = needs.registers > 0 ? needs.registers : 1.0;
    return !drop;
}

/* Costs a lowering and, on a GPU, a schedule, which is nothing beside code. Is p not to be
 * compiled? */
static bool is_dropped(session *s, uint32_t p)
{
    trial *t = &s->trial[p];
    char why[sizeof t->reason], twin[RUNTIME_CONFIG_TEXT];

    if (t->broke) {
        session_finish(s, p, TW_TRIAL_FAILED, NULL);
        return true;
    }
    bool drop = !fits(s, p, why, sizeof why);
    uint32_t other = drop ? NO_TRIAL : same_as(s, p);
    t->same = other != NO_TRIAL;
    if (drop)
        session_finish(s, p, TW_TRIAL_PRUNED, "%s", why);
    else if (t->same && config_text(&s->trial[other].cfg, twin) == TW_OK)
        session_finish(s, p, TW_TRIAL_PRUNED, "the same code as %s", twin);
    return drop || t->same;
}

/* ---- candidates ------------------------------------------------------------------------------ */

/* False: *why no more are tried. */
static bool goes_on(session *s, const char **why)
{
    if (s->cancelled || !time_for_more(s))
        return false;
    if (worth_more(s))
        return true;
    *why = "not expected to be faster";
    return false;
}

/* Submits as many as there is room for. What is dropped leaves its place to the next, and so does
 * what would take longer to compile than there is time; others may not. */
static void feed(session *s, compile_queue *q, const char *phase, const char **why)
{
    while (compile_room(q) && goes_on(s, why) && session_tick(s, phase)) {
        uint32_t p = search_next(s->search);
        if (p == SEARCH_DONE)
            return;
        if (is_dropped(s, p))
            continue;
        if (time_for(s, s->trial[p].weight))
            compile_submit(q, p);
        else
            search_leave(s->search, p);
    }
}

/* Measuring one makes room for another. */
static tw_status race_all(session *s, compile_queue *q, const char **why)
{
    const char *phase = compiles_aside(s) ? "measuring" : "compiling";

    uint32_t p;

    feed(s, q, "compiling", why);
    while ((p = compile_take(q, reserve(s))) != NO_TRIAL) {
        if (s->trial[p].exe && !s->trial[p].done && session_left(s) > reserve(s))
            TRY(race_candidate(s, p));
        feed(s, q, phase, why);
    }
    return TW_OK;
}

/* ---- the start ------------------------------------------------------------------------------- */

static tw_status find_grid(session *s)
{
    int64_t grid[3];

    TRY(runtime_grid(s->trial[0].exe, s->rq.args, grid));
    s->empty = grid[0] <= 0 || grid[1] <= 0 || grid[2] <= 0;
    return TW_OK;
}

/* Where compiling costs the device nothing, the interpreter and the first candidates do not wait
 * for the start's code. */
static tw_status begin_aside(session *s, compile_queue *q, oracle **o, const char **why)
{
    compile_submit(q, 0);
    feed(s, q, "compiling", why);
    TRY(verify_interpret(s, o));
    s->trial[0].exe = compile_await(q, 0);
    return s->cancelled ? TW_E_CANCELLED : TW_OK;
}

/* Unless its code is there. What was wrong with it in another thread is found out again here. */
static tw_status compile_start(session *s)
{
    const tune_request *rq = &s->rq;
    trial *t = &s->trial[0];

    if (!t->exe)
        TRY(runtime_compile(rq->k, rq->dev, &rq->args->p, &rq->start, COMPILE_NO_STORE_WRITE,
                            &t->exe));
    session_keep_code(s, 0);
    return runtime_exe_load(t->exe);
}

/* TW_E_LIMIT: there may be another start. */
static tw_status make_start(session *s, compile_queue *q, oracle **o, const char **why)
{
    trial *t = &s->trial[0];
    char unfit[sizeof t->reason];

    (void)search_next(s->search); /* the start */
    if (t->broke)
        return error_set(TW_E_LIMIT, "the default configuration: %s", t->reason);
    if (!session_tick(s, "compiling"))
        return TW_E_CANCELLED;
    bool aside = fits(s, 0, unfit, sizeof unfit) && compiles_aside(s);
    if (aside)
        TRY(begin_aside(s, q, o, why));
    TRY(compile_start(s));
    TRY(find_grid(s));
    return aside || s->empty ? TW_OK : verify_interpret(s, o);
}

static tw_status run_start(session *s, oracle *o)
{
    if (!session_tick(s, "checking"))
        return TW_E_CANCELLED;
    TRY(verify_start(s, o));
    if (s->cancelled)
        return TW_E_CANCELLED;
    return measure_start(s);
}

static tw_status try_start(session *s, oracle *o)
{
    tw_status st = run_start(s, o);

    if (st != TW_OK && session_lost(s))
        return session_failed(s, 0);
    TRY(st);
    session_finish(s, 0, TW_TRIAL_OK, NULL);
    return TW_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void explain_skipped(session *s, const char *why)
{
    for (uint32_t i = 0; i < s->sp.npoints; i++)
        if (!s->trial[i].done)
            snprintf(s->trial[i].reason, sizeof s->trial[i].reason, "%s", why);
}

static tw_status start(session *s, compile_queue *q, const char **why)
{
    oracle *o = NULL;

    tw_status st = make_start(s, q, &o, why);
    if (st == TW_OK && s->empty)
        *why = "the grid is empty";
    else if (st == TW_OK)
        st = try_start(s, o);
    verify_end(o);
    return st;
}

static tw_status finish(session *s)
{
    TRY(race_contenders(s, FINAL_SHARE * s->rq.budget_s));
    return s->cancelled ? TW_OK : run_final(s);
}

/* What is still being compiled when time is short ends while the close ones race again; where that
 * would be in their way nothing is. */
static tw_status search_all(session *s, compile_queue *q, const char **why)
{
    TRY(start(s, q, why));
    if (s->empty)
        return TW_OK;
    TRY(race_all(s, q, why));
    compile_stop(q);
    return s->cancelled ? TW_OK : finish(s);
}

tw_status tune_search(session *s)
{
    const char *why = "the budget ran out first";
    compile_queue *q;

    TRY(compile_open(s, &q));
    tw_status st = search_all(s, q, &why);
    compile_close(q);
    explain_skipped(s, s->cancelled ? "cancelled" : why);
    TRY(st);
    if (s->empty)
        return TW_OK;
    s->phase = NULL; /* the last report is not held back */
    session_tick(s, "measuring");
    return s->cancelled ? TW_E_CANCELLED : TW_OK;
}
