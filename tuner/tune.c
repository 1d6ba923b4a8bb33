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

static tw_status compile_start(session *s)
{
    const tune_request *rq = &s->rq;

    if (!session_tick(s, "compiling"))
        return TW_E_CANCELLED;
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
static tw_status do_start(session *s)
{
    (void)search_next(s->search); /* the start */
    if (s->trial[0].broke)
        return error_set(TW_E_LIMIT, "the default configuration: %s", s->trial[0].reason);
    TRY(compile_start(s));
    TRY(find_grid(s));
    if (s->empty)
        return TW_OK;
    tw_status st = run_start(s);
    if (st != TW_OK && session_lost(s))
        return session_failed(s, 0);
    TRY(st);
    session_finish(s, 0, TW_TRIAL_OK, NULL);
    return TW_OK;
}

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

/* Costs a lowering and, on a GPU, a schedule, which is nothing beside code: what is pruned leaves its
 * place in the batch to the next. */
static bool is_pruned(session *s, uint32_t p)
{
    const tune_request *rq = &s->rq;
    char why[sizeof s->trial[p].reason];

    if (s->trial[p].broke) {
        session_finish(s, p, TW_TRIAL_FAILED, NULL);
        return true;
    }
    bool drop = prune(rq->k, rq->dev, &rq->args->p, &s->trial[p].cfg, why, sizeof why);

    if (drop)
        session_finish(s, p, TW_TRIAL_PRUNED, "%s", why);
    return drop;
}

static tw_status do_batch(session *s, bool *more)
{
    uint32_t point[64], n = 0, want = compile_threads(s);

    while (n < want && session_tick(s, "compiling") &&
           (point[n] = search_next(s->search)) != SEARCH_DONE)
        n += !is_pruned(s, point[n]);
    *more = n > 0;
    compile_candidates(s, point, n);
    for (uint32_t i = 0; i < n && !s->cancelled; i++)
        if (!s->trial[point[i]].done && session_left(s) > reserve(s))
            TRY(race_candidate(s, point[i]));
    return TW_OK;
}

static void explain_skipped(session *s, const char *why)
{
    for (uint32_t i = 0; i < s->sp.npoints; i++)
        if (!s->trial[i].done)
            snprintf(s->trial[i].reason, sizeof s->trial[i].reason, "%s", why);
}

tw_status tune_search(session *s)
{
    const char *why = "the budget ran out first";
    bool more = true;

    TRY(do_start(s));
    if (s->empty) {
        explain_skipped(s, "the grid is empty");
        return TW_OK;
    }
    while (more && !s->cancelled && time_for_more(s)) {
        if (!worth_more(s)) {
            why = "not expected to be faster";
            break;
        }
        TRY(do_batch(s, &more));
    }
    explain_skipped(s, s->cancelled ? "cancelled" : why);
    if (!s->cancelled)
        TRY(race_contenders(s, FINAL_SHARE * s->rq.budget_s));
    if (!s->cancelled)
        TRY(run_final(s));
    s->phase = NULL; /* the last report is not held back */
    session_tick(s, "measuring");
    return s->cancelled ? TW_E_CANCELLED : TW_OK;
}
