/* Identities of integers, which wrap, and of i1, whose arithmetic is and, or, xor and not. */
#include "compiler/passes/simplify.h"

static int64_t all_ones(enum dtype t)
{
    return dtype_kind(t) == DTK_SINT ? -1 : (int64_t)(UINT64_MAX >> (64 - dtype_bits(t)));
}

static int64_t least(enum dtype t)
{
    return dtype_kind(t) == DTK_SINT ? -(int64_t)(UINT64_MAX >> (65 - dtype_bits(t))) - 1 : 0;
}

static int64_t greatest(enum dtype t)
{
    return dtype_kind(t) == DTK_SINT ? (int64_t)(UINT64_MAX >> (65 - dtype_bits(t))) : all_ones(t);
}

static ir_val binary(simplifier *s, ir_op *op, enum ir_opcode code, ir_val x, ir_val y)
{
    ir_builder b = ir_before(s->fn, op);

    return ir_binary(&b, code, x, y);
}

/* (x op c1) op c2  ->  x op (c1 op c2) */
static ir_val join_constants(simplifier *s, ir_op *op)
{
    const ir_op *inner = def_of(s->fn, op->args[0], op->code);
    ir_type t = ir_type_of(s->fn, op->res);
    ir_scalar c[3];

    if (!inner || !const_of(s->fn, inner->args[1], &c[0]) || !const_of(s->fn, op->args[1], &c[1]))
        return 0;
    ir_val joined = make_const(s, op, t, eval_op(op->code, t.dtype, t.dtype, c, false));
    return binary(s, op, op->code, inner->args[0], joined);
}

/* arange + constant: the same arange, begun elsewhere. */
static ir_val shift_arange(simplifier *s, ir_op *op)
{
    const ir_op *range = def_of(s->fn, op->args[0], OP_ARANGE);
    ir_scalar c;

    if (!range || !const_of(s->fn, op->args[1], &c))
        return 0;
    int64_t start = range->attr[0].i + c.i;
    int32_t n = ir_type_of(s->fn, op->res).shape[0];
    if (start < INT32_MIN || start + n - 1 > INT32_MAX)
        return 0;
    ir_builder b = ir_before(s->fn, op);
    return ir_arange(&b, start, n);
}

static ir_val rule_add(simplifier *s, ir_op *op, ir_val x, ir_val y)
{
    const ir_op *negated = def_of(s->fn, y, OP_NEG);

    if (is_int_const(s->fn, y, 0))
        return x;
    if (negated)
        return binary(s, op, OP_SUB, x, negated->args[0]);
    if ((negated = def_of(s->fn, x, OP_NEG)))
        return binary(s, op, OP_SUB, y, negated->args[0]);
    ir_val v = shift_arange(s, op);
    return v ? v : join_constants(s, op);
}

static ir_val rule_sub(simplifier *s, ir_op *op, ir_val x, ir_val y)
{
    ir_type t = ir_type_of(s->fn, op->res);
    const ir_op *negated = def_of(s->fn, y, OP_NEG);
    ir_builder b = ir_before(s->fn, op);
    ir_scalar c;

    if (x == y)
        return make_int(s, op, t, 0);
    if (negated)
        return binary(s, op, OP_ADD, x, negated->args[0]);
    if (is_int_const(s->fn, x, 0))
        return ir_unary(&b, OP_NEG, y);
    if (const_of(s->fn, y, &c)) /* x - c -> x + -c, so that constants meet */
        return binary(s, op, OP_ADD, x,
                      make_const(s, op, t, eval_op(OP_NEG, t.dtype, t.dtype, &c, false)));
    return 0;
}

static ir_val rule_mul(simplifier *s, ir_op *op, ir_val x, ir_val y)
{
    if (is_int_const(s->fn, y, 1))
        return x;
    if (is_int_const(s->fn, y, 0))
        return y;
    return join_constants(s, op);
}

static ir_val rule_div_rem(simplifier *s, ir_op *op, ir_val x, ir_val y)
{
    ir_type t = ir_type_of(s->fn, op->res);

    if (is_int_const(s->fn, y, 1))
        return op->code == OP_DIV ? x : make_int(s, op, t, 0);
    if (is_int_const(s->fn, x, 0))
        return x; /* 0 / y and 0 % y are 0 for every y */
    return 0;
}

static ir_val rule_bits(simplifier *s, ir_op *op, ir_val x, ir_val y)
{
    ir_type t = ir_type_of(s->fn, op->res);
    bool zero = is_int_const(s->fn, y, 0), ones = is_int_const(s->fn, y, all_ones(t.dtype));
    ir_builder b = ir_before(s->fn, op);

    if (op->code == OP_XOR) {
        if (x == y)
            return make_int(s, op, t, 0);
        if (ones)
            return ir_unary(&b, OP_NOT, x);
        return zero ? x : join_constants(s, op);
    }
    if (x == y || (op->code == OP_AND ? ones : zero))
        return x;
    if (op->code == OP_AND ? zero : ones)
        return y;
    return join_constants(s, op);
}

static ir_val rule_extreme(simplifier *s, ir_op *op, ir_val x, ir_val y)
{
    enum dtype t = ir_type_of(s->fn, op->res).dtype;
    int64_t neutral = op->code == OP_MAX ? least(t) : greatest(t);
    int64_t absorbs = op->code == OP_MAX ? greatest(t) : least(t);

    if (x == y || is_int_const(s->fn, y, neutral))
        return x;
    if (is_int_const(s->fn, y, absorbs))
        return y;
    return join_constants(s, op);
}

static ir_val rule_not(simplifier *s, ir_op *op, ir_val x)
{
    const ir_op *def = ir_def(s->fn, x);

    if (!def || (def->nargs != 1 && def->nargs != 2))
        return 0;
    bool is_float = dtype_is_float(ir_type_of(s->fn, def->args[0]).dtype);
    switch ((int)def->code) {
    case OP_NOT:
        return def->args[0];
    case OP_CMP_EQ:
        return binary(s, op, OP_CMP_NE, def->args[0], def->args[1]);
    case OP_CMP_NE:
        return binary(s, op, OP_CMP_EQ, def->args[0], def->args[1]);
    case OP_CMP_LT: /* a NaN makes both false */
        return is_float ? 0 : binary(s, op, OP_CMP_LE, def->args[1], def->args[0]);
    case OP_CMP_LE:
        return is_float ? 0 : binary(s, op, OP_CMP_LT, def->args[1], def->args[0]);
    default:
        return 0;
    }
}

static ir_val rule_neg(simplifier *s, ir_op *op, ir_val x)
{
    const ir_op *inner = def_of(s->fn, x, OP_NEG), *difference = def_of(s->fn, x, OP_SUB);

    if (inner)
        return inner->args[0];
    return difference ? binary(s, op, OP_SUB, difference->args[1], difference->args[0]) : 0;
}

ir_val simplify_integer(simplifier *s, ir_op *op)
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
    case OP_REM:
        return rule_div_rem(s, op, x, y);
    case OP_AND:
    case OP_OR:
    case OP_XOR:
        return rule_bits(s, op, x, y);
    case OP_SHL:
    case OP_SHR:
        return is_int_const(s->fn, y, 0) ? x : 0;
    case OP_MAX:
    case OP_MIN:
        return rule_extreme(s, op, x, y);
    case OP_NOT:
        return rule_not(s, op, x);
    case OP_NEG:
        return rule_neg(s, op, x);
    case OP_ABS:
        return def_of(s->fn, x, OP_ABS) ? x : 0;
    default:
        return 0;
    }
}
