/* solve_searches: the blocks that a masked_range visits, by division instead of a search.
 *
 *   %lo, %hi, %from, %to = for %i = 0 to %n step 1 iter (n, 0, 0, 0) {
 *     %seen = lt (%i * 64 + a), b                        x = max(b - a + 63, 0) / 64
 *     yield where %seen, (min %lo, %i), %lo      ->      %lo = where 0 < min(x, n), 0, n
 *           where %seen, %i + 1, %hi                     %hi = min(x, n)
 *           ...                                          ...
 *
 * needs: %n >= 0, and a loop as dsl/elab_masked.c makes it (bound_masks has said what some and
 * every are, licm has moved out what no block changes) that carries only these, of any conditions:
 *
 *   where c, (min v, i), v                      from n: the first i of c, or n
 *   where c, i + 1, v                           from 0: behind the last i of c, or 0
 *   where c & v = 0, i, u                       from 0: the first i of c, or 0
 *   where c & (v = 0 | v = i), i + 1, v         from 0: behind the first run of c, or 0
 *
 * and conditions that join by and, or, not and where comparisons of integers which are linear in i
 * (facts.h: nothing wraps) or do not depend on it. minimum, maximum and division by a constant may
 * stand between. Each comparison holds on a stretch of blocks; a condition is the union of at most
 * STRETCHES of them. A search of another kind stays as it is, as for ids that are loaded by block.
 *
 * leaves: scalar operations in i64, where nothing wraps, in place of the loop; the same results to
 * the bit. cost: nothing where no such loop is.
 */
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/passes/facts_core.h"
#include "compiler/passes/pipeline.h"
#include "compiler/passes/purity.h"
#include "compiler/passes/rename.h"

enum { STRETCHES = 4, CONJUNCTS = 8, MAX_CARRIED = 4, MAX_DEPTH = 24 };
enum { BUDGET = 400 };                       /* a window over causal rows takes 30 */
static const int64_t FAR = (int64_t)1 << 60; /* of values: sums of four stay within i64 */

/* Blocks lo <= i < hi, in i64, 0 <= lo and hi <= n; 0: from the first, to the last. */
typedef struct stretch {
    ir_val lo, hi;
} stretch;
/* Blocks that lie in one of them. */
typedef struct stretches {
    int n;
    stretch at[STRETCHES];
} stretches;

enum answer { FIRST, BEHIND_LAST, BEGIN_OF_RUN, END_OF_RUN };
/* What the loop finds out of the blocks for which all conditions hold. */
typedef struct question {
    enum answer answer;
    int end; /* BEGIN_OF_RUN: the place of its END_OF_RUN */
    int n;
    ir_val all[CONJUNCTS];
} question;

typedef struct solving {
    ir_fn *fn;
    const facts *f;
    uint32_t nvalues; /* that f knows of */
    arena *a;
    ir_op *loop;             /* the one at hand */
    ir_builder b;            /* in front of it */
    ir_val counter, n, zero; /* n, zero: i64 */
    renames first;           /* values of the loop -> what they are in its first turn */
    int budget;              /* of steps: operands may be shared, so a walk of them may not end */
    uint32_t changes;
} solving;

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

static ir_val carried(const solving *s, int at)
{
    return s->loop->regions[0]->arg + 1 + (ir_val)at;
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
        return s->loop->args[3 + v - carried(s, 0)];
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

static bool solve_all(solving *s, const question *q, stretches *out)
{
    stretches one;

    *out = everywhere();
    for (int i = 0; i < q->n; i++) {
        stretches so_far = *out;
        if (!solve(s, q->all[i], true, 0, &one) || !intersect(s, &so_far, &one, out))
            return false;
    }
    return true;
}

/* ---- answers --------------------------------------------------------------------------------- */

static ir_val is_any(solving *s, const stretch *p)
{
    return binary(s, OP_CMP_LT, lo_of(s, p), hi_of(s, p));
}

/* The first block of x, or n. */
static ir_val first_of(solving *s, const stretches *x)
{
    ir_val first = s->n;

    for (int i = 0; i < x->n; i++) {
        ir_val one = ir_where(&s->b, is_any(s, &x->at[i]), lo_of(s, &x->at[i]), s->n);
        first = i ? binary(s, OP_MIN, first, one) : one;
    }
    return first;
}

/* Behind the last block of x, or 0. */
static ir_val behind_last_of(solving *s, const stretches *x)
{
    ir_val last = s->zero;

    for (int i = 0; i < x->n; i++) {
        const stretch *p = &x->at[i];
        ir_val one = p->lo ? ir_where(&s->b, is_any(s, p), hi_of(s, p), s->zero) : hi_of(s, p);
        last = i ? binary(s, OP_MAX, last, one) : one;
    }
    return last;
}

/* Behind the first run of blocks of x, or 0: a run ends in the stretch that it begins in, or in one
 * that begins there; after as many rounds as there are stretches nothing is added. */
static ir_val end_of_run_of(solving *s, const stretches *x)
{
    if (x->n < 2)
        return behind_last_of(s, x);
    ir_val first = first_of(s, x), end = first;
    for (int i = 0; i < x->n * x->n; i++) {
        const stretch *p = &x->at[i % x->n];
        ir_val meets = binary(s, OP_CMP_LE, lo_of(s, p), end);
        end = ir_where(&s->b, binary(s, OP_AND, meets, is_any(s, p)),
                       binary(s, OP_MAX, end, hi_of(s, p)), end);
    }
    return ir_where(&s->b, binary(s, OP_CMP_LT, first, s->n), end, s->zero);
}

static ir_val answer(solving *s, const question *q, const stretches *x)
{
    ir_val v = 0;

    switch (q->answer) {
    case FIRST:
        v = first_of(s, x);
        break;
    case BEHIND_LAST:
        v = behind_last_of(s, x);
        break;
    case BEGIN_OF_RUN:
        v = first_of(s, x);
        v = ir_where(&s->b, binary(s, OP_CMP_LT, v, s->n), v, s->zero);
        break;
    case END_OF_RUN:
        v = end_of_run_of(s, x);
        break;
    }
    return ir_cast(&s->b, v, DT_I32);
}

/* ---- questions ------------------------------------------------------------------------------- */

static bool is_const(const solving *s, ir_val v, int64_t c)
{
    const ir_op *op = ir_def(s->fn, v);

    return op && op->code == OP_CONST_INT && op->attr[0].i == c;
}

/* v is code of x and y, in any order; y 0: the constant c. */
static bool is_op_of(const solving *s, ir_val v, enum ir_opcode code, ir_val x, ir_val y, int64_t c)
{
    const ir_op *op = ir_def(s->fn, v);

    for (int i = 0; op && op->code == code && i < 2; i++) {
        if (op->args[i] == x && (y ? op->args[!i] == y : is_const(s, op->args[!i], c)))
            return true;
    }
    return false;
}

/* What an `and` joins; false: too much. */
static bool read_conjuncts(const solving *s, ir_val v, question *q)
{
    const ir_op *op = ir_def(s->fn, v);

    if (op && op->code == OP_AND)
        return read_conjuncts(s, op->args[0], q) && read_conjuncts(s, op->args[1], q);
    if (q->n == CONJUNCTS)
        return false;
    q->all[q->n++] = v;
    return true;
}

static void drop_conjunct(question *q, int i)
{
    q->all[i] = q->all[--q->n];
}

static bool is_unbegun_or_next(const solving *s, ir_val v, ir_val end)
{
    const ir_op *op = ir_def(s->fn, v);

    for (int i = 0; op && op->code == OP_OR && i < 2; i++) {
        if (is_op_of(s, op->args[i], OP_CMP_EQ, end, 0, 0) &&
            is_op_of(s, op->args[!i], OP_CMP_EQ, end, s->counter, 0))
            return true;
    }
    return false;
}

/* i + 1 becomes the carried value; of a run if a condition says so, which is dropped. */
static void read_behind(const solving *s, int at, question *q)
{
    q->answer = BEHIND_LAST;
    for (int i = 0; i < q->n; i++) {
        if (!is_unbegun_or_next(s, q->all[i], carried(s, at)))
            continue;
        q->answer = END_OF_RUN;
        drop_conjunct(q, i);
        return;
    }
}

/* i becomes the carried value, once: while the end of the run is 0. */
static bool read_begin(const solving *s, question *q)
{
    q->answer = BEGIN_OF_RUN;
    for (int i = 0; i < q->n; i++) {
        for (int j = 0; j < s->loop->nres; j++) {
            if (!is_op_of(s, q->all[i], OP_CMP_EQ, carried(s, j), 0, 0))
                continue;
            q->end = j;
            drop_conjunct(q, i);
            return true;
        }
    }
    return false;
}

/* What the carried value at place `at` becomes, and from what. */
static bool read_question(const solving *s, int at, question *q)
{
    ir_val next = s->loop->regions[0]->last->args[at], init = s->loop->args[3 + at];
    const ir_op *op = ir_def(s->fn, next);

    *q = (question){0};
    if (op && op->code == OP_WHERE && op->args[2] == carried(s, at)) {
        if (!read_conjuncts(s, op->args[0], q))
            return false;
        next = op->args[1];
    }
    if (is_op_of(s, next, OP_MIN, carried(s, at), s->counter, 0)) {
        q->answer = FIRST;
        return init == s->loop->args[1];
    }
    if (!is_const(s, init, 0))
        return false;
    if (next == s->counter)
        return read_begin(s, q);
    read_behind(s, at, q);
    return is_op_of(s, next, OP_ADD, s->counter, 0, 1);
}

static bool same_conditions(const question *x, const question *y)
{
    for (int i = 0; i < x->n; i++) {
        bool found = false;
        for (int j = 0; j < y->n; j++)
            found |= x->all[i] == y->all[j];
        if (!found)
            return false;
    }
    return x->n == y->n;
}

static bool read_questions(const solving *s, question *q)
{
    for (int i = 0; i < s->loop->nres; i++) {
        if (!read_question(s, i, &q[i]))
            return false;
    }
    for (int i = 0; i < s->loop->nres; i++) {
        if (q[i].answer == BEGIN_OF_RUN &&
            (q[q[i].end].answer != END_OF_RUN || !same_conditions(&q[i], &q[q[i].end])))
            return false;
    }
    return true;
}

/* ---- loops ----------------------------------------------------------------------------------- */

static bool is_search(const solving *s, const ir_op *op)
{
    int64_t least, most;

    if (op->nres == 0 || op->nres > MAX_CARRIED || !is_const(s, op->args[0], 0) ||
        !is_const(s, op->args[2], 1) || op->args[1] >= s->nvalues)
        return false;
    facts_range(s->f, op->args[1], &least, &most);
    if (least < 0)
        return false;
    for
        IR_EACH_OP(inner, op->regions[0])
        {
            if (inner->nregions || (inner->code != OP_YIELD && !op_is_pure(s->fn, inner)))
                return false;
        }
    return true;
}

/* What question i is about, in the words of an earlier one where they are the same. */
static bool solve_question(solving *s, const question *q, int i, stretches *about)
{
    for (int j = 0; j < i; j++) {
        if (!same_conditions(&q[i], &q[j]))
            continue;
        about[i] = about[j];
        return true;
    }
    s->budget = BUDGET;
    return solve_all(s, &q[i], &about[i]);
}

/* False: the loop stays, and what was built may be half of it. */
static bool answer_all(solving *s, const question *q, ir_val *answers)
{
    stretches about[MAX_CARRIED];

    for (int i = 0; i < s->loop->nres; i++) {
        if (!solve_question(s, q, i, about))
            return false;
    }
    for (int i = 0; i < s->loop->nres; i++)
        answers[i] = answer(s, &q[i], &about[i]);
    return true;
}

static void try_loop(solving *s, ir_op *loop)
{
    const ir_op *above = loop->prev;
    question q[MAX_CARRIED];
    ir_val answers[MAX_CARRIED];

    s->loop = loop;
    s->counter = loop->regions[0]->arg;
    if (!is_search(s, loop) || !read_questions(s, q))
        return;
    s->b = ir_before(s->fn, loop);
    s->b.where = loop->where;
    s->first = (renames){.a = s->a};
    s->zero = ir_const_int(&s->b, DT_I64, 0);
    s->n = ir_cast(&s->b, loop->args[1], DT_I64);
    if (answer_all(s, q, answers)) {
        for (int i = 0; i < loop->nres; i++)
            ir_replace_uses(s->fn, loop->res + (ir_val)i, answers[i]);
        ir_unlink(loop);
        s->changes++;
        return;
    }
    while (loop->prev != above)
        ir_unlink(loop->prev);
}

static void visit_block(solving *s, ir_block *blk)
{
    for
        IR_EACH_OP_SAFE(op, next, blk)
        {
            for (int i = 0; i < op->nregions; i++)
                visit_block(s, op->regions[i]);
            if (op->code == OP_FOR)
                try_loop(s, op);
        }
}

static void look(ir_op *op, void *arg)
{
    *(bool *)arg |= op->code == OP_FOR;
}

tw_status pass_solve_searches(pass_cx *cx, ir_module *m)
{
    solving s = {.fn = m->kernel, .a = cx->scratch, .nvalues = m->kernel->values.n};
    bool any = false;

    ir_walk(m->kernel->body, look, &any);
    if (!any)
        return TW_OK;
    s.f = facts_compute(cx->scratch, m->kernel);
    visit_block(&s, m->kernel->body);
    cx->changes = s.changes;
    return TW_OK;
}
