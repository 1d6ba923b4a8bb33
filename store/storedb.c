#include "store/storedb.h"
#include "compiler/base/mem.h"
#include "store/store.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const sql_text[SQL_COUNT] = {
#define SQL(name, text) text,
#include "store/storesql.def"
#undef SQL
};

static const char schema[] =
    "CREATE TABLE keys(id INTEGER PRIMARY KEY, content TEXT NOT NULL, problem TEXT NOT NULL,"
    " target TEXT NOT NULL, device TEXT NOT NULL, kernel TEXT NOT NULL, made INTEGER NOT NULL,"
    " UNIQUE(content,problem,target,device));"
    "CREATE INDEX keys_by_kernel ON keys(kernel,target);"
    "CREATE TABLE best(id INTEGER PRIMARY KEY, key INTEGER NOT NULL, driver TEXT NOT NULL,"
    " config TEXT NOT NULL, seconds REAL NOT NULL, spread REAL NOT NULL, time INTEGER NOT NULL,"
    " UNIQUE(key,driver));"
    "CREATE TABLE trials(id INTEGER PRIMARY KEY, key INTEGER NOT NULL, driver TEXT NOT NULL,"
    " config TEXT NOT NULL, state TEXT NOT NULL, median REAL, spread REAL, samples BLOB,"
    " registers INTEGER, shared INTEGER, spill INTEGER, reason TEXT, time INTEGER NOT NULL);"
    "CREATE INDEX trials_by_key ON trials(key);"
    "CREATE TABLE artifacts(id TEXT PRIMARY KEY, key INTEGER, driver TEXT, size INTEGER NOT NULL,"
    " sum TEXT NOT NULL, packed BLOB NOT NULL, time INTEGER NOT NULL);"
    "CREATE INDEX artifacts_by_key ON artifacts(key);"
    "CREATE TABLE leases(key INTEGER PRIMARY KEY, token INTEGER NOT NULL, pid INTEGER NOT NULL,"
    " started INTEGER NOT NULL, place TEXT NOT NULL, renewed INTEGER NOT NULL);";

int64_t db_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

static int exec(db *d, const char *sql)
{
    return sqlite3_exec(d->handle, sql, NULL, NULL, NULL);
}

static int get_int(db *d, const char *sql, int *out)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(d->handle, sql, -1, &s, NULL);

    if (rc == SQLITE_OK) {
        rc = sqlite3_step(s);
        if (rc == SQLITE_ROW)
            *out = sqlite3_column_int(s, 0);
    }
    sqlite3_finalize(s);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* What a database holds, by its header and table count. */
typedef struct contents {
    int application, version, tables;
} contents;

static int look(db *d, contents *c)
{
    int rc = get_int(d, "PRAGMA application_id", &c->application);

    if (rc == SQLITE_OK)
        rc = get_int(d, "PRAGMA user_version", &c->version);
    return rc == SQLITE_OK ? get_int(d, "SELECT count(*) FROM sqlite_master", &c->tables) : rc;
}

/* In one transaction: another process may be making the tables. */
static int look_at_once(db *d, contents *c)
{
    int rc = exec(d, "BEGIN");

    if (rc == SQLITE_OK)
        rc = look(d, c);
    if (!sqlite3_get_autocommit(d->handle))
        exec(d, "COMMIT");
    return rc;
}

static bool is_blank(const contents *c)
{
    return c->application == 0 && c->version == 0 && c->tables == 0;
}

/* Several processes may meet at a new file: whoever gets the write lock first makes the tables. */
static int make_tables(db *d, void *arg)
{
    contents c = {0};
    char stamp[96];
    int rc = look(d, &c);

    (void)arg;
    if (rc != SQLITE_OK || !is_blank(&c))
        return rc;
    rc = exec(d, schema);
    snprintf(stamp, sizeof stamp, "PRAGMA application_id=%d; PRAGMA user_version=%d;",
             STORE_APPLICATION, STORE_VERSION);
    return rc == SQLITE_OK ? exec(d, stamp) : rc;
}

/* The switch needs the file for itself for a moment, and SQLite does not wait for that. */
static int set_journal(db *d, enum db_mode mode, int wait_ms)
{
    const char *sql = mode == DB_WRITE ? "PRAGMA journal_mode=WAL" : "PRAGMA journal_mode=TRUNCATE";
    int64_t until = db_now_ms() + wait_ms;
    int rc = exec(d, "PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=4194304");

    if (rc != SQLITE_OK)
        return rc;
    while ((rc = exec(d, sql)) != SQLITE_OK && (rc & 0xff) == SQLITE_BUSY && db_now_ms() < until)
        nap();
    return (rc & 0xff) == SQLITE_BUSY ? SQLITE_OK : rc; /* either journal is safe: keep the other */
}

/* The journal first: with a write-ahead log the tables cost no waiting for the disk. */
static int create(db *d, enum db_mode mode, int wait_ms)
{
    int rc = set_journal(d, mode, wait_ms);

    return rc == SQLITE_OK ? db_transact(d, make_tables, NULL) : rc;
}

static enum db_kind recognise(db *d, enum db_mode mode, int wait_ms, int *rc, int *version)
{
    contents c = {0};
    bool made = false;

    *rc = look_at_once(d, &c);
    if (*rc == SQLITE_OK && is_blank(&c) && mode != DB_READ) {
        made = true;
        *rc = create(d, mode, wait_ms);
        if (*rc == SQLITE_OK)
            *rc = look_at_once(d, &c);
    }
    if (*rc != SQLITE_OK)
        return DB_FAILED;
    if (c.application != STORE_APPLICATION)
        return DB_FOREIGN;
    *version = c.version;
    if (c.version != STORE_VERSION)
        return DB_VERSION;
    if (mode != DB_READ && !made && (*rc = set_journal(d, mode, wait_ms)) != SQLITE_OK)
        return DB_FAILED;
    return DB_OURS;
}

static enum db_kind prepare_all(db *d, int *rc)
{
    for (int i = 0; i < SQL_COUNT; i++) {
        *rc = sqlite3_prepare_v3(d->handle, sql_text[i], -1, SQLITE_PREPARE_PERSISTENT, &d->stmt[i],
                                 NULL);
        if (*rc == SQLITE_ERROR)
            return DB_TABLES;
        if (*rc != SQLITE_OK)
            return DB_FAILED;
    }
    return DB_OURS;
}

/* A URI of path: a database in WAL mode in a directory that cannot be written opens only as
 * immutable, and only a URI can say that. */
static char *immutable_uri(const char *path)
{
    static const char hex[] = "0123456789ABCDEF";
    char *uri = mem_alloc(strlen(path) * 3 + 32), *at = uri;

    if (!uri)
        return NULL;
    at += sprintf(at, "file:");
    for (const unsigned char *p = (const unsigned char *)path; *p; p++) {
        if (*p == '?' || *p == '#' || *p == '%' || *p < 0x20 || *p > 0x7e) {
            *at++ = '%';
            *at++ = hex[*p >> 4];
            *at++ = hex[*p & 15];
        } else {
            *at++ = (char)*p;
        }
    }
    strcpy(at, "?mode=ro&immutable=1");
    return uri;
}

static int open_handle(db *d, const char *path, enum db_mode mode, bool immutable)
{
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE;
    char *uri = immutable ? immutable_uri(path) : NULL;
    int rc;

    if (immutable && !uri)
        return SQLITE_NOMEM;
    if (!path)
        flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY;
    else
        flags |=
            SQLITE_OPEN_NOFOLLOW | (mode == DB_READ ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
    if (uri)
        flags |= SQLITE_OPEN_URI;
    rc = sqlite3_open_v2(uri ? uri : path ? path : ":memory:", &d->handle, flags, NULL);
    mem_free(uri);
    return rc;
}

static enum db_kind open_as(db *d, const char *path, enum db_mode mode, bool immutable, int wait_ms,
                            int *rc, int *version)
{
    enum db_kind kind = DB_FAILED;

    *d = (db){0};
    *rc = open_handle(d, path, mode, immutable);
    if (*rc == SQLITE_OK) {
        sqlite3_busy_timeout(d->handle, wait_ms);
        sqlite3_db_config(d->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        sqlite3_db_config(d->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        kind = recognise(d, path ? mode : DB_WRITE_NO_WAL, wait_ms, rc, version);
        if (kind == DB_OURS)
            kind = prepare_all(d, rc);
    }
    if (kind != DB_OURS)
        db_close(d);
    return kind;
}

enum db_kind db_open(db *d, const char *path, enum db_mode mode, int wait_ms, int *rc, int *version)
{
    enum db_kind kind = open_as(d, path, mode, false, wait_ms, rc, version);
    int primary = *rc & 0xff;

    if (kind == DB_FAILED && mode == DB_READ &&
        (primary == SQLITE_CANTOPEN || primary == SQLITE_READONLY))
        kind = open_as(d, path, mode, true, wait_ms, rc, version);
    return kind;
}

void db_close(db *d)
{
    for (int i = 0; i < SQL_COUNT; i++)
        sqlite3_finalize(d->stmt[i]);
    sqlite3_close(d->handle);
    *d = (db){0};
}

void db_patience(db *d, int wait_ms)
{
    sqlite3_busy_timeout(d->handle, wait_ms);
}

sqlite3_stmt *db_stmt(db *d, enum db_sql which)
{
    sqlite3_reset(d->stmt[which]);
    sqlite3_clear_bindings(d->stmt[which]);
    return d->stmt[which];
}

void db_bind_text(sqlite3_stmt *s, int at, const char *text)
{
    if (text)
        sqlite3_bind_text(s, at, text, -1, SQLITE_STATIC);
}

int db_done(sqlite3_stmt *s, int rc)
{
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int db_run(sqlite3_stmt *s)
{
    return db_done(s, sqlite3_step(s));
}

int db_transact(db *d, db_work work, void *arg)
{
    int rc = exec(d, "BEGIN IMMEDIATE");

    if (rc != SQLITE_OK)
        return rc;
    rc = work(d, arg);
    if (rc == SQLITE_OK)
        rc = exec(d, "COMMIT");
    if (rc != SQLITE_OK && !sqlite3_get_autocommit(d->handle))
        exec(d, "ROLLBACK");
    return rc;
}
