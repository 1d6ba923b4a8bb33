#include "compiler/base/vec.h"
#include "compiler/base/check.h"
#include <string.h>

void *vec_grow(void *at, uint32_t *cap, uint32_t want, size_t elem, arena *a)
{
    if (want <= *cap && at)
        return at;
    ICHECK(want <= UINT32_MAX / 2, "a vector has fewer than 2^31 elements");
    uint32_t room = *cap < 4 ? 8 : *cap * 2;
    if (room < want)
        room = want;
    void *bigger = arena_array(a, elem, room);
    if (bigger && at)
        memcpy(bigger, at, elem * *cap);
    *cap = room;
    return bigger;
}
