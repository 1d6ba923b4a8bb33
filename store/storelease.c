/* Leases: which process tunes a key. A lease is a row with its owner's identity and a time; the
 * owner's death frees it at once where it can be seen from here, else its silence does. */
#include "store/storecore.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RENEW_EVERY_MS 1000
#define PLACE_TEXT 160

static size_t read_small(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

    if (fd >= 0)
        close(fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* Where process ids mean the same: this boot, this pid namespace. "" when that is unknown. */
static void read_place(char out[PLACE_TEXT])
{
    char boot[64], space[64];
    ssize_t n = readlink("/proc/self/ns/pid", space, sizeof space - 1);

    out[0] = '\0';
    if (n <= 0 || !read_small("/proc/sys/kernel/random/boot_id", boot, sizeof boot))
        return;
    space[n] = '\0';
    boot[strcspn(boot, "\n")] = '\0';
    snprintf(out, PLACE_TEXT, "%s %s", boot, space);
}

/* When a process started, in clock ticks since boot: tells it from a later one of the same id.
 * -1 when there is none, or only what is left of one that ended; 0 when that cannot be told. */
static int64_t started_at(int64_t pid)
{
    char path[64], text[1024];
    const char *p;

    if (kill((pid_t)pid, 0) != 0 && errno == ESRCH)
        return -1;
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    if (!read_small(path, text, sizeof text) || !(p = strrchr(text, ')')))
        return 0;
    if (p[1] == ' ' && (p[2] == 'Z' || p[2] == 'X'))
        return -1;
    for (int field = 2; field < 22 && p; field++) /* proc(5): starttime is field 22 */
        p = strchr(p + 1, ' ');
    return p ? strtoll(p + 1, NULL, 10) : 0;
}

static uint64_t new_token(void)
{
    static atomic_uint_fast64_t count;
    uint64_t seed[3] = {(uint64_t)db_now_ms(), (uint64_t)getpid(), atomic_fetch_add(&count, 1)};

    return hash_mem(seed, sizeof seed).lo;
}

typedef struct lease_work {
    const store *st;
    const key_text *key;
    const char *place;
    store_lease lease;
    int64_t holder; /* 0: taken */
} lease_work;

static bool holder_lives(sqlite3_stmt *s, const char *place)
{
    int64_t pid = sqlite3_column_int64(s, 0), started = sqlite3_column_int64(s, 1);
    int64_t silent = db_now_ms() - sqlite3_column_int64(s, 3);
    const char *their_place = (const char *)sqlite3_column_text(s, 2);

    if (silent > STORE_LEASE_MS || silent < -STORE_LEASE_MS)
        return false;
    if (!place[0] || !their_place || strcmp(place, their_place) != 0)
        return true;
    int64_t now = started_at(pid);
    return now == 0 || started == 0 ? now != -1 : now == started;
}

static int take_lease(db *d, void *arg)
{
    lease_work *w = arg;
    int rc = key_row(d, w->key, true, &w->lease.key_id);

    if (rc != SQLITE_OK)
        return rc;
    sqlite3_stmt *s = db_stmt(d, SQL_LEASE_GET);
    sqlite3_bind_int64(s, 1, w->lease.key_id);
    rc = sqlite3_step(s);
    w->holder = rc == SQLITE_ROW && holder_lives(s, w->place) ? sqlite3_column_int64(s, 0) : 0;
    rc = db_done(s, rc);
    if (rc != SQLITE_OK || w->holder)
        return rc;
    s = db_stmt(d, SQL_LEASE_PUT);
    sqlite3_bind_int64(s, 1, w->lease.key_id);
    sqlite3_bind_int64(s, 2, (int64_t)w->lease.token);
    sqlite3_bind_int64(s, 3, getpid());
    sqlite3_bind_int64(s, 4, started_at(getpid()));
    db_bind_text(s, 5, w->place);
    sqlite3_bind_int64(s, 6, w->lease.renewed_ms);
    w->lease.in_memory = store_is_memory(w->st, d);
    return db_run(s);
}

enum store_lease_result store_lease_try(store *st, const store_key *key, store_lease *out,
                                        int64_t *holder)
{
    char place[PLACE_TEXT];
    key_text text;
    lease_work w = {.st = st,
                    .key = &text,
                    .place = place,
                    .lease = {.token = new_token(), .renewed_ms = db_now_ms(), .in_memory = true}};

    read_place(place);
    if (key_text_make(key, &text)) {
        /* Where nothing can be written nobody can be kept out: the lease is then for nothing. */
        if (store_write(st, take_lease, &w) == TW_E_NOMEM)
            w.holder = 0;
        key_text_free(&text);
    }
    *out = w.lease;
    if (holder)
        *holder = w.holder;
    return w.holder ? LEASE_HELD : LEASE_TAKEN;
}

typedef struct renewal {
    const store *st;
    const store_lease *lease;
    enum db_sql sql;
    bool lost;
} renewal;

static int change_lease(db *d, void *arg)
{
    renewal *r = arg;

    if (store_is_memory(r->st, d) != r->lease->in_memory)
        return SQLITE_OK; /* the file went away since: the lease went with it */
    sqlite3_stmt *s = db_stmt(d, r->sql);
    sqlite3_bind_int64(s, 1, r->lease->key_id);
    sqlite3_bind_int64(s, 2, (int64_t)r->lease->token);
    if (r->sql == SQL_LEASE_RENEW)
        sqlite3_bind_int64(s, 3, db_now_ms());
    int rc = db_run(s);
    r->lost = rc == SQLITE_OK && sqlite3_changes(d->handle) == 0;
    return rc;
}

static void change(renewal *r, store *st)
{
    if (r->lease->in_memory)
        store_write_memory(st, change_lease, r);
    else if (store_write(st, change_lease, r) == TW_E_NOMEM)
        r->lost = false;
}

bool store_lease_renew(store *st, store_lease *lease)
{
    renewal r = {st, lease, SQL_LEASE_RENEW, false};

    if (db_now_ms() - lease->renewed_ms < RENEW_EVERY_MS)
        return true;
    lease->renewed_ms = db_now_ms();
    change(&r, st);
    return !r.lost;
}

void store_lease_release(store *st, store_lease *lease)
{
    renewal r = {st, lease, SQL_LEASE_DROP, false};

    if (lease->token)
        change(&r, st);
    lease->token = 0;
}
