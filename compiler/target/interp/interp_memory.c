#include "compiler/target/interp/interp_agent.h"
#include <string.h>

/* ---- slices ---- */

/* The part of a tensor that an access names, with leading extents of 1 up to rank 4. Elements
 * lo..hi - 1 of each extent are inside the tensor; where a tile gives the indices, those in 0..all
 * - 1 are. Offsets are unsigned: the one of a first element that is far outside may wrap, and comes
 * back when an element inside is counted from it. */
typedef struct slice {
    unsigned char *base;
    enum dtype dtype;
    bool outside;    /* an index that picks one element is outside: so is the whole slice */
    uint64_t offset; /* in bytes, of the first element */
    uint64_t stride[TILE_MAX_RANK];
    int64_t n[TILE_MAX_RANK], lo[TILE_MAX_RANK], hi[TILE_MAX_RANK];
    const ir_scalar *index[TILE_MAX_RANK]; /* a tile of indices, or NULL */
    int64_t all[TILE_MAX_RANK];
} slice;

static int64_t clamp(int64_t x, int64_t lo, int64_t hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/* The same for indices that a tile gives. */
static bool add_indices(interp_agent *ag, const ir_op *op, const interp_view *view, uint32_t d,
                        slice *s, int *at)
{
    const ir_scalar *index = cells_of(ag, op->args[1 + d]);
    int64_t n = op->attr[0].ints.at[d], all = view->extent[d];

    for (int64_t i = 0; i < n && (op->attr[1].i >> d & 1); i++) {
        if (index[i].i < 0 || index[i].i >= all)
            return interp_fail(ag, TW_E_INTERNAL, op,
                               "%s: dimension %u was proved inside, but %lld is not in 0..%lld",
                               op_info(op->code)->name, d, (long long)index[i].i,
                               (long long)all - 1);
    }
    s->n[*at] = s->hi[*at] = n;
    s->stride[*at] = (uint64_t)view->stride[d] * (uint64_t)dtype_bytes(s->dtype);
    s->index[*at] = index;
    s->all[(*at)++] = all;
    return true;
}

/* Adds dimension d of the view; *at is the next free extent of the slice. */
static bool add_dimension(interp_agent *ag, const ir_op *op, const interp_view *view, uint32_t d,
                          slice *s, int *at)
{
    if (type_of(ag, op->args[1 + d]).kind == TYPE_TILE)
        return add_indices(ag, op, view, d, s, at);
    int64_t first = cells_of(ag, op->args[1 + d])->i;
    int64_t n = op->attr[0].ints.at[d], all = view->extent[d], count = n ? n : 1;
    uint64_t stride = (uint64_t)view->stride[d] * (uint64_t)dtype_bytes(s->dtype);
    bool inside = first >= 0 && first <= all - count;

    if ((op->attr[1].i >> d & 1) && !inside)
        return interp_fail(ag, TW_E_INTERNAL, op,
                           "%s: dimension %u was proved inside, but %lld..%lld is not in 0..%lld",
                           op_info(op->code)->name, d, (long long)first,
                           (long long)(first + count - 1), (long long)all - 1);
    s->offset += (uint64_t)first * stride;
    if (!n) {
        s->outside |= !inside;
        return true;
    }
    s->n[*at] = n;
    s->stride[*at] = stride;
    s->lo[*at] = clamp(-first, 0, n);
    s->hi[*at] = clamp(all - first, s->lo[*at], n);
    ++*at;
    return true;
}

static bool slice_make(interp_agent *ag, const ir_op *op, slice *s)
{
    ir_type ty = type_of(ag, op->args[0]);
    const interp_view *view = &ag->launch.arg[cells_of(ag, op->args[0])->i].view;
    int at = TILE_MAX_RANK;

    for (uint32_t d = 0; d < ty.rank; d++)
        at -= op->attr[0].ints.at[d] != 0;
    *s = (slice){.base = view->base, .dtype = ty.dtype, .n = {1, 1, 1, 1}, .hi = {1, 1, 1, 1}};
    for (uint32_t d = 0; d < ty.rank; d++) {
        if (!add_dimension(ag, op, view, d, s, &at))
            return false;
    }
    return true;
}

/* Adds what element i of extent d lies away from the first; false when it is outside. */
static bool step(const slice *s, int d, int64_t i, uint64_t *offset)
{
    int64_t by = s->index[d] ? s->index[d][i].i : i;

    if (s->index[d] ? by < 0 || by >= s->all[d] : i < s->lo[d] || i >= s->hi[d])
        return false;
    *offset += (uint64_t)by * s->stride[d];
    return true;
}

/* A row of the slice, along its last extent. */
typedef struct slice_row {
    uint64_t offset; /* of the row's element 0 */
    int64_t cell;    /* of the row's element 0 */
} slice_row;

/* False when no element of the row is inside. */
static bool row_at(const slice *s, int64_t row, slice_row *r)
{
    int64_t rest = row;

    r->offset = s->offset;
    r->cell = row * s->n[TILE_MAX_RANK - 1];
    for (int d = TILE_MAX_RANK - 2; d >= 0; d--) {
        if (!step(s, d, rest % s->n[d], &r->offset))
            return false;
        rest /= s->n[d];
    }
    return !s->outside;
}

static void load_row(const slice *s, slice_row r, ir_scalar *out)
{
    const int last = TILE_MAX_RANK - 1;

    for (int64_t i = s->lo[last]; i < s->hi[last]; i++) {
        uint64_t offset = r.offset;

        if (step(s, last, i, &offset))
            out[r.cell + i] = element_read(s->dtype, s->base + (int64_t)offset);
    }
}

static void store_row(const slice *s, slice_row r, const ir_scalar *in)
{
    const int last = TILE_MAX_RANK - 1;

    for (int64_t i = s->lo[last]; i < s->hi[last]; i++) {
        uint64_t offset = r.offset;

        if (step(s, last, i, &offset))
            element_write(s->dtype, s->base + (int64_t)offset, in[r.cell + i]);
    }
}

/* ---- atomics ---- */

/* What an atomic op makes of the element x. */
static ir_scalar updated(const interp_agent *ag, const ir_op *op, enum dtype t, ir_scalar x,
                         ir_scalar v)
{
    ir_scalar arg[] = {x, v};

    if (op->code == OP_ATOMIC_XCHG || op->code == OP_ATOMIC_CAS)
        return v;
    enum ir_opcode code = op->code == OP_ATOMIC_ADD   ? OP_ADD
                          : op->code == OP_ATOMIC_MAX ? OP_MAX
                                                      : OP_MIN;
    return eval_op(code, t, t, arg, ag->launch.f64);
}

static uint64_t word_load(const void *p, bool wide)
{
    return wide ? __atomic_load_n((const uint64_t *)p, __ATOMIC_RELAXED)
                : __atomic_load_n((const uint32_t *)p, __ATOMIC_RELAXED);
}

/* Replaces *old, which becomes what is there when that is another. */
static bool word_replace(void *p, bool wide, uint64_t *old, uint64_t to)
{
    uint32_t narrow = (uint32_t)*old;

    if (wide)
        return __atomic_compare_exchange_n((uint64_t *)p, old, to, false, __ATOMIC_RELAXED,
                                           __ATOMIC_RELAXED);
    bool done = __atomic_compare_exchange_n((uint32_t *)p, &narrow, (uint32_t)to, false,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    *old = narrow;
    return done;
}

static ir_scalar from_word(enum dtype t, uint64_t word)
{
    uint32_t narrow = (uint32_t)word;

    return dtype_bits(t) == 64 ? element_read(t, &word) : element_read(t, &narrow);
}

static uint64_t to_word(enum dtype t, ir_scalar v)
{
    uint64_t word = 0;
    uint32_t narrow = 0;

    element_write(t, dtype_bits(t) == 64 ? (void *)&word : (void *)&narrow, v);
    return dtype_bits(t) == 64 ? word : narrow;
}

/* v: what the op does with the element at p; expected: only if it is this one, or NULL. */
static ir_scalar update(const interp_agent *ag, const ir_op *op, enum dtype t, void *p,
                        ir_scalar v, const ir_scalar *expected)
{
    bool wide = dtype_bits(t) == 64;
    uint64_t old = word_load(p, wide);

    do {
        if (expected && old != to_word(t, *expected))
            break;
    } while (!word_replace(p, wide, &old, to_word(t, updated(ag, op, t, from_word(t, old), v))));
    return from_word(t, old);
}

static void atomic_row(interp_agent *ag, const ir_op *op, const slice *s, slice_row r)
{
    const int last = TILE_MAX_RANK - 1;
    const ir_scalar *v = cells_of(ag, op->args[op->nargs - 1]), *expected = NULL;
    ir_scalar *out = cells_of(ag, op->res);

    if (op->code == OP_ATOMIC_CAS)
        expected = cells_of(ag, op->args[op->nargs - 2]);
    for (int64_t i = s->lo[last]; i < s->hi[last]; i++) {
        uint64_t offset = r.offset;
        int64_t at = r.cell + i;

        if (step(s, last, i, &offset))
            out[at] = update(ag, op, s->dtype, s->base + (int64_t)offset, v[at],
                             expected ? &expected[at] : NULL);
    }
}

bool interp_atomic(interp_agent *ag, const ir_op *op)
{
    slice_row r;
    slice s;

    if (!slice_make(ag, op, &s))
        return false;
    memset(cells_of(ag, op->res), 0, ag->p->length[op->res] * sizeof(ir_scalar));
    for (int64_t row = 0; row < s.n[0] * s.n[1] * s.n[2]; row++) {
        if (row_at(&s, row, &r))
            atomic_row(ag, op, &s, r);
    }
    return true;
}

/* ---- loads, stores ---- */

bool interp_load(interp_agent *ag, const ir_op *op)
{
    ir_scalar *out = cells_of(ag, op->res);
    slice_row r;
    slice s;

    if (!slice_make(ag, op, &s))
        return false;
    memset(out, 0, ag->p->length[op->res] * sizeof *out);
    for (int64_t row = 0; row < s.n[0] * s.n[1] * s.n[2]; row++) {
        if (row_at(&s, row, &r))
            load_row(&s, r, out);
    }
    return true;
}

bool interp_store(interp_agent *ag, const ir_op *op)
{
    const ir_scalar *in = cells_of(ag, op->args[op->nargs - 1]);
    slice_row r;
    slice s;

    if (!slice_make(ag, op, &s))
        return false;
    for (int64_t row = 0; row < s.n[0] * s.n[1] * s.n[2]; row++) {
        if (row_at(&s, row, &r))
            store_row(&s, r, in);
    }
    return true;
}
