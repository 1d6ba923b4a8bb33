#include "compiler/passes/purity.h"

static bool is_read_only(const ir_fn *fn, ir_val view)
{
    const ir_value *v = ir_value_of(fn, view);

    return v->block == fn->body && fn->params.at[v->index].direction == DIR_IN;
}

bool op_is_pure(const ir_fn *fn, const ir_op *op)
{
    if (op->code == OP_LOAD)
        return is_read_only(fn, op->args[0]);
    return (op_info(op->code)->traits & OPT_PURE) != 0;
}
