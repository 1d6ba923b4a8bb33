/* Running and timing. Outputs are the session's scratch copies; what a kernel updates in place is
 * put back before every sample. */
#include "compiler/base/check.h"
#include "runtime/clock.h"
#include "tuner/session.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SAMPLE_S 200e-6     /* shorter launches are timed several at once: the clock is no better */
#define MAX_REPEATS 1000
#define START_SAMPLES 3
#define FAR_SLOWER 2.0      /* a first run this much slower than the leader's decides at once ... */
#define COLD_S 2e-3         /* ... if it is longer than what cold caches can cost */
#define RACE_SHARE 0.1      /* of the budget: one candidate takes no more ... */
#define RACE_LEAST_PAIRS 5  /* ... unless these take longer: fewer seldom tell a winner */
#define FINAL_PAIRS 7

tw_status run_for_results(session *s, executable *exe)
{
    launch_options opt = {0};

    TRY(scratch_reset(&s->out));
    TRY(runtime_launch_exe(exe, &s->out.args, &opt));
    return s->rq.dev->drv->sync ? s->rq.dev->drv->sync(s->rq.dev, NULL) : TW_OK;
}

static tw_status time_launches(session *s, executable *exe, uint32_t n, double *seconds)
{
    double sum = 0.0;

    TRY(scratch_reset_inputs(&s->out));
    for (uint32_t i = 0; i < n; i++) {
        double one = 0.0;
        TRY(runtime_time_exe(exe, &s->out.args, NULL, &one));
        sum += one;
    }
    *seconds = sum / n;
    return TW_OK;
}

tw_status take_sample(session *s, trial *t, double *seconds)
{
    TRY(time_launches(s, t->exe, s->repeats, seconds));
    if (!is_time(*seconds))
        return error_set(TW_E_DEVICE, "the clock gave %g seconds for a launch", *seconds);
    if (t->nsamples < TRIAL_MAX_SAMPLES)
        t->sample[t->nsamples++] = *seconds;
    return TW_OK;
}

static void choose_repeats(session *s, double seconds)
{
    double n = seconds > 0.0 ? ceil(SAMPLE_S / seconds) : MAX_REPEATS;

    s->repeats = n < 1.0 ? 1 : n > MAX_REPEATS ? MAX_REPEATS : (uint32_t)n;
}

tw_status measure_start(session *s)
{
    trial *t = &s->trial[0];
    double warm = 0.0, seconds;

    TRY(time_launches(s, t->exe, 1, &warm));
    choose_repeats(s, warm);
    for (int i = 0; i < START_SAMPLES; i++) {
        if (i > 0 && (session_left(s) < 4.0 * warm || !session_tick(s, "measuring")))
            break;
        TRY(take_sample(s, t, &seconds));
    }
    return TW_OK;
}

/* One pair; who goes first alternates. */
static tw_status run_pair(session *s, trial *challenger, trial *leader, race *r)
{
    double one, other;
    bool first = r->n % 2 == 0;

    TRY(take_sample(s, first ? challenger : leader, &one));
    TRY(take_sample(s, first ? leader : challenger, &other));
    race_add(r, first ? one : other, first ? other : one);
    return TW_OK;
}

static enum race_verdict run_race(session *s, trial *challenger, trial *leader, tw_status *failed)
{
    double until = session_elapsed(s) + RACE_SHARE * s->rq.budget_s;
    enum race_verdict v = RACE_GO_ON;
    race r = {0};

    *failed = TW_OK;
    while (v == RACE_GO_ON && session_tick(s, "measuring")) {
        *failed = run_pair(s, challenger, leader, &r);
        if (*failed != TW_OK)
            break;
        v = race_verdict(&r);
        if (session_left(s) <= 0.0 || (r.n >= RACE_LEAST_PAIRS && session_elapsed(s) > until))
            break;
    }
    challenger->log_time = leader->log_time + race_log_ratio(&r);
    return v;
}

/* The first run: warms up, and shows at once who is hopeless. */
static bool hopeless(session *s, trial *t, tw_status *failed)
{
    double first = 0.0, leader = trial_median(&s->trial[s->best]);

    *failed = time_launches(s, t->exe, 1, &first);
    if (*failed != TW_OK || first < COLD_S || first < FAR_SLOWER * leader)
        return false;
    t->sample[t->nsamples++] = first;
    t->log_time = s->trial[s->best].log_time + log(first / leader);
    return true;
}

static void fail_trial(session *s, uint32_t p)
{
    const tw_error *e = error_get();

    session_finish(s, p, TW_TRIAL_FAILED, "%.*s", (int)strcspn(e->text, "\n"), e->text);
}

/* A candidate that would lead is right first. */
static tw_status take_lead(session *s, uint32_t p)
{
    trial *old = &s->trial[s->best], *t = &s->trial[p];
    char why[160];
    bool equal = true;

    if (s->checks) {
        if (!session_tick(s, "checking"))
            return TW_OK;
        if (run_for_results(s, t->exe) != TW_OK) {
            fail_trial(s, p);
            return TW_OK;
        }
        TRY(verify_outputs(s, &equal, why, sizeof why));
    }
    if (!equal) {
        session_finish(s, p, TW_TRIAL_WRONG, "%s", why);
        return TW_OK;
    }
    if (s->best != 0) {
        runtime_exe_release(old->exe);
        old->exe = NULL;
    }
    s->best = p;
    session_finish(s, p, TW_TRIAL_OK, NULL);
    return TW_OK;
}

tw_status race_candidate(session *s, uint32_t p)
{
    trial *t = &s->trial[p], *leader = &s->trial[s->best];
    enum race_verdict v = RACE_SLOWER;
    tw_status failed;

    if (!hopeless(s, t, &failed) && failed == TW_OK)
        v = run_race(s, t, leader, &failed);
    if (failed != TW_OK) {
        fail_trial(s, p);
        return TW_OK;
    }
    if (v == RACE_FASTER)
        return take_lead(s, p);
    if (t->nsamples > 0)
        session_finish(s, p, v == RACE_SLOWER ? TW_TRIAL_STOPPED : TW_TRIAL_OK, NULL);
    return TW_OK;
}

tw_status run_final(session *s)
{
    trial *start = &s->trial[0], *best = &s->trial[s->best];
    double one = trial_median(start) + trial_median(best);
    race r = {0};

    if (s->best == 0)
        return TW_OK;
    while (r.n < FINAL_PAIRS && session_left(s) > one * s->repeats && session_tick(s, "measuring"))
        TRY(run_pair(s, best, start, &r));
    /* What won earlier by luck does not win here. */
    if (r.n == FINAL_PAIRS && race_log_ratio(&r) >= 0.0)
        s->best = 0;
    return TW_OK;
}
