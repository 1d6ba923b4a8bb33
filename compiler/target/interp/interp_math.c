#include "compiler/target/interp/interp_agent.h"
#include <math.h>

/* ---- elementwise ---- */

/* Any value from max(m, x) - 8 to max(m, x) that is not below m is right; this is the lowest. */
static ir_scalar lowest_running_max(enum dtype t, const ir_scalar *in, bool exact)
{
    ir_scalar top = eval_op(OP_MAX, t, t, in, exact), low = top;

    if (in[0].f == -INFINITY)
        return top;
    low.f = top.f - 8.0;
    if (!exact)
        low = eval_round(t, low);
    if (low.f < top.f - 8.0) /* 16-bit floats are coarse */
        low = top;
    return low.f < in[0].f ? in[0] : low;
}

/* Sums, products and selections of f32 and f64 in bulk: a double holds the sum or product of two
 * f32 well enough that rounding it again gives what one f32 operation gives. */
static bool fast_float(enum ir_opcode code, bool round, uint64_t n, ir_scalar *restrict out,
                       ir_scalar *const *in)
{
    const ir_scalar *x = in[0], *y = in[1];

    switch ((unsigned)code) {
    case OP_ADD:
        for (uint64_t i = 0; i < n; i++)
            out[i].f = x[i].f + y[i].f;
        break;
    case OP_SUB:
        for (uint64_t i = 0; i < n; i++)
            out[i].f = x[i].f - y[i].f;
        break;
    case OP_MUL:
        for (uint64_t i = 0; i < n; i++)
            out[i].f = x[i].f * y[i].f;
        break;
    default:
        return false;
    }
    for (uint64_t i = 0; round && i < n; i++)
        out[i].f = (float)out[i].f;
    return true;
}

static void select(uint64_t n, ir_scalar *restrict out, ir_scalar *const *in)
{
    for (uint64_t i = 0; i < n; i++)
        out[i] = in[0][i].i ? in[1][i] : in[2][i];
}

static void one_by_one(const interp_agent *ag, const ir_op *op, enum dtype from, enum dtype to,
                       ir_scalar *const *in)
{
    bool exact = ag->launch.f64, low = op->code == OP_RUNNING_MAX && ag->launch.running_max_low;
    ir_scalar *out = cells_of(ag, op->res), v[3];

    for (uint64_t i = 0, n = ag->p->length[op->res]; i < n; i++) {
        for (uint32_t k = 0; k < op->nargs; k++)
            v[k] = in[k][i];
        out[i] = low ? lowest_running_max(to, v, exact)
                     : eval_op((enum ir_opcode)op->code, from, to, v, exact);
    }
}

void interp_elementwise(interp_agent *ag, const ir_op *op)
{
    enum dtype from = type_of(ag, op->args[op->nargs - 1]).dtype, to = type_of(ag, op->res).dtype;
    ir_scalar *in[3] = {NULL, NULL, NULL}, *out = cells_of(ag, op->res);
    uint64_t n = ag->p->length[op->res];

    for (uint32_t k = 0; k < op->nargs; k++)
        in[k] = cells_of(ag, op->args[k]);
    if (op->code == OP_WHERE)
        select(n, out, in);
    else if ((to != DT_F32 && to != DT_F64) ||
             !fast_float((enum ir_opcode)op->code, to == DT_F32 && !ag->launch.f64, n, out, in))
        one_by_one(ag, op, from, to, in);
}

void interp_bitcast(interp_agent *ag, const ir_op *op)
{
    enum dtype from = type_of(ag, op->args[0]).dtype, to = type_of(ag, op->res).dtype;
    const ir_scalar *in = cells_of(ag, op->args[0]);
    ir_scalar *out = cells_of(ag, op->res);
    unsigned char bytes[8];

    for (uint64_t i = 0, n = ag->p->length[op->res]; i < n; i++) {
        element_write(from, bytes, in[i]);
        out[i] = element_read(to, bytes);
    }
}

/* ---- dot ---- */

typedef struct dot_shape {
    int64_t m, n, k;
} dot_shape;

/* c += a b, each c adding its products in ascending k. */
static void dot_double(dot_shape s, const ir_scalar *a, const ir_scalar *b, ir_scalar *restrict c)
{
    for (int64_t i = 0; i < s.m; i++, c += s.n)
        for (int64_t k = 0; k < s.k; k++) {
            double x = a[i * s.k + k].f;
            const ir_scalar *row = b + k * s.n;

            for (int64_t j = 0; j < s.n; j++)
                c[j].f += x * row[j].f;
        }
}

static void dot_single(dot_shape s, const ir_scalar *a, const ir_scalar *b, ir_scalar *restrict c)
{
    for (int64_t i = 0; i < s.m; i++, c += s.n)
        for (int64_t k = 0; k < s.k; k++) {
            double x = a[i * s.k + k].f;
            const ir_scalar *row = b + k * s.n;

            for (int64_t j = 0; j < s.n; j++)
                c[j].f = (float)(c[j].f + x * row[j].f);
        }
}

static void dot_integer(dot_shape s, const ir_scalar *a, const ir_scalar *b, ir_scalar *c)
{
    for (int64_t i = 0; i < s.m; i++, c += s.n)
        for (int64_t k = 0; k < s.k; k++)
            for (int64_t j = 0; j < s.n; j++)
                c[j].i = (int64_t)((uint64_t)c[j].i +
                                   (uint64_t)a[i * s.k + k].i * (uint64_t)b[k * s.n + j].i);
}

void interp_multiply(interp_agent *ag, ir_val acc, ir_val res, const ir_scalar *x,
                     const ir_scalar *y, int64_t k)
{
    ir_type to = type_of(ag, res);
    dot_shape s = {to.shape[0], to.shape[1], k};
    const ir_scalar *start = cells_of(ag, acc);
    ir_scalar *c = cells_of(ag, res);
    uint64_t n = ag->p->length[res];

    for (uint64_t i = 0; i < n; i++)
        c[i] = start[i];
    if (!dtype_is_float(to.dtype)) {
        dot_integer(s, x, y, c);
        for (uint64_t i = 0; i < n; i++)
            c[i] = eval_round(to.dtype, c[i]);
    } else if (to.dtype == DT_F64 || ag->launch.f64) {
        dot_double(s, x, y, c);
    } else {
        dot_single(s, x, y, c);
    }
}

void interp_dot(interp_agent *ag, const ir_op *op)
{
    interp_multiply(ag, op->args[2], op->res, cells_of(ag, op->args[0]), cells_of(ag, op->args[1]),
                    type_of(ag, op->args[0]).shape[1]);
}

/* ---- reductions ---- */

/* Sums of 16-bit floats are kept in f32 and rounded once. */
static enum dtype reduce_dtype(enum dtype to)
{
    return to == DT_F16 || to == DT_BF16 ? DT_F32 : to;
}

void interp_reduce(interp_agent *ag, const ir_op *op, enum ir_opcode combine)
{
    ir_type from = type_of(ag, op->args[0]);
    enum dtype to = type_of(ag, op->res).dtype, wide = reduce_dtype(to);
    const ir_scalar *in = cells_of(ag, op->args[0]);
    ir_scalar *out = cells_of(ag, op->res);
    int64_t axis = op->attr[0].i, n = from.shape[axis], inner = 1, cells = 1;

    for (int d = 0; d < from.rank; d++)
        cells *= from.shape[d];
    for (int d = (int)axis + 1; d < from.rank; d++)
        inner *= from.shape[d];
    for (int64_t i = 0; i < cells / n; i++) {
        const ir_scalar *run = in + i / inner * n * inner + i % inner;
        ir_scalar v[2] = {run[0]};

        for (int64_t k = 1; k < n; k++) {
            v[1] = run[k * inner];
            v[0] = eval_op(combine, wide, wide, v, ag->launch.f64);
        }
        out[i] = ag->launch.f64 ? v[0] : eval_round(to, v[0]);
    }
}

/* ---- scans ---- */

/* As reductions, with every partial result: those of 16-bit floats are rounded, the running one is
 * not. */
/* Exact, or what helps least. */
void interp_estimate(interp_agent *ag, const ir_op *op)
{
    const ir_scalar *in = cells_of(ag, op->args[0]);
    bool every = op->code == OP_EVERY, decided = ag->launch.running_max_low;

    for (uint64_t i = 0, n = ag->p->length[op->args[0]]; i < n && !decided; i++)
        decided = (in[i].i != 0) != every;
    cells_of(ag, op->res)->i = decided != every;
}

void interp_scan(interp_agent *ag, const ir_op *op, enum ir_opcode combine)
{
    ir_type t = type_of(ag, op->res);
    enum dtype to = t.dtype, wide = reduce_dtype(to);
    const ir_scalar *in = cells_of(ag, op->args[0]);
    ir_scalar *out = cells_of(ag, op->res);
    int64_t axis = op->attr[0].i, n = t.shape[axis], inner = 1, cells = type_elements(t);

    for (int d = (int)axis + 1; d < t.rank; d++)
        inner *= t.shape[d];
    for (int64_t i = 0; i < cells / n; i++) {
        int64_t first = i / inner * n * inner + i % inner;
        ir_scalar v[2] = {in[first]};

        for (int64_t k = 0; k < n; k++) {
            v[1] = in[first + k * inner];
            if (k > 0)
                v[0] = eval_op(combine, wide, wide, v, ag->launch.f64);
            out[first + k * inner] = ag->launch.f64 ? v[0] : eval_round(to, v[0]);
        }
    }
}

/* ---- reductions and scans with a function ---- */

/* What the region gives for two elements; false after a failure. */
static bool combine(interp_agent *ag, const ir_op *op, ir_scalar *x, ir_scalar y)
{
    const ir_block *region = op->regions[0];

    *cells_of(ag, region->arg) = *x;
    *cells_of(ag, region->arg + 1) = y;
    for (const ir_op *in = region->first; in != region->last; in = in->next) {
        if (!interp_exec(ag, in))
            return false;
    }
    *x = *cells_of(ag, region->last->args[0]);
    return true;
}

/* In order, from the first element on. */
bool interp_fold(interp_agent *ag, const ir_op *op)
{
    ir_type t = type_of(ag, op->args[0]);
    const ir_scalar *in = cells_of(ag, op->args[0]);
    ir_scalar *out = cells_of(ag, op->res);
    int64_t axis = op->attr[0].i, n = t.shape[axis], inner = 1, cells = type_elements(t);

    for (int d = (int)axis + 1; d < t.rank; d++)
        inner *= t.shape[d];
    for (int64_t i = 0; i < cells / n; i++) {
        int64_t first = i / inner * n * inner + i % inner;
        ir_scalar v = in[first];

        for (int64_t k = 0; k < n; k++) {
            if (k > 0 && !combine(ag, op, &v, in[first + k * inner]))
                return false;
            if (op->code == OP_SCAN)
                out[first + k * inner] = v;
        }
        if (op->code == OP_REDUCE)
            out[i] = v;
    }
    return true;
}
