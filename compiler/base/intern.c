#include "compiler/base/intern.h"
#include "compiler/base/hash.h"
#include <string.h>

void intern_init(intern *t, arena *a)
{
    *t = (intern){.a = a};
}

/* The slot that holds s, or the free one where it belongs. */
static uint32_t find_slot(const intern *t, const char *s, size_t n)
{
    uint32_t mask = t->cap - 1;
    uint32_t i = (uint32_t)hash_mem(s, n).lo & mask;

    while (t->slot[i] && (strncmp(t->slot[i], s, n) != 0 || t->slot[i][n] != '\0'))
        i = (i + 1) & mask;
    return i;
}

static void grow(intern *t)
{
    const char **old = t->slot;
    uint32_t old_cap = t->cap;

    t->cap = old_cap ? old_cap * 2 : 64;
    t->slot = ARENA_ARRAY(t->a, const char *, t->cap);
    for (uint32_t i = 0; i < old_cap; i++) {
        if (old[i])
            t->slot[find_slot(t, old[i], strlen(old[i]))] = old[i];
    }
}

const char *intern_str(intern *t, const char *s)
{
    return intern_mem(t, s, strlen(s));
}

const char *intern_mem(intern *t, const char *s, size_t n)
{
    if (t->n >= t->cap / 2)
        grow(t);
    uint32_t i = find_slot(t, s, n);
    if (!t->slot[i]) {
        t->slot[i] = arena_strndup(t->a, s, n);
        t->n++;
    }
    return t->slot[i];
}
