/* elab_reduce: built-ins that go along an axis of a tile: max, min, sum, argmax, argmin, cumsum,
 * cumprod, reduce, scan. */
#include "compiler/base/check.h"
#include "dsl/elaborate.h"

static void hint_elementwise(elab *cx, diag *d, const expr *e)
{
    int id = e->a->decl->id;

    if (id == BUILTIN_MAX || id == BUILTIN_MIN)
        diag_hint(cx->diags, d, "%s(x, axis) reduces a tile; of two values: %s(a, b)",
                  e->a->lit.name, id == BUILTIN_MAX ? "maximum" : "minimum");
}

/* A tile that can be reduced so, and the axis. */
static bool check_tile_and_axis(elab *cx, const expr *e, const value *v, const char *user,
                                int64_t *axis)
{
    int id = e->a->decl->id;

    if (!val_is_number(&v[0]) || v[0].kind == VAL_CONST ||
        val_run_type(cx, &v[0]).kind != TYPE_TILE || v[1].kind == VAL_RUN) {
        diag *d =
            elab_error(cx, DIAG_BAD_OPERAND, e->where, "%s takes a tile and an axis, not %s and %s",
                       user, val_text(cx, &v[0]), val_text(cx, &v[1]));
        hint_elementwise(cx, d, e);
        return false;
    }
    ir_type t = val_run_type(cx, &v[0]);
    if (!elab_need_int(cx, &v[1], e->list.at[1], arena_printf(cx->a, "the axis of %s", user), 0,
                       t.rank - 1, axis))
        return false;
    if (t.dtype != DT_I1 || id == BUILTIN_SUM || id == BUILTIN_CUMSUM || id == BUILTIN_REDUCE ||
        id == BUILTIN_SCAN)
        return true;
    diag *d = elab_error(cx, DIAG_BAD_OPERAND, e->list.at[0]->where, "%s takes numbers, not %s",
                         user, val_text(cx, &v[0]));
    diag_hint(cx->diags, d, "any: sum(x, axis) > 0; all: sum(x, axis) == n");
    return false;
}

static ir_val along_axis(elab *cx, enum ir_opcode code, ir_val x, int axis)
{
    ir_attr attr[] = {{.i = axis}};

    return ir_build(&cx->b, code, &x, 1, attr, (ir_type){0})->res;
}

/* x, whose type lacks the axis of t, widened to t. */
static ir_val widen_along(elab *cx, ir_val x, int axis, ir_type t)
{
    if (t.rank == 1)
        return ir_splat(&cx->b, x, t);
    return ir_broadcast(&cx->b, ir_expand(&cx->b, x, axis), t);
}

/* The index along the axis, in the shape of t. */
static ir_val indices_along(elab *cx, int axis, ir_type t)
{
    ir_val v = ir_arange(&cx->b, 0, t.shape[axis]);

    for (int d = 0; d < t.rank; d++) {
        if (d != axis)
            v = ir_expand(&cx->b, v, d);
    }
    return ir_broadcast(&cx->b, v, type_with_dtype(t, DT_I32));
}

/* The least index whose element is the extreme one or, as that is NaN then, a NaN. */
static ir_val index_of_extreme(elab *cx, enum ir_opcode code, ir_val x, int axis)
{
    ir_type t = ir_type_of(cx->b.fn, x), counts = type_with_dtype(t, DT_I32);
    ir_val extreme = widen_along(cx, along_axis(cx, code, x, axis), axis, t);
    ir_val found = ir_binary(&cx->b, OP_CMP_EQ, x, extreme);

    if (dtype_is_float((enum dtype)t.dtype))
        found = ir_binary(&cx->b, OP_OR, found, ir_binary(&cx->b, OP_CMP_NE, x, x));
    ir_val none = ir_splat(&cx->b, ir_const_int(&cx->b, DT_I32, INT32_MAX), counts);
    ir_val at = ir_where(&cx->b, found, indices_along(cx, axis, t), none);
    return along_axis(cx, OP_REDUCE_MIN, at, axis);
}

value elab_reduce(elab *cx, const expr *e, value *v)
{
    static const enum ir_opcode code[BUILTIN_COUNT] = {
        [BUILTIN_MAX] = OP_REDUCE_MAX,    [BUILTIN_MIN] = OP_REDUCE_MIN,
        [BUILTIN_SUM] = OP_REDUCE_SUM,    [BUILTIN_CUMSUM] = OP_SCAN_SUM,
        [BUILTIN_CUMPROD] = OP_SCAN_PROD, [BUILTIN_ARGMAX] = OP_REDUCE_MAX,
        [BUILTIN_ARGMIN] = OP_REDUCE_MIN};
    int id = e->a->decl->id;
    int64_t axis = 0;

    if (!check_tile_and_axis(cx, e, v, arena_printf(cx->a, "'%s'", e->a->lit.name), &axis))
        return val_bad();
    if (id == BUILTIN_ARGMAX || id == BUILTIN_ARGMIN)
        return val_run(index_of_extreme(cx, code[id], v[0].as.run, (int)axis));
    return val_run(along_axis(cx, code[id], v[0].as.run, (int)axis));
}

/* ---- with a function ---- */

/* Reports the first op of f's body that a reduction cannot do for every pair of elements. */
static bool check_region(elab *cx, const expr *e, const decl *f, const ir_op *op)
{
    const ir_block *blk = op->regions[0];

    for (const ir_op *in = blk->first; in; in = in->next) {
        bool scalar = in->nres == 1 && ir_type_of(cx->b.fn, in->res).kind == TYPE_SCALAR;
        if (op_folds((enum ir_opcode)in->code) && scalar)
            continue;
        diag *d = elab_error(cx, DIAG_BAD_OPERAND, e->list.at[2]->where,
                             "'%s' may only compute with two elements and scalars to be passed to "
                             "'%s'; it has %s",
                             f->name, e->a->lit.name,
                             op_folds((enum ir_opcode)in->code)
                                 ? "a tile"
                                 : arena_printf(cx->diags->a, "'%s'", op_info(in->code)->name));
        diag_note(cx->diags, d, in->where, "here");
        if (in->code == OP_IF)
            diag_hint(cx->diags, d, "write where(condition, a, b)");
        return false;
    }
    return true;
}

/* f of the region's two elements, yielded. */
static bool fill_region(elab *cx, const expr *e, const decl *f, ir_op *op)
{
    ir_type element = type_scalar((enum dtype)ir_type_of(cx->b.fn, op->args[0]).dtype);
    ir_val first = op->regions[0]->arg;
    value v[] = {val_run(first), val_run(first + 1)};
    expr *const from[] = {e->list.at[2], e->list.at[2]};
    const char *user = arena_printf(cx->a, "the result of '%s'", f->name);
    ir_builder outer = cx->b;

    cx->b = ir_at_end(outer.fn, op->regions[0]);
    cx->b.where = e->where;
    cx->in_fold = true;
    value res = elab_inline(cx, e, f, v, from);
    ir_val y = res.kind == VAL_BAD ? 0 : val_as(cx, &res, element, e->list.at[2], user);
    bool good = y && check_region(cx, e, f, op);
    if (good)
        ir_yield(&cx->b, &y, 1);
    cx->b = outer;
    cx->in_fold = false;
    return good;
}

value elab_fold_along(elab *cx, const expr *e, value *v)
{
    bool is_scan = e->a->decl->id == BUILTIN_SCAN;
    const char *user = arena_printf(cx->a, "'%s'", e->a->lit.name);
    int64_t axis = 0;

    if (!check_tile_and_axis(cx, e, v, user, &axis) || v[2].kind != VAL_FN)
        return val_bad();
    const decl *f = v[2].as.decl;
    if (f->fn->args.n != 2) {
        elab_error(cx, DIAG_BAD_CALL, e->list.at[2]->where,
                   "%s needs a function of two elements; '%s' takes %u", user, f->name,
                   f->fn->args.n);
        return val_bad();
    }
    ir_op *op = ir_fold(&cx->b, is_scan ? OP_SCAN : OP_REDUCE, v[0].as.run, (int)axis);
    return fill_region(cx, e, f, op) ? val_run(op->res) : val_bad();
}
