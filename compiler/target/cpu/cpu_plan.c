#include "compiler/target/cpu/cpu_plan.h"
#include "compiler/base/check.h"
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include <string.h>

bool cpu_is_tile(const cpu_plan *p, ir_val v)
{
    return ir_type_of(p->fn, v).kind == TYPE_TILE;
}

bool cpu_is_copy(const cpu_plan *p, const ir_op *op)
{
    return op->code == OP_CAST &&
           ir_type_of(p->fn, op->args[0]).dtype == ir_type_of(p->fn, op->res).dtype;
}

int cpu_effective_rank(ir_type t)
{
    int n = 0;

    for (int d = 0; d < t.rank; d++)
        n += t.shape[d] > 1;
    return n;
}

static void note_uses(ir_op *op, void *arg)
{
    cpu_plan *p = arg;

    for (int i = 0; i < op->nargs; i++) {
        cpu_use use = {op, i};
        vec_push(&p->value.at[op->args[i]].uses, p->a, use);
    }
}

void cpu_collect_uses(cpu_plan *p)
{
    uint32_t n = p->fn->values.n;

    vec_reserve(&p->value, p->a, n);
    p->value.n = n;
    for (uint32_t v = 0; v < n; v++)
        p->value.at[v].uses.n = 0;
    ir_walk(p->fn->body, note_uses, p);
}

ir_val cpu_insert_copy(cpu_plan *p, ir_val v, ir_block *blk, ir_op *before)
{
    ir_builder b = before ? ir_before(p->fn, before) : ir_at_end(p->fn, blk);
    ir_val copy = ir_cast(&b, v, ir_type_of(p->fn, v).dtype);

    cpu_value entry = {.place = CPU_ITEM, .lane = p->value.at[v].lane};
    vec_reserve(&p->value, p->a, copy + 1);
    p->value.n = copy + 1;
    p->value.at[copy] = entry;
    return copy;
}

ir_val cpu_strip(const cpu_plan *p, ir_val v, int *dim)
{
    int rank = ir_type_of(p->fn, v).rank;

    for (int d = 0; d < rank; d++)
        dim[d] = d;
    for (;;) {
        const ir_op *op = ir_def(p->fn, v);
        if (!op || p->value.at[v].place == CPU_ITEM)
            return v;
        if (op->code == OP_TRANS) {
            for (int d = 0; d < rank; d++)
                dim[d] = (int)op->attr[0].ints.at[dim[d]];
        } else if (!cpu_is_copy(p, op)) {
            return v;
        }
        v = op->args[0];
    }
}

int cpu_view_param(const cpu_plan *p, ir_val view)
{
    const ir_value *v = ir_value_of(p->fn, view);

    ICHECK(v->block == p->fn->body, "a view is a parameter");
    return (int)v->index;
}

int cpu_view_dim(const ir_op *op, int d)
{
    int at = 0;

    for (uint32_t i = 0; i < op->attr[0].ints.n; i++) {
        if (op->attr[0].ints.at[i] && at++ == d)
            return (int)i;
    }
    ICHECK(0, "a dimension of the slice");
    return 0;
}

bool cpu_is_gathered(const ir_fn *fn, const ir_op *op, int d)
{
    return ir_type_of(fn, op->args[1 + d]).kind == TYPE_TILE;
}

int cpu_contiguous_dim(const cpu_plan *p, const ir_op *op)
{
    const ir_param *param = &p->fn->params.at[cpu_view_param(p, op->args[0])];
    int last = (int)op->attr[0].ints.n - 1, n = 0;

    if (!param->unit_inner || !op->attr[0].ints.at[last] || cpu_is_gathered(p->fn, op, last))
        return -1;
    for (int i = 0; i < last; i++)
        n += op->attr[0].ints.at[i] != 0;
    return n;
}

enum cpu_dot_kind cpu_dot_kind(const cpu_plan *p, const ir_op *dot)
{
    ir_type t = ir_type_of(p->fn, dot->args[0]);

    if (t.dtype != DT_BF16 || t.shape[1] % 2)
        return CPU_DOT_ELEMENTS;
    if (p->isa->tiles != CPU_TILES_NONE && !p->value.at[dot->res].untiled)
        return CPU_DOT_TILES;
    return p->isa->bf16_pairs ? CPU_DOT_PAIRS : CPU_DOT_ELEMENTS;
}

bool cpu_may_be_direct(const cpu_plan *p, const ir_op *dot, int arg, ir_val v, const int *dim)
{
    const ir_op *def = ir_def(p->fn, v);
    enum dtype t = (enum dtype)ir_type_of(p->fn, v).dtype;

    if (!def || def->code != OP_LOAD)
        return false;
    if (cpu_dot_kind(p, dot) != CPU_DOT_ELEMENTS) {
        if (cpu_contiguous_dim(p, def) != dim[1 - arg])
            return false;
    } else if (cpu_held(t) != t) {
        return false;
    }
    for (int d = 0; d < (int)def->attr[0].ints.n; d++) {
        if (cpu_is_gathered(p->fn, def, d))
            return false;
    }
    return true;
}

int cpu_dot_vector(const cpu_plan *p, const ir_op *dot)
{
    return p->value.at[dot->res].lane == 0 ? 0 : 1;
}

/* ---- buffers --------------------------------------------------------------------------------- */

static uint32_t new_buf(cpu_plan *p, ir_type type, int lane, int pairs)
{
    cpu_buf b = {.type = type, .lane = lane, .pairs = pairs, .root = p->bufs.n};
    int lanes = p->isa->lanes;
    int64_t step = (type.shape[lane] + lanes - 1) / lanes * lanes;

    b.stride[lane] = 1;
    for (int d = type.rank - 1; d >= 0; d--) {
        if (d == lane)
            continue;
        b.stride[d] = d + 1 == pairs ? step / 2 : step;
        step = b.stride[d] * type.shape[d];
    }
    b.bytes = (step * (pairs ? 4 : dtype_bytes((enum dtype)type.dtype)) + 63) & ~63ll;
    vec_push(&p->bufs, p->a, b);
    return b.root;
}

uint32_t cpu_new_buf(cpu_plan *p, ir_type type, int lane)
{
    return new_buf(p, type_with_dtype(type, cpu_held((enum dtype)type.dtype)), lane, 0);
}

uint32_t cpu_new_narrow(cpu_plan *p, ir_type type, int lane, int pairs)
{
    ICHECK(pairs != 1 + lane, "pairs lie across the lanes");
    return new_buf(p, type, lane, pairs);
}

uint32_t cpu_buf_root(const cpu_plan *p, uint32_t b)
{
    while (p->bufs.at[b].root != b)
        b = p->bufs.at[b].root;
    return b;
}

/* ---- leaves ---------------------------------------------------------------------------------- */

/* A value visited in a walk, with these dimensions. */
typedef struct seen {
    uint32_t walk;
    int8_t dim[TILE_MAX_RANK];
    struct seen *next;
} seen;

struct cpu_seen {
    uint32_t walk, n;
    seen **at; /* by value id */
};

typedef struct walk {
    cpu_plan *p;
    cpu_leaf_fn fn;
    void *arg;
} walk;

static void visit(const walk *w, ir_val v, const int8_t *dim);

static void leaf(const walk *w, ir_val v, const int8_t *dim, bool scalar_operand, bool vector)
{
    cpu_leaf l = {.v = v, .scalar_operand = scalar_operand, .vector_operand = vector};

    memcpy(l.dim, dim, sizeof l.dim);
    w->fn(w->arg, &l);
}

static const int8_t nowhere[TILE_MAX_RANK] = {-1, -1, -1, -1};

/* The indices of a load or store whose tile has these dimensions. */
static void visit_indices(const walk *w, const ir_op *op, const int8_t *dim)
{
    int at = 0;

    for (int d = 0; d < (int)op->attr[0].ints.n; d++) {
        int8_t along[TILE_MAX_RANK] = {-1, -1, -1, -1};
        if (cpu_is_gathered(w->p->fn, op, d))
            along[0] = dim[at];
        visit(w, op->args[1 + d], along);
        at += op->attr[0].ints.at[d] != 0;
    }
}

static void visit_load(const walk *w, const ir_op *op, const int8_t *dim)
{
    cpu_leaf l = {.v = op->res, .load = op};

    memcpy(l.dim, dim, sizeof l.dim);
    w->fn(w->arg, &l);
    visit_indices(w, op, dim);
}

static void visit_view(const walk *w, const ir_op *op, const int8_t *dim)
{
    int8_t inner[TILE_MAX_RANK] = {-1, -1, -1, -1};
    ir_type from = ir_type_of(w->p->fn, op->args[0]), to = ir_type_of(w->p->fn, op->res);

    for (int d = 0; d < from.rank; d++) {
        if (op->code == OP_EXPAND)
            inner[d] = dim[d + (d >= op->attr[0].i)];
        else if (op->code == OP_BROADCAST)
            inner[d] = from.shape[d] == to.shape[d] ? dim[d] : -1;
    }
    for (int d = 0; op->code == OP_TRANS && d < from.rank; d++)
        inner[op->attr[0].ints.at[d]] = dim[d];
    visit(w, op->args[0], inner);
}

/* False when this walk was here before: expressions share parts, at every level. */
static bool first_visit(const walk *w, ir_val v, const int8_t *dim)
{
    cpu_seen *s = w->p->seen;
    seen *top = s->at[v];

    if (top && top->walk != s->walk)
        top = NULL;
    for (const seen *k = top; k; k = k->next) {
        if (!memcmp(k->dim, dim, sizeof k->dim))
            return false;
    }
    seen *k = ARENA_NEW(w->p->a, seen);
    k->walk = s->walk;
    memcpy(k->dim, dim, sizeof k->dim);
    k->next = top;
    s->at[v] = k;
    return true;
}

static void visit(const walk *w, ir_val v, const int8_t *dim)
{
    const ir_op *op = ir_def(w->p->fn, v);

    if (!cpu_is_tile(w->p, v) || w->p->value.at[v].place != CPU_VIRTUAL) {
        leaf(w, v, dim, false, false);
        return;
    }
    if (!first_visit(w, v, dim))
        return;
    switch (op->code) {
    case OP_ARANGE:
        return;
    case OP_LOAD:
        visit_load(w, op, dim);
        return;
    case OP_EXPAND:
    case OP_BROADCAST:
    case OP_TRANS:
        visit_view(w, op, dim);
        return;
    case OP_SPLAT:
    case OP_RESHAPE:
        visit(w, op->args[0], nowhere);
        return;
    default:
        for (int i = 0; i < op->nargs; i++)
            visit(w, op->args[i], dim);
    }
}

static void operand(const walk *w, ir_val v, bool vector)
{
    int dim[TILE_MAX_RANK];
    ir_val base = cpu_strip(w->p, v, dim);

    leaf(w, base, nowhere, !vector, vector);
}

static const int8_t identity[TILE_MAX_RANK] = {0, 1, 2, 3};

/* The operands of the op that makes an item, whatever the item's own value counts as. */
static void visit_inside(const walk *w, ir_val v)
{
    cpu_value *value = &w->p->value.at[v];
    uint8_t place = value->place;

    value->place = CPU_VIRTUAL;
    visit(w, v, identity);
    value->place = place;
}

/* The scalars that the function of a fold or a scan has from outside. */
static void visit_region(const walk *w, const ir_op *op)
{
    const ir_op *in = op->nregions ? op->regions[0]->first : NULL;

    for (; in; in = in->next) {
        for (int i = 0; i < in->nargs; i++) {
            if (ir_defined_outside(w->p->fn, in->args[i], op))
                visit(w, in->args[i], nowhere);
        }
    }
}

static void begin_walk(cpu_plan *p)
{
    if (!p->seen || p->seen->n < p->value.n) {
        p->seen = ARENA_NEW(p->a, cpu_seen);
        p->seen->n = p->value.n;
        p->seen->at = ARENA_ARRAY(p->a, seen *, p->value.n);
    }
    p->seen->walk++;
}

void cpu_each_leaf(cpu_plan *p, const cpu_item *item, cpu_leaf_fn fn, void *arg)
{
    walk w = {p, fn, arg};
    int vector;

    begin_walk(p);
    switch (item->kind) {
    case ITEM_BUFFER:
        if (item->buf)
            visit(&w, item->v, identity);
        else
            visit_inside(&w, item->v);
        return;
    case ITEM_REDUCE:
    case ITEM_FOLD:
    case ITEM_SCAN:
        visit(&w, item->op->args[0], identity);
        visit_region(&w, item->op);
        return;
    case ITEM_STORE:
        visit(&w, item->v, identity);
        visit_indices(&w, item->op, identity);
        return;
    case ITEM_ATOMIC:
        for (int i = 1 + (int)item->op->attr[0].ints.n; i < item->op->nargs; i++)
            visit(&w, item->op->args[i], identity);
        visit_indices(&w, item->op, identity);
        return;
    case ITEM_DOT:
        vector = cpu_dot_vector(p, item->op);
        operand(&w, item->op->args[vector], true);
        operand(&w, item->op->args[1 - vector], false);
        visit(&w, item->op->args[2], identity);
        return;
    }
}

bool cpu_leaf_local(const cpu_plan *p, const cpu_leaf *l, const cpu_nest *nest)
{
    ir_type t = ir_type_of(p->fn, l->v);

    if (l->scalar_operand || l->vector_operand || t.kind != TYPE_TILE || t.rank != nest->space.rank)
        return false;
    for (int d = 0; d < t.rank; d++) {
        if (l->dim[d] != d || t.shape[d] != nest->space.shape[d])
            return false;
    }
    return p->value.at[l->v].lane == nest->lane;
}

/* ---- all of it ------------------------------------------------------------------------------- */

cpu_plan *cpu_plan_new(arena *a, ir_fn *fn, const cpu_isa *isa)
{
    cpu_plan *p = ARENA_NEW(a, cpu_plan);
    cpu_buf none = {0};

    p->a = a;
    p->fn = fn;
    p->isa = isa;
    p->facts = facts_compute(a, fn);
    vec_push(&p->bufs, a, none);
    cpu_collect_uses(p);
    cpu_orient(p);
    cpu_fit_tiles(p);
    cpu_place(p);
    cpu_form_nests(p);
    cpu_scratch(p);
    return p;
}
