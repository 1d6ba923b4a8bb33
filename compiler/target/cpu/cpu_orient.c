/* Which dimension of each tile lies in the vector lanes.
 *
 * Tiles that are computed element by element from each other share the choice: they form a
 * component. A dot gives its result's component no choice of its own: lanes along the rows of the
 * result make its first factor the vector operand and the second the scalar one, lanes along the
 * columns the other way round. All combinations are priced when there are few, else one component
 * after the other. Tiles with one extent above 1 have no choice.
 *
 * The unit of cost is one vector operation; a loop counts LOOP_WEIGHT times. */
#include "compiler/base/check.h"
#include "compiler/ir/iredit.h"
#include "compiler/target/cpu/cpu_plan.h"
#include <string.h>

enum {
    LOOP_WEIGHT = 8,
    MAX_COMBINATIONS = 1 << 10,
    TRANSPOSE_COST = 6,  /* log2(lanes) shuffles a vector, and the memory access */
    TURN_COST = 1,       /* of 16-bit elements for a dot of pairs or tiles (cpu_turn.c) */
    HORIZONTAL_COST = 10 /* of the last steps of a reduction along the lanes, a row */
};

typedef struct orient {
    cpu_plan *p;
    uint32_t *tile;      /* union-find over values: components */
    uint32_t *dimension; /* union-find over (value, dimension) */
    VEC(ir_op *) priced; /* loads, stores, reductions, dots */
} orient;

static uint32_t root(uint32_t *parent, uint32_t x)
{
    while (parent[x] != x)
        x = parent[x] = parent[parent[x]];
    return x;
}

static void unite(uint32_t *parent, uint32_t x, uint32_t y)
{
    parent[root(parent, y)] = root(parent, x);
}

static ir_type type_of(const orient *o, ir_val v)
{
    return ir_type_of(o->p->fn, v);
}

static bool has_choice(const orient *o, ir_val v)
{
    ir_type t = type_of(o, v);

    return t.kind == TYPE_TILE && cpu_effective_rank(t) > 1;
}

static void link_dims(orient *o, ir_val x, int dx, ir_val y, int dy)
{
    unite(o->dimension, x * TILE_MAX_RANK + (uint32_t)dx, y * TILE_MAX_RANK + (uint32_t)dy);
}

static void link_tiles(orient *o, ir_val x, ir_val y)
{
    if (has_choice(o, x) && has_choice(o, y))
        unite(o->tile, x, y);
}

static void link_same(orient *o, ir_val x, ir_val y)
{
    if (!cpu_is_tile(o->p, x) || !cpu_is_tile(o->p, y))
        return;
    for (int d = 0; d < type_of(o, x).rank; d++)
        link_dims(o, x, d, y, d);
    link_tiles(o, x, y);
}

static void link_list(orient *o, const ir_val *x, ir_val first, int n)
{
    for (int i = 0; i < n; i++)
        link_same(o, first + (ir_val)i, x[i]);
}

static void link_control(orient *o, const ir_op *op)
{
    const ir_op *end;
    ir_val arg;

    for (int r = 0; r < op->nregions; r++) {
        end = op->regions[r]->last;
        arg = op->regions[r]->arg;
        if (op->code == OP_FOR) {
            link_list(o, op->args + 3, arg + 1, op->nargs - 3);
            link_list(o, end->args, arg + 1, end->nargs);
            link_list(o, end->args, op->res, op->nres);
        } else if (op->code == OP_IF) {
            link_list(o, end->args, op->res, op->nres);
        } else if (r == 0) {
            link_list(o, op->args, arg, op->nargs);
            link_list(o, end->args + 1, op->res, op->nres);
            link_list(o, end->args + 1, op->regions[1]->arg, op->nres);
        } else {
            link_list(o, end->args, op->regions[0]->arg, end->nargs);
        }
    }
}

static void link_view(orient *o, const ir_op *op)
{
    ir_val x = op->args[0];
    int rank = type_of(o, op->code == OP_EXPAND ? x : op->res).rank;

    for (int d = 0; d < rank; d++) {
        if (op->code == OP_EXPAND)
            link_dims(o, op->res, d + (d >= op->attr[0].i), x, d);
        else if (op->code == OP_TRANS)
            link_dims(o, op->res, d, x, (int)op->attr[0].ints.at[d]);
        else if (op->code == OP_BROADCAST)
            link_dims(o, op->res, d, x, d);
        else /* a reduction */
            link_dims(o, op->res, d, x, d + (d >= op->attr[0].i));
    }
    link_tiles(o, op->res, x);
}

static void link_op(ir_op *op, void *arg)
{
    orient *o = arg;

    switch (op->code) {
    case OP_EXPAND:
    case OP_TRANS:
    case OP_BROADCAST:
        link_view(o, op);
        return;
    case OP_REDUCE_MAX:
    case OP_REDUCE_MIN:
    case OP_REDUCE_SUM:
    case OP_REDUCE:
        if (cpu_is_tile(o->p, op->res))
            link_view(o, op);
        vec_push(&o->priced, o->p->a, op);
        return;
    case OP_SCAN_SUM:
    case OP_SCAN_PROD:
    case OP_SCAN:
        link_same(o, op->res, op->args[0]);
        vec_push(&o->priced, o->p->a, op);
        return;
    case OP_DOT:
        link_same(o, op->res, op->args[2]);
        vec_push(&o->priced, o->p->a, op);
        return;
    case OP_LOAD:
    case OP_STORE:
        vec_push(&o->priced, o->p->a, op);
        return;
    case OP_ATOMIC_ADD:
    case OP_ATOMIC_MAX:
    case OP_ATOMIC_MIN:
    case OP_ATOMIC_XCHG:
    case OP_ATOMIC_CAS: /* one element after the other, whatever the lanes */
        for (int i = 1 + (int)op->attr[0].ints.n; i < op->nargs; i++)
            link_same(o, op->res, op->args[i]);
        return;
    case OP_FOR:
    case OP_WHILE:
    case OP_IF:
        link_control(o, op);
        return;
    case OP_CAST:
    case OP_BITCAST:
        link_same(o, op->res, op->args[0]);
        return;
    default:
        if (op_info((enum ir_opcode)op->code)->traits & OPT_EWISE) {
            for (int i = 0; i < op->nargs; i++)
                link_same(o, op->res, op->args[i]);
        }
    }
}

/* ---- prices ---------------------------------------------------------------------------------- */

static int lane_of(const orient *o, ir_val v)
{
    return o->p->value.at[v].lane;
}

/* Vectors that hold a tile with lanes along d. */
static double vectors(const orient *o, ir_type t, int d)
{
    int lanes = o->p->isa->lanes;

    return (double)type_elements(t) / t.shape[d] * ((t.shape[d] + lanes - 1) / lanes);
}

/* Reading or writing a tensor with lanes along dimension d of the slice. */
static double access_price(const orient *o, const ir_op *op, ir_type t, int d)
{
    int contiguous = cpu_contiguous_dim(o->p, op);

    if (contiguous == d)
        return vectors(o, t, d);
    if (contiguous < 0 || t.shape[contiguous] < o->p->isa->lanes)
        return vectors(o, t, d) * o->p->isa->lanes;
    return vectors(o, t, d) * TRANSPOSE_COST;
}

/* Do only dots use v, and only as an operand of theirs? They price what they need. */
static bool only_dots(const orient *o, ir_val v)
{
    const cpu_uses *uses = &o->p->value.at[v].uses;

    for (uint32_t i = 0; i < uses->n; i++) {
        const ir_op *op = uses->at[i].op;
        bool fits = op->code == OP_TRANS ? only_dots(o, op->res)
                                         : op->code == OP_DOT && uses->at[i].arg < 2;
        if (!fits)
            return false;
    }
    return uses->n > 0;
}

static double weight_in(const ir_block *blk)
{
    double weight = 1.0;

    for (int d = ir_depth(blk); d > 0; d--)
        weight *= LOOP_WEIGHT;
    return weight;
}

/* An operand is made ready where it is defined, which may be outside of the dot's loop. */
static double operand_weight(const orient *o, ir_val v)
{
    const ir_op *def = ir_def(o->p->fn, v);

    return weight_in(def ? def->parent : ir_value_of(o->p->fn, v)->block);
}

/* Of the vector operand, which is but for views v, with lanes along its dimension lane. */
static double vector_price(const orient *o, const ir_op *dot, ir_val v, int lane)
{
    const ir_op *def = ir_def(o->p->fn, v);
    ir_type t = type_of(o, v);
    bool words = cpu_dot_kind(o->p, dot) != CPU_DOT_ELEMENTS;

    if (def && def->code == OP_LOAD) {
        bool turned = cpu_contiguous_dim(o->p, def) == 1 - lane;
        double once =
            words && turned ? TURN_COST * vectors(o, t, lane) : access_price(o, def, t, lane);
        return once + vectors(o, t, lane);
    }
    return vectors(o, t, lane) * (has_choice(o, v) && lane_of(o, v) != lane ? TRANSPOSE_COST : 1);
}

/* Of the scalar operand; dim: from cpu_strip. */
static double scalar_price(const orient *o, const ir_op *dot, ir_val v, const int *dim)
{
    const ir_op *def = ir_def(o->p->fn, v);
    int arg = 1 - cpu_dot_vector(o->p, dot), deep = dim[1 - arg];
    ir_type t = type_of(o, v);

    if (cpu_may_be_direct(o->p, dot, arg, v, dim))
        return 0.0;
    if (cpu_dot_kind(o->p, dot) != CPU_DOT_TILES)
        return vectors(o, t, lane_of(o, v));
    if (def && def->code == OP_LOAD)
        return (cpu_contiguous_dim(o->p, def) != deep ? 1 + TURN_COST : 1) * vectors(o, t, deep);
    return vectors(o, t, deep) * (has_choice(o, v) && lane_of(o, v) != deep ? TRANSPOSE_COST : 1);
}

static double dot_price(const orient *o, const ir_op *op)
{
    int dim[TILE_MAX_RANK], along[TILE_MAX_RANK], vector = cpu_dot_vector(o->p, op);
    ir_val v = cpu_strip(o->p, op->args[vector], dim);
    ir_val s = cpu_strip(o->p, op->args[1 - vector], along);
    ir_type res = type_of(o, op->res);
    static const int at_once[] = {
        [CPU_DOT_ELEMENTS] = 1, [CPU_DOT_PAIRS] = 2, [CPU_DOT_TILES] = 16};
    double price = vectors(o, res, lane_of(o, op->res)) * type_of(o, op->args[0]).shape[1] /
                   at_once[cpu_dot_kind(o->p, op)];

    return weight_in(op->parent) * price +
           operand_weight(o, v) * vector_price(o, op, v, dim[vector]) +
           operand_weight(o, s) * scalar_price(o, op, s, along);
}

static double price_of(const orient *o, const ir_op *op)
{
    ir_type t;

    switch (op->code) {
    case OP_LOAD:
        t = type_of(o, op->res);
        if (t.kind != TYPE_TILE || only_dots(o, op->res))
            return 0.0;
        return access_price(o, op, t, lane_of(o, op->res));
    case OP_STORE:
        t = type_of(o, op->args[op->nargs - 1]);
        return t.kind == TYPE_TILE ? access_price(o, op, t, lane_of(o, op->args[op->nargs - 1]))
                                   : 0.0;
    default:
        t = type_of(o, op->args[0]);
        double price = vectors(o, t, lane_of(o, op->args[0]));
        if (lane_of(o, op->args[0]) == op->attr[0].i)
            price += HORIZONTAL_COST * (double)type_elements(t) / t.shape[op->attr[0].i];
        return price;
    }
}

static double price(const orient *o)
{
    double sum = 0.0;

    for (uint32_t i = 0; i < o->priced.n; i++) {
        const ir_op *op = o->priced.at[i];
        sum += op->code == OP_DOT ? dot_price(o, op) : weight_in(op->parent) * price_of(o, op);
    }
    return sum;
}

/* ---- the search ------------------------------------------------------------------------------ */

typedef struct member {
    ir_val v;
    uint8_t lane[2 * TILE_MAX_RANK]; /* by option */
} member;
/* A component and its options: classes of dimensions that it may put in its lanes. */
typedef struct component {
    uint32_t c[2 * TILE_MAX_RANK];
    int n, best;
    VEC(member) members;
} component;

static uint32_t class_of(const orient *o, ir_val v, int d)
{
    return root(o->dimension, v * TILE_MAX_RANK + (uint32_t)d);
}

static int last_wide(ir_type t)
{
    for (int d = t.rank - 1; d > 0; d--) {
        if (t.shape[d] > 1)
            return d;
    }
    return 0;
}

/* The dimension of v that belongs to class c; its last wide one when none does. */
static int dimension_in(const orient *o, ir_val v, uint32_t c)
{
    ir_type t = type_of(o, v);

    for (int d = 0; d < t.rank; d++) {
        if (class_of(o, v, d) == c && t.shape[d] > 1)
            return d;
    }
    return last_wide(t);
}

static void add_options(const orient *o, component *k, ir_val v)
{
    ir_type t = type_of(o, v);

    for (int d = 0; d < t.rank; d++) {
        uint32_t c = class_of(o, v, d);
        bool known = t.shape[d] == 1;
        for (int i = 0; i < k->n; i++)
            known = known || k->c[i] == c;
        if (!known && k->n < 2 * TILE_MAX_RANK)
            k->c[k->n++] = c;
    }
}

static void find_lanes(const orient *o, component *k)
{
    for (uint32_t i = 0; i < k->members.n; i++) {
        member *m = &k->members.at[i];
        for (int j = 0; j < k->n; j++)
            m->lane[j] = (uint8_t)dimension_in(o, m->v, k->c[j]);
    }
}

static void choose(const orient *o, const component *k, int option)
{
    for (uint32_t i = 0; i < k->members.n; i++)
        o->p->value.at[k->members.at[i].v].lane = k->members.at[i].lane[option];
}

/* Combination number i, as digits of a counter. */
static void choose_all(const orient *o, component *k, uint32_t n, int64_t i, bool keep)
{
    for (uint32_t j = 0; j < n; j++) {
        int option = (int)(i % k[j].n);
        choose(o, &k[j], option);
        if (keep)
            k[j].best = option;
        i /= k[j].n;
    }
}

static void try_all(const orient *o, component *k, uint32_t n, int64_t combinations)
{
    double least = 0.0;
    int64_t best = 0;

    for (int64_t i = 0; i < combinations; i++) {
        choose_all(o, k, n, i, false);
        double cost = price(o);
        if (i == 0 || cost < least) {
            least = cost;
            best = i;
        }
    }
    choose_all(o, k, n, best, true);
}

static void try_each(const orient *o, component *k, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++) {
        double least = 0.0;
        for (int i = 0; i < k[j].n; i++) {
            choose(o, &k[j], i);
            double cost = price(o);
            if (i == 0 || cost < least) {
                least = cost;
                k[j].best = i;
            }
        }
        choose(o, &k[j], k[j].best);
    }
}

static component *find_components(const orient *o, uint32_t *n)
{
    uint32_t *index = ARENA_ARRAY(o->p->a, uint32_t, o->p->value.n);
    VEC(component) all = {0};

    for (ir_val v = 1; v < o->p->value.n; v++) {
        if (!has_choice(o, v))
            continue;
        uint32_t *at = &index[root(o->tile, v)];
        if (!*at) {
            component fresh = {0};
            *at = vec_push(&all, o->p->a, fresh) + 1;
        }
        member m = {.v = v};
        vec_push(&all.at[*at - 1].members, o->p->a, m);
        add_options(o, &all.at[*at - 1], v);
    }
    *n = all.n;
    return all.at;
}

static void search(const orient *o)
{
    uint32_t n;
    component *k = find_components(o, &n);
    int64_t combinations = 1;

    for (uint32_t j = 0; j < n; j++) {
        find_lanes(o, &k[j]);
        choose(o, &k[j], 0);
        if (combinations <= MAX_COMBINATIONS)
            combinations *= k[j].n;
    }
    if (combinations <= MAX_COMBINATIONS)
        try_all(o, k, n, combinations);
    else
        try_each(o, k, n);
}

void cpu_orient(cpu_plan *p)
{
    orient o = {.p = p};
    uint32_t n = p->value.n;

    o.tile = ARENA_ARRAY(p->a, uint32_t, n);
    o.dimension = ARENA_ARRAY(p->a, uint32_t, (size_t)n * TILE_MAX_RANK);
    for (uint32_t i = 0; i < n; i++)
        o.tile[i] = i;
    for (uint32_t i = 0; i < n * TILE_MAX_RANK; i++)
        o.dimension[i] = i;
    ir_walk(p->fn->body, link_op, &o);
    for (ir_val v = 1; v < n; v++) {
        if (cpu_is_tile(p, v))
            p->value.at[v].lane = (uint8_t)last_wide(type_of(&o, v));
    }
    search(&o);
}
