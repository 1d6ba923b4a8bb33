#include "compiler/target/interp/interp_memory.h"
#include <string.h>

/* ---- slices ---- */

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

/* Level 2: only what the warp holds. */
static void hold_part(const interp_agent *ag, slice *s, const interp_hold *h)
{
    s->hold = h;
    for (int d = 0; d < h->rank; d++) {
        int at = TILE_MAX_RANK - h->rank + d;
        s->n[at] = h->n[d];
        s->held[at] = h->at[d];
        s->move[at] = h->move[ag->warp - h->first][d];
    }
}

/* tile: the value whose elements are accessed, or 0 for all of them. */
static bool slice_make(interp_agent *ag, const ir_op *op, ir_val tile, slice *s)
{
    ir_type ty = type_of(ag, op->args[0]);
    int64_t param = cells_of(ag, op->args[0])->i;
    const interp_view *view = &ag->launch.arg[param].view;
    int at = TILE_MAX_RANK;

    for (uint32_t d = 0; d < ty.rank; d++)
        at -= op->attr[0].ints.at[d] != 0;
    *s = (slice){.base = view->base, .dtype = ty.dtype, .n = {1, 1, 1, 1}, .hi = {1, 1, 1, 1}};
    for (uint32_t d = 0; d < ty.rank; d++) {
        if (!add_dimension(ag, op, view, d, s, &at))
            return false;
    }
    if (ag->block) {
        s->number = interp_op_number(ag->p, op);
        s->races = ag->p->fn->params.at[param].direction != DIR_IN;
        if (tile && ag->p->hold[tile])
            hold_part(ag, s, ag->p->hold[tile]);
    }
    return true;
}

/* Adds what element i of extent d lies away from the first; false when it is outside. */
static bool step(const slice *s, int d, int64_t i, uint64_t *offset)
{
    int64_t place = s->held[d] ? s->held[d][i] + s->move[d] : i;
    int64_t by = s->index[d] ? s->index[d][i].i : place;

    if (s->index[d] ? by < 0 || by >= s->all[d] : place < s->lo[d] || place >= s->hi[d])
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

/* The next element of the row that is inside, from *i on: where it is, or NULL. */
static unsigned char *next_inside(const slice *s, slice_row r, int64_t *i)
{
    const int last = TILE_MAX_RANK - 1;
    int64_t end = s->held[last] ? s->n[last] : s->hi[last];

    if (!s->held[last] && *i < s->lo[last])
        *i = s->lo[last];
    for (; *i < end; ++*i) {
        uint64_t offset = r.offset;
        if (step(s, last, *i, &offset))
            return s->base + (int64_t)offset;
    }
    return NULL;
}

static bool load_row(interp_agent *ag, const ir_op *op, const slice *s, slice_row r, ir_scalar *out)
{
    unsigned char *p;

    for (int64_t i = 0; (p = next_inside(s, r, &i)); i++) {
        if (s->races && !interp_touch_element(ag, op, s, r.cell + i, p, TOUCH_READ))
            return false;
        out[r.cell + i] = element_read(s->dtype, p);
    }
    return true;
}

static bool store_row(interp_agent *ag, const ir_op *op, const slice *s, slice_row r,
                      const ir_scalar *in)
{
    unsigned char *p;

    for (int64_t i = 0; (p = next_inside(s, r, &i)); i++) {
        if (s->races && !interp_touch_element(ag, op, s, r.cell + i, p, TOUCH_WRITE))
            return false;
        element_write(s->dtype, p, in[r.cell + i]);
    }
    return true;
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

static bool atomic_row(interp_agent *ag, const ir_op *op, const slice *s, slice_row r)
{
    unsigned char *p;
    const ir_scalar *v = cells_of(ag, op->args[op->nargs - 1]), *expected = NULL;
    ir_scalar *out = cells_of(ag, op->res);

    if (op->code == OP_ATOMIC_CAS)
        expected = cells_of(ag, op->args[op->nargs - 2]);
    for (int64_t i = 0; (p = next_inside(s, r, &i)); i++) {
        int64_t at = r.cell + i;
        if (s->races && !interp_touch_element(ag, op, s, at, p, TOUCH_ATOMIC))
            return false;
        out[at] = update(ag, op, s->dtype, p, v[at], expected ? &expected[at] : NULL);
    }
    return true;
}

bool interp_atomic(interp_agent *ag, const ir_op *op)
{
    slice_row r;
    slice s;

    if (!slice_make(ag, op, op->res, &s))
        return false;
    if (ag->block && interp_has_result(ag, op))
        return true;
    memset(cells_of(ag, op->res), 0, ag->p->length[op->res] * sizeof(ir_scalar));
    for (int64_t row = 0; row < s.n[0] * s.n[1] * s.n[2]; row++) {
        if (row_at(&s, row, &r) && !atomic_row(ag, op, &s, r))
            return false;
    }
    return !ag->block || interp_keep_result(ag, op);
}

/* ---- loads, stores ---- */

bool interp_load(interp_agent *ag, const ir_op *op)
{
    ir_scalar *out = cells_of(ag, op->res);
    slice_row r;
    slice s;

    if (!slice_make(ag, op, op->res, &s))
        return false;
    memset(out, 0, ag->p->length[op->res] * sizeof *out);
    for (int64_t row = 0; row < s.n[0] * s.n[1] * s.n[2]; row++) {
        if (row_at(&s, row, &r) && !load_row(ag, op, &s, r, out))
            return false;
    }
    return true;
}

/* A scalar is stored by the first thread of the group. */
static bool acts(const interp_agent *ag, ir_val v)
{
    const interp_hold *h = ag->block ? ag->p->hold[v] : NULL;

    return !ag->block || (h ? h->acts[ag->warp - h->first] : ag->warp == ag->first);
}

bool interp_store(interp_agent *ag, const ir_op *op)
{
    ir_val v = op->args[op->nargs - 1];
    slice_row r;
    slice s;

    if (!slice_make(ag, op, v, &s))
        return false;
    for (int64_t row = 0; row < s.n[0] * s.n[1] * s.n[2] && acts(ag, v); row++) {
        if (row_at(&s, row, &r) && !store_row(ag, op, &s, r, cells_of(ag, v)))
            return false;
    }
    return true;
}

bool interp_gather(interp_agent *ag, const ir_op *op, unsigned char *data)
{
    size_t size = (size_t)dtype_bytes((enum dtype)type_of(ag, op->args[0]).dtype);
    unsigned char *p;
    slice_row r;
    slice s;

    if (!slice_make(ag, op, 0, &s))
        return false;
    int64_t rows = s.n[0] * s.n[1] * s.n[2];
    memset(data, 0, (size_t)(rows * s.n[TILE_MAX_RANK - 1]) * size);
    for (int64_t row = 0; row < rows; row++) {
        if (!row_at(&s, row, &r))
            continue;
        for (int64_t i = 0; (p = next_inside(&s, r, &i)); i++) {
            if (s.races && !interp_touch_element(ag, op, &s, r.cell + i, p, TOUCH_READ))
                return false;
            memcpy(data + (size_t)(r.cell + i) * size, p, size);
        }
    }
    return true;
}
