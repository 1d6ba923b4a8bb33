/* The last part of pass_assign_layouts: values get the layouts that were decided, and where an
 * operation takes a value in another layout than its home, a conversion is put behind the value's
 * definition, or, for a cheap value, a copy of what makes it. One for each layout. */
#include "compiler/base/check.h"
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/schedule/access_piece.h"
#include "compiler/schedule/layout_choice.h"
#include "compiler/schedule/layout_plan.h"
#include "compiler/schedule/reduce_warps.h"
#include "compiler/schedule/shared_slot.h"

typedef struct held {
    ir_val v;
    uint16_t lay;
    ir_val as; /* v in that layout */
} held;

typedef struct applying {
    layout_plan *p;
    ir_fn *fn;
    VEC(held) have;
    uint32_t converts;
} applying;

static enum value_role role_of(const applying *x, ir_val v)
{
    if (v < x->p->nvals)
        return (enum value_role)x->p->role[v];
    return ir_type_of(x->fn, v).kind == TYPE_TILE ? ROLE_TILE : ROLE_NONE;
}

static uint16_t home_of(const applying *x, ir_val v)
{
    return ir_type_of(x->fn, v).layout;
}

static ir_builder behind(ir_fn *fn, ir_val v)
{
    const ir_value *val = ir_value_of(fn, v);

    return ir_before(fn, val->def ? val->def->next : val->block->first);
}

static uint16_t operand_layout(applying *x, const ir_op *op, uint16_t lay)
{
    int perm[TILE_MAX_RANK], rank = ir_type_of(x->fn, op->res).rank;

    if (op->code == OP_EXPAND)
        return layout_slice(x->fn, lay, (int)op->attr[0].i);
    if (op->code != OP_TRANS)
        return lay;
    for (int i = 0; i < rank; i++)
        perm[op->attr[0].ints.at[i]] = i;
    return layout_trans(x->fn, lay, rank, perm);
}

static ir_val need(applying *x, ir_val v, uint16_t lay);

static ir_val copy_cheap(applying *x, const ir_op *op, uint16_t lay)
{
    ir_val args[4];
    ir_type type = ir_type_of(x->fn, op->res);
    uint16_t below = operand_layout(x, op, lay);

    ICHECK(op->nargs <= 4, "what is cheap has few operands");
    for (int i = 0; i < op->nargs; i++)
        args[i] = need(x, op->args[i], below);
    type.layout = lay;
    ir_builder b = behind(x->fn, op->res);
    b.where = op->where;
    ir_val copy = ir_build(&b, op->code, args, op->nargs, op->attr, type)->res;
    ir_name(x->fn, copy, ir_value_of(x->fn, op->res)->name);
    return copy;
}

/* v in a layout; scalars as they are. */
static ir_val need(applying *x, ir_val v, uint16_t lay)
{
    enum value_role role = role_of(x, v);

    if (role == ROLE_NONE || (role == ROLE_TILE && home_of(x, v) == lay))
        return v;
    for (uint32_t i = 0; i < x->have.n; i++) {
        if (x->have.at[i].v == v && x->have.at[i].lay == lay)
            return x->have.at[i].as;
    }
    ir_val as;
    if (role == ROLE_CHEAP)
        as = copy_cheap(x, ir_def(x->fn, v), lay);
    else {
        ir_builder b = behind(x->fn, v);
        as = ir_convert(&b, v, lay);
        x->converts++;
    }
    vec_push(&x->have, x->p->a, ((held){v, lay, as}));
    return as;
}

/* v in its home, or, when it has none, in any layout. */
static ir_val need_some(applying *x, ir_val v)
{
    if (role_of(x, v) != ROLE_CHEAP)
        return v;
    return need(x, v, choose_default(x->fn, ir_type_of(x->fn, v), -1));
}

static void need_args(applying *x, ir_op *op, uint16_t lay)
{
    for (int i = 0; i < op->nargs; i++)
        op->args[i] = need(x, op->args[i], lay);
}

static void set_home(applying *x, ir_val v, uint16_t lay)
{
    x->fn->values.at[v].type.layout = lay;
}

/* ---- memory ---- */

/* Indices that are tiles lie as the dimension that they pick. */
static void need_indices(applying *x, ir_op *op, uint16_t lay, int rank)
{
    int dim = 0;

    for (uint32_t i = 0; i < op->attr[0].ints.n; i++) {
        if (role_of(x, op->args[1 + i]) != ROLE_NONE)
            op->args[1 + i] = need(x, op->args[1 + i], index_layout(x->fn, lay, rank, dim));
        dim += op->attr[0].ints.at[i] != 0;
    }
}

/* Narrow values that lie as the matrix unit leaves them go to memory in whole pieces. */
static uint16_t store_layout(applying *x, const ir_op *store, ir_val v)
{
    ir_type t = ir_type_of(x->fn, v);
    const ir_layout *lay = x->fn->layouts.at[t.layout];
    int piece = access_piece(x->p->s, x->fn, store, t);
    uint16_t beside = 0;

    if (lay->kind == LAYOUT_MMA && dtype_bytes((enum dtype)t.dtype) < 4 && piece > 4)
        beside = choose_beside_mma(x->fn, t, lay->warps[0], lay->warps[1], piece);
    return beside ? beside : t.layout;
}

static void apply_store(applying *x, ir_op *op)
{
    ir_val *v = &op->args[op->nargs - 1];

    if (role_of(x, *v) == ROLE_NONE)
        return;
    *v = need_some(x, *v);
    *v = need(x, *v, store_layout(x, op, *v));
    need_indices(x, op, home_of(x, *v), ir_type_of(x->fn, *v).rank);
}

/* ---- operations with rules of their own ---- */

static void apply_dot(applying *x, ir_op *op)
{
    uint16_t lay = (uint16_t)op->mark;
    const ir_layout *acc = x->fn->layouts.at[lay];

    set_home(x, op->res, lay);
    op->args[2] = need(x, op->args[2], lay);
    if (role_of(x, op->args[0]) == ROLE_CHEAP && acc->kind == LAYOUT_MMA)
        op->args[0] = need(x, op->args[0], layout_mma_a(x->fn, acc->warps[0], acc->warps[1]));
    op->args[0] = need_some(x, op->args[0]);
    op->args[1] = need_some(x, op->args[1]);
}

static int warps_along(const applying *x, ir_val v, int axis)
{
    layout_map map;
    const char *why;

    ICHECK(layout_map_of(x->fn, ir_type_of(x->fn, v), x->fn->warps, &map, &why), "a home fits");
    return layout_warps_along(&map, axis);
}

static void replace(applying *x, ir_op *op, ir_val by)
{
    ir_replace_uses(x->fn, op->res, by);
    ir_unlink(op);
}

static void apply_reduce(applying *x, ir_op *op)
{
    int axis = (int)op->attr[0].i;
    ir_val v = op->args[0];

    if (role_of(x, v) == ROLE_CHEAP) /* each warp makes it whole */
        v = need(x, v, choose_default(x->fn, ir_type_of(x->fn, v), axis));
    if (warps_along(x, v, axis) > 1) {
        ir_builder b = ir_before(x->fn, op);
        ir_val res = reduce_over_warps(&b, op, v);
        if (res) {
            x->converts++;
            replace(x, op, res);
            return;
        }
        v = need(x, v, choose_default(x->fn, ir_type_of(x->fn, v), axis));
    }
    op->args[0] = v;
    if (role_of(x, op->res) == ROLE_TILE)
        set_home(x, op->res, layout_slice(x->fn, home_of(x, v), axis));
}

static void apply_scan(applying *x, ir_op *op)
{
    int axis = (int)op->attr[0].i;
    ir_val v = need_some(x, op->args[0]);

    if (warps_along(x, v, axis) > 1)
        v = need(x, v, choose_default(x->fn, ir_type_of(x->fn, v), axis));
    op->args[0] = v;
    set_home(x, op->res, home_of(x, v));
}

static ir_val through_shared(ir_builder *b, ir_val v, ir_type to)
{
    ir_type from = ir_type_of(b->fn, v);
    uint16_t plain = layout_shared(b->fn, 0);
    ir_type view = {.kind = TYPE_BUFFER, .dtype = from.dtype, .rank = (uint8_t)(to.rank + 1),
                    .layout = plain, .shape = {1}};

    for (int d = 0; d < to.rank; d++)
        view.shape[d + 1] = to.shape[d];
    ir_val slot = new_shared_slot(b, from, plain);
    ir_buffer_store(b, slot, v);
    return ir_buffer_load(b, ir_buffer_view(b, slot, view), to.layout);
}

/* In place when each element stays in its thread, else through shared memory. */
static void apply_reshape(applying *x, ir_op *op)
{
    const char *why;
    ir_type type = ir_type_of(x->fn, op->res), got = type;

    op->args[0] = need_some(x, op->args[0]);
    if (op_result_type(x->fn, OP_RESHAPE, op->args, 1, op->attr, &got, &why))
        return;
    ir_builder b = ir_before(x->fn, op);
    replace(x, op, through_shared(&b, op->args[0], type));
    x->converts++;
}

/* ---- control ---- */

/* The values given in args[first...] go to those from `to` on. */
static void apply_passed(applying *x, ir_op *op, int first, ir_val to)
{
    for (int i = first; i < op->nargs; i++) {
        ir_val target = to + (ir_val)(i - first);
        if (role_of(x, op->args[i]) != ROLE_NONE)
            op->args[i] = need(x, op->args[i], home_of(x, target));
    }
}

static void apply_end(applying *x, ir_op *op)
{
    const ir_op *owner = op->parent->owner;

    if (owner)
        apply_passed(x, op, op->code == OP_CONDITION, owner->res);
}

static void apply_op(ir_op *op, void *arg)
{
    applying *x = arg;
    bool tile = op->nres == 1 && role_of(x, op->res) == ROLE_TILE;

    if (op->nres == 1 && op->nregions == 0 &&
        (role_of(x, op->res) == ROLE_CHEAP || role_of(x, op->res) == ROLE_OPERAND))
        return;
    switch ((unsigned)op->code) {
    case OP_DOT:
        apply_dot(x, op);
        break;
    case OP_REDUCE_MAX:
    case OP_REDUCE_MIN:
    case OP_REDUCE_SUM:
    case OP_REDUCE:
        apply_reduce(x, op);
        break;
    case OP_SCAN_SUM:
    case OP_SCAN_PROD:
    case OP_SCAN:
        apply_scan(x, op);
        break;
    case OP_RESHAPE:
        apply_reshape(x, op);
        break;
    case OP_LOAD:
    case OP_ATOMIC_ADD:
    case OP_ATOMIC_MAX:
    case OP_ATOMIC_MIN:
    case OP_ATOMIC_XCHG:
    case OP_ATOMIC_CAS:
        if (!tile)
            break;
        need_indices(x, op, home_of(x, op->res), ir_type_of(x->fn, op->res).rank);
        for (int i = 1 + (int)op->attr[0].ints.n; i < op->nargs; i++)
            op->args[i] = need(x, op->args[i], home_of(x, op->res));
        break;
    case OP_STORE:
        apply_store(x, op);
        break;
    case OP_FOR:
        apply_passed(x, op, 3, op->res);
        break;
    case OP_WHILE:
        apply_passed(x, op, 0, op->res);
        break;
    case OP_YIELD:
    case OP_CONDITION:
        apply_end(x, op);
        break;
    default:
        if (tile)
            need_args(x, op, operand_layout(x, op, home_of(x, op->res)));
        for (int i = 0; !op->nres && i < op->nargs; i++)
            op->args[i] = need_some(x, op->args[i]);
        break;
    }
}

/* Cheap values in no layout: nobody is left who uses them. */
static void drop_cheap(const applying *x, ir_block *blk)
{
    for (ir_op *op = blk->last, *up; op; op = up) {
        up = op->prev;
        for (int i = 0; i < op->nregions; i++)
            drop_cheap(x, op->regions[i]);
        if (op->nres == 1 && op->nregions == 0 && role_of(x, op->res) == ROLE_CHEAP)
            ir_unlink(op);
    }
}

uint32_t apply_layouts(layout_plan *p)
{
    applying x = {.p = p, .fn = p->fn};

    for (ir_val v = 1; v < p->nvals; v++) {
        if (p->role[v] == ROLE_TILE)
            set_home(&x, v, plan_home(p, v));
    }
    ir_walk(p->fn->body, apply_op, &x);
    drop_cheap(&x, p->fn->body);
    return x.converts;
}
