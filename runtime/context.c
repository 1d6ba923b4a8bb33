#include "compiler/base/check.h"
#include "compiler/base/mem.h"
#include "runtime/args.h"
#include "runtime/runtime.h"
#include "runtime/seeds.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- log ------------------------------------------------------------------------------------- */

void runtime_log_text(tw_context *cx, tw_log_level level, const char *text)
{
    if (!cx->cfg.log || (level > cx->cfg.log_level && level != TW_LOG_PRINT))
        return;
    pthread_mutex_lock(&cx->log_lock);
    cx->cfg.log(cx->cfg.log_user, level, text);
    pthread_mutex_unlock(&cx->log_lock);
}

static void log_of_store(void *user, tw_log_level level, const char *text)
{
    runtime_log_text(user, level, text);
}

void runtime_log(tw_context *cx, tw_log_level level, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    runtime_log_text(cx, level, text);
}

/* ---- create and destroy ---------------------------------------------------------------------- */

/* A caller built against an older header has a shorter struct: what it lacks keeps its default. */
static tw_status read_config(const tw_config *given, tw_config *out)
{
    *out = (tw_config)TW_CONFIG_INIT;
    if (!given)
        return TW_OK;
    if (given->size < sizeof given->size || given->size > 4096)
        return error_set(TW_E_ARG, "tw_config: size is %zu; start from TW_CONFIG_INIT",
                         given->size);
    memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    out->size = sizeof *out;
    if (out->tune != TW_TUNE_NEVER && out->tune != TW_TUNE_ON_MISS)
        return error_set(TW_E_ARG, "tw_config: tune is %d, not a tw_tune_mode", (int)out->tune);
    if ((unsigned)out->log_level > TW_LOG_PRINT)
        return error_set(TW_E_ARG, "tw_config: log_level is %d, not a tw_log_level",
                         (int)out->log_level);
    if (!(out->tune_budget_s >= 0.0))
        return error_set(TW_E_ARG, "tw_config: tune_budget_s must be at least 0");
    if (out->threads < 0)
        return error_set(TW_E_ARG, "tw_config: threads must be at least 0");
    return TW_OK;
}

static tw_status fill(tw_context *cx)
{
    const char *path = cx->cfg.store_path, *seeds = cx->cfg.seeds_path;

    cx->cfg.store_path = cx->cfg.seeds_path = NULL;
    if (path) {
        cx->cfg.store_path = mem_strdup(path);
        if (!cx->cfg.store_path)
            return error_set(TW_E_NOMEM, "no memory for a context");
    }
    tw_status st = store_open(cx->cfg.store_path, log_of_store, cx, &cx->store);
    if (st == TW_OK)
        st = seeds_open(cx, seeds, &cx->seeds);
    return st == TW_OK ? TW_OK : error_thrown(st);
}

tw_status runtime_context_create(const tw_config *cfg, const tuner_ops *tuner, tw_context **out)
{
    tw_config checked;

    error_clear();
    if (!out)
        return error_set(TW_E_ARG, "tw_context_create: out is NULL");
    TRY(read_config(cfg, &checked));
    tw_context *cx = mem_zalloc(sizeof *cx);
    if (!cx)
        return error_set(TW_E_NOMEM, "no memory for a context");
    cx->cfg = checked;
    cx->tuner = tuner;
    pthread_mutex_init(&cx->lock, NULL);
    pthread_mutex_init(&cx->log_lock, NULL);
    tw_status st = fill(cx);
    if (st != TW_OK) {
        tw_context_destroy(cx);
        return st;
    }
    *out = cx;
    return TW_OK;
}

void tw_context_destroy(tw_context *cx)
{
    if (!cx)
        return;
    if (cx->store)
        store_close(cx->store);
    seeds_close(cx->seeds);
    pthread_mutex_destroy(&cx->lock);
    pthread_mutex_destroy(&cx->log_lock);
    mem_free((char *)cx->cfg.store_path);
    mem_free(cx);
}

/* ---- the environment ------------------------------------------------------------------------- */

static const char *set_or_null(const char *name)
{
    const char *v = getenv(name);

    return v && *v ? v : NULL;
}

static tw_status usual_place(char *path, size_t size)
{
    const char *named = set_or_null("TILEWRIGHT_STORE"), *cache = set_or_null("XDG_CACHE_HOME"),
               *home = set_or_null("HOME");
    int n = 0;

    if (named)
        n = snprintf(path, size, "%s", strcmp(named, "none") == 0 ? "" : named);
    else if (cache && cache[0] == '/') /* the XDG rules: a relative one is to be ignored */
        n = snprintf(path, size, "%s/tilewright/store.db", cache);
    else if (home)
        n = snprintf(path, size, "%s/.cache/tilewright/store.db", home);
    else
        path[0] = 0;
    if (n < 0 || (size_t)n >= size)
        return error_set(TW_E_ARG, "the path of the store is longer than %zu bytes", size - 1);
    return TW_OK;
}

static tw_status read_checked(tw_config *cfg)
{
    const char *checked = set_or_null("TILEWRIGHT_CHECKED");

    if (!checked)
        return TW_OK;
    if (strcmp(checked, "0") != 0 && strcmp(checked, "1") != 0)
        return error_set(TW_E_ARG, "TILEWRIGHT_CHECKED is '%.40s', neither 0 nor 1", checked);
    cfg->checked = checked[0] == '1';
    return TW_OK;
}

static tw_status read_environment(tw_config *cfg)
{
    static _Thread_local char path[4096], seeds[4096];
    const char *tune = set_or_null("TILEWRIGHT_TUNE"), *budget = set_or_null("TILEWRIGHT_BUDGET");
    const char *seeds_path = set_or_null("TILEWRIGHT_SEEDS");
    ir_scalar seconds = {.f = 0.0};

    if (tune && strcmp(tune, "never") != 0 && strcmp(tune, "on-miss") != 0)
        return error_set(TW_E_ARG, "TILEWRIGHT_TUNE is '%.40s', neither never nor on-miss", tune);
    if (budget) {
        const tw_arg text = TW_TEXT("TILEWRIGHT_BUDGET", budget);
        if (arg_scalar(text.name, &text, DT_F64, &seconds) != TW_OK || !(seconds.f >= 0.0))
            return error_set(TW_E_ARG, "TILEWRIGHT_BUDGET is '%.40s', not a number of seconds",
                             budget);
    }
    TRY(usual_place(path, sizeof path));
    TRY(read_checked(cfg));
    if (snprintf(seeds, sizeof seeds, "%s", seeds_path ? seeds_path : "") >= (int)sizeof seeds)
        return error_set(TW_E_ARG, "TILEWRIGHT_SEEDS is longer than %zu bytes", sizeof seeds - 1);
    cfg->seeds_path = seeds_path ? seeds : NULL;
    cfg->store_path = path[0] ? path : NULL;
    if (tune)
        cfg->tune = strcmp(tune, "never") == 0 ? TW_TUNE_NEVER : TW_TUNE_ON_MISS;
    if (budget)
        cfg->tune_budget_s = seconds.f;
    return TW_OK;
}

/* A caller built against an older header has a shorter struct, and gets what it knows. */
tw_status tw_config_from_env(tw_config *cfg)
{
    tw_config whole = TW_CONFIG_INIT;

    error_clear();
    if (!cfg || cfg->size < offsetof(tw_config, tune) || cfg->size > 4096)
        return error_set(TW_E_ARG, "tw_config_from_env: start from TW_CONFIG_INIT");
    const size_t size = cfg->size, shared = size < sizeof whole ? size : sizeof whole;
    memcpy(&whole, cfg, shared);
    TRY(read_environment(&whole));
    memcpy(cfg, &whole, shared);
    return TW_OK;
}
