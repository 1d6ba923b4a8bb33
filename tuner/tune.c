/* The search over one problem: the start first, then batches of candidates, compiled together and
 * raced one by one against whoever leads. */
#include "compiler/base/check.h"
#include "tuner/session.h"
#include <stdio.h>

/* Kept of the budget for the final pairs, and for them and another round of the close ones. */
#define FINAL_SHARE 0.05
#define CONTEST_SHARE 0.2
#define FEW_TRIALS 5
/* Enough is known when the model expects less than this of any point, after that many trials. */
#define OUTLOOK_END 0.002
#define OUTLOOK_TRIALS 16

/* Close ones are there to race again only after some were tried. */
static double reserve(const session *s)
{
    return (s->norder <= FEW_TRIALS ? FINAL_SHARE : CONTEST_SHARE) * s->rq.budget_s;
}

/* Compiling one more and running it twice against the leader must fit. */
static bool time_for_more(const session *s)
{
    double pair = 3.0 * trial_median(&s->trial[s->best]) * s->repeats;

    return session_left(s) > reserve(s) + s->compile_s + pair;
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

/* Costs a lowering and, on a GPU, a schedule, which is nothing beside code. Is p not to be
 * compiled? */
static bool is_dropped(session *s, uint32_t p)
{
    const tune_request *rq = &s->rq;
    trial *t = &s->trial[p];
    char why[sizeof t->reason], twin[RUNTIME_CONFIG_TEXT];

    if (t->broke) {
        session_finish(s, p, TW_TRIAL_FAILED, NULL);
        return true;
    }
    bool drop = prune(rq->k, rq->dev, &rq->args->p, &t->cfg, &t->code, why, sizeof why);
    uint32_t other = drop ? NO_TRIAL : same_as(s, p);
    t->same = other != NO_TRIAL;
    if (drop)
        session_finish(s, p, TW_TRIAL_PRUNED, "%s", why);
    else if (t->same && config_text(&s->trial[other].cfg, twin) == TW_OK)
        session_finish(s, p, TW_TRIAL_PRUNED, "the same code as %s", twin);
    return drop || t->same;
}

/* ---- batches --------------------------------------------------------------------------------- */

typedef struct batch {
    uint32_t point[64], n;
    compile_batch *code;
} batch;

/* What is dropped leaves its place to the next. */
static void begin_batch(session *s, batch *b)
{
    uint32_t want = compile_batch_size(s);

    b->n = 0;
    while (b->n < want && session_tick(s, "compiling") &&
           (b->point[b->n] = search_next(s->search)) != SEARCH_DONE)
        b->n += !is_dropped(s, b->point[b->n]);
    b->code = compile_begin(s, b->point, b->n);
}

static tw_status race_batch(session *s, const batch *b)
{
    for (uint32_t i = 0; i < b->n && !s->cancelled; i++)
        if (!s->trial[b->point[i]].done && session_left(s) > reserve(s))
            TRY(race_candidate(s, b->point[i]));
    return TW_OK;
}

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

/* now: under way; its code is taken over whatever happens. */
static tw_status race_batches(session *s, batch *now, const char **why)
{
    bool aside = compiles_aside(s);
    tw_status st = TW_OK;

    while (now->n > 0 && st == TW_OK) {
        batch next = {.n = 0};
        compile_end(now->code);
        if (aside && goes_on(s, why))
            begin_batch(s, &next);
        st = race_batch(s, now);
        if (!aside && st == TW_OK && goes_on(s, why))
            begin_batch(s, &next);
        *now = next;
    }
    compile_end(now->n > 0 ? now->code : NULL);
    return st;
}

/* ---- the start ------------------------------------------------------------------------------- */

static tw_status compile_start(session *s)
{
    const tune_request *rq = &s->rq;
    char why[160];

    if (!session_tick(s, "compiling"))
        return TW_E_CANCELLED;
    (void)prune(rq->k, rq->dev, &rq->args->p, &rq->start, &s->trial[0].code, why, sizeof why);
    TRY(runtime_compile(rq->k, rq->dev, &rq->args->p, &rq->start, COMPILE_NO_STORE_WRITE,
                        &s->trial[0].exe));
    session_keep_code(s, 0);
    return TW_OK;
}

static tw_status find_grid(session *s)
{
    int64_t grid[3];

    TRY(runtime_grid(s->trial[0].exe, s->rq.args, grid));
    s->empty = grid[0] <= 0 || grid[1] <= 0 || grid[2] <= 0;
    return TW_OK;
}

static tw_status run_start(session *s)
{
    if (!session_tick(s, "checking"))
        return TW_E_CANCELLED;
    TRY(verify_start(s));
    if (s->cancelled)
        return TW_E_CANCELLED;
    return measure_start(s);
}

/* TW_E_LIMIT: there may be another start. */
static tw_status make_start(session *s)
{
    (void)search_next(s->search); /* the start */
    if (s->trial[0].broke)
        return error_set(TW_E_LIMIT, "the default configuration: %s", s->trial[0].reason);
    TRY(compile_start(s));
    return find_grid(s);
}

static tw_status try_start(session *s)
{
    tw_status st = run_start(s);

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

/* Where compiling costs the device nothing, the first candidates are compiled while the start is
 * checked. */
static tw_status try_all(session *s, const char **why)
{
    batch first = {.n = 0};

    if (compiles_aside(s))
        begin_batch(s, &first);
    tw_status st = try_start(s);
    if (st == TW_OK && !compiles_aside(s) && goes_on(s, why))
        begin_batch(s, &first);
    if (st == TW_OK)
        return race_batches(s, &first, why);
    compile_end(first.code);
    return st;
}

tw_status tune_search(session *s)
{
    const char *why = "the budget ran out first";

    TRY(make_start(s));
    if (s->empty) {
        explain_skipped(s, "the grid is empty");
        return TW_OK;
    }
    TRY(try_all(s, &why));
    explain_skipped(s, s->cancelled ? "cancelled" : why);
    if (!s->cancelled)
        TRY(race_contenders(s, FINAL_SHARE * s->rq.budget_s));
    if (!s->cancelled)
        TRY(run_final(s));
    s->phase = NULL; /* the last report is not held back */
    session_tick(s, "measuring");
    return s->cancelled ? TW_E_CANCELLED : TW_OK;
}
