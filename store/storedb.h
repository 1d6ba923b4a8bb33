#ifndef TW_STORE_STOREDB_H
#define TW_STORE_STOREDB_H
/* One SQLite database, on disk or in memory: opened, recognised or created, its statements ready.
 * Functions return SQLite's result codes; deciding what a failure means is store.c's work.
 * Threads: one at a time (the store's lock). */
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum db_sql {
#define SQL(name, text) SQL_##name,
#include "store/storesql.def"
#undef SQL
    SQL_COUNT
};
typedef struct db {
    sqlite3 *handle; /* NULL: not open */
    sqlite3_stmt *stmt[SQL_COUNT];
} db;

enum db_kind {
    DB_OURS,
    DB_FOREIGN, /* another program's database */
    DB_VERSION, /* ours, of a schema this version does not know: *version */
    DB_TABLES,  /* ours by its header, but its tables are not */
    DB_FAILED   /* *rc says why */
};
enum db_mode { DB_WRITE, DB_WRITE_NO_WAL, DB_READ };

/* Opens path (NULL: in memory, private). A database that holds nothing yet gets our tables, unless
 * mode is DB_READ. d stays closed unless the answer is DB_OURS. */
enum db_kind db_open(db *d, const char *path, enum db_mode mode, int wait_ms, int *rc,
                     int *version);
void db_close(db *d);
void db_patience(db *d, int wait_ms);

/* A statement, reset, with nothing bound. Bound texts and blobs must live until db_done. */
sqlite3_stmt *db_stmt(db *d, enum db_sql which);
void db_bind_text(sqlite3_stmt *s, int at, const char *text); /* NULL: SQL's null */
/* Releases what a statement holds; returns SQLITE_OK for rc ROW or DONE, else rc. */
int db_done(sqlite3_stmt *s, int rc);
int db_run(sqlite3_stmt *s); /* steps a statement that gives no rows, and db_done */

/* work(d, arg) inside BEGIN IMMEDIATE .. COMMIT; rolled back when it returns an error. */
typedef int (*db_work)(db *d, void *arg);
int db_transact(db *d, db_work work, void *arg);

int64_t db_now_ms(void); /* since 1970 */

#endif
