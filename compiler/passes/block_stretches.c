#include "compiler/passes/block_stretches.h"
#include "compiler/ir/iredit.h"

enum { MAX_DEPTH = 24, BUDGET = 400 };       /* a window over causal rows takes 30 steps */
static const int64_t FAR = (int64_t)1 << 60; /* of values: sums of four stay within i64 */

/* ---- building -------------------------------------------------------------------------------- */

static ir_val number(solving *s, int64_t c)
{
    return c ? ir_const_int(&s->b, DT_I64, c) : s->zero;
}

static ir_val binary(solving *s, enum ir_opcode code, ir_val x, ir_val y)
{
    return ir_binary(&s->b, code, x, y);
}

static ir_val lo_of(const solving *s, const stretch *p)
{
    return p->lo ? p->lo : s->zero;
}

static ir_val hi_of(const solving *s, const stretch *p)
{
    return p->hi ? p->hi : s->n;
}

static bool is_outside(const solving *s, ir_val v)
{
    return ir_defined_outside(s->fn, v, s->loop);
}

/* v in the loop's first turn, in front of the loop. */
static ir_val in_first_turn(solving *s, ir_val v)
{
    const ir_op *op = ir_def(s->fn, v);
    ir_val known = rename_of(&s->first, v);

    if (is_outside(s, v) || known != v)
        return known;
    if (v == s->counter)
        return ir_const_int(&s->b, DT_I32, 0);
    if (!op)
        return s->loop->args[3 + v - (s->counter + 1)];
    ir_val *args = ARENA_ARRAY(s->a, ir_val, (size_t)op->nargs + 1);
    for (int i = 0; i < op->nargs; i++)
        args[i] = in_first_turn(s, op->args[i]);
    ir_op *copy = ir_copy_before(s->fn, op, s->loop);
    for (int i = 0; i < op->nargs; i++)
        copy->args[i] = args[i];
    rename_set(&s->first, v, copy->res);
    return copy->res;
}

static ir_val wide_in_first_turn(solving *s, ir_val v)
{
    return ir_cast(&s->b, in_first_turn(s, v), DT_I64);
}

/* ---- stretches ------------------------------------------------------------------------------- */

static stretches everywhere(void)
{
    return (stretches){.n = 1};
}

/* Everywhere if the i1 scalar c holds, which no block changes. */
static stretches when(solving *s, ir_val c)
{
    return (stretches){.n = 1, .at[0].hi = ir_where(&s->b, c, s->n, s->zero)};
}

static ir_val inner_end(solving *s, enum ir_opcode code, ir_val x, ir_val y)
{
    if (!x || !y || x == y)
        return x ? x : y;
    return binary(s, code, x, y);
}

static bool intersect(solving *s, const stretches *x, const stretches *y, stretches *out)
{
    if (x->n * y->n > STRETCHES)
        return false;
    out->n = 0;
    for (int i = 0; i < x->n; i++) {
        for (int j = 0; j < y->n; j++) {
            stretch *p = &out->at[out->n++];
            p->lo = inner_end(s, OP_MAX, x->at[i].lo, y->at[j].lo);
            p->hi = inner_end(s, OP_MIN, x->at[i].hi, y->at[j].hi);
        }
    }
    return true;
}

static bool is_everywhere(const stretches *x)
{
    for (int i = 0; i < x->n; i++) {
        if (!x->at[i].lo && !x->at[i].hi)
            return true;
    }
    return false;
}

static bool unite(const stretches *x, const stretches *y, stretches *out)
{
    if (is_everywhere(x) || is_everywhere(y)) {
        *out = everywhere();
        return true;
    }
    if (x->n + y->n > STRETCHES)
        return false;
    *out = *x;
    for (int i = 0; i < y->n; i++)
        out->at[out->n++] = y->at[i];
    return true;
}

static bool join(solving *s, bool both, const stretches *x, const stretches *y, stretches *out)
{
    return both ? intersect(s, x, y, out) : unite(x, y, out);
}

/* ---- comparisons ----------------------------------------------------------------------------- */

/* v is slope * i + what it is in the first turn, far from the ends of i64. */
static bool is_linear(const solving *s, ir_val v, int64_t *slope)
{
    enum dtype t = (enum dtype)ir_type_of(s->fn, v).dtype;
    int64_t lo = -FAR, hi = FAR;
    form x = form_const(0);

    *slope = 0;
    if (dtype_bits(t) > 32 && v < s->nvalues)
        facts_range(s->f, v, &lo, &hi);
    if ((dtype_bits(t) > 32 && v >= s->nvalues) || lo < -FAR || hi > FAR)
        return false;
    if (is_outside(s, v))
        return true;
    if (v >= s->nvalues || !form_of(s->f, s->fn, v, &x))
        return false;
    for (uint32_t i = 0; i < x.n; i++) {
        const fact *known = &s->f->node.at[x.at[i].key];
        const ir_op *op = known->fn == s->fn ? ir_def(s->fn, known->val) : NULL;
        bool of_program = op && (op->code == OP_PROGRAM_ID || op->code == OP_NUM_PROGRAMS);
        if (x.at[i].key == node_of(s->f, s->fn, s->counter))
            *slope = x.at[i].k;
        else if (known->fn != s->fn || (!of_program && !is_outside(s, known->val)))
            return false;
    }
    return *slope >= -FAR && *slope <= FAR;
}

/* Where  slope * i + x <= y  or, not or_equal, < : x and y are i64 scalars in front of the loop. */
static stretches solve_linear(solving *s, int64_t slope, ir_val x, ir_val y, bool or_equal)
{
    int64_t by = slope < 0 ? -slope : slope;

    if (slope == 0)
        return when(s, binary(s, or_equal ? OP_CMP_LE : OP_CMP_LT, x, y));
    ir_val room = slope > 0 ? binary(s, OP_SUB, y, x) : binary(s, OP_SUB, x, y);
    room = binary(s, OP_ADD, room, number(s, by - 1 + (or_equal == (slope > 0))));
    room = binary(s, OP_MAX, room, s->zero);
    if (by > 1)
        room = binary(s, OP_DIV, room, number(s, by));
    if (slope < 0)
        return (stretches){.n = 1, .at[0].lo = room};
    return (stretches){.n = 1, .at[0].hi = binary(s, OP_MIN, room, s->n)};
}

/* v is u / c or u >> log2 c with u >= 0 and a small constant c > 0. */
static bool is_quotient(const solving *s, ir_val v, ir_val *u, int64_t *c)
{
    const ir_op *op = ir_def(s->fn, v);
    bool is_shift = op && op->code == OP_SHR;
    int64_t lo, hi;

    if (!op || (op->code != OP_DIV && !is_shift) || op->args[0] >= s->nvalues)
        return false;
    const ir_op *by = ir_def(s->fn, op->args[1]);
    facts_range(s->f, op->args[0], &lo, &hi);
    if (!by || by->code != OP_CONST_INT || lo < 0 || by->attr[0].i < 0 ||
        by->attr[0].i > (is_shift ? 20 : 1 << 20))
        return false;
    *u = op->args[0];
    *c = is_shift ? (int64_t)1 << by->attr[0].i : by->attr[0].i;
    return *c > 0;
}

/* u / c <= y  if  u < (y + 1) c, and  x <= u / c  if  x c <= u;  what is no quotient is outside. */
static bool compare_quotient(solving *s, ir_val x, ir_val y, bool or_equal, stretches *out)
{
    bool left = !is_outside(s, x);
    ir_val other = left ? y : x, u;
    int64_t c, slope;

    if (!is_outside(s, other) || dtype_bits((enum dtype)ir_type_of(s->fn, other).dtype) > 32 ||
        !is_quotient(s, left ? x : y, &u, &c) || !is_linear(s, u, &slope))
        return false;
    other = ir_cast(&s->b, other, DT_I64);
    other = binary(s, OP_ADD, other, number(s, left == or_equal));
    other = binary(s, OP_MUL, other, number(s, c));
    u = wide_in_first_turn(s, u);
    *out = left ? solve_linear(s, slope, u, other, false) : solve_linear(s, -slope, other, u, true);
    return true;
}

static bool compare(solving *s, ir_val x, ir_val y, bool or_equal, int depth, stretches *out);

/* The greater of two is <= y if both are, the lesser if one is. */
static bool compare_extreme(solving *s, ir_val x, ir_val y, bool or_equal, int depth,
                            stretches *out)
{
    const ir_op *left = ir_def(s->fn, x), *right = ir_def(s->fn, y);
    bool of_left = left && (left->code == OP_MIN || left->code == OP_MAX) && !is_outside(s, x);
    const ir_op *op = of_left ? left : right;
    stretches part[2];

    if (!op || (op->code != OP_MIN && op->code != OP_MAX))
        return false;
    for (int i = 0; i < 2; i++) {
        ir_val a = of_left ? op->args[i] : x, b = of_left ? y : op->args[i];
        if (!compare(s, a, b, or_equal, depth + 1, &part[i]))
            return false;
    }
    return join(s, (op->code == OP_MAX) == of_left, &part[0], &part[1], out);
}

/* x <= y or, not or_equal, x < y */
static bool compare(solving *s, ir_val x, ir_val y, bool or_equal, int depth, stretches *out)
{
    int64_t of_x, of_y;

    if (depth == MAX_DEPTH || s->budget-- <= 0)
        return false;
    if (is_linear(s, x, &of_x) && is_linear(s, y, &of_y)) {
        x = wide_in_first_turn(s, x);
        y = wide_in_first_turn(s, y);
        *out = solve_linear(s, of_x - of_y, x, y, or_equal);
        return true;
    }
    return compare_extreme(s, x, y, or_equal, depth, out) ||
           compare_quotient(s, x, y, or_equal, out);
}

static bool compare_equal(solving *s, const ir_op *op, bool equal, int depth, stretches *out)
{
    ir_val x = op->args[0], y = op->args[1];
    stretches one, other;

    return compare(s, x, y, equal, depth, &one) && compare(s, y, x, equal, depth, &other) &&
           join(s, equal, &one, &other, out);
}

/* ---- conditions ------------------------------------------------------------------------------ */

static bool solve(solving *s, ir_val v, bool wanted, int depth, stretches *out);

static bool solve_two(solving *s, const ir_op *op, bool wanted, int depth, stretches *out)
{
    stretches x, y;

    return solve(s, op->args[0], wanted, depth, &x) && solve(s, op->args[1], wanted, depth, &y) &&
           join(s, (op->code == OP_AND) == wanted, &x, &y, out);
}

static bool solve_where(solving *s, const ir_op *op, bool wanted, int depth, stretches *out)
{
    stretches part[2];

    for (int i = 0; i < 2; i++) {
        stretches chosen, as_wanted;
        if (!solve(s, op->args[0], i == 0, depth, &chosen) ||
            !solve(s, op->args[1 + i], wanted, depth, &as_wanted) ||
            !intersect(s, &chosen, &as_wanted, &part[i]))
            return false;
    }
    return unite(&part[0], &part[1], out);
}

static bool solve_op(solving *s, const ir_op *op, bool wanted, int depth, stretches *out)
{
    switch ((int)op->code) {
    case OP_CONST_INT:
        *out = everywhere();
        out->n = (op->attr[0].i != 0) == wanted;
        return true;
    case OP_NOT:
        return solve(s, op->args[0], !wanted, depth, out);
    case OP_AND:
    case OP_OR:
        return solve_two(s, op, wanted, depth, out);
    case OP_WHERE:
        return solve_where(s, op, wanted, depth, out);
    default:
        break;
    }
    if (op->nargs != 2 || !dtype_is_int((enum dtype)ir_type_of(s->fn, op->args[0]).dtype))
        return false;
    if (op->code == OP_CMP_EQ || op->code == OP_CMP_NE)
        return compare_equal(s, op, (op->code == OP_CMP_EQ) == wanted, depth, out);
    if (op->code != OP_CMP_LE && op->code != OP_CMP_LT)
        return false;
    bool or_equal = (op->code == OP_CMP_LE) == wanted;
    return compare(s, op->args[!wanted], op->args[wanted], or_equal, depth, out);
}

/* The blocks for which the i1 scalar v is as wanted; false: not to be said. */
static bool solve(solving *s, ir_val v, bool wanted, int depth, stretches *out)
{
    const ir_op *op = ir_def(s->fn, v);

    if (depth == MAX_DEPTH || s->budget-- <= 0 || ir_type_of(s->fn, v).kind != TYPE_SCALAR)
        return false;
    if (op && op->code == OP_CONST_INT)
        return solve_op(s, op, wanted, depth + 1, out);
    if (is_outside(s, v)) {
        *out = when(s, wanted ? v : ir_unary(&s->b, OP_NOT, v));
        return true;
    }
    return op && solve_op(s, op, wanted, depth + 1, out);
}

bool stretches_solve(solving *s, const ir_val *c, int n, stretches *out)
{
    stretches one;

    *out = everywhere();
    s->budget = BUDGET;
    for (int i = 0; i < n; i++) {
        stretches so_far = *out;
        if (!solve(s, c[i], true, 0, &one) || !intersect(s, &so_far, &one, out))
            return false;
    }
    return true;
}

/* ---- their ends ------------------------------------------------------------------------------ */

static ir_val is_any(solving *s, const stretch *p)
{
    return binary(s, OP_CMP_LT, lo_of(s, p), hi_of(s, p));
}

ir_val stretches_first(solving *s, const stretches *x)
{
    ir_val first = s->n;

    for (int i = 0; i < x->n; i++) {
        ir_val one = ir_where(&s->b, is_any(s, &x->at[i]), lo_of(s, &x->at[i]), s->n);
        first = i ? binary(s, OP_MIN, first, one) : one;
    }
    return first;
}

ir_val stretches_behind_last(solving *s, const stretches *x)
{
    ir_val last = s->zero;

    for (int i = 0; i < x->n; i++) {
        const stretch *p = &x->at[i];
        ir_val one = p->lo ? ir_where(&s->b, is_any(s, p), hi_of(s, p), s->zero) : hi_of(s, p);
        last = i ? binary(s, OP_MAX, last, one) : one;
    }
    return last;
}

/* A run ends in the stretch that it begins in, or in one that begins there; after as many rounds as
 * there are stretches nothing is added. */
ir_val stretches_end_of_run(solving *s, const stretches *x)
{
    if (x->n < 2)
        return stretches_behind_last(s, x);
    ir_val first = stretches_first(s, x), end = first;
    for (int i = 0; i < x->n * x->n; i++) {
        const stretch *p = &x->at[i % x->n];
        ir_val meets = binary(s, OP_CMP_LE, lo_of(s, p), end);
        end = ir_where(&s->b, binary(s, OP_AND, meets, is_any(s, p)),
                       binary(s, OP_MAX, end, hi_of(s, p)), end);
    }
    return ir_where(&s->b, binary(s, OP_CMP_LT, first, s->n), end, s->zero);
}
