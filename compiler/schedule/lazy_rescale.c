/* lazy_rescale: where the maximum of a row may lag behind, rescaling waits until it has to be.
 *
 *   %n = running_max %m, %x                      %any = vote.any (not (%x - %m <= 8, %m finite))
 *   %alpha = exp2 (%m - %n)                      %n, %l2, %a2 = if %any {
 *   %l2 = mul %l, %alpha                   ->        %n' = maximum %m, %x
 *   %a2 = mul %acc, (broadcast %alpha)               yield %n', %l * exp2(%m - %n'), %acc * ...
 *                                                } else {
 *                                                    yield %m, %l, %acc
 *                                                }
 *
 * running_max may give any maximum that is at most 8 too low, and none that is too low where %m is
 * -inf (docs/LANGUAGE.md). So a warp in which no row grew by more keeps everything as it is: alpha
 * is exp2(0) there. Whether %m is finite costs no comparison: %m * 0 is NaN where it is not. %n may
 * be guarded on its way to alpha: where(%n == -inf, c, %n); then the choice gives that as well,
 * which is %m where all is kept. Rows are decided on by the warps that hold them, all copies alike.
 *
 * worth, on one H200 at D = 128, in a prototype written by hand: 1.03 x, causal 1.08 x.
 */
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/passes/simplify.h"
#include "compiler/schedule/schedule_pass.h"
#include "compiler/schedule/uses.h"
#include <math.h>

enum { MAX_SCALED = 8 };
static const double LAG = 8.0; /* docs/LANGUAGE.md, running_max */

typedef struct rescaling {
    ir_fn *fn;
    arena *a;
    uses uses;
    const ir_op *top;    /* running_max */
    const ir_op *guard;  /* where(n == -inf, c, n), or NULL */
    const ir_op *factor; /* exp2 or exp */
    int n;
    ir_op *scaled[MAX_SCALED]; /* mul */
    int scaled_arg[MAX_SCALED];  /* which operand is the factor */
    bool elsewhere;            /* the factor is used in other ways too */
} rescaling;

/* Does v stand above op: outside of its block, an argument of it, or in front of op? */
static bool above(const ir_fn *fn, ir_val v, const ir_op *op)
{
    const ir_op *def = ir_def(fn, v);

    if (!def || def->parent != op->parent)
        return true;
    for (const ir_op *at = op->prev; at; at = at->prev) {
        if (at == def)
            return true;
    }
    return false;
}

/* where(n == -inf, c, n) with a constant c */
static bool is_guard(const rescaling *r, const ir_op *op)
{
    const ir_op *eq = op->code == OP_WHERE ? ir_def(r->fn, op->args[0]) : NULL;
    ir_val n = r->top->res;
    ir_scalar c;

    if (!eq || eq->code != OP_CMP_EQ || op->args[2] != n || !const_of(r->fn, op->args[1], &c))
        return false;
    ir_val other = eq->args[0] == n ? eq->args[1] : eq->args[0];
    return (eq->args[0] == n || eq->args[1] == n) && is_float_const(r->fn, other, -INFINITY);
}

/* exp2 or exp of (m - v), or NULL. */
static const ir_op *factor_of(const rescaling *r, ir_val v)
{
    for EACH_USE(u, &r->uses, v) {
        if (u->op->code != OP_SUB || u->arg != 1 || u->op->args[0] != r->top->args[0])
            continue;
        for EACH_USE(w, &r->uses, u->op->res) {
            if (w->op->code == OP_EXP2 || w->op->code == OP_EXP)
                return w->op;
        }
    }
    return NULL;
}

static bool find_factor(rescaling *r)
{
    r->guard = NULL;
    r->factor = factor_of(r, r->top->res);
    for EACH_USE(u, &r->uses, r->top->res) {
        if (r->factor)
            break;
        if (is_guard(r, u->op)) {
            r->guard = u->op;
            r->factor = factor_of(r, u->op->res);
        }
    }
    return r->factor && r->factor->parent == r->top->parent;
}

/* The products with v, which is the factor or what it is widened to. */
static void find_scaled(rescaling *r, ir_val v)
{
    for EACH_USE(u, &r->uses, v) {
        ir_op *op = u->op;
        if (op->code == OP_EXPAND || op->code == OP_BROADCAST)
            find_scaled(r, op->res);
        else if (op->code == OP_MUL && op->parent == r->top->parent && r->n < MAX_SCALED &&
                 above(r->fn, op->args[1 - u->arg], r->top)) {
            r->scaled_arg[r->n] = u->arg;
            r->scaled[r->n++] = op;
        } else
            r->elsewhere = true;
    }
}

/* ---- the new form ---- */

static ir_val splat_like(ir_builder *b, ir_val like, double c)
{
    ir_type t = ir_type_of(b->fn, like);

    return ir_splat(b, ir_const_float(b, (enum dtype)t.dtype, c), t);
}

static ir_val must_rescale(ir_builder *b, const ir_op *top)
{
    ir_val m = top->args[0];
    ir_val growth = ir_binary(b, OP_SUB, top->args[1], m);
    ir_val if_finite = ir_fma(b, m, splat_like(b, m, 0.0), growth); /* else NaN */
    ir_val stays = ir_binary(b, OP_CMP_LE, if_finite, splat_like(b, m, LAG));

    return ir_vote_any(b, ir_unary(b, OP_NOT, stays));
}

/* v, which is the factor or widened from it, with another factor. */
static ir_val widened(ir_builder *b, const rescaling *r, ir_val v, ir_val factor)
{
    const ir_op *def = ir_def(b->fn, v);

    if (v == r->factor->res)
        return factor;
    ir_val arg = widened(b, r, def->args[0], factor);
    return ir_build(b, def->code, &arg, 1, def->attr, ir_type_of(b->fn, v))->res;
}

static void rescale_now(ir_builder *b, const rescaling *r)
{
    ir_val m = r->top->args[0], out[MAX_SCALED + 3], base;
    int n = 0;

    base = out[n++] = ir_binary(b, OP_MAX, m, r->top->args[1]);
    if (r->guard) {
        ir_scalar c = {0};
        const_of(b->fn, r->guard->args[1], &c);
        ir_val none = ir_binary(b, OP_CMP_EQ, base, splat_like(b, base, -INFINITY));
        base = out[n++] = ir_where(b, none, splat_like(b, base, c.f), base);
    }
    ir_val factor = ir_unary(b, r->factor->code, ir_binary(b, OP_SUB, m, base));
    for (int i = 0; i < r->n; i++) {
        const ir_op *mul = r->scaled[i];
        int at = r->scaled_arg[i];
        out[n++] = ir_binary(b, OP_MUL, mul->args[1 - at], widened(b, r, mul->args[at], factor));
    }
    if (r->elsewhere)
        out[n++] = factor;
    ir_yield(b, out, n);
}

static void keep_all(ir_builder *b, const rescaling *r)
{
    ir_val out[MAX_SCALED + 3];
    int n = 0;

    out[n++] = r->top->args[0];
    if (r->guard)
        out[n++] = r->top->args[0]; /* finite */
    for (int i = 0; i < r->n; i++)
        out[n++] = r->scaled[i]->args[1 - r->scaled_arg[i]];
    if (r->elsewhere)
        out[n++] = splat_like(b, r->factor->res, 1.0);
    ir_yield(b, out, n);
}

static void put_in_place(rescaling *r, ir_op *choice, ir_op *top)
{
    int n = 0;

    ir_name(r->fn, choice->res, ir_value_of(r->fn, top->res)->name);
    ir_replace_uses(r->fn, top->res, choice->res + (ir_val)n++);
    if (r->guard) {
        ir_name(r->fn, choice->res + (ir_val)n, ir_value_of(r->fn, r->guard->res)->name);
        ir_replace_uses(r->fn, r->guard->res, choice->res + (ir_val)n++);
    }
    for (int i = 0; i < r->n; i++) {
        ir_replace_uses(r->fn, r->scaled[i]->res, choice->res + (ir_val)n++);
        ir_unlink(r->scaled[i]);
    }
    if (r->elsewhere)
        ir_replace_uses(r->fn, r->factor->res, choice->res + (ir_val)n);
    ir_unlink(top);
}

static void rescale(rescaling *r, ir_op *top)
{
    ir_type types[MAX_SCALED + 3];
    int n = 0;

    types[n++] = ir_type_of(r->fn, top->res);
    if (r->guard)
        types[n++] = types[0];
    for (int i = 0; i < r->n; i++)
        types[n++] = ir_type_of(r->fn, r->scaled[i]->res);
    if (r->elsewhere)
        types[n++] = ir_type_of(r->fn, r->factor->res);
    ir_builder b = ir_before(r->fn, top);
    ir_op *choice = ir_if(&b, must_rescale(&b, top), types, n);
    ir_builder now = ir_at_end(r->fn, choice->regions[0]);
    ir_builder not_now = ir_at_end(r->fn, choice->regions[1]);
    rescale_now(&now, r);
    keep_all(&not_now, r);
    put_in_place(r, choice, top);
}

typedef struct finding {
    arena *a;
    VEC(ir_op *) tops;
} finding;

static void find_top(ir_op *op, void *arg)
{
    finding *f = arg;

    if (op->code == OP_RUNNING_MAX)
        vec_push(&f->tops, f->a, op);
}

tw_status pass_lazy_rescale(pass_cx *cx, ir_module *m)
{
    finding f = {.a = cx->scratch};

    if (!schedule_of(cx)->params.lazy_rescale)
        return TW_OK;
    ir_walk(m->kernel->body, find_top, &f);
    for (uint32_t i = 0; i < f.tops.n; i++) {
        rescaling r = {.fn = m->kernel, .a = cx->scratch, .top = f.tops.at[i]};
        r.uses = uses_of(cx->scratch, r.fn);
        if (ir_type_of(r.fn, r.top->res).kind != TYPE_TILE || !find_factor(&r))
            continue;
        find_scaled(&r, r.factor->res);
        if (r.n == 0)
            continue;
        rescale(&r, f.tops.at[i]);
        cx->changes++;
    }
    return TW_OK;
}
