#include "runtime/profile.h"
#include "compiler/base/check.h"
#include "compiler/base/control.h"
#include "compiler/base/error.h"
#include "compiler/base/mem.h"
#include "compiler/base/namelist.h"
#include "runtime/text_file.h"
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE 65536 /* bytes */

extern const profile_text profile_texts[]; /* generated: cmake/embed_profiles.cmake */

enum { LEAST_CAPABILITY = 80, MOST_CAPABILITY = 999 };

/* ---- keys ------------------------------------------------------------------------------------ */

typedef struct key_row {
    const char *name;
    size_t at;
    bool wide; /* 64 bits */
    int64_t lo, hi;
} key_row;

#define LIMIT(name, field, lo, hi)                                                                 \
    {                                                                                              \
        name, offsetof(gpu_profile, limits.field), false, lo, hi                                   \
    }
static const key_row keys[] = {
    LIMIT("capability", capability, LEAST_CAPABILITY, MOST_CAPABILITY),
    LIMIT("multiprocessors", multiprocessors, 1, 100000),
    LIMIT("shared_per_block", shared_per_block, 1024, 1 << 26),
    LIMIT("shared_per_multiprocessor", shared_per_sm, 1024, 1 << 26),
    LIMIT("shared_reserved", shared_reserved, 0, 1 << 20),
    LIMIT("registers_per_multiprocessor", registers_per_sm, 1024, 1 << 26),
    LIMIT("registers_per_thread", registers_per_thread, 16, 65536),
    LIMIT("threads_per_block", threads_per_block, 32, 65536),
    LIMIT("threads_per_multiprocessor", threads_per_sm, 32, 65536),
    LIMIT("blocks_per_multiprocessor", blocks_per_sm, 1, 65536),
    {"l2_bytes", offsetof(gpu_profile, limits.l2_bytes), true, 0, (int64_t)1 << 50},
    {"clock_mhz", offsetof(gpu_profile, clock_mhz), false, 0, 100000},
    {"memory_bytes", offsetof(gpu_profile, memory_bytes), true, 0, (int64_t)1 << 50},
    {"memory_bandwidth", offsetof(gpu_profile, memory_bandwidth), true, 0, (int64_t)1 << 50},
};
enum { KEYS = sizeof keys / sizeof *keys, NAME = KEYS /* its bit in parser.given */ };
enum { CAPABILITY, MULTIPROCESSORS };

/* ---- lines ----------------------------------------------------------------------------------- */

typedef struct parser {
    const char *file;
    int line;
    unsigned given; /* bit i: keys[i] was */
    int64_t value[KEYS];
    gpu_profile *out;
} parser;

__attribute__((format(printf, 3, 4))) static tw_status wrong(const parser *p, const char *hint,
                                                             const char *format, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (p->line == 0)
        return error_diag(TW_E_IO, DIAG_BAD_FILE, hint, "%.200s: %s", p->file, text);
    return error_diag(TW_E_IO, DIAG_BAD_FILE, hint, "%.200s:%d: %s", p->file, p->line, text);
}

/* Cuts blanks off both ends, in place. */
static char *trim(char *s)
{
    size_t n;

    while (isspace((unsigned char)*s))
        s++;
    for (n = strlen(s); n > 0 && isspace((unsigned char)s[n - 1]); n--)
        s[n - 1] = 0;
    return s;
}

static tw_status take_name(parser *p, const char *value)
{
    const size_t n = strlen(value);

    if (n == 0 || n >= sizeof p->out->name)
        return wrong(p, NULL, "a name has 1 to %zu characters", sizeof p->out->name - 1);
    for (size_t i = 0; i < n; i++)
        if (control_at(value + i, n - i))
            return wrong(p, NULL, "a control character in the name");
    snprintf(p->out->name, sizeof p->out->name, "%s", value);
    return TW_OK;
}

static tw_status take_number(parser *p, int i, const char *value)
{
    const char *whole = "write a whole number, without a unit";
    const key_row *k = &keys[i];
    char *end;

    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (end == value || *end || errno)
        return wrong(p, i == CAPABILITY ? "write 89 for compute capability 8.9" : whole,
                     "'%s' is '%.40s', not a whole number", k->name, value);
    if (n < k->lo || n > k->hi)
        return wrong(p, NULL, "'%s' is %lld, not from %lld to %lld", k->name, n, (long long)k->lo,
                     (long long)k->hi);
    p->value[i] = n;
    return TW_OK;
}

static tw_status unknown_key(const parser *p, const char *key)
{
    const char *known[KEYS + 1];
    char hint[80];

    for (int i = 0; i < KEYS; i++)
        known[i] = keys[i].name;
    known[KEYS] = "name";
    const char *near = diag_nearest(key, known, KEYS + 1);
    snprintf(hint, sizeof hint, "did you mean '%s'?", near ? near : "");
    return wrong(p, near ? hint : NULL, "unknown key '%.60s'", key);
}

static tw_status take_pair(parser *p, const char *key, const char *value)
{
    int i = 0;

    while (i < KEYS && strcmp(keys[i].name, key) != 0)
        i++;
    if (i == KEYS && strcmp(key, "name") != 0)
        return unknown_key(p, key);
    if (p->given >> i & 1)
        return wrong(p, NULL, "'%s' is given twice", key);
    p->given |= 1u << i;
    return i == NAME ? take_name(p, value) : take_number(p, i, value);
}

static tw_status take_line(parser *p, char *line)
{
    char *equals;

    line[strcspn(line, "#")] = 0;
    line = trim(line);
    if (!*line)
        return TW_OK;
    equals = strchr(line, '=');
    if (!equals)
        return wrong(p, "lines are KEY = VALUE; # begins a comment", "'%.60s' has no '='", line);
    *equals = 0;
    return take_pair(p, trim(line), trim(equals + 1));
}

static tw_status take_lines(parser *p, const char *text, size_t size)
{
    char line[512];

    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t n = end ? (size_t)(end - text) - at : size - at;
        p->line++;
        if (memchr(text + at, 0, n))
            return wrong(p, NULL, "a NUL byte: this is not a text");
        if (n >= sizeof line)
            return wrong(p, NULL, "a line is longer than %zu bytes", sizeof line - 1);
        memcpy(line, text + at, n);
        line[n] = 0;
        TRY(take_line(p, line));
        at += n + 1;
    }
    p->line = 0;
    return TW_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void put(gpu_profile *out, const key_row *k, int64_t v)
{
    int32_t narrow = (int32_t)v;

    if (k->wide)
        memcpy((char *)out + k->at, &v, sizeof v);
    else
        memcpy((char *)out + k->at, &narrow, sizeof narrow);
}

static tw_status consistent(const parser *p)
{
    const gpu_limits *l = &p->out->limits;

    if (l->shared_per_block > l->shared_per_sm)
        return wrong(p, NULL, "shared_per_block, %d, is above shared_per_multiprocessor, %d",
                     l->shared_per_block, l->shared_per_sm);
    if (l->shared_reserved > l->shared_per_sm - l->shared_per_block)
        return wrong(p, "a block takes both",
                     "shared_per_block, %d, and shared_reserved, %d, are together above "
                     "shared_per_multiprocessor, %d",
                     l->shared_per_block, l->shared_reserved, l->shared_per_sm);
    if (l->threads_per_block > l->threads_per_sm)
        return wrong(p, NULL, "threads_per_block, %d, is above threads_per_multiprocessor, %d",
                     l->threads_per_block, l->threads_per_sm);
    return TW_OK;
}

tw_status profile_parse(const char *file, const char *text, size_t size, gpu_profile *out)
{
    gpu_profile found = {.name = ""};
    parser p = {.file = file, .out = &found};
    const unsigned needed = 1u << CAPABILITY | 1u << MULTIPROCESSORS | 1u << NAME;

    TRY(take_lines(&p, text, size));
    if ((p.given & needed) != needed)
        return wrong(&p, "what a capability's GPUs have in common may be left out",
                     "name, capability and multiprocessors are needed");
    found.limits = gpu_limits_of((int)p.value[CAPABILITY]);
    for (int i = 0; i < KEYS; i++)
        if (p.given >> i & 1)
            put(&found, &keys[i], p.value[i]);
    TRY(consistent(&p));
    *out = found;
    return TW_OK;
}

const profile_text *profile_at(size_t i)
{
    for (size_t k = 0; k <= i; k++)
        if (!profile_texts[k].name)
            return NULL;
    return &profile_texts[i];
}

static tw_status no_file(const char *name, tw_status st, const char *why)
{
    char list[160];
    namelist l = namelist_begin(list, sizeof list, "those that are built in: ", ", ");

    for (size_t i = 0; profile_at(i); i++)
        namelist_add(&l, "%s", profile_at(i)->name);
    namelist_end(&l);
    return error_diag(st, DIAG_BAD_FILE, list, "profile '%.200s' cannot be read: %s", name, why);
}

static tw_status parse_file(const char *name, gpu_profile *out)
{
    const char *why = NULL;
    char *text;
    size_t n = 0;
    tw_status st = text_file_read(name, MAX_FILE, &text, &n, &why);

    if (st == TW_E_LIMIT)
        return error_diag(TW_E_IO, DIAG_BAD_FILE, NULL,
                          "profile '%.200s' is larger than %d bytes: this is none", name, MAX_FILE);
    if (st != TW_OK)
        return no_file(name, st, why);
    st = profile_parse(name, text, n, out);
    mem_free(text);
    return st;
}

tw_status profile_find(const char *name, gpu_profile *out)
{
    for (size_t i = 0; profile_at(i); i++)
        if (strcmp(profile_at(i)->name, name) == 0)
            return profile_parse(name, profile_at(i)->text, strlen(profile_at(i)->text), out);
    return parse_file(name, out);
}
