/* prove_bounds: mark slices that lie inside their tensor; decide masks and conditions.
 *
 *   load %k, %h, %n0 extent=[0, 64] inside=0       load ... inside=3      when 0 <= %h < H and
 *                                                                         0 <= %n0 <= N - 64
 *   lt %col, (splat %n)                            splat true             when true for all
 * elements minimum %a, %b                                 %a                     when %a <= %b
 *
 * Everything is asked of facts.h first and changed afterwards, for facts are about the IR as it
 * was. leaves: where(true, x, y) and the like, for simplify. cost: a proof a dimension of each
 * access, and a comparison; about 0.2 ms for attention_fwd.
 */
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/passes/facts.h"
#include "compiler/passes/pipeline.h"
#include "compiler/passes/rename.h"

typedef struct decision {
    ir_op *op;
    int truth;    /* of an i1 result, or -1 */
    ir_val value; /* what the result is, when it is not decided to be true or false */
} decision;

typedef struct proving {
    ir_fn *fn;
    arena *a;
    const facts *f;
    VEC(decision) decided;
    uint32_t changes;
} proving;

static void decide_truth(proving *p, ir_op *op)
{
    int truth = facts_truth(p->f, op->res);

    if (truth >= 0)
        vec_push(&p->decided, p->a, ((decision){op, truth, 0}));
}

static void decide_extreme(proving *p, ir_op *op)
{
    ir_val x = op->args[0], y = op->args[1];
    bool x_first = op->code == OP_MIN;

    if (facts_le(p->f, x, y, op))
        vec_push(&p->decided, p->a, ((decision){op, -1, x_first ? x : y}));
    else if (facts_le(p->f, y, x, op))
        vec_push(&p->decided, p->a, ((decision){op, -1, x_first ? y : x}));
}

static void mark_inside(proving *p, ir_op *op)
{
    const ir_attr extent = op->attr[0];

    for (uint32_t d = 0; d < extent.ints.n; d++) {
        bool gathered = ir_type_of(p->fn, op->args[1 + d]).kind == TYPE_TILE;
        int64_t n = extent.ints.at[d] && !gathered ? extent.ints.at[d] : 1;
        if ((op->attr[1].i >> d & 1) || !facts_inside(p->f, op, (int)d, n))
            continue;
        op->attr[1].i |= (int64_t)1 << d;
        p->changes++;
    }
}

static void visit(ir_op *op, void *arg)
{
    proving *p = arg;
    bool is_constant = op->code == OP_CONST_INT || op->code == OP_SPLAT;

    if (op_is_access((enum ir_opcode)op->code))
        mark_inside(p, op);
    else if (op->nres != 1 || is_constant || !(op_info(op->code)->traits & OPT_PURE))
        return;
    else if (ir_type_of(p->fn, op->res).dtype == DT_I1)
        decide_truth(p, op);
    else if (op->code == OP_MIN || op->code == OP_MAX)
        decide_extreme(p, op);
}

static ir_val decided_value(proving *p, const decision *d)
{
    ir_type t = ir_type_of(p->fn, d->op->res);
    ir_builder b = ir_before(p->fn, d->op);

    if (d->truth < 0)
        return d->value;
    ir_val v = ir_const_int(&b, DT_I1, d->truth);
    return t.kind == TYPE_TILE ? ir_splat(&b, v, t) : v;
}

static void rename_uses(ir_op *op, void *arg)
{
    rename_args(arg, op);
}

static void apply(proving *p)
{
    renames to = {.a = p->a};

    for (uint32_t i = 0; i < p->decided.n; i++) {
        const decision *d = &p->decided.at[i];
        rename_set(&to, d->op->res, decided_value(p, d));
        ir_unlink(d->op);
    }
    if (p->decided.n)
        ir_walk(p->fn->body, rename_uses, &to);
    p->changes += p->decided.n;
}

tw_status pass_prove_bounds(pass_cx *cx, ir_module *m)
{
    proving p = {.fn = m->kernel, .a = cx->scratch};

    p.f = facts_compute(cx->scratch, m->kernel);
    ir_walk(m->kernel->body, visit, &p);
    apply(&p);
    cx->changes = p.changes;
    return TW_OK;
}
