/* where, comparisons and casts: rules that do not ask what kind of number it is. */
#include "compiler/passes/simplify.h"

/* ---- where ---- */

static ir_val where_of_truth(simplifier *s, ir_op *op, ir_val c, ir_val x, ir_val y)
{
    ir_builder b = ir_before(s->fn, op);

    if (ir_type_of(s->fn, x).dtype != DT_I1)
        return 0;
    if (is_int_const(s->fn, x, 1))
        return ir_binary(&b, OP_OR, c, y);
    if (is_int_const(s->fn, y, 0))
        return ir_binary(&b, OP_AND, c, x);
    if (is_int_const(s->fn, x, 0) && is_int_const(s->fn, y, 1))
        return ir_unary(&b, OP_NOT, c);
    return 0;
}

static ir_val rule_where(simplifier *s, ir_op *op)
{
    ir_val c = op->args[0], x = op->args[1], y = op->args[2];
    const ir_op *inverted = def_of(s->fn, c, OP_NOT);
    const ir_op *in_x = def_of(s->fn, x, OP_WHERE), *in_y = def_of(s->fn, y, OP_WHERE);
    ir_builder b = ir_before(s->fn, op);
    ir_scalar truth;

    if (const_of(s->fn, c, &truth))
        return truth.i ? x : y;
    if (x == y)
        return x;
    if (inverted)
        return ir_where(&b, inverted->args[0], y, x);
    if (in_x && in_x->args[0] == c)
        return ir_where(&b, c, in_x->args[1], y);
    if (in_y && in_y->args[0] == c)
        return ir_where(&b, c, x, in_y->args[2]);
    return where_of_truth(s, op, c, x, y);
}

/* ---- comparisons ---- */

static ir_val compare_with_itself(simplifier *s, ir_op *op)
{
    bool is_float = dtype_is_float(ir_type_of(s->fn, op->args[0]).dtype);
    bool truth = op->code == OP_CMP_EQ || op->code == OP_CMP_LE;

    if (is_float && op->code != OP_CMP_LT) /* unless it is NaN */
        return 0;
    return make_int(s, op, ir_type_of(s->fn, op->res), truth);
}

static ir_val rule_compare(simplifier *s, ir_op *op)
{
    ir_val x = op->args[0], y = op->args[1];
    ir_builder b = ir_before(s->fn, op);
    ir_scalar c;

    if (x == y)
        return compare_with_itself(s, op);
    if (ir_type_of(s->fn, x).dtype != DT_I1 || !const_of(s->fn, y, &c))
        return 0;
    bool keeps = (op->code == OP_CMP_EQ) == (c.i != 0);
    return keeps ? x : ir_unary(&b, OP_NOT, x);
}

/* ---- casts ---- */

/* Does `to` hold every value of `from`? */
static bool widens(enum dtype from, enum dtype to)
{
    enum dtype_kind a = dtype_kind(from), b = dtype_kind(to);
    int bits = dtype_bits(from);

    if (from == to || a == DTK_BOOL)
        return true;
    if (b == DTK_BOOL)
        return false;
    if (a == DTK_FLOAT)
        return b == DTK_FLOAT && dtype_bits(to) > bits;
    if (b == DTK_FLOAT) /* mantissa bits: 11, 8, 24, 53 */
        return bits <= (to == DT_F64 ? 32 : to == DT_F32 ? 16 : 8);
    if (a == DTK_UINT && b == DTK_SINT)
        return dtype_bits(to) > bits;
    return a == b && dtype_bits(to) >= bits;
}

/* cast (cast %x), where the first loses nothing: one cast */
static ir_val rule_cast(simplifier *s, ir_op *op)
{
    ir_val x = op->args[0];
    const ir_op *first = def_of(s->fn, x, OP_CAST);
    enum dtype to = ir_type_of(s->fn, op->res).dtype;

    if (ir_type_of(s->fn, x).dtype == to)
        return x;
    if (!first || !widens(ir_type_of(s->fn, first->args[0]).dtype, ir_type_of(s->fn, x).dtype))
        return 0;
    ir_builder b = ir_before(s->fn, op);
    return ir_cast(&b, first->args[0], to);
}

ir_val simplify_choice(simplifier *s, ir_op *op)
{
    switch ((int)op->code) {
    case OP_WHERE:
        return rule_where(s, op);
    case OP_CMP_EQ:
    case OP_CMP_NE:
    case OP_CMP_LT:
    case OP_CMP_LE:
        return rule_compare(s, op);
    case OP_CAST:
        return rule_cast(s, op);
    case OP_BITCAST:
        return type_equal(ir_type_of(s->fn, op->args[0]), ir_type_of(s->fn, op->res)) ? op->args[0]
                                                                                      : 0;
    default:
        return 0;
    }
}
