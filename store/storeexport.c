/* A copy of the store's file as a file of its own: same tables, without leases. It is written by a
 * second connection that reads the store's file; nothing that goes wrong with the copy is held
 * against the store. */
#include "compiler/base/error.h"
#include "compiler/base/mem.h"
#include "store/storecore.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct export_work {
    const char *path;
    bool artifacts;
    int rc;
    tw_store_counts n;
} export_work;

static int64_t copy(db *to, int *rc, const char *sql)
{
    if (*rc != SQLITE_OK)
        return 0;
    *rc = sqlite3_exec(to->handle, sql, NULL, NULL, NULL);
    return *rc == SQLITE_OK ? sqlite3_changes64(to->handle) : 0;
}

static int attach(db *to, const char *file)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(to->handle, "ATTACH ?1 AS src", -1, &s, NULL);

    if (rc == SQLITE_OK) {
        db_bind_text(s, 1, file);
        rc = sqlite3_step(s);
    }
    sqlite3_finalize(s);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* One transaction, so that the copy is of one moment. */
static int copy_all(db *to, const char *file, export_work *w)
{
    int rc = attach(to, file);

    (void)copy(to, &rc, "BEGIN");
    (void)copy(to, &rc, "INSERT INTO main.keys SELECT * FROM src.keys");
    w->n.configs = copy(to, &rc, "INSERT INTO main.best SELECT * FROM src.best");
    w->n.trials = copy(to, &rc, "INSERT INTO main.trials SELECT * FROM src.trials");
    if (w->artifacts)
        w->n.artifacts = copy(to, &rc, "INSERT INTO main.artifacts SELECT * FROM src.artifacts");
    (void)copy(to, &rc, "COMMIT");
    return rc;
}

static int export_file(db *d, void *arg)
{
    export_work *w = arg;
    db to;
    int version = 0;
    enum db_kind kind = db_open(&to, w->path, DB_WRITE_NO_WAL, STORE_WAIT_MS, &w->rc, &version);

    if (kind != DB_OURS) {
        w->rc = w->rc == SQLITE_OK ? SQLITE_CANTOPEN : w->rc;
        return SQLITE_OK;
    }
    w->rc = copy_all(&to, sqlite3_db_filename(d->handle, "main"), w);
    db_close(&to);
    return SQLITE_OK;
}

/* The file is closed: what a journal held is in it, or the file goes too. */
static void remove_journal(const char *path)
{
    static const char end[] = "-journal";
    size_t n = strlen(path);
    char *name = mem_alloc(n + sizeof end);

    if (!name)
        return;
    memcpy(name, path, n);
    memcpy(name + n, end, sizeof end);
    unlink(name);
    mem_free(name);
}

static tw_status write_copy(store *st, const char *path, export_work *w)
{
    char *real = realpath(path, NULL); /* SQLite is told to follow no links */
    tw_status status;

    if (!real)
        return error_set(TW_E_IO, "%s: %s", path, strerror(errno));
    w->path = real;
    status = store_file_only(st, export_file, w, false);
    remove_journal(real);
    free(real);
    if (status == TW_OK && w->rc == SQLITE_NOMEM)
        return error_set(TW_E_NOMEM, "out of memory");
    if (status == TW_OK && w->rc != SQLITE_OK)
        return error_set(TW_E_IO, "%s: %s", path, sqlite3_errstr(w->rc));
    return status;
}

tw_status store_export(store *st, const char *path, bool artifacts, tw_store_counts *done)
{
    export_work w = {.artifacts = artifacts, .n = TW_STORE_COUNTS_INIT};
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return error_set(TW_E_IO, "%s: %s", path,
                         errno == EEXIST ? "it exists; an export makes a new file"
                                         : strerror(errno));
    close(fd);
    tw_status status = write_copy(st, path, &w);
    if (status != TW_OK)
        unlink(path);
    else if (done)
        *done = w.n;
    return status;
}
