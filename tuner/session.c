#include "tuner/session.h"
#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "runtime/clock.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A dynamic parameter, threads, is tried at all of them and at half: one a core, not one a
 * hyper-thread. Fewer never won. */
#define DYNAMIC_VALUES 2
#define TICK_S 0.02 /* progress is reported no more often within a phase */

/* ---- the space ------------------------------------------------------------------------------ */

static bool is_dynamic(const tune_request *rq, uint32_t i)
{
    uint32_t ntunes = rq->k->source->sig.ntunes;

    return i >= ntunes && rq->dev->target->sched[i - ntunes].dynamic;
}

/* What a launch would take without this tuning: a seed, or what is known of a problem like it. */
static void find_known(session *s)
{
    const tune_request *rq = &s->rq;
    config_answer known;

    s->known = rq->start;
    if (config_resolve(rq->k, rq->dev, &rq->args->p, NULL, &known) == TW_OK)
        s->known = known.cfg;
}

static void add_param(session *s, uint32_t i)
{
    const tune_request *rq = &s->rq;
    space_param *p = &s->sp.param[s->sp.nparams++];
    int64_t value[SPACE_MAX_VALUES];
    uint32_t n = 0;

    p->name = rq->start.value[i].name;
    if (!(rq->pinned >> i & 1))
        n = config_candidates(rq->k, rq->dev->target, rq->dev, i, value);
    if (is_dynamic(rq, i) && n > DYNAMIC_VALUES)
        n = DYNAMIC_VALUES;
    for (uint32_t j = 0; j < n; j++)
        space_param_add(p, value[j]);
    if (!space_param_add(p, rq->start.value[i].value))
        p->value[0] = rq->start.value[i].value;
    if (!(rq->pinned >> i & 1) && !is_dynamic(rq, i)) /* one that the sets need not have */
        space_param_add(p, s->known.value[i].value);
}

static void config_of(const session *s, const int64_t *value, config *out)
{
    *out = s->rq.start;
    for (uint32_t i = 0; i < out->n; i++)
        out->value[i].value = value[i];
}

static bool is_valid(void *user, const int64_t *value)
{
    session *s = user;
    config cfg;

    config_of(s, value, &cfg);
    return config_valid(s->rq.k, s->rq.dev->target, &s->rq.args->p, &cfg, NULL);
}

static tw_status build_guarded(void *arg)
{
    session *s = arg;
    int64_t start[SPACE_MAX_PARAMS];

    for (uint32_t i = 0; i < s->rq.start.n; i++) {
        add_param(s, i);
        start[i] = s->rq.start.value[i].value;
    }
    space_enumerate(&s->sp, &s->a, start, is_valid, s);
    s->search = search_create(&s->sp, &s->a, 0);
    s->trial = ARENA_ARRAY(&s->a, trial, s->sp.npoints);
    s->code = ARENA_ARRAY(&s->a, executable *, s->sp.npoints);
    s->order = ARENA_ARRAY(&s->a, uint32_t, s->sp.npoints);
    for (uint32_t i = 0; i < s->sp.npoints; i++) {
        int64_t value[SPACE_MAX_PARAMS];
        space_values(&s->sp, i, value);
        config_of(s, value, &s->trial[i].cfg);
        s->trial[i].state = TW_TRIAL_SKIPPED;
        if (config_equal(&s->trial[i].cfg, &s->known))
            search_hint(s->search, i);
    }
    return TW_OK;
}

/* ---- what broke the device ------------------------------------------------------------------- */

/* How the reason of a trial begins that took the device along. */
#define BROKE "it broke the device: "

static bool mark_broken(void *user, const tw_trial *stored)
{
    session *s = user;
    char text[RUNTIME_CONFIG_TEXT];

    if (stored->state != TW_TRIAL_FAILED || strncmp(stored->reason, BROKE, sizeof BROKE - 1) != 0)
        return true;
    for (uint32_t i = 0; i < s->sp.npoints; i++) {
        trial *t = &s->trial[i];
        if (config_text(&t->cfg, text) != TW_OK || strcmp(text, stored->config) != 0)
            continue;
        t->broke = true;
        memcpy(t->reason, stored->reason, sizeof t->reason);
    }
    return true;
}

/* Without a file there are none. */
static void read_broken(session *s)
{
    if (store_key_trials(s->rq.k->cx->store, &s->rq.key, mark_broken, s) != TW_OK)
        error_clear();
}

/* ---- the object ----------------------------------------------------------------------------- */

static tw_status make_buffers(session *s)
{
    s->reference = mem_zalloc((s->out.n + 1) * sizeof *s->reference);
    s->buffer = mem_zalloc((s->out.n + 1) * sizeof *s->buffer);
    bool ok = s->reference && s->buffer;
    for (uint32_t i = 0; i < s->out.n && ok; i++) {
        s->reference[i] = mem_alloc(s->out.tensor[i].packed_size);
        s->buffer[i] = mem_alloc(s->out.tensor[i].packed_size);
        ok = s->reference[i] && s->buffer[i];
    }
    return ok ? TW_OK : error_set(TW_E_NOMEM, "no memory for copies of the outputs");
}

/* The null device computes nothing: it may run on the caller's arguments, whatever they are. */
static tw_status make_scratch(session *s)
{
    const tune_request *rq = &s->rq;

    s->checks = rq->dev->drv->family != NULL;
    s->out.args = *rq->args;
    s->out.dev = rq->dev;
    if (!s->checks)
        return TW_OK;
    TRY(scratch_create(&s->out, rq->dev, rq->dev, rq->k, rq->args));
    return make_buffers(s);
}

tw_status session_create(const tune_request *rq, session **out)
{
    session *s = mem_zalloc(sizeof *s);

    if (!s)
        return error_set(TW_E_NOMEM, "no memory for tuning");
    s->rq = *rq;
    s->repeats = 1;
    arena_init(&s->a);
    find_known(s);
    tw_status st = error_thrown(guard_run(build_guarded, s));
    if (st == TW_OK) {
        read_broken(s);
        st = make_scratch(s);
    }
    if (st != TW_OK) {
        session_destroy(s);
        return st;
    }
    *out = s;
    return TW_OK;
}

void session_destroy(session *s)
{
    for (uint32_t i = 0; s->trial && i < s->sp.npoints; i++)
        runtime_exe_release(s->trial[i].exe);
    for (uint32_t i = 0; s->code && i < s->sp.npoints; i++)
        runtime_exe_release(s->code[i]);
    for (uint32_t i = 0; i < s->out.n; i++) {
        mem_free(s->reference ? s->reference[i] : NULL);
        mem_free(s->buffer ? s->buffer[i] : NULL);
    }
    mem_free(s->reference);
    mem_free(s->buffer);
    scratch_destroy(&s->out);
    arena_release(&s->a);
    mem_free(s);
}

/* ---- time and progress ---------------------------------------------------------------------- */

double session_elapsed(const session *s)
{
    return clock_seconds() - s->rq.started;
}

double session_left(const session *s)
{
    return s->rq.budget_s - session_elapsed(s);
}

double trial_median(const trial *t)
{
    return median_of(t->sample, t->nsamples);
}

static bool report(session *s, const char *phase)
{
    const trial *leader = &s->trial[s->best];
    tw_tune_progress p = {.tried = s->norder,
                          .total = s->sp.npoints,
                          .best_s = trial_median(leader),
                          .elapsed_s = session_elapsed(s),
                          .budget_s = s->rq.budget_s,
                          .phase = phase};

    return s->rq.progress(s->rq.progress_user, &p);
}

bool session_tick(session *s, const char *phase)
{
    double now = clock_seconds();

    if (s->cancelled || (s->phase == phase && now - s->ticked < TICK_S))
        return !s->cancelled;
    s->phase = phase;
    s->ticked = now;
    if (s->rq.lease)
        (void)store_lease_renew(s->rq.k->cx->store, s->rq.lease);
    s->cancelled = s->rq.progress && !report(s, phase);
    return !s->cancelled;
}

/* ---- trials --------------------------------------------------------------------------------- */

static void store_one(session *s, const trial *t)
{
    char text[RUNTIME_CONFIG_TEXT];
    store_trial row = {.state = t->state,
                       .config = text,
                       .median_s = trial_median(t),
                       .spread_s = spread_of(t->sample, t->nsamples),
                       .sample = t->sample,
                       .nsamples = t->nsamples,
                       .reason = t->reason[0] ? t->reason : NULL};

    if (t->exe && t->exe->art) {
        row.registers = t->exe->art->registers;
        row.spill_bytes = t->exe->art->spill_bytes;
        row.shared_bytes = t->exe->art->nsteps ? t->exe->art->step[0].shared_bytes : 0;
    }
    if (config_text(&t->cfg, text) == TW_OK && !s->rq.k->checked)
        store_put_trial(s->rq.k->cx->store, &s->rq.key, &row);
}

static void tell_search(session *s, uint32_t p)
{
    const trial *t = &s->trial[p];
    bool timed = t->state == TW_TRIAL_OK || t->state == TW_TRIAL_STOPPED;

    if (t->same) {
        search_leave(s->search, p);
        return;
    }
    search_tell(s->search, p, timed ? t->log_time : INFINITY);
}

/* A configuration that ran may have been slow for this reason, or fast in spite of it. */
static void note_spills(trial *t)
{
    const artifact *art = t->exe ? t->exe->art : NULL;

    if (t->reason[0] == 0 && art && art->spill_bytes > 0)
        snprintf(t->reason, sizeof t->reason, "%d registers a thread, and %d bytes spilled",
                 (int)art->registers, (int)art->spill_bytes);
}

void session_finish(session *s, uint32_t p, tw_trial_state state, const char *fmt, ...)
{
    trial *t = &s->trial[p];
    va_list ap;

    if (!t->done)
        s->order[s->norder++] = p;
    t->state = state;
    t->done = true;
    if (fmt) {
        va_start(ap, fmt);
        vsnprintf(t->reason, sizeof t->reason, fmt, ap);
        va_end(ap);
    }
    note_spills(t);
    store_one(s, t);
    tell_search(s, p);
    session_drop(s, p);
}

static tw_status device_lost(session *s, uint32_t p)
{
    const tune_request *rq = &s->rq;
    char text[RUNTIME_CONFIG_TEXT] = "";

    (void)config_text(&s->trial[p].cfg, text);
    return error_diag(TW_E_DEVICE, DIAG_DEVICE,
                      "start a new process and tune again: this configuration will be left out",
                      "kernel '%s' on '%s': tuning ends, because of '%s' %s",
                      rq->k->source->sig.name, rq->dev->spec, text, s->trial[p].reason);
}

bool session_lost(const session *s)
{
    const driver *drv = s->rq.dev->drv;

    return drv->lost && drv->lost(s->rq.dev);
}

tw_status session_failed(session *s, uint32_t p)
{
    const tw_error *e = error_get();
    bool lost = session_lost(s);

    session_finish(s, p, TW_TRIAL_FAILED, "%s%.*s", lost ? BROKE : "", (int)strcspn(e->text, "\n"),
                   e->text);
    return lost ? device_lost(s, p) : TW_OK;
}

void session_keep_code(session *s, uint32_t p)
{
    runtime_exe_retain(s->trial[p].exe);
    s->code[p] = s->trial[p].exe;
    s->ncompiled++;
    if (s->code[p]->from_store)
        return;
    s->compile_s += s->code[p]->compile_s;
    s->compile_weight += s->trial[p].weight;
    s->ntimed++;
}

void session_drop(session *s, uint32_t p)
{
    trial *t = &s->trial[p];

    if (p == s->best || p == 0 || t->contends)
        return;
    runtime_exe_release(t->exe);
    t->exe = NULL;
}

void session_mismatch_text(const session *s, uint32_t tensor, const mismatch *m, char *out,
                           size_t size)
{
    const scratch_tensor *t = &s->out.tensor[tensor];
    size_t at = (size_t)snprintf(out, size, "%s[", s->rq.k->source->sig.param[t->param].name);

    for (int i = 0; i < t->view.rank && at < size; i++)
        at +=
            (size_t)snprintf(out + at, size - at, "%s%lld", i ? ", " : "", (long long)m->index[i]);
    if (at < size)
        snprintf(out + at, size - at, "] is %.7g, not %.7g", m->got, m->want);
}
