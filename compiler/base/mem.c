#include "compiler/base/mem.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static atomic_long live;
static atomic_bool failing; /* mem_fail_after is on */
static atomic_long left;    /* allocations that still succeed, plus one */

static bool refused(void)
{
    return atomic_load_explicit(&failing, memory_order_relaxed) && atomic_fetch_sub(&left, 1) <= 1;
}

static void *counted(void *p)
{
    if (p)
        atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    return p;
}

void *mem_alloc(size_t size)
{
    return refused() ? NULL : counted(malloc(size ? size : 1));
}

void *mem_zalloc(size_t size)
{
    return refused() ? NULL : counted(calloc(1, size ? size : 1));
}

void *mem_alloc_aligned(size_t align, size_t size)
{
    void *p = NULL;

    if (refused() || posix_memalign(&p, align, size ? size : 1) != 0)
        return NULL;
    return counted(p);
}

void *mem_realloc(void *p, size_t size)
{
    if (!p)
        return mem_alloc(size);
    return refused() ? NULL : realloc(p, size ? size : 1);
}

char *mem_strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = mem_alloc(n);

    return copy ? memcpy(copy, s, n) : NULL;
}

void mem_free(void *p)
{
    if (!p)
        return;
    atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    free(p);
}

void mem_fail_after(long n)
{
    atomic_store(&left, n);
    atomic_store(&failing, n > 0);
}

long mem_live(void)
{
    return atomic_load(&live);
}
