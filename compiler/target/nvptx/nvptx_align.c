/* What divides the index of an access: enough to know that a block begins where a vector may. */
#include "compiler/target/nvptx/nvptx_emit.h"

enum { MOST = 4096, DEPTH = 12 };

static int32_t divisor(const nv_emit *e, ir_val v, int depth);

static int32_t of_constant(int64_t x)
{
    int32_t most = MOST;

    while (x % most)
        most /= 2;
    return most;
}

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t product(int32_t a, int32_t b)
{
    return (int64_t)a * b > MOST ? MOST : a * b;
}

/* lo, lo + step, ...: also what a loop carries along, if each iteration keeps it so; but that is
 * not followed around. */
static int32_t of_argument(const nv_emit *e, const ir_value *v, int depth)
{
    const ir_op *owner = v->block->owner;

    if (!owner || owner->code != OP_FOR || v->index != 0)
        return 1;
    return least(divisor(e, owner->args[0], depth), divisor(e, owner->args[2], depth));
}

static int32_t of_op(const nv_emit *e, const ir_op *op, int depth)
{
    switch ((int)op->code) {
    case OP_CONST_INT:
        return of_constant(op->attr[0].i);
    case OP_ADD:
    case OP_SUB:
    case OP_MAX:
    case OP_MIN:
        return least(divisor(e, op->args[0], depth), divisor(e, op->args[1], depth));
    case OP_WHERE:
        return least(divisor(e, op->args[1], depth), divisor(e, op->args[2], depth));
    case OP_MUL:
        return product(divisor(e, op->args[0], depth), divisor(e, op->args[1], depth));
    case OP_NEG:
        return divisor(e, op->args[0], depth);
    default:
        return 1;
    }
}

static int32_t divisor(const nv_emit *e, ir_val v, int depth)
{
    const ir_value *x = ir_value_of(e->fn, v);

    if (depth == 0 || x->type.kind != TYPE_SCALAR || !dtype_is_int((enum dtype)x->type.dtype))
        return 1;
    return x->def ? of_op(e, x->def, depth - 1) : of_argument(e, x, depth - 1);
}

int32_t nv_divisor(const nv_emit *e, ir_val v)
{
    return divisor(e, v, DEPTH);
}
