/* Compiled code: packed, with its hash, and believed only when everything fits. */
#include "compiler/base/mem.h"
#include "store/storecore.h"
#include <string.h>
#include <zstd.h>

/* zstd's own fast default; level 3 packs code objects to about a third. */
#define PACK_LEVEL 3

typedef struct artifact_row {
    const store *st;
    char id[HASH_TEXT], sum[HASH_TEXT];
    const key_text *key; /* or NULL */
    void *packed;
    size_t packed_size, size;
} artifact_row;

static int put_artifact(db *d, void *arg)
{
    const artifact_row *a = arg;
    int64_t key = 0;

    if (store_is_memory(a->st, d))
        return SQLITE_OK; /* who has the bytes keeps them: no second copy */
    int rc = a->key ? key_row(d, a->key, true, &key) : SQLITE_OK;

    if (rc != SQLITE_OK)
        return rc;
    sqlite3_stmt *s = db_stmt(d, SQL_ARTIFACT_PUT);
    db_bind_text(s, 1, a->id);
    if (key)
        sqlite3_bind_int64(s, 2, key);
    db_bind_text(s, 3, a->key ? a->key->driver : NULL);
    sqlite3_bind_int64(s, 4, (int64_t)a->size);
    db_bind_text(s, 5, a->sum);
    sqlite3_bind_blob64(s, 6, a->packed, a->packed_size, SQLITE_STATIC);
    sqlite3_bind_int64(s, 7, db_now_ms());
    return db_run(s);
}

static bool pack(artifact_row *a, const void *bytes, size_t size)
{
    size_t bound = ZSTD_compressBound(size);

    a->packed = mem_alloc(bound);
    if (!a->packed)
        return false;
    a->packed_size = ZSTD_compress(a->packed, bound, bytes, size, PACK_LEVEL);
    a->size = size;
    hash_text(hash_mem(bytes, size), a->sum);
    return !ZSTD_isError(a->packed_size);
}

tw_status store_artifact_put(store *st, hash128 id, const store_key *key, const void *bytes,
                             size_t size)
{
    artifact_row a = {.st = st};
    key_text text = {0};
    tw_status status = TW_E_NOMEM;

    if (size == 0 || size > STORE_ARTIFACT_MAX || !store_wants_artifacts(st))
        return TW_E_STORE;
    hash_text(id, a.id);
    if ((!key || key_text_make(key, &text)) && pack(&a, bytes, size)) {
        a.key = key ? &text : NULL;
        status = store_write(st, put_artifact, &a);
    }
    mem_free(a.packed);
    key_text_free(&text);
    return status;
}

static int get_artifact(db *d, void *arg)
{
    artifact_row *a = arg;
    sqlite3_stmt *s = db_stmt(d, SQL_ARTIFACT_GET);
    int rc;

    db_bind_text(s, 1, a->id);
    rc = sqlite3_step(s);
    if (rc == SQLITE_ROW && !a->packed) {
        int64_t size = sqlite3_column_int64(s, 0);
        const char *sum = (const char *)sqlite3_column_text(s, 1);
        const void *blob = sqlite3_column_blob(s, 2);
        size_t n = (size_t)sqlite3_column_bytes(s, 2);
        if (blob && sum && strlen(sum) + 1 == sizeof a->sum && size > 0 &&
            (uint64_t)size <= STORE_ARTIFACT_MAX && (a->packed = mem_alloc(n)) != NULL) {
            memcpy(a->packed, blob, n);
            memcpy(a->sum, sum, sizeof a->sum);
            a->packed_size = n;
            a->size = (size_t)size;
        }
    }
    return db_done(s, rc);
}

void *artifact_unpack(const void *packed, size_t packed_size, size_t size, const char *sum)
{
    char got[HASH_TEXT];
    unsigned long long says = ZSTD_getFrameContentSize(packed, packed_size);
    void *bytes = size && size <= STORE_ARTIFACT_MAX && says == size ? mem_alloc(size) : NULL;

    if (!bytes)
        return NULL;
    if (ZSTD_decompress(bytes, size, packed, packed_size) == size) {
        hash_text(hash_mem(bytes, size), got);
        if (!strcmp(got, sum))
            return bytes;
    }
    mem_free(bytes);
    return NULL;
}

bool store_artifact_get(store *st, hash128 id, void **bytes, size_t *size)
{
    artifact_row a = {0};

    hash_text(id, a.id);
    store_read(st, get_artifact, &a);
    if (!a.packed)
        return false;
    *bytes = artifact_unpack(a.packed, a.packed_size, a.size, a.sum);
    *size = a.size;
    mem_free(a.packed);
    if (!*bytes)
        store_note_damage(st, "a compiled artifact in it is damaged and is made again");
    return *bytes != NULL;
}
