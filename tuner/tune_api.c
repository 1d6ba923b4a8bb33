/* tw_tune and tuning on a miss: what is known already, whose turn it is, and what becomes of the
 * result. One process tunes a key at a time; the others wait and take what it found. */
#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "runtime/clock.h"
#include "tuner/report.h"
#include "tuner/tuner.h"
#include <math.h>
#include <string.h>
#include <time.h>

#define POLL_MS 50

typedef struct tune_job {
    tune_request rq;
    launch_args args;
    arena a; /* owns the key */
    bool again;
    bool waited;        /* for another process */
    int64_t started_ms; /* since 1970: what that process stored later is its answer */
    store_lease lease;
    config cfg; /* the answer, with its layer */
    double seconds;
    tw_layer layer;
    tw_tune_report **report; /* NULL: not wanted */
} tune_job;

static store *store_of(const tune_job *j)
{
    return j->rq.k->cx->store;
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- what the store knows ------------------------------------------------------------------- */

static bool within_pins(const tune_request *rq, const config *cfg)
{
    for (uint32_t i = 0; i < cfg->n; i++)
        if ((rq->pinned >> i & 1) && cfg->value[i].value != rq->start.value[i].value)
            return false;
    return true;
}

static bool acceptable(void *user, const char *text)
{
    tune_job *j = user;
    config cfg;

    return config_parse(j->rq.k, j->rq.dev->target, j->rq.dev, &j->rq.args->p, text, &cfg) &&
           within_pins(&j->rq, &cfg);
}

/* Takes the exact answer, if there is one stored at or after since_ms. */
static bool take_exact(tune_job *j, int64_t since_ms)
{
    store_answer a;

    store_best(store_of(j), &j->rq.key, acceptable, j, &a);
    if (a.layer != TW_LAYER_EXACT || a.time_ms < since_ms)
        return false;
    j->layer = TW_LAYER_EXACT;
    j->seconds = a.seconds;
    return config_parse(j->rq.k, j->rq.dev->target, j->rq.dev, &j->rq.args->p, a.config, &j->cfg);
}

static bool take_known(tune_job *j)
{
    if (!j->again)
        return take_exact(j, INT64_MIN);
    return j->waited && take_exact(j, j->started_ms);
}

/* Launches of this problem use the answer from now on. */
static tw_status adopt_answer(tune_job *j)
{
    executable *exe;

    TRY(runtime_compile(j->rq.k, j->rq.dev, &j->rq.args->p, &j->cfg, 0, &exe));
    runtime_adopt(j->rq.k, j->rq.dev, j->rq.args, exe, j->layer, j->seconds);
    runtime_exe_release(exe);
    return TW_OK;
}

static tw_status report_answer(tune_job *j)
{
    return j->report ? report_of_store(&j->rq, &j->cfg, j->seconds, j->layer, j->report) : TW_OK;
}

static tw_status use_known(tune_job *j)
{
    TRY(adopt_answer(j));
    return report_answer(j);
}

/* The other process takes longer than this one may wait: the best known without it. */
static tw_status use_best_known(tune_job *j)
{
    config_answer a;

    TRY(config_resolve(j->rq.k, j->rq.dev, &j->rq.args->p, NULL, &a));
    j->cfg = a.cfg;
    j->seconds = a.seconds;
    j->layer = a.layer;
    return report_answer(j);
}

/* ---- whose turn it is ----------------------------------------------------------------------- */

enum turn { TURN_OURS, TURN_KNOWN, TURN_CANCELLED, TURN_TOO_LONG };

static bool still_wanted(const tune_job *j)
{
    tw_tune_progress p = {.elapsed_s = clock_seconds() - j->rq.started,
                          .budget_s = j->rq.budget_s,
                          .phase = "waiting"};

    return !j->rq.progress || j->rq.progress(j->rq.progress_user, &p);
}

static enum turn wait_for_turn(tune_job *j)
{
    while (store_lease_try(store_of(j), &j->rq.key, &j->lease, NULL) == LEASE_HELD) {
        j->waited = true;
        if (!still_wanted(j))
            return TURN_CANCELLED;
        if (clock_seconds() - j->rq.started > j->rq.budget_s)
            return TURN_TOO_LONG;
        nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000L}, NULL);
        if (take_known(j))
            return TURN_KNOWN;
    }
    /* The one before may have finished between the last look and the lease. */
    if (take_known(j)) {
        store_lease_release(store_of(j), &j->lease);
        return TURN_KNOWN;
    }
    return TURN_OURS;
}

/* ---- our turn ------------------------------------------------------------------------------- */

/* A tuning that was told to keep some values does not replace a better one that was free. */
static bool beats_stored(const tune_job *j, double seconds)
{
    store_answer a;

    if (!j->rq.pinned)
        return true;
    store_best(store_of(j), &j->rq.key, NULL, NULL, &a);
    return a.layer != TW_LAYER_EXACT || seconds < a.seconds;
}

static void keep_winner(tune_job *j, session *s)
{
    trial *best = &s->trial[s->best];
    char text[RUNTIME_CONFIG_TEXT];

    if (!best->done || (s->cancelled && s->best == 0) || !beats_stored(j, j->seconds) ||
        config_text(&best->cfg, text) != TW_OK)
        return;
    if (!j->rq.k->checked) { /* whose times are of another program */
        runtime_exe_store(best->exe);
        store_put_best(store_of(j), &j->rq.key, text, j->seconds,
                       spread_of(best->sample, best->nsamples));
    }
    runtime_adopt(j->rq.k, j->rq.dev, j->rq.args, best->exe, TW_LAYER_TUNED, j->seconds);
    runtime_log(j->rq.k->cx, TW_LOG_INFO,
                "tuned kernel '%s': %s, %.4g ms, %.3g x the default (%u tried, %u compiled)",
                j->rq.k->source->sig.name, text, j->seconds * 1e3,
                trial_median(&s->trial[0]) / j->seconds, s->norder, s->ncompiled);
}

static tw_status cancelled(void)
{
    return error_set(TW_E_CANCELLED, "tuning was cancelled");
}

static tw_status run_session(tune_job *j)
{
    tw_device *dev = j->rq.dev;
    session *s;

    TRY(session_create(&j->rq, &s));
    tw_status st = tune_search(s);
    j->cfg = s->trial[s->best].cfg;
    j->seconds = trial_median(&s->trial[s->best]);
    j->layer = s->empty ? TW_LAYER_DEFAULT : TW_LAYER_TUNED;
    if (st == TW_OK || st == TW_E_CANCELLED) {
        keep_winner(j, s);
        if (j->report && report_of_session(s, j->report) != TW_OK)
            st = TW_E_NOMEM;
    }
    session_destroy(s);
    if (dev->drv->flush_end)
        dev->drv->flush_end(dev);
    return st == TW_E_CANCELLED ? cancelled() : st;
}

static tw_status tune_ours(tune_job *j)
{
    j->rq.lease = &j->lease;
    tw_status st = run_session(j);
    store_lease_release(store_of(j), &j->lease);
    return st;
}

static tw_status tune_or_take(tune_job *j)
{
    if (take_known(j))
        return use_known(j);
    switch (wait_for_turn(j)) {
    case TURN_OURS:
        return tune_ours(j);
    case TURN_KNOWN:
        return use_known(j);
    case TURN_CANCELLED:
        TRY(use_best_known(j));
        return cancelled();
    case TURN_TOO_LONG:
        return use_best_known(j);
    }
    return TW_E_INTERNAL;
}

/* ---- the two ways in ------------------------------------------------------------------------ */

static tw_status key_guarded(void *arg)
{
    tune_job *j = arg;

    config_store_key(j->rq.k, j->rq.dev, &j->rq.args->p, &j->a, &j->rq.key);
    return TW_OK;
}

static tw_status job_run(tune_job *j, const char *pin)
{
    tune_request *rq = &j->rq;

    rq->started = clock_seconds();
    j->started_ms = now_ms();
    TRY(config_pin(rq->k, rq->dev->target, rq->dev, &rq->args->p, pin, &rq->start, &rq->pinned));
    arena_init(&j->a);
    tw_status st = error_thrown(guard_run(key_guarded, j));
    if (st == TW_OK)
        st = tune_or_take(j);
    for (int tried = 1; /* the start does not fit the device */
         st == TW_E_LIMIT && config_worth_another(tried, rq->started) &&
         config_next(rq->k, rq->dev->target, &rq->args->p, rq->pinned, &rq->start);
         tried++)
        st = tune_or_take(j);
    arena_release(&j->a);
    if (st == TW_OK)
        error_clear(); /* of candidates that failed */
    return st;
}

static tw_status check_options(const tw_tune_options *given, tw_tune_options *out)
{
    *out = (tw_tune_options)TW_TUNE_OPTIONS_INIT;
    if (!given)
        return TW_OK;
    if (given->size < sizeof given->size || given->size > 4096)
        return error_set(TW_E_ARG, "tw_tune_options: size is %zu; start from TW_TUNE_OPTIONS_INIT",
                         given->size);
    memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    if (!(out->budget_s > 0.0) || !isfinite(out->budget_s))
        return error_set(TW_E_ARG, "tw_tune_options: budget_s must be above 0");
    return TW_OK;
}

tw_status tw_tune(tw_kernel *k, tw_device *dev, const tw_arg *args, size_t count,
                  const tw_tune_options *options, tw_tune_report **report)
{
    tw_tune_options opt;

    error_clear();
    if (report)
        *report = NULL;
    if (!k || !dev)
        return error_set(TW_E_ARG, "tw_tune: %s is NULL", k ? "the device" : "the kernel");
    TRY(check_options(options, &opt));
    tune_job *j = mem_zalloc(sizeof *j);
    if (!j)
        return error_set(TW_E_NOMEM, "no memory for tuning");
    j->rq = (tune_request){.k = k,
                           .dev = dev,
                           .args = &j->args,
                           .budget_s = opt.budget_s,
                           .progress = opt.progress,
                           .progress_user = opt.progress_user};
    j->again = opt.again;
    j->report = report;
    tw_status st = runtime_resolve_args(k, dev, args, count, 0, &j->args);
    if (st == TW_OK)
        st = runtime_content_hash(k, dev, opt.config, &j->args.p);
    if (st == TW_OK)
        st = job_run(j, opt.config ? opt.config : "");
    mem_free(j);
    return st;
}

/* Nobody runs the interpreter for its speed, and the null device has none. */
static tw_status known_config(tw_kernel *k, tw_device *dev, const launch_args *args, config *cfg,
                              double *seconds, tw_layer *layer)
{
    config_answer a;

    TRY(config_resolve(k, dev, &args->p, NULL, &a));
    *cfg = a.cfg;
    *seconds = a.seconds;
    *layer = a.layer;
    return TW_OK;
}

static tw_status tune_on_miss(tw_kernel *k, tw_device *dev, const launch_args *args,
                              double budget_s, config *cfg, double *seconds, tw_layer *layer)
{
    if (dev->drv == &interp_driver || dev->drv == &null_driver)
        return known_config(k, dev, args, cfg, seconds, layer);
    tune_job *j = mem_zalloc(sizeof *j);
    if (!j)
        return error_set(TW_E_NOMEM, "no memory for tuning");
    j->rq = (tune_request){.k = k, .dev = dev, .args = args, .budget_s = budget_s};
    tw_status st = job_run(j, "");
    *cfg = j->cfg;
    *seconds = j->seconds;
    *layer = j->layer;
    mem_free(j);
    return st;
}

const tuner_ops tuner_table = {tune_on_miss};
