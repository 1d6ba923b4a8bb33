/* Trials, and the views of the file for people. */
#include "compiler/base/error.h"
#include "compiler/base/mem.h"
#include "store/storecore.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const state_name[] = {
    [TW_TRIAL_OK] = "ok",         [TW_TRIAL_STOPPED] = "stopped", [TW_TRIAL_PRUNED] = "pruned",
    [TW_TRIAL_FAILED] = "failed", [TW_TRIAL_WRONG] = "wrong",     [TW_TRIAL_SKIPPED] = "skipped"};
#define STATE_COUNT (sizeof state_name / sizeof state_name[0])

static tw_trial_state state_of(const char *name)
{
    for (size_t i = 0; i < STATE_COUNT; i++)
        if (name && !strcmp(name, state_name[i]))
            return (tw_trial_state)i;
    return TW_TRIAL_FAILED;
}

bool trial_state_known(const char *name)
{
    for (size_t i = 0; i < STATE_COUNT; i++)
        if (name && !strcmp(name, state_name[i]))
            return true;
    return false;
}

typedef struct trial_row {
    const key_text *key;
    const store_trial *t;
} trial_row;

/* Times that are no numbers become null. */
static void bind_time(sqlite3_stmt *s, int at, double seconds)
{
    if (isfinite(seconds))
        sqlite3_bind_double(s, at, seconds);
}

static int put_trial(db *d, void *arg)
{
    const trial_row *r = arg;
    const store_trial *t = r->t;
    int64_t id;
    int rc = key_row(d, r->key, true, &id);

    if (rc != SQLITE_OK)
        return rc;
    sqlite3_stmt *s = db_stmt(d, SQL_TRIAL_PUT);
    sqlite3_bind_int64(s, 1, id);
    db_bind_text(s, 2, r->key->driver);
    db_bind_text(s, 3, t->config);
    db_bind_text(s, 4, state_name[t->state]);
    bind_time(s, 5, t->median_s);
    bind_time(s, 6, t->spread_s);
    if (t->nsamples)
        sqlite3_bind_blob64(s, 7, t->sample, t->nsamples * sizeof *t->sample, SQLITE_STATIC);
    sqlite3_bind_int(s, 8, t->registers);
    sqlite3_bind_int(s, 9, t->shared_bytes);
    sqlite3_bind_int(s, 10, t->spill_bytes);
    db_bind_text(s, 11, t->reason);
    sqlite3_bind_int64(s, 12, db_now_ms());
    return db_run(s);
}

tw_status store_put_trial(store *st, const store_key *key, const store_trial *trial)
{
    key_text text;
    trial_row row = {&text, trial};

    if (!key_text_make(key, &text))
        return TW_E_NOMEM;
    tw_status status = store_write(st, put_trial, &row);
    key_text_free(&text);
    return status;
}

/* ---- reading trials back -------------------------------------------------------------------- */

typedef struct trial_list {
    const key_text *key; /* or id */
    int64_t id;
    tw_trial *at;
    size_t n, cap;
} trial_list;

static void copy_column(sqlite3_stmt *s, int column, char *out, size_t size)
{
    const char *text = (const char *)sqlite3_column_text(s, column);

    snprintf(out, size, "%s", text ? text : "");
}

static int add_trial(trial_list *l, sqlite3_stmt *s)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 32;
        tw_trial *at = mem_realloc(l->at, cap * sizeof *at);
        if (!at)
            return SQLITE_NOMEM;
        l->at = at;
        l->cap = cap;
    }
    tw_trial *t = &l->at[l->n++];
    copy_column(s, 0, t->config, sizeof t->config);
    t->state = state_of((const char *)sqlite3_column_text(s, 1));
    t->median_s = sqlite3_column_double(s, 2);
    t->spread_s = sqlite3_column_double(s, 3);
    t->samples = sqlite3_column_int(s, 4);
    copy_column(s, 5, t->reason, sizeof t->reason);
    return SQLITE_OK;
}

static int collect_trials(db *d, trial_list *l, int64_t key)
{
    sqlite3_stmt *s = db_stmt(d, SQL_TRIALS_OF_KEY);
    int rc;

    sqlite3_bind_int64(s, 1, key);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW)
        if ((rc = add_trial(l, s)) != SQLITE_OK)
            break;
    return db_done(s, rc);
}

static int trials_of_key(db *d, void *arg)
{
    trial_list *l = arg;
    int64_t id;
    int rc = key_row(d, l->key, false, &id);

    return rc == SQLITE_OK && id ? collect_trials(d, l, id) : rc;
}

static int trials_of_best(db *d, void *arg)
{
    trial_list *l = arg;
    sqlite3_stmt *s = db_stmt(d, SQL_KEY_OF_BEST);
    int64_t key = 0;
    int rc;

    sqlite3_bind_int64(s, 1, l->id);
    rc = sqlite3_step(s);
    if (rc == SQLITE_ROW)
        key = sqlite3_column_int64(s, 0);
    rc = db_done(s, rc);
    return rc == SQLITE_OK && key ? collect_trials(d, l, key) : rc;
}

static void hand_out(trial_list *l, tw_trial_fn fn, void *user)
{
    for (size_t i = 0; i < l->n && fn(user, &l->at[i]); i++)
        continue;
    mem_free(l->at);
}

tw_status store_key_trials(store *st, const store_key *key, tw_trial_fn fn, void *user)
{
    key_text text;
    trial_list l = {.key = &text};

    if (!key_text_make(key, &text))
        return error_set(TW_E_NOMEM, "out of memory");
    store_read(st, trials_of_key, &l);
    key_text_free(&text);
    hand_out(&l, fn, user);
    return TW_OK;
}

tw_status store_trials(store *st, int64_t id, tw_trial_fn fn, void *user)
{
    trial_list l = {.id = id};
    tw_status status = store_file_only(st, trials_of_best, &l, false);

    if (status != TW_OK)
        l.n = 0;
    hand_out(&l, fn, user);
    return status;
}

/* ---- listing and clearing ------------------------------------------------------------------- */

typedef struct row_list {
    tw_store_row *at;
    size_t n, cap;
} row_list;

static char *dup_column(sqlite3_stmt *s, int column)
{
    const char *text = (const char *)sqlite3_column_text(s, column);

    return mem_strdup(text ? text : "");
}

static int add_row(row_list *l, sqlite3_stmt *s)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 16;
        tw_store_row *at = mem_realloc(l->at, cap * sizeof *at);
        if (!at)
            return SQLITE_NOMEM;
        l->at = at;
        l->cap = cap;
    }
    tw_store_row *r = &l->at[l->n++];
    *r = (tw_store_row){.id = sqlite3_column_int64(s, 0),
                        .kernel = dup_column(s, 1),
                        .problem = dup_column(s, 2),
                        .target = dup_column(s, 3),
                        .device = dup_column(s, 4),
                        .config = dup_column(s, 5),
                        .seconds = sqlite3_column_double(s, 6),
                        .unix_time = sqlite3_column_int64(s, 7) / 1000,
                        .trials = sqlite3_column_int(s, 8),
                        .artifacts = sqlite3_column_int(s, 9),
                        .bytes = sqlite3_column_int64(s, 10)};
    return r->kernel && r->problem && r->target && r->device && r->config ? SQLITE_OK
                                                                          : SQLITE_NOMEM;
}

static int collect_rows(db *d, void *arg)
{
    sqlite3_stmt *s = db_stmt(d, SQL_LIST);
    int rc;

    while ((rc = sqlite3_step(s)) == SQLITE_ROW)
        if ((rc = add_row(arg, s)) != SQLITE_OK)
            break;
    return db_done(s, rc);
}

static void free_rows(row_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *const text[] = {l->at[i].kernel, l->at[i].problem, l->at[i].target,
                                    l->at[i].device, l->at[i].config};
        for (size_t j = 0; j < sizeof text / sizeof text[0]; j++)
            mem_free((void *)(uintptr_t)text[j]);
    }
    mem_free(l->at);
}

tw_status store_list(store *st, tw_store_fn fn, void *user)
{
    row_list l = {0};
    tw_status status = store_file_only(st, collect_rows, &l, false);

    if (status == TW_OK)
        for (size_t i = 0; i < l.n && fn(user, &l.at[i]); i++)
            continue;
    free_rows(&l);
    return status;
}

typedef struct clear_work {
    const char *kernel;
    int64_t removed;
} clear_work;

static int run_cleared(db *d, const char *sql, const char *kernel)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(d->handle, sql, -1, &s, NULL);

    if (rc == SQLITE_OK) {
        db_bind_text(s, 1, kernel);
        rc = sqlite3_step(s);
    }
    sqlite3_finalize(s);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Leases stay: whoever tunes now goes on. A null ?1 means every kernel. */
static int clear_rows(db *d, void *arg)
{
#define THEIR_KEYS " WHERE key IN (SELECT id FROM keys WHERE ?1 IS NULL OR kernel=?1)"
    static const char *const sql[] = {
        "DELETE FROM trials" THEIR_KEYS, "DELETE FROM artifacts" THEIR_KEYS,
        "DELETE FROM artifacts WHERE key IS NULL AND ?1 IS NULL", "DELETE FROM best" THEIR_KEYS,
        "DELETE FROM keys WHERE (?1 IS NULL OR kernel=?1)"
        " AND id NOT IN (SELECT key FROM leases)"};
#undef THEIR_KEYS
    clear_work *w = arg;
    int rc = SQLITE_OK;

    for (size_t i = 0; i < sizeof sql / sizeof sql[0] && rc == SQLITE_OK; i++) {
        rc = run_cleared(d, sql[i], w->kernel);
        if (i == 3)
            w->removed = sqlite3_changes64(d->handle);
    }
    return rc;
}

int store_shrink(db *d, void *arg)
{
    (void)arg;
    sqlite3_exec(d->handle, "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    return SQLITE_OK;
}

tw_status store_clear(store *st, const char *kernel, int64_t *removed)
{
    clear_work w = {.kernel = kernel};
    tw_status status = store_file_only(st, clear_rows, &w, true);

    if (status != TW_OK)
        return status;
    if (removed)
        *removed = w.removed;
    return store_file_only(st, store_shrink, NULL, false);
}
