/* The table of layouts of a function, and where elements are in shared memory. */
#include "compiler/ir/layout.h"
#include "compiler/base/check.h"
#include <string.h>

static const char *const kind_name[] = {"blocked", "mma",   "mma_a", "slice",
                                        "trans",   "lanes", "shared"};

static const ir_layout *layout_at(const ir_fn *fn, uint16_t lay)
{
    ICHECK(lay > 0 && lay < fn->layouts.n, "a layout is one of its function");
    return fn->layouts.at[lay];
}

static bool same_counts(const int32_t *a, const int32_t *b, int n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

/* But for their names. */
static bool is_equal(const ir_layout *a, const ir_layout *b)
{
    if (a->kind != b->kind || a->rank != b->rank)
        return false;
    switch (a->kind) {
    case LAYOUT_BLOCKED:
        return same_counts(a->regs, b->regs, a->rank) && same_counts(a->lanes, b->lanes, a->rank) &&
               same_counts(a->warps, b->warps, a->rank) && !memcmp(a->order, b->order, a->rank);
    case LAYOUT_MMA:
    case LAYOUT_MMA_A:
        return same_counts(a->warps, b->warps, 2);
    case LAYOUT_SLICE:
    case LAYOUT_LANES:
        return a->parent == b->parent && a->dim == b->dim;
    case LAYOUT_TRANS:
        return a->parent == b->parent && !memcmp(a->perm, b->perm, a->rank);
    case LAYOUT_SHARED:
        return a->row == b->row;
    }
    return false;
}

uint16_t layout_find(const ir_fn *fn, const ir_layout *lay)
{
    for (uint32_t i = 1; i < fn->layouts.n; i++) {
        if (is_equal(fn->layouts.at[i], lay))
            return (uint16_t)i;
    }
    return 0;
}

static bool name_taken(const ir_fn *fn, const char *name)
{
    for (uint32_t i = 1; i < fn->layouts.n; i++) {
        if (strcmp(fn->layouts.at[i]->name, name) == 0)
            return true;
    }
    return false;
}

static const char *unique_name(const ir_fn *fn, const char *name)
{
    const char *unique = name;

    for (int i = 1; name_taken(fn, unique); i++)
        unique = arena_printf(fn->module->a, "%s_%d", name, i);
    return intern_str(fn->module->names, unique);
}

uint16_t layout_add(ir_fn *fn, ir_layout lay)
{
    uint16_t known = layout_find(fn, &lay);

    if (known)
        return known;
    ICHECK(fn->layouts.n <= UINT16_MAX, "a function has at most 65535 layouts");
    lay.name = unique_name(fn, lay.name ? lay.name : kind_name[lay.kind]);
    ir_layout *kept = arena_dup(fn->module->a, &lay, sizeof lay);
    return (uint16_t)vec_push(&fn->layouts, fn->module->a, kept);
}

/* ---- one function for each kind ---- */

uint16_t layout_blocked(ir_fn *fn, int rank, const int32_t *regs, const int32_t *lanes,
                        const int32_t *warps, const int *order)
{
    ir_layout lay = {.kind = LAYOUT_BLOCKED, .rank = (uint8_t)rank};

    ICHECK(rank >= 1 && rank <= TILE_MAX_RANK, "a tile has rank 1 to 4");
    for (int d = 0; d < rank; d++) {
        lay.regs[d] = regs[d];
        lay.lanes[d] = lanes[d];
        lay.warps[d] = warps[d];
        lay.order[d] = (uint8_t)order[d];
    }
    return layout_add(fn, lay);
}

static uint16_t of_warps(ir_fn *fn, enum layout_kind kind, int warps_m, int warps_n)
{
    return layout_add(fn, (ir_layout){.kind = kind, .rank = 2, .warps = {warps_m, warps_n}});
}

uint16_t layout_mma(ir_fn *fn, int warps_m, int warps_n)
{
    return of_warps(fn, LAYOUT_MMA, warps_m, warps_n);
}

uint16_t layout_mma_a(ir_fn *fn, int warps_m, int warps_n)
{
    return of_warps(fn, LAYOUT_MMA_A, warps_m, warps_n);
}

uint16_t layout_slice(ir_fn *fn, uint16_t parent, int dim)
{
    const ir_layout *p = layout_at(fn, parent);

    ICHECK(p->rank >= 2 && dim >= 0 && dim < p->rank, "a slice drops one of several dimensions");
    return layout_add(fn, (ir_layout){.kind = LAYOUT_SLICE,
                                      .rank = (uint8_t)(p->rank - 1),
                                      .parent = parent,
                                      .dim = (uint8_t)dim});
}

uint16_t layout_slice_of(const ir_fn *fn, uint16_t lay, int dim)
{
    const ir_layout *p = layout_at(fn, lay);

    return p->kind == LAYOUT_SLICE && p->dim == dim ? p->parent : 0;
}

static bool is_identity(const uint8_t *perm, int rank)
{
    for (int i = 0; i < rank; i++) {
        if (perm[i] != i)
            return false;
    }
    return true;
}

static ir_layout trans_of(const ir_fn *fn, uint16_t parent, int rank, const int *perm)
{
    const ir_layout *p = layout_at(fn, parent);
    bool composed = p->kind == LAYOUT_TRANS;
    ir_layout lay = {.kind = LAYOUT_TRANS, .rank = (uint8_t)rank};

    ICHECK(rank >= 1 && rank <= TILE_MAX_RANK && (!p->rank || p->rank == rank),
           "perm has an entry for each dimension");
    lay.parent = composed ? p->parent : parent;
    for (int i = 0; i < rank; i++)
        lay.perm[i] = composed ? p->perm[perm[i]] : (uint8_t)perm[i];
    return lay;
}

uint16_t layout_trans(ir_fn *fn, uint16_t parent, int rank, const int *perm)
{
    ir_layout lay = trans_of(fn, parent, rank, perm);

    return is_identity(lay.perm, rank) ? lay.parent : layout_add(fn, lay);
}

uint16_t layout_trans_of(const ir_fn *fn, uint16_t parent, int rank, const int *perm)
{
    ir_layout lay = trans_of(fn, parent, rank, perm);

    return is_identity(lay.perm, rank) ? lay.parent : layout_find(fn, &lay);
}

uint16_t layout_lanes(ir_fn *fn, uint16_t parent, int dim)
{
    const ir_layout *p = layout_at(fn, parent);

    ICHECK(dim >= 0 && dim < p->rank, "lanes along one of the dimensions");
    return layout_add(fn, (ir_layout){
                              .kind = LAYOUT_LANES,
                              .rank = p->rank,
                              .parent = parent,
                              .dim = (uint8_t)dim,
                          });
}

uint16_t layout_shared(ir_fn *fn, int row)
{
    return layout_add(fn, (ir_layout){.kind = LAYOUT_SHARED, .row = row});
}

bool layout_is_shared(const ir_fn *fn, uint16_t lay)
{
    const ir_layout *p = layout_at(fn, lay);

    if (p->kind == LAYOUT_TRANS)
        p = layout_at(fn, p->parent);
    return p->kind == LAYOUT_SHARED;
}

/* ---- soundness ---- */

static bool positive(const int32_t *x, int n, int64_t most, int64_t *all)
{
    for (int i = 0; i < n; i++) {
        if (x[i] < 1 || x[i] > most / *all)
            return false;
        *all *= x[i];
    }
    return true;
}

static bool is_permutation(const uint8_t *entry, int n)
{
    unsigned seen = 0;

    for (int i = 0; i < n; i++)
        seen |= entry[i] < n ? 1u << entry[i] : 0;
    return seen == (1u << n) - 1;
}

static const char *blocked_fault(const ir_layout *lay)
{
    int64_t all = 1, lanes = 1, warps = 1;

    if (!positive(lay->regs, lay->rank, TILE_MAX_ELEMENTS, &all) ||
        !positive(lay->lanes, lay->rank, TILE_MAX_ELEMENTS, &all) ||
        !positive(lay->warps, lay->rank, TILE_MAX_ELEMENTS, &all))
        return "the numbers of a layout are positive and spread a tile";
    if (!positive(lay->lanes, lay->rank, 32, &lanes) || 32 % lanes)
        return "the lanes of a layout divide 32";
    if (!positive(lay->warps, lay->rank, LAYOUT_MAX_WARPS, &warps))
        return "a layout has at most 32 warps";
    return is_permutation(lay->order, lay->rank) ? NULL
                                                 : "order is a permutation of the dimensions";
}

static const char *view_fault(const ir_fn *fn, const ir_layout *lay)
{
    if (lay->parent == 0 || lay->parent >= fn->layouts.n)
        return "a layout is made from one of the function";
    const ir_layout *p = layout_at(fn, lay->parent);
    if (lay->kind == LAYOUT_SLICE &&
        (p->rank < 2 || lay->dim >= p->rank || lay->rank + 1 != p->rank))
        return "a slice drops one of several dimensions of a tile";
    if (lay->kind == LAYOUT_LANES && (lay->dim >= p->rank || lay->rank != p->rank))
        return "lanes are counted along one of the dimensions of a tile";
    if (lay->kind == LAYOUT_TRANS && p->kind == LAYOUT_TRANS)
        return "a trans of a trans is written as one";
    if (lay->kind == LAYOUT_TRANS &&
        (!is_permutation(lay->perm, lay->rank) || (p->rank && p->rank != lay->rank)))
        return "perm is a permutation of the dimensions";
    return NULL;
}

bool layout_is_sound(const ir_fn *fn, const ir_layout *lay, const char **why)
{
    int64_t warps = 1;

    *why = NULL;
    switch (lay->kind) {
    case LAYOUT_BLOCKED:
        *why = blocked_fault(lay);
        break;
    case LAYOUT_MMA:
    case LAYOUT_MMA_A:
        if (!positive(lay->warps, 2, LAYOUT_MAX_WARPS, &warps))
            *why = "a layout has 1 to 32 warps";
        break;
    case LAYOUT_SLICE:
    case LAYOUT_TRANS:
    case LAYOUT_LANES:
        *why = view_fault(fn, lay);
        break;
    case LAYOUT_SHARED:
        if (lay->row && (lay->row < 16 || lay->row > 128 || (lay->row & (lay->row - 1))))
            *why = "row is 128, 64, 32, 16 or 0";
        break;
    }
    return !*why;
}

/* ---- shared memory ---- */

typedef struct shared_shape {
    int row, rank;
    int32_t shape[TILE_MAX_RANK];  /* as stored: before a trans */
    uint8_t stored[TILE_MAX_RANK]; /* which stored dimension each dimension of the slot is */
} shared_shape;

static shared_shape stored_shape(const ir_fn *fn, ir_type buffer)
{
    const ir_layout *lay = layout_at(fn, buffer.layout);
    shared_shape s = {.rank = buffer.rank - 1};
    const ir_layout *base = lay->kind == LAYOUT_TRANS ? layout_at(fn, lay->parent) : lay;

    s.row = base->row;
    for (int i = 0; i < s.rank; i++) {
        s.stored[i] = lay->kind == LAYOUT_TRANS ? lay->perm[i] : (uint8_t)i;
        s.shape[s.stored[i]] = buffer.shape[i + 1];
    }
    return s;
}

bool layout_fits_buffer(const ir_fn *fn, ir_type buffer, const char **why)
{
    const char *reason = NULL;

    if (!buffer.layout || !layout_is_shared(fn, buffer.layout))
        reason = "a buffer has a layout of shared memory";
    else if (layout_at(fn, buffer.layout)->rank &&
             layout_at(fn, buffer.layout)->rank + 1 != buffer.rank)
        reason = "the layout is for another number of dimensions";
    if (!reason) {
        shared_shape s = stored_shape(fn, buffer);
        int64_t bytes = (int64_t)s.shape[s.rank - 1] * dtype_bytes(buffer.dtype);
        if (s.row && bytes % s.row)
            reason = "the row of the layout divides the bytes of the last dimension";
    }
    *why = reason;
    return !reason;
}

int64_t layout_shared_offset(const ir_fn *fn, ir_type buffer, const int32_t *index)
{
    shared_shape s = stored_shape(fn, buffer);
    int64_t at[TILE_MAX_RANK] = {0}, rows = 1, r = 0, e = dtype_bytes(buffer.dtype);

    for (int i = 0; i < s.rank; i++)
        at[s.stored[i]] = index[i];
    for (int i = 0; i + 1 < s.rank; i++) {
        r = r * s.shape[i] + at[i];
        rows *= s.shape[i];
    }
    int64_t byte = at[s.rank - 1] * e;
    if (s.row == 0)
        return r * s.shape[s.rank - 1] * e + byte;
    int64_t chunk = byte % s.row / 16, swizzle = r / (128 / s.row) % (s.row / 16);
    return byte / s.row * rows * s.row + r * s.row + 16 * (chunk ^ swizzle) + byte % 16;
}

int64_t layout_slot_bytes(const ir_fn *fn, ir_type buffer)
{
    (void)fn;
    return type_elements(buffer) / buffer.shape[0] * dtype_bytes(buffer.dtype);
}

int layout_shared_row(int64_t bytes)
{
    for (int row = 128; row >= 16; row /= 2) {
        if (bytes % row == 0)
            return row;
    }
    return 0;
}

/* ---- text ---- */

static void print_counts(strbuf *b, const char *name, const int32_t *count, int n)
{
    sb_fmt(b, "%s=[", name);
    for (int i = 0; i < n; i++)
        sb_fmt(b, "%s%d", i ? ", " : "", count[i]);
    sb_char(b, ']');
}

static void print_bytes(strbuf *b, const char *name, const uint8_t *entry, int n)
{
    int32_t wide[TILE_MAX_RANK];

    for (int i = 0; i < n; i++)
        wide[i] = entry[i];
    print_counts(b, name, wide, n);
}

void layout_print_as(strbuf *b, const ir_layout *lay, const char *name, const char *parent)
{
    sb_fmt(b, "#%s = %s(", name, kind_name[lay->kind]);
    switch (lay->kind) {
    case LAYOUT_BLOCKED:
        print_counts(b, "regs", lay->regs, lay->rank);
        print_counts(b, ", lanes", lay->lanes, lay->rank);
        print_counts(b, ", warps", lay->warps, lay->rank);
        print_bytes(b, ", order", lay->order, lay->rank);
        break;
    case LAYOUT_MMA:
    case LAYOUT_MMA_A:
        print_counts(b, "warps", lay->warps, 2);
        break;
    case LAYOUT_SLICE:
    case LAYOUT_LANES:
        sb_fmt(b, "#%s, dim=%d", parent, lay->dim);
        break;
    case LAYOUT_TRANS:
        sb_fmt(b, "#%s", parent);
        print_bytes(b, ", perm", lay->perm, lay->rank);
        break;
    case LAYOUT_SHARED:
        sb_fmt(b, "row=%d", lay->row);
        break;
    }
    sb_char(b, ')');
}

void layout_print(strbuf *b, const ir_fn *fn, uint16_t lay)
{
    const ir_layout *p = layout_at(fn, lay);
    const char *parent = p->parent ? layout_at(fn, p->parent)->name : "";

    layout_print_as(b, p, p->name, parent);
}
