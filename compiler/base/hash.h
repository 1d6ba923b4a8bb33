#ifndef TW_BASE_HASH_H
#define TW_BASE_HASH_H
/* Stable 128-bit content hash (XXH3-128). Same bytes, same hash, on every machine and version. */
#include <stddef.h>
#include <stdint.h>

typedef struct hash128 {
    uint64_t lo, hi;
} hash128;

hash128 hash_mem(const void *p, size_t n);
hash128 hash_str(const char *s);
/* Folds b into a; order matters. */
hash128 hash_mix(hash128 a, hash128 b);
int hash_equal(hash128 a, hash128 b);
/* 32 lower-case hex digits and a NUL. */
#define HASH_TEXT 33
void hash_text(hash128 h, char out[HASH_TEXT]);
int hash_parse(const char *text, hash128 *out); /* 1 when text is 32 hex digits */

#endif
