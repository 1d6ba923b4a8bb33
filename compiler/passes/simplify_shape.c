/* Ops that only rearrange: collapse chains, and see through splats. */
#include "compiler/passes/simplify.h"

static ir_val splat_like(simplifier *s, ir_op *op, const ir_op *splat)
{
    ir_builder b = ir_before(s->fn, op);
    ir_type t = ir_type_of(s->fn, op->res);

    return t.kind == TYPE_TILE ? ir_splat(&b, splat->args[0], t) : splat->args[0];
}

static bool is_identity(ir_attr perm)
{
    for (uint32_t i = 0; i < perm.ints.n; i++) {
        if (perm.ints.at[i] != i)
            return false;
    }
    return true;
}

/* trans (trans x)  ->  trans x with both permutations */
static ir_val join_trans(simplifier *s, ir_op *op, const ir_op *inner)
{
    int perm[TILE_MAX_RANK];
    ir_builder b = ir_before(s->fn, op);

    for (uint32_t i = 0; i < op->attr[0].ints.n; i++)
        perm[i] = (int)inner->attr[0].ints.at[op->attr[0].ints.at[i]];
    return ir_trans(&b, inner->args[0], perm);
}

/* trans (broadcast x)  ->  broadcast (trans x) */
static ir_val trans_before_broadcast(simplifier *s, ir_op *op, const ir_op *wide)
{
    int perm[TILE_MAX_RANK];
    ir_builder b = ir_before(s->fn, op);

    for (uint32_t i = 0; i < op->attr[0].ints.n; i++)
        perm[i] = (int)op->attr[0].ints.at[i];
    return ir_broadcast(&b, ir_trans(&b, wide->args[0], perm), ir_type_of(s->fn, op->res));
}

static ir_val rule_trans(simplifier *s, ir_op *op, const ir_op *def)
{
    if (is_identity(op->attr[0]))
        return op->args[0];
    if (!def)
        return 0;
    if (def->code == OP_TRANS)
        return join_trans(s, op, def);
    if (def->code == OP_BROADCAST)
        return trans_before_broadcast(s, op, def);
    if (def->code == OP_EXPAND && ir_type_of(s->fn, op->res).rank == 2) {
        ir_builder b = ir_before(s->fn, op);
        return ir_expand(&b, def->args[0], 1 - (int)def->attr[0].i);
    }
    return 0;
}

/* reshape and broadcast: do nothing, or do it once; reshape (expand_dims x): reshape x */
static ir_val rule_twice(simplifier *s, ir_op *op, const ir_op *def)
{
    ir_builder b = ir_before(s->fn, op);
    ir_type t = ir_type_of(s->fn, op->res);

    if (type_equal(ir_type_of(s->fn, op->args[0]), t))
        return op->args[0];
    if (!def || (def->code != op->code && (op->code != OP_RESHAPE || def->code != OP_EXPAND)))
        return 0;
    return ir_build(&b, op->code, def->args, 1, NULL, t)->res;
}

ir_val simplify_shape(simplifier *s, ir_op *op)
{
    const ir_op *def = op->nargs == 1 ? ir_def(s->fn, op->args[0]) : NULL;
    bool of_splat = def && def->code == OP_SPLAT;

    switch ((int)op->code) {
    case OP_EXPAND:
    case OP_REDUCE_MAX:
    case OP_REDUCE_MIN:
        return of_splat ? splat_like(s, op, def) : 0;
    case OP_BROADCAST:
    case OP_RESHAPE:
        return of_splat ? splat_like(s, op, def) : rule_twice(s, op, def);
    case OP_TRANS:
        return of_splat ? splat_like(s, op, def) : rule_trans(s, op, def);
    default:
        return 0;
    }
}
