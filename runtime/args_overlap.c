#include "runtime/args.h"

/* A tensor's elements as byte distances from its base. Extents of 1 are left out. */
typedef struct lattice {
    uint64_t base;
    int n;
    uint64_t step[VIEW_MAX_RANK]; /* absolute */
    int64_t reach[VIEW_MAX_RANK]; /* (extent - 1) * stride, with its sign */
    int64_t bytes;
} lattice;

static lattice lattice_of(const tensor_arg *t, int rank, int bytes)
{
    lattice l = {.base = (uintptr_t)t->base, .bytes = bytes};

    for (int d = 0; d < rank; d++) {
        if (t->extent[d] <= 1 || t->stride[d] == 0)
            continue;
        int64_t step = t->stride[d] * bytes;
        l.step[l.n] = (uint64_t)(step < 0 ? -step : step);
        l.reach[l.n++] = step * (t->extent[d] - 1);
    }
    return l;
}

/* The bytes that l touches, modulo m, lie in [*lo, *lo + *size): dimensions whose step is a
 * multiple of m vanish, the others span an interval. */
static void fold(const lattice *l, uint64_t m, uint64_t *lo, uint64_t *size)
{
    uint64_t at = l->base;
    uint64_t width = (uint64_t)l->bytes;

    for (int i = 0; i < l->n; i++) {
        if (l->step[i] % m == 0)
            continue;
        if (l->reach[i] < 0)
            at -= (uint64_t)-l->reach[i];
        width += (uint64_t)(l->reach[i] < 0 ? -l->reach[i] : l->reach[i]);
    }
    *lo = at % m;
    *size = width;
}

static bool apart_modulo(const lattice *a, const lattice *b, uint64_t m)
{
    uint64_t lo_a, size_a, lo_b, size_b;

    fold(a, m, &lo_a, &size_a);
    fold(b, m, &lo_b, &size_b);
    uint64_t ahead = (lo_b - lo_a + m) % m; /* from a up to b, around the circle */
    return size_a <= ahead && size_b <= m - ahead;
}

/* Two slices of one buffer (columns, every other row, the q, k and v of a packed projection) are
 * apart modulo one of their strides. */
bool tensors_may_overlap(const tensor_arg *ta, int rank_a, int bytes_a, const tensor_arg *tb,
                         int rank_b, int bytes_b)
{
    lattice a = lattice_of(ta, rank_a, bytes_a), b = lattice_of(tb, rank_b, bytes_b);

    for (int i = 0; i < a.n; i++)
        if (apart_modulo(&a, &b, a.step[i]))
            return false;
    for (int i = 0; i < b.n; i++)
        if (apart_modulo(&a, &b, b.step[i]))
            return false;
    return true;
}

static bool share_memory(const resolver *r, uint32_t i, uint32_t j)
{
    if (r->lo[i] >= r->hi[j] || r->lo[j] >= r->hi[i])
        return false;
    return tensors_may_overlap(&r->out->tensor[i], r->sig->param[i].rank, resolved_bytes(r, i),
                               &r->out->tensor[j], r->sig->param[j].rank, resolved_bytes(r, j));
}

tw_status check_overlaps(const resolver *r)
{
    const sig_param *p = r->sig->param;

    for (uint32_t i = 0; i < r->sig->nparams; i++) {
        if (!p[i].is_tensor || p[i].direction == DIR_IN)
            continue;
        for (uint32_t j = 0; j < r->sig->nparams; j++) {
            bool seen = j < i && p[j].direction != DIR_IN;
            if (j == i || !p[j].is_tensor || seen || !share_memory(r, i, j))
                continue;
            return ARG_ERROR("a tensor that is written may share no element with another argument",
                             "tensors '%s' (written) and '%s' overlap in memory", p[i].name,
                             p[j].name);
        }
    }
    return TW_OK;
}
