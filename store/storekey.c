#include "store/storekey.h"
#include "compiler/base/mem.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITEM_TEXT_MAX 200
static const char separator[] = ", ";

/* The top of the bucket that holds value: the next power of two. */
static int64_t bucket_top(int64_t value)
{
    int64_t top = 1;

    while (top < value && top < INT64_C(1) << 62)
        top *= 2;
    return value <= 0 ? 0 : top;
}

static void clean_text(const char *text, char out[ITEM_TEXT_MAX])
{
    size_t n = 0;

    for (const char *p = text ? text : ""; *p && n + 1 < ITEM_TEXT_MAX; p++)
        out[n++] = *p == ',' ? ';' : (unsigned char)*p < 0x20 ? ' ' : *p;
    out[n] = '\0';
}

static size_t item_text(const store_coord *c, char *out, size_t size)
{
    char text[ITEM_TEXT_MAX];
    int n = 0;

    clean_text(c->text, text);
    switch (c->kind) {
    case COORD_EXACT:
        n = snprintf(out, size, "%s:%s", c->name, text);
        break;
    case COORD_LABEL:
        n = snprintf(out, size, "%s=%s", c->name, text);
        break;
    case COORD_VALUE:
        n = snprintf(out, size, "%s=%" PRId64, c->name, c->value);
        break;
    case COORD_BUCKET:
        n = snprintf(out, size, "%s~%" PRId64, c->name, bucket_top(c->value));
        break;
    }
    return n > 0 ? (size_t)n : 0;
}

size_t store_coords_text(const store_coord *c, size_t n, char *out, size_t size)
{
    size_t at = 0;

    if (size)
        out[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        char *to = at < size ? out + at : NULL;
        if (i > 0) {
            if (to)
                snprintf(to, size - at, "%s", separator);
            at += sizeof separator - 1;
            to = at < size ? out + at : NULL;
        }
        at += item_text(&c[i], to, to ? size - at : 0);
    }
    return at;
}

/* One item of a coordinate text: name, sign, value. */
typedef struct item {
    const char *name, *value;
    size_t name_len, value_len;
    char sign;
} item;

static const char *next_item(const char *p, item *it)
{
    const char *end = strstr(p, separator);
    size_t n = end ? (size_t)(end - p) : strlen(p);

    it->name = p;
    it->name_len = 0;
    while (it->name_len < n && !strchr(":=~", p[it->name_len]))
        it->name_len++;
    it->sign = it->name_len < n ? p[it->name_len] : '\0';
    it->value = p + it->name_len + (it->sign != '\0');
    it->value_len = (size_t)(p + n - it->value);
    return end ? end + sizeof separator - 1 : p + n;
}

static bool same_bytes(const char *a, size_t an, const char *b, size_t bn)
{
    return an == bn && memcmp(a, b, an) == 0;
}

static bool item_number(const item *it, double *out)
{
    char *end;
    long long v = strtoll(it->value, &end, 10);

    if (it->value_len == 0 || end != it->value + it->value_len)
        return false;
    *out = (double)v;
    return true;
}

/* log2, continued through 0 to negative numbers. */
static double scale(double v)
{
    return v >= 1.0 ? log2(v) : v <= -1.0 ? -2.0 - log2(-v) : -1.0;
}

static double item_distance(const item *a, const item *b)
{
    double x, y;

    if (a->sign != b->sign || !same_bytes(a->name, a->name_len, b->name, b->name_len))
        return -1.0;
    if (same_bytes(a->value, a->value_len, b->value, b->value_len))
        return 0.0;
    if (a->sign == ':')
        return -1.0;
    if (item_number(a, &x) && item_number(b, &y))
        return fabs(scale(x) - scale(y));
    return a->sign == '=' ? 2.0 : -1.0;
}

double store_coords_distance(const char *a, const char *b)
{
    double sum = 0.0;

    while (*a && *b) {
        item x, y;
        a = next_item(a, &x);
        b = next_item(b, &y);
        double d = item_distance(&x, &y);
        if (d < 0.0)
            return -1.0;
        sum += d;
    }
    return *a || *b ? -1.0 : sum;
}

bool key_text_has(const char *text, const char *wanted)
{
    while (*wanted) {
        item want, it;
        bool found = false;
        wanted = next_item(wanted, &want);
        for (const char *p = text; *p && !found;) {
            p = next_item(p, &it);
            found = it.sign == want.sign &&
                    same_bytes(it.name, it.name_len, want.name, want.name_len) &&
                    same_bytes(it.value, it.value_len, want.value, want.value_len);
        }
        if (!found)
            return false;
    }
    return true;
}

static char *coords_dup(const store_coord *c, size_t n)
{
    size_t size = store_coords_text(c, n, NULL, 0) + 1;
    char *text = mem_alloc(size);

    if (text)
        store_coords_text(c, n, text, size);
    return text;
}

bool key_text_make(const store_key *key, key_text *out)
{
    hash_text(key->content, out->content);
    out->kernel = key->kernel ? key->kernel : "";
    out->target = key->target ? key->target : "";
    out->driver = key->driver ? key->driver : "";
    out->problem = coords_dup(key->problem, key->nproblem);
    out->device = coords_dup(key->device, key->ndevice);
    if (out->problem && out->device)
        return true;
    key_text_free(out);
    return false;
}

void key_text_free(key_text *k)
{
    mem_free(k->problem);
    mem_free(k->device);
    k->problem = k->device = NULL;
}
