#include "compiler/base/check.h"
#include "runtime/runtime.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const char *tw_codegen_version(void)
{
    return target_codegen_version();
}

/* Copies as much of a caller's struct as both know; what it lacks keeps its default. */
static tw_status read_struct(const char *what, const void *given, size_t given_size, void *out,
                             size_t size)
{
    if (given_size < sizeof(size_t) || given_size > 4096)
        return error_set(TW_E_ARG, "%s: size is %zu; start from its _INIT macro", what, given_size);
    memcpy(out, given, given_size < size ? given_size : size);
    *(size_t *)out = size;
    return TW_OK;
}

/* And back. */
static tw_status write_struct(const char *what, const void *from, size_t size, void *given)
{
    size_t given_size = *(size_t *)given;

    if (given_size < sizeof(size_t) || given_size > 4096)
        return error_set(TW_E_ARG, "%s: size is %zu; start from its _INIT macro", what, given_size);
    memcpy(given, from, given_size < size ? given_size : size);
    *(size_t *)given = given_size;
    return TW_OK;
}

static tw_status write_counts(const tw_store_counts *from, tw_store_counts *given)
{
    return given ? write_struct("tw_store_counts", from, sizeof *from, given) : TW_OK;
}

/* ---- looking --------------------------------------------------------------------------------- */

tw_status tw_store_list(tw_context *cx, tw_store_fn fn, void *user)
{
    error_clear();
    if (!cx || !fn)
        return error_set(TW_E_ARG, "tw_store_list: cx or fn is NULL");
    return store_list(cx->store, fn, user);
}

tw_status tw_store_trials(tw_context *cx, int64_t id, tw_trial_fn fn, void *user)
{
    error_clear();
    if (!cx || !fn)
        return error_set(TW_E_ARG, "tw_store_trials: cx or fn is NULL");
    return store_trials(cx->store, id, fn, user);
}

tw_status tw_store_query(tw_context *cx, tw_store_info *info)
{
    tw_store_info now = TW_STORE_INFO_INIT;
    struct stat file;

    error_clear();
    if (!cx || !info)
        return error_set(TW_E_ARG, "tw_store_query: cx or info is NULL");
    enum store_state state = store_state(cx->store);
    now.path = store_path(cx->store);
    now.reads = now.path && state != STORE_MEMORY;
    now.writes = now.path && state == STORE_OK;
    now.why = store_why(cx->store);
    now.bytes = now.path && stat(now.path, &file) == 0 ? (int64_t)file.st_size : 0;
    return write_struct("tw_store_info", &now, sizeof now, info);
}

/* ---- changing -------------------------------------------------------------------------------- */

tw_status tw_store_clear(tw_context *cx, const char *kernel, int64_t *removed)
{
    int64_t n = 0;

    error_clear();
    if (!cx)
        return error_set(TW_E_ARG, "tw_store_clear: cx is NULL");
    TRY(store_clear(cx->store, kernel, &n));
    if (removed)
        *removed = n;
    return TW_OK;
}

tw_status tw_store_export(tw_context *cx, const char *path, bool artifacts, tw_store_counts *done)
{
    tw_store_counts n = TW_STORE_COUNTS_INIT;

    error_clear();
    if (!cx || !path)
        return error_set(TW_E_ARG, "tw_store_export: cx or path is NULL");
    TRY(store_export(cx->store, path, artifacts, &n));
    return write_counts(&n, done);
}

tw_status tw_store_import(tw_context *cx, const char *path, bool artifacts, tw_store_counts *done)
{
    tw_store_counts n = TW_STORE_COUNTS_INIT;

    error_clear();
    if (!cx || !path)
        return error_set(TW_E_ARG, "tw_store_import: cx or path is NULL");
    TRY(store_import(cx->store, path, artifacts, &n));
    return write_counts(&n, done);
}

tw_status tw_store_prune(tw_context *cx, const tw_prune_options *options, tw_store_counts *removed)
{
    tw_prune_options o = TW_PRUNE_OPTIONS_INIT;
    tw_store_counts n = TW_STORE_COUNTS_INIT;
    char version[128];

    error_clear();
    if (!cx)
        return error_set(TW_E_ARG, "tw_store_prune: cx is NULL");
    if (options)
        TRY(read_struct("tw_prune_options", options, options->size, &o, sizeof o));
    if (!(o.older_s >= 0.0 && o.older_s < 1e12) || o.max_bytes < 0)
        return error_set(TW_E_ARG, "tw_store_prune: older_s and max_bytes are at least 0");
    snprintf(version, sizeof version, RUNTIME_DRIVER_FORMAT, tw_version(), tw_codegen_version());
    const store_limits limits = {o.other_versions ? version : NULL,
                                 (int64_t)ceil(o.older_s * 1000.0), o.max_bytes};
    TRY(store_prune(cx->store, &limits, &n));
    return write_counts(&n, removed);
}
