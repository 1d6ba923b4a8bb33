#ifndef TW_BASE_ARENA_H
#define TW_BASE_ARENA_H
/* Bump allocation in chunks. Nothing is freed alone: a mark is rewound, or the arena released.
 * An arena never returns NULL: out of memory throws TW_E_NOMEM through guard.h, so code that uses
 * one runs under guard_run (outside one that is a bug of ours: see guard_throw; in release it then
 * returns NULL). Memory is zeroed and aligned to 16.
 * Threads: one at a time. */
#include <stddef.h>
#include <stdarg.h>

typedef struct arena_chunk arena_chunk;
typedef struct arena {
    arena_chunk *top; /* newest chunk first */
    size_t used;      /* bytes handed out since init, rewound ones too: for statistics */
} arena;
typedef struct arena_mark {
    arena_chunk *chunk;
    size_t at;
} arena_mark;

void arena_init(arena *a); /* allocates nothing yet */
void arena_release(arena *a);
void *arena_alloc(arena *a, size_t size);
#define ARENA_NEW(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define ARENA_ARRAY(a, type, n) ((type *)arena_array((a), sizeof(type), (n)))
void *arena_array(arena *a, size_t elem, size_t n); /* overflow-checked */
void *arena_dup(arena *a, const void *p, size_t size);
char *arena_strdup(arena *a, const char *s);
char *arena_strndup(arena *a, const char *s, size_t n);
char *arena_printf(arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(arena *a, const char *fmt, va_list ap);

arena_mark arena_save(const arena *a);
void arena_rewind(arena *a, arena_mark m);

#endif
