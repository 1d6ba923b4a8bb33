/* elab_tile: built-ins that make tiles, move them, reshape and reduce them. */
#include "compiler/base/check.h"
#include "dsl/elaborate.h"

/* ---- program_id, num_programs, arange, zeros, full ---- */

static value elab_axis(elab *cx, const expr *e, const value *v, bool count)
{
    const char *user = count ? "the axis of 'num_programs'" : "the axis of 'program_id'";
    int64_t axis = 0, most = cx->kernel ? (int64_t)cx->kernel->grid.n - 1 : 2;

    if (!elab_need_int(cx, v, e->list.at[0], user, 0, most, &axis))
        return val_bad();
    return val_run(count ? ir_num_programs(&cx->b, (int)axis) : ir_program_id(&cx->b, (int)axis));
}

static value elab_arange(elab *cx, const expr *e, const value *v)
{
    int64_t first = 0, end = 0;
    bool two = e->list.n == 2;

    if (two && !elab_need_int(cx, &v[0], e->list.at[0], "the start of 'arange'", INT32_MIN,
                              INT32_MAX, &first))
        return val_bad();
    if (!elab_need_int(cx, &v[two], e->list.at[two], "the end of 'arange'", first + 1, INT32_MAX,
                       &end))
        return val_bad();
    if (end - first > TILE_MAX_ELEMENTS) {
        elab_error(cx, DIAG_LIMIT, e->where, "a tile of %lld elements; at most %d are allowed",
                   (long long)(end - first), TILE_MAX_ELEMENTS);
        return val_bad();
    }
    return val_run(ir_arange(&cx->b, first, (int32_t)(end - first)));
}

static ir_type type_argument(elab *cx, const expr *e, const value *v)
{
    if (v->kind == VAL_TYPE)
        return v->as.type;
    if (v->kind == VAL_DTYPE)
        return type_scalar(v->dtype);
    diag *d = elab_error(cx, DIAG_BAD_OPERAND, e->where, "a type is needed here, not %s",
                         val_text(cx, v));
    diag_hint(cx->diags, d, "write it as f32[64, 128]");
    return (ir_type){0};
}

static value elab_fill(elab *cx, const expr *e, const value *v)
{
    ir_type t = type_argument(cx, e->list.at[0], &v[0]);
    value with = e->list.n == 2 ? v[1] : t.dtype == DT_I1 ? val_bool(false) : val_int(0);

    if (t.kind == TYPE_NONE)
        return val_bad();
    return val_run(val_as(cx, &with, t, e->list.at[e->list.n - 1], "the value of 'full'"));
}

value elab_make(elab *cx, const expr *e, value *v)
{
    int id = e->a->decl->id;

    if (!elab_need_program(cx, e->where, arena_printf(cx->a, "'%s'", e->a->lit.name)))
        return val_bad();
    if (id == BUILTIN_ARANGE)
        return elab_arange(cx, e, v);
    if (id == BUILTIN_ZEROS || id == BUILTIN_FULL)
        return elab_fill(cx, e, v);
    return elab_axis(cx, e, v, id == BUILTIN_NUM_PROGRAMS);
}

/* ---- load, store, atomics ---- */

static value elab_atomic(elab *cx, const expr *e, const value *v, enum ir_opcode code)
{
    const place *p = v[0].as.place;
    const char *user = arena_printf(cx->a, "the slice of '%s'", p->tensor->name);
    ir_val x[2] = {0};

    if (dtype_bits((enum dtype)p->type.dtype) < 32) {
        diag *d = elab_error(cx, DIAG_BAD_OPERAND, e->where,
                             "'%s' takes elements of 32 or 64 bits, not %s", e->a->lit.name,
                             dtype_name((enum dtype)p->type.dtype));
        diag_hint(cx->diags, d, "use a tensor of i32 or f32, and cast what it holds at the end");
        return val_bad();
    }
    for (uint32_t i = 1; i < e->list.n; i++) {
        x[i - 1] = val_as(cx, &v[i], p->type, e->list.at[i], user);
        if (!x[i - 1])
            return val_bad();
        x[i - 1] = elab_as_stored(cx, p, x[i - 1]);
    }
    ir_val was = ir_atomic(&cx->b, code, p->view, p->index, p->extent, x);
    return val_run(elab_as_seen(cx, p, was));
}

value elab_memory(elab *cx, const expr *e, value *v)
{
    static const enum ir_opcode atomic[BUILTIN_COUNT] = {
        [BUILTIN_ATOMIC_ADD] = OP_ATOMIC_ADD,
        [BUILTIN_ATOMIC_MAX] = OP_ATOMIC_MAX,
        [BUILTIN_ATOMIC_MIN] = OP_ATOMIC_MIN,
        [BUILTIN_ATOMIC_XCHG] = OP_ATOMIC_XCHG,
        [BUILTIN_ATOMIC_CAS] = OP_ATOMIC_CAS,
    };
    int id = e->a->decl->id;
    const expr *from = e->list.at[0];

    if (v[0].kind != VAL_PLACE) {
        diag *d = elab_error(cx, DIAG_BAD_OPERAND, from->where,
                             "'%s' needs a slice of a tensor, "
                             "not %s",
                             e->a->lit.name, val_text(cx, &v[0]));
        diag_hint(cx->diags, d, "write %s[...] with one index for each dimension",
                  v[0].kind == VAL_VIEW ? v[0].as.tensor->name : "x");
        return val_bad();
    }
    const place *p = v[0].as.place;
    if (!names_check_direction(cx->diags, p->tensor, from->where, id))
        return val_bad();
    if (atomic[id])
        return elab_atomic(cx, e, v, atomic[id]);
    if (id == BUILTIN_LOAD)
        return val_run(elab_as_seen(cx, p, ir_load(&cx->b, p->view, p->index, p->extent)));
    const char *user = arena_printf(cx->a, "the slice of '%s'", p->tensor->name);
    ir_val x = val_as(cx, &v[1], p->type, e->list.at[1], user);
    if (!x)
        return val_bad();
    ir_store(&cx->b, p->view, p->index, p->extent, elab_as_stored(cx, p, x));
    return val_nothing();
}

/* ---- trans, broadcast, reshape ---- */

static bool need_tile(elab *cx, const expr *e, const value *v, const char *user)
{
    if (v->kind == VAL_RUN && val_run_type(cx, v).kind == TYPE_TILE)
        return true;
    diag *d = elab_error(cx, DIAG_BAD_OPERAND, e->where, "%s needs a tile, not %s", user,
                         val_text(cx, v));
    if (v->kind == VAL_PLACE)
        diag_hint(cx->diags, d, "read it first: load(%s)", ast_source_text(e, cx->diags->a, 40));
    return false;
}

static value elab_trans(elab *cx, const expr *e, const value *v)
{
    int rank = val_run_type(cx, &v[0]).rank, perm[TILE_MAX_RANK] = {1, 0};
    unsigned seen = 0;

    if (e->list.n == 1 && rank == 2)
        return val_run(ir_trans(&cx->b, v[0].as.run, perm));
    if ((int)e->list.n != rank + 1) {
        diag *d = elab_error(cx, DIAG_BAD_CALL, e->where, "'trans' of %s needs %d axes",
                             val_text(cx, &v[0]), rank);
        diag_hint(cx->diags, d, "trans(x, 0, 2, 1) swaps the last two of three");
        return val_bad();
    }
    for (int i = 0; i < rank; i++) {
        int64_t axis = 0;
        const expr *from = e->list.at[i + 1];
        if (!elab_need_int(cx, &v[i + 1], from, "an axis of 'trans'", 0, rank - 1, &axis))
            return val_bad();
        if (seen & 1u << axis) {
            elab_error(cx, DIAG_BAD_VALUE, from->where, "axis %d is named twice", (int)axis);
            return val_bad();
        }
        seen |= 1u << axis;
        perm[i] = (int)axis;
    }
    return val_run(ir_trans(&cx->b, v[0].as.run, perm));
}

/* The tile type that the arguments behind the first give; kind TYPE_NONE after a report. */
static ir_type extents_argument(elab *cx, const expr *e, const value *v)
{
    ir_type t = {.kind = TYPE_TILE, .rank = (uint8_t)(e->list.n - 1)};
    const char *user = arena_printf(cx->a, "an extent of '%s'", e->a->lit.name);

    t.dtype = (uint8_t)val_dtype_of(cx, &v[0]);
    for (int i = 0; i < t.rank; i++) {
        int64_t extent = 0;
        if (!elab_need_int(cx, &v[i + 1], e->list.at[i + 1], user, 1, TILE_MAX_ELEMENTS, &extent))
            return (ir_type){0};
        t.shape[i] = (int32_t)extent;
    }
    return elab_check_tile(cx, t, e->where) ? t : (ir_type){0};
}

static value elab_broadcast(elab *cx, const expr *e, const value *v)
{
    ir_type t = extents_argument(cx, e, v);

    if (t.kind == TYPE_NONE)
        return val_bad();
    return val_run(val_as(cx, &v[0], t, e->list.at[0], "the result of 'broadcast'"));
}

static value elab_reshape(elab *cx, const expr *e, const value *v)
{
    ir_type from = val_run_type(cx, &v[0]), to = extents_argument(cx, e, v);

    if (to.kind == TYPE_NONE)
        return val_bad();
    if (type_elements(from) == type_elements(to))
        return val_run(ir_build(&cx->b, OP_RESHAPE, &v[0].as.run, 1, NULL, to)->res);
    elab_error(cx, DIAG_SHAPE_MISMATCH, e->where, "'reshape' of %s, %lld elements, to %s, %lld",
               elab_type_text(cx, from), (long long)type_elements(from), elab_type_text(cx, to),
               (long long)type_elements(to));
    return val_bad();
}

value elab_shape(elab *cx, const expr *e, value *v)
{
    int id = e->a->decl->id;
    const char *user = arena_printf(cx->a, "'%s'", e->a->lit.name);

    if (!elab_need_program(cx, e->where, user))
        return val_bad();
    if (id == BUILTIN_BROADCAST)
        return elab_need_number(cx, &v[0], e->list.at[0], user) ? elab_broadcast(cx, e, v)
                                                               : val_bad();
    if (!need_tile(cx, e->list.at[0], &v[0], user))
        return val_bad();
    return id == BUILTIN_TRANS ? elab_trans(cx, e, v) : elab_reshape(cx, e, v);
}

/* ---- dot ---- */

/* Products of wider integers do not belong in an accumulator of 32 bits. */
static bool has_dot(enum dtype t)
{
    return dtype_is_float(t) || t == DT_I32 || (dtype_is_int(t) && dtype_bits(t) < 32);
}

static bool check_factors(elab *cx, const expr *e, ir_type x, ir_type y)
{
    const char *a = elab_type_text(cx, x), *b = elab_type_text(cx, y);
    diag *d;

    if (x.rank != 2 || y.rank != 2) {
        d = elab_error(cx, DIAG_SHAPE_MISMATCH, e->where,
                       "'dot' needs tiles of rank 2, not %s and %s", a, b);
        diag_hint(cx->diags, d, "a row is x[None, :], a column x[:, None]");
        return false;
    }
    if (x.dtype != y.dtype) {
        d = elab_error(cx, DIAG_TYPE_MISMATCH, e->where, "'dot' needs one dtype, not %s and %s", a,
                       b);
        diag_hint(cx->diags, d, "cast one of them");
        return false;
    }
    if (!has_dot((enum dtype)x.dtype)) {
        d = elab_error(cx, DIAG_BAD_OPERAND, e->where,
                       "'dot' takes floats, or integers that i32 can hold, not %s",
                       dtype_name((enum dtype)x.dtype));
        diag_hint(cx->diags, d, "cast both to i32, or to a float type");
        return false;
    }
    if (x.shape[1] == y.shape[0])
        return true;
    d = elab_error(cx, DIAG_SHAPE_MISMATCH, e->where,
                   "'dot' of %s and %s: the inner extents %d and %d differ", a, b, x.shape[1],
                   y.shape[0]);
    if (x.shape[1] == y.shape[1])
        diag_hint(cx->diags, d, "write trans(%s)",
                  ast_source_text(e->list.at[1], cx->diags->a, 40));
    else if (x.shape[0] == y.shape[0])
        diag_hint(cx->diags, d, "write trans(%s)",
                  ast_source_text(e->list.at[0], cx->diags->a, 40));
    return false;
}

value elab_dot(elab *cx, const expr *e, value *v)
{
    if (!elab_need_program(cx, e->where, "'dot'") ||
        !need_tile(cx, e->list.at[0], &v[0], "'dot'") ||
        !need_tile(cx, e->list.at[1], &v[1], "'dot'"))
        return val_bad();
    ir_type x = val_run_type(cx, &v[0]), y = val_run_type(cx, &v[1]);
    if (!check_factors(cx, e, x, y))
        return val_bad();
    int32_t shape[2] = {x.shape[0], y.shape[1]};
    ir_type t = type_tile(dtype_accumulator((enum dtype)x.dtype), 2, shape);
    if (!elab_check_tile(cx, t, e->where))
        return val_bad();
    value start = e->list.n == 3 ? v[2] : val_int(0);
    ir_val acc = val_as(cx, &start, t, e->list.at[e->list.n - 1], "the accumulator of 'dot'");
    return acc ? val_run(ir_dot(&cx->b, v[0].as.run, v[1].as.run, acc)) : val_bad();
}
