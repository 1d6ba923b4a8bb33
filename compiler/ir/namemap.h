#ifndef TW_IR_NAMEMAP_H
#define TW_IR_NAMEMAP_H
/* Interned string -> number, for the printer and the parser. Keys compare by address. */
#include "compiler/base/arena.h"
#include <stdint.h>

typedef struct namemap_slot {
    const char *name;
    uint32_t value;
} namemap_slot;
typedef struct namemap {
    arena *a;
    namemap_slot *slot; /* open addressing */
    uint32_t n, cap;
} namemap;

void namemap_init(namemap *m, arena *a);
/* The number of a name; 0 when it is new. Valid until the next call with a new name. */
uint32_t *namemap_at(namemap *m, const char *name);

#endif
