/* simplify: fold constants, remove operations that do nothing, prefer scalars to tiles.
 *
 *   add 2, 3                        5                      (through eval_op, so it means the same)
 *   mul %x, 1.0                     %x                     (only what is exact, NaN and -0
 * included) mul (splat %a), (splat %b)      splat (mul %a, %b)     (a scalar op instead of a
 * tile's) neg (broadcast %x)              broadcast (neg %x) trans (trans %x)                %x if
 * true { A } else { B }        A for %i = 0 to 1 step 1 { A }    A with %i = 0 exp2 (sub (mul %x,
 * %c), %d)     exp2 (fma %x, %c, (neg %d))      the one contraction allowed
 *
 * Rounds of one walk each, until nothing changes; between them goes what nobody uses any more.
 * cost: linear a round; attention_fwd takes three.
 */
#include "compiler/passes/simplify.h"
#include "compiler/ir/iredit.h"
#include "compiler/passes/dce.h"
#include "compiler/passes/pipeline.h"
#include <string.h>

enum { MAX_ROUNDS = 16 };

const ir_op *def_of(const ir_fn *fn, ir_val v, enum ir_opcode code)
{
    const ir_op *def = ir_def(fn, v);

    return def && def->code == code ? def : NULL;
}

bool const_of(const ir_fn *fn, ir_val v, ir_scalar *c)
{
    const ir_op *def = ir_def(fn, v);

    if (def && def->code == OP_SPLAT)
        def = ir_def(fn, def->args[0]);
    if (!def || (def->code != OP_CONST_INT && def->code != OP_CONST_FLOAT))
        return false;
    if (def->code == OP_CONST_INT)
        c->i = def->attr[0].i;
    else
        c->f = def->attr[0].f;
    return true;
}

bool is_int_const(const ir_fn *fn, ir_val v, int64_t c)
{
    ir_scalar x;

    return !dtype_is_float(ir_type_of(fn, v).dtype) && const_of(fn, v, &x) && x.i == c;
}

bool is_float_const(const ir_fn *fn, ir_val v, double c)
{
    ir_scalar x;

    return dtype_is_float(ir_type_of(fn, v).dtype) && const_of(fn, v, &x) &&
           !memcmp(&x.f, &c, sizeof c);
}

ir_val make_const(simplifier *s, ir_op *op, ir_type t, ir_scalar c)
{
    ir_builder b = ir_before(s->fn, op);
    ir_val v =
        dtype_is_float(t.dtype) ? ir_const_float(&b, t.dtype, c.f) : ir_const_int(&b, t.dtype, c.i);

    return t.kind == TYPE_TILE ? ir_splat(&b, v, t) : v;
}

ir_val make_int(simplifier *s, ir_op *op, ir_type t, int64_t c)
{
    return make_const(s, op, t, (ir_scalar){.i = c});
}

/* ---- the walk ---- */

/* 0: a tile that varies, 1: a splat, 2: a constant. */
static int constancy(const ir_fn *fn, ir_val v)
{
    ir_scalar c;

    if (const_of(fn, v, &c))
        return 2;
    return def_of(fn, v, OP_SPLAT) ? 1 : 0;
}

/* Constants, then splats, go to the right of a commutative op: rules look there. */
static void order_operands(simplifier *s, ir_op *op)
{
    if (!(op_info(op->code)->traits & OPT_COMM) ||
        constancy(s->fn, op->args[0]) <= constancy(s->fn, op->args[1]))
        return;
    ir_val first = op->args[0];
    op->args[0] = op->args[1];
    op->args[1] = first;
    s->changes++;
}

static ir_val apply_rules(simplifier *s, ir_op *op)
{
    order_operands(s, op);
    ir_val v = simplify_lift(s, op);
    if (!v)
        v = simplify_choice(s, op);
    if (!v)
        v = dtype_is_float(ir_type_of(s->fn, op->res).dtype) ? simplify_float(s, op)
                                                             : simplify_integer(s, op);
    return v ? v : simplify_shape(s, op);
}

static void put_in_place(simplifier *s, ir_op *op, ir_val v)
{
    ir_value *value = &s->fn->values.at[v];

    if (!value->name)
        value->name = s->fn->values.at[op->res].name;
    rename_set(&s->to, op->res, v);
    ir_unlink(op);
    s->changes++;
}

static void simplify_block(simplifier *s, ir_block *blk)
{
    ir_op *next;

    for (ir_op *op = blk->first; op; op = next) {
        rename_args(&s->to, op);
        simplify_indices(s, op);
        ir_op *inlined = simplify_control(s, op);
        next = inlined ? inlined : op->next;
        if (inlined)
            continue;
        for (int i = 0; i < op->nregions; i++)
            simplify_block(s, op->regions[i]);
        if (op->nres != 1 || !(op_info(op->code)->traits & OPT_PURE))
            continue;
        ir_val v = apply_rules(s, op);
        if (v)
            put_in_place(s, op, v);
    }
}

static uint32_t simplify_fn(ir_fn *fn, arena *scratch)
{
    uint32_t changes = 0;

    for (int round = 0; round < MAX_ROUNDS; round++) {
        simplifier s = {.fn = fn, .to = {.a = scratch}};
        simplify_block(&s, fn->body);
        changes += s.changes + dce_fn(fn, scratch);
        if (!s.changes)
            break;
    }
    return changes;
}

tw_status pass_simplify(pass_cx *cx, ir_module *m)
{
    cx->changes = simplify_fn(m->kernel, cx->scratch);
    if (m->launch)
        cx->changes += simplify_fn(m->launch, cx->scratch);
    return TW_OK;
}
