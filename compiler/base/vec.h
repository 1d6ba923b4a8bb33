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
/* Yields the index of the new element. x is read after the growth and must not push to v. */
#define vec_push(v, a, x)                     \
    (vec_reserve((v), (a), (v)->n + 1),       \
     (v)->at[(v)->n] = (x), (v)->n++)
#define vec_reserve(v, a, want) \
    ((v)->at = vec_grow((v)->at, &(v)->cap, (want), sizeof *(v)->at, (a)))
#define vec_last(v) ((v)->at[(v)->n - 1])

/* The array with room for at least want elements of size elem, *cap updated; the same array when
 * it has room. New elements are zeroed. */
void *vec_grow(void *at, uint32_t *cap, uint32_t want, size_t elem, arena *a);

#endif
