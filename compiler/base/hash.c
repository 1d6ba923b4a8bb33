#include "compiler/base/hash.h"
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static hash128 from_xxh(XXH128_hash_t h)
{
    return (hash128){h.low64, h.high64};
}

hash128 hash_mem(const void *p, size_t n)
{
    return from_xxh(XXH3_128bits(n ? p : "", n));
}

hash128 hash_str(const char *s)
{
    return hash_mem(s, strlen(s));
}

static void put_bytes(unsigned char *out, uint64_t x)
{
    for (int i = 0; i < 8; i++)
        out[i] = (unsigned char)(x >> (8 * i));
}

hash128 hash_mix(hash128 a, hash128 b)
{
    unsigned char bytes[32];

    put_bytes(bytes, a.lo);
    put_bytes(bytes + 8, a.hi);
    put_bytes(bytes + 16, b.lo);
    put_bytes(bytes + 24, b.hi);
    return hash_mem(bytes, sizeof bytes);
}

int hash_equal(hash128 a, hash128 b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

static void put_hex(char *out, uint64_t x)
{
    for (int i = 0; i < 16; i++)
        out[i] = "0123456789abcdef"[x >> (60 - 4 * i) & 15];
}

void hash_text(hash128 h, char out[HASH_TEXT])
{
    put_hex(out, h.hi);
    put_hex(out + 16, h.lo);
    out[32] = '\0';
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int hash_parse(const char *text, hash128 *out)
{
    uint64_t half[2] = {0, 0};

    for (int i = 0; i < 32; i++) {
        int v = hex_value(text[i]);
        if (v < 0)
            return 0;
        half[i / 16] = half[i / 16] << 4 | (uint64_t)v;
    }
    if (text[32] != '\0')
        return 0;
    *out = (hash128){half[1], half[0]};
    return 1;
}
