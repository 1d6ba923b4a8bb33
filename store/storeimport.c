/* Taking over what another store knows. The file may come from anywhere: it is opened read-only,
 * its pages and tables are checked before anything is read, and each row has to look as this
 * library would have written it. A row that does not is left out and counted. */
#include "compiler/base/check.h"
#include "compiler/base/error.h"
#include "compiler/base/mem.h"
#include "store/storecore.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Texts are shown in tables and copied to fields of this size in tw_trial and tw_answer. */
enum { LONGEST_NAME = 256, LONGEST_CONFIG = 255, LONGEST_LIST = 4096, LONGEST_REASON = 1024 };
enum { MOST_SAMPLES = 1 << 16, CLOCK_SKEW_MS = 24 * 3600 * 1000 };

typedef struct import_work {
    db from;
    bool artifacts;
    int from_rc; /* what reading the file gave */
    tw_store_counts n;
} import_work;

/* ---- values --------------------------------------------------------------------------------- */

/* Column i as text of 1 to longest printable characters (least 0: may be empty); NULL if not. */
static const char *text_at(sqlite3_stmt *s, int i, int least, int longest)
{
    const char *text =
        sqlite3_column_type(s, i) == SQLITE_TEXT ? (const char *)sqlite3_column_text(s, i) : NULL;
    int n = sqlite3_column_bytes(s, i);

    if (!text || n < least || n > longest || strlen(text) != (size_t)n)
        return NULL;
    for (int k = 0; k < n; k++)
        if ((unsigned char)text[k] < 0x20 || text[k] == 0x7f)
            return NULL;
    return text;
}

static const char *hash_at(sqlite3_stmt *s, int i)
{
    const char *text = text_at(s, i, HASH_TEXT - 1, HASH_TEXT - 1);
    hash128 h;

    return text && hash_parse(text, &h) ? text : NULL;
}

static bool is_number(sqlite3_stmt *s, int i, double above)
{
    int type = sqlite3_column_type(s, i);
    double v = sqlite3_column_double(s, i);

    return (type == SQLITE_FLOAT || type == SQLITE_INTEGER) && isfinite(v) && v >= above;
}

static bool is_time(sqlite3_stmt *s, int i)
{
    return sqlite3_column_type(s, i) == SQLITE_INTEGER && sqlite3_column_int64(s, i) > 0 &&
           sqlite3_column_int64(s, i) <= db_now_ms() + CLOCK_SKEW_MS;
}

/* Columns 0 to 5: content, problem, target, device, kernel, driver. Borrowed from s. */
#define KEY_COLUMNS "k.content,k.problem,k.target,k.device,k.kernel"
static bool key_at(sqlite3_stmt *s, key_text *key)
{
    const char *content = hash_at(s, 0), *problem = text_at(s, 1, 0, LONGEST_LIST),
               *device = text_at(s, 3, 0, LONGEST_LIST);

    *key = (key_text){.problem = (char *)(uintptr_t)problem,
                      .device = (char *)(uintptr_t)device,
                      .target = text_at(s, 2, 1, LONGEST_NAME),
                      .kernel = text_at(s, 4, 1, LONGEST_NAME),
                      .driver = text_at(s, 5, 0, LONGEST_NAME)};
    if (!content || !problem || !device || !key->target || !key->kernel || !key->driver)
        return false;
    memcpy(key->content, content, sizeof key->content);
    return true;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static int run_once(sqlite3_stmt *s)
{
    int rc = sqlite3_step(s);

    sqlite3_finalize(s);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Is there a row? sql gives at most one; its value goes to *value. */
static int find(db *to, const char *sql, int64_t key, sqlite3_stmt *from, const int *column,
                bool *found, double *value)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(to->handle, sql, -1, &s, NULL);

    if (rc != SQLITE_OK)
        return rc;
    sqlite3_bind_int64(s, 1, key);
    for (int i = 0; column[i] >= 0; i++)
        sqlite3_bind_value(s, i + 2, sqlite3_column_value(from, column[i]));
    rc = sqlite3_step(s);
    *found = rc == SQLITE_ROW;
    if (*found && value)
        *value = sqlite3_column_double(s, 0);
    sqlite3_finalize(s);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int put(db *to, enum db_sql which, int64_t key, sqlite3_stmt *from, int first, int count)
{
    sqlite3_stmt *s = db_stmt(to, which);

    sqlite3_bind_int64(s, 1, key);
    for (int i = 0; i < count; i++)
        sqlite3_bind_value(s, i + 2, sqlite3_column_value(from, first + i));
    return db_run(s);
}

/* 5 driver, 6 config, 7 seconds, 8 spread, 9 time */
static int take_best(db *to, sqlite3_stmt *s, import_work *w)
{
    key_text key;
    int64_t id;
    bool found = false;
    double seconds = 0.0;

    if (!key_at(s, &key) || !text_at(s, 6, 0, LONGEST_CONFIG) || !is_number(s, 7, 1e-12) ||
        !is_number(s, 8, 0.0) || !is_time(s, 9)) {
        w->n.refused++;
        return SQLITE_OK;
    }
    int rc = key_row(to, &key, true, &id);
    if (rc == SQLITE_OK)
        rc = find(to, "SELECT seconds FROM best WHERE key=?1 AND driver=?2", id, s,
                  (const int[]){5, -1}, &found, &seconds);
    if (rc != SQLITE_OK)
        return rc;
    if (found && seconds <= sqlite3_column_double(s, 7)) {
        w->n.known++;
        return SQLITE_OK;
    }
    w->n.configs++;
    return put(to, SQL_BEST_PUT, id, s, 5, 5);
}

static bool trial_fits(sqlite3_stmt *s)
{
    int samples = sqlite3_column_bytes(s, 10);

    for (int i = 8; i <= 9; i++)
        if (sqlite3_column_type(s, i) != SQLITE_NULL && !is_number(s, i, 0.0))
            return false;
    for (int i = 11; i <= 13; i++)
        if (sqlite3_column_type(s, i) != SQLITE_NULL && !is_number(s, i, 0.0))
            return false;
    if (sqlite3_column_type(s, 14) != SQLITE_NULL && !text_at(s, 14, 0, LONGEST_REASON))
        return false;
    return text_at(s, 6, 0, LONGEST_CONFIG) && trial_state_known(text_at(s, 7, 1, LONGEST_NAME)) &&
           samples % (int)sizeof(double) == 0 && samples <= MOST_SAMPLES && is_time(s, 15);
}

/* 5 driver, 6 config, 7 state, 8 median, 9 spread, 10 samples, 11-13 counts, 14 reason, 15 time */
static int take_trial(db *to, sqlite3_stmt *s, import_work *w)
{
    key_text key;
    int64_t id;
    bool found = false;

    if (!key_at(s, &key) || !trial_fits(s)) {
        w->n.refused++;
        return SQLITE_OK;
    }
    int rc = key_row(to, &key, true, &id);
    if (rc == SQLITE_OK)
        rc = find(to,
                  "SELECT 1 FROM trials WHERE key=?1 AND driver=?2 AND config=?3 AND state=?4 AND "
                  "time=?5",
                  id, s, (const int[]){5, 6, 7, 15, -1}, &found, NULL);
    if (rc != SQLITE_OK)
        return rc;
    if (found) {
        w->n.known++;
        return SQLITE_OK;
    }
    w->n.trials++;
    return put(to, SQL_TRIAL_PUT, id, s, 5, 11);
}

/* 6 id, 7 size, 8 sum, 9 packed, 10 time */
static bool artifact_fits(sqlite3_stmt *s)
{
    const char *sum = hash_at(s, 8);
    int64_t size = sqlite3_column_int64(s, 7);
    const void *packed = sqlite3_column_blob(s, 9);
    void *bytes = NULL;

    if (hash_at(s, 6) && sum && packed && size > 0 && (uint64_t)size <= STORE_ARTIFACT_MAX &&
        is_time(s, 10))
        bytes = artifact_unpack(packed, (size_t)sqlite3_column_bytes(s, 9), (size_t)size, sum);
    mem_free(bytes);
    return bytes != NULL;
}

static int take_artifact(db *to, sqlite3_stmt *s, import_work *w)
{
    static const int column[] = {6, 5, 7, 8, 9, 10}; /* after the key: as the columns of the SQL */
    sqlite3_stmt *add = NULL;
    key_text key;
    int64_t id;

    if (!key_at(s, &key) || !artifact_fits(s)) {
        w->n.refused++;
        return SQLITE_OK;
    }
    int rc = key_row(to, &key, true, &id);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(to->handle,
                                "INSERT OR IGNORE INTO artifacts(key,id,driver,size,sum,packed,"
                                "time) VALUES(?1,?2,?3,?4,?5,?6,?7)",
                                -1, &add, NULL);
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_bind_int64(add, 1, id);
    for (int i = 0; i < 6; i++)
        sqlite3_bind_value(add, i + 2, sqlite3_column_value(s, column[i]));
    rc = run_once(add);
    if (rc == SQLITE_OK && sqlite3_changes64(to->handle))
        w->n.artifacts++;
    else
        w->n.known++;
    return rc;
}

static const struct {
    const char *sql;
    int (*take)(db *to, sqlite3_stmt *s, import_work *w);
    bool is_code;
} part[] = {
    {"SELECT " KEY_COLUMNS ",b.driver,b.config,b.seconds,b.spread,b.time"
     " FROM best b JOIN keys k ON k.id=b.key ORDER BY b.id",
     take_best, false},
    {"SELECT " KEY_COLUMNS ",t.driver,t.config,t.state,t.median,t.spread,t.samples,t.registers,"
     "t.shared,t.spill,t.reason,t.time FROM trials t JOIN keys k ON k.id=t.key ORDER BY t.id",
     take_trial, false},
    {"SELECT " KEY_COLUMNS ",a.driver,a.id,a.size,a.sum,a.packed,a.time"
     " FROM artifacts a JOIN keys k ON k.id=a.key ORDER BY a.id",
     take_artifact, true}};

static int import_rows(db *to, void *arg)
{
    import_work *w = arg;
    int rc = SQLITE_OK;

    for (size_t i = 0; i < sizeof part / sizeof *part && rc == SQLITE_OK; i++) {
        sqlite3_stmt *s = NULL;
        if (part[i].is_code && !w->artifacts)
            continue;
        w->from_rc = sqlite3_prepare_v2(w->from.handle, part[i].sql, -1, &s, NULL);
        while (rc == SQLITE_OK && w->from_rc != SQLITE_DONE &&
               (w->from_rc = w->from_rc == SQLITE_OK || w->from_rc == SQLITE_ROW
                                 ? sqlite3_step(s)
                                 : w->from_rc) == SQLITE_ROW)
            rc = part[i].take(to, s, w);
        sqlite3_finalize(s);
        if (rc == SQLITE_OK && w->from_rc != SQLITE_DONE)
            return SQLITE_ABORT; /* the store is as it was, and not to blame */
        w->from_rc = SQLITE_OK;
    }
    return rc;
}

/* ---- the file ------------------------------------------------------------------------------- */

static bool says(db *d, const char *sql, const char *answer)
{
    sqlite3_stmt *s = NULL;
    bool same = false;

    if (sqlite3_prepare_v2(d->handle, sql, -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(s, 0);
        same = text && !strcmp(text, answer);
    }
    sqlite3_finalize(s);
    return same;
}

static tw_status open_import(const char *path, const char *real, db *from)
{
    int rc = SQLITE_OK, version = 0;
    enum db_kind kind = db_open(from, real, DB_READ, STORE_WAIT_MS, &rc, &version);

    if (kind == DB_VERSION)
        return error_set(TW_E_IO, "%s: its version is %d and this library knows %d", path, version,
                         STORE_VERSION);
    if (kind == DB_FAILED && (rc & 0xff) != SQLITE_NOTADB && (rc & 0xff) != SQLITE_CORRUPT)
        return error_set(TW_E_IO, "%s: %s", path, sqlite3_errstr(rc));
    if (kind != DB_OURS)
        return error_set(TW_E_IO, "%s: it is not an exported store", path);
    if (says(from, "PRAGMA quick_check(1)", "ok") &&
        says(from, "SELECT count(*) FROM sqlite_master WHERE type NOT IN ('table','index')", "0"))
        return TW_OK;
    db_close(from);
    return error_set(TW_E_IO, "%s: it is damaged, or not what an export writes", path);
}

static tw_status check_import(store *st, const char *path, const char *real, bool artifacts)
{
    struct stat s, own;

    if (stat(real, &s) != 0)
        return error_set(TW_E_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(s.st_mode))
        return error_set(TW_E_IO, "%s: it is not a file", path);
    if (store_path(st) && stat(store_path(st), &own) == 0 && own.st_dev == s.st_dev &&
        own.st_ino == s.st_ino)
        return error_set(TW_E_ARG, "%s: it is the store itself", path);
    if (artifacts && ((s.st_uid != geteuid() && s.st_uid != 0) || (s.st_mode & 022)))
        return error_set(TW_E_IO,
                         "%s: others can write to it, so its artifacts, which are code, are not "
                         "taken; import it without them, or make it your own: chmod 600 %s",
                         path, path);
    return TW_OK;
}

static tw_status import_real(store *st, const char *path, const char *real, import_work *w)
{
    TRY(check_import(st, path, real, w->artifacts));
    TRY(open_import(path, real, &w->from));
    tw_status status = store_file_only(st, import_rows, w, true);
    int rc = w->from_rc;
    db_close(&w->from);
    if (status != TW_OK && rc != SQLITE_OK && rc != SQLITE_ROW)
        return error_set(TW_E_IO, "%s: %s; nothing was taken over", path, sqlite3_errstr(rc));
    return status;
}

tw_status store_import(store *st, const char *path, bool artifacts, tw_store_counts *done)
{
    import_work w = {.artifacts = artifacts, .n = TW_STORE_COUNTS_INIT};
    char *real = realpath(path, NULL);

    if (!real)
        return error_set(TW_E_IO, "%s: %s", path, strerror(errno));
    tw_status status = import_real(st, path, real, &w);
    free(real);
    if (status == TW_OK && done)
        *done = w.n;
    return status;
}
