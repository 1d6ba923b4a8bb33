#include "runtime/spec.h"
#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "runtime/clock.h"
#include "runtime/lower.h"
#include "runtime/resolve.h"
#include <string.h>

/* ---- keys ------------------------------------------------------------------------------------ */

static unsigned ceil_log2(int64_t v)
{
    return v <= 1 ? 0 : 64 - (unsigned)__builtin_clzll((uint64_t)v - 1);
}

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

/* Bits of all tensors and size classes of all dimensions, packed. */
static void pack_problem(const kernel_sig *sig, const problem *p, spec_key *key)
{
    uint64_t word = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < sig->nparams; i++) {
        if (!sig->param[i].is_tensor)
            continue;
        word = word << 2 | (uint64_t)p->facts[i].unit_inner << 1 | (p->facts[i].align >= 16);
        if (++n % 32 == 0)
            key->word[key->nwords++] = word;
    }
    key->word[key->nwords++] = word;
    word = 0;
    for (uint32_t i = 0; i < sig->nsymbols; i++) {
        word = word << 8 | ceil_log2(p->symbol[i]);
        if (i % 8 == 7)
            key->word[key->nwords++] = word;
    }
    if (sig->nsymbols % 8)
        key->word[key->nwords++] = word;
}

static void key_make(const kernel_sig *sig, const problem *p, const char *pin, spec_key *key)
{
    key->nwords = 0;
    for (uint32_t i = 0; i < p->nconsts; i++)
        key->word[key->nwords++] = (uint64_t)p->cons[i].value;
    pack_problem(sig, p, key);
    if (pin) {
        hash128 h = hash_str(pin);
        key->word[key->nwords++] = h.lo;
        key->word[key->nwords++] = h.hi;
    }
    key->hash = key->nwords;
    for (uint32_t i = 0; i < key->nwords; i++)
        key->hash = mix(key->hash, key->word[i]);
}

static bool key_equal(const spec_key *a, const spec_key *b)
{
    return a->hash == b->hash && a->nwords == b->nwords &&
           memcmp(a->word, b->word, sizeof *a->word * a->nwords) == 0;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static kernel_use *use_find(const tw_kernel *k, uint64_t id)
{
    kernel_use *u = atomic_load_explicit(&((tw_kernel *)k)->uses, memory_order_acquire);

    while (u && atomic_load_explicit(&u->device_id, memory_order_acquire) != id)
        u = u->next;
    return u;
}

/* Under k's lock. */
static kernel_use *use_add(tw_kernel *k, uint64_t id)
{
    kernel_use *u = use_find(k, id);

    u = u ? u : use_find(k, 0);
    if (u) {
        atomic_store_explicit(&u->device_id, id, memory_order_release);
        return u;
    }
    u = mem_zalloc(sizeof *u);
    if (!u)
        return NULL;
    atomic_store_explicit(&u->device_id, id, memory_order_relaxed);
    u->next = atomic_load_explicit(&k->uses, memory_order_relaxed);
    atomic_store_explicit(&k->uses, u, memory_order_release);
    return u;
}

static spec_row *row_find(kernel_use *u, const spec_key *key)
{
    spec_row *s = atomic_load_explicit(&u->bucket[key->hash % SPEC_BUCKETS], memory_order_acquire);

    while (s && !key_equal(&s->key, key))
        s = s->next;
    return s;
}

static void row_free(spec_row *s)
{
    arena_release(&s->a);
    mem_free(s->pin);
    mem_free(s);
}

static spec_row *row_new(const spec_key *key, const char *pin)
{
    spec_row *s = mem_zalloc(sizeof *s);

    if (!s)
        return NULL;
    arena_init(&s->a);
    s->key = *key;
    s->pin = pin ? mem_strdup(pin) : NULL;
    if (pin && !s->pin) {
        row_free(s);
        return NULL;
    }
    return s;
}

/* Under k's lock. */
static spec_row *row_add(tw_kernel *k, const tw_device *dev, const spec_key *key, const char *pin)
{
    kernel_use *u = use_add(k, dev->id);

    if (!u)
        return NULL;
    spec_row *s = row_find(u, key);
    if (s)
        return s;
    s = row_new(key, pin);
    if (!s)
        return NULL;
    _Atomic(spec_row *) *bucket = &u->bucket[key->hash % SPEC_BUCKETS];
    s->next = atomic_load_explicit(bucket, memory_order_relaxed);
    atomic_store_explicit(bucket, s, memory_order_release);
    return s;
}

tw_status spec_find(tw_kernel *k, tw_device *dev, const launch_args *args, const char *pin,
                    spec_row **out)
{
    spec_key key; /* not cleared: nwords says how much of it is there */
    kernel_use *u = use_find(k, dev->id);

    key_make(&k->source->sig, &args->p, pin, &key);
    *out = u ? row_find(u, &key) : NULL;
    if (*out)
        return TW_OK;
    pthread_mutex_lock(&k->lock);
    *out = row_add(k, dev, &key, pin);
    pthread_mutex_unlock(&k->lock);
    return *out ? TW_OK
                : error_set(TW_E_NOMEM, "no memory for a specialisation of kernel '%s'",
                            k->source->sig.name);
}

static void use_clear(kernel_use *u)
{
    for (int i = 0; i < SPEC_BUCKETS; i++) {
        spec_row *s = atomic_exchange(&u->bucket[i], NULL);
        while (s) {
            spec_row *next = s->next;
            row_free(s);
            s = next;
        }
    }
    while (u->exes) {
        exe_node *n = u->exes;
        u->exes = n->next;
        runtime_exe_release(n->exe);
        mem_free(n);
    }
    atomic_store_explicit(&u->device_id, 0, memory_order_release);
}

void spec_drop(tw_kernel *k, const tw_device *dev)
{
    pthread_mutex_lock(&k->lock);
    for (kernel_use *u = atomic_load(&k->uses); u; u = u->next)
        if (!dev || atomic_load(&u->device_id) == dev->id)
            use_clear(u);
    if (!dev) {
        kernel_use *u = atomic_exchange(&k->uses, NULL);
        while (u) {
            kernel_use *next = u->next;
            mem_free(u);
            u = next;
        }
    }
    pthread_mutex_unlock(&k->lock);
}

/* ---- executables of a use -------------------------------------------------------------------- */

static bool same_code(const executable *exe, const kernel_sig *sig, const problem *p,
                      const config *cfg)
{
    for (uint32_t i = 0; i < p->nconsts; i++)
        if (exe->p.cons[i].value != p->cons[i].value)
            return false;
    for (uint32_t i = 0; i < sig->nparams; i++)
        if (sig->param[i].is_tensor && (exe->p.facts[i].unit_inner != p->facts[i].unit_inner ||
                                        exe->p.facts[i].align != p->facts[i].align))
            return false;
    return config_equal(&exe->cfg, cfg);
}

/* One that another size class compiled; its list keeps the reference. */
static executable *exe_known(tw_kernel *k, const tw_device *dev, const problem *p,
                             const config *cfg)
{
    executable *found = NULL;

    pthread_mutex_lock(&k->lock);
    kernel_use *u = use_find(k, dev->id);
    for (exe_node *n = u ? u->exes : NULL; n && !found; n = n->next)
        if (same_code(n->exe, &k->source->sig, p, cfg))
            found = n->exe;
    pthread_mutex_unlock(&k->lock);
    return found;
}

typedef struct choice {
    executable *exe;
    bool listed; /* the use's list has it already; else the list takes over a reference */
    bool settled;
    tw_layer layer;
    double seconds;
} choice;

/* Puts the choice in s; not over an adopted one that came while this one was built. */
static tw_status install(tw_kernel *k, const tw_device *dev, spec_row *s, const choice *c,
                         bool adopted)
{
    exe_node *node = c->listed ? NULL : mem_alloc(sizeof *node);

    if (!c->listed && !node) {
        runtime_exe_release(c->exe);
        return error_set(TW_E_NOMEM, "no memory for an executable");
    }
    pthread_mutex_lock(&k->lock);
    if (node) {
        kernel_use *u = use_find(k, dev->id);
        *node = (exe_node){u->exes, c->exe};
        u->exes = node;
    }
    if (adopted || !atomic_load_explicit(&s->settled, memory_order_relaxed)) {
        s->layer = c->layer;
        s->seconds = c->seconds;
        atomic_store_explicit(&s->exe, c->exe, memory_order_release);
        atomic_store_explicit(&s->settled, c->settled, memory_order_release);
    }
    pthread_mutex_unlock(&k->lock);
    return TW_OK;
}

void runtime_adopt(tw_kernel *k, tw_device *dev, const launch_args *args, executable *exe,
                   tw_layer layer, double seconds)
{
    const choice c = {exe, false, true, layer, seconds};
    spec_row *s;

    /* Without memory the row stays as it is: the next launch is right, and no faster. */
    if (spec_find(k, dev, args, NULL, &s) != TW_OK)
        return;
    runtime_exe_retain(exe);
    (void)!install(k, dev, s, &c, true);
}

/* ---- building a row -------------------------------------------------------------------------- */

typedef struct probe_job {
    lowering l;
    spec_row *s;
} probe_job;

static tw_status probe_guarded(void *arg)
{
    probe_job *j = arg;

    plan_make(j->l.k, j->l.module, &j->s->a, &j->s->probe);
    return TW_OK;
}

static tw_status probe(tw_kernel *k, tw_device *dev, spec_row *s, const problem *p)
{
    probe_job j;
    config cfg;

    atomic_store(&dev->used, true);
    TRY(config_of_content(k, dev, p, s->pin, &cfg));
    j.s = s;
    lowering_begin(&j.l, k, dev->target);
    tw_status st = lowering_run(&j.l, p, &cfg);
    if (st == TW_OK)
        st = error_thrown(guard_run(probe_guarded, &j));
    s->content = j.l.hash;
    lowering_end(&j.l);
    if (st == TW_OK)
        atomic_store_explicit(&s->has_probe, true, memory_order_release);
    return st;
}

/* In s->content and by the default's grid and require: is there work? */
static tw_status check_work(tw_kernel *k, tw_device *dev, spec_row *s, const launch_args *args,
                            bool *work)
{
    ir_scalar in[RUNTIME_MAX_PARAMS + RUNTIME_MAX_SYMBOLS];
    int64_t grid[3];

    if (!atomic_load_explicit(&s->has_probe, memory_order_acquire))
        TRY(probe(k, dev, s, &args->p));
    TRY(plan_eval(k, &s->probe, args, in, grid));
    *work = !grid_is_empty(grid);
    return TW_OK;
}

static bool may_tune(const tw_context *cx, const spec_row *s, tw_layer layer)
{
    return cx->cfg.tune == TW_TUNE_ON_MISS && cx->tuner && cx->tuner->tune_on_miss && !s->pin &&
           layer != TW_LAYER_EXACT && layer != TW_LAYER_TUNED;
}

/* Tunes; where the world forbids that (no memory for copies, a device that fails), the best known
 * configuration stays. Results that differ from the interpreter's are not to be launched. */
static tw_status tune(tw_kernel *k, tw_device *dev, const launch_args *args, config_answer *answer)
{
    tw_context *cx = k->cx;
    config_answer tuned = *answer;

    tw_status st = cx->tuner->tune_on_miss(k, dev, args, cx->cfg.tune_budget_s, &tuned.cfg,
                                           &tuned.seconds, &tuned.layer);
    if (st == TW_E_MISMATCH)
        return st;
    if (st == TW_OK)
        *answer = tuned;
    else
        runtime_log(cx, TW_LOG_WARNING,
                    "kernel '%s' was not tuned, and runs in the best known configuration: %s",
                    k->source->sig.name, error_get()->text);
    error_clear();
    return TW_OK;
}

static tw_status choose(tw_kernel *k, tw_device *dev, const spec_row *s, const launch_args *args,
                        unsigned flags, config_answer *answer, bool *settled)
{
    TRY(config_resolve(k, dev, &args->p, s->pin, answer));
    *settled = !may_tune(k->cx, s, answer->layer);
    if (*settled || (flags & (SPEC_NEVER_TUNE | SPEC_CAPTURING)))
        return TW_OK;
    *settled = true;
    return tune(k, dev, args, answer);
}

static void log_choice(const tw_kernel *k, const tw_device *dev, const choice *c)
{
    const char *how = c->exe->from_store ? "code from the store" : "compiled";
    char text[RUNTIME_CONFIG_TEXT];

    if (k->cx->cfg.log && config_text(&c->exe->cfg, text) == TW_OK)
        runtime_log(k->cx, TW_LOG_INFO, "%s on %s: %s (%s), %s", k->source->sig.name, dev->spec,
                    text, tw_layer_text(c->layer), how);
}

static tw_status not_while_capturing(const tw_kernel *k, const tw_device *dev)
{
    return error_diag(TW_E_UNSUPPORTED, DIAG_DEVICE,
                      "launch it once with such arguments before the capture, or bind it with "
                      "tw_kernel_specialize",
                      "kernel '%s' is not loaded on device '%s' for these arguments, and the "
                      "stream is capturing: loading it now would break the capture, which is "
                      "still whole",
                      k->source->sig.name, dev->spec);
}

static tw_status make_code(tw_kernel *k, tw_device *dev, const problem *p,
                           const config_answer *answer, unsigned flags, choice *c)
{
    c->layer = answer->layer;
    c->seconds = answer->seconds;
    c->exe = exe_known(k, dev, p, &answer->cfg);
    c->listed = c->exe != NULL;
    if ((flags & SPEC_CAPTURING) && !(c->exe && atomic_load(&c->exe->is_loaded)))
        return not_while_capturing(k, dev);
    return c->exe ? TW_OK : runtime_compile(k, dev, p, &answer->cfg, 0, &c->exe);
}

/* Of the default: the first in order that the device's limits allow. */
static tw_status make_fitting(tw_kernel *k, tw_device *dev, const problem *p,
                              config_answer *answer, unsigned flags, choice *c)
{
    double started = clock_seconds();
    tw_status st = make_code(k, dev, p, answer, flags, c);

    for (int tried = 1; st == TW_E_LIMIT && answer->layer == TW_LAYER_DEFAULT &&
                        config_worth_another(tried, started) &&
                        config_next(k, dev->target, p, 0, &answer->cfg);
         tried++)
        st = make_code(k, dev, p, answer, flags, c);
    if (st == TW_OK)
        error_clear();
    return st;
}

/* Was the configuration somebody else's? What is right for another problem, device or version may
 * be a tile too large for this one. */
static bool is_borrowed(tw_layer layer)
{
    return layer > TW_LAYER_TUNED && layer < TW_LAYER_DEFAULT;
}

static tw_status make_default_instead(tw_kernel *k, tw_device *dev, const problem *p,
                                      config_answer *answer, choice *c, tw_status why)
{
    runtime_log(k->cx, why == TW_E_INTERNAL ? TW_LOG_WARNING : TW_LOG_INFO,
                "kernel '%s': the configuration of '%s' cannot be compiled here: %s",
                k->source->sig.name, tw_layer_text(answer->layer), error_get()->text);
    *answer = (config_answer){.layer = TW_LAYER_DEFAULT};
    TRY(config_default(k, dev->target, dev, p, &answer->cfg));
    TRY(make_fitting(k, dev, p, answer, 0, c));
    error_clear();
    return TW_OK;
}

static tw_status build(tw_kernel *k, tw_device *dev, spec_row *s, launch_args *args, unsigned flags)
{
    config_answer answer;
    choice c = {0};
    bool work = true;

    TRY(check_work(k, dev, s, args, &work));
    if (!work && !(flags & SPEC_ALWAYS))
        return TW_OK;
    args->p.content = s->content;
    TRY(choose(k, dev, s, args, flags, &answer, &c.settled));
    tw_status st = make_fitting(k, dev, &args->p, &answer, flags, &c);
    if (st != TW_OK && is_borrowed(answer.layer) && !(flags & SPEC_CAPTURING))
        st = make_default_instead(k, dev, &args->p, &answer, &c, st);
    TRY(st);
    TRY(install(k, dev, s, &c, false));
    log_choice(k, dev, &c);
    return TW_OK;
}

static bool ready(spec_row *s, unsigned flags)
{
    return atomic_load_explicit(&s->exe, memory_order_acquire) &&
           ((flags & SPEC_NEVER_TUNE) || atomic_load_explicit(&s->settled, memory_order_acquire));
}

tw_status spec_build(tw_kernel *k, tw_device *dev, spec_row *s, launch_args *args, unsigned flags)
{
    pthread_mutex_lock(&k->lock);
    while (s->building)
        pthread_cond_wait(&k->built, &k->lock);
    if (ready(s, flags)) {
        pthread_mutex_unlock(&k->lock);
        return TW_OK;
    }
    s->building = true;
    pthread_mutex_unlock(&k->lock);

    tw_status st = build(k, dev, s, args, flags);

    pthread_mutex_lock(&k->lock);
    s->building = false;
    pthread_cond_broadcast(&k->built);
    pthread_mutex_unlock(&k->lock);
    return st;
}
