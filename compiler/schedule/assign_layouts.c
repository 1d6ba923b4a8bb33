/* assign_layouts: level 1 becomes level 2: every tile gets a layout.
 *
 *   %s = dot %q, %kt, %z : f32[128, 64]          %s = dot %q, %kt, %z : f32[128, 64] #mma
 *   %m = reduce_max %s axis=1 : f32[128]    ->   %m = reduce_max %s axis=1 : f32[128] #slice
 *   %t = load %x, %i extent=[256]                %t = load %x, %i extent=[256] : f32[256] #blocked
 *
 * From the dots outward: accumulators first (dot_choice.c), then whatever is computed from or into
 * them elementwise, by reductions, or carried by loops; then loads and stores, so that threads side
 * by side touch memory side by side; the rest by shape. Where two meet, `convert` stands between.
 *
 * leaves: the tile operands of dots as they are, some without a layout: pass_place_operands is
 * next.
 */
#include "compiler/base/check.h"
#include "compiler/ir/iredit.h"
#include "compiler/schedule/access_piece.h"
#include "compiler/schedule/layout_choice.h"
#include "compiler/schedule/layout_plan.h"

static bool is_tile(const ir_fn *fn, ir_val v)
{
    return ir_type_of(fn, v).kind == TYPE_TILE;
}

/* ---- roles ---- */

static bool is_costly(enum ir_opcode code)
{
    return code == OP_EXP || code == OP_EXP2 || code == OP_LOG || code == OP_LOG2 ||
           code == OP_SQRT || code == OP_RSQRT || (code >= OP_SIN && code <= OP_ERF) ||
           code == OP_DIV || code == OP_REM;
}

static bool is_cheap(const layout_plan *p, const ir_op *op)
{
    if (op->code == OP_SPLAT || op->code == OP_ARANGE)
        return true;
    bool moves = op->code == OP_EXPAND || op->code == OP_BROADCAST || op->code == OP_TRANS;
    if (!moves && (!is_elementwise(op) || is_costly(op->code)))
        return false;
    for (int i = 0; i < op->nargs; i++) {
        if (p->role[op->args[i]] != ROLE_CHEAP)
            return false;
    }
    return true;
}

static void find_role(ir_op *op, void *arg)
{
    layout_plan *p = arg;

    for (int i = 0; i < op->nres; i++) {
        if (is_tile(p->fn, op->res + (ir_val)i))
            p->role[op->res + (ir_val)i] = ROLE_TILE;
    }
    for (int r = 0; r < op->nregions; r++) {
        for (uint32_t i = 0; i < op->regions[r]->nargs; i++) {
            if (is_tile(p->fn, op->regions[r]->arg + i))
                p->role[op->regions[r]->arg + i] = ROLE_TILE;
        }
    }
    if (op->nres == 1 && !op->nregions && p->role[op->res] && is_cheap(p, op))
        p->role[op->res] = ROLE_CHEAP;
    if (op->code == OP_DOT)
        vec_push(&p->dots, p->a, op);
}

/* Read by nothing but dots, as a factor, maybe transposed on the way. */
static bool only_factors(const layout_plan *p, ir_val v)
{
    for EACH_USE(u, &p->uses, v) {
        bool factor = u->op->code == OP_DOT && u->arg < 2;
        if (!factor && !(u->op->code == OP_TRANS && p->role[u->op->res] == ROLE_OPERAND))
            return false;
    }
    return true;
}

/* Users stand below: the last first. */
static void find_operands(layout_plan *p, ir_block *blk)
{
    for (ir_op *op = blk->last; op; op = op->prev) {
        for (int i = op->nregions - 1; i >= 0; i--)
            find_operands(p, op->regions[i]);
        bool candidate = op->code == OP_TRANS ||
                         (op->code == OP_LOAD && copy_piece(p->s, p->fn, op));
        if (candidate && p->role[op->res] == ROLE_TILE && only_factors(p, op->res))
            p->role[op->res] = ROLE_OPERAND;
    }
}

/* What goes round a loop has one home: its name in the body, its names in front and behind. */
static void find_leaders(ir_op *op, void *arg)
{
    layout_plan *p = arg;
    int skip = op->code == OP_FOR;

    if (op->code != OP_FOR && op->code != OP_WHILE)
        return;
    for (int i = 0; i < op->nres; i++) {
        ir_val lead = op->regions[0]->arg + (ir_val)(i + skip);
        p->leader[op->res + (ir_val)i] = lead;
        if (op->code == OP_WHILE)
            p->leader[op->regions[1]->arg + (ir_val)i] = lead;
    }
}

/* ---- propagation ---- */

static bool fits(const layout_plan *p, ir_val v, uint16_t lay)
{
    layout_map map;
    const char *why;

    return layout_map_with(p->fn, ir_type_of(p->fn, v), p->fn->layouts.at[lay], p->fn->warps, &map,
                           &why);
}

bool plan_assign(layout_plan *p, ir_val v, uint16_t lay)
{
    ir_val lead = p->leader[v];

    if (!lay || p->role[v] != ROLE_TILE || p->home[lead] || !fits(p, v, lay))
        return false;
    p->home[lead] = lay;
    vec_push(&p->queue, p->a, lead);
    return true;
}

static void perm_of(const ir_op *trans, int rank, int *perm, bool inverse)
{
    for (int i = 0; i < rank; i++) {
        int from = (int)trans->attr[0].ints.at[i];
        perm[inverse ? from : i] = inverse ? i : from;
    }
}

static uint16_t transposed(layout_plan *p, const ir_op *trans, uint16_t lay, bool back)
{
    int perm[TILE_MAX_RANK], rank = ir_type_of(p->fn, trans->res).rank;

    perm_of(trans, rank, perm, back);
    return layout_trans(p->fn, lay, rank, perm);
}

static void assign_args(layout_plan *p, const ir_op *op, uint16_t lay)
{
    for (int i = 0; i < op->nargs; i++)
        plan_assign(p, op->args[i], lay);
}

uint16_t index_layout(ir_fn *fn, uint16_t lay, int rank, int dim)
{
    for (int d = rank - 1; d >= 0; d--)
        lay = d == dim ? lay : layout_slice(fn, lay, d);
    return lay;
}

/* What is read or written has the layout: indices that are tiles lie as their dimension does. */
static void to_indices(layout_plan *p, const ir_op *access, uint16_t lay)
{
    int rank = ir_type_of(p->fn, access->res).rank, dim = 0;

    for (uint32_t i = 0; i < access->attr[0].ints.n; i++) {
        if (is_tile(p->fn, access->args[1 + i]))
            plan_assign(p, access->args[1 + i], index_layout(p->fn, lay, rank, dim));
        dim += access->attr[0].ints.at[i] != 0;
    }
    for (int i = 1 + (int)access->attr[0].ints.n; i < access->nargs; i++)
        plan_assign(p, access->args[i], lay);
}

/* Result number i of op has the layout: so would those it comes from. */
static void go_back(layout_plan *p, const ir_op *op, int i, uint16_t lay)
{
    if (is_elementwise(op) || op->code == OP_BROADCAST || is_scan(op))
        assign_args(p, op, lay);
    else if (op->code == OP_DOT)
        plan_assign(p, op->args[2], lay);
    else if (op->code == OP_EXPAND)
        plan_assign(p, op->args[0], layout_slice(p->fn, lay, (int)op->attr[0].i));
    else if (op->code == OP_TRANS)
        plan_assign(p, op->args[0], transposed(p, op, lay, true));
    else if (is_reduction(op))
        plan_assign(p, op->args[0], layout_slice_of(p->fn, lay, (int)op->attr[0].i));
    else if (op->code == OP_LOAD || is_atomic(op))
        to_indices(p, op, lay);
    else if (op->code == OP_IF) {
        plan_assign(p, op->regions[0]->last->args[i], lay);
        plan_assign(p, op->regions[1]->last->args[i], lay);
    }
}

/* A carried value with the layout: so would what it starts with and what it becomes. */
static void go_round(layout_plan *p, const ir_op *loop, int i, uint16_t lay)
{
    if (loop->code == OP_FOR) {
        plan_assign(p, loop->args[3 + i], lay);
        plan_assign(p, loop->regions[0]->last->args[i], lay);
    } else {
        plan_assign(p, loop->args[i], lay);
        plan_assign(p, loop->regions[0]->last->args[1 + i], lay);
        plan_assign(p, loop->regions[1]->last->args[i], lay);
    }
}

static void to_terminated(layout_plan *p, const ir_op *end, int arg, uint16_t lay)
{
    const ir_op *owner = end->parent->owner;

    if (!owner)
        return;
    if (owner->code == OP_IF)
        plan_assign(p, owner->res + (ir_val)arg, lay);
    else if (end->code == OP_CONDITION)
        plan_assign(p, owner->res + (ir_val)(arg - 1), lay);
    else
        plan_assign(p, owner->res + (ir_val)arg, lay);
}

static void go_forward(layout_plan *p, const use *u, uint16_t lay)
{
    const ir_op *op = u->op;

    if (is_elementwise(op) || op->code == OP_BROADCAST || is_scan(op))
        plan_assign(p, op->res, lay);
    else if (is_reduction(op)) {
        if (is_tile(p->fn, op->res))
            plan_assign(p, op->res, layout_slice(p->fn, lay, (int)op->attr[0].i));
    } else if (op->code == OP_EXPAND)
        plan_assign(p, op->res, layout_slice_of(p->fn, lay, (int)op->attr[0].i));
    else if (op->code == OP_TRANS)
        plan_assign(p, op->res, transposed(p, op, lay, false));
    else if (is_atomic(op) && u->arg > (int)op->attr[0].ints.n)
        plan_assign(p, op->res, lay);
    else if (op->code == OP_FOR)
        plan_assign(p, op->res + (ir_val)(u->arg - 3), lay);
    else if (op->code == OP_WHILE)
        plan_assign(p, op->res + (ir_val)u->arg, lay);
    else if (op->code == OP_YIELD || op->code == OP_CONDITION)
        to_terminated(p, op, u->arg, lay);
}

static void spread(layout_plan *p, ir_val v, uint16_t lay)
{
    const ir_value *val = ir_value_of(p->fn, v);

    for EACH_USE(u, &p->uses, v)
        go_forward(p, u, lay);
    if (val->def)
        go_back(p, val->def, (int)val->index, lay);
}

void plan_propagate(layout_plan *p)
{
    for (uint32_t i = 0; i < p->queue.n; i++) {
        ir_val v = p->queue.at[i];
        uint16_t lay = p->home[v];
        const ir_op *loop =
            ir_value_of(p->fn, v)->block ? ir_value_of(p->fn, v)->block->owner : NULL;
        spread(p, v, lay);
        if (!loop)
            continue;
        int k = (int)ir_value_of(p->fn, v)->index - (loop->code == OP_FOR);
        spread(p, loop->res + (ir_val)k, lay);
        if (loop->code == OP_WHILE)
            spread(p, loop->regions[1]->arg + (ir_val)k, lay);
        go_round(p, loop, k, lay);
    }
    p->queue.n = 0;
}

/* ---- memory and the rest ---- */

static void place_access(layout_plan *p, const ir_op *access, ir_val v)
{
    ir_type t = ir_type_of(p->fn, v);
    int piece = access_piece(p->s, p->fn, access, t);

    plan_assign(p, v, choose_access(p->fn, t, piece ? t.rank - 1 : -1,
                                    piece ? piece / dtype_bytes((enum dtype)t.dtype) : 1));
    plan_propagate(p);
}

static void place_memory(ir_op *op, void *arg)
{
    layout_plan *p = arg;

    if ((op->code == OP_LOAD || is_atomic(op)) && is_tile(p->fn, op->res))
        place_access(p, op, op->res);
    else if (op->code == OP_STORE && is_tile(p->fn, op->args[op->nargs - 1]))
        place_access(p, op, op->args[op->nargs - 1]);
}

static void place_rest(layout_plan *p)
{
    for (ir_val v = 1; v < p->nvals; v++) {
        if (p->role[v] != ROLE_TILE || plan_home(p, v))
            continue;
        plan_assign(p, v, choose_default(p->fn, ir_type_of(p->fn, v), -1));
        plan_propagate(p);
    }
}

static layout_plan *plan_new(pass_cx *cx, ir_module *m)
{
    layout_plan *p = ARENA_NEW(cx->scratch, layout_plan);

    p->s = schedule_of(cx);
    p->fn = m->kernel;
    p->a = cx->scratch;
    p->nvals = m->kernel->values.n;
    p->uses = uses_of(p->a, p->fn);
    p->role = ARENA_ARRAY(p->a, uint8_t, p->nvals);
    p->home = ARENA_ARRAY(p->a, uint16_t, p->nvals);
    p->leader = ARENA_ARRAY(p->a, ir_val, p->nvals);
    for (ir_val v = 0; v < p->nvals; v++)
        p->leader[v] = v;
    return p;
}

tw_status pass_assign_layouts(pass_cx *cx, ir_module *m)
{
    ICHECK(m->level == 1, "layouts are given once");
    schedule_of(cx)->facts = facts_compute(m->a, m->kernel);
    m->level = 2;
    m->kernel->warps = schedule_of(cx)->params.num_warps;
    layout_plan *p = plan_new(cx, m);
    ir_walk(m->kernel->body, find_role, p);
    find_operands(p, m->kernel->body);
    ir_walk(m->kernel->body, find_leaders, p);
    choose_dots(p);
    ir_walk(m->kernel->body, place_memory, p);
    place_rest(p);
    cx->changes = apply_layouts(p);
    return TW_OK;
}
