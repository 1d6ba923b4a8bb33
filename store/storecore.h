#ifndef TW_STORE_STORECORE_H
#define TW_STORE_STORECORE_H
/* The store's state and the two ways into it: store_write and store_read. They take the lock, keep
 * forked children out, decide what a failure of SQLite means, and say so once. */
#include "store/storedb.h"
#include "store/storekey.h"
#include "store/storesignal.h"
#include <pthread.h>
#include <sys/types.h>

struct store {
    pthread_mutex_t lock;
    size_signal held; /* of who has the lock */
    pid_t pid;  /* of the process that opened it */
    char *path; /* as given, or NULL */
    tw_log_fn log;
    void *log_user;
    enum store_state state;
    db file, memory;
    bool counted;       /* among the stores this process has open */
    bool may_return;    /* the file could not be opened for a reason that may pass */
    bool hurried;       /* it was locked for too long: wait less until it is not */
    int64_t retry_ms;   /* when to look again */
    unsigned said;      /* bit per kind of warning */
    char why[1024];     /* the first warning */
    char pending[1024]; /* to be logged once the lock is released */
    const store_seed *seed;
    size_t nseeds;
};

/* Runs work in one transaction on the file, or, where that fails, on the memory database (work may
 * thus run twice). TW_OK; TW_E_STORE: a file was asked for and does not have it; TW_E_NOMEM. */
tw_status store_write(store *st, db_work work, void *arg);
/* Runs work on the memory database and then on the file, those that are open. */
void store_read(store *st, db_work work, void *arg);
/* Runs work on the file alone, in a transaction when it writes: for what makes sense only there.
 * TW_E_STORE with an error text. */
tw_status store_file_only(store *st, db_work work, void *arg, bool writes);
/* Runs work in a transaction on the memory database, if there is one. */
void store_write_memory(store *st, db_work work, void *arg);
/* Is d the memory database? For use inside work. */
bool store_is_memory(const store *st, const db *d);
/* Could an artifact be written now, or after another look at the file? */
bool store_wants_artifacts(store *st);
/* Warns, once, that part of the file is damaged and how that was met. */
void store_note_damage(store *st, const char *what);

/* The id of a key's row, added when add is set; *id = 0 when there is none. */
int key_row(db *d, const key_text *key, bool add, int64_t *id);

/* The bytes, when they are what was put (size and hash fit), freed with mem_free; else NULL. */
void *artifact_unpack(const void *packed, size_t packed_size, size_t size, const char *sum);
bool trial_state_known(const char *name);
/* Work for store_file_only: gives freed pages back to the disk; that this may fail changes nothing.
 */
int store_shrink(db *d, void *arg);

#endif
