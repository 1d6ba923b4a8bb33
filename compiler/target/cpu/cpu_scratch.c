/* Which tiles need memory, when they are alive, and where they lie.
 *
 * Steps are numbered in text order, regions inside their control step. Step t reads at 2t what it
 * overwrites in place at the earliest, at 2t + 1 everything else, and writes at 2t + 1: a buffer
 * whose last reader reads it at exactly the indices where it writes may become that step's result.
 * What a loop carries lives in one buffer; the next value is computed into it when the old one is
 * dead by then, else copied at the end. */
#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include "compiler/ir/iredit.h"
#include "compiler/target/cpu/cpu_plan.h"
#include <stdlib.h>
#include <string.h>

typedef struct life {
    int32_t last; /* latest read, 0 = none */
    cpu_block *home;
} life;

typedef struct scratch {
    cpu_plan *p;
    life *life;        /* by value */
    life *direct_life; /* of direct_buf */
    int32_t time;
} scratch;

static cpu_value *value_of(const scratch *c, ir_val v)
{
    return &c->p->value.at[v];
}

/* ---- numbering ------------------------------------------------------------------------------- */

static void number(scratch *c, cpu_block *b)
{
    for (uint32_t i = 0; i < b->ir->nargs; i++)
        c->life[b->ir->arg + i].home = b;
    for (cpu_step *s = b->first; s; s = s->next) {
        s->time = ++c->time;
        for (int r = 0; r < 2 && s->region[r]; r++) {
            number(c, s->region[r]);
            s->region_end[r] = ++c->time;
        }
        s->end = ++c->time;
    }
}

static cpu_block *home_of(const scratch *c, ir_val v)
{
    const cpu_step *s = value_of(c, v)->step;

    return s ? s->block : c->life[v].home;
}

/* ---- reads ----------------------------------------------------------------------------------- */

static bool is_loop(const cpu_step *s)
{
    return s->op->code == OP_FOR || s->op->code == OP_WHILE;
}

/* A read at time t in block b, of what is defined in home, counts until the outermost loop between
 * them has ended. */
static int32_t stretched(cpu_block *b, const cpu_block *home, int32_t t)
{
    for (; b != home && b->owner; b = b->outer) {
        if (is_loop(b->owner) && t < 2 * b->owner->end + 1)
            t = 2 * b->owner->end + 1;
    }
    return t;
}

static void read_buf(scratch *c, ir_val v, cpu_block *at, int32_t t)
{
    cpu_value *x = value_of(c, v);

    ir_type type = ir_type_of(c->p->fn, v);

    if (!x->buf)
        x->buf = x->pairs || x->narrow ? cpu_new_narrow(c->p, type, x->lane, x->pairs)
                                       : cpu_new_buf(c->p, type, x->lane);
    t = stretched(at, home_of(c, v), t);
    if (c->life[v].last < t)
        c->life[v].last = t;
}

typedef struct reader {
    scratch *c;
    cpu_step *s;
    cpu_block *block;
    const cpu_nest *nest;
    int32_t time;
} reader;

static void read_leaf(void *arg, const cpu_leaf *l)
{
    reader *r = arg;
    cpu_value *v = value_of(r->c, l->v);

    if (l->load || !cpu_is_tile(r->c->p, l->v))
        return;
    if (l->scalar_operand && v->direct) {
        int32_t t = stretched(r->block, v->direct_step->block, 2 * r->time + 1);
        if (r->c->direct_life[l->v].last < t)
            r->c->direct_life[l->v].last = t;
        return;
    }
    bool local = cpu_leaf_local(r->c->p, l, r->nest);
    if (r->s && v->step == r->s) {
        ICHECK(local, "a nest reads its own items at their own indices");
        return;
    }
    read_buf(r->c, l->v, r->block, 2 * r->time + !local);
}

static void read_nest(scratch *c, cpu_step *s)
{
    reader r = {c, s, s->block, s->nest, s->time};

    for (uint32_t i = 0; i < s->nest->items.n; i++)
        cpu_each_leaf(c->p, &s->nest->items.at[i], read_leaf, &r);
}

/* v is copied, or becomes, what a control op carries, at time t. */
static void read_carried(scratch *c, ir_val v, cpu_block *at, int32_t t)
{
    if (!cpu_is_tile(c->p, v))
        return;
    if (value_of(c, v)->place != CPU_VIRTUAL) {
        read_buf(c, v, at, 2 * t);
        return;
    }
    reader r = {.c = c, .block = at, .time = t};
    cpu_nest shape = {.space = ir_type_of(c->p->fn, v), .lane = -1};
    cpu_item item = {ITEM_BUFFER, NULL, v, 1};
    r.nest = &shape;
    cpu_each_leaf(c->p, &item, read_leaf, &r);
}

/* ---- control ops: who hands what to whom ----------------------------------------------------- */

typedef struct handing {
    ir_val from, to;
    cpu_block *block; /* where it happens */
    int32_t time;
    cpu_copies *copies;
} handing;
typedef void (*handing_fn)(scratch *c, cpu_step *s, const handing *h);

static void each_list(scratch *c, cpu_step *s, handing_fn fn, const ir_val *from, ir_val to, int n,
                      handing h)
{
    for (int i = 0; i < n; i++) {
        h.from = from[i];
        h.to = to + (ir_val)i;
        if (cpu_is_tile(c->p, h.from))
            fn(c, s, &h);
    }
}

static void each_handing(scratch *c, cpu_step *s, handing_fn fn)
{
    const ir_op *op = s->op;
    handing in = {.block = s->block, .time = s->time, .copies = &s->entry}, end[2];

    for (int r = 0; r < 2 && s->region[r]; r++)
        end[r] = (handing){.block = s->region[r], .time = s->region_end[r], .copies = &s->leave[r]};
    const ir_op *last = op->regions[0]->last;
    if (op->code == OP_FOR) {
        ir_val arg = op->regions[0]->arg + 1;
        each_list(c, s, fn, last->args, arg, last->nargs, end[0]);
        each_list(c, s, fn, op->args + 3, arg, last->nargs, in);
    } else if (op->code == OP_IF) {
        for (int r = 0; r < 2; r++)
            each_list(c, s, fn, op->regions[r]->last->args, op->res, op->nres, end[r]);
    } else {
        const ir_op *next = op->regions[1]->last;
        each_list(c, s, fn, next->args, op->regions[0]->arg, next->nargs, end[1]);
        each_list(c, s, fn, last->args + 1, op->regions[1]->arg, op->nres, end[0]);
        each_list(c, s, fn, op->args, op->regions[0]->arg, op->nargs, in);
    }
}

static void read_handing(scratch *c, cpu_step *s, const handing *h)
{
    (void)s;
    read_carried(c, h->from, h->block, h->time);
}

/* Both names of what a control op carries get one buffer. */
static void share(scratch *c, ir_val x, ir_val y)
{
    if (!cpu_is_tile(c->p, x))
        return;
    uint32_t b = cpu_new_buf(c->p, ir_type_of(c->p->fn, x), value_of(c, x)->lane);
    value_of(c, x)->buf = b;
    if (y)
        value_of(c, y)->buf = b;
}

static void give_carried(scratch *c, const ir_op *op)
{
    int n = op->code == OP_FOR ? op->nargs - 3 : op->nres;

    for (int i = 0; i < n; i++) {
        ir_val res = op->res + (ir_val)i;
        if (op->code == OP_FOR)
            share(c, op->regions[0]->arg + 1 + (ir_val)i, res);
        else
            share(c, res, op->code == OP_WHILE ? op->regions[1]->arg + (ir_val)i : 0);
    }
    for (int i = 0; op->code == OP_WHILE && i < op->nargs; i++)
        share(c, op->regions[0]->arg + (ir_val)i, 0);
}

static void read_block(scratch *c, cpu_block *b)
{
    for (cpu_step *s = b->first; s; s = s->next) {
        if (s->kind == STEP_NEST)
            read_nest(c, s);
        else if (s->kind == STEP_SCALAR && s->op->code == OP_PRINT &&
                 cpu_is_tile(c->p, s->op->args[0]))
            read_buf(c, s->op->args[0], b, 2 * s->time + 1);
        if (s->kind != STEP_CONTROL)
            continue;
        give_carried(c, s->op);
        for (int r = 0; r < 2 && s->region[r]; r++)
            read_block(c, s->region[r]);
        each_handing(c, s, read_handing);
    }
}

/* ---- live ranges ----------------------------------------------------------------------------- */

static void add_span(scratch *c, uint32_t buf, int32_t from, int32_t to)
{
    cpu_span alive = {from, to < from ? from : to};

    vec_push(&c->p->bufs.at[cpu_buf_root(c->p, buf)].live, c->p->a, alive);
}

static void span_value(scratch *c, ir_val v, int32_t from)
{
    if (cpu_is_tile(c->p, v) && value_of(c, v)->buf)
        add_span(c, value_of(c, v)->buf, from, c->life[v].last);
}

static void span_args(scratch *c, const ir_block *blk, int32_t from)
{
    for (uint32_t i = 0; i < blk->nargs; i++)
        span_value(c, blk->arg + i, from);
}

/* The receiving buffer is written when it is handed to; what goes back to the beginning of a loop
 * stays until there. */
static void span_handing(scratch *c, cpu_step *s, const handing *h)
{
    bool back = h->time > s->time && c->life[h->to].home == s->region[0];
    bool kept = h->from == h->to;

    add_span(c, value_of(c, h->to)->buf, kept ? 2 * s->time + 1 : 2 * h->time + 1,
             back ? 2 * s->end + 1 : 0);
}

static void span_control(scratch *c, cpu_step *s)
{
    const ir_op *op = s->op;

    if (op->code == OP_WHILE) {
        span_args(c, op->regions[0], 2 * s->time + 1);
        span_args(c, op->regions[1], 2 * s->region_end[0] + 1);
    } else if (op->code == OP_FOR) {
        span_args(c, op->regions[0], 2 * s->time + 1);
    }
    for (int i = 0; i < op->nres; i++)
        span_value(c, op->res + (ir_val)i, 2 * s->end + 1);
    each_handing(c, s, span_handing);
}

static void span_direct(scratch *c, cpu_step *s)
{
    const ir_op *op = s->op;
    cpu_value *v = value_of(c, op->res);
    int all = (1 << op->attr[0].ints.n) - 1, lane = cpu_contiguous_dim(c->p, op);

    if ((op->attr[1].i & all) == all)
        return;
    ir_type t = ir_type_of(c->p->fn, op->res);
    v->direct_buf = cpu_new_narrow(c->p, t, lane < 0 ? t.rank - 1 : lane, 0);
    s->nest = cpu_copy_nest(c->p, op->res, v->direct_buf);
    add_span(c, v->direct_buf, 2 * s->time + 1, c->direct_life[op->res].last);
}

static void span_block(scratch *c, cpu_block *b)
{
    for (cpu_step *s = b->first; s; s = s->next) {
        if (s->kind == STEP_DIRECT) {
            span_direct(c, s);
        } else if (s->kind == STEP_CONTROL) {
            for (int r = 0; r < 2 && s->region[r]; r++)
                span_block(c, s->region[r]);
            span_control(c, s);
        } else if (s->kind == STEP_NEST) {
            for (uint32_t i = 0; i < s->nest->items.n; i++) {
                const cpu_item *item = &s->nest->items.at[i];
                if (item->kind != ITEM_STORE)
                    span_value(c, item->v, 2 * s->time + 1);
            }
        }
    }
}

/* ---- merging --------------------------------------------------------------------------------- */

static bool overlap(const cpu_buf *x, const cpu_buf *y)
{
    for (uint32_t i = 0; i < x->live.n; i++) {
        for (uint32_t j = 0; j < y->live.n; j++) {
            if (x->live.at[i].from <= y->live.at[j].to && y->live.at[j].from <= x->live.at[i].to)
                return true;
        }
    }
    return false;
}

static bool same_shape(const cpu_buf *x, const cpu_buf *y)
{
    return x->lane == y->lane && x->pairs == y->pairs && type_equal(x->type, y->type);
}

static void merge(scratch *c, uint32_t from, uint32_t into)
{
    cpu_buf *x = &c->p->bufs.at[cpu_buf_root(c->p, from)];
    cpu_buf *y = &c->p->bufs.at[cpu_buf_root(c->p, into)];

    if (x == y || !same_shape(x, y) || overlap(x, y))
        return;
    x->root = y->root;
    for (uint32_t i = 0; i < x->live.n; i++)
        vec_push(&y->live, c->p->a, x->live.at[i]);
}

static void merge_handing(scratch *c, cpu_step *s, const handing *h)
{
    (void)s;
    if (value_of(c, h->from)->place != CPU_VIRTUAL)
        merge(c, value_of(c, h->from)->buf, value_of(c, h->to)->buf);
}

/* What could not be merged is copied; its source must outlast all copies made there. */
static void copy_handing(scratch *c, cpu_step *s, const handing *h)
{
    const cpu_value *from = value_of(c, h->from);
    uint32_t dst = value_of(c, h->to)->buf;
    (void)s;

    if (from->place != CPU_VIRTUAL) {
        if (cpu_buf_root(c->p, from->buf) == cpu_buf_root(c->p, dst))
            return;
        add_span(c, from->buf, 2 * h->time, 2 * h->time + 1);
    }
    cpu_copy copy = {h->from, dst, cpu_copy_nest(c->p, h->from, dst)};
    vec_push(h->copies, c->p->a, copy);
}

static void each_control(scratch *c, cpu_block *b, handing_fn fn)
{
    for (cpu_step *s = b->first; s; s = s->next) {
        if (s->kind != STEP_CONTROL)
            continue;
        for (int r = 0; r < 2 && s->region[r]; r++)
            each_control(c, s->region[r], fn);
        each_handing(c, s, fn);
    }
}

/* ---- offsets --------------------------------------------------------------------------------- */

static int by_size(const void *x, const void *y)
{
    const cpu_buf *a = *(const cpu_buf *const *)x, *b = *(const cpu_buf *const *)y;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->root < b->root ? -1 : a->root > b->root;
}

/* Does y begin in the step that reads x last? Then y may only take x's place element by element. */
static bool succeeds(const cpu_buf *x, const cpu_buf *y)
{
    for (uint32_t i = 0; i < x->live.n; i++) {
        for (uint32_t j = 0; j < y->live.n && x->live.at[i].to % 2 == 0; j++) {
            if (y->live.at[j].from == x->live.at[i].to + 1)
                return true;
        }
    }
    return false;
}

static bool collide(const cpu_buf *x, const cpu_buf *y)
{
    bool same = x->offset == y->offset && same_shape(x, y);

    if (x->offset >= y->offset + y->bytes || y->offset >= x->offset + x->bytes)
        return false;
    return overlap(x, y) || (!same && (succeeds(x, y) || succeeds(y, x)));
}

/* The lowest place where it meets no buffer placed before. */
static void place_buf(cpu_buf *b, cpu_buf *const *placed, uint32_t n)
{
    bool moved = true;

    b->offset = 0;
    while (moved) {
        moved = false;
        for (uint32_t i = 0; i < n; i++) {
            if (collide(b, placed[i])) {
                b->offset = placed[i]->offset + placed[i]->bytes;
                moved = true;
            }
        }
    }
}

static void assign_offsets(cpu_plan *p)
{
    cpu_buf **order = ARENA_ARRAY(p->a, cpu_buf *, p->bufs.n);
    uint32_t n = 0;

    for (uint32_t i = 1; i < p->bufs.n; i++) {
        if (p->bufs.at[i].root == i)
            order[n++] = &p->bufs.at[i];
    }
    qsort(order, n, sizeof *order, by_size);
    for (uint32_t i = 0; i < n; i++) {
        place_buf(order[i], order, i);
        int64_t end = order[i]->offset + order[i]->bytes;
        if (p->scratch_bytes < end)
            p->scratch_bytes = end;
    }
}

/* One place serves all: results of tiles are read before the next dot begins. */
static void stage_tiles(ir_op *op, void *arg)
{
    cpu_plan *p = arg;

    if (op->code != OP_DOT || cpu_dot_kind(p, op) != CPU_DOT_TILES || p->stage >= 0)
        return;
    p->stage = (p->scratch_bytes + 63) & ~63ll;
    p->scratch_bytes = p->stage + CPU_STAGE_BYTES;
}

void cpu_scratch(cpu_plan *p)
{
    scratch c = {.p = p};

    c.life = ARENA_ARRAY(p->a, life, p->value.n);
    c.direct_life = ARENA_ARRAY(p->a, life, p->value.n);
    number(&c, p->body);
    read_block(&c, p->body);
    span_block(&c, p->body);
    each_control(&c, p->body, merge_handing);
    each_control(&c, p->body, copy_handing);
    assign_offsets(p);
    p->stage = -1;
    ir_walk(p->fn->body, stage_tiles, p);
}
