#include "compiler/schedule/access_piece.h"
#include "compiler/passes/purity.h"

enum { WIDEST = 16, NARROWEST_COPY = 4 };

int access_piece(const schedule *s, const ir_fn *fn, const ir_op *op, ir_type tile)
{
    const ir_value *view = ir_value_of(fn, op->args[0]);
    uint32_t n = op->attr[0].ints.n;
    int element = dtype_bytes((enum dtype)tile.dtype);

    if (tile.kind != TYPE_TILE || view->block != fn->body || !op->attr[0].ints.at[n - 1] ||
        ir_type_of(fn, op->args[n]).kind != TYPE_SCALAR)
        return 0;
    const ir_param *p = &fn->params.at[view->index];
    int64_t divisor = s->facts ? facts_divisor(s->facts, op->args[n]) : 1;
    int64_t step = (divisor < WIDEST ? divisor : WIDEST) * element; /* that of 0 is 2^62 */
    int64_t row = (int64_t)tile.shape[tile.rank - 1] * element;
    if (!p->unit_inner)
        return 0;
    for (int bytes = WIDEST; bytes > element; bytes /= 2) {
        if (row % bytes == 0 && step % bytes == 0 && p->align >= bytes)
            return bytes;
    }
    return element;
}

int copy_piece(const schedule *s, const ir_fn *fn, const ir_op *load)
{
    if (!op_is_pure(fn, load))
        return 0;
    for (int i = 1; i < load->nargs; i++) {
        if (ir_type_of(fn, load->args[i]).kind != TYPE_SCALAR)
            return 0;
    }
    int bytes = access_piece(s, fn, load, ir_type_of(fn, load->res));
    return bytes >= NARROWEST_COPY ? bytes : 0;
}
