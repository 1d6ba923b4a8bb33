/* What holds in every program because the launch function let it start: the requires, and a grid of
 * the extents it returned. */
#include "compiler/passes/facts_core.h"

enum { MAX_DEPTH = 12 }; /* of conditions and sums looked into */

static bool is_ordered(enum dtype t)
{
    return t != DT_U64 && !dtype_is_float(t);
}

static void know(facts *f, form x)
{
    vec_push(&f->known, f->a, x);
}

/* k * key + c <= 0 bounds the key. */
static void narrow_node(facts *f, const form *x)
{
    wide k = x->at[0].k, bound = -(wide)x->c;
    fact *node = &f->node.at[x->at[0].key];

    if (x->n != 1 || x->at[0].key >= FORM_AXIS)
        return;
    wide q = bound / k; /* toward 0 */
    if (k > 0) {
        q -= bound < 0 && q * k != bound;
        node->hi = q < node->hi && q >= node->lo ? (int64_t)q : node->hi;
    } else {
        q += bound < 0 && q * k != bound;
        node->lo = q > node->lo && q <= node->hi ? (int64_t)q : node->lo;
    }
}

static void know_at_most(facts *f, const ir_fn *launch, ir_val x, ir_val y, int64_t slack);

/* |x| <= y: x <= y; but not -x <= y, for the |x| of the least integer is itself. */
static void know_magnitude(facts *f, const ir_fn *launch, ir_val x, ir_val y, int64_t slack)
{
    const ir_op *def = ir_def(launch, x);

    if (def && def->code == OP_ABS)
        know_at_most(f, launch, def->args[0], y, slack);
}

/* x + slack <= y */
static void know_at_most(facts *f, const ir_fn *launch, ir_val x, ir_val y, int64_t slack)
{
    form a, b;

    if (!is_ordered(ir_type_of(launch, x).dtype) || !form_of(f, launch, x, &a) ||
        !form_of(f, launch, y, &b) || !form_combine(&a, 1, &a, -1, &b) ||
        !form_add_const(&a, slack))
        return;
    know(f, a);
    if (a.n == 1)
        narrow_node(f, &a);
    know_magnitude(f, launch, x, y, slack);
}

/* x % y == 0, and then also: a constant y divides x. */
static void know_divided(facts *f, const ir_fn *launch, ir_val remainder, ir_val zero)
{
    const ir_op *rem = ir_def(launch, remainder);
    form c;
    divides d;

    if (!rem || rem->code != OP_REM || !form_of(f, launch, zero, &c) || c.n || c.c ||
        !form_of(f, launch, rem->args[0], &d.p) || !form_of(f, launch, rem->args[1], &d.q))
        return;
    vec_push(&f->divided, f->a, d);
    if (d.q.n || d.p.n != 1 || d.p.c || d.p.at[0].k != 1)
        return;
    fact *node = &f->node.at[d.p.at[0].key];
    int64_t common = gcd_of(node->multiple, d.q.c), lcm;
    if (common && !__builtin_mul_overflow(node->multiple / common, d.q.c, &lcm))
        node->multiple = lcm;
}

static void know_condition(facts *f, const ir_fn *launch, ir_val cond, int depth)
{
    const ir_op *def = ir_def(launch, cond);

    if (!def || def->nargs != 2 || depth == MAX_DEPTH)
        return;
    switch ((int)def->code) {
    case OP_AND:
        know_condition(f, launch, def->args[0], depth + 1);
        know_condition(f, launch, def->args[1], depth + 1);
        break;
    case OP_CMP_LT:
        know_at_most(f, launch, def->args[0], def->args[1], 1);
        break;
    case OP_CMP_LE:
        know_at_most(f, launch, def->args[0], def->args[1], 0);
        break;
    case OP_CMP_EQ:
        know_at_most(f, launch, def->args[0], def->args[1], 0);
        know_at_most(f, launch, def->args[1], def->args[0], 0);
        know_divided(f, launch, def->args[0], def->args[1]);
        know_divided(f, launch, def->args[1], def->args[0]);
        break;
    default:
        break;
    }
}

void facts_read_requires(facts *f, const ir_fn *launch)
{
    for IR_EACH_OP(op, launch->body) {
        if (op->code == OP_ASSERT)
            know_condition(f, launch, op->args[0], 0);
    }
}

/* ---- the grid -------------------------------------------------------------------------------- */

/* x as it would be if sums did not wrap. */
static bool unwrapped(const facts *f, const ir_fn *launch, ir_val x, int depth, form *out)
{
    const ir_op *def = ir_def(launch, x);
    form a, b;

    if (!def || (def->code != OP_ADD && def->code != OP_SUB) || depth == MAX_DEPTH)
        return form_of(f, launch, x, out);
    return unwrapped(f, launch, def->args[0], depth + 1, &a) &&
           unwrapped(f, launch, def->args[1], depth + 1, &b) &&
           form_combine(out, 1, &a, def->code == OP_ADD ? 1 : -1, &b);
}

/* x > 0 is given. Then it has not wrapped, provided that its unwrapped value u can only lie where a
 * wrapped one would not be positive: u <= 2^bits, and no less than the type's least. */
static bool positive_form(const facts *f, const ir_fn *launch, ir_val x, form *out)
{
    enum dtype t = ir_type_of(launch, x).dtype;
    int64_t lo, hi;

    if (dtype_kind(t) != DTK_SINT || !unwrapped(f, launch, x, 0, out))
        return false;
    dtype_bounds(t, &lo, &hi);
    return form_min(f, out, NULL) >= lo && form_max(f, out, NULL) <= 2 * ((wide)hi + 1);
}

static ir_val before_widening(const ir_fn *launch, ir_val v)
{
    const ir_op *def = ir_def(launch, v);

    while (def && def->code == OP_CAST) {
        enum dtype from = ir_type_of(launch, def->args[0]).dtype;
        if (dtype_kind(from) != DTK_SINT ||
            dtype_bits(from) > dtype_bits(ir_type_of(launch, v).dtype))
            break;
        v = def->args[0];
        def = ir_def(launch, v);
    }
    return v;
}

/* c of  x / c  and  x % c, a positive constant, or 0. */
static int64_t divisor_of(const ir_fn *launch, const ir_op *op, enum ir_opcode code)
{
    const ir_op *c = op && op->code == code ? ir_def(launch, op->args[1]) : NULL;

    return c && c->code == OP_CONST_INT && c->attr[0].i > 0 ? c->attr[0].i : 0;
}

/* v is 1 where x % c is positive, else 0. */
static bool is_ragged_flag(const ir_fn *launch, ir_val v, ir_val x, int64_t c)
{
    const ir_op *flag = ir_def(launch, v), *less, *rem, *zero;

    if (!flag || flag->code != OP_CAST || !(less = ir_def(launch, flag->args[0])) ||
        less->code != OP_CMP_LT)
        return false;
    zero = ir_def(launch, less->args[0]);
    rem = ir_def(launch, less->args[1]);
    return zero && zero->code == OP_CONST_INT && zero->attr[0].i == 0 &&
           divisor_of(launch, rem, OP_REM) == c && rem->args[0] == x;
}

/* index < g where g is a quotient rounded up: c * index < x. Two ways to write that:
 *   g = x / c + (x % c > 0)        index <= x / c, and where equal, x % c > 0
 *   g = (x + c - 1) / c            the sum, positive as g is, has not wrapped */
static bool rounded_up(const facts *f, const ir_fn *launch, ir_val g, form *x, int64_t *c,
                       int64_t *slack)
{
    const ir_op *def = ir_def(launch, g);

    *slack = *c = divisor_of(launch, def, OP_DIV);
    if (*c)
        return positive_form(f, launch, def->args[0], x);
    for (int i = 0; def && def->code == OP_ADD && i < 2; i++) {
        const ir_op *quotient = ir_def(launch, def->args[i]);
        *c = divisor_of(launch, quotient, OP_DIV);
        *slack = 1;
        if (*c && is_ragged_flag(launch, def->args[1 - i], quotient->args[0], *c) &&
            form_of(f, launch, quotient->args[0], x) && form_min(f, x, NULL) >= 0)
            return true;
    }
    *c = *slack = 1;
    return positive_form(f, launch, g, x);
}

/* The program runs, so the extent g is positive, and its index is at most g - 1. */
static void bound_by_extent(facts *f, const ir_fn *launch, uint32_t id, ir_val g)
{
    const fact *extent = &f->node.at[f->of_launch[g]];
    form index = form_key(id), x, below;
    int64_t c, slack;

    if (extent->hi < f->node.at[id].hi)
        f->node.at[id].hi = extent->hi > 0 ? extent->hi - 1 : 0;
    if (form_of(f, launch, g, &x) && form_combine(&below, 1, &index, -1, &x) &&
        form_add_const(&below, 1))
        know(f, below);
    if (rounded_up(f, launch, before_widening(launch, g), &x, &c, &slack) &&
        form_combine(&below, c, &index, -1, &x) && form_add_const(&below, slack))
        know(f, below);
}

void facts_bound_program(facts *f, const ir_fn *launch, int axis)
{
    uint32_t id = f->program_id[axis], count = f->num_programs[axis];
    form index = form_key(id), programs = form_key(count), below;

    if (!id)
        return;
    if (count && form_combine(&below, 1, &index, -1, &programs) && form_add_const(&below, 1))
        know(f, below);
    if (launch)
        bound_by_extent(f, launch, id, launch->body->last->args[axis]);
}
