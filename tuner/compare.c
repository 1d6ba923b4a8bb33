#include "tuner/compare.h"
#include "compiler/ir/element.h"
#include <math.h>
#include <string.h>

/* A few hundred roundings of the dtype: dots of some thousand terms reordered, probabilities
 * rounded to the dtype on the way. Real mistakes are of the size of the values. */
double compare_tolerance(enum dtype t)
{
    switch (t) {
    case DT_BF16:
        return 4e-2;
    case DT_F16:
        return 1e-2;
    case DT_F32:
        return 2e-4;
    case DT_F64:
        return 1e-9;
    case DT_I1:
    case DT_I8:
    case DT_I16:
    case DT_I32:
    case DT_I64:
    case DT_U8:
    case DT_U16:
    case DT_U32:
    case DT_U64:
    case DT_COUNT:
        break;
    }
    return 0.0;
}

double element_value(enum dtype t, const void *p)
{
    ir_scalar v = element_read(t, p);

    if (dtype_is_float(t))
        return v.f;
    return t == DT_U64 ? (double)(uint64_t)v.i : (double)v.i;
}

/* ---- walking over the elements -------------------------------------------------------------- */

typedef struct walk {
    const compare_view *v;
    int64_t at[VIEW_MAX_RANK];
    int64_t offset; /* in elements */
} walk;

static bool walk_start(walk *w, const compare_view *v)
{
    memset(w, 0, sizeof *w);
    w->v = v;
    for (int i = 0; i < v->rank; i++)
        if (v->extent[i] <= 0)
            return false;
    return true;
}

static bool walk_next(walk *w)
{
    for (int i = w->v->rank; i-- > 0;) {
        w->offset += w->v->stride[i];
        if (++w->at[i] < w->v->extent[i])
            return true;
        w->offset -= w->at[i] * w->v->stride[i];
        w->at[i] = 0;
    }
    return false;
}

typedef struct comparison {
    const compare_view *v;
    size_t bytes;
    const char *got, *want, *initial;
} comparison;

static const char *element(const comparison *c, const char *base, int64_t offset)
{
    return base + offset * (int64_t)c->bytes;
}

static bool counts(const comparison *c, int64_t offset)
{
    return !c->initial ||
           memcmp(element(c, c->want, offset), element(c, c->initial, offset), c->bytes) != 0;
}

static double root_mean_square(const comparison *c)
{
    double sum = 0.0;
    int64_t n = 0;
    walk w;

    if (!walk_start(&w, c->v))
        return 0.0;
    do {
        if (!counts(c, w.offset))
            continue;
        double x = element_value(c->v->dtype, element(c, c->want, w.offset));
        if (isfinite(x)) {
            sum += x * x;
            n++;
        }
    } while (walk_next(&w));
    return n ? sqrt(sum / (double)n) : 0.0;
}

static bool agree(double got, double want, double relative, double absolute)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got))
        return isinf(want) && isinf(got) && signbit(want) == signbit(got);
    return fabs(got - want) <= fmax(relative * fabs(want), absolute);
}

void compare_views(const compare_view *v, const void *got, const void *want, const void *initial,
                   mismatch *out, int64_t *compared)
{
    comparison c = {v, (size_t)dtype_bytes(v->dtype), got, want, initial};
    double relative = compare_tolerance(v->dtype);
    double absolute = relative > 0.0 ? relative * root_mean_square(&c) : 0.0;
    int64_t n = 0;
    walk w;

    memset(out, 0, sizeof *out);
    bool more = walk_start(&w, v);
    for (; more && !out->found; more = walk_next(&w)) {
        const char *x = element(&c, c.got, w.offset), *y = element(&c, c.want, w.offset);
        if (!counts(&c, w.offset))
            continue;
        n++;
        if (memcmp(x, y, c.bytes) == 0)
            continue;
        out->got = element_value(v->dtype, x);
        out->want = element_value(v->dtype, y);
        out->found = relative <= 0.0 || !agree(out->got, out->want, relative, absolute);
        memcpy(out->index, w.at, sizeof w.at);
    }
    if (compared)
        *compared = n;
}
