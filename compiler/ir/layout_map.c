/* The map of a distributed layout: see layout.h. Each kind gives its digits in its own order; then
 * digits of one value are dropped and neighbours that count on are joined, so that equal maps of a
 * place are mostly equal lists. */
#include "compiler/base/check.h"
#include "compiler/ir/layout.h"
#include <string.h>

/* ---- making ---- */

typedef struct making {
    const ir_fn *fn;
    layout_map *map;
    const char *why;
} making;

static void add_digit(layout_map *map, enum layout_place place, int dim, int32_t extent,
                      int32_t stride)
{
    ICHECK(map->n < LAYOUT_MAX_DIGITS, "a layout has at most 32 digits");
    map->digit[map->n++] =
        (layout_digit){(uint8_t)place, (int8_t)dim, extent, dim < 0 ? 0 : stride};
}

/* What does not move the index: registers are dropped, lanes and warps hold copies. */
static void make_copies(layout_map *map, int dim)
{
    int n = 0;

    for (int i = 0; i < map->n; i++) {
        layout_digit d = map->digit[i];
        if (d.dim == dim) {
            d.dim = -1;
            d.stride = 0;
        }
        if (d.dim >= 0 || d.place != PLACE_REGISTER)
            map->digit[n++] = d;
    }
    map->n = n;
}

static int32_t product(const int32_t *x, int n)
{
    int32_t p = 1;

    for (int i = 0; i < n; i++)
        p *= x[i];
    return p;
}

/* The extent with which dimension dim takes part: of 0 (sliced away) and of 1 the least there is.
 */
static bool extent_of(making *mk, const int32_t *shape, int dim, int32_t least, int32_t *extent)
{
    *extent = shape[dim] > 1 ? shape[dim] : least;
    if (*extent % least == 0)
        return true;
    mk->why = "the extents of the tile are multiples of what the layout spreads";
    return false;
}

static bool make_blocked(making *mk, const ir_layout *lay, const int32_t *shape)
{
    int32_t extent[TILE_MAX_RANK] = {0};
    layout_map *map = mk->map;

    for (int d = 0; d < lay->rank; d++) {
        int32_t least = lay->regs[d] * lay->lanes[d] * lay->warps[d];
        if (!extent_of(mk, shape, d, least, &extent[d]))
            return false;
    }
    for (int i = 0; i < lay->rank; i++)
        add_digit(map, PLACE_REGISTER, lay->order[i], lay->regs[lay->order[i]], 1);
    for (int i = 0; i < lay->rank; i++) {
        int d = lay->order[i];
        int32_t once = lay->regs[d] * lay->lanes[d] * lay->warps[d];
        add_digit(map, PLACE_REGISTER, d, extent[d] / once, once);
    }
    for (int i = 0; i < lay->rank; i++)
        add_digit(map, PLACE_LANE, lay->order[i], lay->lanes[lay->order[i]],
                  lay->regs[lay->order[i]]);
    add_digit(map, PLACE_LANE, -1, 32 / product(lay->lanes, lay->rank), 0);
    for (int i = 0; i < lay->rank; i++) {
        int d = lay->order[i];
        add_digit(map, PLACE_WARP, d, lay->warps[d], lay->regs[d] * lay->lanes[d]);
    }
    return true;
}

/* PTX ISA, "Matrix Fragments for mma.m16n8k16": the accumulator's and, in pairs of pieces along
 * dimension 1, the left operand's. */
static bool make_mma(making *mk, const ir_layout *lay, const int32_t *shape)
{
    bool split = lay->kind == LAYOUT_MMA;
    int32_t m, n, wm = lay->warps[0], wn = lay->warps[1], parts = split ? wn : 1;
    layout_map *map = mk->map;

    if (!extent_of(mk, shape, 0, 16 * wm, &m) || !extent_of(mk, shape, 1, 8 * parts, &n))
        return false;
    add_digit(map, PLACE_REGISTER, 1, 2, 1);
    add_digit(map, PLACE_REGISTER, 0, 2, 8);
    add_digit(map, PLACE_REGISTER, 1, n / (8 * parts), 8);
    add_digit(map, PLACE_REGISTER, 0, m / (16 * wm), 16);
    add_digit(map, PLACE_LANE, 1, 4, 2);
    add_digit(map, PLACE_LANE, 0, 8, 1);
    add_digit(map, PLACE_WARP, 0, wm, m / wm);
    add_digit(map, PLACE_WARP, split ? 1 : -1, wn, n / parts);
    return true;
}

static bool make(making *mk, const ir_layout *lay, int rank, const int32_t *shape);

static bool make_slice(making *mk, const ir_layout *lay, int rank, const int32_t *shape)
{
    int32_t whole[TILE_MAX_RANK] = {0};

    for (int d = 0; d <= rank; d++)
        whole[d] = d < lay->dim ? shape[d] : d > lay->dim ? shape[d - 1] : 0;
    if (!make(mk, mk->fn->layouts.at[lay->parent], rank + 1, whole))
        return false;
    for (int i = 0; i < mk->map->n; i++)
        mk->map->digit[i].dim =
            (int8_t)(mk->map->digit[i].dim - (mk->map->digit[i].dim > lay->dim));
    return true;
}

static void rename_dims(layout_map *map, int rank, const uint8_t *perm)
{
    int8_t to[TILE_MAX_RANK];

    for (int i = 0; i < rank; i++)
        to[perm[i]] = (int8_t)i;
    for (int i = 0; i < map->n; i++) {
        if (map->digit[i].dim >= 0)
            map->digit[i].dim = to[map->digit[i].dim];
    }
}

static bool make_trans(making *mk, const ir_layout *lay, int rank, const int32_t *shape)
{
    int32_t before[TILE_MAX_RANK] = {0};

    for (int d = 0; d < rank; d++)
        before[lay->perm[d]] = shape[d];
    if (!make(mk, mk->fn->layouts.at[lay->parent], rank, before))
        return false;
    rename_dims(mk->map, rank, lay->perm);
    return true;
}

/* Lanes along dimension dim of a tile that is large enough. */
static int32_t lanes_of(const ir_fn *fn, const ir_layout *p, int dim)
{
    switch (p->kind) {
    case LAYOUT_BLOCKED:
        return p->lanes[dim];
    case LAYOUT_MMA:
    case LAYOUT_MMA_A:
        return dim == 0 ? 8 : 4;
    case LAYOUT_SLICE:
        return lanes_of(fn, fn->layouts.at[p->parent], dim + (dim >= p->dim));
    case LAYOUT_TRANS:
        return lanes_of(fn, fn->layouts.at[p->parent], p->perm[dim]);
    case LAYOUT_LANES:
        return lanes_of(fn, fn->layouts.at[p->parent], dim);
    case LAYOUT_SHARED:
        break;
    }
    return 1;
}

/* The least extent of dimension dim at which each lane and each warp along it has an element. */
static int32_t least_extent(const ir_fn *fn, const ir_layout *p, int dim)
{
    switch (p->kind) {
    case LAYOUT_BLOCKED:
        return p->regs[dim] * p->lanes[dim] * p->warps[dim];
    case LAYOUT_MMA:
    case LAYOUT_MMA_A:
        return dim == 0 ? 16 * p->warps[0] : 8 * (p->kind == LAYOUT_MMA ? p->warps[1] : 1);
    case LAYOUT_SLICE:
        return least_extent(fn, fn->layouts.at[p->parent], dim + (dim >= p->dim));
    case LAYOUT_TRANS:
        return least_extent(fn, fn->layouts.at[p->parent], p->perm[dim]);
    case LAYOUT_LANES:
        return dim == p->dim ? lanes_of(fn, p, dim)
                             : least_extent(fn, fn->layouts.at[p->parent], dim);
    case LAYOUT_SHARED:
        break;
    }
    return 1;
}

/* Registers along dim are dropped, lanes along it count from 0. */
static int32_t number_lanes(layout_map *map, int dim)
{
    int32_t lanes = 1;
    int n = 0;

    for (int i = 0; i < map->n; i++) {
        layout_digit d = map->digit[i];
        if (d.dim == dim && d.place == PLACE_REGISTER)
            continue;
        if (d.dim == dim) {
            d.stride = lanes;
            lanes *= d.extent;
        }
        map->digit[n++] = d;
    }
    map->n = n;
    return lanes;
}

static bool make_lanes(making *mk, const ir_layout *lay, int rank, const int32_t *shape)
{
    const ir_layout *parent = mk->fn->layouts.at[lay->parent];
    int32_t whole[TILE_MAX_RANK];

    memcpy(whole, shape, sizeof whole);
    whole[lay->dim] = least_extent(mk->fn, parent, lay->dim);
    if (!make(mk, parent, rank, whole))
        return false;
    for (int i = 0; i < mk->map->n; i++) {
        const layout_digit *digit = &mk->map->digit[i];
        if (digit->dim == lay->dim && digit->place == PLACE_WARP && digit->extent > 1) {
            mk->why = "lanes are counted along a dimension that no warp splits";
            return false;
        }
    }
    int32_t lanes = number_lanes(mk->map, lay->dim);
    if (shape[lay->dim] <= 1)
        make_copies(mk->map, lay->dim);
    else if (shape[lay->dim] != lanes)
        mk->why = "the tile has an element for each lane along the dimension";
    return shape[lay->dim] <= 1 || shape[lay->dim] == lanes;
}

static bool make(making *mk, const ir_layout *p, int rank, const int32_t *shape)
{
    bool ok = false;

    if (p->rank != rank && p->kind != LAYOUT_SHARED) {
        mk->why = "the layout is for another number of dimensions";
        return false;
    }
    switch (p->kind) {
    case LAYOUT_BLOCKED:
        ok = make_blocked(mk, p, shape);
        break;
    case LAYOUT_MMA:
    case LAYOUT_MMA_A:
        ok = make_mma(mk, p, shape);
        break;
    case LAYOUT_SLICE:
        return make_slice(mk, p, rank, shape);
    case LAYOUT_TRANS:
        return make_trans(mk, p, rank, shape);
    case LAYOUT_LANES:
        return make_lanes(mk, p, rank, shape);
    case LAYOUT_SHARED:
        mk->why = "the elements of a tile are in registers, not in shared memory";
        return false;
    }
    for (int d = 0; ok && d < rank; d++) {
        if (shape[d] <= 1)
            make_copies(mk->map, d);
    }
    return ok;
}

/* ---- the list of digits ---- */

static bool counts_on(const layout_digit *a, const layout_digit *b)
{
    return a->place == b->place && a->dim == b->dim &&
           (a->dim < 0 || (int64_t)a->stride * a->extent == b->stride);
}

static void tidy(layout_map *map)
{
    int n = 0;

    for (int i = 0; i < map->n; i++) {
        layout_digit d = map->digit[i];
        if (d.extent == 1)
            continue;
        if (n > 0 && counts_on(&map->digit[n - 1], &d))
            map->digit[n - 1].extent *= d.extent;
        else
            map->digit[n++] = d;
    }
    map->n = n;
}

static int place_size(const layout_map *map, int place)
{
    int n = 1;

    for (int i = 0; i < map->n; i++)
        n *= map->digit[i].place == place ? map->digit[i].extent : 1;
    return n;
}

static bool add_other_warps(making *mk, int warps)
{
    int own = place_size(mk->map, PLACE_WARP);

    if (warps < 1 || warps % own) {
        mk->why = "the warps of the layout divide those that run";
        return false;
    }
    add_digit(mk->map, PLACE_WARP, -1, warps / own, 0);
    return true;
}

bool layout_map_with(const ir_fn *fn, ir_type tile, const ir_layout *lay, int warps,
                     layout_map *map, const char **why)
{
    making mk = {.fn = fn, .map = map};

    *map = (layout_map){.rank = tile.rank, .warps = warps};
    memcpy(map->shape, tile.shape, sizeof map->shape);
    bool ok = make(&mk, lay, tile.rank, map->shape) && add_other_warps(&mk, warps);
    tidy(map);
    *why = ok ? NULL : mk.why;
    return ok;
}

bool layout_map_of(const ir_fn *fn, ir_type tile, int warps, layout_map *map, const char **why)
{
    if (tile.kind == TYPE_TILE && tile.layout > 0 && tile.layout < fn->layouts.n)
        return layout_map_with(fn, tile, fn->layouts.at[tile.layout], warps, map, why);
    *why = "a tile of level 2 has a layout";
    return false;
}

int layout_own_warps(const ir_fn *fn, uint16_t lay)
{
    const ir_layout *p = fn->layouts.at[lay];

    switch (p->kind) {
    case LAYOUT_BLOCKED:
        return product(p->warps, p->rank);
    case LAYOUT_MMA:
    case LAYOUT_MMA_A:
        return product(p->warps, 2);
    case LAYOUT_SLICE:
    case LAYOUT_TRANS:
    case LAYOUT_LANES:
        return layout_own_warps(fn, p->parent);
    case LAYOUT_SHARED:
        break;
    }
    return 1;
}

void layout_map_drop(layout_map *map, int dim)
{
    make_copies(map, dim);
    for (int i = 0; i < map->n; i++)
        map->digit[i].dim = (int8_t)(map->digit[i].dim - (map->digit[i].dim > dim));
    map->rank--;
    for (int d = dim; d < map->rank; d++)
        map->shape[d] = map->shape[d + 1];
    tidy(map);
}

void layout_map_permute(layout_map *map, const int64_t *perm)
{
    uint8_t narrow[TILE_MAX_RANK];
    int32_t shape[TILE_MAX_RANK];

    memcpy(shape, map->shape, sizeof shape);
    for (int d = 0; d < map->rank; d++) {
        narrow[d] = (uint8_t)perm[d];
        map->shape[d] = shape[perm[d]];
    }
    rename_dims(map, map->rank, narrow);
}

/* ---- asking ---- */

int layout_registers(const layout_map *map)
{
    return place_size(map, PLACE_REGISTER);
}

int layout_digit_value(const layout_map *map, int digit, int number)
{
    const layout_digit *d = &map->digit[digit];

    for (int i = 0; i < digit; i++)
        number /= map->digit[i].place == d->place ? map->digit[i].extent : 1;
    return number % d->extent;
}

/* Adds what a number at a place contributes to the index. */
static void add_place(const layout_map *map, int place, int number, int32_t *index)
{
    for (int i = 0; i < map->n; i++) {
        const layout_digit *d = &map->digit[i];
        if (d->place != place)
            continue;
        if (d->dim >= 0)
            index[d->dim] += number % d->extent * d->stride;
        number /= d->extent;
    }
}

void layout_element(const layout_map *map, int reg, int lane, int warp, int32_t *index)
{
    memset(index, 0, (size_t)map->rank * sizeof *index);
    add_place(map, PLACE_REGISTER, reg, index);
    add_place(map, PLACE_LANE, lane, index);
    add_place(map, PLACE_WARP, warp, index);
}

static int places_along(const layout_map *map, enum layout_place place, int dim)
{
    int n = 1;

    for (int i = 0; i < map->n; i++)
        n *= map->digit[i].place == place && map->digit[i].dim == dim ? map->digit[i].extent : 1;
    return n;
}

int layout_lanes_along(const layout_map *map, int dim)
{
    return places_along(map, PLACE_LANE, dim);
}

int layout_warps_along(const layout_map *map, int dim)
{
    return places_along(map, PLACE_WARP, dim);
}

int layout_contiguous(const layout_map *map, int dim)
{
    for (int i = 0; i < map->n; i++) {
        const layout_digit *d = &map->digit[i];
        if (d->place == PLACE_REGISTER)
            return d->dim == dim && d->stride == 1 ? d->extent : 1;
    }
    return 1;
}

/* ---- comparing ---- */

/* Writes value as a sum of digits of dimension dim at the places of the mask, largest stride
 * first; *reg gets what the registers among them count. False when it is none. */
static bool compose(const layout_map *map, unsigned places, int dim, int32_t value, int *reg)
{
    bool used[LAYOUT_MAX_DIGITS] = {false};

    while (value >= 0) {
        int best = -1, weight = 1;
        for (int i = 0; i < map->n; i++) {
            const layout_digit *d = &map->digit[i];
            if (d->dim == dim && (places >> d->place & 1) && !used[i] &&
                (best < 0 || d->stride > map->digit[best].stride))
                best = i;
        }
        if (best < 0)
            return value == 0;
        const layout_digit *d = &map->digit[best];
        int32_t v = value / d->stride < d->extent ? value / d->stride : d->extent - 1;
        for (int i = 0; i < best; i++)
            weight *= map->digit[i].place == PLACE_REGISTER ? map->digit[i].extent : 1;
        used[best] = true;
        value -= v * d->stride;
        if (d->place == PLACE_REGISTER)
            *reg += v * weight;
    }
    return false;
}

static bool same_shape(const layout_map *a, const layout_map *b)
{
    return a->rank == b->rank && a->warps == b->warps &&
           memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0;
}

/* Does each number at the place move the index alike? */
static bool same_moves(const layout_map *a, const layout_map *b, enum layout_place place, int n)
{
    for (int i = 0; i < n; i++) {
        int32_t x[TILE_MAX_RANK] = {0}, y[TILE_MAX_RANK] = {0};
        add_place(a, place, i, x);
        add_place(b, place, i, y);
        if (memcmp(x, y, sizeof x) != 0)
            return false;
    }
    return true;
}

/* A thread holds the registers' elements moved by its lane and its warp: two maps are equal when
 * thread 0 holds the same elements and lanes and warps move alike. */
bool layout_same_threads(const layout_map *from, const layout_map *to, int *reg_of)
{
    int n = layout_registers(to);

    if (!same_shape(from, to) || layout_registers(from) != n ||
        !same_moves(from, to, PLACE_LANE, 32) || !same_moves(from, to, PLACE_WARP, to->warps))
        return false;
    for (int r = 0; r < n; r++) {
        int32_t index[TILE_MAX_RANK];
        int reg = 0;
        layout_element(to, r, 0, 0, index);
        for (int d = 0; d < to->rank; d++) {
            if (!compose(from, 1u << PLACE_REGISTER, d, index[d], &reg))
                return false;
        }
        if (reg_of)
            reg_of[r] = reg;
    }
    return true;
}

/* Are all elements of dimension dim that warp needs for `to` among those that it holds? */
static bool holds_along(const layout_map *from, const layout_map *to, int warp, int dim)
{
    int32_t held[TILE_MAX_RANK] = {0}, needed[TILE_MAX_RANK] = {0};
    const unsigned inside = 1u << PLACE_REGISTER | 1u << PLACE_LANE;
    int unused = 0;

    add_place(from, PLACE_WARP, warp, held);
    add_place(to, PLACE_WARP, warp, needed);
    for (int32_t i = 0; i < to->shape[dim]; i++) {
        if (compose(to, inside, dim, i - needed[dim], &unused) &&
            !compose(from, inside, dim, i - held[dim], &unused))
            return false;
    }
    return true;
}

bool layout_same_warps(const layout_map *from, const layout_map *to)
{
    if (!same_shape(from, to))
        return false;
    for (int w = 0; w < to->warps; w++) {
        for (int d = 0; d < to->rank; d++) {
            if (!holds_along(from, to, w, d))
                return false;
        }
    }
    return true;
}
