#ifndef TW_BASE_VEC_H
#define TW_BASE_VEC_H
/* A growable array in an arena:  VEC(int) v = {0};  vec_push(&v, a, 7);  v.at[0], v.n.
 * Growth copies into the arena and leaves the old block to its release. */
#include "compiler/base/arena.h"
#include <stdint.h>

#define VEC(type)       \
    struct {            \
        type *at;       \
        uint32_t n, cap; \
    }
#define vec_push(v, a, x) (vec_grow((void **)&(v)->at, &(v)->cap, (v)->n + 1, sizeof *(v)->at, (a)), \
                           (v)->at[(v)->n++] = (x))
#define vec_reserve(v, a, want) vec_grow((void **)&(v)->at, &(v)->cap, (want), sizeof *(v)->at, (a))
#define vec_last(v) ((v)->at[(v)->n - 1])

/* Makes room for at least want elements of size elem. */
void vec_grow(void **at, uint32_t *cap, uint32_t want, size_t elem, arena *a);

#endif
