#include "tests/support/layout_cases.h"
#include <check.h>
#include <string.h>

layout_map layout_must(const ir_fn *fn, ir_type tile, int warps)
{
    layout_map map;
    const char *why;

    ck_assert_msg(layout_map_of(fn, tile, warps, &map, &why), "%s", why);
    return map;
}

int64_t layout_number(const layout_map *map, int reg, int lane, int warp)
{
    int32_t index[TILE_MAX_RANK];
    int64_t n = 0;

    layout_element(map, reg, lane, warp, index);
    for (int d = 0; d < map->rank; d++) {
        if (index[d] < 0 || index[d] >= map->shape[d]) /* an assertion in each turn takes seconds */
            ck_abort_msg("an index is outside of the tile");
        n = n * map->shape[d] + index[d];
    }
    return n;
}

static ir_type tile_of(uint16_t layout, int rank, const int32_t *shape)
{
    ir_type ty = type_tile(DT_F32, rank, shape);

    ty.layout = layout;
    return ty;
}

typedef struct case_list {
    ir_fn *fn;
    layout_case *at;
    int n;
} case_list;

static void add(case_list *l, uint16_t layout, int rank, const int32_t *shape, int warps)
{
    ck_assert_int_lt(l->n, LAYOUT_CASES);
    l->at[l->n++] = (layout_case){tile_of(layout, rank, shape), warps};
}

/* A layout of rank 2 with what can be made from it. */
static void add_family(case_list *l, uint16_t layout, int32_t m, int32_t n, int warps)
{
    const int swap[] = {1, 0};
    uint16_t turned = layout_trans(l->fn, layout, 2, swap);
    const int32_t shape[] = {m, n}, back[] = {n, m}, column[] = {m, 1}, row[] = {1, n};
    layout_map whole = layout_must(l->fn, tile_of(layout, 2, shape), warps);

    add(l, layout, 2, shape, warps);
    add(l, turned, 2, back, warps);
    add(l, layout, 2, column, warps);
    add(l, layout, 2, row, warps);
    add(l, layout_slice(l->fn, layout, 1), 1, shape, warps);
    add(l, layout_slice(l->fn, layout, 0), 1, shape + 1, warps);
    add(l, layout_slice(l->fn, turned, 0), 1, shape, warps);
    for (int d = 0; d < 2; d++) {
        int32_t parts[] = {m, n};
        parts[d] = layout_lanes_along(&whole, d);
        if (layout_warps_along(&whole, d) > 1)
            continue;
        add(l, layout_lanes(l->fn, layout, d), 2, parts, warps);
        add(l, layout_lanes(l->fn, layout, d), 2, d ? column : row, warps);
        add(l, layout_slice(l->fn, layout_lanes(l->fn, layout, d), d), 1, &shape[1 - d], warps);
    }
}

static void add_mma(case_list *l)
{
    static const int32_t split[][2] = {{4, 1}, {1, 4}, {2, 2}, {8, 1}, {1, 1}, {2, 4}};
    static const int32_t width[] = {32, 80, 96, 176, 192};

    for (int i = 0; i < 6; i++) {
        int32_t wm = split[i][0], wn = split[i][1];
        for (int k = 0; k < 5; k++) {
            if (width[k] % (8 * wn) == 0)
                add_family(l, layout_mma(l->fn, wm, wn), 32 * wm, width[k], wm * wn);
        }
        add_family(l, layout_mma(l->fn, wm, wn), 16 * wm, 8 * wn, 2 * wm * wn);
        add_family(l, layout_mma_a(l->fn, wm, wn), 16 * wm, 48, wm * wn);
    }
}

static void add_blocked(case_list *l)
{
    const int rows_last[] = {1, 0}, rows_first[] = {0, 1}, mixed[] = {2, 0, 1};
    int32_t one = 1, eight = 8, three = 3;
    uint16_t wide = layout_blocked(l->fn, 2, (int32_t[]){1, 8}, (int32_t[]){4, 8},
                                   (int32_t[]){4, 1}, rows_last);
    uint16_t tall = layout_blocked(l->fn, 2, (int32_t[]){4, 2}, (int32_t[]){16, 2},
                                   (int32_t[]){1, 2}, rows_first);
    uint16_t few = layout_blocked(l->fn, 1, &one, &eight, &one, rows_first);
    uint16_t odd = layout_blocked(l->fn, 1, &three, &eight, &three, rows_first);
    uint16_t deep = layout_blocked(l->fn, 3, (int32_t[]){1, 2, 4}, (int32_t[]){2, 1, 8},
                                   (int32_t[]){1, 2, 2}, mixed);

    add_family(l, wide, 32, 192, 4);
    add_family(l, wide, 16, 64, 8);
    add_family(l, tall, 64, 24, 2);
    add(l, few, 1, (int32_t[]){8}, 4);
    add(l, few, 1, (int32_t[]){1}, 1);
    add(l, odd, 1, (int32_t[]){144}, 3);
    add(l, deep, 3, (int32_t[]){4, 4, 128}, 4);
    add(l, layout_slice(l->fn, deep, 1), 2, (int32_t[]){2, 192}, 8);
    add(l, layout_slice(l->fn, layout_slice(l->fn, deep, 1), 0), 1, (int32_t[]){64}, 4);
    add(l, layout_trans(l->fn, deep, 3, mixed), 3, (int32_t[]){64, 2, 4}, 4);
    add(l, layout_lanes(l->fn, layout_slice(l->fn, deep, 1), 0), 2, (int32_t[]){2, 192}, 8);
    add(l, layout_lanes(l->fn, few, 0), 1, (int32_t[]){8}, 4);
}

int layout_cases(ir_fn *fn, layout_case *cases)
{
    case_list l = {.fn = fn, .at = cases};

    add_mma(&l);
    add_blocked(&l);
    return l.n;
}
