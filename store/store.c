#include "store/store.h"
#include "compiler/base/error.h"
#include "compiler/base/mem.h"
#include "store/storecore.h"
#include "store/storefile.h"
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HURRY_WAIT_MS 100
#define RETRY_AFTER_MS 500

enum said { SAID_OPEN, SAID_BUSY, SAID_WRITE, SAID_DAMAGED, SAID_READ_ONLY, SAID_PART };

/* SQLite keeps its locks of a file in process-wide tables, which a fork copies without the locks.
 * A child that inherits an open store may therefore open none of its own. */
static atomic_int open_stores;
static atomic_int open_pid;
/* Two opens in one process must not meet while one has just created the file: see storefile.h. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((format(printf, 3, 4))) static void warn(store *st, enum said kind, const char *fmt,
                                                       ...)
{
    va_list ap;

    if (st->said & (1u << kind))
        return;
    st->said |= 1u << kind;
    va_start(ap, fmt);
    vsnprintf(st->pending, sizeof st->pending, fmt, ap);
    va_end(ap);
    if (!st->why[0])
        memcpy(st->why, st->pending, sizeof st->why);
}

/* ---- opening the file ----------------------------------------------------------------------- */

static void unusable(store *st, bool may_return, const char *why)
{
    st->state = STORE_MEMORY;
    st->may_return = may_return;
    st->retry_ms = db_now_ms() + RETRY_AFTER_MS;
    warn(st, SAID_OPEN, "store %s is not used: %s; what is learned is kept in memory only",
         st->path, why);
}

static void explain_failure(store *st, int rc)
{
    char why[320];
    int primary = rc & 0xff;
    bool passing = primary == SQLITE_BUSY || primary == SQLITE_FULL || primary == SQLITE_IOERR ||
                   primary == SQLITE_NOMEM;

    if (primary == SQLITE_NOTADB)
        snprintf(why, sizeof why,
                 "it is not a store, or its beginning is damaged; it was left as it is: move it "
                 "away or give another path");
    else if (primary == SQLITE_CORRUPT)
        snprintf(why, sizeof why,
                 "it is damaged (%s); it was left as it is: move it away, a new one is made",
                 sqlite3_errstr(rc));
    else if (primary == SQLITE_BUSY)
        snprintf(why, sizeof why, "another process holds it locked; end that process");
    else if (primary == SQLITE_FULL || primary == SQLITE_IOERR)
        snprintf(why, sizeof why, "%s; is the disk full?", sqlite3_errstr(rc));
    else
        snprintf(why, sizeof why, "%s; check the path and its permissions", sqlite3_errstr(rc));
    unusable(st, passing, why);
}

static void explain_kind(store *st, enum db_kind kind, int version)
{
    char why[320];

    if (kind == DB_FOREIGN)
        snprintf(why, sizeof why,
                 "it is another program's database; it was left as it is: give "
                 "another path");
    else if (kind == DB_TABLES)
        snprintf(why, sizeof why,
                 "its tables are not those of a store; it was left as it is: move "
                 "it away, a new one is made");
    else
        snprintf(why, sizeof why,
                 "its version is %d and this library knows %d; it was left as it is: %s", version,
                 STORE_VERSION,
                 version > STORE_VERSION ? "update Tilewright or give another path"
                                         : "move it away, a new one is made");
    unusable(st, false, why);
}

static void open_file(store *st, int wait_ms)
{
    store_file f;
    int rc = SQLITE_OK, version = 0;
    enum file_verdict v = store_file_prepare(st->path, &f);
    enum db_kind kind;

    if (v == FILE_REFUSED || v == FILE_LATER) {
        unusable(st, v == FILE_LATER, f.why);
        return;
    }
    kind = db_open(&st->file, f.path,
                   v == FILE_READ_ONLY ? DB_READ
                   : f.network         ? DB_WRITE_NO_WAL
                                       : DB_WRITE,
                   wait_ms, &rc, &version);
    if (kind == DB_FAILED) {
        explain_failure(st, rc);
    } else if (kind != DB_OURS) {
        explain_kind(st, kind, version);
    } else if (!store_file_sides_ours(&f)) {
        db_close(&st->file);
        unusable(st, false, f.why);
    } else {
        st->state = v == FILE_READ_ONLY ? STORE_READ_ONLY : STORE_OK;
        if (v == FILE_READ_ONLY)
            warn(st, SAID_READ_ONLY, "store %s is read, not written: %s", st->path, f.why);
    }
}

static void open_file_alone(store *st, int wait_ms)
{
    pthread_mutex_lock(&open_lock);
    open_file(st, wait_ms);
    pthread_mutex_unlock(&open_lock);
}

/* ---- entering and leaving ------------------------------------------------------------------- */

static bool enter(store *st)
{
    if (st->pid != getpid())
        return false;
    pthread_mutex_lock(&st->lock);
    size_signal_hold(&st->held);
    return true;
}

static void leave(store *st)
{
    char text[sizeof st->pending];
    bool any = st->pending[0] != '\0';

    if (any) {
        memcpy(text, st->pending, sizeof text);
        st->pending[0] = '\0';
    }
    size_signal_release(&st->held);
    pthread_mutex_unlock(&st->lock);
    if (any && st->log)
        st->log(st->log_user, TW_LOG_WARNING, text);
}

static void lose_file(store *st, enum store_state state)
{
    st->state = state;
    if (state == STORE_MEMORY)
        db_close(&st->file);
}

/* What a failed call says about the file. */
static void note_failure(store *st, int rc)
{
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        st->hurried = true;
        db_patience(&st->file, HURRY_WAIT_MS);
        warn(st, SAID_BUSY,
             "store %s is locked by another process; what is learned meanwhile is kept in memory "
             "only",
             st->path);
        break;
    case SQLITE_FULL:
    case SQLITE_IOERR:
        warn(st, SAID_WRITE,
             "store %s cannot be written: %s; what is learned is kept in memory only until there "
             "is space",
             st->path, sqlite3_errstr(rc));
        break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:
        lose_file(st, STORE_MEMORY);
        warn(st, SAID_DAMAGED,
             "store %s is damaged (%s) and no longer used; it was left as it is: move it away, a "
             "new one is made",
             st->path, sqlite3_errstr(rc));
        break;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        lose_file(st, STORE_READ_ONLY);
        warn(st, SAID_READ_ONLY, "store %s can no longer be written: %s; it is only read", st->path,
             sqlite3_errstr(rc));
        break;
    default: /* no memory: nothing is wrong with the file */
        break;
    }
}

static void note_success(store *st)
{
    if (!st->hurried)
        return;
    st->hurried = false;
    db_patience(&st->file, STORE_WAIT_MS);
}

static int memory_ready(store *st)
{
    int rc = SQLITE_OK, version;

    if (!st->memory.handle && db_open(&st->memory, NULL, DB_WRITE, 0, &rc, &version) != DB_OURS)
        return rc == SQLITE_OK ? SQLITE_NOMEM : rc;
    return SQLITE_OK;
}

static void try_again(store *st)
{
    if (st->state != STORE_MEMORY || !st->may_return || db_now_ms() < st->retry_ms)
        return;
    open_file_alone(st, HURRY_WAIT_MS);
    if (st->state == STORE_OK)
        db_patience(&st->file, STORE_WAIT_MS);
}

bool store_is_memory(const store *st, const db *d)
{
    return d == &st->memory;
}

tw_status store_write(store *st, db_work work, void *arg)
{
    bool kept = false;
    int rc;

    if (!enter(st))
        return TW_E_STORE;
    try_again(st);
    if (st->state == STORE_OK) {
        rc = db_transact(&st->file, work, arg);
        kept = rc == SQLITE_OK;
        if (kept)
            note_success(st);
        else
            note_failure(st, rc);
    }
    if (!kept) {
        rc = memory_ready(st);
        if (rc == SQLITE_OK)
            rc = db_transact(&st->memory, work, arg);
    }
    kept = kept || (rc == SQLITE_OK && !st->path);
    leave(st);
    return kept ? TW_OK : rc == SQLITE_OK ? TW_E_STORE : TW_E_NOMEM;
}

void store_read(store *st, db_work work, void *arg)
{
    if (!enter(st))
        return;
    if (st->memory.handle)
        work(&st->memory, arg);
    if (st->state != STORE_MEMORY) {
        int rc = work(&st->file, arg);
        if (rc != SQLITE_OK)
            note_failure(st, rc);
    }
    leave(st);
}

void store_write_memory(store *st, db_work work, void *arg)
{
    if (!enter(st))
        return;
    if (st->memory.handle)
        db_transact(&st->memory, work, arg);
    leave(st);
}

bool store_wants_artifacts(store *st)
{
    bool wants = false;

    if (enter(st)) {
        wants = st->state == STORE_OK || st->may_return;
        leave(st);
    }
    return wants;
}

void store_note_damage(store *st, const char *what)
{
    if (enter(st)) {
        warn(st, SAID_PART, "store %s: %s", st->path, what);
        leave(st);
    }
}

tw_status store_file_only(store *st, db_work work, void *arg, bool writes)
{
    int rc = SQLITE_OK;
    char why[sizeof st->why];

    if (!enter(st))
        return error_set(TW_E_STORE,
                         "this process was forked from the one that has the store open");
    try_again(st);
    if (st->state == STORE_MEMORY || (writes && st->state == STORE_READ_ONLY)) {
        snprintf(why, sizeof why, "%s", st->path ? st->why : "this context has no store");
        leave(st);
        return error_set(TW_E_STORE, "%s", why);
    }
    rc = writes ? db_transact(&st->file, work, arg) : work(&st->file, arg);
    if (rc != SQLITE_OK)
        note_failure(st, rc);
    leave(st);
    if (rc == SQLITE_NOMEM)
        return error_set(TW_E_NOMEM, "out of memory");
    return rc == SQLITE_OK ? TW_OK
                           : error_set(TW_E_STORE, "store %s: %s", st->path, sqlite3_errstr(rc));
}

/* ---- the object ----------------------------------------------------------------------------- */

static bool inherited_stores(void)
{
    int before = atomic_load(&open_pid), now = (int)getpid();

    if (before == now)
        return false;
    if (before != 0 && atomic_load(&open_stores) > 0)
        return true;
    atomic_store(&open_pid, now);
    return false;
}

static void first_open(store *st)
{
    if (inherited_stores()) {
        unusable(st, false,
                 "this process was forked from one that had a store open then, and can open none");
        return;
    }
    st->counted = true;
    atomic_fetch_add(&open_stores, 1);
    open_file_alone(st, STORE_WAIT_MS);
}

tw_status store_open(const char *path, tw_log_fn log, void *log_user, store **out)
{
    store *st = mem_zalloc(sizeof *st);

    if (!st)
        return error_set(TW_E_NOMEM, "out of memory");
    st->path = path ? mem_strdup(path) : NULL;
    if ((path && !st->path) || pthread_mutex_init(&st->lock, NULL) != 0) {
        mem_free(st->path);
        mem_free(st);
        return error_set(TW_E_NOMEM, "out of memory");
    }
    st->pid = getpid();
    st->log = log;
    st->log_user = log_user;
    st->state = STORE_MEMORY;
    (void)enter(st);
    if (path)
        first_open(st);
    leave(st);
    *out = st;
    return TW_OK;
}

/* In a forked child SQLite's handles stay as they are: closing them could harm the parent's file.
 */
void store_close(store *st)
{
    if (!st)
        return;
    if (st->pid == getpid()) {
        size_signal_hold(&st->held);
        db_close(&st->file);
        db_close(&st->memory);
        size_signal_release(&st->held);
        pthread_mutex_destroy(&st->lock);
        if (st->counted)
            atomic_fetch_sub(&open_stores, 1);
    }
    mem_free(st->path);
    mem_free(st);
}

enum store_state store_state(store *st)
{
    enum store_state s = STORE_MEMORY;

    if (enter(st)) {
        s = st->state;
        leave(st);
    }
    return s;
}

const char *store_why(store *st)
{
    const char *why = NULL;

    if (enter(st)) {
        why = st->state == STORE_OK || !st->why[0] ? NULL : st->why;
        leave(st);
    }
    return why;
}

const char *store_path(const store *st)
{
    return st->path;
}

void store_set_seeds(store *st, const store_seed *seed, size_t n)
{
    if (enter(st)) {
        st->seed = seed;
        st->nseeds = n;
        leave(st);
    }
}

static sqlite3_stmt *key_stmt(db *d, enum db_sql which, const key_text *key)
{
    sqlite3_stmt *s = db_stmt(d, which);

    db_bind_text(s, 1, key->content);
    db_bind_text(s, 2, key->problem);
    db_bind_text(s, 3, key->target);
    db_bind_text(s, 4, key->device);
    return s;
}

int key_row(db *d, const key_text *key, bool add, int64_t *id)
{
    sqlite3_stmt *s = key_stmt(d, SQL_KEY_FIND, key);
    int rc = sqlite3_step(s);

    *id = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    rc = db_done(s, rc);
    if (rc != SQLITE_OK || *id || !add)
        return rc;
    s = key_stmt(d, SQL_KEY_ADD, key);
    db_bind_text(s, 5, key->kernel);
    sqlite3_bind_int64(s, 6, db_now_ms());
    rc = db_run(s);
    if (rc == SQLITE_OK)
        *id = sqlite3_last_insert_rowid(d->handle);
    return rc;
}
