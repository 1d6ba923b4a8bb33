#include "runtime/resolve.h"
#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "runtime/args.h"
#include "runtime/clock.h"
#include "runtime/lower.h"
#include <stdio.h>
#include <string.h>

#define MAX_COMBINATIONS 100000 /* looked at for a valid one: about a second */

/* ---- what a configuration is made of --------------------------------------------------------- */

static int64_t schedule_default(const sched_param *s, const tw_device *dev)
{
    if (s->dynamic)
        return dev ? dev->threads : 1;
    return s->n ? s->value[0] : s->lo;
}

/* Names, and the schedule's defaults; tune parameters get their first candidate. */
static tw_status config_start(const tw_kernel *k, const target *t, const tw_device *dev,
                              config *out)
{
    const kernel_sig *sig = &k->source->sig;

    if (sig->ntunes + t->nsched > RUNTIME_MAX_CONFIG)
        return error_set(TW_E_LIMIT, "kernel '%s' on target '%s' has more than %d parameters",
                         sig->name, t->name, RUNTIME_MAX_CONFIG);
    out->n = sig->ntunes + t->nsched;
    for (uint32_t i = 0; i < sig->ntunes; i++) {
        const struct sig_set *set = sig_tune_set(sig, i, t->name);
        if (!set || set->n == 0)
            return error_set(TW_E_SOURCE, "kernel '%s' has no values of '%s' for target '%s'",
                             sig->name, sig->tune[i].name, t->name);
        out->value[i] = (ir_binding){sig->tune[i].name, BIND_INT, set->value[0]};
    }
    for (uint32_t i = 0; i < t->nsched; i++)
        out->value[sig->ntunes + i] =
            (ir_binding){t->sched[i].name, BIND_INT, schedule_default(&t->sched[i], dev)};
    return TW_OK;
}

uint32_t config_candidates(const tw_kernel *k, const target *t, const tw_device *dev, uint32_t i,
                           int64_t out[64])
{
    const kernel_sig *sig = &k->source->sig;
    uint32_t n = 0;

    if (i < sig->ntunes) {
        const struct sig_set *set = sig_tune_set(sig, i, t->name);
        for (n = 0; set && n < set->n && n < 64; n++)
            out[n] = set->value[n];
        return n;
    }
    const sched_param *s = &t->sched[i - sig->ntunes];
    if (s->dynamic) { /* all threads, then half as many, and so on */
        for (int64_t v = dev ? dev->threads : 1; v >= 1 && n < 64; v /= 2)
            out[n++] = v;
        return n;
    }
    for (n = 0; n < s->n; n++)
        out[n] = s->value[n];
    return n;
}

bool config_valid(const tw_kernel *k, const target *t, const problem *p, const config *cfg,
                  const char **why)
{
    const char *reason = NULL;
    binding_list b;

    bindings_of(k, p, cfg, &b);
    bool ok = k->source->valid(k->source, b.at, b.n, t->name, &reason);
    if (why)
        *why = ok ? NULL : reason ? reason : "the kernel's constraints do not hold";
    return ok;
}

/* To the next combination of those tune parameters that fixed leaves open, last one fastest; false
 * when that is the first again. */
static bool advance(const tw_kernel *k, const target *t, uint64_t fixed, config *cfg)
{
    uint32_t i = k->source->sig.ntunes;

    while (i-- > 0) {
        if (fixed >> i & 1)
            continue;
        const struct sig_set *set = sig_tune_set(&k->source->sig, i, t->name);
        uint32_t at = 0;
        while (at < set->n && set->value[at] != cfg->value[i].value)
            at++;
        at = at + 1 < set->n ? at + 1 : 0;
        cfg->value[i].value = set->value[at];
        if (at)
            return true;
    }
    return false;
}

/* This combination if it is valid, else the first after it that is. */
static tw_status first_valid(const tw_kernel *k, const target *t, const problem *p, uint64_t fixed,
                             config *cfg)
{
    const char *why = NULL, *first_why = NULL;
    bool is_all = false;

    for (int tried = 0; tried < MAX_COMBINATIONS && !is_all; tried++) {
        if (config_valid(k, t, p, cfg, &why))
            return TW_OK;
        first_why = first_why ? first_why : why;
        is_all = !advance(k, t, fixed, cfg);
    }
    if (!is_all)
        return error_diag(TW_E_LIMIT, DIAG_LIMIT, "write the likely values of each set first",
                          "kernel '%s' on target '%s': none of the first %d configurations is "
                          "valid: %s",
                          k->source->sig.name, t->name, MAX_COMBINATIONS, first_why);
    return error_diag(TW_E_ARG, DIAG_BAD_ARGUMENT,
                      "change the sets, or pin values that meet the constraints",
                      "kernel '%s' on target '%s': no configuration is valid: %s",
                      k->source->sig.name, t->name, first_why);
}

bool config_next(const tw_kernel *k, const target *t, const problem *p, uint64_t fixed,
                 config *cfg)
{
    for (int looked = 0; looked < MAX_COMBINATIONS && advance(k, t, fixed, cfg); looked++) {
        if (config_valid(k, t, p, cfg, NULL))
            return true;
    }
    return false;
}

bool config_worth_another(int tried, double started)
{
    return tried < 16 || clock_seconds() - started < 2.0;
}

tw_status config_default(const tw_kernel *k, const target *t, const tw_device *dev,
                         const problem *p, config *out)
{
    TRY(config_start(k, t, dev, out));
    return first_valid(k, t, p, 0, out);
}

tw_status config_pin(const tw_kernel *k, const target *t, const tw_device *dev, const problem *p,
                     const char *text, config *cfg, uint64_t *pinned)
{
    uint64_t named = 0;
    text_pair pair;
    tw_status st = config_default(k, t, dev, p, cfg);

    if (st != TW_OK) { /* what is pinned may be valid where nothing in the sets is */
        if (text[strspn(text, " ,")] == '\0')
            return st;
        TRY(config_start(k, t, dev, cfg));
        error_clear();
    }
    while (pair_next(&text, &pair))
        TRY(config_set(k, t, &pair, cfg, &named));
    if (pinned)
        *pinned = named;
    if (config_valid(k, t, p, cfg, NULL))
        return TW_OK;
    for (uint32_t i = 0; i < k->source->sig.ntunes; i++)
        if (!(named >> i & 1))
            cfg->value[i].value = sig_tune_set(&k->source->sig, i, t->name)->value[0];
    return first_valid(k, t, p, named, cfg);
}

tw_status config_of_content(const tw_kernel *k, const tw_device *dev, const problem *p,
                            const char *pin, config *out)
{
    tw_status st = config_default(k, dev->target, dev, p, out);

    return st == TW_OK || !pin ? st : config_pin(k, dev->target, dev, p, pin, out, NULL);
}

bool config_parse(const tw_kernel *k, const target *t, const tw_device *dev, const problem *p,
                  const char *text, config *out)
{
    uint64_t named = 0;
    text_pair pair;

    if (config_start(k, t, dev, out) != TW_OK)
        return false;
    while (pair_next(&text, &pair))
        if (config_set(k, t, &pair, out, &named) != TW_OK)
            return false;
    return named == ((uint64_t)1 << out->n) - 1 && config_valid(k, t, p, out, NULL);
}

/* ---- keys of the store ----------------------------------------------------------------------- */

typedef struct coord_list {
    arena *a;
    VEC(store_coord) at;
} coord_list;

static void add_coord(coord_list *l, const char *name, enum store_coord_kind kind, const char *text,
                      int64_t value)
{
    store_coord c = {name, kind, text, value};

    vec_push(&l->at, l->a, c);
}

static void add_const(coord_list *l, const kernel_source *src, uint32_t i, const ir_binding *b)
{
    char unused[32];

    if (b->kind == BIND_INT)
        add_coord(l, b->name, COORD_VALUE, NULL, b->value);
    else
        add_coord(l, b->name, b->kind == BIND_DTYPE ? COORD_EXACT : COORD_LABEL,
                  const_value_text(src, i, b->value, unused), 0);
}

/* One letter a tensor: u or s (unit stride or not), then w when all is aligned to the wide class.
 */
static const char *facts_text(const kernel_sig *sig, const problem *p, arena *a)
{
    strbuf b;

    sb_init(&b, a);
    for (uint32_t i = 0; i < sig->nparams; i++) {
        if (!sig->param[i].is_tensor)
            continue;
        sb_char(&b, p->facts[i].unit_inner ? 'u' : 's');
        if (p->facts[i].align >= 16)
            sb_char(&b, 'w');
    }
    return b.s;
}

static void device_coords(const tw_device *dev, coord_list *l)
{
    char features[HASH_TEXT];

    hash_text(hash_str(dev->target->features(dev->target)), features);
    features[8] = 0;
    add_coord(l, "name", COORD_LABEL, dev->name, 0);
    add_coord(l, "features", COORD_LABEL, arena_strdup(l->a, features), 0);
    add_coord(l, "threads", COORD_VALUE, NULL, dev->threads);
    add_coord(l, "l1", COORD_VALUE, NULL, (int64_t)dev->l1_bytes);
    add_coord(l, "l2", COORD_VALUE, NULL, (int64_t)dev->l2_bytes);
    if (dev->gpu.limits.capability == 0)
        return;
    add_coord(l, "capability", COORD_VALUE, NULL, dev->gpu.limits.capability);
    add_coord(l, "shared", COORD_VALUE, NULL, dev->gpu.limits.shared_per_block);
}

/* A GPU's driver makes code too. */
static const char *driver_text(const tw_device *dev, arena *a)
{
    const char *ours =
        arena_printf(a, RUNTIME_DRIVER_FORMAT, tw_version(), target_codegen_version());

    return dev->code_key[0] ? arena_printf(a, "%s; %s", ours, dev->code_key) : ours;
}

void config_store_key(const tw_kernel *k, const tw_device *dev, const problem *p, arena *a,
                      store_key *out)
{
    const kernel_sig *sig = &k->source->sig;
    coord_list problem_list = {.a = a}, device_list = {.a = a};

    for (uint32_t i = 0; i < p->nconsts; i++)
        add_const(&problem_list, k->source, i, &p->cons[i]);
    for (uint32_t i = 0; i < sig->nsymbols; i++)
        add_coord(&problem_list, sig->symbol[i], COORD_BUCKET, NULL, p->symbol[i]);
    add_coord(&problem_list, "layout", COORD_LABEL, facts_text(sig, p, a), 0);
    device_coords(dev, &device_list);
    *out = (store_key){
        .kernel = sig->name,
        .content = p->content,
        .problem = problem_list.at.at,
        .nproblem = problem_list.at.n,
        .target = dev->target->name,
        .device = device_list.at.at,
        .ndevice = device_list.at.n,
        .driver = driver_text(dev, a),
    };
}

/* ---- which configuration --------------------------------------------------------------------- */

typedef struct ask_job {
    const tw_kernel *k;
    const tw_device *dev;
    const problem *p;
    arena a;
    store_key key;
    config parsed;
} ask_job;

static tw_status key_guarded(void *arg)
{
    ask_job *j = arg;

    config_store_key(j->k, j->dev, j->p, &j->a, &j->key);
    return TW_OK;
}

/* What the text does not name takes its default: seeds name what matters, and a target may have
 * gained a parameter since. */
static bool acceptable(void *user, const char *text)
{
    ask_job *j = user;

    return config_pin(j->k, j->dev->target, j->dev, j->p, text, &j->parsed, NULL) == TW_OK;
}

/* Another device's threads say nothing about this one's. */
static void localize(const tw_device *dev, config *cfg)
{
    for (uint32_t i = 0; i < cfg->n; i++) {
        const sched_param *s = target_sched(dev->target, cfg->value[i].name);
        if (s && s->dynamic)
            cfg->value[i].value = schedule_default(s, dev);
    }
}

static tw_status ask_store(ask_job *j, config_answer *out)
{
    store_answer answer;

    arena_init(&j->a);
    tw_status st = guard_run(key_guarded, j);
    if (st == TW_OK) {
        store_best(j->dev->cx->store, &j->key, acceptable, j, &answer);
        error_clear(); /* of configurations that were not acceptable */
        if (answer.layer != TW_LAYER_DEFAULT && acceptable(j, answer.config)) {
            out->cfg = j->parsed;
            out->layer = answer.layer;
            if (answer.layer == TW_LAYER_NEAREST_DEVICE)
                localize(j->dev, &out->cfg);
            out->seconds = answer.seconds;
        }
    }
    arena_release(&j->a);
    return error_thrown(st);
}

tw_status config_resolve(const tw_kernel *k, const tw_device *dev, const problem *p,
                         const char *pin, config_answer *out)
{
    ask_job j = {.k = k, .dev = dev, .p = p};

    out->seconds = 0.0;
    out->layer = pin ? TW_LAYER_PINNED : TW_LAYER_DEFAULT;
    if (pin)
        return config_pin(k, dev->target, dev, p, pin, &out->cfg, NULL);
    TRY(config_default(k, dev->target, dev, p, &out->cfg));
    return ask_store(&j, out);
}
