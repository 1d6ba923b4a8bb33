/* Folding, and doing elementwise work before a value is widened to a tile. */
#include "compiler/passes/simplify.h"

static bool is_elementwise(const ir_op *op)
{
    return (op_info(op->code)->traits & OPT_EWISE) || op->code == OP_CAST || op->code == OP_BITCAST;
}

/* running_max may return any of several values, so it is left to whoever runs it. */
static ir_val fold(simplifier *s, ir_op *op)
{
    ir_scalar in[3];

    if (op->code == OP_RUNNING_MAX || op->code == OP_BITCAST)
        return 0;
    for (int i = 0; i < op->nargs; i++) {
        if (!const_of(s->fn, op->args[i], &in[i]))
            return 0;
    }
    ir_type t = ir_type_of(s->fn, op->res);
    enum dtype from = ir_type_of(s->fn, op->args[op->nargs - 1]).dtype;
    return make_const(s, op, t, eval_op(op->code, from, t.dtype, in, false));
}

/* The same op on other operands, which have the kind and shape of `shape`. */
static ir_val rebuild(simplifier *s, ir_op *op, const ir_val *args, ir_type shape)
{
    ir_builder b = ir_before(s->fn, op);
    ir_type t = type_with_dtype(shape, ir_type_of(s->fn, op->res).dtype);

    return ir_build(&b, op->code, args, op->nargs, op->attr, t)->res;
}

/* op (splat a), (splat b)  ->  splat (op a, b) */
static ir_val lift_splats(simplifier *s, ir_op *op)
{
    ir_val scalar[3];

    for (int i = 0; i < op->nargs; i++) {
        const ir_op *def = def_of(s->fn, op->args[i], OP_SPLAT);
        if (!def)
            return 0;
        scalar[i] = def->args[0];
    }
    ir_val v = rebuild(s, op, scalar, type_scalar(DT_I1));
    ir_builder b = ir_before(s->fn, op);
    return ir_splat(&b, v, ir_type_of(s->fn, op->res));
}

/* Every operand is `code` (broadcast or expand_dims) of one shape, or a splat. The first such
 * operand's op, or NULL. */
static const ir_op *common_view(const ir_fn *fn, const ir_op *op, enum ir_opcode code)
{
    const ir_op *view = NULL;

    for (int i = 0; i < op->nargs; i++) {
        const ir_op *def = ir_def(fn, op->args[i]);
        if (def && def->code == OP_SPLAT)
            continue;
        if (!def || def->code != code)
            return NULL;
        if (view &&
            (!type_same_shape(ir_type_of(fn, view->args[0]), ir_type_of(fn, def->args[0])) ||
             (code == OP_EXPAND && view->attr[0].i != def->attr[0].i)))
            return NULL;
        view = def;
    }
    return view;
}

/* op (broadcast x), (broadcast y)  ->  broadcast (op x, y), and the same for expand_dims */
static ir_val lift_views(simplifier *s, ir_op *op, enum ir_opcode code)
{
    const ir_op *view = common_view(s->fn, op, code);
    ir_builder b = ir_before(s->fn, op);
    ir_val small[3];

    if (!view)
        return 0;
    ir_type shape = ir_type_of(s->fn, view->args[0]);
    for (int i = 0; i < op->nargs; i++) {
        const ir_op *def = ir_def(s->fn, op->args[i]);
        small[i] = def->code == OP_SPLAT ? ir_splat(&b, def->args[0], shape) : def->args[0];
    }
    ir_val v = rebuild(s, op, small, shape);
    return code == OP_EXPAND ? ir_expand(&b, v, (int)view->attr[0].i)
                             : ir_broadcast(&b, v, ir_type_of(s->fn, op->res));
}

ir_val simplify_lift(simplifier *s, ir_op *op)
{
    if (!is_elementwise(op) || op->nargs == 0)
        return 0;
    ir_val v = fold(s, op);
    if (v || ir_type_of(s->fn, op->res).kind != TYPE_TILE)
        return v;
    v = lift_splats(s, op);
    if (!v)
        v = lift_views(s, op, OP_BROADCAST);
    return v ? v : lift_views(s, op, OP_EXPAND);
}
