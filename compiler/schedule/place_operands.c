/* place_operands: the factors of dots go to where the dot reads them.
 *
 *   %k = load %x, %j, %0 extent=[64, 128]        %b = alloc : buf<bf16, [1, 64, 128]> #shared
 *   %t = trans %k                                %k = buffer.slot %b, 0
 *   %s = dot %q, %t, %z                    ->    copy.async %x, %j, %0, %k
 *                                                copy.commit
 *                                                copy.wait pending=0
 *                                                %t = buffer.trans %k
 *                                                %s = mma %q, %t, %z
 *
 * A load of an `in` tensor in pieces that copies can move becomes copies; any other factor is
 * stored to shared memory where it is defined. A left factor that the matrix unit would take as its
 * threads hold it (P of attention) stays in registers. A value has one buffer, however many dots
 * read it and whichever way round. With operand_registers, what comes from outside of the dot's
 * loop as a left factor is read into registers once, behind the copy.
 *
 * needs: the layouts of pass_assign_layouts. leaves: barriers to pass_place_barriers.
 */
#include "compiler/base/check.h"
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/layout.h"
#include "compiler/schedule/access_piece.h"
#include "compiler/schedule/shared_slot.h"

typedef struct placed {
    ir_val v, slot;
} placed;

typedef struct in_registers {
    ir_val slot, tile;
    uint16_t lay;
} in_registers;

typedef struct placing {
    schedule *s;
    ir_fn *fn;
    arena *a;
    VEC(placed) slots;
    VEC(in_registers) tiles;
    uint32_t changes;
} placing;

/* ---- copies ---- */

static ir_val new_slot(ir_builder *b, ir_type tile)
{
    int64_t row = (int64_t)tile.shape[tile.rank - 1] * dtype_bytes((enum dtype)tile.dtype);

    return new_shared_slot(b, tile, layout_shared(b->fn, layout_shared_row(row)));
}

static ir_val copy_in(placing *x, ir_op *load, int bytes)
{
    ir_builder b = ir_before(x->fn, load);
    ir_val args[VIEW_MAX_RANK + 2];
    ir_attr attrs[OP_MAX_ATTRS] = {load->attr[0], load->attr[1], {.i = bytes}};

    for (int i = 0; i < load->nargs; i++)
        args[i] = load->args[i];
    ir_val slot = new_slot(&b, ir_type_of(x->fn, load->res));
    args[load->nargs] = slot;
    ir_build(&b, OP_COPY_ASYNC, args, load->nargs + 1, attrs, (ir_type){0});
    ir_copy_commit(&b);
    ir_copy_wait(&b, 0);
    return slot;
}

static ir_val store_in(placing *x, ir_val v)
{
    const ir_value *val = ir_value_of(x->fn, v);
    ir_builder b = ir_before(x->fn, val->def ? val->def->next : val->block->first);
    ir_val slot = new_slot(&b, ir_type_of(x->fn, v));

    ir_buffer_store(&b, slot, v);
    return slot;
}

/* ---- slots ---- */

static ir_val keep(placing *x, ir_val v, ir_val slot)
{
    ir_name(x->fn, slot, ir_value_of(x->fn, v)->name);
    vec_push(&x->slots, x->a, ((placed){v, slot}));
    x->changes++;
    return slot;
}

static ir_val trans_slot(ir_fn *fn, const ir_op *trans, ir_val slot)
{
    ir_builder b = ir_before(fn, ir_def(fn, slot)->next);
    int perm[TILE_MAX_RANK];

    for (uint32_t i = 0; i < trans->attr[0].ints.n; i++)
        perm[i] = (int)trans->attr[0].ints.at[i];
    return ir_buffer_trans(&b, slot, perm);
}

/* The slot that holds v. */
static ir_val slot_of(placing *x, ir_val v)
{
    ir_op *def = ir_def(x->fn, v);
    int bytes;

    for (uint32_t i = 0; i < x->slots.n; i++) {
        if (x->slots.at[i].v == v)
            return x->slots.at[i].slot;
    }
    if (def && def->code == OP_TRANS)
        return keep(x, v, trans_slot(x->fn, def, slot_of(x, def->args[0])));
    if (def && def->code == OP_LOAD && (bytes = copy_piece(x->s, x->fn, def)) != 0)
        return keep(x, v, copy_in(x, def, bytes));
    return keep(x, v, store_in(x, v));
}

/* ---- factors ---- */

static bool lies_as_factor(const placing *x, ir_val v, uint16_t factor)
{
    ir_type t = ir_type_of(x->fn, v);
    layout_map have, want;
    const char *why;

    return t.kind == TYPE_TILE && t.layout &&
           layout_map_of(x->fn, t, x->fn->warps, &have, &why) &&
           layout_map_with(x->fn, t, x->fn->layouts.at[factor], x->fn->warps, &want, &why) &&
           layout_same_threads(&have, &want, NULL);
}

static const ir_op *loop_around(const ir_op *op)
{
    const ir_op *owner = op->parent->owner;

    while (owner && owner->code != OP_FOR && owner->code != OP_WHILE)
        owner = owner->parent->owner;
    return owner;
}

/* The op behind which the slot's contents can be read: the last of those that fill it. */
static ir_op *filled_by(const placing *x, ir_val slot)
{
    ir_op *op = ir_def(x->fn, slot);

    while (op->next && (op->next->code == OP_BUFFER_TRANS || op->next->code == OP_BUFFER_STORE ||
                        op->next->code == OP_COPY_ASYNC || op->next->code == OP_COPY_COMMIT ||
                        op->next->code == OP_COPY_WAIT))
        op = op->next;
    return op;
}

/* The slot's tile in registers, read once in front of the loop. */
static ir_val read_once(placing *x, ir_val slot, uint16_t factor)
{
    for (uint32_t i = 0; i < x->tiles.n; i++) {
        if (x->tiles.at[i].slot == slot && x->tiles.at[i].lay == factor)
            return x->tiles.at[i].tile;
    }
    ir_builder b = ir_before(x->fn, filled_by(x, slot)->next);
    ir_val tile = ir_buffer_load(&b, slot, factor);
    vec_push(&x->tiles, x->a, ((in_registers){slot, tile, factor}));
    return tile;
}

static ir_val left_factor(placing *x, const ir_op *dot, const ir_layout *acc)
{
    ir_val v = dot->args[0];
    uint16_t factor = layout_mma_a(x->fn, acc->warps[0], acc->warps[1]);
    const ir_op *loop = loop_around(dot);

    if (lies_as_factor(x, v, factor))
        return v;
    ir_val slot = slot_of(x, v);
    bool outside = loop && ir_defined_outside(x->fn, slot, loop);
    return outside && x->s->params.operand_registers ? read_once(x, slot, factor) : slot;
}

static void place_dot(ir_op *op, void *arg)
{
    placing *x = arg;

    if (op->code != OP_DOT)
        return;
    const ir_layout *acc = x->fn->layouts.at[ir_type_of(x->fn, op->res).layout];
    bool matrix_unit = acc->kind == LAYOUT_MMA;
    ir_val a = matrix_unit ? left_factor(x, op, acc) : slot_of(x, op->args[0]);
    ir_val b = slot_of(x, op->args[1]);
    ir_builder at = ir_before(x->fn, op);
    ir_val res = matrix_unit ? ir_mma(&at, a, b, op->args[2]) : ir_dot(&at, a, b, op->args[2]);
    ir_name(x->fn, res, ir_value_of(x->fn, op->res)->name);
    ir_replace_uses(x->fn, op->res, res);
    ir_unlink(op);
}

/* What only dots read is gone with them. */
static void drop_unread(placing *x)
{
    for (uint32_t i = x->slots.n; i-- > 0;) {
        ir_op *def = ir_def(x->fn, x->slots.at[i].v);
        if (def && def->parent && (def->code == OP_TRANS || def->code == OP_LOAD) &&
            ir_count_uses(x->fn, def->res) == 0)
            ir_unlink(def);
    }
}

tw_status pass_place_operands(pass_cx *cx, ir_module *m)
{
    placing x = {.s = schedule_of(cx), .fn = m->kernel, .a = cx->scratch};

    ir_walk(m->kernel->body, place_dot, &x);
    drop_unread(&x);
    cx->changes = x.changes;
    return TW_OK;
}
