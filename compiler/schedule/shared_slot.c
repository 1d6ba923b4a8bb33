#include "compiler/schedule/shared_slot.h"
#include "compiler/base/error.h"
#include "compiler/base/guard.h"
#include "compiler/ir/layout.h"

static void check_size(const ir_fn *fn, ir_type buffer, span where)
{
    int64_t bytes = layout_slot_bytes(fn, buffer) * buffer.shape[0];

    if (bytes <= SHARED_MAX_BYTES)
        return;
    (void)error_diag_at(
        TW_E_LIMIT, DIAG_LIMIT, where, "take smaller tiles or fewer stages",
        "the schedule needs at least %lld bytes of shared memory, more than any GPU has",
        (long long)bytes);
    guard_throw(TW_E_LIMIT);
}

ir_val new_shared_slot(ir_builder *b, ir_type tile, uint16_t layout)
{
    ir_type buffer = {.kind = TYPE_BUFFER,
                      .dtype = tile.dtype,
                      .rank = (uint8_t)(tile.rank + 1),
                      .layout = layout,
                      .shape = {1}};

    for (int d = 0; d < tile.rank; d++)
        buffer.shape[d + 1] = tile.shape[d];
    check_size(b->fn, buffer, b->where);
    ir_val whole = ir_alloc(b, (enum dtype)tile.dtype, buffer.rank, buffer.shape, layout, -1);
    return ir_buffer_slot(b, whole, ir_const_int(b, DT_I32, 0));
}

void set_shared_slots(ir_fn *fn, ir_val buffer, int slots)
{
    ir_type *type = &fn->values.at[buffer].type;

    type->shape[0] = slots;
    check_size(fn, *type, ir_def(fn, buffer)->where);
}
