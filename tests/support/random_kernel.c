#include "tests/support/random_kernel.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_RANK = 3, MAX_VALUES = 96, MAX_DEPTH = 3 };

/* dtype: 'f' f32, 'i' i32, 'b' i1. Floats and integers lie between -limit and limit. */
typedef struct value {
    int id, rank, extent[MAX_RANK];
    char dtype;
} value;

typedef struct writer {
    num_random r;
    char *text;
    size_t n;
    value known[MAX_VALUES];
    int nknown, next_id, depth, planes[2];
    int extent[3]; /* the extents that tiles of this kernel are made of */
    bool has_fn;   /* f(v), which a kernel that extends this one gives */
    bool atomics;  /* in the last plane of yi that belongs to a program */
} writer;

static int below(writer *w, int n)
{
    return (int)num_below(&w->r, n);
}

static void put(writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(writer *w, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(w->text + w->n, RANDOM_TEXT - w->n, fmt, ap);
    va_end(ap);
    w->n += (size_t)n;
    if (w->n >= RANDOM_TEXT)
        w->n = RANDOM_TEXT - 1; /* cut: a kernel that does not parse fails its test */
}

/* ---- values ---- */

static value *declare(writer *w, char dtype, int rank, const int *extent)
{
    value *v = &w->known[w->nknown++];

    *v = (value){.id = w->next_id++, .rank = rank, .dtype = dtype};
    for (int d = 0; d < rank; d++)
        v->extent[d] = extent[d];
    put(w, "%*slet v%d = ", 4 + 4 * w->depth, "", v->id);
    return v;
}

static bool like(const value *a, const value *b)
{
    return a->rank == b->rank && !memcmp(a->extent, b->extent, (size_t)a->rank * sizeof(int));
}

/* A known value that fits, or NULL: often one of the newest, so that little is computed in vain.
 * dtype 0: a number of either kind; rank -1: any. */
static const value *pick(writer *w, char dtype, int rank, const value *shape)
{
    int start = w->nknown ? below(w, below(w, 3) ? w->nknown / 4 + 1 : w->nknown) : 0;

    for (int i = 0; i < w->nknown; i++) {
        const value *v = &w->known[w->nknown - 1 - (start + i) % w->nknown];

        if ((dtype ? v->dtype == dtype : v->dtype != 'b') && (rank < 0 || v->rank == rank) &&
            (!shape || like(v, shape)))
            return v;
    }
    return NULL;
}

static const char *type_name(char dtype)
{
    return dtype == 'f' ? "f32" : dtype == 'i' ? "i32" : "i1";
}

/* An i32 scalar that is a start of a slice: near both ends of what it indexes, or anywhere. */
static void put_start(writer *w)
{
    static const int starts[] = {0, 0, 1, 3, 8, 16, 30, -2, -9, 61};

    if (below(w, 3) == 0)
        put(w, "program_id(0) * %d + ", 1 + below(w, 20));
    put(w, "n + %d", starts[below(w, 10)]);
}

/* ---- statements that make a value ---- */

static void make_load(writer *w)
{
    int extent[2] = {w->extent[below(w, 3)], w->extent[below(w, 3)]}, rank = 1 + below(w, 2);
    bool column = rank == 1 && below(w, 2);
    char dtype = below(w, 3) ? 'f' : 'i';

    declare(w, dtype, rank, extent);
    put(w, "load(%s[", dtype == 'f' ? "x" : "w");
    put_start(w);
    if (rank == 2 || column)
        put(w, " :+ %d", extent[0]);
    put(w, ", ");
    put_start(w);
    if (!column)
        put(w, " :+ %d", extent[rank - 1]);
    put(w, "]);\n");
}

static void make_ramp(writer *w)
{
    int n = w->extent[below(w, 3)], first = below(w, 9) - 4;

    declare(w, 'i', 1, &n);
    put(w, "arange(%d, %d) %% 9;\n", first, first + n);
}

/* Two numbers of one type, as a op b, brought back between -8 and 8. */
static void make_binary(writer *w)
{
    static const char *const whole[] = {"+", "-", "*", "/", "%", "&", "|", "^"};
    const value *a = pick(w, 0, -1, NULL), *b = a ? pick(w, a->dtype, -1, a) : NULL;

    if (!b)
        return;
    value x = *a, y = *b;
    declare(w, x.dtype, x.rank, x.extent);
    int which = below(w, 6);
    if (which == 0)
        put(w, "maximum(v%d, v%d);\n", x.id, y.id);
    else if (which == 1)
        put(w, "minimum(v%d, v%d + 1);\n", x.id, y.id);
    else
        put(w, "clamp(v%d %s v%d, -8, 8);\n", x.id, whole[below(w, x.dtype == 'i' ? 8 : 3)], y.id);
}

/* Tiles of ranks 1 and 2 (or a scalar) that share an extent, widened. */
static void make_widened(writer *w)
{
    const value *a = pick(w, 0, 2, NULL);

    if (!a)
        return;
    value x = *a;
    int along = below(w, 2);
    const value *b = pick(w, x.dtype, 1, NULL);
    if (!b || b->extent[0] != x.extent[along])
        return;
    value y = *b;
    declare(w, x.dtype, 2, x.extent);
    put(w, "clamp(v%d %s v%d%s, -8, 8);\n", x.id, below(w, 2) ? "+" : "-", y.id,
        along ? "[None, :]" : "[:, None]");
}

static void make_outer(writer *w)
{
    const value *a = pick(w, 0, 1, NULL), *b = a ? pick(w, a->dtype, 1, NULL) : NULL;

    if (!b)
        return;
    value x = *a, y = *b;
    declare(w, x.dtype, 2, (int[]){x.extent[0], y.extent[0]});
    put(w, "clamp(v%d[:, None] * v%d[None, :], -8, 8);\n", x.id, y.id);
}

static void make_unary(writer *w)
{
    const value *a = pick(w, 0, -1, NULL);

    if (!a)
        return;
    value x = *a;
    int which = below(w, 5);
    if (which == 4) { /* the other kind of number */
        declare(w, x.dtype == 'f' ? 'i' : 'f', x.rank, x.extent);
        put(w, "cast(v%d, %s);\n", x.id, type_name(x.dtype == 'f' ? 'i' : 'f'));
        return;
    }
    declare(w, x.dtype, x.rank, x.extent);
    if (which == 0)
        put(w, "-v%d;\n", x.id);
    else if (which == 1)
        put(w, "abs(v%d);\n", x.id);
    else if (x.dtype == 'f')
        put(w, "%s(v%d * 0.5);\n", which == 2 ? "floor" : "ceil", x.id);
    else
        put(w, which == 2 ? "~v%d & 7;\n" : "v%d >> 1;\n", x.id);
}

static void make_truth(writer *w)
{
    static const char *const compare[] = {"<", "<=", ">", ">=", "==", "!="};
    static const char *const logic[] = {"&", "|", "^"};
    const value *a = pick(w, below(w, 3) ? 0 : 'b', -1, NULL);
    const value *b = a ? pick(w, a->dtype, -1, a) : NULL;

    if (!b)
        return;
    value x = *a, y = *b;
    declare(w, 'b', x.rank, x.extent);
    put(w, "v%d %s v%d;\n", x.id, x.dtype == 'b' ? logic[below(w, 3)] : compare[below(w, 6)], y.id);
}

static void make_choice(writer *w)
{
    const value *c = pick(w, 'b', -1, NULL), *a = c ? pick(w, 0, -1, c) : NULL;
    const value *b = a ? pick(w, a->dtype, -1, a) : NULL;

    if (!b)
        return;
    value x = *a, y = *b, z = *c;
    declare(w, x.dtype, x.rank, x.extent);
    put(w, "where(v%d, v%d, v%d);\n", z.id, x.id, y.id);
}

static void make_trans(writer *w)
{
    const value *a = pick(w, 0, 2, NULL);

    if (!a)
        return;
    value x = *a;
    declare(w, x.dtype, 2, (int[]){x.extent[1], x.extent[0]});
    put(w, "trans(v%d);\n", x.id);
}

static void make_reduction(writer *w)
{
    static const char *const name[] = {"max", "min", "sum"};
    bool truth = below(w, 5) == 0;
    const value *a = pick(w, truth ? 'b' : 0, 1 + below(w, 3), NULL);

    if (!a)
        return;
    value x = *a;
    int axis = below(w, x.rank), rest[MAX_RANK], n = 0;
    for (int d = 0; d < x.rank; d++) {
        if (d != axis)
            rest[n++] = x.extent[d];
    }
    declare(w, truth ? 'i' : x.dtype, n, rest);
    put(w, "clamp(%s(v%d, %d), -8, 8);\n", name[truth ? 2 : below(w, 3)], x.id, axis);
}

static void make_cube(writer *w)
{
    const value *a = pick(w, 0, 2, NULL);
    int n = 1 + below(w, 5);

    if (!a || a->extent[0] * a->extent[1] > 1200)
        return;
    value x = *a;
    declare(w, x.dtype, 3, (int[]){x.extent[1], n, x.extent[0]});
    put(w, "trans(broadcast(v%d[None, :, :], %d, %d, %d), 2, 0, 1);\n", x.id, n, x.extent[0],
        x.extent[1]);
}

static void make_dot(writer *w)
{
    const value *a = pick(w, 0, 2, NULL), *b = a ? pick(w, a->dtype, 2, NULL) : NULL;

    if (!b)
        return;
    value x = *a, y = *b;
    bool flip = x.extent[1] != y.extent[0];
    if (flip && x.extent[1] != y.extent[1])
        return;
    declare(w, x.dtype, 2, (int[]){x.extent[0], y.extent[flip ? 0 : 1]});
    put(w, flip ? "clamp(dot(v%d, trans(v%d)), -8, 8);\n" : "clamp(dot(v%d, v%d), -8, 8);\n", x.id,
        y.id);
}

/* Tiles of indices: rows, columns, elements, or both at once. */
static void make_gather(writer *w)
{
    const value *a = pick(w, 'i', 1, NULL), *b = pick(w, 'i', 1, NULL);
    int which = below(w, 4), e = w->extent[below(w, 3)], factor = 1 + below(w, 5);
    char dtype = below(w, 3) ? 'f' : 'i';

    if (!a)
        return;
    value x = *a, y = *b;
    if (which == 0)
        declare(w, dtype, 2, (int[]){x.extent[0], e});
    else if (which == 1)
        declare(w, dtype, 2, (int[]){e, x.extent[0]});
    else
        declare(w, dtype, which - 1, (int[]){x.extent[0], y.extent[0]});
    put(w, "load(%s[", dtype == 'f' ? "x" : "w");
    if (which == 1)
        put_start(w), put(w, " :+ %d, ", e);
    put(w, "v%d * %d + %d", x.id, factor, below(w, 30) - 3);
    if (which == 0)
        put(w, ", "), put_start(w), put(w, " :+ %d", e);
    else if (which == 2)
        put(w, ", "), put_start(w);
    else if (which == 3)
        put(w, ", v%d + %d", y.id, below(w, 12));
    put(w, "]);\n");
}

static void make_scan(writer *w)
{
    const value *a = pick(w, 0, 1 + below(w, 3), NULL);

    if (!a)
        return;
    value x = *a;
    int axis = below(w, x.rank), which = below(w, 4);
    declare(w, x.dtype, x.rank, x.extent);
    if (which == 0)
        put(w, "clamp(cumsum(v%d, %d), -8, 8);\n", x.id, axis);
    else if (which == 1)
        put(w, "cumprod(clamp(v%d, -1, 1), %d);\n", x.id, axis);
    else
        put(w, "scan(v%d, %d, %s);\n", x.id, axis, which == 2 ? "farther" : "larger");
}

/* What reduces by a function, or to an index. */
static void make_fold(writer *w)
{
    const value *a = pick(w, 0, 1 + below(w, 3), NULL);

    if (!a)
        return;
    value x = *a;
    int axis = below(w, x.rank), which = below(w, 5), rest[MAX_RANK], n = 0;
    for (int d = 0; d < x.rank; d++) {
        if (d != axis)
            rest[n++] = x.extent[d];
    }
    declare(w, which < 2 ? 'i' : x.dtype, n, rest);
    if (which < 2)
        put(w, "minimum(%s(v%d, %d), 8);\n", which ? "argmax" : "argmin", x.id, axis);
    else
        put(w, "clamp(reduce(v%d, %d, %s), -8, 8);\n", x.id, axis,
            which == 2 && x.dtype == 'i' ? "crossed" : which == 3 ? "farther" : "larger");
}

static void make_reshaped(writer *w)
{
    const value *a = pick(w, 0, 2, NULL);

    if (!a)
        return;
    value x = *a;
    int all = x.extent[0] * x.extent[1];
    bool flat = all <= 40 && below(w, 2);
    declare(w, x.dtype, flat ? 1 : 2, flat ? &all : (int[]){x.extent[1], x.extent[0]});
    if (flat)
        put(w, "reshape(v%d, %d);\n", x.id, all);
    else
        put(w, "reshape(v%d, %d, %d);\n", x.id, x.extent[1], x.extent[0]);
}

/* Random numbers, bits, and the function that a kernel which extends this one gives. */
static void make_mixed(writer *w)
{
    const value *a = pick(w, below(w, 2) ? 'i' : 0, -1, NULL);
    int which = below(w, 4);

    if (!a || (which < 3 && a->dtype != 'i') || (which == 3 && !w->has_fn))
        return;
    value x = *a;
    declare(w, which == 1 ? 'f' : x.dtype, x.rank, x.extent);
    if (which == 0)
        put(w, "cast(philox(n + %d, v%d, %d) >> 29, i32);\n", below(w, 9), x.id, below(w, 4));
    else if (which == 1)
        put(w, "floor(uniform(%d, v%d) * 8.0);\n", below(w, 9), x.id);
    else if (which == 2)
        put(w, "bitcast(bitcast(v%d, u32) ^ 5, i32);\n", x.id);
    else
        put(w, "clamp(f(v%d), -8, 8);\n", x.id);
}

/* What was there is a value unless elements are equal: which comes first is not defined. */
static void make_atomic(writer *w)
{
    static const char *const name[] = {"add", "max", "min", "xchg", "cas"};
    const value *a = pick(w, 'i', below(w, 4) ? 1 : 0, NULL), *b = pick(w, 'i', 1, a);

    if (!w->atomics || !a)
        return;
    value x = *a;
    if (x.rank && b && below(w, 3) == 0) {
        put(w, "%*satomic_%s(yi[program_id(0) * %d + %d, v%d * 2 + %d, 3], v%d);\n",
            4 + 4 * w->depth, "", name[below(w, 3)], RANDOM_PLANES, RANDOM_PLANES - 1, b->id,
            below(w, 20), x.id);
        return;
    }
    int which = below(w, 5);
    declare(w, 'i', x.rank, x.extent);
    put(w, "clamp(atomic_%s(yi[program_id(0) * %d + %d, n + %d", name[which], RANDOM_PLANES,
        RANDOM_PLANES - 1, below(w, 16) - 3);
    if (x.rank)
        put(w, " :+ %d", x.extent[0]);
    put(w, ", 3], %sv%d), -8, 8);\n", which == 4 ? "1, " : "", x.id);
}

static void make_value(writer *w)
{
    static void (*const make[])(writer *) = {
        make_load,  make_load,   make_ramp,  make_binary, make_binary,    make_widened,
        make_outer, make_unary,  make_truth, make_choice, make_choice,    make_trans,
        make_dot,   make_dot,    make_cube,  make_outer,  make_reduction, make_reduction,
        make_gather, make_gather, make_scan, make_fold,   make_reshaped,  make_mixed,
        make_atomic,
    };

    if (w->nknown < MAX_VALUES - 4)
        make[below(w, sizeof make / sizeof *make)](w);
}

/* ---- control ---- */

static void put_statements(writer *w, int n);

/* A var that a loop or a branch replaces by other values of its type, known as a value after it. */
static void put_control(writer *w)
{
    const value *a = pick(w, 0, -1, NULL);

    if (!a || w->depth == MAX_DEPTH || w->nknown > MAX_VALUES - 24)
        return;
    value x = *a;
    int var = w->next_id++, known = w->nknown, pad = 4 + 4 * w->depth;
    put(w, "%*svar v%d = v%d;\n", pad, "", var, x.id);
    switch (below(w, 3)) {
    case 0:
        put(w, "%*sfor t%d in range(n + %d, %d, %d) {\n", pad, "", var, below(w, 3), below(w, 5),
            1 + below(w, 2));
        break;
    case 1:
        put(w, "%*sif (n %s %d) {\n", pad, "", below(w, 2) ? "==" : "<", below(w, 2));
        break;
    default:
        put(w, "%*sif (load(w[n + %d, program_id(0)]) > %d) {\n", pad, "", below(w, 9),
            below(w, 5) - 2);
    }
    w->depth++;
    w->known[w->nknown++] = (value){.id = var, .rank = x.rank, .dtype = x.dtype};
    memcpy(w->known[w->nknown - 1].extent, x.extent, sizeof x.extent);
    put_statements(w, 2 + below(w, 4));
    const value *b = pick(w, x.dtype, -1, &x);
    put(w, "%*sv%d = clamp(v%d + v%d, -8, 8);\n", pad + 4, "", var, var, b->id);
    w->depth--;
    put(w, "%*s}\n", pad, "");
    w->nknown = known;
    w->known[w->nknown++] = (value){.id = var, .rank = x.rank, .dtype = x.dtype};
    memcpy(w->known[w->nknown - 1].extent, x.extent, sizeof x.extent);
}

/* What a loop over blocks may see of the block that begins at m. */
static void put_visible(writer *w, int id, int step, int rows)
{
    put(w, "%*sfn see%d(m) {", 4 + 4 * w->depth, "", id);
    if (rows)
        put(w, " let r = arange(%d)[:, None], c = (m + arange(%d))[None, :];", rows, step);
    else
        put(w, " let c = m + arange(%d);", step);
    int lo = below(w, 30) - 5, hi = below(w, 50);
    switch (below(w, rows ? 3 : 6)) {
    case 0:
        put(w, " return c <= %s + %d & c > %d", rows ? "r" : "n", hi, lo);
        break;
    case 1:
        put(w, " return !(c < %s + %d)", rows ? "r" : "n", lo);
        break;
    case 2:
        put(w, " return c < %d | c * 3 %% 7 > %d", lo, below(w, 7));
        break;
    case 3:
        put(w, " return load(w[program_id(0) + %d, m :+ %d]) > %d", below(w, 9), step,
            below(w, 9) - 6);
        break;
    case 4:
        put(w, " return c * c %% 5 < %d", below(w, 6));
        break;
    default:
        put(w, " return n + %d < m", lo);
    }
    put(w, "; }\n");
}

/* A sum over blocks of which some are skipped: in which order they come is not defined. */
static void put_masked(writer *w)
{
    int id = w->next_id++, step = w->extent[below(w, 3)], rows = below(w, 2) ? w->extent[0] : 0;
    int pad = 4 + 4 * w->depth;
    bool is_float = below(w, 2);

    if (w->nknown > MAX_VALUES - 24)
        return;
    put_visible(w, id, step, rows);
    if (rows)
        put(w, "%*svar s%d = zeros(%s[%d]);\n", pad, "", id, is_float ? "f32" : "i32", rows);
    else
        put(w, "%*svar s%d = %s;\n", pad, "", id, is_float ? "0.0" : "0");
    put(w, "%*sfor m, EDGE in masked_range(n + %d, %d, %d, see%d) {\n", pad, "", below(w, 12) - 4,
        below(w, 48), step, id);
    put(w, "%*slet t = load(%s[%d", pad + 4, "", is_float ? "x" : "w", below(w, 20) - 2);
    if (rows)
        put(w, " :+ %d", rows);
    put(w, ", m :+ %d]);\n", step);
    put(w, "%*ss%d += sum(EDGE ? where(see%d(m), t, 0) : t, %d);\n%*s}\n", pad + 4, "", id, id,
        rows ? 1 : 0, pad, "");
    declare(w, is_float ? 'f' : 'i', rows ? 1 : 0, &rows);
    put(w, "clamp(s%d, -8, 8);\n", id);
}

static void put_statements(writer *w, int n)
{
    for (int i = 0; i < n; i++) {
        int which = below(w, 12);
        if (which == 0)
            put_masked(w);
        else if (which < 3)
            put_control(w);
        else
            make_value(w);
    }
}

/* ---- the kernel ---- */

static void put_store(writer *w, const value *v)
{
    bool is_float = v->dtype == 'f';
    int plane = w->planes[is_float]++;
    const char *cast = v->dtype == 'b' ? "cast(" : "", *end = v->dtype == 'b' ? ", i32)" : "";

    if (plane >= RANDOM_PLANES - (!is_float && w->atomics) || v->rank > 2)
        return;
    put(w, "    store(%s[program_id(0) * %d + %d, ", is_float ? "yf" : "yi", RANDOM_PLANES, plane);
    if (v->rank == 0)
        put(w, "0, 0]");
    else if (v->rank == 1 && below(w, 3) == 0) /* indices that differ */
        put(w, "arange(%d) * %d + %d, 1]", v->extent[0], below(w, 2) ? 2 : -1, below(w, 30));
    else if (v->rank == 1)
        put(w, "n + %d :+ %d, 1]", below(w, 12), v->extent[0]);
    else
        put(w, "%d :+ %d, n - %d :+ %d]", below(w, 9), v->extent[0], below(w, 3), v->extent[1]);
    put(w, ", %sv%d%s);\n", cast, v->id, end);
}

static const char functions[] =
    "fn farther(a, b) { return abs(a) > abs(b) || abs(a) == abs(b) && a > b ? a : b; }\n"
    "fn larger(a, b) { return where(a < b, b, a); }\n"
    "fn crossed(a, b) { return a ^ b; }\n"
    "fn same(v) { return v; }\n";

static void put_kernel(writer *w)
{
    put(w, "kernel %s(x: f32[XM, XN], w: i32[WM, WN],\n"
           "              out yf: f32[F, R, C], %s yi: i32[I, R, C], n: i32)\n"
           "grid (%d)\n{\n", w->has_fn ? "base[f: fn(v) = same]" : "random",
        w->atomics ? "inout" : "out", RANDOM_PROGRAMS);
    put_statements(w, 10 + below(w, 30));
    for (int i = w->nknown - 1; i >= 0; i--)
        put_store(w, &w->known[i]);
    put(w, "}\n");
    if (w->has_fn)
        put(w, "kernel random extends base { fn f(v) { return v * 2 - %d; } }\n", below(w, 9));
}

void random_kernel(uint64_t seed, char text[RANDOM_TEXT])
{
    static const int extents[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24, 31, 32, 33};
    writer w = {.r = {seed}, .text = text};

    for (int i = 0; i < 3; i++)
        w.extent[i] = extents[below(&w, sizeof extents / sizeof *extents)];
    w.has_fn = below(&w, 3) == 0;
    w.atomics = below(&w, 3) == 0;
    put(&w, "%s", functions);
    put_kernel(&w);
}
