/* What is known of integers. What divides the index of an access: enough to know that a block
 * begins where a vector may. How large an operand of a division is: enough to divide unsigned, in
 * 32 bits. */
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

/* ---- how large ------------------------------------------------------------------------------- */

static int64_t most(const nv_emit *e, ir_val v, int depth);

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The bounds of two operands; false: one of them is not known. */
static bool both_most(const nv_emit *e, const ir_op *op, int first, int depth, int64_t bound[2])
{
    for (int i = 0; i < 2; i++)
        bound[i] = most(e, op->args[first + i], depth);
    return bound[0] >= 0 && bound[1] >= 0;
}

static int64_t most_of_op(const nv_emit *e, const ir_op *op, int depth)
{
    int64_t x[2], sum;

    switch ((int)op->code) {
    case OP_CONST_INT:
        return op->attr[0].i;
    case OP_PROGRAM_ID:
    case OP_NUM_PROGRAMS:
        return INT32_MAX;
    case OP_CAST:
        return most(e, op->args[0], depth);
    case OP_ADD:
        return both_most(e, op, 0, depth, x) && !__builtin_add_overflow(x[0], x[1], &sum) ? sum
                                                                                          : -1;
    case OP_DIV:
        return both_most(e, op, 0, depth, x) ? x[0] : -1;
    case OP_MIN:
        return !both_most(e, op, 0, depth, x) ? -1 : x[0] < x[1] ? x[0] : x[1];
    case OP_MAX:
        return both_most(e, op, 0, depth, x) ? greater(x[0], x[1]) : -1;
    case OP_WHERE:
        return both_most(e, op, 1, depth, x) ? greater(x[0], x[1]) : -1;
    default:
        return -1;
    }
}

/* What of a signed type may not fit it has wrapped. */
static int64_t most(const nv_emit *e, ir_val v, int depth)
{
    const ir_value *x = ir_value_of(e->fn, v);
    enum dtype t = (enum dtype)x->type.dtype;

    if (depth == 0 || x->type.kind != TYPE_SCALAR || (t != DT_I32 && t != DT_I64))
        return -1;
    if (!x->def) {
        bool param = x->block == e->fn->body;
        return param && e->fn->params.at[x->index].kind == PARAM_DIM ? INT32_MAX : -1;
    }
    int64_t bound = most_of_op(e, x->def, depth - 1);
    return t == DT_I32 && bound > INT32_MAX ? -1 : bound;
}

int64_t nv_most(const nv_emit *e, ir_val v)
{
    return most(e, v, DEPTH);
}
