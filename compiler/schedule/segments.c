#include "compiler/schedule/segments.h"

/* What is left to go: a number, or a u32 value. */
typedef struct offset {
    ir_val v; /* 0: see c */
    int c;
} offset;

static ir_val constant(ir_builder *b, enum dtype t, int64_t c)
{
    return ir_const_int(b, t, c);
}

static int64_t stride_of(const loop_copies *l)
{
    return l->step < 0 ? -l->step : l->step;
}

/* From a counter to the end of its loop, as u32: exact when the counter is in the loop, whatever
 * the bounds. */
static ir_val room(ir_builder *b, const loop_copies *l, ir_val counter)
{
    ir_val end = l->loop->args[1];
    ir_val room = l->step > 0 ? ir_binary(b, OP_SUB, end, counter)
                              : ir_binary(b, OP_SUB, counter, end);

    return ir_cast(b, room, DT_U32);
}

static ir_val in_loop(ir_builder *b, const loop_copies *l, ir_val counter)
{
    ir_val end = l->loop->args[1];

    return l->step > 0 ? ir_binary(b, OP_CMP_LT, counter, end)
                       : ir_binary(b, OP_CMP_LT, end, counter);
}

/* Iterations from the counter on, it included; the counter is in the loop. */
static ir_val count(ir_builder *b, const loop_copies *l, ir_val counter)
{
    ir_val one = constant(b, DT_U32, 1);
    ir_val rest = ir_binary(b, OP_SUB, room(b, l, counter), one);

    rest = ir_binary(b, OP_DIV, rest, constant(b, DT_U32, stride_of(l)));
    return ir_binary(b, OP_ADD, rest, one);
}

/* counter + off * step, as i32. */
static ir_val advance(ir_builder *b, const loop_copies *l, ir_val counter, offset off)
{
    if (!off.v && !off.c)
        return counter;
    ir_val by = off.v
                    ? ir_binary(b, OP_MUL, ir_cast(b, off.v, DT_I32), constant(b, DT_I32, l->step))
                    : constant(b, DT_I32, off.c * l->step);
    return ir_binary(b, OP_ADD, counter, by);
}

/* Is the iteration off ahead of the counter in the loop? sure: the counter is. */
static ir_val reaches(ir_builder *b, const loop_copies *l, ir_val counter, offset off, bool sure)
{
    ir_val inside = sure ? 0 : in_loop(b, l, counter);

    if (!off.v && !off.c)
        return sure ? constant(b, DT_I1, 1) : inside;
    ir_val far = off.v ? ir_binary(b, OP_CMP_LT, off.v, count(b, l, counter))
                       : ir_binary(b, OP_CMP_LT, constant(b, DT_U32, off.c * stride_of(l)),
                                   room(b, l, counter));
    return sure ? far : ir_binary(b, OP_AND, inside, far);
}

/* What is left of off behind the loop, when it does not end in it. */
static offset beyond(ir_builder *b, const loop_copies *l, ir_val counter, offset off, bool sure)
{
    if (!off.v && (!off.c || (off.c == 1 && sure)))
        return (offset){0, 0};
    ir_val n = count(b, l, counter);
    if (!sure)
        n = ir_where(b, in_loop(b, l, counter), n, constant(b, DT_U32, 0));
    return (offset){ir_binary(b, OP_SUB, off.v ? off.v : constant(b, DT_U32, off.c), n), 0};
}

static void look(ir_builder *b, const loop_chain *c, ahead *at, uint32_t seg, ir_val counter,
                 offset off, bool sure)
{
    const loop_copies *l = &c->at[seg];

    at->in[seg] = reaches(b, l, counter, off, sure);
    at->counter[seg] = advance(b, l, counter, off);
    if (seg + 1 < c->n)
        look(b, c, at, seg + 1, c->at[seg + 1].loop->args[0], beyond(b, l, counter, off, sure),
             false);
}

ahead segments_ahead(ir_builder *b, const loop_chain *c, uint32_t seg, ir_val counter, int distance)
{
    ahead at = {.first = seg};

    look(b, c, &at, seg, counter, (offset){0, distance}, true);
    return at;
}

ahead segments_from_start(ir_builder *b, const loop_chain *c, int distance)
{
    ahead at = {0};

    look(b, c, &at, 0, c->at[0].loop->args[0], (offset){0, distance}, false);
    return at;
}

ir_val segments_copies(ir_builder *b, const loop_chain *c, const ahead *at)
{
    ir_val res = 0;

    for (uint32_t k = c->n; k-- > at->first;) {
        const ir_op *guard = c->at[k].guard;
        ir_val here = guard ? loop_value_at(b, &c->at[k], guard->args[0], at->counter[k]) : 0;
        if (!res)
            res = guard ? ir_binary(b, OP_AND, at->in[k], here) : at->in[k];
        else
            res = guard ? ir_where(b, at->in[k], here, res) : ir_binary(b, OP_OR, at->in[k], res);
    }
    return res;
}

ir_val segments_operand(ir_builder *b, const loop_chain *c, const ahead *at, uint32_t i, int arg)
{
    ir_val res = 0;

    for (uint32_t k = c->n; k-- > at->first;) {
        const loop_copies *l = &c->at[k];
        ir_val v = loop_value_at(b, l, l->at.at[i].copy->args[arg], at->counter[k]);
        res = !res || res == v ? v : ir_where(b, at->in[k], v, res);
    }
    return res;
}
