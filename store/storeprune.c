/* Forgetting what is old, of another version, or too much. Leases and the keys they hold stay. */
#include "store/storecore.h"

typedef struct prune_work {
    const store_limits *limits;
    tw_store_counts n;
} prune_work;

static int run_bound(db *d, const char *sql, const char *text, int64_t number, int64_t *changed)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(d->handle, sql, -1, &s, NULL);

    if (rc == SQLITE_OK) {
        if (text)
            db_bind_text(s, 1, text);
        else
            sqlite3_bind_int64(s, 1, number);
        rc = sqlite3_step(s);
        if (rc == SQLITE_DONE && changed)
            *changed += sqlite3_changes64(d->handle);
    }
    sqlite3_finalize(s);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int drop_old(db *d, prune_work *w)
{
    int64_t before = db_now_ms() - w->limits->older_ms;
    int rc = run_bound(d, "DELETE FROM artifacts WHERE time<?1", NULL, before, &w->n.artifacts);

    if (rc == SQLITE_OK)
        rc = run_bound(d, "DELETE FROM trials WHERE time<?1", NULL, before, &w->n.trials);
    if (rc == SQLITE_OK)
        rc = run_bound(d, "DELETE FROM best WHERE time<?1", NULL, before, &w->n.configs);
    return rc;
}

static int get_excess(db *d, int64_t max_bytes, int64_t *out)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(d->handle,
                                "SELECT (page_count-freelist_count)*page_size FROM "
                                "pragma_page_count,pragma_freelist_count,pragma_page_size",
                                -1, &s, NULL);

    if (rc == SQLITE_OK && (rc = sqlite3_step(s)) == SQLITE_ROW)
        *out = sqlite3_column_int64(s, 0) - max_bytes;
    sqlite3_finalize(s);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* The oldest rows that together have at least ?1 bytes. */
#define DROP_OLDEST(table, bytes)                                                                  \
    "DELETE FROM " table " WHERE id IN (SELECT id FROM (SELECT id,sum(" bytes                      \
    ") OVER (ORDER BY time,id)-" bytes " AS earlier FROM " table ") WHERE earlier<?1)"

static int drop_oldest(db *d, int64_t max_bytes, const char *sql, int64_t *changed)
{
    int64_t excess = 0;
    int rc = get_excess(d, max_bytes, &excess);

    return rc == SQLITE_OK && excess > 0 ? run_bound(d, sql, NULL, excess, changed) : rc;
}

static int prune(db *d, void *arg)
{
    prune_work *w = arg;
    const store_limits *l = w->limits;
    int rc = SQLITE_OK;

    if (l->driver)
        rc = run_bound(d, "DELETE FROM artifacts WHERE driver IS NOT ?1"
                       " AND substr(driver, 1, length(?1) + 1) IS NOT ?1 || ';'", l->driver, 0,
                       &w->n.artifacts);
    if (rc == SQLITE_OK && l->older_ms > 0)
        rc = drop_old(d, w);
    if (rc == SQLITE_OK && l->max_bytes > 0)
        rc = drop_oldest(d, l->max_bytes, DROP_OLDEST("artifacts", "length(packed)"),
                         &w->n.artifacts);
    if (rc == SQLITE_OK && l->max_bytes > 0)
        rc = drop_oldest(
            d, l->max_bytes,
            DROP_OLDEST("trials", "(80+length(config)+ifnull(length(samples),0))"), &w->n.trials);
    if (rc == SQLITE_OK)
        rc = run_bound(d,
                       "DELETE FROM keys WHERE ?1=0 AND id NOT IN (SELECT key FROM best UNION "
                       "SELECT key FROM trials UNION SELECT key FROM artifacts WHERE key NOT NULL "
                       "UNION SELECT key FROM leases)",
                       NULL, 0, NULL);
    return rc;
}

tw_status store_prune(store *st, const store_limits *limits, tw_store_counts *done)
{
    prune_work w = {.limits = limits, .n = TW_STORE_COUNTS_INIT};
    tw_status status = store_file_only(st, prune, &w, true);

    if (status != TW_OK)
        return status;
    if (done)
        *done = w.n;
    return store_file_only(st, store_shrink, NULL, false);
}
