#include "compiler/base/arena.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Under AddressSanitizer the unused part of a chunk is poisoned, so a use after rewind is seen. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define POISON(p, n) ASAN_POISON_MEMORY_REGION((p), (n))
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#else
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

enum { ALIGN = 16, FIRST_CHUNK = 4096, LARGEST_CHUNK = 1 << 20 };

struct arena_chunk {
    arena_chunk *older;
    size_t size, at; /* bytes after this header: all, handed out */
    size_t pad;      /* keeps the header a multiple of ALIGN */
};

static char *data_of(arena_chunk *c)
{
    return (char *)(c + 1);
}

void arena_init(arena *a)
{
    *a = (arena){0};
}

void arena_release(arena *a)
{
    arena_rewind(a, (arena_mark){NULL, 0});
    a->used = 0;
}

static size_t next_chunk_size(const arena *a, size_t need)
{
    size_t size = a->top ? a->top->size * 2 : FIRST_CHUNK;

    if (size > LARGEST_CHUNK)
        size = LARGEST_CHUNK;
    return need > size ? need : size;
}

static arena_chunk *add_chunk(arena *a, size_t need)
{
    size_t size = next_chunk_size(a, need);
    arena_chunk *c = mem_alloc(sizeof *c + size);

    if (!c)
        return NULL;
    c->older = a->top;
    c->size = size;
    c->at = 0;
    POISON(data_of(c), size);
    a->top = c;
    return c;
}

void *arena_alloc(arena *a, size_t size)
{
    arena_chunk *c = a->top;

    if (size > SIZE_MAX / 2) {
        guard_throw(TW_E_NOMEM);
        return NULL;
    }
    size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (!c || c->size - c->at < size)
        c = add_chunk(a, size);
    if (!c) {
        guard_throw(TW_E_NOMEM);
        return NULL;
    }
    char *p = data_of(c) + c->at;
    c->at += size;
    a->used += size;
    UNPOISON(p, size);
    return memset(p, 0, size);
}

void *arena_array(arena *a, size_t elem, size_t n)
{
    size_t size;

    return arena_alloc(a, __builtin_mul_overflow(elem, n, &size) ? SIZE_MAX : size);
}

void *arena_dup(arena *a, const void *p, size_t size)
{
    void *copy = arena_alloc(a, size);

    return copy && size ? memcpy(copy, p, size) : copy;
}

char *arena_strdup(arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_strndup(arena *a, const char *s, size_t n)
{
    char *copy = arena_alloc(a, n + 1);

    return copy && n ? memcpy(copy, s, n) : copy;
}

char *arena_printf(arena *a, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    char *s = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return s;
}

char *arena_vprintf(arena *a, const char *fmt, va_list ap)
{
    va_list again;

    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    size_t size = n < 0 ? 1 : (size_t)n + 1;
    char *s = arena_alloc(a, size);
    if (s && n > 0)
        vsnprintf(s, size, fmt, ap);
    return s;
}

arena_mark arena_save(const arena *a)
{
    return (arena_mark){a->top, a->top ? a->top->at : 0};
}

void arena_rewind(arena *a, arena_mark m)
{
    while (a->top && a->top != m.chunk) {
        arena_chunk *c = a->top;
        a->top = c->older;
        mem_free(c);
    }
    if (a->top) {
        a->top->at = m.at;
        POISON(data_of(a->top) + m.at, a->top->size - m.at);
    }
}
