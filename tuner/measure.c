/* Running and timing. Outputs are the session's scratch copies; what a kernel updates in place is
 * put back before every sample. */
#include "compiler/base/check.h"
#include "runtime/clock.h"
#include "tuner/session.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SAMPLE_S 200e-6 /* shorter launches are timed several at once: the clock is no better */
#define MAX_REPEATS 1000
#define START_SAMPLES 3
#define LONG_S 20e-3       /* cold caches do not matter to a launch as long as this */
#define SLOW_RUNS 20.0     /* the budget must hold that many launches for a second sample */
#define FAR_SLOWER 2.0     /* a first run this much slower than the leader's decides at once ... */
#define COLD_S 2e-3        /* ... if it is longer than what cold caches can cost */
#define RACE_SHARE 0.04    /* of the budget: a first race takes no more ... */
#define RACE_LEAST_PAIRS 3 /* ... unless these take longer: fewer tell nothing */
#define FIRST_PAIRS 6      /* in a first race; the close ones race again at the end */
#define CLOSE 0.03         /* log ratio to the leader up to which a trial is still in the game */
#define FINAL_PAIRS 7
#define AROUND_S 100e-6  /* a launch costs besides: events, a cache overwritten, waiting */
#define CONTEST_PAIRS 10 /* of a second race, more often than not fewer */
#define NOISE_SAMPLES 8  /* of the leader tell how noisy a pair is */
#define PAIR_NOISE 2.097 /* 1.4826 sqrt 2, times the spread of one: a normal law's */

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

/* The latest are kept. */
static void add_sample(trial *t, double seconds)
{
    if (t->nsamples == TRIAL_MAX_SAMPLES)
        memmove(t->sample, t->sample + 1, --t->nsamples * sizeof t->sample[0]);
    t->sample[t->nsamples++] = seconds;
}

/* One sample: seconds a launch. TW_E_DEVICE when the clock gives no time. */
static tw_status take_sample(session *s, trial *t, double *seconds)
{
    TRY(time_launches(s, t->exe, s->repeats, seconds));
    if (!is_time(*seconds))
        return error_set(TW_E_DEVICE, "the clock gave %g seconds for a launch", *seconds);
    add_sample(t, *seconds);
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
    if (is_time(warm) && warm > LONG_S) /* it ran for its results already: this is a sample */
        add_sample(t, warm);
    while (t->nsamples < START_SAMPLES && session_tick(s, "measuring")) {
        if (t->nsamples > 0 && session_left(s) < SLOW_RUNS * warm)
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

/* More than it is, if the clock drifted; 0: not known. */
static double pair_noise(const trial *leader)
{
    if (leader->nsamples < NOISE_SAMPLES)
        return 0.0;
    return PAIR_NOISE * spread_of(leader->sample, leader->nsamples) / trial_median(leader);
}

/* Ends when reserve_s of the budget are left, but not before three pairs. */
static enum race_verdict run_race(session *s, uint32_t p, uint32_t most, double reserve_s,
                                  tw_status *failed)
{
    double until = session_elapsed(s) + RACE_SHARE * s->rq.budget_s;
    trial *challenger = &s->trial[p], *leader = &s->trial[s->best];
    enum race_verdict v = RACE_GO_ON;
    race r = {.noise = pair_noise(leader)};

    *failed = TW_OK;
    while (v == RACE_GO_ON && r.n < most && session_tick(s, "measuring")) {
        *failed = run_pair(s, challenger, leader, &r);
        if (*failed != TW_OK)
            break;
        v = race_verdict(&r);
        if (session_left(s) <= 0.0 || (r.n >= RACE_LEAST_PAIRS && (session_elapsed(s) > until ||
                                                                   session_left(s) <= reserve_s)))
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
    add_sample(t, first);
    t->log_time = s->trial[s->best].log_time + log(first / leader);
    return true;
}

static void lead(session *s, uint32_t p)
{
    uint32_t old = s->best;

    s->best = p;
    session_finish(s, p, TW_TRIAL_OK, NULL);
    session_drop(s, old);
}

/* A candidate that would lead is right first. */
static tw_status take_lead(session *s, uint32_t p)
{
    bool equal = true;
    char why[160];

    if (!session_tick(s, "checking"))
        return TW_OK;
    if (run_for_results(s, s->trial[p].exe) != TW_OK)
        return session_failed(s, p);
    TRY(verify_outputs(s, &equal, why, sizeof why));
    if (equal)
        lead(s, p);
    else
        session_finish(s, p, TW_TRIAL_WRONG, "%s", why);
    return TW_OK;
}

tw_status race_candidate(session *s, uint32_t p)
{
    trial *t = &s->trial[p];
    enum race_verdict v = RACE_SLOWER;
    tw_status failed;

    if (!hopeless(s, t, &failed) && failed == TW_OK)
        v = run_race(s, p, FIRST_PAIRS, 0.0, &failed);
    if (failed != TW_OK)
        return session_failed(s, p);
    if (v == RACE_FASTER)
        return take_lead(s, p);
    if (t->nsamples == 0)
        return TW_OK; /* cancelled before the first pair */
    t->contends = v != RACE_SLOWER && t->log_time < s->trial[s->best].log_time + CLOSE;
    session_finish(s, p, v == RACE_SLOWER ? TW_TRIAL_STOPPED : TW_TRIAL_OK, NULL);
    return TW_OK;
}

double pair_seconds(const session *s)
{
    return 2.0 * (trial_median(&s->trial[s->best]) + AROUND_S) * s->repeats;
}

static bool is_close_to_leader(const session *s, const trial *t)
{
    return t->contends && t->log_time <= s->trial[s->best].log_time + CLOSE;
}

double contest_seconds(const session *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->norder; i++)
        n += is_close_to_leader(s, &s->trial[s->order[i]]);
    return n * CONTEST_PAIRS * pair_seconds(s);
}

/* The most promising of those that are still in the game, or NO_TRIAL. */
static uint32_t next_contender(const session *s)
{
    uint32_t found = NO_TRIAL;

    for (uint32_t i = 0; i < s->norder; i++) {
        uint32_t p = s->order[i];
        if (s->trial[p].contends &&
            (found == NO_TRIAL || s->trial[p].log_time < s->trial[found].log_time))
            found = p;
    }
    return found;
}

tw_status race_contenders(session *s, double reserve_s)
{
    uint32_t p;

    while ((p = next_contender(s)) != NO_TRIAL && session_left(s) > reserve_s && !s->cancelled) {
        trial *t = &s->trial[p];
        tw_status failed;
        if (!is_close_to_leader(s, t))
            return TW_OK; /* nor is any after it */
        t->contends = false;
        enum race_verdict v = run_race(s, p, RACE_MAX_PAIRS, reserve_s, &failed);
        if (failed != TW_OK)
            TRY(session_failed(s, p));
        else if (v == RACE_FASTER)
            TRY(take_lead(s, p));
        else
            session_finish(s, p, v == RACE_SLOWER ? TW_TRIAL_STOPPED : TW_TRIAL_OK, NULL);
    }
    return TW_OK;
}

/* The last pairs are what is reported: both sides under the same conditions. */
static void forget_samples(trial *t, uint32_t kept)
{
    uint32_t n = t->nsamples < kept ? t->nsamples : kept;

    memmove(t->sample, t->sample + t->nsamples - n, n * sizeof t->sample[0]);
    t->nsamples = n;
}

tw_status run_final(session *s)
{
    trial *start = &s->trial[0], *best = &s->trial[s->best];
    double pair = (trial_median(start) + trial_median(best)) * s->repeats;
    race r = {0};

    if (s->best == 0)
        return TW_OK;
    while (r.n < FINAL_PAIRS && session_left(s) > pair && session_tick(s, "measuring"))
        TRY(run_pair(s, best, start, &r));
    if (r.n < RACE_LEAST_PAIRS)
        return TW_OK;
    forget_samples(start, r.n);
    forget_samples(best, r.n);
    /* What won earlier by luck does not win here. */
    if (race_log_ratio(&r) >= 0.0 || trial_median(best) >= trial_median(start))
        s->best = 0;
    return TW_OK;
}
