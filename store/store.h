#ifndef TW_STORE_H
#define TW_STORE_H
/* What was learned, kept in one SQLite file: configurations, every trial, compiled artifacts, and
 * who is tuning what just now. It knows nothing of kernels or devices but their keys.
 *
 * A store never costs its caller a result. Where the file cannot be used, the store says once, in
 * one warning, what is wrong, where, and what to do, and goes on in a private database in memory:
 * configurations, trials and leases then live as long as the store; artifacts are dropped.
 * A file that is not ours to change (foreign, newer, damaged) is left as it is.
 *
 * Trust: artifacts are code. The file and its directory must belong to this user or to root and be
 * writable by nobody else. Two exceptions for the directory: a group of the user's own number is
 * the user's private one, and a sticky directory such as /tmp will do while every file of the store
 * in it is ours. The file itself may not be a symbolic link. What we create has mode 0600, 0700.
 *
 * Threads: a store may be used from any thread; it locks itself. Waiting for other processes is
 * bounded (STORE_WAIT_MS a call).
 * Fork: a child may not touch a store its parent opened: there it answers like an empty one and
 * writes nothing (SQLite's locks do not survive a fork). Open the context after the fork. */
#include "compiler/base/hash.h"
#include "tilewright.h"

typedef struct store store;

#define STORE_VERSION 1              /* of the schema, in the file as user_version */
#define STORE_APPLICATION 0x54577374 /* "TWst": SQLite's application_id of our files */
#define STORE_WAIT_MS 5000

enum store_state {
    STORE_OK,        /* reads and writes the file                                  */
    STORE_READ_ONLY, /* reads the file; writes go to memory                        */
    STORE_MEMORY     /* no file was asked for, or it cannot be used (see store_why) */
};

/* path NULL: memory only, without a warning. Missing directories are created. log (may be NULL) is
 * called with warnings, never while the store's lock is held. Fails with TW_E_NOMEM alone. */
TW_CHECKED tw_status store_open(const char *path, tw_log_fn log, void *log_user, store **out);
void store_close(store *st);
enum store_state store_state(store *st);
/* The warning that led to this state, or NULL. Borrowed from st. */
const char *store_why(store *st);
const char *store_path(const store *st); /* or NULL */

/* ---- keys ----------------------------------------------------------------------------------- */

/* A problem and a device are lists of coordinates. Their text is the identity; their numbers say
 * how far two of them are apart:
 *   EXACT   text; those that differ are never neighbours ("T:f32")
 *   LABEL   text; a difference counts 2 ("CAUSAL=true", "name=Xeon 8480")
 *   VALUE   number; identity is the value, distance the difference of log2 ("D=128")
 *   BUCKET  number >= 0; identity and distance are those of ceil(log2) ("M~1024": 513 .. 1024)
 * Lists with other names or kinds in other order are never neighbours. */
enum store_coord_kind { COORD_EXACT, COORD_LABEL, COORD_VALUE, COORD_BUCKET };
typedef struct store_coord {
    const char *name; /* no '=', ':', '~', ',' */
    enum store_coord_kind kind;
    const char *text; /* EXACT, LABEL; a ',' in it is written ';' */
    int64_t value;    /* VALUE, BUCKET */
} store_coord;

typedef struct store_key { /* borrowed for the call */
    const char *kernel;    /* name: groups neighbours, and what store_clear takes; not identity */
    hash128 content;       /* level-1 IR of the default configuration, without names */
    const store_coord *problem;
    size_t nproblem;
    const char *target; /* code path */
    const store_coord *device;
    size_t ndevice;
    const char *driver; /* driver and code generator versions: confidence, not identity */
} store_key;

/* "T:f32, D=128, M~1024"; truncated only if size is too small. Returns the length it needs. */
size_t store_coords_text(const store_coord *c, size_t n, char *out, size_t size);
/* Distance of two coordinate texts; below 0: never neighbours. */
double store_coords_distance(const char *a, const char *b);

/* ---- the best known configuration ----------------------------------------------------------- */

typedef struct store_answer {
    tw_layer layer; /* EXACT .. NEAREST_DEVICE; DEFAULT: nothing known */
    char config[256];
    double seconds;  /* 0: never measured for this very key and driver */
    double distance; /* of the neighbour that answered */
    int64_t time_ms; /* when it was stored, in milliseconds since 1970; 0 for a seed */
} store_answer;
/* May config be used for this problem? (It parses, meets the constraints, its names are known.) */
typedef bool (*store_accept_fn)(void *user, const char *config);

/* The layers, each asked only when those before it have no acceptable answer:
 *   exact            this content, problem, target, device and driver
 *   other driver     the same under another driver or code generator; the newest
 *   seed             the first shipped seed that matches
 *   nearest problem  this kernel name, target and device; least distance, then newest
 *   nearest device   this kernel name and target; least distance of problem + device, then newest
 * accept may be NULL. Always fills *out. */
void store_best(store *st, const store_key *key, store_accept_fn accept, void *user,
                store_answer *out);

/* Shipped seeds. problem lists the coordinates that must be there, "" for any ("D=128"). The table
 * is borrowed and must outlive the store. */
typedef struct store_seed {
    const char *kernel, *target; /* target: a prefix of the code path */
    const char *problem, *config;
} store_seed;
void store_set_seeds(store *st, const store_seed *seed, size_t n);

/* A trial as kept. samples are seconds, in the order measured. */
typedef struct store_trial {
    tw_trial_state state;
    const char *config;
    double median_s, spread_s;
    const double *sample;
    size_t nsamples;
    int registers, shared_bytes, spill_bytes; /* 0 where unknown */
    const char *reason;                       /* or NULL */
} store_trial;

/* TW_E_STORE: it is kept in memory only (or, from store_put_best, the time is no time: it must be
 * finite and above 0). TW_E_NOMEM. Callers may ignore both: the warning is given. Each call is one
 * transaction: what returned TW_OK survives a kill. */
tw_status store_put_trial(store *st, const store_key *key, const store_trial *trial);
tw_status store_put_best(store *st, const store_key *key, const char *config, double seconds,
                         double spread);

/* ---- artifacts ------------------------------------------------------------------------------ */

/* id is a hash over everything the bytes depend on: the configuration's own IR, target, features,
 * code generator, driver. Bytes are compressed and carry their hash; any doubt on load is a miss.
 * key (may be NULL) says what the artifact is counted under in store_list. */
tw_status store_artifact_put(store *st, hash128 id, const store_key *key, const void *bytes,
                             size_t size);
/* True when found; *bytes is then the caller's, freed with mem_free. */
bool store_artifact_get(store *st, hash128 id, void **bytes, size_t *size);
#define STORE_ARTIFACT_MAX ((size_t)64 << 20) /* a larger one is not stored */

/* ---- leases: one process tunes a key -------------------------------------------------------- */

#define STORE_LEASE_MS 15000 /* without a renewal for this long a lease is anyone's */
typedef struct store_lease { /* filled by store_lease_try; plain data */
    int64_t key_id;
    uint64_t token;
    bool in_memory;
    int64_t renewed_ms;
} store_lease;
enum store_lease_result {
    LEASE_TAKEN, /* ours until released */
    LEASE_HELD   /* somebody alive has it; ask again later */
};
/* Never waits for the holder. The lease of a process that died (same boot and pid namespace, pid
 * gone or reused) or that did not renew is taken over. *holder (may be NULL): its pid. */
enum store_lease_result store_lease_try(store *st, const store_key *key, store_lease *out,
                                        int64_t *holder);
/* Writes at most once a second. False: it was lost to another process. */
bool store_lease_renew(store *st, store_lease *lease);
void store_lease_release(store *st, store_lease *lease);

/* ---- looking inside ------------------------------------------------------------------------- */

/* As tw_store_list, tw_store_trials and tw_store_clear. The callbacks run without the store's lock,
 * on copies. TW_E_STORE without a usable file (clear: or one that is read-only), TW_E_NOMEM; error
 * text set. */
TW_CHECKED tw_status store_list(store *st, tw_store_fn fn, void *user);
TW_CHECKED tw_status store_trials(store *st, int64_t id, tw_trial_fn fn, void *user);
TW_CHECKED tw_status store_clear(store *st, const char *kernel, int64_t *removed);

/* As tw_store_export, tw_store_import and tw_store_prune. *done is filled on success. */
TW_CHECKED tw_status store_export(store *st, const char *path, bool artifacts,
                                  tw_store_counts *done);
TW_CHECKED tw_status store_import(store *st, const char *path, bool artifacts,
                                  tw_store_counts *done);
typedef struct store_limits {
    const char *driver; /* artifacts of any other go; NULL: none does for that reason */
    int64_t older_ms;   /* what was stored longer ago goes; 0: nothing does            */
    int64_t max_bytes;  /* of the file: drops the oldest artifacts, then trials; 0: any size */
} store_limits;
TW_CHECKED tw_status store_prune(store *st, const store_limits *limits, tw_store_counts *done);

/* The trials of a key as stored under any driver, newest first: to fill a report from what another
 * process measured. Returns TW_OK with no calls when there are none. */
TW_CHECKED tw_status store_key_trials(store *st, const store_key *key, tw_trial_fn fn, void *user);

#endif
