/* From ops to steps: scalar ops, nests of fused items, control.
 *
 * Ops are taken in text order. An item joins the latest nest that has its index space and that
 * comes after everything the item needs, or computes it at the same indices; else it starts a nest.
 * A scan, a fold or an operand that is turned always does, and nothing joins it. Scalar ops and
 * direct loads come as early as their operands allow, so that they stand in no item's way. Control
 * ops are not crossed. */
#include "compiler/base/check.h"
#include "compiler/target/cpu/cpu_plan.h"
#include <string.h>

typedef struct former {
    cpu_plan *p;
    cpu_block *block;
    cpu_step *barrier; /* the last control step of the block, or NULL */
} former;

/* ---- the list of steps ----------------------------------------------------------------------- */

/* A new step after `after`, NULL: at the front. */
static cpu_step *insert_step(former *f, enum cpu_step_kind kind, ir_op *op, cpu_step *after)
{
    cpu_step *s = ARENA_NEW(f->p->a, cpu_step);
    cpu_block *b = f->block;

    s->kind = kind;
    s->op = op;
    s->block = b;
    s->prev = after;
    s->next = after ? after->next : b->first;
    *(s->next ? &s->next->prev : &b->last) = s;
    *(after ? &after->next : &b->first) = s;
    int32_t order = after ? after->order : 0;
    for (cpu_step *t = s; t; t = t->next)
        t->order = ++order;
    return s;
}

static uint64_t memory_bit(const former *f, const ir_op *op)
{
    int param = cpu_view_param(f->p, op->args[0]);

    return 1ull << (param < 63 ? param : 63);
}

static bool is_writable(const former *f, const ir_op *op)
{
    return f->p->fn->params.at[cpu_view_param(f->p, op->args[0])].direction != DIR_IN;
}

static void set_step(const former *f, const ir_op *op, cpu_step *s)
{
    for (int i = 0; i < op->nres; i++)
        f->p->value.at[op->res + (ir_val)i].step = s;
}

static cpu_step *later(const former *f, cpu_step *a, cpu_step *b)
{
    if (!b || b->block != f->block)
        return a;
    return !a || b->order > a->order ? b : a;
}

/* Scalars and direct loads: after what they need. */
static void place_early(former *f, enum cpu_step_kind kind, ir_op *op)
{
    cpu_step *after = f->barrier;

    for (int i = 0; i < op->nargs; i++)
        after = later(f, after, f->p->value.at[op->args[i]].step);
    cpu_step *s = insert_step(f, kind, op, after);
    if (kind == STEP_DIRECT)
        f->p->value.at[op->res].direct_step = s;
    else
        set_step(f, op, s);
}

static void place_last(former *f, ir_op *op)
{
    cpu_step *s = insert_step(f, STEP_SCALAR, op, f->block->last);

    set_step(f, op, s);
    if (op_info((enum ir_opcode)op->code)->traits & OPT_READ)
        s->reads = memory_bit(f, op);
    if (op_info((enum ir_opcode)op->code)->traits & OPT_WRITE)
        s->writes = memory_bit(f, op);
}

/* ---- what an item asks of its nest ----------------------------------------------------------- */

typedef struct wish {
    cpu_item item;
    ir_type space;
    int lane;
    int axis;  /* of a reduction, else -1 */
    int pairs; /* dimension along which the item stores pairs, else -1 */
    int block; /* the dimension along which an access is transposed, else -1 */
    ir_op
        *turned; /* the load of bf16 that is all of the item, against its tensor's order; or NULL */
    uint64_t reads, writes;
} wish;

typedef struct wish_walk {
    const cpu_plan *p;
    wish *w;
} wish_walk;

static void wish_leaf(void *arg, const cpu_leaf *l)
{
    wish_walk *k = arg;
    int contiguous;

    if (l->load) {
        contiguous = cpu_contiguous_dim(k->p, l->load);
    } else if (cpu_is_tile(k->p, l->v) && !l->scalar_operand && !l->vector_operand) {
        ir_type t = ir_type_of(k->p->fn, l->v);
        if (cpu_effective_rank(t) < 2)
            return;
        contiguous = k->p->value.at[l->v].lane;
    } else {
        return;
    }
    bool along_lanes = false; /* else one element serves all lanes */
    for (int d = 0; d < TILE_MAX_RANK; d++)
        along_lanes = along_lanes || l->dim[d] == k->w->lane;
    int d = contiguous < 0 ? -1 : l->dim[contiguous];
    if (along_lanes && d >= 0 && d != k->w->lane && k->w->block < 0)
        k->w->block = d;
}

static void wish_memory(const former *f, wish *w)
{
    const ir_op *op = w->item.kind == ITEM_BUFFER ? ir_def(f->p->fn, w->item.v) : w->item.op;

    if (op && op->code == OP_LOAD && is_writable(f, op))
        w->reads = memory_bit(f, op);
    else if (op && (op_info((enum ir_opcode)op->code)->traits & OPT_WRITE))
        w->reads = w->writes = memory_bit(f, op);
}

/* The same where the item stores that tile turned, in the order of the other tensor, in whole
 * registers. */
static ir_op *turned_to_store(const former *f, const wish *w)
{
    const cpu_plan *p = f->p;
    int dim[TILE_MAX_RANK], registers = 2 * p->isa->lanes;

    if (w->space.rank != 2 || w->space.dtype != DT_BF16 || w->lane != 1 ||
        w->space.shape[1] % registers || cpu_contiguous_dim(p, w->item.op) != 1)
        return NULL;
    ir_val v = cpu_strip(p, w->item.v, dim);
    ir_op *load = ir_def(p->fn, v);
    for (int d = 0; d < (int)w->item.op->attr[0].ints.n; d++) {
        if (!(w->item.op->attr[1].i >> d & 1))
            return NULL;
    }
    return load && load->code == OP_LOAD && p->value.at[v].place == CPU_VIRTUAL && dim[0] == 1 &&
                   cpu_contiguous_dim(p, load) == 1
               ? load
               : NULL;
}

/* cpu_turn.c has its loops. */
static ir_op *turned_load(const former *f, const wish *w)
{
    const cpu_plan *p = f->p;
    const cpu_value *v = &p->value.at[w->item.v];
    ir_op *op = ir_def(p->fn, w->item.v);

    if (w->item.kind == ITEM_STORE)
        return turned_to_store(f, w);
    if (w->item.kind != ITEM_BUFFER || w->item.buf || w->block < 0 ||
        !(v->narrow || w->pairs == w->block) || w->space.shape[w->block] < p->isa->lanes)
        return NULL;
    if (op && cpu_is_copy(p, op) && p->value.at[op->args[0]].place == CPU_VIRTUAL)
        op = ir_def(p->fn, op->args[0]);
    return op && op->code == OP_LOAD ? op : NULL;
}

static wish make_wish(const former *f, cpu_item item)
{
    bool reduces = item.kind == ITEM_REDUCE || item.kind == ITEM_FOLD;
    ir_val space = reduces ? item.op->args[0] : item.v;
    wish w = {.item = item, .axis = -1, .pairs = -1, .block = -1};
    wish_walk k = {f->p, &w};

    if (item.kind == ITEM_BUFFER && !item.buf)
        w.pairs = f->p->value.at[item.v].pairs - 1;
    w.space = ir_type_of(f->p->fn, space);
    w.lane = item.buf ? f->p->bufs.at[item.buf].lane : f->p->value.at[space].lane;
    if (reduces || item.kind == ITEM_SCAN)
        w.axis = (int)item.op->attr[0].i;
    cpu_each_leaf(f->p, &item, wish_leaf, &k);
    if (item.kind == ITEM_STORE) {
        int d = cpu_contiguous_dim(f->p, item.op);
        if (d >= 0 && d != w.lane)
            w.block = d;
    }
    w.turned = turned_load(f, &w);
    wish_memory(f, &w);
    return w;
}

/* The row dimension that w wants innermost; -1: any. */
static int inner_of(const wish *w)
{
    if (w->axis >= 0 && w->axis != w->lane)
        return w->axis;
    return w->pairs >= 0 ? w->pairs : w->block;
}

static bool stands_alone(const wish *w)
{
    return w->item.kind == ITEM_SCAN || w->item.kind == ITEM_FOLD || w->turned;
}

/* Each keeps vectors in registers, and emission has room for CPU_MAX_CARRIED of them. */
enum { MAX_REDUCTIONS = 6 };

static bool is_full(const cpu_nest *n)
{
    int reductions = 0;

    for (uint32_t i = 0; i < n->items.n; i++)
        reductions += n->items.at[i].kind == ITEM_REDUCE;
    return reductions >= MAX_REDUCTIONS;
}

/* May w's loops be those of n? */
static bool fits(const cpu_nest *n, const wish *w)
{
    if (!type_same_shape(n->space, w->space) || n->lane != w->lane || w->item.kind == ITEM_DOT ||
        stands_alone(w) || n->alone || n->turned || (w->item.kind == ITEM_REDUCE && is_full(n)))
        return false;
    bool horizontal = w->axis == w->lane;
    int inner = inner_of(w);
    if (w->block >= 0 && (n->dot || n->horizontal))
        return false;
    if (horizontal)
        return !n->inner_fixed;
    return inner < 0 || (!n->horizontal && (!n->inner_fixed || n->inner == inner));
}

static void join(cpu_plan *p, cpu_step *s, const wish *w)
{
    cpu_nest *n = s->nest;
    bool vertical = w->axis >= 0 && w->axis != w->lane;
    int inner = inner_of(w);

    vec_push(&n->items, p->a, w->item);
    s->reads |= w->reads;
    s->writes |= w->writes;
    n->horizontal = n->horizontal || (w->axis >= 0 && !vertical);
    n->vertical = n->vertical || vertical;
    n->alone = w->item.kind == ITEM_SCAN || w->item.kind == ITEM_FOLD;
    n->turned = w->turned;
    n->pairs = n->pairs || w->pairs >= 0;
    if (w->item.kind == ITEM_DOT) {
        n->dot = w->item.op;
        inner = 1 - n->lane;
    }
    if (inner >= 0 && !n->horizontal && !n->inner_fixed) {
        n->inner = inner;
        n->inner_fixed = true;
    }
    if (w->block >= 0 && n->inner == w->block && n->inner_fixed && !n->dot)
        n->blocks = true;
}

/* ---- finding a nest -------------------------------------------------------------------------- */

typedef struct needs {
    const former *f;
    cpu_step *last;       /* the latest step that must come before */
    cpu_step *last_local; /* the latest that may also be the same nest */
    const cpu_nest *shape;
} needs;

static void need_leaf(void *arg, const cpu_leaf *l)
{
    needs *k = arg;
    const cpu_value *v = &k->f->p->value.at[l->v];
    bool in_place = l->scalar_operand && v->direct;

    if (l->load)
        return;
    if (!in_place && cpu_leaf_local(k->f->p, l, k->shape) && v->place == CPU_ITEM)
        k->last_local = later(k->f, k->last_local, v->step);
    else
        k->last = later(k->f, k->last, in_place ? v->direct_step : v->step);
}

static cpu_step *find_nest(const former *f, const wish *w, const needs *k)
{
    for (cpu_step *s = f->block->last; s != f->barrier; s = s->prev) {
        bool early = (k->last && s->order <= k->last->order) ||
                     (k->last_local && s->order < k->last_local->order);
        bool conflict = (s->writes & (w->reads | w->writes)) || (s->reads & w->writes);
        if (early || conflict)
            return NULL;
        if (s->kind == STEP_NEST && fits(s->nest, w))
            return s;
    }
    return NULL;
}

static void place_item(former *f, cpu_item item)
{
    wish w = make_wish(f, item);
    cpu_nest shape = {.space = w.space, .lane = w.lane};
    needs k = {.f = f, .shape = &shape};

    cpu_each_leaf(f->p, &item, need_leaf, &k);
    cpu_step *s = find_nest(f, &w, &k);
    if (!s) {
        s = insert_step(f, STEP_NEST, NULL, f->block->last);
        s->nest = ARENA_NEW(f->p->a, cpu_nest);
        s->nest->space = w.space;
        s->nest->lane = w.lane;
        s->nest->inner = -1;
    }
    join(f->p, s, &w);
    if (item.kind != ITEM_STORE)
        f->p->value.at[item.v].step = s;
}

/* ---- ops ------------------------------------------------------------------------------------- */

static cpu_block *form_block(cpu_plan *p, ir_block *blk, cpu_step *owner, cpu_block *outer);

static void form_control(former *f, ir_op *op)
{
    cpu_step *s = insert_step(f, STEP_CONTROL, op, f->block->last);

    set_step(f, op, s);
    for (int r = 0; r < op->nregions; r++)
        s->region[r] = form_block(f->p, op->regions[r], s, f->block);
    f->barrier = s;
}

static void form_tile(former *f, ir_op *op)
{
    const cpu_value *v = &f->p->value.at[op->res];
    cpu_item item = {.kind = ITEM_BUFFER, .v = op->res};

    if (v->direct)
        place_early(f, STEP_DIRECT, op);
    if (v->place != CPU_ITEM)
        return;
    if (op->code == OP_DOT)
        item.kind = ITEM_DOT;
    else if (op->code == OP_REDUCE_MAX || op->code == OP_REDUCE_MIN || op->code == OP_REDUCE_SUM)
        item.kind = ITEM_REDUCE;
    else if (op->code == OP_SCAN_SUM || op->code == OP_SCAN_PROD || op->code == OP_SCAN)
        item.kind = ITEM_SCAN;
    else if (op->code == OP_REDUCE)
        item.kind = ITEM_FOLD;
    else if (op_is_atomic((enum ir_opcode)op->code))
        item.kind = ITEM_ATOMIC;
    if (item.kind != ITEM_BUFFER)
        item.op = op;
    place_item(f, item);
}

static void form_op(former *f, ir_op *op)
{
    switch (op->code) {
    case OP_YIELD:
    case OP_CONDITION:
    case OP_RETURN:
        return;
    case OP_FOR:
    case OP_WHILE:
    case OP_IF:
        form_control(f, op);
        return;
    case OP_ASSERT:
    case OP_PRINT:
        place_last(f, op);
        return;
    case OP_STORE:
        if (cpu_is_tile(f->p, op->args[op->nargs - 1]))
            place_item(f, (cpu_item){ITEM_STORE, op, op->args[op->nargs - 1], 0});
        else
            place_last(f, op);
        return;
    case OP_REDUCE:
    case OP_REDUCE_MAX:
    case OP_REDUCE_MIN:
    case OP_REDUCE_SUM:
        if (!cpu_is_tile(f->p, op->res)) {
            place_item(f,
                       (cpu_item){op->code == OP_REDUCE ? ITEM_FOLD : ITEM_REDUCE, op, op->res, 0});
            return;
        }
        break;
    case OP_ATOMIC_ADD:
    case OP_ATOMIC_MAX:
    case OP_ATOMIC_MIN:
    case OP_ATOMIC_XCHG:
    case OP_ATOMIC_CAS:
    case OP_LOAD:
        if (!cpu_is_tile(f->p, op->res) && is_writable(f, op)) {
            place_last(f, op);
            return;
        }
        break;
    default:
        break;
    }
    if (cpu_is_tile(f->p, op->res))
        form_tile(f, op);
    else
        place_early(f, STEP_SCALAR, op);
}

/* ---- the shape of a nest --------------------------------------------------------------------- */

static int widest_row(const cpu_nest *n)
{
    int best = -1;

    for (int d = 0; d < n->space.rank; d++) {
        if (d != n->lane && (best < 0 || n->space.shape[d] > 1))
            best = d;
    }
    return best;
}

static bool wants_pairs(const cpu_nest *n)
{
    for (uint32_t i = 0; i < n->items.n; i++) {
        const ir_op *op = n->items.at[i].op;
        if (op && (op->code == OP_REDUCE_MAX || op->code == OP_REDUCE_MIN))
            return true;
    }
    return false;
}

/* Chooses inner, mr and nr. */
static void shape_nest(const cpu_plan *p, cpu_nest *n)
{
    int lanes = p->isa->lanes, chunks = (n->space.shape[n->lane] + lanes - 1) / lanes;

    if (n->inner < 0)
        n->inner = widest_row(n);
    int rows = n->inner >= 0 ? n->space.shape[n->inner] : 1;
    bool tiles = n->dot && cpu_dot_kind(p, n->dot) == CPU_DOT_TILES;

    n->nr = tiles ? p->tile_block.vectors : p->isa->nr;
    n->nr = chunks < n->nr ? chunks : n->nr;
    n->mr = 1;
    if (n->blocks) {
        n->mr = lanes;
        n->nr = 1;
    } else if (n->dot) {
        n->mr = p->isa->mr;
    } else if (!n->horizontal) {
        n->mr = n->pairs || wants_pairs(n) ? 2 : 1;
        while (n->mr * n->nr < 4)
            n->mr *= 2;
    }
    if (n->mr > rows)
        n->mr = rows;
}

static void shape_nests(const cpu_plan *p, cpu_block *b)
{
    for (cpu_step *s = b->first; s; s = s->next) {
        if (s->kind == STEP_NEST)
            shape_nest(p, s->nest);
    }
}

static cpu_block *form_block(cpu_plan *p, ir_block *blk, cpu_step *owner, cpu_block *outer)
{
    cpu_block *b = ARENA_NEW(p->a, cpu_block);
    former f = {.p = p, .block = b};

    b->owner = owner;
    b->outer = outer;
    b->ir = blk;
    for IR_EACH_OP(op, blk)
        form_op(&f, op);
    shape_nests(p, b);
    cpu_look_ahead(p, b);
    return b;
}

/* ---- copies ---------------------------------------------------------------------------------- */

cpu_nest *cpu_copy_nest(cpu_plan *p, ir_val v, uint32_t buf)
{
    former f = {.p = p};
    cpu_step s = {0};
    wish w = make_wish(&f, (cpu_item){ITEM_BUFFER, NULL, v, buf});

    s.nest = ARENA_NEW(p->a, cpu_nest);
    s.nest->space = w.space;
    s.nest->lane = w.lane;
    s.nest->inner = -1;
    join(p, &s, &w);
    shape_nest(p, s.nest);
    return s.nest;
}

void cpu_form_nests(cpu_plan *p)
{
    p->body = form_block(p, p->fn->body, NULL, NULL);
}
