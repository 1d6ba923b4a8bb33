/* bound_masks: what a mask is as a whole, from the bounds of what it compares.
 *
 *   some (le %cols, %rows)      le (least of %cols), (greatest of %rows)
 *   every (le %cols, %rows)     le (greatest of %cols), (least of %rows)
 *   some (and %a, %b)           and (some %a), (some %b)        true too often; that is allowed
 *   every (and %a, %b)          and (every %a), (every %b)
 *   or, not, eq, ne             likewise
 *   anything else               a reduction of the whole tile, exact
 *
 * The least and the greatest element of an integer tile come from scalars where the tile counts up
 * from one (n0 + arange) or is widened from less, and from a reduction along what it varies in
 * otherwise. Sums are taken apart only when their parts vary along different dimensions, so that
 * both are at their ends at once. Unless facts.h shows that no sum can wrap, it is asked where the
 * program runs: if one does, the ends are those of the type. A reduction instead would be exact,
 * but on a GPU what comes from lanes counts as different in each: loops bounded by it would have
 * neither uniform registers nor uniform branches.
 *
 * leaves: no `some` and no `every`; scalars in front of where they stood, for licm.
 */
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/passes/facts.h"
#include "compiler/passes/pipeline.h"
#include "compiler/passes/rename.h"

enum { MAX_DEPTH = 24, BUDGET = 400 };      /* a window over causal rows takes 60 steps */
enum { LEAST = OP_MIN, GREATEST = OP_MAX }; /* the end that is asked for, by the op that finds it */
enum { SOME = OP_SOME, EVERY = OP_EVERY };

typedef struct bounding {
    ir_fn *fn;
    const facts *f;
    uint32_t nvalues; /* that f knows of */
    ir_builder b;
    renames to;
    int budget; /* steps left for the mask at hand: operands may be shared, so the walk may not end
                 */
    uint32_t changes;
} bounding;

static ir_val summary(bounding *s, int what, ir_val v, int depth);
static ir_val extreme(bounding *s, int end, ir_val v, int depth);

/* ---- tiles ---- */

static bool is_view(const ir_op *op)
{
    return op->code == OP_SPLAT || op->code == OP_EXPAND || op->code == OP_BROADCAST ||
           op->code == OP_TRANS || op->code == OP_RESHAPE;
}

static unsigned long_axes(ir_type t)
{
    unsigned axes = 0;

    for (unsigned d = 0; t.kind == TYPE_TILE && d < t.rank; d++)
        axes |= t.shape[d] > 1 ? 1u << d : 0u;
    return axes;
}

static unsigned with_axis(unsigned axes, unsigned at)
{
    unsigned below = axes & ((1u << at) - 1);

    return below | (axes ^ below) << 1;
}

/* The dimensions along which v may vary, as bits. */
static unsigned varies(bounding *s, ir_val v, int depth)
{
    const ir_op *op = ir_def(s->fn, v);
    unsigned all = long_axes(ir_type_of(s->fn, v)), axes = 0;

    if (op && op->code == OP_SPLAT)
        return 0;
    if (!op || depth == MAX_DEPTH || s->budget-- <= 0)
        return all;
    if (op->code == OP_EXPAND)
        return with_axis(varies(s, op->args[0], depth + 1), (unsigned)op->attr[0].i);
    if (op->code == OP_BROADCAST)
        return varies(s, op->args[0], depth + 1);
    if (!(op_info(op->code)->traits & OPT_EWISE) && op->code != OP_CAST)
        return all;
    for (int i = 0; i < op->nargs; i++)
        axes |= varies(s, op->args[i], depth + 1);
    return axes & all;
}

static bool vary_apart(bounding *s, const ir_op *op)
{
    return !(varies(s, op->args[0], 0) & varies(s, op->args[1], 0));
}

/* code(x, y) of any two elements is what integers without end would give. */
static bool never_wraps(const bounding *s, const ir_op *op)
{
    enum dtype t = (enum dtype)ir_type_of(s->fn, op->res).dtype;
    int bits = dtype_bits(t);
    int64_t x_lo, x_hi, y_lo, y_hi;

    if (dtype_kind(t) != DTK_SINT || bits > 32 || op->args[0] >= s->nvalues ||
        op->args[1] >= s->nvalues)
        return false;
    facts_range(s->f, op->args[0], &x_lo, &x_hi);
    facts_range(s->f, op->args[1], &y_lo, &y_hi);
    if (x_lo < INT32_MIN || x_hi > INT32_MAX || y_lo < INT32_MIN || y_hi > INT32_MAX)
        return false;
    bool is_sub = op->code == OP_SUB;
    int64_t lo = x_lo + (is_sub ? -y_hi : y_lo), hi = x_hi + (is_sub ? -y_lo : y_hi);
    return lo >= -((int64_t)1 << (bits - 1)) && hi < (int64_t)1 << (bits - 1);
}

/* ---- the ends of an integer tile ---- */

static ir_val reduced(bounding *s, int end, ir_val v)
{
    enum ir_opcode code = end == GREATEST ? OP_REDUCE_MAX : OP_REDUCE_MIN;

    for (int d = ir_type_of(s->fn, v).rank - 1; d >= 0; d--)
        v = ir_reduce(&s->b, code, v, d);
    return v;
}

static ir_val end_of_arange(bounding *s, int end, const ir_op *op)
{
    int64_t last = end == GREATEST ? ir_type_of(s->fn, op->res).shape[0] - 1 : 0;

    return ir_const_int(&s->b, DT_I32, op->attr[0].i + last);
}

static int other_end(int end)
{
    return end == LEAST ? GREATEST : LEAST;
}

/* code(x, y) in type t with both operands at the ends that put the result at its own. */
static ir_val both_ends(bounding *s, int end, const ir_op *op, enum dtype t, int depth)
{
    ir_val at[2];

    for (int i = 0; i < 2; i++) {
        int wanted = i == 1 && op->code == OP_SUB ? other_end(end) : end;
        at[i] = extreme(s, wanted, op->args[i], depth);
        if (ir_type_of(s->fn, at[i]).dtype != t)
            at[i] = ir_cast(&s->b, at[i], t);
    }
    return ir_binary(&s->b, (enum ir_opcode)op->code, at[0], at[1]);
}

/* Of a sum that may wrap, of at most 32 bits: the end of the type if one does. */
static ir_val end_if_it_fits(bounding *s, int end, const ir_op *op, enum dtype t, int depth)
{
    int64_t most = ((int64_t)1 << (dtype_bits(t) - 1)) - 1;
    ir_val least = both_ends(s, LEAST, op, DT_I64, depth);
    ir_val greatest = both_ends(s, GREATEST, op, DT_I64, depth);
    ir_val above = ir_binary(&s->b, OP_CMP_LE, ir_const_int(&s->b, DT_I64, -most - 1), least);
    ir_val below = ir_binary(&s->b, OP_CMP_LE, greatest, ir_const_int(&s->b, DT_I64, most));
    ir_val fits = ir_binary(&s->b, OP_AND, above, below);
    ir_val exact = ir_cast(&s->b, end == LEAST ? least : greatest, t);

    return ir_where(&s->b, fits, exact, ir_const_int(&s->b, t, end == LEAST ? -most - 1 : most));
}

/* Of a sum or difference whose parts are at their ends at once; 0: it is not one. */
static ir_val end_of_sum(bounding *s, int end, const ir_op *op, int depth)
{
    enum dtype t = (enum dtype)ir_type_of(s->fn, op->res).dtype;

    if (!vary_apart(s, op))
        return 0;
    if (never_wraps(s, op))
        return both_ends(s, end, op, t, depth);
    bool widens = dtype_kind(t) == DTK_SINT && dtype_bits(t) <= 32;
    return widens ? end_if_it_fits(s, end, op, t, depth) : 0;
}

/* x / c, x >> c and casts to wider integers rise with x. */
static ir_val end_of_rising(bounding *s, int end, const ir_op *op, int depth)
{
    const ir_op *by = op->nargs > 1 ? ir_def(s->fn, op->args[1]) : NULL;
    enum dtype to = (enum dtype)ir_type_of(s->fn, op->res).dtype;

    if (op->code == OP_CAST) {
        enum dtype from = (enum dtype)ir_type_of(s->fn, op->args[0]).dtype;
        bool wider = dtype_kind(from) == DTK_SINT && dtype_kind(to) == DTK_SINT &&
                     dtype_bits(to) >= dtype_bits(from);
        return wider ? ir_cast(&s->b, extreme(s, end, op->args[0], depth), to) : 0;
    }
    const ir_op *c = by && by->code == OP_SPLAT ? ir_def(s->fn, by->args[0]) : NULL;
    if (dtype_kind(to) != DTK_SINT || !c || c->code != OP_CONST_INT || c->attr[0].i <= 0 ||
        (op->code == OP_SHR && c->attr[0].i >= dtype_bits(to)))
        return 0;
    return ir_binary(&s->b, (enum ir_opcode)op->code, extreme(s, end, op->args[0], depth),
                     by->args[0]);
}

static ir_val end_of_extreme(bounding *s, int end, const ir_op *op, int depth)
{
    if (op->code != end && !vary_apart(s, op))
        return 0;
    ir_val x = extreme(s, end, op->args[0], depth);
    ir_val y = extreme(s, end, op->args[1], depth);
    return ir_binary(&s->b, (enum ir_opcode)op->code, x, y);
}

static ir_val end_of_op(bounding *s, int end, const ir_op *op, int depth)
{
    switch ((int)op->code) {
    case OP_SPLAT:
        return op->args[0];
    case OP_EXPAND:
    case OP_BROADCAST:
    case OP_TRANS:
    case OP_RESHAPE:
        return extreme(s, end, op->args[0], depth);
    case OP_ARANGE:
        return end_of_arange(s, end, op);
    case OP_ADD:
    case OP_SUB:
        return end_of_sum(s, end, op, depth);
    case OP_DIV:
    case OP_SHR:
    case OP_CAST:
        return end_of_rising(s, end, op, depth);
    case OP_MAX:
    case OP_MIN:
        return end_of_extreme(s, end, op, depth);
    default:
        return 0;
    }
}

/* The least or greatest element of an integer tile. */
static ir_val extreme(bounding *s, int end, ir_val v, int depth)
{
    const ir_op *op = ir_def(s->fn, v);

    if (ir_type_of(s->fn, v).kind != TYPE_TILE)
        return v;
    bool go_on = op && depth < MAX_DEPTH && s->budget-- > 0;
    ir_val found = go_on ? end_of_op(s, end, op, depth + 1) : 0;
    return found ? found : reduced(s, end, v);
}

/* ---- masks ---- */

static ir_val exactly(bounding *s, int what, ir_val v)
{
    ir_val count = ir_cast(&s->b, v, DT_I32);
    ir_val one = reduced(s, what == SOME ? GREATEST : LEAST, count);

    return ir_binary(&s->b, OP_CMP_NE, one, ir_const_int(&s->b, DT_I32, 0));
}

/* x op y somewhere: the least x with the greatest y; everywhere: the other way round. */
static ir_val summary_of_order(bounding *s, int what, const ir_op *op, int depth)
{
    int end = what == SOME ? LEAST : GREATEST;
    ir_val x = extreme(s, end, op->args[0], depth);
    ir_val y = extreme(s, other_end(end), op->args[1], depth);

    return ir_binary(&s->b, (enum ir_opcode)op->code, x, y);
}

/* Equal somewhere: the ranges meet; everywhere: both ranges are one and the same number. */
static ir_val summary_of_equal(bounding *s, int what, const ir_op *op, int depth)
{
    int end = what == SOME ? LEAST : GREATEST;
    ir_val lower[2], upper[2];

    for (int i = 0; i < 2; i++) {
        lower[i] = extreme(s, end, op->args[i], depth);
        upper[i] = extreme(s, other_end(end), op->args[!i], depth);
    }
    ir_val one = ir_binary(&s->b, OP_CMP_LE, lower[0], upper[0]);
    ir_val other = ir_binary(&s->b, OP_CMP_LE, lower[1], upper[1]);
    return ir_binary(&s->b, OP_AND, one, other);
}

static ir_val summary_of_compare(bounding *s, int what, const ir_op *op, int depth)
{
    enum dtype t = (enum dtype)ir_type_of(s->fn, op->args[0]).dtype;

    if (!dtype_is_int(t))
        return 0;
    if (op->code == OP_CMP_LT || op->code == OP_CMP_LE)
        return summary_of_order(s, what, op, depth);
    if (op->code == OP_CMP_EQ)
        return summary_of_equal(s, what, op, depth);
    return ir_unary(&s->b, OP_NOT, summary_of_equal(s, what == SOME ? EVERY : SOME, op, depth));
}

static ir_val summary_of_two(bounding *s, int what, const ir_op *op, int depth)
{
    ir_val x = summary(s, what, op->args[0], depth);
    ir_val y = summary(s, what, op->args[1], depth);

    return ir_binary(&s->b, (enum ir_opcode)op->code, x, y);
}

static ir_val summary_of_op(bounding *s, int what, const ir_op *op, int depth)
{
    if (is_view(op))
        return summary(s, what, op->args[0], depth);
    switch ((int)op->code) {
    case OP_NOT:
        return ir_unary(&s->b, OP_NOT, summary(s, what == SOME ? EVERY : SOME, op->args[0], depth));
    case OP_AND:
    case OP_OR:
        return summary_of_two(s, what, op, depth);
    case OP_CMP_EQ:
    case OP_CMP_NE:
    case OP_CMP_LT:
    case OP_CMP_LE:
        return summary_of_compare(s, what, op, depth);
    default:
        return 0;
    }
}

static ir_val summary(bounding *s, int what, ir_val v, int depth)
{
    const ir_op *op = ir_def(s->fn, v);

    if (ir_type_of(s->fn, v).kind != TYPE_TILE)
        return v;
    bool go_on = op && depth < MAX_DEPTH && s->budget-- > 0;
    ir_val found = go_on ? summary_of_op(s, what, op, depth + 1) : 0;
    return found ? found : exactly(s, what, v);
}

/* ---- */

static void visit(ir_op *op, void *arg)
{
    bounding *s = arg;

    if (op->code != OP_SOME && op->code != OP_EVERY)
        return;
    s->budget = BUDGET;
    s->b = ir_before(s->fn, op);
    s->b.where = op->where;
    rename_set(&s->to, op->res, summary(s, op->code, op->args[0], 0));
    s->changes++;
}

static void rename_uses(ir_op *op, void *arg)
{
    bounding *s = arg;

    rename_args(&s->to, op);
    if (op->code == OP_SOME || op->code == OP_EVERY)
        ir_unlink(op);
}

static void look(ir_op *op, void *arg)
{
    *(bool *)arg |= op->code == OP_SOME || op->code == OP_EVERY;
}

tw_status pass_bound_masks(pass_cx *cx, ir_module *m)
{
    bounding s = {.fn = m->kernel, .to = {.a = cx->scratch}, .nvalues = m->kernel->values.n};
    bool any = false;

    ir_walk(m->kernel->body, look, &any);
    if (!any)
        return TW_OK;
    s.f = facts_compute(cx->scratch, m->kernel);
    ir_walk(m->kernel->body, visit, &s);
    ir_walk(m->kernel->body, rename_uses, &s);
    cx->changes = s.changes;
    return TW_OK;
}
