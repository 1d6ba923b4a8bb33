/* The layered lookup and what feeds it. */
#include "compiler/base/mem.h"
#include "store/storecore.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Beyond this a neighbour says less than the kernel's own default: sizes apart by 2^12 in all. */
#define NEAR_LIMIT 12.0

/* A stored configuration that might answer. rank orders: layer, then distance, then age. */
typedef struct candidate {
    tw_layer layer;
    double distance, seconds;
    int64_t time;
    char config[256];
} candidate;

typedef struct lookup {
    const key_text *key;
    candidate *at;
    size_t n, cap;
    bool near; /* neighbours too */
} lookup;

static bool usable_time(double seconds)
{
    return isfinite(seconds) && seconds > 0.0;
}

static int keep(lookup *l, candidate c, const char *config)
{
    if (!config || strlen(config) >= sizeof c.config || !usable_time(c.seconds))
        return SQLITE_OK; /* a damaged row is no answer */
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 8;
        candidate *at = mem_realloc(l->at, cap * sizeof *at);
        if (!at)
            return SQLITE_NOMEM;
        l->at = at;
        l->cap = cap;
    }
    strcpy(c.config, config);
    l->at[l->n++] = c;
    return SQLITE_OK;
}

static int find_exact(db *d, lookup *l)
{
    int64_t id;
    int rc = key_row(d, l->key, false, &id);

    if (rc != SQLITE_OK || !id)
        return rc;
    sqlite3_stmt *s = db_stmt(d, SQL_BEST_EXACT);
    sqlite3_bind_int64(s, 1, id);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        const char *driver = (const char *)sqlite3_column_text(s, 2);
        bool same = driver && !strcmp(driver, l->key->driver);
        candidate c = {.layer = same ? TW_LAYER_EXACT : TW_LAYER_OTHER_DRIVER,
                       .seconds = sqlite3_column_double(s, 1),
                       .time = sqlite3_column_int64(s, 3)};
        rc = keep(l, c, (const char *)sqlite3_column_text(s, 0));
        if (rc != SQLITE_OK)
            break;
    }
    return db_done(s, rc);
}

static int find_near(db *d, lookup *l)
{
    sqlite3_stmt *s = db_stmt(d, SQL_BEST_NEAR);
    int rc;

    db_bind_text(s, 1, l->key->kernel);
    db_bind_text(s, 2, l->key->target);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        const char *problem = (const char *)sqlite3_column_text(s, 3);
        const char *device = (const char *)sqlite3_column_text(s, 4);
        double far = problem ? store_coords_distance(problem, l->key->problem) : -1.0;
        bool same = device && !strcmp(device, l->key->device);
        double away = same ? 0.0 : device ? store_coords_distance(device, l->key->device) : -1.0;
        if (far < 0.0 || far > NEAR_LIMIT || away < 0.0)
            continue;
        candidate c = {.layer = same ? TW_LAYER_NEAREST_PROBLEM : TW_LAYER_NEAREST_DEVICE,
                       .distance = far + away,
                       .seconds = sqlite3_column_double(s, 1),
                       .time = sqlite3_column_int64(s, 2)};
        rc = keep(l, c, (const char *)sqlite3_column_text(s, 0));
        if (rc != SQLITE_OK)
            break;
    }
    return db_done(s, rc);
}

static int find(db *d, void *arg)
{
    lookup *l = arg;

    return l->near ? find_near(d, l) : find_exact(d, l);
}

static bool better(const candidate *a, const candidate *b)
{
    if (a->layer != b->layer)
        return a->layer < b->layer;
    if (a->distance < b->distance || a->distance > b->distance)
        return a->distance < b->distance;
    return a->time > b->time;
}

/* Takes candidates best first until one is accepted; the refused are crossed out. */
static bool pick(lookup *l, store_accept_fn accept, void *user, store_answer *out)
{
    while (l->n > 0) {
        size_t top = 0;
        for (size_t i = 1; i < l->n; i++)
            if (better(&l->at[i], &l->at[top]))
                top = i;
        candidate c = l->at[top];
        if (!accept || accept(user, c.config)) {
            out->layer = c.layer;
            out->distance = c.distance;
            out->time_ms = c.time;
            out->seconds = c.layer == TW_LAYER_EXACT ? c.seconds : 0.0;
            strcpy(out->config, c.config);
            return true;
        }
        l->at[top] = l->at[--l->n];
    }
    return false;
}

static bool pick_seed(const store *st, const key_text *key, store_accept_fn accept, void *user,
                      store_answer *out)
{
    for (size_t i = 0; i < st->nseeds; i++) {
        const store_seed *s = &st->seed[i];
        if (strcmp(s->kernel, key->kernel) != 0 ||
            strncmp(s->target, key->target, strlen(s->target)) != 0 ||
            !key_text_has(key->problem, s->problem) || strlen(s->config) >= sizeof out->config)
            continue;
        if (accept && !accept(user, s->config))
            continue;
        out->layer = TW_LAYER_SEED;
        strcpy(out->config, s->config);
        return true;
    }
    return false;
}

void store_best(store *st, const store_key *key, store_accept_fn accept, void *user,
                store_answer *out)
{
    key_text text;
    lookup l = {.key = &text};

    memset(out, 0, sizeof *out);
    out->layer = TW_LAYER_DEFAULT;
    if (!key_text_make(key, &text))
        return;
    store_read(st, find, &l);
    if (!pick(&l, accept, user, out) && !pick_seed(st, &text, accept, user, out)) {
        l.n = 0;
        l.near = true;
        store_read(st, find, &l);
        pick(&l, accept, user, out);
    }
    mem_free(l.at);
    key_text_free(&text);
}

typedef struct best_row {
    const key_text *key;
    const char *config;
    double seconds, spread;
} best_row;

static int put_best(db *d, void *arg)
{
    const best_row *b = arg;
    int64_t id;
    int rc = key_row(d, b->key, true, &id);

    if (rc != SQLITE_OK)
        return rc;
    sqlite3_stmt *s = db_stmt(d, SQL_BEST_PUT);
    sqlite3_bind_int64(s, 1, id);
    db_bind_text(s, 2, b->key->driver);
    db_bind_text(s, 3, b->config);
    sqlite3_bind_double(s, 4, b->seconds);
    sqlite3_bind_double(s, 5, b->spread);
    sqlite3_bind_int64(s, 6, db_now_ms());
    return db_run(s);
}

tw_status store_put_best(store *st, const store_key *key, const char *config, double seconds,
                         double spread)
{
    key_text text;
    best_row row = {&text, config, seconds, isfinite(spread) ? spread : 0.0};

    if (!usable_time(seconds))
        return TW_E_STORE;
    if (!key_text_make(key, &text))
        return TW_E_NOMEM;
    tw_status status = store_write(st, put_best, &row);
    key_text_free(&text);
    return status;
}
