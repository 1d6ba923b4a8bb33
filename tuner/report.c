#include "tuner/report.h"
#include "compiler/base/check.h"
#include "compiler/base/mem.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static tw_tune_report *report_new(size_t room)
{
    tw_tune_report *r = mem_zalloc(sizeof *r);

    if (!r)
        return NULL;
    r->cap = room;
    r->trial = mem_zalloc(room * sizeof *r->trial);
    if (!r->trial) {
        mem_free(r);
        return NULL;
    }
    return r;
}

static tw_status no_memory(void)
{
    return error_set(TW_E_NOMEM, "no memory for the report of a tuning");
}

/* Seconds of a point: of winner and default as measured in the final pairs; of others by their
 * pairs with the leader, which the state of the machine at that time does not move. */
static double seconds_of(const session *s, uint32_t point)
{
    const trial *t = &s->trial[point], *best = &s->trial[s->best];

    if (point == 0 || point == s->best || t->nsamples == 0 || t->state == TW_TRIAL_FAILED)
        return trial_median(t);
    return trial_median(best) * exp(t->log_time - best->log_time);
}

static void add_point(tw_tune_report *r, const session *s, uint32_t point)
{
    const trial *t = &s->trial[point];
    tw_trial *out = &r->trial[r->n];

    if (config_text(&t->cfg, out->config) != TW_OK)
        return;
    out->state = t->state;
    out->median_s = seconds_of(s, point);
    out->spread_s = spread_of(t->sample, t->nsamples);
    out->samples = (int)t->nsamples;
    memcpy(out->reason, t->reason, sizeof out->reason);
    if (point == s->best)
        r->winner = r->n;
    if (point == 0)
        r->start = r->n;
    r->n++;
}

tw_status report_of_session(const session *s, tw_tune_report **out)
{
    tw_tune_report *r = report_new(s->sp.npoints);

    if (!r)
        return no_memory();
    r->layer = s->empty ? TW_LAYER_DEFAULT : TW_LAYER_TUNED;
    r->compiled = s->ncompiled;
    for (uint32_t i = 0; i < s->norder; i++)
        add_point(r, s, s->order[i]);
    for (uint32_t i = 0; i < s->sp.npoints; i++)
        if (!s->trial[i].done)
            add_point(r, s, i);
    *out = r;
    return TW_OK;
}

/* ---- from the store ------------------------------------------------------------------------- */

static size_t find_config(const tw_tune_report *r, const char *text)
{
    size_t i = 0;

    while (i < r->n && strcmp(r->trial[i].config, text) != 0)
        i++;
    return i;
}

static bool grow(tw_tune_report *r)
{
    size_t cap = r->cap * 2;
    tw_trial *at = r->n < r->cap ? r->trial : mem_realloc(r->trial, cap * sizeof *at);

    if (!at)
        return false;
    if (r->n == r->cap)
        r->cap = cap;
    r->trial = at;
    return true;
}

typedef struct collector {
    tw_tune_report *r;
    bool failed;
} collector;

static bool collect(void *user, const tw_trial *t)
{
    collector *c = user;

    if (find_config(c->r, t->config) < c->r->n)
        return true;
    c->failed = !grow(c->r);
    if (!c->failed)
        c->r->trial[c->r->n++] = *t;
    return !c->failed;
}

/* The index of cfg's trial, added when the store has none. */
static bool need_trial(tw_tune_report *r, const config *cfg, double seconds, size_t *index)
{
    char text[RUNTIME_CONFIG_TEXT];

    if (config_text(cfg, text) != TW_OK)
        return false;
    *index = find_config(r, text);
    if (*index < r->n)
        return true;
    if (!grow(r))
        return false;
    tw_trial *t = &r->trial[r->n++];
    memset(t, 0, sizeof *t);
    memcpy(t->config, text, sizeof text);
    t->state = seconds > 0.0 ? TW_TRIAL_OK : TW_TRIAL_SKIPPED;
    t->median_s = seconds;
    return true;
}

tw_status report_of_store(const tune_request *rq, const config *winner, double seconds,
                          tw_layer layer, tw_tune_report **out)
{
    collector c = {report_new(16), false};

    if (!c.r)
        return no_memory();
    c.r->layer = layer;
    tw_status st = store_key_trials(rq->k->cx->store, &rq->key, collect, &c);
    if (st != TW_OK || c.failed || !need_trial(c.r, &rq->start, 0.0, &c.r->start) ||
        !need_trial(c.r, winner, seconds, &c.r->winner)) {
        tw_tune_report_destroy(c.r);
        return no_memory();
    }
    *out = c.r;
    return TW_OK;
}

/* ---- public --------------------------------------------------------------------------------- */

void tw_tune_report_destroy(tw_tune_report *r)
{
    if (!r)
        return;
    mem_free(r->trial);
    mem_free(r);
}

size_t tw_tune_report_count(const tw_tune_report *r)
{
    return r ? r->n : 0;
}

const tw_trial *tw_tune_report_trial(const tw_tune_report *r, size_t i)
{
    return r && i < r->n ? &r->trial[i] : NULL;
}

size_t tw_tune_report_winner(const tw_tune_report *r)
{
    return r ? r->winner : 0;
}

size_t tw_tune_report_default(const tw_tune_report *r)
{
    return r ? r->start : 0;
}

size_t tw_tune_report_compiled(const tw_tune_report *r)
{
    return r ? r->compiled : 0;
}

tw_layer tw_tune_report_layer(const tw_tune_report *r)
{
    return r ? r->layer : TW_LAYER_DEFAULT;
}
