#include "compiler/target/interp/interp_hold.h"
#include "compiler/base/check.h"
#include <stdlib.h>
#include <string.h>

typedef struct held_index {
    int32_t at, lane;
} held_index;

static int ascending(const void *x, const void *y)
{
    const held_index *a = x, *b = y;

    return (a->at > b->at) - (a->at < b->at);
}

/* What one step of digit i adds to the number of its place. */
static int32_t weight_of(const layout_map *map, int i)
{
    int32_t weight = 1;

    for (int k = 0; k < i; k++)
        weight *= map->digit[k].place == map->digit[i].place ? map->digit[k].extent : 1;
    return weight;
}

/* The sums of the registers' and lanes' digits along a dimension, with what the lanes count. */
static void list_indices(interp_hold *h, arena *a, const layout_map *map, int dim)
{
    held_index *list;
    int32_t n = 1;

    for (int i = 0; i < map->n; i++) {
        if (map->digit[i].dim == dim && map->digit[i].place != PLACE_WARP)
            n *= map->digit[i].extent;
    }
    list = ARENA_ARRAY(a, held_index, (size_t)n);
    n = 1;
    for (int i = 0; i < map->n; i++) {
        const layout_digit *d = &map->digit[i];
        int32_t lane = d->place == PLACE_LANE ? weight_of(map, i) : 0;
        if (d->dim != dim || d->place == PLACE_WARP)
            continue;
        for (int32_t k = n; k < n * d->extent; k++)
            list[k] =
                (held_index){list[k % n].at + k / n * d->stride, list[k % n].lane + k / n * lane};
        n *= d->extent;
    }
    qsort(list, (size_t)n, sizeof *list, ascending);
    h->n[dim] = n;
    h->at[dim] = ARENA_ARRAY(a, int32_t, (size_t)n);
    h->lane[dim] = ARENA_ARRAY(a, uint8_t, (size_t)n);
    for (int32_t k = 0; k < n; k++) {
        h->at[dim][k] = list[k].at;
        h->lane[dim][k] = (uint8_t)list[k].lane;
    }
}

static void list_warps(interp_hold *h, const layout_map *map)
{
    for (int w = 0; w < h->warps; w++) {
        h->acts[w] = true;
        for (int i = 0; i < map->n; i++) {
            const layout_digit *d = &map->digit[i];
            if (d->place != PLACE_WARP)
                continue;
            int value = layout_digit_value(map, i, w);
            if (d->dim >= 0)
                h->move[w][d->dim] += value * d->stride;
            else
                h->acts[w] &= value == 0;
        }
        h->warp_copies |= !h->acts[w];
    }
}

interp_hold *interp_hold_new(arena *a, const ir_fn *fn, ir_type tile, int first, int warps)
{
    interp_hold *h = ARENA_NEW(a, interp_hold);
    layout_map map;
    const char *why;

    ICHECK(layout_map_of(fn, tile, warps, &map, &why), "the layout of a verified tile fits it");
    h->rank = tile.rank;
    h->first = first;
    h->warps = warps;
    h->move = arena_array(a, sizeof *h->move, (size_t)warps);
    h->acts = ARENA_ARRAY(a, bool, (size_t)warps);
    for (int d = 0; d < tile.rank; d++)
        list_indices(h, a, &map, d);
    list_warps(h, &map);
    for (int i = 0; i < map.n; i++)
        h->lane_copies |= map.digit[i].place == PLACE_LANE && map.digit[i].dim < 0;
    return h;
}
