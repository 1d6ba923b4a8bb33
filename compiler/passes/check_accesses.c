/* check_accesses: checked mode. Asserts in front of what the language defines, but few kernels
 * mean:
 *
 *   load %x, %i, %j extent=[0, 8]    ->    assert (0 <= %i and %i < M), %i, M "index {0} of ..."
 *                                          assert (-8 < %j and %j < N), %j, N "elements from {0}
 * ..." load %x, %i, %j extent=[0, 8] div %a, %b                       ->    assert (%b != 0) "an
 * integer is divided by 0" div %a, %b
 *
 * An index must lie in the tensor, a slice must meet it (ragged ends are meant), the elements of a
 * tile of indices must lie in it or be -1, no integer may be divided by 0. An assert stands where
 * its access does in the text. Regions of reductions are left alone: they hold no asserts. cost:
 * one walk; a reduction for each tile of indices or of divisors. */
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/passes/pipeline.h"

typedef struct checking {
    ir_module *m;
    ir_fn *fn;
    uint32_t asserts;
} checking;

static ir_val i32(ir_builder *b, int64_t v)
{
    return ir_const_int(b, DT_I32, v);
}

static void add_assert(checking *c, ir_builder *b, ir_val cond, const ir_val *value, int n,
                       const char *text)
{
    ir_assert_values(b, cond, value, n, text);
    c->asserts++;
}

/* lo < v and v < hi */
static ir_val between(ir_builder *b, int64_t lo, ir_val v, ir_val hi)
{
    ir_val above = ir_binary(b, OP_CMP_LT, i32(b, lo), v);

    return ir_binary(b, OP_AND, above, ir_binary(b, OP_CMP_LT, v, hi));
}

static void check_dimension(checking *c, const ir_op *op, ir_builder *b, int d)
{
    const ir_param *tensor = &c->fn->params.at[ir_value_of(c->fn, op->args[0])->index];
    ir_val v = op->args[1 + d], extent = ir_dim_value(b, tensor->dim[d]);
    int64_t n = op->attr[0].ints.at[d];
    arena *a = c->m->a;

    if (ir_type_of(c->fn, v).kind == TYPE_TILE) {
        ir_val least = ir_reduce(b, OP_REDUCE_MIN, v, 0), most = ir_reduce(b, OP_REDUCE_MAX, v, 0);
        ir_val good = ir_binary(b, OP_AND, between(b, -2, least, extent),
                                ir_binary(b, OP_CMP_LT, most, extent));
        add_assert(c, b, good, (ir_val[]){least, most, extent}, 3,
                   arena_printf(a,
                                "indices from {0} to {1} of dimension %d of '%s' leave its extent "
                                "of {2} (-1 means no element)",
                                d, tensor->name));
        return;
    }
    const char *text = n ? arena_printf(a,
                                        "no element of {0} :+ %lld lies in dimension %d of '%s', "
                                        "whose extent is {1}",
                                        (long long)n, d, tensor->name)
                         : arena_printf(a,
                                        "index {0} of dimension %d of '%s' is outside of its "
                                        "extent of {1}",
                                        d, tensor->name);
    add_assert(c, b, between(b, n ? -n : -1, v, extent), (ir_val[]){v, extent}, 2, text);
}

static ir_val unwidened(const ir_fn *fn, ir_val v)
{
    const ir_op *def = ir_def(fn, v);

    while (def && (def->code == OP_SPLAT || def->code == OP_BROADCAST || def->code == OP_EXPAND)) {
        v = def->args[0];
        def = ir_def(fn, v);
    }
    return v;
}

static bool is_constant_but_zero(const ir_fn *fn, ir_val v)
{
    const ir_op *def = ir_def(fn, v);

    return def && def->code == OP_CONST_INT && def->attr[0].i != 0;
}

static ir_val filled(ir_builder *b, ir_val scalar, ir_type t)
{
    return t.kind == TYPE_TILE ? ir_splat(b, scalar, t) : scalar;
}

static void check_division(checking *c, const ir_op *op, ir_builder *b)
{
    ir_val y = unwidened(c->fn, op->args[1]);
    ir_type t = ir_type_of(c->fn, y);

    if (is_constant_but_zero(c->fn, y))
        return;
    ir_val zero = filled(b, ir_const_int(b, (enum dtype)t.dtype, 0), t);
    ir_val bad = ir_binary(b, OP_CMP_EQ, y, zero);
    for (int rank = t.kind == TYPE_TILE ? t.rank : 0; rank > 0; rank--)
        bad = ir_reduce(b, OP_REDUCE_SUM, bad, rank - 1);
    if (t.kind != TYPE_TILE)
        bad = ir_cast(b, bad, DT_I32);
    add_assert(c, b, ir_binary(b, OP_CMP_EQ, bad, i32(b, 0)), NULL, 0,
               "an integer is divided by 0");
}

static void check_op(ir_op *op, void *arg)
{
    checking *c = arg;
    ir_builder b = ir_before(c->fn, op);
    bool divides = op->code == OP_DIV || op->code == OP_REM;

    if (op->parent->owner && op_is_fold((enum ir_opcode)op->parent->owner->code))
        return;
    for (int d = 0; op_is_access((enum ir_opcode)op->code) && d < (int)op->attr[0].ints.n; d++)
        check_dimension(c, op, &b, d);
    if (divides && dtype_is_int((enum dtype)ir_type_of(c->fn, op->res).dtype))
        check_division(c, op, &b);
}

tw_status pass_check_accesses(pass_cx *cx, ir_module *m)
{
    checking c = {.m = m, .fn = m->kernel};

    ir_walk(m->kernel->body, check_op, &c);
    cx->changes = c.asserts;
    return TW_OK;
}
