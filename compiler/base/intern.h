#ifndef TW_BASE_INTERN_H
#define TW_BASE_INTERN_H
/* One address per spelling: interned strings compare with ==. They hold no NUL. */
#include "compiler/base/arena.h"
#include <stdint.h>

typedef struct intern {
    arena *a;
    const char **slot; /* open addressing */
    uint32_t n, cap;
} intern;

void intern_init(intern *t, arena *a);
const char *intern_str(intern *t, const char *s);
const char *intern_mem(intern *t, const char *s, size_t n);

#endif
