/* pad_dots: a dot whose extents are no multiples of the matrix unit's gets tiles whose are.
 *
 *   %q = load %x, %i, %0 extent=[64, 40] : bf16[64, 40]      extent=[64, 48] : bf16[64, 48]
 *   %t = trans %k : bf16[40, 64]                        ->   bf16[48, 64]
 *   %s = dot %q, %t, %z : f32[64, 64]                        the same
 *
 * All that is tied to a dimension (tied_dims.h) grows with it, around loops too, up to the next
 * multiple of 16, or nothing does. What is behind the end of a tensor reads as 0 and is not
 * written; what else is there is seen by nobody but
 *
 *   a product along it    0 times what is finite: a factor of which that is not known gets 0 by a
 *                         `where`, for 0 * inf would be NaN
 *   a reduction of it     sums add 0, others get their neutral element by a `where`
 *
 * Of extents below 8 nothing is padded: most of each product would be padding. Nor where shared
 * memory has room for the factors as they are, but not for longer ones.
 *
 * needs: level 1, before layouts. leaves: `inside` bits of what grew cleared; dots of exact
 * dtypes as they were, but for tiles that they share. The sum of nothing but -0 may be 0.
 */
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/ireval.h"
#include "compiler/schedule/schedule_pass.h"
#include "compiler/schedule/tied_dims.h"
#include <math.h>

enum { UNIT = 16, COLUMNS = 8, LEAST = 8 };

typedef struct content { /* what is behind the end along a dimension, everywhere */
    bool known;
    ir_scalar v;
} content;

typedef struct masked {
    ir_val v, res;
    int dim;
    uint64_t neutral;
} masked;

typedef struct padding {
    ir_module *m;
    ir_fn *fn;
    arena *a;
    const gpu_limits *gpu;
    tied_dims tied;
    int32_t *from;   /* by class: the extent that grows; 0: none */
    bool *told;      /* by class: it is in the result */
    content *behind; /* by node, of what grows */
    VEC(masked) masks;
    VEC(padded_dim) found;
    ir_val nvals; /* those that were there first */
    uint32_t changes;
} padding;

static int32_t padded(int32_t n)
{
    return (n + UNIT - 1) / UNIT * UNIT;
}

static bool is_tile(const padding *p, ir_val v)
{
    return ir_type_of(p->fn, v).kind == TYPE_TILE;
}

static int32_t grows(const padding *p, ir_val v, int d)
{
    return v < p->nvals && is_tile(p, v) ? p->from[tied_class(&p->tied, v, d)] : 0;
}

/* ---- what grows ------------------------------------------------------------------------------ */

typedef struct naming {
    const padding *p;
    uint32_t class;
    const char *name;
} naming;

/* A dimension of a tensor that is sliced along the class. */
static void find_name(ir_op *op, void *arg)
{
    naming *n = arg;
    const ir_fn *fn = n->p->fn;

    if (n->name || !op_is_access((enum ir_opcode)op->code))
        return;
    const ir_param *tensor = &fn->params.at[ir_value_of(fn, op->args[0])->index];
    ir_val tile = op->nres ? op->res : op->args[op->nargs - 1];
    for (int d = 0, k = 0; d < (int)op->attr[0].ints.n; d++) {
        if (op->attr[0].ints.at[d] && tied_class(&n->p->tied, tile, k++) == n->class)
            n->name = fn->dims.at[tensor->dim[d]].name;
    }
}

static void tell(padding *p, uint32_t class, int32_t from, const tied_stop *stop)
{
    naming n = {p, class, NULL};

    if (p->told[class])
        return;
    p->told[class] = true;
    ir_walk(p->fn->body, find_name, &n);
    padded_dim x = {.name = n.name, .from = from, .to = padded(from), .why = stop->why};
    if (stop->op)
        x.where = stop->op->where;
    for (uint32_t i = 0; i < p->found.n; i++) { /* of a loop's copy, the same again */
        const padded_dim *y = &p->found.at[i];
        if (x.why && y->why == x.why && y->where.lo == x.where.lo && y->from == from)
            return;
    }
    vec_push(&p->found, p->m->a, x);
}

/* M, K and N of a dot. */
typedef struct wanted {
    int32_t extent[3];
    uint32_t class[3];
    bool grows[3];
} wanted;

/* Shared memory has room for the factors, or has none for them as they are either. */
static bool has_room(const padding *p, const wanted *w)
{
    int64_t to[3], from = (int64_t)w->extent[1] * (w->extent[0] + w->extent[2]);

    for (int i = 0; i < 3; i++)
        to[i] = w->grows[i] ? padded(w->extent[i]) : w->extent[i];
    int64_t half = p->gpu->shared_per_block / 2; /* elements have two bytes */
    return to[1] * (to[0] + to[2]) <= half || from > half;
}

/* Can it grow as far as it must? It takes columns in eights, but sixteen are read at once. */
static bool may_grow(padding *p, wanted *w)
{
    static const tied_stop too_short = {"it is too short to be worth it", NULL};
    static const int unit[] = {UNIT, UNIT, COLUMNS};
    bool all = true;

    for (int i = 0; i < 3; i++) {
        int32_t n = w->extent[i];
        const tied_stop *stop = n < LEAST ? &too_short : &p->tied.stop[w->class[i]];
        w->grows[i] = n % UNIT && !stop->why;
        if (w->grows[i] || n % unit[i] == 0)
            continue;
        all = false;
        tell(p, w->class[i], n, stop);
    }
    return all;
}

/* A dot that the matrix unit would compute, with longer tiles. */
static void want(ir_op *op, void *arg)
{
    padding *p = arg;

    if (op->code != OP_DOT)
        return;
    ir_val a = op->args[0], b = op->args[1];
    ir_type ta = ir_type_of(p->fn, a), tb = ir_type_of(p->fn, b);
    wanted w = {
        {ta.shape[0], ta.shape[1], tb.shape[1]},
        {tied_class(&p->tied, a, 0), tied_class(&p->tied, a, 1), tied_class(&p->tied, b, 1)},
        {false}};
    if ((ta.dtype != DT_F16 && ta.dtype != DT_BF16) || !may_grow(p, &w))
        return;
    const tied_stop no_room = {"its factors would not fit shared memory", op};
    bool room = has_room(p, &w);
    for (int i = 0; i < 3; i++) {
        if (w.grows[i] && room)
            p->from[w.class[i]] = w.extent[i];
        else if (w.grows[i])
            tell(p, w.class[i], w.extent[i], &no_room);
    }
}

/* No tile becomes larger than tiles may be. */
static bool all_fit(const padding *p)
{
    for (ir_val v = 1; v < p->nvals; v++) {
        ir_type t = ir_type_of(p->fn, v);
        int64_t n = 1;
        for (int d = 0; d < t.rank && t.kind == TYPE_TILE; d++)
            n *= grows(p, v, d) ? padded(t.shape[d]) : t.shape[d];
        if (n > TILE_MAX_ELEMENTS)
            return false;
    }
    return true;
}

static void tell_what_grows(padding *p)
{
    static const tied_stop nothing = {NULL, NULL};

    for (uint32_t class = 0; class < p->tied.n; class ++) {
        if (p->from[class])
            tell(p, class, p->from[class], &nothing);
    }
}

/* ---- growing --------------------------------------------------------------------------------- */

static void grow_values(padding *p)
{
    for (ir_val v = 1; v < p->nvals; v++) {
        ir_type *t = &p->fn->values.at[v].type;
        for (int d = 0; d < t->rank && t->kind == TYPE_TILE; d++) {
            if (!grows(p, v, d))
                continue;
            t->shape[d] = padded(t->shape[d]);
            p->changes++;
        }
    }
}

static void grow_access(ir_op *op, void *arg)
{
    padding *p = arg;
    uint32_t rank = op->attr[0].ints.n;

    if (!op_is_access((enum ir_opcode)op->code))
        return;
    ir_val tile = op->nres ? op->res : op->args[op->nargs - 1];
    int64_t *extent = ARENA_ARRAY(p->m->a, int64_t, rank);
    int k = 0;
    for (uint32_t d = 0; d < rank; d++) {
        extent[d] = op->attr[0].ints.at[d];
        if (extent[d] == 0 || !grows(p, tile, k++))
            continue;
        extent[d] = padded((int32_t)extent[d]);
        op->attr[1].i &= ~((int64_t)1 << d);
    }
    op->attr[0].ints.at = extent;
}

/* ---- what is behind the end ------------------------------------------------------------------ */

static content *behind(padding *p, ir_val v, int d)
{
    return &p->behind[v * TILE_MAX_RANK + (uint32_t)d];
}

static bool is_real(const padding *p, ir_val v)
{
    return dtype_is_float((enum dtype)ir_type_of(p->fn, v).dtype);
}

static content constant(const padding *p, ir_val scalar)
{
    const ir_op *def = ir_def(p->fn, scalar);

    if (def && def->code == OP_CONST_INT)
        return (content){true, {.i = def->attr[0].i}};
    if (def && def->code == OP_CONST_FLOAT)
        return (content){true, {.f = def->attr[0].f}};
    return (content){0};
}

static bool same(const content *x, const content *y)
{
    return x->known && y->known && x->v.i == y->v.i; /* bits, of floats too */
}

/* Of an operation on elements, along dimension d. */
static content computed(padding *p, const ir_op *op, int d)
{
    ir_scalar in[3];
    bool known = true;

    for (int i = 0; i < op->nargs; i++) {
        const content *x = behind(p, op->args[i], d);
        known = known && x->known;
        in[i] = x->v;
    }
    if (!known && op->code == OP_WHERE &&
        same(behind(p, op->args[1], d), behind(p, op->args[2], d)))
        return *behind(p, op->args[1], d);
    if (!known)
        return (content){0};
    enum dtype from = (enum dtype)ir_type_of(p->fn, op->args[op->code == OP_WHERE]).dtype;
    enum dtype to = (enum dtype)ir_type_of(p->fn, op->res).dtype;
    return (content){true, eval_op((enum ir_opcode)op->code, from, to, in, false)};
}

static content find_content(padding *p, const ir_op *op, int d)
{
    bool elementwise = (op_info((enum ir_opcode)op->code)->traits & OPT_EWISE) != 0;

    if (elementwise || op->code == OP_CAST)
        return computed(p, op, d);
    switch ((int)op->code) {
    case OP_SPLAT:
        return constant(p, op->args[0]);
    case OP_EXPAND:
        return *behind(p, op->args[0], d - (d > (int)op->attr[0].i));
    case OP_BROADCAST:
        return grows(p, op->args[0], d) ? *behind(p, op->args[0], d) : (content){0};
    case OP_TRANS:
        return *behind(p, op->args[0], (int)op->attr[0].ints.at[d]);
    default:
        return (content){.known = op_is_access((enum ir_opcode)op->code)}; /* 0 */
    }
}

/* ---- where it would be seen ------------------------------------------------------------------ */

/* 1 where the index along dimension d is below n. */
static ir_val below(ir_builder *b, ir_type t, int d, int32_t n)
{
    ir_val i = ir_arange(b, 0, t.shape[d]);
    ir_val end = ir_splat(b, ir_const_int(b, DT_I32, n), ir_type_of(b->fn, i));
    ir_val mask = ir_binary(b, OP_CMP_LT, i, end);

    for (int axis = 0; axis < t.rank; axis++) {
        if (axis != d)
            mask = ir_expand(b, mask, axis);
    }
    return t.rank > 1 ? ir_broadcast(b, mask, type_with_dtype(t, DT_I1)) : mask;
}

/* v with a neutral element behind the end, computed where v is. */
static ir_val mask(padding *p, const ir_op *at, ir_val v, int d, ir_scalar neutral)
{
    const ir_value *val = ir_value_of(p->fn, v);
    ir_builder b = ir_before(p->fn, val->def ? val->def->next : val->block->first);
    ir_type t = val->type;

    for (uint32_t i = 0; i < p->masks.n; i++) {
        const masked *x = &p->masks.at[i];
        if (x->v == v && x->dim == d && x->neutral == (uint64_t)neutral.i)
            return x->res;
    }
    b.where = at->where;
    ir_val keep = below(&b, t, d, grows(p, v, d));
    ir_val c = is_real(p, v) ? ir_const_float(&b, (enum dtype)t.dtype, neutral.f)
                             : ir_const_int(&b, (enum dtype)t.dtype, neutral.i);
    ir_val res = ir_where(&b, keep, v, ir_splat(&b, c, t));
    vec_push(&p->masks, p->a, ((masked){v, res, d, (uint64_t)neutral.i}));
    p->changes++;
    return res;
}

static bool is_zero(const padding *p, ir_val v, const content *x)
{
    return x->known && (is_real(p, v) ? x->v.f == 0 : x->v.i == 0);
}

static bool is_finite(const padding *p, ir_val v, const content *x)
{
    return !is_real(p, v) || (x->known && isfinite(x->v.f));
}

static void mask_factors(padding *p, ir_op *op)
{
    ir_val a = op->args[0], b = op->args[1];
    const content *in_a = behind(p, a, 1), *in_b = behind(p, b, 0);
    bool zero = is_zero(p, a, in_a) || is_zero(p, b, in_b);

    if (!grows(p, a, 1))
        return;
    if (!is_finite(p, a, in_a) || (!zero && is_finite(p, b, in_b)))
        op->args[0] = mask(p, op, a, 1, (ir_scalar){0});
    if (!is_finite(p, b, in_b))
        op->args[1] = mask(p, op, b, 0, (ir_scalar){0});
}

static ir_scalar neutral_of(enum ir_opcode code, enum dtype t)
{
    bool most = code == OP_REDUCE_MIN; /* what every other element is below */
    int bits = dtype_bits(t);
    int64_t top = (int64_t)(~(uint64_t)0 >> 1) >> (64 - bits);

    if (code == OP_REDUCE_SUM)
        return (ir_scalar){0};
    if (dtype_is_float(t))
        return (ir_scalar){.f = most ? (double)INFINITY : -(double)INFINITY};
    if (dtype_kind(t) == DTK_SINT)
        return (ir_scalar){.i = most ? top : -top - 1};
    return (ir_scalar){.i = most ? -1 : 0};
}

static void mask_reduced(padding *p, ir_op *op)
{
    ir_val v = op->args[0];
    int axis = (int)op->attr[0].i;
    const content *x = behind(p, v, axis),
                  neutral = {true, neutral_of((enum ir_opcode)op->code,
                                              (enum dtype)ir_type_of(p->fn, v).dtype)};

    if (!grows(p, v, axis) || same(x, &neutral) || (op->code == OP_REDUCE_SUM && is_zero(p, v, x)))
        return;
    op->args[0] = mask(p, op, v, axis, neutral.v);
}

static void look_behind(ir_op *op, void *arg)
{
    padding *p = arg;

    if (op->code == OP_DOT)
        mask_factors(p, op);
    else if (op->code == OP_REDUCE_MAX || op->code == OP_REDUCE_MIN || op->code == OP_REDUCE_SUM)
        mask_reduced(p, op);
    for (int d = 0; op->nres == 1 && is_tile(p, op->res) && d < ir_type_of(p->fn, op->res).rank;
         d++) {
        if (grows(p, op->res, d))
            *behind(p, op->res, d) = find_content(p, op, d);
    }
}

/* ---- */

static void grow(padding *p)
{
    p->behind = ARENA_ARRAY(p->a, content, p->tied.n);
    grow_values(p);
    ir_walk(p->fn->body, grow_access, p);
    ir_walk(p->fn->body, look_behind, p);
}

tw_status pass_pad_dots(pass_cx *cx, ir_module *m)
{
    padding p = {.m = m, .fn = m->kernel, .a = cx->scratch, .nvals = m->kernel->values.n};

    p.gpu = schedule_of(cx)->gpu;
    schedule_result *result = &schedule_of(cx)->result;

    p.tied = tied_dims_of(cx->scratch, m->kernel);
    p.from = ARENA_ARRAY(cx->scratch, int32_t, p.tied.n);
    p.told = ARENA_ARRAY(cx->scratch, bool, p.tied.n);
    ir_walk(m->kernel->body, want, &p);
    if (all_fit(&p)) {
        tell_what_grows(&p);
        grow(&p);
    }
    result->padded = p.found.at;
    result->npadded = p.found.n;
    cx->changes = p.changes;
    return TW_OK;
}
