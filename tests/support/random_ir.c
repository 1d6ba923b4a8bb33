#include "tests/support/random_ir.h"
#include <string.h>

enum { MAX_STATEMENTS = 26 };

typedef random_ir gen;
typedef random_tensor tensor;

uint32_t random_ir_below(gen *g, uint32_t n)
{
    g->state = g->state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(g->state >> 33) % n;
}

static uint32_t draw(gen *g, uint32_t n)
{
    return random_ir_below(g, n);
}

static bool chance(gen *g, uint32_t percent)
{
    return draw(g, 100) < percent;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static void lay_out(gen *g, tensor *t)
{
    int64_t step = chance(g, 20) ? 2 : 1;
    int order[3] = {2, 1, 0}; /* innermost first, of the last rank dimensions */
    int at = 0;

    for (int d = t->rank - 1; d >= 0; d--)
        order[at++] = d;
    if (t->rank > 1 && chance(g, 25)) {
        int swap = order[0];
        order[0] = order[1];
        order[1] = swap;
    }
    for (int i = 0; i < t->rank; i++) {
        t->stride[order[i]] = step;
        step = step * t->extent[order[i]] + (int64_t)draw(g, 3);
    }
    size_t element = (size_t)dtype_bytes(t->dtype);
    t->bytes = 0;
    for (int d = 0; d < t->rank; d++)
        t->bytes += (size_t)((t->extent[d] - 1) * t->stride[d]) * element;
    t->bytes += element;
    t->at_start = chance(g, 30);
}

static const struct {
    enum dtype dtype;
    int rank;
    enum ir_direction direction;
} kinds[TENSORS] = {{DT_F32, 1, DIR_IN},   {DT_F32, 2, DIR_IN},  {DT_F32, 3, DIR_IN},
                    {DT_I32, 1, DIR_IN},   {DT_I32, 2, DIR_IN},  {DT_I64, 2, DIR_IN},
                    {DT_F32, 1, DIR_OUT},  {DT_F32, 2, DIR_OUT}, {DT_F32, 3, DIR_OUT},
                    {DT_I32, 2, DIR_OUT},  {DT_I64, 3, DIR_OUT}, {DT_I1, 2, DIR_OUT},
                    {DT_F32, 2, DIR_INOUT}};

/* Dimension symbols: constants, and others whose hidden parameters come after the visible ones. */
static void declare(gen *g)
{
    static const char *const name[TENSORS] = {"a", "b", "c", "d", "e", "f", "g",
                                              "h", "i", "j", "k", "l", "m"};
    int hidden[MAX_DIMS], nhidden = 0;

    for (int i = 0; i < TENSORS; i++) {
        tensor *t = &g->t[i];
        *t = (tensor){
            .dtype = kinds[i].dtype, .rank = kinds[i].rank, .direction = kinds[i].direction};
        ir_param p = {.kind = PARAM_TENSOR,
                      .name = name[i],
                      .direction = t->direction,
                      .type = type_view(t->dtype, t->rank)};
        for (int d = 0; d < t->rank; d++) {
            bool known = chance(g, 40);
            t->extent[d] = 1 + draw(g, 60);
            const char *symbol = known ? NULL : arena_printf(&g->a, "N%d%d", i, d);
            p.dim[d] = ir_add_dim(g->m->kernel, symbol, known, t->extent[d]);
            g->dim[p.dim[d]] = t->extent[d];
            if (!known)
                hidden[nhidden++] = p.dim[d];
        }
        lay_out(g, t);
        p.unit_inner = t->stride[t->rank - 1] == 1 && chance(g, 90);
        ir_add_param(g->m->kernel, p);
    }
    static const enum dtype scalar[SCALARS] = {DT_I32, DT_F32, DT_I64};
    static const char *const called[SCALARS] = {"si", "sf", "sl"};
    for (int i = 0; i < SCALARS; i++) {
        ir_param p = {.kind = PARAM_SCALAR, .name = called[i], .type = type_scalar(scalar[i])};
        ir_add_param(g->m->kernel, p);
    }
    for (int i = 0; i < nhidden; i++) {
        ir_param p = {.kind = PARAM_DIM,
                      .type = type_scalar(DT_I32),
                      .symbol = hidden[i],
                      .name = arena_printf(&g->a, "n%d", i)};
        ir_add_param(g->m->kernel, p);
    }
}

static void write_element(enum dtype t, unsigned char *p, int64_t v)
{
    float f = (float)v;
    int32_t i = (int32_t)v;

    if (t == DT_F32)
        memcpy(p, &f, sizeof f);
    else if (t == DT_I32)
        memcpy(p, &i, sizeof i);
    else if (t == DT_I64)
        memcpy(p, &v, sizeof v);
    else
        *p = (unsigned char)(v & 1);
}

void random_ir_fill(gen *g, int i, unsigned char *p)
{
    const tensor *t = &g->t[i];

    for (size_t k = 0; k < t->bytes / (size_t)dtype_bytes(t->dtype); k++)
        write_element(t->dtype, p + k * (size_t)dtype_bytes(t->dtype), (int64_t)draw(g, 17) - 8);
}

/* ---- the pool of values ---------------------------------------------------------------------- */

static ir_type type_of(gen *g, ir_val v)
{
    return ir_type_of(g->b.fn, v);
}

static double bound_of(gen *g, ir_val v)
{
    for (int i = g->npool - 1; i >= 0; i--) {
        if (g->pool[i] == v)
            return g->bound[i];
    }
    return 1e30;
}

static void keep(gen *g, ir_val v, double bound)
{
    if (g->npool == MAX_POOL)
        return;
    g->pool[g->npool] = v;
    g->bound[g->npool++] = bound;
}

static ir_val i32_const(gen *g, int64_t v)
{
    return ir_const_int(&g->b, DT_I32, v);
}

/* A constant of the shape and dtype of like. */
static ir_val constant_like(gen *g, ir_val like, int64_t v)
{
    ir_type t = type_of(g, like);
    ir_val c = dtype_is_float((enum dtype)t.dtype)
                   ? ir_const_float(&g->b, (enum dtype)t.dtype, (double)v)
                   : ir_const_int(&g->b, (enum dtype)t.dtype, t.dtype == DT_I1 ? v & 1 : v);

    return t.kind == TYPE_TILE ? ir_splat(&g->b, c, t) : c;
}

/* Puts v, small again, into the pool. */
static ir_val tame(gen *g, ir_val v, double bound)
{
    ir_type t = type_of(g, v);

    if (t.dtype == DT_F32 && bound > 4096.0) {
        ir_val i = ir_cast(&g->b, v, DT_I32);
        i = ir_binary(&g->b, OP_AND, i, constant_like(g, i, 31));
        i = ir_binary(&g->b, OP_SUB, i, constant_like(g, i, 9));
        v = ir_cast(&g->b, i, DT_F32);
        bound = 31.0;
    }
    keep(g, v, bound);
    return v;
}

/* A value of the pool that has this kind, dtype (DT_NONE: any) and rank (0: any); 0 = none. */
static ir_val pick(gen *g, enum type_kind kind, enum dtype dtype, int rank)
{
    for (int tries = 0; tries < 40 && g->npool; tries++) {
        ir_val v = g->pool[draw(g, (uint32_t)g->npool)];
        ir_type t = type_of(g, v);
        if (t.kind == kind && (dtype == DT_NONE || t.dtype == dtype) && (!rank || t.rank == rank))
            return v;
    }
    return 0;
}

static ir_val pick_like(gen *g, ir_val like)
{
    for (int tries = 0; tries < 40; tries++) {
        ir_val v = g->pool[draw(g, (uint32_t)g->npool)];
        if (type_equal(type_of(g, v), type_of(g, like)))
            return v;
    }
    return constant_like(g, like, (int64_t)draw(g, 9) - 4);
}

/* Some i32 scalar between about -6 and 60. */
static ir_val some_index(gen *g)
{
    ir_val v = chance(g, 50) ? pick(g, TYPE_SCALAR, DT_I32, 0) : 0;

    if (!v)
        return i32_const(g, (int64_t)draw(g, chance(g, 50) ? 2 : 60) - (chance(g, 20) ? 6 : 0));
    v = ir_binary(&g->b, OP_AND, v, i32_const(g, 31));
    return chance(g, 30) ? ir_binary(&g->b, OP_SUB, v, i32_const(g, 6)) : v;
}

static int32_t some_extent(gen *g)
{
    return g->extent[draw(g, 4)];
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* A tile of n indices, mostly inside of a tensor. */
static ir_val some_indices(gen *g, int32_t n)
{
    ir_val v = chance(g, 60) ? pick(g, TYPE_TILE, DT_I32, 1) : 0;

    if (!v || type_of(g, v).shape[0] != n)
        return ir_arange(&g->b, (int64_t)draw(g, 20) - 3, n);
    return chance(g, 70) ? ir_binary(&g->b, OP_AND, v, constant_like(g, v, 31)) : v;
}

static ir_val load_of(gen *g, int t, const int32_t *extent)
{
    ir_val index[3];

    for (int d = 0; d < g->t[t].rank; d++)
        index[d] = extent[d] && chance(g, 12) ? some_indices(g, extent[d]) : some_index(g);
    ir_val v = ir_load(&g->b, ir_param_value(g->b.fn, t), index, extent);
    keep(g, v, 4096.0);
    return v;
}

static void make_load(gen *g)
{
    int t = (int)draw(g, 7);
    int32_t extent[3];

    if (t == 6)
        t = 12; /* the one that is also written */
    for (int d = 0; d < g->t[t].rank; d++)
        extent[d] = chance(g, 20) ? 0 : some_extent(g);
    load_of(g, t, extent);
}

static void make_store(gen *g)
{
    int t = 6 + (int)draw(g, 7), rank = g->t[t].rank;
    ir_val v = pick(g, chance(g, 85) ? TYPE_TILE : TYPE_SCALAR, g->t[t].dtype, 0), index[3];
    int32_t extent[3] = {0, 0, 0};

    if (!v || type_of(g, v).rank > rank)
        return;
    ir_type type = type_of(g, v);
    int skip = rank - type.rank, next = 0;
    for (int d = 0; d < rank; d++) {
        index[d] = some_index(g);
        if (skip && (chance(g, 50) || next == type.rank))
            skip--;
        else if (next < type.rank)
            extent[d] = type.shape[next++];
    }
    ir_store(&g->b, ir_param_value(g->b.fn, t), index, extent, v);
}

/* ---- elementwise ----------------------------------------------------------------------------- */

static void make_unary(gen *g)
{
    static const enum ir_opcode any[] = {OP_NEG, OP_ABS}, floats[] = {OP_FLOOR, OP_CEIL, OP_EXP2};
    ir_val v = pick(g, chance(g, 80) ? TYPE_TILE : TYPE_SCALAR, DT_NONE, 0);

    if (!v)
        return;
    ir_type t = type_of(g, v);
    if (!dtype_is_float((enum dtype)t.dtype) && (t.dtype == DT_I1 || chance(g, 30))) {
        keep(g, ir_unary(&g->b, OP_NOT, v), 0.0);
    } else if (t.dtype == DT_F32 && chance(g, 40)) {
        enum ir_opcode code = floats[draw(g, 3)];
        if (code != OP_EXP2) {
            keep(g, ir_unary(&g->b, code, v), bound_of(g, v));
            return;
        }
        v = ir_binary(&g->b, OP_MIN, ir_unary(&g->b, OP_ABS, v), constant_like(g, v, 10));
        keep(g, ir_unary(&g->b, OP_EXP2, v), 1024.0);
    } else {
        keep(g, ir_unary(&g->b, any[draw(g, 2)], v), bound_of(g, v));
    }
}

static ir_val divided(gen *g, ir_val x, ir_val y)
{
    y = ir_binary(&g->b, OP_ADD, ir_unary(&g->b, OP_ABS, y), constant_like(g, y, 1));
    return ir_unary(&g->b, OP_FLOOR, ir_binary(&g->b, OP_DIV, x, y));
}

static void make_binary(gen *g)
{
    static const enum ir_opcode ints[] = {OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_REM, OP_AND,
                                          OP_OR,  OP_XOR, OP_SHL, OP_SHR, OP_MAX, OP_MIN};
    static const enum ir_opcode floats[] = {OP_ADD, OP_SUB, OP_MUL, OP_MAX, OP_MIN, OP_RUNNING_MAX};
    ir_val x = pick(g, chance(g, 80) ? TYPE_TILE : TYPE_SCALAR, DT_NONE, 0);

    if (!x)
        return;
    ir_val y = pick_like(g, x);
    double bx = bound_of(g, x), by = bound_of(g, y);
    switch (type_of(g, x).dtype) {
    case DT_F32:
        if (chance(g, 15)) {
            tame(g, divided(g, x, y), bx);
        } else if (chance(g, 20)) {
            tame(g, ir_fma(&g->b, x, y, pick_like(g, x)), 1e30);
        } else {
            enum ir_opcode code = floats[draw(g, 6)];
            tame(g, ir_binary(&g->b, code, x, y), code == OP_MUL ? bx * by : bx + by);
        }
        return;
    case DT_I1:
        keep(g, ir_binary(&g->b, ints[5 + draw(g, 3)], x, y), 0.0);
        return;
    default:
        keep(g, ir_binary(&g->b, ints[draw(g, 12)], x, y), 0.0);
    }
}

static void make_choice(gen *g)
{
    static const enum ir_opcode compare[] = {OP_CMP_EQ, OP_CMP_NE, OP_CMP_LT, OP_CMP_LE};
    ir_val x = pick(g, chance(g, 80) ? TYPE_TILE : TYPE_SCALAR, DT_NONE, 0);

    if (!x)
        return;
    ir_val y = pick_like(g, x);
    ir_val c = ir_binary(&g->b, compare[draw(g, type_of(g, x).dtype == DT_I1 ? 2 : 4)], x, y);
    keep(g, c, 0.0);
    double bound = bound_of(g, x) + bound_of(g, y);
    keep(g, ir_where(&g->b, c, x, y), bound < 4096.0 ? bound : 4096.0);
}

static void make_cast(gen *g)
{
    static const enum dtype to[] = {DT_I32, DT_F32, DT_I64, DT_I1};
    ir_val v = pick(g, chance(g, 80) ? TYPE_TILE : TYPE_SCALAR, DT_NONE, 0);

    if (!v)
        return;
    enum dtype d = to[draw(g, 4)], from = (enum dtype)type_of(g, v).dtype;
    double bound = from == DT_F32 ? bound_of(g, v) : from == DT_I1 ? 1.0 : 1e30;
    tame(g, ir_cast(&g->b, v, d), bound);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void make_leaf(gen *g)
{
    ir_val s = pick(g, TYPE_SCALAR, DT_NONE, 0);
    int32_t shape[4];
    int rank = 1 + (int)draw(g, 3);

    if (!s || chance(g, 40)) {
        keep(g, ir_arange(&g->b, (int64_t)draw(g, 20) - 10, some_extent(g)), 0.0);
        return;
    }
    for (int d = 0; d < rank; d++)
        shape[d] = some_extent(g);
    enum dtype t = (enum dtype)type_of(g, s).dtype;
    keep(g, ir_splat(&g->b, s, type_tile(t, rank, shape)), bound_of(g, s));
}

static void make_wide(gen *g)
{
    ir_val v = pick(g, TYPE_TILE, DT_NONE, 0);

    if (!v || type_of(g, v).rank > 3)
        return;
    double bound = bound_of(g, v);
    v = ir_expand(&g->b, v, (int)draw(g, type_of(g, v).rank + 1u));
    ir_type t = type_of(g, v);
    int64_t n = 1;
    for (int d = 0; d < t.rank; d++) {
        if (t.shape[d] == 1)
            t.shape[d] = some_extent(g);
        n *= t.shape[d];
    }
    if (n <= 40000)
        keep(g, ir_broadcast(&g->b, v, t), bound);
}

static void make_turned(gen *g)
{
    ir_val v = pick(g, TYPE_TILE, DT_NONE, 0);
    int perm[4];

    if (!v)
        return;
    int rank = type_of(g, v).rank;
    for (int d = 0; d < rank; d++)
        perm[d] = d;
    for (int d = rank - 1; d > 0; d--) {
        int with = (int)draw(g, (uint32_t)d + 1), swap = perm[d];
        perm[d] = perm[with];
        perm[with] = swap;
    }
    keep(g, ir_trans(&g->b, v, perm), bound_of(g, v));
}

static void make_reshaped(gen *g)
{
    ir_val v = pick(g, TYPE_TILE, DT_NONE, 0);

    if (!v)
        return;
    ir_type t = type_of(g, v), to = t;
    if (t.rank == 1 && t.shape[0] % 8 == 0) {
        to = type_tile((enum dtype)t.dtype, 2, (int32_t[]){8, t.shape[0] / 8});
    } else if (t.rank >= 2) {
        to.rank--;
        to.shape[to.rank - 1] *= t.shape[to.rank];
        to.shape[to.rank] = 0;
    }
    ir_op *op = ir_build(&g->b, OP_RESHAPE, &v, 1, NULL, to);
    keep(g, op->res, bound_of(g, v));
}

static void make_reduced(gen *g)
{
    static const enum ir_opcode codes[] = {OP_REDUCE_SUM, OP_SCAN_SUM, OP_REDUCE_MAX,
                                           OP_REDUCE_MIN};
    ir_val v = pick(g, TYPE_TILE, DT_NONE, 0);

    if (!v)
        return;
    ir_type t = type_of(g, v);
    int axis = (int)draw(g, t.rank);
    enum ir_opcode code = codes[draw(g, t.dtype == DT_I1 ? 2 : 4)];
    bool sum = code == OP_REDUCE_SUM || code == OP_SCAN_SUM;
    ir_val r = ir_build(&g->b, code, &v, 1, (ir_attr[]){{.i = axis}}, (ir_type){0})->res;
    tame(g, r, sum ? bound_of(g, v) * t.shape[axis] : bound_of(g, v));
}

static ir_val some_matrix(gen *g, enum dtype d, int32_t rows, int32_t columns)
{
    int32_t extent[2] = {rows, columns};

    for (int tries = 0; tries < 20; tries++) {
        ir_val v = pick(g, TYPE_TILE, d, 2);
        if (v && type_of(g, v).shape[0] == rows && type_of(g, v).shape[1] == columns)
            return v;
    }
    if (chance(g, 50))
        return load_of(g, d == DT_F32 ? 1 : 4, extent);
    extent[0] = columns;
    extent[1] = rows;
    return ir_trans(&g->b, load_of(g, d == DT_F32 ? 1 : 4, extent), (int[]){1, 0});
}

static void make_dot(gen *g)
{
    enum dtype d = chance(g, 80) ? DT_F32 : DT_I32;
    ir_val x = pick(g, TYPE_TILE, d, 2);

    if (!x || bound_of(g, x) > 4096.0)
        x = some_matrix(g, d, some_extent(g), some_extent(g));
    ir_type t = type_of(g, x);
    int32_t n = some_extent(g);
    ir_val y = some_matrix(g, d, t.shape[1], n);
    if (d == DT_F32 && (bound_of(g, x) * t.shape[1] > 4000.0 || bound_of(g, y) > 4096.0))
        return; /* products of 12 bits, 48 of them, stay below 2^24 only for small factors */
    ir_val acc = pick(g, TYPE_TILE, d, 2);
    ir_type want = type_tile(d, 2, (int32_t[]){t.shape[0], n});
    if (!acc || !type_equal(type_of(g, acc), want))
        acc = ir_splat(&g->b, d == DT_F32 ? ir_const_float(&g->b, d, 1.0) : i32_const(g, 1), want);
    tame(g, ir_dot(&g->b, x, y, acc), 1e30);
}

/* ---- control --------------------------------------------------------------------------------- */

static void make_block(gen *g, int statements);

/* n values of types that some pool values have. */
static int some_values(gen *g, ir_val *v, int most)
{
    int n = (int)draw(g, (uint32_t)most + 1);

    for (int i = 0; i < n; i++)
        v[i] = g->pool[draw(g, (uint32_t)g->npool)];
    return n;
}

static void keep_results(gen *g, const ir_op *op, int n)
{
    for (int i = 0; i < n; i++)
        tame(g, op->res + (ir_val)i, 1e30);
}

static void enter(gen *g, ir_block *blk)
{
    g->b = ir_at_end(g->b.fn, blk);
    g->depth++;
}

/* What a region hands on: of the types of like. */
static void end_region(gen *g, const ir_val *like, int n)
{
    ir_val out[4];

    for (int i = 0; i < n; i++)
        out[i] = pick_like(g, like[i]);
    ir_yield(&g->b, out, n);
    g->depth--;
}

static void make_for(gen *g)
{
    ir_val init[4], lo = i32_const(g, (int64_t)draw(g, 5) - 1), step;
    int n = some_values(g, init, 3), mark;
    ir_block *outer = g->b.block;
    bool down = chance(g, 30);

    step = i32_const(g, down ? -1 - (int64_t)draw(g, 2) : (int64_t)draw(g, 3) + !chance(g, 5));
    ir_val hi = down ? ir_binary(&g->b, OP_SUB, lo, i32_const(g, draw(g, 4)))
                     : ir_binary(&g->b, OP_ADD, lo, i32_const(g, draw(g, 4)));
    ir_op *op = ir_for(&g->b, lo, hi, step, init, n);
    mark = g->npool;
    enter(g, op->regions[0]);
    ir_val arg = op->regions[0]->arg;
    keep(g, arg, 0.0);
    for (int i = 0; i < n; i++)
        tame(g, arg + 1 + (ir_val)i, 1e30);
    make_block(g, 1 + (int)draw(g, 6));
    end_region(g, init, n);
    g->npool = mark;
    g->b = ir_at_end(g->b.fn, outer);
    keep_results(g, op, n);
}

static void make_if(gen *g)
{
    ir_val like[4], x = pick(g, TYPE_SCALAR, DT_I32, 0);
    int n = some_values(g, like, 3), mark = g->npool;
    ir_block *outer = g->b.block;
    ir_type types[4];

    if (!x)
        return;
    for (int i = 0; i < n; i++)
        types[i] = type_of(g, like[i]);
    ir_val c = ir_binary(&g->b, OP_CMP_LT, x, i32_const(g, draw(g, 4)));
    ir_op *op = ir_if(&g->b, c, types, n);
    for (int r = 0; r < 2; r++) {
        enter(g, op->regions[r]);
        make_block(g, (int)draw(g, 5));
        end_region(g, like, n);
        g->npool = mark;
    }
    g->b = ir_at_end(g->b.fn, outer);
    keep_results(g, op, n);
}

/* Value 0 counts turns. */
static void make_while(gen *g)
{
    ir_val init[4] = {i32_const(g, 0)}, pass[4];
    int n = 1 + some_values(g, init + 1, 2), mark = g->npool;
    ir_block *outer = g->b.block;
    int64_t turns = draw(g, 4);

    ir_op *op = ir_while(&g->b, init, n);
    enter(g, op->regions[0]);
    ir_val arg = op->regions[0]->arg;
    for (int i = 0; i < n; i++)
        tame(g, arg + (ir_val)i, 1e30);
    make_block(g, (int)draw(g, 3));
    pass[0] = arg;
    for (int i = 1; i < n; i++)
        pass[i] = chance(g, 50) ? arg + (ir_val)i : pick_like(g, init[i]);
    ir_condition(&g->b, ir_binary(&g->b, OP_CMP_LT, arg, i32_const(g, turns)), pass, n);
    g->depth--;
    g->npool = mark;
    enter(g, op->regions[1]);
    arg = op->regions[1]->arg;
    for (int i = 0; i < n; i++)
        tame(g, arg + (ir_val)i, 1e30);
    make_block(g, (int)draw(g, 4));
    pass[0] = ir_binary(&g->b, OP_ADD, arg, i32_const(g, 1));
    for (int i = 1; i < n; i++)
        pass[i] = pick_like(g, init[i]);
    ir_yield(&g->b, pass, n);
    g->depth--;
    g->npool = mark;
    g->b = ir_at_end(g->b.fn, outer);
    keep_results(g, op, n);
}

static void make_statement(gen *g)
{
    static void (*const make[])(gen *) = {
        make_load,     make_load,    make_unary,   make_binary, make_binary, make_binary,
        make_choice,   make_cast,    make_leaf,    make_wide,   make_wide,   make_turned,
        make_reshaped, make_reduced, make_reduced, make_dot,    make_dot,    make_store,
        make_store,    make_for,     make_if,      make_while};
    uint32_t n = sizeof make / sizeof *make;

    make[draw(g, g->depth < 2 && g->statements > 5 ? n : n - 3)](g);
}

static void make_block(gen *g, int statements)
{
    for (int i = 0; i < statements && g->statements > 0; i++) {
        g->statements--;
        make_statement(g);
    }
}

void random_ir_make(gen *g)
{
    static const int32_t extents[] = {1, 2, 3, 5, 7, 8, 13, 16, 17, 24, 31, 32, 33, 48};

    for (int i = 0; i < 4; i++)
        g->extent[i] = extents[draw(g, sizeof extents / sizeof *extents)];
    g->m = ir_module_new(&g->a, &g->names);
    g->m->kernel = ir_fn_new(g->m, "random");
    declare(g);
    ir_fn_begin(g->m->kernel);
    g->b = ir_at_end(g->m->kernel, g->m->kernel->body);
    g->statements = MAX_STATEMENTS;
    for (int i = 0; i < SCALARS; i++)
        keep(g, ir_param_value(g->m->kernel, TENSORS + i), 8.0);
    keep(g, ir_program_id(&g->b, 0), 0.0);
    keep(g, ir_num_programs(&g->b, 1), 0.0);
    for (int i = 0; i < 3; i++)
        make_load(g);
    make_block(g, MAX_STATEMENTS);
    for (int i = 0; i < 8; i++)
        make_store(g);
    ir_return(&g->b, NULL, 0);
}
