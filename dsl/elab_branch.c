/* elab_branch: expressions that choose: ?:, && and ||.
 *
 * A condition known at compile time drops the other side unseen. Otherwise a choice between cheap
 * scalars is a select; anything else is an if, whose sides also carry the outer vars that they
 * assign through calls. a && b is a ? b : false, a || b is a ? true : b.
 */
#include "compiler/base/check.h"
#include "dsl/elaborate.h"

/* A division that checked mode would refuse must not be computed where the text does not ask for
 * it. */
static bool may_divide_by_zero(const elab *cx, const expr *e)
{
    const decl *d = e->b->kind == EXPR_NAME ? e->b->decl : NULL;

    if (e->op != TOK_SLASH && e->op != TOK_PERCENT)
        return false;
    return e->b->kind != EXPR_INT && e->b->kind != EXPR_FLOAT &&
           !(d && cx->env[d->slot].kind != VAL_RUN);
}

/* Worth computing even if it is not used: a few scalar operations without effects. */
static bool is_cheap(const elab *cx, const expr *e)
{
    const decl *d;

    switch ((int)e->kind) {
    case EXPR_INT:
    case EXPR_FLOAT:
    case EXPR_BOOL:
        return true;
    case EXPR_NAME:
        d = e->decl;
        if (!d || cx->env[d->slot].kind != VAL_RUN)
            return true; /* a constant, or a mistake to report */
        return ir_type_of(cx->b.fn, cx->env[d->slot].as.run).kind == TYPE_SCALAR;
    case EXPR_UNARY:
        return e->depth <= 4 && is_cheap(cx, e->a);
    case EXPR_BINARY:
        return e->depth <= 4 && is_cheap(cx, e->a) && is_cheap(cx, e->b) &&
               !may_divide_by_zero(cx, e);
    case EXPR_COND:
        return e->depth <= 4 && is_cheap(cx, e->a) && is_cheap(cx, e->b) && is_cheap(cx, e->c);
    default:
        return false;
    }
}

/* NULL stands for the constant of && and ||. */
static bool is_cheap_arm(const elab *cx, const expr *e)
{
    return !e || cx->mode == ELAB_HOST || cx->in_fold || is_cheap(cx, e);
}

typedef struct arm {
    const expr *e; /* NULL: v is given */
    value v;
    ir_builder end;
    value *after; /* of the assigned vars */
} arm;

static void walk_arm(elab *cx, arm *x, ir_op *op, int region, const decl_list *assigned)
{
    ir_builder outer = cx->b;
    value *before = ARENA_ARRAY(cx->a, value, assigned->n);

    x->after = ARENA_ARRAY(cx->a, value, assigned->n);
    for (uint32_t i = 0; i < assigned->n; i++)
        before[i] = cx->env[assigned->at[i]->slot];
    cx->b = ir_at_end(cx->b.fn, op->regions[region]);
    if (x->e)
        x->v = elab_expr(cx, x->e);
    x->end = cx->b;
    for (uint32_t i = 0; i < assigned->n; i++) {
        x->after[i] = cx->env[assigned->at[i]->slot];
        cx->env[assigned->at[i]->slot] = before[i];
    }
    cx->b = outer;
}

/* Both values as IR values of one type, each at the end of its arm; false after a report. */
static bool settle(elab *cx, arm *arms, const expr *e, ir_val *res)
{
    value v[2] = {arms[0].v, arms[1].v};
    const expr *const from[2] = {arms[0].e ? arms[0].e : e, arms[1].e ? arms[1].e : e};
    ir_builder outer = cx->b;
    ir_type t[2];

    if (!elab_need_number(cx, &v[0], from[0], "'?:'") ||
        !elab_need_number(cx, &v[1], from[1], "'?:'") || !elab_unify(cx, v, from, 2, "'?:'", e->at))
        return false;
    for (int i = 0; i < 2; i++) {
        cx->b = arms[i].end;
        res[i] = val_to_run(cx, &v[i], DT_NONE, from[i]->where);
        t[i] = res[i] ? ir_type_of(cx->b.fn, res[i]) : (ir_type){0};
    }
    cx->b = outer;
    if (!res[0] || !res[1])
        return false;
    if (type_equal(t[0], t[1]))
        return true;
    diag *d = elab_error(cx, DIAG_SHAPE_MISMATCH, e->at, "'?:' needs one type, not %s and %s",
                         elab_type_text(cx, t[0]), elab_type_text(cx, t[1]));
    diag_hint(cx->diags, d, "an extent is widened by broadcast(x, ...) or full(type, x)");
    return false;
}

static void yield_arm(elab *cx, const arm *x, ir_val res, uint32_t n)
{
    ir_builder at = x->end;
    ir_val *list = ARENA_ARRAY(cx->a, ir_val, n + 1);

    list[0] = res;
    for (uint32_t i = 0; i < n; i++)
        list[1 + i] = x->after[i].as.run;
    ir_yield(&at, list, (int)n + 1);
}

static bool vars_are_good(const elab *cx, const arm *arms, const decl_list *assigned)
{
    for (uint32_t i = 0; i < assigned->n; i++) {
        if (arms[0].after[i].kind != VAL_RUN || arms[1].after[i].kind != VAL_RUN ||
            cx->env[assigned->at[i]->slot].kind != VAL_RUN)
            return false;
    }
    return true;
}

static value branch(elab *cx, const expr *e, ir_val cond, arm *arms)
{
    const decl_list *assigned = &e->assigned;
    ir_op *op = ir_if(&cx->b, cond, NULL, 0);
    ir_type *types = ARENA_ARRAY(cx->a, ir_type, assigned->n + 1);
    ir_val res[2];

    walk_arm(cx, &arms[0], op, 0, assigned);
    walk_arm(cx, &arms[1], op, 1, assigned);
    if (!settle(cx, arms, e, res) || !vars_are_good(cx, arms, assigned))
        return val_bad();
    types[0] = ir_type_of(cx->b.fn, res[0]);
    for (uint32_t i = 0; i < assigned->n; i++)
        types[1 + i] = val_run_type(cx, &cx->env[assigned->at[i]->slot]);
    yield_arm(cx, &arms[0], res[0], assigned->n);
    yield_arm(cx, &arms[1], res[1], assigned->n);
    ir_if_results(&cx->b, op, types, (int)assigned->n + 1);
    for (uint32_t i = 0; i < assigned->n; i++)
        cx->env[assigned->at[i]->slot] = val_run(op->res + 1 + i);
    return val_run(op->res);
}

static value choose(elab *cx, const expr *e, value cond, arm *arms)
{
    if (!is_cheap_arm(cx, arms[0].e) || !is_cheap_arm(cx, arms[1].e) || e->assigned.n)
        return branch(cx, e, cond.as.run, arms);
    for (int i = 0; i < 2; i++) {
        arms[i].v = arms[i].e ? elab_expr(cx, arms[i].e) : arms[i].v;
        arms[i].end = cx->b;
    }
    value v[3] = {cond, arms[0].v, arms[1].v};
    const expr *const from[2] = {arms[0].e ? arms[0].e : e, arms[1].e ? arms[1].e : e};
    if (!elab_need_number(cx, &v[1], from[0], "'?:'") ||
        !elab_need_number(cx, &v[2], from[1], "'?:'") ||
        !elab_unify(cx, v + 1, from, 2, "'?:'", e->at))
        return val_bad();
    return elab_apply(cx, OP_WHERE, v, 3, "'?:'", e->at);
}

value elab_cond(elab *cx, const expr *e)
{
    value cond = elab_expr(cx, e->a);
    arm arms[2] = {{.e = e->b}, {.e = e->c}};

    if (!elab_need_condition(cx, &cond, e->a, "the condition of '?:'"))
        return val_bad();
    if (cond.kind == VAL_CONST)
        return elab_expr(cx, cond.as.num.i ? e->b : e->c);
    return choose(cx, e, cond, arms);
}

value elab_logic(elab *cx, const expr *e)
{
    const char *user = e->op == TOK_AND_AND ? "an operand of '&&'" : "an operand of '||'";
    bool is_or = e->op == TOK_OR_OR;
    value left = elab_expr(cx, e->a);

    if (!elab_need_condition(cx, &left, e->a, user))
        return val_bad();
    if (left.kind == VAL_CONST && (left.as.num.i != 0) == is_or)
        return left;
    if (left.kind == VAL_CONST || (is_cheap_arm(cx, e->b) && !e->assigned.n)) {
        value right = elab_expr(cx, e->b);
        if (!elab_need_condition(cx, &right, e->b, user))
            return val_bad();
        if (left.kind == VAL_CONST)
            return right;
        return elab_apply(cx, is_or ? OP_OR : OP_AND, (value[]){left, right}, 2, user, e->at);
    }
    arm arms[2] = {{.v = val_bool(true)}, {.v = val_bool(false)}};
    arms[is_or].e = e->b;
    value v = branch(cx, e, left.as.run, arms);
    return elab_need_condition(cx, &v, e->b, user) ? v : val_bad();
}
