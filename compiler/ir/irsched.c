/* Invariants of level 2 that are about whole functions. */
#include "compiler/ir/irsched.h"
#include "compiler/ir/irlex.h"
#include <string.h>

/* ---- the table of layouts ---- */

static bool layout_fault(const ir_fn *fn, uint16_t lay, const char **why)
{
    const ir_layout *p = fn->layouts.at[lay];

    if (!p || !p->name || !ir_is_name(p->name))
        *why = "a layout has a name";
    else if (p->parent >= lay)
        *why = "a layout comes after the one that it is made from";
    else if (layout_is_sound(fn, p, why) && layout_find(fn, p) != lay)
        *why = "two layouts are equal";
    for (uint16_t i = 1; i < lay && !*why; i++) {
        if (strcmp(fn->layouts.at[i]->name, p->name) == 0)
            *why = "two layouts have one name";
    }
    return *why != NULL;
}

bool sched_head_is_sound(const ir_fn *fn, const char **why)
{
    *why = NULL;
    if (fn->warps < 1 || fn->warps > IR_MAX_WARPS)
        *why = "a block has 1 to 32 warps";
    for (uint32_t i = 1; i < fn->layouts.n && !*why; i++)
        layout_fault(fn, (uint16_t)i, why);
    return !*why;
}

bool sched_type_fits(const ir_fn *fn, ir_type ty, int warps, const char **why)
{
    layout_map map;

    *why = "a value has a type of level 2";
    if (ty.layout >= fn->layouts.n)
        return false;
    switch ((enum type_kind)ty.kind) {
    case TYPE_SCALAR:
    case TYPE_VIEW:
        return ty.layout == 0 && ty.dtype < DT_COUNT;
    case TYPE_TILE:
        return ty.dtype < DT_COUNT && layout_map_of(fn, ty, warps, &map, why);
    case TYPE_BUFFER:
        return ty.dtype < DT_COUNT && layout_fits_buffer(fn, ty, why);
    case TYPE_MBAR:
        return true;
    case TYPE_NONE:
        break;
    }
    return false;
}

/* ---- what differs between warps ---- */

typedef struct varying {
    const ir_fn *fn;
    bool *differs; /* per value: a scalar that may differ between warps */
    bool changed;
    const ir_op *found;
} varying;

static void mark(varying *v, ir_val val)
{
    if (v->differs[val] || ir_type_of(v->fn, val).kind != TYPE_SCALAR)
        return;
    v->differs[val] = true;
    v->changed = true;
}

static void flow(varying *v, ir_val from, ir_val to, bool under)
{
    if (under || v->differs[from])
        mark(v, to);
}

static bool any_differs(const varying *v, const ir_op *op)
{
    bool any = false;

    for (int i = 0; i < op->nargs; i++)
        any |= v->differs[op->args[i]];
    return any;
}

/* What a loop carries: from its operands and from what its region yields. */
static void flow_carried(varying *v, const ir_op *op, bool under)
{
    int skip = op->code == OP_FOR ? 3 : 0, counter = op->code == OP_FOR;
    const ir_op *end = op->regions[op->nregions - 1]->last;
    const ir_op *passed = op->code == OP_WHILE ? op->regions[0]->last : NULL;

    for (int i = 0; i < op->nres; i++) {
        ir_val arg = op->regions[0]->arg + (ir_val)(i + counter);
        flow(v, op->args[skip + i], arg, false);
        flow(v, end->args[i], arg, false);
        flow(v, passed ? passed->args[i + 1] : arg, op->res + (ir_val)i, under);
        if (passed)
            flow(v, passed->args[i + 1], op->regions[1]->arg + (ir_val)i, false);
    }
}

static bool control_differs(const varying *v, const ir_op *op)
{
    if (op->code == OP_IF)
        return v->differs[op->args[0]];
    if (op->code == OP_WHILE)
        return v->differs[op->regions[0]->last->args[0]];
    return op->code == OP_FOR &&
           (v->differs[op->args[0]] || v->differs[op->args[1]] || v->differs[op->args[2]]);
}

static void flow_op(varying *v, const ir_op *op)
{
    bool under = control_differs(v, op);

    if (op->code == OP_VOTE_ANY || op->code == OP_SOME || op->code == OP_EVERY)
        mark(v, op->res);
    if (op->code == OP_FOR && under)
        mark(v, op->regions[0]->arg);
    if (op->code == OP_FOR || op->code == OP_WHILE)
        flow_carried(v, op, under);
    for (int r = 0; op->code == OP_IF && r < 2; r++) {
        for (int i = 0; i < op->nres; i++)
            flow(v, op->regions[r]->last->args[i], op->res + (ir_val)i, under);
    }
    for (int i = 0; op->nregions == 0 && i < op->nres; i++) {
        if (any_differs(v, op))
            mark(v, op->res + (ir_val)i);
    }
}

static void flow_block(varying *v, const ir_block *blk)
{
    for IR_EACH_OP(op, blk) {
        for (int i = 0; i < op->nregions; i++)
            flow_block(v, op->regions[i]);
        flow_op(v, op);
    }
}

static bool warps_meet(const ir_op *op)
{
    return op->code == OP_BARRIER || op->code == OP_COPY_ASYNC || op->code == OP_WGMMA ||
           op->code == OP_ROLE;
}

static void find_in_block(varying *v, const ir_block *blk, bool under)
{
    for IR_EACH_OP(op, blk) {
        if (under && warps_meet(op) && !v->found)
            v->found = op;
        for (int i = 0; i < op->nregions; i++)
            find_in_block(v, op->regions[i], under || control_differs(v, op));
    }
}

const ir_op *sched_find_varying(const ir_fn *fn, arena *scratch)
{
    varying v = {.fn = fn, .differs = ARENA_ARRAY(scratch, bool, fn->values.n)};

    do {
        v.changed = false;
        flow_block(&v, fn->body);
    } while (v.changed);
    find_in_block(&v, fn->body, false);
    return v.found;
}
