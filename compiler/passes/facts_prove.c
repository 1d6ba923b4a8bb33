/* Proofs that a linear form is never positive.
 *
 * A form whose greatest value by its keys' ranges is <= 0 is proved. Otherwise the key that comes
 * to be last is replaced by a bound on it: what the text says it is made of (a loop's bounds, the
 * operands of min, max, div, ...), or a known inequality. Bounds speak of earlier values, so terms
 * meet and cancel and the search ends; a budget bounds it besides.
 *
 * Where a key is one of two values (max, where, ...) both cases must hold. A case that cannot be,
 * since it contradicts what is known there (a loop whose body runs is not empty), holds.
 */
#include "compiler/base/check.h"
#include "compiler/passes/facts_core.h"

enum { MAX_BOUNDS = 4, MAX_KNOWN = 48, MAX_PATH = 16, MAX_CASES = 4, MAX_DEPTH = 12, BUDGET = 200 };

typedef struct prover {
    const facts *f;
    const ir_type *shape;
    uint32_t nknown, npath; /* the first npath come from the place, the others hold everywhere */
    const form *known[MAX_KNOWN];
    form path[MAX_PATH];
    uint32_t ncases;
    uint32_t case_key[MAX_CASES];
    form case_value[MAX_CASES];
    int budget;
    bool contradicting;
} prover;

/* key <= bound / scale (or >=, as was asked). */
typedef struct bound {
    form x;
    int64_t scale;
} bound;
typedef struct bounds {
    bound at[MAX_BOUNDS];
    uint32_t n;
    bool split; /* the key is at[0] or at[1] */
} bounds;

static void add_bound(bounds *b, const form *x, int64_t plus, int64_t scale)
{
    bound *out = &b->at[b->n];

    if (b->n == MAX_BOUNDS)
        return;
    out->x = *x;
    out->scale = scale;
    b->n += form_add_const(&out->x, plus);
}

/* ---- what a value is made of ----------------------------------------------------------------- */

typedef struct made {
    const facts *f;
    const ir_fn *fn;
    const ir_op *op;
} made;

static bool arg_form(const made *m, int i, form *out)
{
    return form_of(m->f, m->fn, m->op->args[i], out);
}

static wide arg_min(const made *m, int i)
{
    form x;

    return arg_form(m, i, &x) ? form_min(m->f, &x, NULL) : (wide)INT64_MIN;
}

static wide arg_max(const made *m, int i)
{
    form x;

    return arg_form(m, i, &x) ? form_max(m->f, &x, NULL) : (wide)INT64_MAX;
}

static bool arg_const(const made *m, int i, int64_t *c)
{
    form x;

    *c = arg_form(m, i, &x) ? x.c : 0;
    return arg_form(m, i, &x) && x.n == 0;
}

static void bound_counter(const made *m, bool upper, bounds *b)
{
    form lo, hi, way;
    int64_t step;

    if (!arg_form(m, 0, &lo) || !arg_form(m, 1, &hi))
        return;
    bool up = arg_min(m, 2) >= 0, down = arg_max(m, 2) <= 0;
    bool whole = up && arg_const(m, 2, &step) && step > 0 && form_combine(&way, 1, &hi, -1, &lo) &&
                 form_divisible(m->f, &way, step);
    if (up)
        add_bound(b, upper ? &hi : &lo, !upper ? 0 : whole ? -step : -1, 1);
    else if (down)
        add_bound(b, upper ? &lo : &hi, upper ? 0 : 1, 1);
}

/* x / (p / q) < q, where q divides p, for 0 <= x < p: then q > 0 and p = q * (p / q). */
static void bound_by_group(const made *m, bounds *b, prover *p);

static void bound_quotient(const made *m, bool upper, bounds *b)
{
    int64_t c;
    form x;

    if (!arg_form(m, 0, &x))
        return;
    if (!arg_const(m, 1, &c)) {
        if (upper && arg_min(m, 0) >= 0 && arg_min(m, 1) >= 0)
            add_bound(b, &x, 0, 1);
        return;
    }
    if (c <= 0)
        return;
    if (upper)
        add_bound(b, &x, arg_min(m, 0) >= 0 ? 0 : c - 1, c);
    else
        add_bound(b, &x, arg_max(m, 0) <= 0 ? 0 : 1 - c, c);
}

static void bound_remainder(const made *m, bool upper, bounds *b)
{
    form x, y;

    if (!upper || arg_min(m, 0) < 0)
        return;
    if (arg_form(m, 0, &x))
        add_bound(b, &x, 0, 1);
    if (arg_form(m, 1, &y) && arg_min(m, 1) > 0)
        add_bound(b, &y, -1, 1);
}

/* The key is one of two operands. easy: it is at most (for max: at least) each of them. */
static void bound_choice(const made *m, int first, bool easy, bounds *b)
{
    form x, y;
    bool has_x = arg_form(m, first, &x), has_y = arg_form(m, first + 1, &y);

    b->split = !easy && has_x && has_y;
    if (!easy && !b->split)
        return;
    if (has_x)
        add_bound(b, &x, 0, 1);
    if (has_y)
        add_bound(b, &y, 0, 1);
}

static void bound_magnitude(const made *m, bool upper, bounds *b)
{
    form x, negated, zero = form_const(0);
    int64_t lo, hi;

    dtype_bounds(ir_type_of(m->fn, m->op->res).dtype, &lo, &hi);
    if (!arg_form(m, 0, &x) || arg_min(m, 0) <= lo || !form_combine(&negated, -1, &x, 0, &zero))
        return;
    b->split = upper;
    add_bound(b, &x, 0, 1);
    add_bound(b, &negated, 0, 1);
}

static void bound_shift(const made *m, bool upper, bounds *b)
{
    int64_t count;
    form x;

    if (!arg_const(m, 1, &count) || count < 0 || count > 30 ||
        count >= dtype_bits(ir_type_of(m->fn, m->op->res).dtype) || !arg_form(m, 0, &x))
        return;
    int64_t power = (int64_t)1 << count; /* rounds down */
    add_bound(b, &x, upper ? 0 : 1 - power, power);
}

static void bound_if(const facts *f, const ir_value *v, bounds *b)
{
    form x, y;
    const ir_op *op = v->def;

    if (!form_of(f, f->fn, op->regions[0]->last->args[v->index], &x) ||
        !form_of(f, f->fn, op->regions[1]->last->args[v->index], &y))
        return;
    b->split = true;
    add_bound(b, &x, 0, 1);
    add_bound(b, &y, 0, 1);
}

static void bound_result(const made *m, bool upper, bounds *b)
{
    form x;

    switch ((int)m->op->code) {
    case OP_DIV:
        bound_quotient(m, upper, b);
        break;
    case OP_REM:
        bound_remainder(m, upper, b);
        break;
    case OP_MIN:
        bound_choice(m, 0, upper, b);
        break;
    case OP_MAX:
        bound_choice(m, 0, !upper, b);
        break;
    case OP_WHERE:
        bound_choice(m, 1, false, b);
        break;
    case OP_ABS:
        bound_magnitude(m, upper, b);
        break;
    case OP_SHR:
        bound_shift(m, upper, b);
        break;
    case OP_AND:
        for (int i = 0; i < 2; i++) {
            if (upper && arg_form(m, i, &x) && arg_min(m, i) >= 0)
                add_bound(b, &x, 0, 1);
        }
        break;
    default:
        break;
    }
}

static void bounds_of(prover *p, uint32_t key, bool upper, bounds *b)
{
    const fact *node = &p->f->node.at[key];
    const ir_value *v = ir_value_of(node->fn, node->val);
    made m = {p->f, node->fn, v->def};

    if (v->type.dtype == DT_U64) /* its order is not that of int64_t */
        return;
    if (v->def && v->def->code == OP_IF)
        bound_if(p->f, v, b);
    else if (v->def)
        bound_result(&m, upper, b);
    else if (v->block->owner && v->block->owner->code == OP_FOR && v->index == 0)
        bound_counter(&(made){p->f, node->fn, v->block->owner}, upper, b);
    if (v->def && v->def->code == OP_DIV && upper && !b->split)
        bound_by_group(&m, b, p);
}

/* ---- the search ------------------------------------------------------------------------------ */

static bool prove(prover *p, const form *x);

/* A case under which some known form would be positive cannot be. */
static bool contradicts(prover *p)
{
    bool found = false;

    if (p->contradicting || !p->ncases)
        return false;
    p->contradicting = true;
    for (uint32_t i = 0; i < p->npath && !found; i++) {
        form zero = form_const(0), x;
        found = form_combine(&x, -1, &p->path[i], 0, &zero) && form_add_const(&x, 1) &&
                prove(p, &x); /* 1 - known <= 0 */
    }
    p->contradicting = false;
    return found;
}

static bool prove_case(prover *p, const form *x, uint32_t key, const bound *b)
{
    form y;

    if (p->ncases == MAX_CASES || !form_replace(&y, x, key, &b->x, b->scale))
        return false;
    p->case_key[p->ncases] = key;
    p->case_value[p->ncases++] = b->x;
    bool ok = prove(p, &y) || contradicts(p);
    p->ncases--;
    return ok;
}

/* One of several bounds may lead astray: each but the last is given half of what is left. */
static bool prove_by_bounds(prover *p, const form *x, uint32_t key, const bounds *b)
{
    form y;
    bool ok = false;

    if (b->split)
        return b->n == 2 && prove_case(p, x, key, &b->at[0]) && prove_case(p, x, key, &b->at[1]);
    for (uint32_t i = 0; i < b->n && !ok; i++) {
        int kept = i + 1 < b->n ? p->budget / 2 : 0;
        p->budget -= kept;
        ok = form_replace(&y, x, key, &b->at[i].x, b->at[i].scale) && prove(p, &y);
        p->budget += kept;
    }
    return ok;
}

/* A known form with the same sign of key's coefficient, subtracted so often that the key goes. */
static bool prove_by_known(prover *p, const form *x, uint32_t key)
{
    int64_t k = form_coefficient(x, key);

    for (uint32_t i = 0; i < p->nknown; i++) {
        const form *h = p->known[i];
        int64_t other = h ? form_coefficient(h, key) : 0, g = gcd_of(k, other);
        form y;
        if (other == 0 || (k > 0) != (other > 0) || g <= 0 || k == INT64_MIN || other == INT64_MIN)
            continue;
        int64_t times_x = (other < 0 ? -other : other) / g, times_h = (k < 0 ? -k : k) / g;
        if (!form_combine(&y, times_x, x, -times_h, h))
            continue;
        p->known[i] = NULL; /* once on a path: the search ends */
        bool ok = prove(p, &y);
        p->known[i] = h;
        if (ok)
            return true;
    }
    return false;
}

static bool prove_by_range(prover *p, const form *x, uint32_t key)
{
    bool up = form_coefficient(x, key) > 0;
    form one = form_key(key), y;
    wide limit = up ? form_max(p->f, &one, p->shape) : form_min(p->f, &one, p->shape);
    form c = form_const((int64_t)limit);

    return x->n > 1 && form_replace(&y, x, key, &c, 1) && prove(p, &y);
}

static bool decided_by_case(prover *p, const form *x, uint32_t key, bool *ok)
{
    for (uint32_t i = 0; i < p->ncases; i++) {
        form y;
        if (p->case_key[i] != key)
            continue;
        *ok = form_replace(&y, x, key, &p->case_value[i], 1) && prove(p, &y);
        return true;
    }
    return false;
}

static bool prove(prover *p, const form *x)
{
    bool ok;

    if (form_max(p->f, x, p->shape) <= 0)
        return true;
    if (x->n == 0 || p->budget-- <= 0)
        return false;
    uint32_t key = x->at[0].key;
    if (key >= FORM_AXIS)
        return prove_by_range(p, x, key);
    if (decided_by_case(p, x, key, &ok))
        return ok;
    bounds b = {.n = 0};
    bounds_of(p, key, x->at[0].k > 0, &b);
    return prove_by_bounds(p, x, key, &b) || prove_by_known(p, x, key) || prove_by_range(p, x, key);
}

static bool is_quotient_of(const facts *f, const ir_op *div, const ir_fn *fn, const divides *d)
{
    form p, q;

    return form_of(f, fn, div->args[0], &p) && form_of(f, fn, div->args[1], &q) &&
           form_equal(&p, &d->p) && form_equal(&q, &d->q);
}

static void bound_by_group(const made *m, bounds *b, prover *p)
{
    const ir_op *group = ir_def(m->fn, m->op->args[1]);
    form x;

    if (!group || group->code != OP_DIV || arg_min(m, 0) < 0 || !arg_form(m, 0, &x))
        return;
    for (uint32_t i = 0; i < p->f->divided.n; i++) {
        const divides *d = &p->f->divided.at[i];
        form below;
        if (!is_quotient_of(p->f, group, m->fn, d) || form_min(p->f, &d->q, NULL) < 0 ||
            !form_combine(&below, 1, &x, -1, &d->p) || !form_add_const(&below, 1))
            continue;
        if (prove(p, &below))
            add_bound(b, &d->q, -1, 1);
    }
}

/* ---- what holds at a place ------------------------------------------------------------------- */

static void assume(prover *p, const form *x)
{
    if (p->npath == MAX_PATH)
        return;
    p->path[p->npath] = *x;
    p->known[p->npath] = &p->path[p->npath];
    p->npath++;
}

/* x + slack <= y */
static void assume_at_most(prover *p, ir_val x, ir_val y, int64_t slack)
{
    const ir_fn *fn = p->f->fn;
    form a, b;

    if (ir_type_of(fn, x).dtype == DT_U64 || !form_of(p->f, fn, x, &a) ||
        !form_of(p->f, fn, y, &b) || !form_combine(&a, 1, &a, -1, &b) || !form_add_const(&a, slack))
        return;
    assume(p, &a);
}

static void assume_condition(prover *p, ir_val cond, bool holds, int depth)
{
    const ir_op *def = ir_def(p->f->fn, cond);

    if (!def || depth == MAX_DEPTH)
        return;
    switch ((int)def->code) {
    case OP_NOT:
        assume_condition(p, def->args[0], !holds, depth + 1);
        break;
    case OP_AND:
    case OP_OR:
        if (holds != (def->code == OP_AND))
            break;
        assume_condition(p, def->args[0], holds, depth + 1);
        assume_condition(p, def->args[1], holds, depth + 1);
        break;
    case OP_CMP_LT:
        assume_at_most(p, def->args[!holds], def->args[holds], holds);
        break;
    case OP_CMP_LE:
        assume_at_most(p, def->args[!holds], def->args[holds], !holds);
        break;
    case OP_CMP_EQ:
    case OP_CMP_NE:
        if (holds != (def->code == OP_CMP_EQ))
            break;
        assume_at_most(p, def->args[0], def->args[1], 0);
        assume_at_most(p, def->args[1], def->args[0], 0);
        break;
    default:
        break;
    }
}

/* The body of a loop that counts up runs, so lo < hi. */
static void assume_runs(prover *p, const ir_op *loop)
{
    int64_t lo, hi;

    facts_range(p->f, loop->args[2], &lo, &hi);
    if (lo >= 0)
        assume_at_most(p, loop->args[0], loop->args[1], 1);
    else if (hi <= 0)
        assume_at_most(p, loop->args[1], loop->args[0], 1);
}

static void assume_place(prover *p, const ir_op *at)
{
    for (const ir_block *blk = at->parent; blk && blk->owner; blk = blk->owner->parent) {
        const ir_op *owner = blk->owner;
        if (owner->code == OP_IF)
            assume_condition(p, owner->args[0], blk == owner->regions[0], 0);
        else if (owner->code == OP_FOR)
            assume_runs(p, owner);
    }
}

/* x is <= 0 in every program, at `at` (NULL: anywhere). */
static bool not_positive(const facts *f, const form *x, const ir_type *shape, const ir_op *at)
{
    int budget = *f->steps_left < BUDGET ? *f->steps_left : BUDGET;
    prover p = {.f = f, .shape = shape, .budget = budget};

    if (form_max(f, x, shape) <= 0)
        return true;
    if (at)
        assume_place(&p, at);
    p.nknown = p.npath;
    for (uint32_t i = 0; i < f->known.n && p.nknown < MAX_KNOWN; i++)
        p.known[p.nknown++] = &f->known.at[i];
    bool ok = prove(&p, x);
    *f->steps_left -= budget - (p.budget > 0 ? p.budget : 0);
    return ok;
}

/* ---- truth ----------------------------------------------------------------------------------- */

/* x + slack <= y for every element. */
static bool always_at_most(const facts *f, ir_val x, ir_val y, int64_t slack, const ir_op *at)
{
    ir_type shape = ir_type_of(f->fn, x);
    int64_t x_lo, x_hi, y_lo, y_hi;
    form a, b;

    facts_range(f, x, &x_lo, &x_hi);
    facts_range(f, y, &y_lo, &y_hi);
    if ((wide)x_hi + slack <= y_lo)
        return true;
    return form_of(f, f->fn, x, &a) && form_of(f, f->fn, y, &b) &&
           form_combine(&a, 1, &a, -1, &b) && form_add_const(&a, slack) &&
           not_positive(f, &a, &shape, at);
}

/* 1, 0 or -1: always, never, unknown. */
static int compare_truth(const facts *f, const ir_op *op)
{
    ir_val x = op->args[0], y = op->args[1];
    bool equality = op->code == OP_CMP_EQ || op->code == OP_CMP_NE;
    ir_type t = ir_type_of(f->fn, x);

    if (dtype_is_float(t.dtype) || t.dtype == DT_U64)
        return -1;
    if (equality) {
        bool differs = always_at_most(f, x, y, 1, op) || always_at_most(f, y, x, 1, op);
        bool same = !differs && always_at_most(f, x, y, 0, op) && always_at_most(f, y, x, 0, op);
        return differs || same ? same == (op->code == OP_CMP_EQ) : -1;
    }
    int64_t strict = op->code == OP_CMP_LT;
    if (always_at_most(f, x, y, strict, op))
        return 1;
    return always_at_most(f, y, x, !strict, op) ? 0 : -1;
}

static int truth_of(const facts *f, ir_val v, int depth);

static int truth_of_two(const facts *f, const ir_op *op, int depth)
{
    int decides = op->code == OP_OR; /* one operand of this value settles it */
    int x = truth_of(f, op->args[0], depth), y = truth_of(f, op->args[1], depth);

    if (x == decides || y == decides)
        return decides;
    return x == !decides && y == !decides ? !decides : -1;
}

static int truth_of_where(const facts *f, const ir_op *op, int depth)
{
    int c = truth_of(f, op->args[0], depth);

    if (c >= 0)
        return truth_of(f, op->args[c ? 1 : 2], depth);
    int x = truth_of(f, op->args[1], depth);
    return x == truth_of(f, op->args[2], depth) ? x : -1;
}

static int find_truth(const facts *f, const ir_op *op, int depth)
{
    int x;

    switch ((int)op->code) {
    case OP_CONST_INT:
        return op->attr[0].i != 0;
    case OP_SPLAT:
    case OP_EXPAND:
    case OP_BROADCAST:
    case OP_TRANS:
    case OP_RESHAPE:
        return truth_of(f, op->args[0], depth);
    case OP_NOT:
        x = truth_of(f, op->args[0], depth);
        return x < 0 ? x : !x;
    case OP_AND:
    case OP_OR:
        return truth_of_two(f, op, depth);
    case OP_WHERE:
        return truth_of_where(f, op, depth);
    case OP_CMP_EQ:
    case OP_CMP_NE:
    case OP_CMP_LT:
    case OP_CMP_LE:
        return compare_truth(f, op);
    default:
        return -1;
    }
}

static int truth_of(const facts *f, ir_val v, int depth)
{
    const ir_op *def = ir_def(f->fn, v);

    if (!def || def->nres != 1 || depth == MAX_DEPTH)
        return -1;
    if (f->truth[v] == TRUTH_NEW)
        f->truth[v] = (int8_t)find_truth(f, def, depth + 1);
    return f->truth[v];
}

int facts_truth(const facts *f, ir_val cond)
{
    return ir_type_of(f->fn, cond).dtype == DT_I1 ? truth_of(f, cond, 0) : -1;
}

/* ---- order ----------------------------------------------------------------------------------- */

bool facts_le(const facts *f, ir_val x, ir_val y, const ir_op *at)
{
    form a, b;
    ir_type t = ir_type_of(f->fn, x);

    if (t.kind != TYPE_SCALAR || t.dtype == DT_U64 || dtype_is_float(t.dtype))
        return false;
    return form_of(f, f->fn, x, &a) && form_of(f, f->fn, y, &b) &&
           form_combine(&a, 1, &a, -1, &b) && not_positive(f, &a, NULL, at);
}

/* ---- slices ---------------------------------------------------------------------------------- */

static bool extent_form(const facts *f, int32_t dim, form *out)
{
    const ir_fn *fn = f->fn;

    if (fn->dims.at[dim].is_const) {
        *out = form_const(fn->dims.at[dim].value);
        return true;
    }
    for (uint32_t i = 0; i < fn->params.n; i++) {
        if (fn->params.at[i].kind == PARAM_DIM && fn->params.at[i].symbol == dim)
            return form_of(f, fn, fn->body->arg + i, out);
    }
    return false;
}

bool facts_inside(const facts *f, const ir_op *access, int d, int64_t n)
{
    const ir_value *view = ir_value_of(f->fn, access->args[0]);
    ir_type index = ir_type_of(f->fn, access->args[1 + d]);
    const ir_type *shape = index.kind == TYPE_TILE ? &index : NULL;
    form first, extent, zero = form_const(0), below;

    if (view->block != f->fn->body ||
        !extent_form(f, f->fn->params.at[view->index].dim[d], &extent) ||
        !form_of(f, f->fn, access->args[1 + d], &first) ||
        !form_combine(&below, -1, &first, 0, &zero) ||
        !form_combine(&first, 1, &first, -1, &extent) || !form_add_const(&first, n))
        return false;
    return not_positive(f, &below, shape, access) &&
           not_positive(f, &first, shape, access);
}
