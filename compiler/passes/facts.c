/* One walk in text order gives every integer value a range, a divisor and, while nothing can wrap,
 * a linear form. Intervals are computed without wrapping; a result that its type may not hold is
 * then anything of that type, and stands for itself in forms. */
#include "compiler/passes/facts.h"
#include "compiler/base/check.h"
#include "compiler/passes/facts_core.h"

typedef struct walk {
    facts *f;
    const ir_fn *fn, *launch;
    uint32_t *node_of;
} walk;

/* A value being described, before its type is asked whether it holds it. */
typedef struct draft {
    wide lo, hi;
    int64_t multiple;
    bool has_form;
    form lin;
} draft;

bool dtype_bounds(enum dtype t, int64_t *lo, int64_t *hi)
{
    int bits = dtype_bits(t);
    bool is_signed = dtype_kind(t) == DTK_SINT;

    *lo = is_signed ? -(int64_t)(UINT64_MAX >> (65 - bits)) - 1 : 0;
    *hi = (int64_t)(UINT64_MAX >> ((is_signed ? 65 : 64) - bits));
    if (t != DT_U64)
        return true;
    *lo = INT64_MIN;
    *hi = INT64_MAX;
    return false;
}

static bool is_integer(ir_type t)
{
    return (t.kind == TYPE_SCALAR || t.kind == TYPE_TILE) && !dtype_is_float(t.dtype);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

bool form_of_node(const facts *f, uint32_t node, form *out)
{
    const fact *x = &f->node.at[node];

    if (x->lin)
        *out = *x->lin;
    else if (ir_type_of(x->fn, x->val).kind == TYPE_SCALAR)
        *out = form_key(node);
    else
        return false;
    return true;
}

bool form_of(const facts *f, const ir_fn *fn, ir_val v, form *out)
{
    uint32_t node = node_of(f, fn, v);

    return node && form_of_node(f, node, out);
}

static void key_bounds(const facts *f, uint32_t key, const ir_type *shape, wide *lo, wide *hi)
{
    if (key >= FORM_AXIS) {
        *lo = 0;
        *hi = shape->shape[key - FORM_AXIS] - 1;
    } else {
        *lo = f->node.at[key].lo;
        *hi = f->node.at[key].hi;
    }
}

wide form_max(const facts *f, const form *x, const ir_type *shape)
{
    wide sum = x->c, lo, hi;

    for (uint32_t i = 0; i < x->n; i++) {
        key_bounds(f, x->at[i].key, shape, &lo, &hi);
        sum += x->at[i].k * (x->at[i].k > 0 ? hi : lo);
    }
    return sum;
}

wide form_min(const facts *f, const form *x, const ir_type *shape)
{
    wide sum = x->c, lo, hi;

    for (uint32_t i = 0; i < x->n; i++) {
        key_bounds(f, x->at[i].key, shape, &lo, &hi);
        sum += x->at[i].k * (x->at[i].k > 0 ? lo : hi);
    }
    return sum;
}

bool form_divisible(const facts *f, const form *x, int64_t s)
{
    if (x->c % s)
        return false;
    for (uint32_t i = 0; i < x->n; i++) {
        int64_t needs = s / gcd_of(s, x->at[i].k);
        if (x->at[i].key >= FORM_AXIS || f->node.at[x->at[i].key].multiple % needs)
            return false;
    }
    return true;
}

static int64_t power_of_two_in(int64_t x)
{
    uint64_t u = (uint64_t)x, bit = u & (0 - u);

    return bit && !(bit >> 62) ? (int64_t)bit : (int64_t)1 << 62;
}

static void narrow_by_form(const walk *w, draft *d, const ir_type *t)
{
    wide lo = form_min(w->f, &d->lin, t), hi = form_max(w->f, &d->lin, t);

    d->lo = lo > d->lo ? lo : d->lo;
    d->hi = hi < d->hi ? hi : d->hi;
}

/* What is left when the value may have wrapped: anything, and divisors of the modulus. */
static void forget_wrapped(draft *d, enum dtype t, int64_t lo, int64_t hi)
{
    int64_t modulus = (int64_t)1 << (dtype_bits(t) < 62 ? dtype_bits(t) : 62);

    d->multiple = gcd_of(power_of_two_in(d->multiple), modulus);
    d->has_form = false;
    d->lo = lo;
    d->hi = hi;
}

static void store_fact(const walk *w, uint32_t node, const draft *d)
{
    fact *x = &w->f->node.at[node];

    x->lo = (int64_t)d->lo;
    x->hi = (int64_t)d->hi;
    x->multiple = d->lo == d->hi ? (int64_t)d->lo : d->multiple;
    if (!d->has_form)
        return;
    form *kept = ARENA_NEW(w->f->a, form);
    *kept = d->lin;
    x->lin = kept;
}

/* A launch value that is a kernel's parameter stands for itself; what was known of it still holds.
 */
static void meet(draft *d, const fact *x)
{
    d->has_form = false;
    d->lo = x->lo > d->lo ? x->lo : d->lo;
    d->hi = x->hi < d->hi ? x->hi : d->hi;
    if (d->hi < d->lo)
        d->hi = d->lo;
    if (d->multiple == 0 || x->multiple % d->multiple == 0)
        d->multiple = x->multiple;
}

static void describe(const walk *w, ir_val v, draft d)
{
    ir_type t = ir_type_of(w->fn, v);
    fact blank = {.fn = w->fn, .val = v};
    int64_t lo, hi;

    bool bounded = dtype_bounds(t.dtype, &lo, &hi);
    if (d.has_form)
        narrow_by_form(w, &d, &t);
    if (!bounded || d.lo < lo || d.hi > hi)
        forget_wrapped(&d, t.dtype, lo, hi);
    if (d.lo >= d.hi) { /* constant; or no value at all, where nothing runs */
        d.hi = d.lo;
        d.has_form = true;
        d.lin = form_const((int64_t)d.lo);
    }
    if (w->node_of[v])
        meet(&d, &w->f->node.at[w->node_of[v]]);
    else
        w->node_of[v] = (uint32_t)vec_push(&w->f->node, w->f->a, blank);
    store_fact(w, w->node_of[v], &d);
}

static draft anything(enum dtype t)
{
    draft d = {.multiple = 1};
    int64_t lo, hi;

    dtype_bounds(t, &lo, &hi);
    d.lo = lo;
    d.hi = hi;
    return d;
}

static draft between(wide lo, wide hi)
{
    return (draft){.lo = lo, .hi = hi, .multiple = 1};
}

static draft operand(const walk *w, ir_val v)
{
    uint32_t node = w->node_of[v];
    const fact *x = &w->f->node.at[node];

    if (!node)
        return between(INT64_MIN, INT64_MAX);
    draft d = {.lo = x->lo, .hi = x->hi, .multiple = x->multiple};
    d.has_form = form_of_node(w->f, node, &d.lin);
    return d;
}

static bool is_const(const draft *d)
{
    return d->lo == d->hi;
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

static draft combined(int64_t a, const draft *x, int64_t b, const draft *y)
{
    draft d = {.multiple = gcd_of(x->multiple, y->multiple)};

    d.lo = a * (a > 0 ? x->lo : x->hi) + b * (b > 0 ? y->lo : y->hi);
    d.hi = a * (a > 0 ? x->hi : x->lo) + b * (b > 0 ? y->hi : y->lo);
    d.has_form = x->has_form && y->has_form && form_combine(&d.lin, a, &x->lin, b, &y->lin);
    return d;
}

static wide least_of(const wide v[4])
{
    wide m = v[0];

    for (int i = 1; i < 4; i++)
        m = v[i] < m ? v[i] : m;
    return m;
}

static draft product(const draft *x, const draft *y)
{
    const wide p[4] = {x->lo * y->lo, x->lo * y->hi, x->hi * y->lo, x->hi * y->hi};
    const wide n[4] = {-p[0], -p[1], -p[2], -p[3]};
    draft d = between(least_of(p), -least_of(n));
    const draft *factor = is_const(y) ? y : x, *other = is_const(y) ? x : y;
    form zero = form_const(0);

    if (__builtin_mul_overflow(x->multiple, y->multiple, &d.multiple))
        d.multiple = x->multiple;
    d.has_form = is_const(factor) && other->has_form &&
                 form_combine(&d.lin, (int64_t)factor->lo, &other->lin, 0, &zero);
    return d;
}

static wide magnitude(const draft *x)
{
    wide a = x->lo < 0 ? -x->lo : x->lo, b = x->hi < 0 ? -x->hi : x->hi;

    return a > b ? a : b;
}

static wide smaller(wide x, wide y)
{
    return x < y ? x : y;
}

static wide greater(wide x, wide y)
{
    return x > y ? x : y;
}

/* All coefficients are multiples of c: the quotient without a rest. */
static bool divide_form(form *r, const form *x, int64_t c)
{
    if (c == INT64_MIN || c == -1 || x->c % c)
        return false;
    *r = *x;
    r->c /= c;
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->at[i].k % c)
            return false;
        r->at[i].k /= c;
    }
    return true;
}

static draft quotient(const draft *x, const draft *y)
{
    int64_t c = (int64_t)y->lo;

    if (!is_const(y) || c == 0) { /* x / 0 = 0 */
        wide m = magnitude(x);
        bool natural = x->lo >= 0 && y->lo >= 0;
        return between(natural ? 0 : -m, natural && y->lo > 0 ? x->hi / y->lo : m);
    }
    draft d = between(smaller(x->lo / c, x->hi / c), greater(x->lo / c, x->hi / c));
    if (c == -1)
        d.multiple = x->multiple;
    else if (x->multiple % c == 0)
        d.multiple = x->multiple / c;
    d.has_form = x->has_form && divide_form(&d.lin, &x->lin, c);
    return d;
}

static draft remainder_of(const walk *w, const draft *x, const draft *y)
{
    wide m = magnitude(x), below = magnitude(y) - 1;

    if (is_const(y) && y->lo > 0 && x->has_form && x->lo >= 0 && x->hi < y->lo)
        return *x;
    if (is_const(y) && y->lo > 0 && x->has_form && form_divisible(w->f, &x->lin, (int64_t)y->lo))
        return between(0, 0);
    if (y->lo > 0 || y->hi < 0)
        m = smaller(m, below);
    draft d = between(x->lo < 0 ? -m : 0, x->hi > 0 ? m : 0);
    d.multiple = is_const(y) ? gcd_of(x->multiple, y->multiple) : 1;
    return d;
}

static draft shifted_right(const draft *x, const draft *y, int bits)
{
    if (!is_const(y) || y->lo < 0 || y->lo >= bits)
        return x->lo >= 0 ? between(0, x->hi) : between(smaller(x->lo, -1), greater(x->hi, 0));
    return between(x->lo >> (int)y->lo, x->hi >> (int)y->lo);
}

static draft shifted_left(const draft *x, const draft *y, int bits, enum dtype t)
{
    draft factor;

    if (!is_const(y) || y->lo < 0 || y->lo >= bits || y->lo > 61)
        return anything(t);
    int64_t power = (int64_t)1 << (int)y->lo;
    factor = between(power, power);
    factor.multiple = power;
    return product(x, &factor);
}

static draft both_bits(const draft *x, const draft *y, enum dtype t)
{
    draft d = anything(t);

    if (x->lo >= 0)
        d = between(0, y->lo >= 0 ? smaller(x->hi, y->hi) : x->hi);
    else if (y->lo >= 0)
        d = between(0, y->hi);
    int64_t a = power_of_two_in(x->multiple), b = power_of_two_in(y->multiple);
    d.multiple = a > b ? a : b;
    return d;
}

static draft any_bits(const draft *x, const draft *y, enum dtype t)
{
    draft d = anything(t);
    wide top = 1;

    if (x->lo >= 0 && y->lo >= 0) {
        while (top <= greater(x->hi, y->hi))
            top *= 2;
        d = between(0, top - 1);
    }
    d.multiple = gcd_of(power_of_two_in(x->multiple), power_of_two_in(y->multiple));
    return d;
}

/* One of the two, whichever it is. */
static draft either(const draft *x, const draft *y)
{
    draft d = between(smaller(x->lo, y->lo), greater(x->hi, y->hi));

    d.multiple = gcd_of(x->multiple, y->multiple);
    d.has_form = x->has_form && y->has_form && form_equal(&x->lin, &y->lin);
    d.lin = x->lin;
    return d;
}

static draft extreme(enum ir_opcode code, const draft *x, const draft *y)
{
    bool is_max = code == OP_MAX;

    if (is_max ? x->lo >= y->hi : x->hi <= y->lo)
        return *x;
    if (is_max ? y->lo >= x->hi : y->hi <= x->lo)
        return *y;
    draft d = either(x, y);
    d.lo = is_max ? greater(x->lo, y->lo) : smaller(x->lo, y->lo);
    d.hi = is_max ? greater(x->hi, y->hi) : smaller(x->hi, y->hi);
    return d;
}

static draft absolute(const draft *x)
{
    draft zero = between(0, 0);

    zero.has_form = true;
    zero.multiple = 0;
    if (x->lo >= 0)
        return *x;
    if (x->hi <= 0)
        return combined(-1, x, 1, &zero);
    draft d = between(0, magnitude(x));
    d.multiple = x->multiple;
    return d;
}

static draft constant(int64_t c)
{
    draft d = between(c, c);

    d.multiple = c;
    d.has_form = true;
    d.lin = form_const(c);
    return d;
}

static draft arithmetic(const walk *w, const ir_op *op)
{
    draft x = operand(w, op->args[0]);
    draft y = op->nargs > 1 ? operand(w, op->args[1]) : constant(0);
    enum dtype t = ir_type_of(w->fn, op->res).dtype;
    draft one = constant(1), zero = constant(0);

    switch ((int)op->code) {
    case OP_ADD:
        return combined(1, &x, 1, &y);
    case OP_SUB:
        return combined(1, &x, -1, &y);
    case OP_NEG:
        return combined(-1, &x, 1, &zero);
    case OP_NOT:
        return dtype_kind(t) == DTK_SINT ? combined(-1, &x, -1, &one) : anything(t);
    case OP_MUL:
        return product(&x, &y);
    case OP_DIV:
        return quotient(&x, &y);
    case OP_REM:
        return remainder_of(w, &x, &y);
    case OP_SHL:
        return shifted_left(&x, &y, dtype_bits(t), t);
    case OP_SHR:
        return shifted_right(&x, &y, dtype_bits(t));
    case OP_AND:
        return both_bits(&x, &y, t);
    case OP_OR:
    case OP_XOR:
        return any_bits(&x, &y, t);
    case OP_MAX:
    case OP_MIN:
        return extreme(op->code, &x, &y);
    case OP_ABS:
        return absolute(&x);
    default:
        return anything(t);
    }
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* The form of the operand with each axis renamed as the op does; false when it cannot be said. */
static bool rename_axes(const walk *w, const ir_op *op, form *x)
{
    form out = form_const(x->c);
    ir_type from = ir_type_of(w->fn, op->args[0]);

    for (uint32_t i = 0; i < x->n; i++) {
        form term = form_key(x->at[i].key);
        uint32_t axis = x->at[i].key - FORM_AXIS, to = axis;
        if (x->at[i].key >= FORM_AXIS && op->code == OP_RESHAPE)
            return false;
        if (x->at[i].key >= FORM_AXIS && from.shape[axis] == 1)
            continue; /* the only position is 0; broadcast reads it everywhere */
        if (x->at[i].key >= FORM_AXIS && op->code == OP_EXPAND)
            to = axis >= (uint32_t)op->attr[0].i ? axis + 1 : axis;
        for (uint32_t d = 0; op->code == OP_TRANS && d < op->attr[0].ints.n; d++)
            to = op->attr[0].ints.at[d] == axis ? d : to;
        if (x->at[i].key >= FORM_AXIS)
            term.at[0].key = FORM_AXIS + to;
        if (!form_combine(&out, 1, &out, x->at[i].k, &term))
            return false;
    }
    *x = out;
    return true;
}

static draft rearranged(const walk *w, const ir_op *op)
{
    draft d = operand(w, op->args[0]);

    d.has_form = d.has_form && rename_axes(w, op, &d.lin);
    return d;
}

static draft reduced(const walk *w, const ir_op *op)
{
    draft x = operand(w, op->args[0]);
    int64_t n = ir_type_of(w->fn, op->args[0]).shape[op->attr[0].i];
    bool is_sum = op->code == OP_REDUCE_SUM;

    return is_sum ? between(n * x.lo, n * x.hi) : between(x.lo, x.hi);
}

static draft counted(const walk *w, const ir_op *op)
{
    draft d = between(op->attr[0].i, op->attr[0].i + ir_type_of(w->fn, op->res).shape[0] - 1);

    d.multiple = op->attr[0].i;
    d.has_form = true;
    d.lin = form_key(FORM_AXIS);
    d.lin.c = op->attr[0].i;
    return d;
}

/* ---- programs -------------------------------------------------------------------------------- */

/* All ops of an axis are one value. */
static void describe_program(walk *w, const ir_op *op)
{
    facts *f = w->f;
    bool is_id = op->code == OP_PROGRAM_ID;
    uint32_t *seen = is_id ? f->program_id : f->num_programs;
    int64_t axis = op->attr[0].i;

    if (seen[axis]) {
        w->node_of[op->res] = seen[axis];
        return;
    }
    describe(w, op->res, between(is_id ? 0 : 1, is_id ? INT32_MAX - 1 : INT32_MAX));
    seen[axis] = w->node_of[op->res];
    facts_bound_program(f, w->launch, (int)axis);
}

/* ---- the walk -------------------------------------------------------------------------------- */

static draft described(const walk *w, const ir_op *op)
{
    enum dtype t = ir_type_of(w->fn, op->res).dtype;
    draft x, y;

    switch ((int)op->code) {
    case OP_CONST_INT:
        return constant(op->attr[0].i);
    case OP_ARANGE:
        return counted(w, op);
    case OP_SPLAT:
    case OP_EXPAND:
    case OP_BROADCAST:
    case OP_TRANS:
    case OP_RESHAPE:
        return rearranged(w, op);
    case OP_CAST:
        return w->node_of[op->args[0]] && t != DT_I1 ? operand(w, op->args[0]) : anything(t);
    case OP_WHERE:
        x = operand(w, op->args[1]);
        y = operand(w, op->args[2]);
        return either(&x, &y);
    case OP_REDUCE_MAX:
    case OP_REDUCE_MIN:
    case OP_REDUCE_SUM:
        return reduced(w, op);
    default:
        return (op_info(op->code)->traits & OPT_EWISE) && t != DT_I1 ? arithmetic(w, op)
                                                                     : anything(t);
    }
}

static void visit_block(walk *w, const ir_block *blk);

/* The counter takes lo, lo + step, ... while it has not reached hi. */
static void describe_counter(const walk *w, const ir_op *op)
{
    draft lo = operand(w, op->args[0]), hi = operand(w, op->args[1]),
          step = operand(w, op->args[2]);
    draft d = between(smaller(lo.lo, hi.lo + 1), greater(lo.hi, hi.hi - 1));
    draft way = combined(1, &hi, -1, &lo);
    int64_t stride = (int64_t)step.lo;

    if (step.lo >= 0)
        d = between(lo.lo, hi.hi - 1);
    else if (step.hi <= 0)
        d = between(hi.lo + 1, lo.hi);
    if (is_const(&step) && stride > 0 && way.has_form && form_divisible(w->f, &way.lin, stride))
        d.hi = hi.hi - stride;
    d.multiple = gcd_of(lo.multiple, step.multiple);
    describe(w, op->regions[0]->arg, d);
}

static void describe_anything(const walk *w, ir_val first, uint32_t n)
{
    for (ir_val v = first; v < first + n; v++) {
        if (is_integer(ir_type_of(w->fn, v)))
            describe(w, v, anything(ir_type_of(w->fn, v).dtype));
    }
}

static void describe_if(const walk *w, const ir_op *op)
{
    for (uint32_t i = 0; i < op->nres; i++) {
        if (!is_integer(ir_type_of(w->fn, op->res + i)))
            continue;
        draft x = operand(w, op->regions[0]->last->args[i]);
        draft y = operand(w, op->regions[1]->last->args[i]);
        describe(w, op->res + i, either(&x, &y));
    }
}

static void visit_control(walk *w, const ir_op *op)
{
    for (int i = 0; i < op->nregions; i++) {
        const ir_block *region = op->regions[i];
        bool counts = op->code == OP_FOR;
        if (counts)
            describe_counter(w, op);
        describe_anything(w, region->arg + counts, region->nargs - counts);
        visit_block(w, region);
    }
    if (op->code == OP_IF)
        describe_if(w, op);
    else
        describe_anything(w, op->res, op->nres);
}

static void visit_block(walk *w, const ir_block *blk)
{
    for (const ir_op *op = blk->first; op; op = op->next) {
        if (op->nregions)
            visit_control(w, op);
        else if (op->code == OP_PROGRAM_ID || op->code == OP_NUM_PROGRAMS)
            describe_program(w, op);
        else if (op->nres == 1 && is_integer(ir_type_of(w->fn, op->res)))
            describe(w, op->res, described(w, op));
    }
}

static void describe_parameters(walk *w)
{
    for (uint32_t i = 0; i < w->fn->params.n; i++) {
        const ir_param *p = &w->fn->params.at[i];
        ir_val v = w->fn->body->arg + i;
        if (w->node_of[v] || !is_integer(p->type))
            continue;
        describe(w, v, p->kind == PARAM_DIM ? between(0, INT32_MAX) : anything(p->type.dtype));
    }
}

/* Launch values that the kernel gets as its parameters have the parameters' nodes. */
static void share_parameters(walk *w, const facts *f)
{
    const ir_op *ret = w->fn->body->last;
    int result = 3;

    for (uint32_t i = 0; i < f->fn->params.n; i++) {
        uint32_t node = f->of_kernel[f->fn->body->arg + i];
        enum ir_param_kind kind = f->fn->params.at[i].kind;
        if (kind == PARAM_DIM)
            w->node_of[w->fn->body->arg + i] = node;
        if (kind != PARAM_SCALAR)
            continue;
        ir_val passed = ret->args[result++];
        const ir_op *def = ir_def(w->fn, passed);
        if (!w->node_of[passed] && !(def && def->code == OP_CONST_INT))
            w->node_of[passed] = node;
    }
}

/* Twice: what the requires say of a parameter, the second walk knows from the start. */
static void visit_launch(facts *f, const ir_fn *launch)
{
    uint32_t nodes = f->node.n;

    for (int round = 0; round < 2; round++) {
        walk w = {.f = f, .fn = launch, .launch = launch};
        f->node.n = nodes;
        f->known.n = f->divided.n = 0;
        f->of_launch = w.node_of = ARENA_ARRAY(f->a, uint32_t, launch->values.n);
        share_parameters(&w, f);
        describe_parameters(&w);
        visit_block(&w, launch->body);
        facts_read_requires(f, launch);
    }
}

facts *facts_compute(arena *a, const ir_fn *fn)
{
    facts *f = ARENA_NEW(a, facts);
    const ir_fn *launch = fn->module->launch == fn ? NULL : fn->module->launch;
    walk w = {.f = f, .fn = fn, .launch = launch};

    f->a = a;
    f->fn = fn;
    vec_reserve(&f->node, a, fn->values.n + (launch ? launch->values.n : 0));
    vec_push(&f->node, a, (fact){0});
    f->of_kernel = w.node_of = ARENA_ARRAY(a, uint32_t, fn->values.n);
    f->truth = ARENA_ARRAY(a, int8_t, fn->values.n);
    for (uint32_t i = 0; i < fn->values.n; i++)
        f->truth[i] = TRUTH_NEW;
    describe_parameters(&w);
    if (launch)
        visit_launch(f, launch);
    visit_block(&w, fn->body);
    return f;
}

void facts_range(const facts *f, ir_val v, int64_t *lo, int64_t *hi)
{
    uint32_t node = f->of_kernel[v];

    *lo = node ? f->node.at[node].lo : INT64_MIN;
    *hi = node ? f->node.at[node].hi : INT64_MAX;
}

int64_t facts_divisor(const facts *f, ir_val v)
{
    uint32_t node = f->of_kernel[v];

    return node ? power_of_two_in(f->node.at[node].multiple) : 1;
}
