/* Identities of floats: only those that hold for every value, NaN, infinities and -0 included. */
#include "compiler/passes/simplify.h"
#include <math.h>
#include <stdlib.h>

static ir_val binary(simplifier *s, ir_op *op, enum ir_opcode code, ir_val x, ir_val y)
{
    ir_builder b = ir_before(s->fn, op);

    return ir_binary(&b, code, x, y);
}

static ir_val unary(simplifier *s, ir_op *op, enum ir_opcode code, ir_val x)
{
    ir_builder b = ir_before(s->fn, op);

    return ir_unary(&b, code, x);
}

static ir_val rule_add(simplifier *s, ir_op *op, ir_val x, ir_val y)
{
    const ir_op *negated = def_of(s->fn, y, OP_NEG);

    if (is_float_const(s->fn, y, -0.0)) /* -0 + 0.0 would be 0 */
        return x;
    if (negated)
        return binary(s, op, OP_SUB, x, negated->args[0]);
    negated = def_of(s->fn, x, OP_NEG);
    return negated ? binary(s, op, OP_SUB, y, negated->args[0]) : 0;
}

static ir_val rule_sub(simplifier *s, ir_op *op, ir_val x, ir_val y)
{
    const ir_op *negated = def_of(s->fn, y, OP_NEG);

    if (is_float_const(s->fn, y, 0.0))
        return x;
    if (is_float_const(s->fn, x, -0.0))
        return unary(s, op, OP_NEG, y);
    return negated ? binary(s, op, OP_ADD, x, negated->args[0]) : 0;
}

static ir_val rule_mul(simplifier *s, ir_op *op, ir_val x, ir_val y)
{
    if (is_float_const(s->fn, y, 1.0))
        return x;
    return is_float_const(s->fn, y, -1.0) ? unary(s, op, OP_NEG, x) : 0;
}

/* x / 2^k = x * 2^-k, rounded alike, while 2^-k is a normal number of every float type. */
static ir_val rule_div(simplifier *s, ir_op *op, ir_val x, ir_val y)
{
    ir_scalar c;
    int exponent;

    if (is_float_const(s->fn, y, 1.0))
        return x;
    if (!const_of(s->fn, y, &c) || fabs(frexp(c.f, &exponent)) != 0.5 || abs(exponent) > 13)
        return 0;
    ir_type t = ir_type_of(s->fn, op->res);
    return binary(s, op, OP_MUL, x, make_const(s, op, t, (ir_scalar){.f = 1.0 / c.f}));
}

static ir_val rule_extreme(simplifier *s, ir_val x, ir_val y, double neutral)
{
    return x == y || is_float_const(s->fn, y, neutral) ? x : 0;
}

static ir_val rule_fma(simplifier *s, ir_op *op)
{
    if (is_float_const(s->fn, op->args[1], 1.0))
        return binary(s, op, OP_ADD, op->args[0], op->args[2]);
    if (is_float_const(s->fn, op->args[2], -0.0))
        return binary(s, op, OP_MUL, op->args[0], op->args[1]);
    return 0;
}

/* exp2(x * c - d)  ->  exp2(fma(x, c, -d)). The negation moves onto d's source in the next round
 * (simplify_lift), so it costs a row's work, not a tile's. Not of f64, whose fma is software on
 * some processors. */
static ir_val rule_exp2(simplifier *s, ir_op *op)
{
    const ir_op *difference = def_of(s->fn, op->args[0], OP_SUB);
    const ir_op *product = difference ? def_of(s->fn, difference->args[0], OP_MUL) : NULL;

    if (!product || ir_type_of(s->fn, op->res).dtype == DT_F64)
        return 0;
    ir_val d = unary(s, op, OP_NEG, difference->args[1]);
    ir_builder b = ir_before(s->fn, op);
    return ir_unary(&b, OP_EXP2, ir_fma(&b, product->args[0], product->args[1], d));
}

static ir_val rule_sign(simplifier *s, ir_op *op, ir_val x)
{
    const ir_op *negated = def_of(s->fn, x, OP_NEG);

    if (op->code == OP_NEG)
        return negated ? negated->args[0] : 0;
    if (negated)
        return unary(s, op, OP_ABS, negated->args[0]);
    return def_of(s->fn, x, OP_ABS) ? x : 0;
}

ir_val simplify_float(simplifier *s, ir_op *op)
{
    ir_val x = op->nargs > 0 ? op->args[0] : 0, y = op->nargs > 1 ? op->args[1] : 0;

    switch ((int)op->code) {
    case OP_ADD:
        return rule_add(s, op, x, y);
    case OP_SUB:
        return rule_sub(s, op, x, y);
    case OP_MUL:
        return rule_mul(s, op, x, y);
    case OP_DIV:
        return rule_div(s, op, x, y);
    case OP_MAX:
        return rule_extreme(s, x, y, (double)-INFINITY);
    case OP_MIN:
        return rule_extreme(s, x, y, (double)INFINITY);
    case OP_FMA:
        return rule_fma(s, op);
    case OP_EXP2:
        return rule_exp2(s, op);
    case OP_NEG:
    case OP_ABS:
        return rule_sign(s, op, x);
    default:
        return 0;
    }
}
