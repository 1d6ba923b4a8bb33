/* defer_sums: what a loop sums along rows stays in parts, one for each lane, until its end.
 *
 *                                                %i = where %first, (broadcast %l0), -0.0
 *   %l = for ... iter (%m = %l0 : f32[M] #s) {   %p = for ... iter (%m = %i : f32[M, 4] #parts) {
 *     %k = mul %m, %a                              %k = mul %m, (broadcast %a)
 *     %s = reduce_sum %x axis=1              ->    %s = partial_sum %x axis=1
 *     %n = add %k, %s                              %n = add %k, %s
 *     yield %n                                     yield %n
 *   }                                            }
 *                                                %l = reduce_sum %p axis=1 : f32[M] #s
 *
 * A running sum may be kept in parts (docs/LANGUAGE.md): the loop then shuffles nothing for it. The
 * product may be missing, and all of it may stand in arms of a choice one of which leaves %m as it
 * is. Nobody else uses %m, %k, %s or %n in the loop; %l is what all lanes of a row hold alike, so
 * %a is. A loop that begins with such a sum goes on with its parts.
 */
#include "compiler/base/check.h"
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/layout.h"
#include "compiler/schedule/schedule_pass.h"
#include "compiler/schedule/uses.h"

enum { UNKNOWN, RUNNING, OTHER };

typedef struct deferring {
    ir_fn *fn;
    arena *a;
    uses uses;
    ir_op *loop;
    ir_val carried;     /* the argument of the loop's body */
    uint8_t *running;   /* by value: does it follow from `carried` alone or with what is added? */
    uint32_t *taken;    /* by value: uses that are part of the running sum */
    VEC(ir_val) values; /* of the running sum, in the loop */
    const ir_op *sum;   /* one of the reduce_sum */
    ir_type parts;
} deferring;

/* ---- finding ---- */

static bool follows(deferring *d, ir_val v);

static bool op_follows(deferring *d, const ir_op *def, ir_val v)
{
    uint32_t k = v - def->res;

    if (!ir_inside(def->parent, d->loop))
        return false;
    if (def->code == OP_MUL || def->code == OP_ADD)
        return follows(d, def->args[0]) || follows(d, def->args[1]);
    return def->code == OP_IF && (follows(d, def->regions[0]->last->args[k]) ||
                                  follows(d, def->regions[1]->last->args[k]));
}

static bool follows(deferring *d, ir_val v)
{
    const ir_op *def = ir_def(d->fn, v);

    if (d->running[v] == UNKNOWN)
        d->running[v] = v == d->carried || (def && op_follows(d, def, v)) ? RUNNING : OTHER;
    return d->running[v] == RUNNING;
}

/* A sum whose parts the lanes of a row hold, the same in all of the running sum. */
static bool is_sum(deferring *d, ir_val v)
{
    const ir_op *def = ir_def(d->fn, v);
    layout_map map;
    const char *why;

    if (!def || def->code != OP_REDUCE_SUM)
        return false;
    ir_type x = ir_type_of(d->fn, def->args[0]);
    if (x.dtype != ir_type_of(d->fn, v).dtype || dtype_bytes((enum dtype)x.dtype) < 4 ||
        !layout_map_of(d->fn, x, layout_own_warps(d->fn, x.layout), &map, &why) ||
        layout_lanes_along(&map, (int)def->attr[0].i) == 1)
        return false;
    if (d->sum)
        return def->attr[0].i == d->sum->attr[0].i &&
               x.layout == ir_type_of(d->fn, d->sum->args[0]).layout;
    d->sum = def;
    d->parts = x;
    d->parts.layout = 0;
    d->parts.shape[def->attr[0].i] = layout_lanes_along(&map, (int)def->attr[0].i);
    return true;
}

static bool collect(deferring *d, ir_val v);

static bool collect_op(deferring *d, const ir_op *def, ir_val v)
{
    uint32_t k = v - def->res;
    ir_val x, other;

    if (def->code == OP_IF)
        return collect(d, def->regions[0]->last->args[k]) &&
               collect(d, def->regions[1]->last->args[k]);
    int at = follows(d, def->args[0]) ? 0 : 1;
    x = def->args[at];
    other = def->args[1 - at];
    if (follows(d, other))
        return false;
    if (def->code == OP_ADD) {
        d->taken[other]++;
        vec_push(&d->values, d->a, other);
        if (!is_sum(d, other))
            return false;
    }
    return collect(d, x);
}

/* Takes v and what it follows from into the running sum. */
static bool collect(deferring *d, ir_val v)
{
    if (!follows(d, v))
        return false;
    if (d->taken[v]++)
        return true;
    vec_push(&d->values, d->a, v);
    return v == d->carried || collect_op(d, ir_def(d->fn, v), v);
}

static bool used_only_here(const deferring *d)
{
    for (uint32_t i = 0; i < d->values.n; i++) {
        ir_val v = d->values.at[i];
        if (d->uses.first[v + 1] - d->uses.first[v] != d->taken[v])
            return false;
    }
    return true;
}

/* ---- the new form ---- */

static ir_val in_each_lane(ir_builder *b, const deferring *d, ir_val v)
{
    int axis = (int)d->sum->attr[0].i;

    return ir_broadcast(b, ir_expand_as(b, v, axis, d->parts.layout), d->parts);
}

/* %l in the first part of its row; in the others what adds nothing. */
static ir_val split(ir_builder *b, const deferring *d, ir_val v)
{
    const ir_op *def = ir_def(d->fn, v);
    int axis = (int)d->sum->attr[0].i;
    enum dtype t = (enum dtype)d->parts.dtype;
    ir_type lanes = type_tile(DT_I32, 1, &d->parts.shape[axis]);

    if (def && def->code == OP_REDUCE_SUM && def->attr[0].i == axis &&
        type_equal(ir_type_of(d->fn, def->args[0]), d->parts))
        return def->args[0];
    lanes.layout = layout_slice(d->fn, d->parts.layout, 1 - axis);
    ir_val zero = ir_splat(b, ir_const_int(b, DT_I32, 0), lanes);
    ir_val first = ir_binary(b, OP_CMP_EQ, ir_arange_as(b, 0, lanes), zero);
    first = ir_broadcast(b, ir_expand_as(b, first, 1 - axis, d->parts.layout), d->parts);
    ir_val none = dtype_is_float(t) ? ir_const_float(b, t, -0.0) : ir_const_int(b, t, 0);
    return ir_where(b, first, in_each_lane(b, d, v), ir_splat(b, none, d->parts));
}

/* v is now in parts. */
static void change(deferring *d, ir_val v)
{
    ir_op *def = ir_def(d->fn, v);

    d->fn->values.at[v].type = d->parts;
    if (!def || (def->code != OP_MUL && def->code != OP_ADD))
        return;
    ir_builder b = ir_before(d->fn, def);
    int at = d->running[def->args[0]] == RUNNING ? 1 : 0;
    const ir_op *sum = ir_def(d->fn, def->args[at]);
    def->args[at] = def->code == OP_MUL ? in_each_lane(&b, d, def->args[at])
                                        : ir_partial_sum(&b, sum->args[0], (int)sum->attr[0].i);
}

static void defer(deferring *d, uint32_t k)
{
    ir_op *loop = d->loop;
    ir_val res = loop->res + k;
    ir_type whole = ir_type_of(d->fn, res);
    ir_builder before = ir_before(d->fn, loop), behind = ir_before(d->fn, loop->next);

    d->parts.layout =
        layout_lanes(d->fn, ir_type_of(d->fn, d->sum->args[0]).layout, (int)d->sum->attr[0].i);
    loop->args[3 + k] = split(&before, d, loop->args[3 + k]);
    for (uint32_t i = 0; i < d->values.n; i++) {
        if (d->running[d->values.at[i]] == RUNNING)
            change(d, d->values.at[i]);
    }
    d->fn->values.at[res].type = d->parts;
    ir_op *sum = ir_build(&behind, OP_REDUCE_SUM, &res, 1, d->sum->attr, whole);
    ir_name(d->fn, sum->res, ir_value_of(d->fn, res)->name);
    ir_replace_uses(d->fn, res, sum->res);
    sum->args[0] = res;
}

static bool try_one(pass_cx *cx, ir_fn *fn, ir_op *loop, uint32_t k)
{
    deferring d = {.fn = fn,
                   .a = cx->scratch,
                   .uses = uses_of(cx->scratch, fn),
                   .loop = loop,
                   .carried = loop->regions[0]->arg + 1 + k,
                   .running = ARENA_ARRAY(cx->scratch, uint8_t, fn->values.n),
                   .taken = ARENA_ARRAY(cx->scratch, uint32_t, fn->values.n)};
    ir_type t = ir_type_of(fn, d.carried);

    if (t.kind != TYPE_TILE || t.rank != 1 || !collect(&d, loop->regions[0]->last->args[k]) ||
        !d.sum || !used_only_here(&d))
        return false;
    defer(&d, k);
    return true;
}

typedef struct finding {
    arena *a;
    VEC(ir_op *) loops;
} finding;

static void find_loop(ir_op *op, void *arg)
{
    finding *f = arg;

    if (op->code == OP_FOR)
        vec_push(&f->loops, f->a, op);
}

tw_status pass_defer_sums(pass_cx *cx, ir_module *m)
{
    finding f = {.a = cx->scratch};

    ir_walk(m->kernel->body, find_loop, &f);
    for (uint32_t i = 0; i < f.loops.n; i++) {
        for (uint32_t k = 0; k < f.loops.at[i]->nres; k++)
            cx->changes += try_one(cx, m->kernel, f.loops.at[i], k);
    }
    return TW_OK;
}
