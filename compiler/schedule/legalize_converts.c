/* legalize_converts: a conversion that moves elements between threads goes through shared memory.
 *
 *   %y = convert %x : f32[64, 64] #b       %s = alloc : buf<f32, [1, 64, 64]> #shared
 *                                    ->    buffer.store %s[0], %x
 *                                          %y = buffer.load %s[0] : f32[64, 64] #b
 *
 * leaves: conversions that are free; barriers to pass_place_barriers, offsets to pass_plan_shared.
 */
#include "compiler/base/check.h"
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/layout.h"
#include "compiler/schedule/schedule_pass.h"
#include "compiler/schedule/shared_slot.h"

typedef struct legalizing {
    ir_fn *fn;
    uint32_t changes;
} legalizing;

static bool is_free(const ir_fn *fn, const ir_op *op)
{
    layout_map from, to;
    const char *why;
    bool fit = layout_map_of(fn, ir_type_of(fn, op->args[0]), fn->warps, &from, &why) &&
               layout_map_of(fn, ir_type_of(fn, op->res), fn->warps, &to, &why);

    ICHECK(fit, "layouts fit their tiles");
    return layout_same_threads(&from, &to, NULL);
}

static void through_shared(legalizing *x, ir_op *op)
{
    ir_builder b = ir_before(x->fn, op);
    ir_type t = ir_type_of(x->fn, op->res);
    int64_t row = (int64_t)t.shape[t.rank - 1] * dtype_bytes((enum dtype)t.dtype);
    uint16_t lay = layout_shared(x->fn, t.rank > 1 ? layout_shared_row(row) : 0);
    ir_val slot = new_shared_slot(&b, t, lay);
    ir_buffer_store(&b, slot, op->args[0]);
    ir_val res = ir_buffer_load(&b, slot, t.layout);
    ir_name(x->fn, res, ir_value_of(x->fn, op->res)->name);
    ir_replace_uses(x->fn, op->res, res);
    ir_unlink(op);
    x->changes++;
}

static void legalize(ir_op *op, void *arg)
{
    legalizing *x = arg;

    if (op->code == OP_CONVERT && !is_free(x->fn, op))
        through_shared(x, op);
}

tw_status pass_legalize_converts(pass_cx *cx, ir_module *m)
{
    legalizing x = {.fn = m->kernel};

    ir_walk(m->kernel->body, legalize, &x);
    cx->changes = x.changes;
    return TW_OK;
}
