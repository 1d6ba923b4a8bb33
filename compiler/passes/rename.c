#include "compiler/passes/rename.h"

void rename_set(renames *r, ir_val from, ir_val to)
{
    vec_reserve(&r->to, r->a, from + 1);
    if (r->to.n <= from)
        r->to.n = from + 1;
    r->to.at[from] = to;
}

ir_val rename_of(const renames *r, ir_val v)
{
    while (v < r->to.n && r->to.at[v])
        v = r->to.at[v];
    return v;
}

bool rename_args(const renames *r, ir_op *op)
{
    bool changed = false;

    for (int i = 0; i < op->nargs; i++) {
        ir_val v = rename_of(r, op->args[i]);
        changed |= v != op->args[i];
        op->args[i] = v;
    }
    return changed;
}
