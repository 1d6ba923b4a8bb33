/* spread_rows: what several lanes compute alike to store it, each computes for elements of its own.
 *
 *   %a = log2 %l : f32[128] #rows            %x = convert %l : f32[128] #own
 *   %b = add %m, %a : f32[128] #rows         %y = convert %m : f32[128] #own
 *   store %t, ..., %b                  ->    %a = log2 %x : f32[128] #own
 *                                            %b = add %y, %a : f32[128] #own
 *                                            store %t, ..., %b
 *
 * #rows is a layout of rank 1 in which lanes hold copies, as that of the rows of an accumulator; in
 * #own each of a warp's lanes has an element of those that the warp held. For stores outside of
 * loops of what a division or a function beyond addition is in.
 *
 * leaves: conversions within a warp, which go by shuffles.
 */
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/layout.h"
#include "compiler/passes/dce.h"
#include "compiler/schedule/schedule_pass.h"

enum { MAX_CHAIN = 16, LANES = 32 };

typedef struct chain {
    ir_fn *fn;
    ir_op *store;
    int n, leaves;
    ir_val old[MAX_CHAIN], changed[MAX_CHAIN];
    bool costly;
    uint16_t own;
} chain;

static bool is_costly(enum ir_opcode code)
{
    return code == OP_DIV || code == OP_SQRT || code == OP_RSQRT ||
           (code >= OP_EXP && code <= OP_ERF);
}

static bool in_chain(const chain *c, const ir_op *def)
{
    return def && def->parent == c->store->parent && def->nres == 1 && !def->nregions &&
           ((op_info((enum ir_opcode)def->code)->traits & OPT_EWISE) || def->code == OP_CAST);
}

/* Lists what v is computed from by elementwise ops that nobody else needs, and where that ends. */
static bool collect(chain *c, ir_val v)
{
    const ir_op *def = ir_def(c->fn, v);

    for (int i = 0; i < c->n; i++) {
        if (c->old[i] == v)
            return true;
    }
    if (def && def->code == OP_SPLAT)
        return true;
    if (!in_chain(c, def) || ir_count_uses(c->fn, v) != 1) {
        c->leaves++;
    } else {
        c->costly |= is_costly((enum ir_opcode)def->code);
        for (int i = 0; i < def->nargs; i++) {
            if (!collect(c, def->args[i]))
                return false;
        }
    }
    if (c->n == MAX_CHAIN)
        return false;
    c->old[c->n++] = v;
    return true;
}

static ir_val changed(chain *c, ir_builder *b, ir_val v)
{
    const ir_op *def = ir_def(c->fn, v);
    ir_type t = ir_type_of(c->fn, v);
    int at = 0;

    t.layout = c->own;
    if (def && def->code == OP_SPLAT)
        return ir_splat(b, def->args[0], t);
    while (c->old[at] != v)
        at++;
    if (c->changed[at])
        return c->changed[at];
    if (!in_chain(c, def) || ir_count_uses(c->fn, v) != 1)
        return c->changed[at] = ir_convert(b, v, c->own);
    ir_val args[3] = {0};
    for (int i = 0; i < def->nargs; i++)
        args[i] = changed(c, b, def->args[i]);
    return c->changed[at] =
               ir_build(b, (enum ir_opcode)def->code, args, def->nargs, def->attr, t)->res;
}

/* A layout without copies in lanes whose warps hold what they held; 0: there is none, or lanes hold
 * no copies now. */
static uint16_t own_layout(ir_fn *fn, ir_type t)
{
    layout_map from, to;
    const char *why;
    int32_t one = 1, warps = layout_own_warps(fn, t.layout), rows = t.shape[0] / warps;
    int32_t lanes = rows < LANES ? rows : LANES;

    if (t.shape[0] % warps || LANES % lanes || !layout_map_of(fn, t, fn->warps, &from, &why) ||
        layout_registers(&from) * lanes <= rows)
        return 0;
    ir_layout lay = {
        .kind = LAYOUT_BLOCKED, .rank = 1, .regs = {1}, .lanes = {lanes}, .warps = {warps}};
    if (!layout_map_with(fn, t, &lay, fn->warps, &to, &why) || !layout_same_warps(&from, &to))
        return 0;
    return layout_blocked(fn, 1, &one, &lanes, &warps, (int[]){0});
}

static bool spread(ir_fn *fn, ir_op *store)
{
    ir_val v = store->args[store->nargs - 1];
    ir_type t = ir_type_of(fn, v);
    chain c = {.fn = fn, .store = store};

    for (int i = 1; i + 1 < store->nargs; i++) {
        if (ir_type_of(fn, store->args[i]).kind == TYPE_TILE)
            return false;
    }
    if (t.kind != TYPE_TILE || t.rank != 1 || ir_depth(store->parent) || !collect(&c, v) ||
        !c.costly || c.leaves > 3 || !(c.own = own_layout(fn, t)))
        return false;
    ir_builder b = ir_before(fn, store);
    store->args[store->nargs - 1] = changed(&c, &b, v);
    return true;
}

typedef struct finding {
    arena *a;
    VEC(ir_op *) stores;
} finding;

static void find_store(ir_op *op, void *arg)
{
    finding *f = arg;

    if (op->code == OP_STORE)
        vec_push(&f->stores, f->a, op);
}

tw_status pass_spread_rows(pass_cx *cx, ir_module *m)
{
    finding f = {.a = cx->scratch};

    ir_walk(m->kernel->body, find_store, &f);
    for (uint32_t i = 0; i < f.stores.n; i++)
        cx->changes += spread(m->kernel, f.stores.at[i]);
    if (cx->changes)
        dce_fn(m->kernel, cx->scratch);
    return TW_OK;
}
