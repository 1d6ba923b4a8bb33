#include "compiler/ir/namemap.h"

void namemap_init(namemap *m, arena *a)
{
    *m = (namemap){.a = a};
}

static namemap_slot *slot_of(const namemap *m, const char *name)
{
    uint64_t h = (uint64_t)(uintptr_t)name * UINT64_C(0x9E3779B97F4A7C15); /* 2^64 / golden ratio */
    uint32_t mask = m->cap - 1, i = (uint32_t)(h >> 32) & mask;

    while (m->slot[i].name && m->slot[i].name != name)
        i = (i + 1) & mask;
    return &m->slot[i];
}

static void grow(namemap *m)
{
    namemap old = *m;

    m->cap = old.cap ? old.cap * 2 : 64;
    m->slot = ARENA_ARRAY(m->a, namemap_slot, m->cap);
    for (uint32_t i = 0; i < old.cap; i++) {
        if (old.slot[i].name)
            *slot_of(m, old.slot[i].name) = old.slot[i];
    }
}

uint32_t *namemap_at(namemap *m, const char *name)
{
    if (m->n >= m->cap / 2)
        grow(m);
    namemap_slot *s = slot_of(m, name);
    if (!s->name) {
        s->name = name;
        m->n++;
    }
    return &s->value;
}
