/* One walk in text order gives every integer value a range, a divisor and, while nothing can wrap,
 * a linear form (facts_draft.c has the arithmetic). Intervals are computed without wrapping; a
 * result that its type may not hold is then anything of that type, and stands for itself in forms.
 */
#include "compiler/passes/facts.h"
#include "compiler/base/check.h"
#include "compiler/passes/facts_draft.h"

enum { ALL_STEPS = 100000 }; /* some 15 ms; attention_fwd takes 200 */

typedef struct walk {
    facts *f;
    const ir_fn *fn, *launch;
    uint32_t *node_of;
} walk;

static bool is_integer(ir_type t)
{
    return (t.kind == TYPE_SCALAR || t.kind == TYPE_TILE) && !dtype_is_float(t.dtype);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static bool node_form(const facts *f, uint32_t node, form *out)
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

    return node && node_form(f, node, out);
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

    d->multiple = gcd_of(draft_power_of_two(d->multiple), modulus);
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

static draft operand(const walk *w, ir_val v)
{
    uint32_t node = w->node_of[v];
    const fact *x = &w->f->node.at[node];

    if (!node)
        return draft_between(INT64_MIN, INT64_MAX);
    draft d = {.lo = x->lo, .hi = x->hi, .multiple = x->multiple};
    d.has_form = node_form(w->f, node, &d.lin);
    return d;
}

/* ---- arithmetic and shapes ------------------------------------------------------------------- */

static draft arithmetic(const walk *w, const ir_op *op)
{
    draft x = operand(w, op->args[0]);
    draft y = op->nargs > 1 ? operand(w, op->args[1]) : draft_constant(0);
    enum dtype t = ir_type_of(w->fn, op->res).dtype;
    draft one = draft_constant(1), zero = draft_constant(0);

    switch ((int)op->code) {
    case OP_ADD:
        return draft_combine(1, &x, 1, &y);
    case OP_SUB:
        return draft_combine(1, &x, -1, &y);
    case OP_NEG:
        return draft_combine(-1, &x, 1, &zero);
    case OP_NOT:
        return dtype_kind(t) == DTK_SINT ? draft_combine(-1, &x, -1, &one) : draft_any(t);
    case OP_MUL:
        return draft_product(&x, &y);
    case OP_DIV:
        return draft_quotient(&x, &y);
    case OP_REM:
        return draft_remainder(w->f, &x, &y);
    case OP_SHL:
        return draft_shift_left(&x, &y, dtype_bits(t), t);
    case OP_SHR:
        return draft_shift_right(&x, &y, dtype_bits(t));
    case OP_AND:
        return draft_and(&x, &y, t);
    case OP_OR:
    case OP_XOR:
        return draft_or(&x, &y, t);
    case OP_MAX:
    case OP_MIN:
        return draft_extreme(op->code, &x, &y);
    case OP_ABS:
        return draft_absolute(&x);
    default:
        return draft_any(t);
    }
}

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

    return is_sum ? draft_between(n * x.lo, n * x.hi) : draft_between(x.lo, x.hi);
}

static draft counted(const walk *w, const ir_op *op)
{
    draft d = draft_between(op->attr[0].i, op->attr[0].i + ir_type_of(w->fn, op->res).shape[0] - 1);

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
    describe(w, op->res, draft_between(is_id ? 0 : 1, is_id ? INT32_MAX - 1 : INT32_MAX));
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
        return draft_constant(op->attr[0].i);
    case OP_ARANGE:
        return counted(w, op);
    case OP_SPLAT:
    case OP_EXPAND:
    case OP_BROADCAST:
    case OP_TRANS:
    case OP_RESHAPE:
        return rearranged(w, op);
    case OP_CAST:
        return w->node_of[op->args[0]] && t != DT_I1 ? operand(w, op->args[0]) : draft_any(t);
    case OP_WHERE:
        x = operand(w, op->args[1]);
        y = operand(w, op->args[2]);
        return draft_either(&x, &y);
    case OP_REDUCE_MAX:
    case OP_REDUCE_MIN:
    case OP_REDUCE_SUM:
        return reduced(w, op);
    default:
        return (op_info(op->code)->traits & OPT_EWISE) && t != DT_I1 ? arithmetic(w, op)
                                                                     : draft_any(t);
    }
}

static void visit_block(walk *w, const ir_block *blk);

/* The counter takes lo, lo + step, ... while it has not reached hi. */
static void describe_counter(const walk *w, const ir_op *op)
{
    draft lo = operand(w, op->args[0]), hi = operand(w, op->args[1]),
          step = operand(w, op->args[2]);
    draft d = draft_between(wide_min(lo.lo, hi.lo + 1), wide_max(lo.hi, hi.hi - 1));
    draft way = draft_combine(1, &hi, -1, &lo);
    int64_t stride = (int64_t)step.lo;

    if (step.lo >= 0)
        d = draft_between(lo.lo, hi.hi - 1);
    else if (step.hi <= 0)
        d = draft_between(hi.lo + 1, lo.hi);
    if (draft_is_const(&step) && stride > 0 && way.has_form &&
        form_divisible(w->f, &way.lin, stride))
        d.hi = hi.hi - stride;
    d.multiple = gcd_of(lo.multiple, step.multiple);
    describe(w, op->regions[0]->arg, d);
}

static void describe_anything(const walk *w, ir_val first, uint32_t n)
{
    for (ir_val v = first; v < first + n; v++) {
        if (is_integer(ir_type_of(w->fn, v)))
            describe(w, v, draft_any(ir_type_of(w->fn, v).dtype));
    }
}

static void describe_if(const walk *w, const ir_op *op)
{
    for (uint32_t i = 0; i < op->nres; i++) {
        if (!is_integer(ir_type_of(w->fn, op->res + i)))
            continue;
        draft x = operand(w, op->regions[0]->last->args[i]);
        draft y = operand(w, op->regions[1]->last->args[i]);
        describe(w, op->res + i, draft_either(&x, &y));
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
        describe(w, v,
                 p->kind == PARAM_DIM ? draft_between(0, INT32_MAX) : draft_any(p->type.dtype));
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
    f->steps_left = ARENA_NEW(a, int);
    *f->steps_left = ALL_STEPS;
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

    return node ? draft_power_of_two(f->node.at[node].multiple) : 1;
}
