/* elab_value: what an expression may be, and how constants, dtypes and shapes adapt. */
#include "dsl/elaborate.h"
#include <math.h>
#include <string.h>

value val_bad(void)
{
    return (value){.kind = VAL_BAD};
}

value val_nothing(void)
{
    return (value){.kind = VAL_NOTHING};
}

value val_int(int64_t i)
{
    return (value){.kind = VAL_CONST, .cls = CLASS_INT, .dtype = DT_NONE, .as.num.i = i};
}

value val_float(double f)
{
    return (value){.kind = VAL_CONST, .cls = CLASS_FLOAT, .dtype = DT_NONE, .as.num.f = f};
}

value val_bool(bool b)
{
    return (value){.kind = VAL_CONST, .cls = CLASS_BOOL, .dtype = DT_I1, .as.num.i = b};
}

value val_run(ir_val v)
{
    return v ? (value){.kind = VAL_RUN, .as.run = v} : val_bad();
}

value val_dtype(enum dtype t)
{
    return (value){.kind = VAL_DTYPE, .dtype = t};
}

value val_type(ir_type t)
{
    return t.kind == TYPE_NONE ? val_bad() : (value){.kind = VAL_TYPE, .as.type = t};
}

value val_member(const decl *d)
{
    return (value){.kind = VAL_MEMBER, .as.decl = d};
}

value val_fn(const decl *d)
{
    return (value){.kind = VAL_FN, .as.decl = d};
}

/* ---- messages ---- */

#define CALLS_SHOWN 4

diag *elab_error(elab *cx, enum diag_id id, span where, const char *fmt, ...)
{
    va_list ap;

    if (cx->over)
        return NULL;
    va_start(ap, fmt);
    const char *text = arena_vprintf(cx->diags->a, fmt, ap);
    va_end(ap);
    diag *d = diag_add(cx->diags, id, where, "%s", text);
    for (uint32_t i = cx->calls.n, shown = 0; i > 0 && shown < CALLS_SHOWN; i--, shown++)
        diag_note(cx->diags, d, cx->calls.at[i - 1].where, "in this call of '%s'",
                  cx->calls.at[i - 1].fn->name);
    return d;
}

const char *elab_type_text(elab *cx, ir_type t)
{
    return type_text(cx->diags->a, t);
}

static const char *const_text(elab *cx, const value *v)
{
    strbuf b;

    sb_init(&b, cx->diags->a);
    if (v->dtype != DT_NONE && v->cls != CLASS_BOOL)
        sb_fmt(&b, "the %s constant ", dtype_name(v->dtype));
    else
        sb_str(&b, "the constant ");
    if (v->cls == CLASS_INT && v->dtype == DT_U64)
        sb_fmt(&b, "%llu", (unsigned long long)v->as.num.i);
    else if (v->cls == CLASS_INT)
        sb_fmt(&b, "%lld", (long long)v->as.num.i);
    else if (v->cls == CLASS_FLOAT)
        sb_float(&b, v->as.num.f, v->dtype == DT_F32);
    else
        sb_str(&b, v->as.num.i ? "true" : "false");
    return b.s;
}

const char *val_text(elab *cx, const value *v)
{
    switch (v->kind) {
    case VAL_UNSET:
    case VAL_BAD:
        return "an error";
    case VAL_NOTHING:
        return "a call that gives no value";
    case VAL_CONST:
        return const_text(cx, v);
    case VAL_RUN:
        return elab_type_text(cx, val_run_type(cx, v));
    case VAL_DTYPE:
        return arena_printf(cx->diags->a, "the dtype %s", dtype_name(v->dtype));
    case VAL_TYPE:
        return arena_printf(cx->diags->a, "the type %s", elab_type_text(cx, v->as.type));
    case VAL_VIEW:
        return arena_printf(cx->diags->a, "the tensor '%s'", v->as.tensor->name);
    case VAL_PLACE:
        return arena_printf(cx->diags->a, "a slice of '%s'", v->as.place->tensor->name);
    case VAL_TEXT:
        return "a text";
    case VAL_MEMBER:
        return arena_printf(cx->diags->a, "the %s '%s'", v->as.decl->of->name, v->as.decl->name);
    case VAL_FN:
        return arena_printf(cx->diags->a, "the function '%s'", v->as.decl->name);
    }
    return "";
}

ir_type val_run_type(const elab *cx, const value *v)
{
    return ir_type_of(cx->b.fn, v->as.run);
}

enum dtype val_dtype_of(const elab *cx, const value *v)
{
    static const enum dtype alone[] = {DT_I32, DT_F32, DT_I1};

    if (v->kind == VAL_RUN)
        return (enum dtype)val_run_type(cx, v).dtype;
    return v->dtype != DT_NONE ? v->dtype : alone[v->cls];
}

bool val_is_number(const value *v)
{
    return v->kind == VAL_CONST || v->kind == VAL_RUN;
}

bool elab_need_number(elab *cx, const value *v, const expr *e, const char *user)
{
    if (val_is_number(v))
        return true;
    if (v->kind == VAL_BAD)
        return false;
    diag *d = elab_error(cx, DIAG_BAD_OPERAND, e->where, "%s needs a scalar or a tile, not %s",
                         user, val_text(cx, v));
    if (v->kind == VAL_PLACE || v->kind == VAL_VIEW)
        diag_hint(cx->diags, d, "read it first: load(%s%s)", ast_source_text(e, cx->diags->a, 40),
                  v->kind == VAL_VIEW ? "[...]" : "");
    return false;
}

/* ---- constants ---- */

static bool int_fits(enum dtype t, int64_t i)
{
    int bits = dtype_bits(t);

    if (dtype_kind(t) == DTK_UINT)
        return i >= 0 && (bits == 64 || i >> bits == 0);
    return bits == 64 || (i >= -((int64_t)1 << (bits - 1)) && i < (int64_t)1 << (bits - 1));
}

static bool does_not_fit(elab *cx, const value *v, enum dtype t, span where)
{
    diag *d = elab_error(cx, DIAG_TYPE_MISMATCH, where, "%s does not fit %s", val_text(cx, v),
                         dtype_name(t));

    if (v->cls == CLASS_INT && t == DT_I32)
        diag_hint(cx->diags, d, "write cast(%lld, i64)", (long long)v->as.num.i);
    else if (v->cls == CLASS_INT && dtype_is_int(t))
        diag_hint(cx->diags, d, "cast(x, %s) keeps the low bits", dtype_name(t));
    else if (v->dtype == DT_NONE && dtype_is_float(t))
        diag_hint(cx->diags, d, "it is beyond the largest %s; write inf, or use a wider type",
                  dtype_name(t));
    else if (v->cls == CLASS_INT && t == DT_I1)
        diag_hint(cx->diags, d, "write %s", v->as.num.i ? "true" : "false");
    else if (v->cls == CLASS_FLOAT && dtype_is_int(t))
        diag_hint(cx->diags, d, "cast the other operand to a float type, or this one to %s",
                  dtype_name(t));
    return false;
}

bool val_const_to(elab *cx, value *v, enum dtype t, span where)
{
    if (v->dtype == t)
        return true;
    if (v->dtype != DT_NONE)
        return does_not_fit(cx, v, t, where);
    if (v->cls == CLASS_INT && dtype_is_int(t) && int_fits(t, v->as.num.i)) {
        v->dtype = t;
    } else if (dtype_is_float(t) && v->cls != CLASS_BOOL) {
        double exact = v->cls == CLASS_INT ? (double)v->as.num.i : v->as.num.f;
        ir_scalar rounded = eval_round(t, (ir_scalar){.f = exact});
        if (isinf(rounded.f) && !isinf(exact))
            return does_not_fit(cx, v, t, where);
        *v = (value){.kind = VAL_CONST, .cls = CLASS_FLOAT, .dtype = t, .as.num = rounded};
    } else {
        return does_not_fit(cx, v, t, where);
    }
    return true;
}

ir_val val_to_run(elab *cx, const value *v, enum dtype t, span where)
{
    value c = *v;

    if (v->kind == VAL_RUN)
        return v->as.run;
    if (v->kind != VAL_CONST || !elab_need_builder(cx, where, "this"))
        return 0;
    if (t == DT_NONE)
        t = val_dtype_of(cx, v);
    if (!val_const_to(cx, &c, t, where))
        return 0;
    return c.cls == CLASS_FLOAT ? ir_const_float(&cx->b, t, c.as.num.f)
                                : ir_const_int(&cx->b, t, c.as.num.i);
}

static bool is_scalar_of(const elab *cx, const value *v, enum dtype t)
{
    return v->kind == VAL_RUN && type_equal(val_run_type(cx, v), type_scalar(t));
}

static bool is_whole(const elab *cx, const value *v)
{
    if (v->kind == VAL_CONST)
        return v->cls == CLASS_INT;
    ir_type t = v->kind == VAL_RUN ? val_run_type(cx, v) : (ir_type){.kind = TYPE_TILE};
    return t.kind == TYPE_SCALAR && dtype_is_int((enum dtype)t.dtype);
}

ir_val elab_need_index(elab *cx, const value *v, const expr *e, const char *user)
{
    if (v->kind == VAL_BAD)
        return 0;
    if (v->kind == VAL_CONST && v->cls == CLASS_INT && (v->dtype == DT_NONE || v->dtype == DT_I32))
        return val_to_run(cx, v, DT_I32, e->where);
    if (is_scalar_of(cx, v, DT_I32))
        return v->as.run;
    diag *d = elab_error(cx, DIAG_TYPE_MISMATCH, e->where, "%s is an i32 scalar, not %s", user,
                         val_text(cx, v));
    if (is_whole(cx, v))
        diag_hint(cx->diags, d, "write cast(%s, i32)", ast_source_text(e, cx->diags->a, 40));
    return 0;
}

bool elab_need_condition(elab *cx, const value *v, const expr *e, const char *user)
{
    if (v->kind == VAL_BAD)
        return false;
    if ((v->kind == VAL_CONST && v->cls == CLASS_BOOL) || is_scalar_of(cx, v, DT_I1))
        return true;
    diag *d = elab_error(cx, DIAG_TYPE_MISMATCH, e->where, "%s is an i1 scalar, not %s", user,
                         val_text(cx, v));
    if (v->kind == VAL_RUN && val_run_type(cx, v).kind == TYPE_TILE)
        diag_hint(cx->diags, d, "for each element: where(condition, a, b), or & | ! on tiles");
    else if (val_is_number(v))
        diag_hint(cx->diags, d, "write %s != 0", ast_source_text(e, cx->diags->a, 40));
    return false;
}

bool elab_need_int(elab *cx, const value *v, const expr *e, const char *user, int64_t lo,
                   int64_t hi, int64_t *out)
{
    if (v->kind == VAL_BAD)
        return false;
    if (v->kind == VAL_RUN) {
        diag *d = elab_error(cx, DIAG_NOT_CONSTANT, e->where, "%s is a compile-time int", user);
        diag_hint(cx->diags, d,
                  "this value is only known when the kernel runs; use a const, a "
                  "parameter in [...] or a tune parameter");
        return false;
    }
    if (v->kind != VAL_CONST || v->cls != CLASS_INT) {
        elab_error(cx, DIAG_BAD_OPERAND, e->where, "%s is a compile-time int, not %s", user,
                   val_text(cx, v));
        return false;
    }
    if (v->as.num.i < lo || v->as.num.i > hi) {
        elab_error(cx, DIAG_BAD_VALUE, e->where, "%s is %lld; it lies between %lld and %lld", user,
                   (long long)v->as.num.i, (long long)lo, (long long)hi);
        return false;
    }
    *out = v->as.num.i;
    return true;
}

/* ---- dtypes ---- */

/* Is a value of dtype x to become one of y, which holds more, and not the other way round? */
static bool is_lesser(enum dtype x, enum dtype y)
{
    if (dtype_is_float(x) != dtype_is_float(y))
        return dtype_is_float(y);
    return dtype_bits(y) > dtype_bits(x);
}

static void report_clash(elab *cx, const value *v, const expr *const *e, int a, int b,
                         const char *user, span where)
{
    enum dtype x = val_dtype_of(cx, &v[a]), y = val_dtype_of(cx, &v[b]);
    diag *d = elab_error(cx, DIAG_TYPE_MISMATCH, where, "%s needs one type, not %s and %s", user,
                         val_text(cx, &v[a]), val_text(cx, &v[b]));
    bool first = is_lesser(x, y);

    if (x != y && x != DT_I1 && y != DT_I1)
        diag_hint(cx->diags, d, "write cast(%s, %s)",
                  ast_source_text(e[first ? a : b], cx->diags->a, 40), dtype_name(first ? y : x));
}

/* Untyped constants only: ints become floats where there is a float. */
static bool unify_untyped(elab *cx, value *v, const expr *const *e, int n, const char *user,
                          span where)
{
    enum const_class cls = v[0].cls;

    for (int i = 1; i < n; i++) {
        if ((v[i].cls == CLASS_BOOL) != (cls == CLASS_BOOL)) {
            report_clash(cx, v, e, 0, i, user, where);
            return false;
        }
        if (v[i].cls == CLASS_FLOAT)
            cls = CLASS_FLOAT;
    }
    for (int i = 0; i < n; i++) {
        if (cls == CLASS_FLOAT && v[i].cls == CLASS_INT)
            v[i] = val_float((double)v[i].as.num.i);
    }
    return true;
}

bool elab_unify(elab *cx, value *v, const expr *const *e, int n, const char *user, span where)
{
    int lead = -1; /* the operand that fixes the dtype */

    for (int i = 0; i < n; i++) {
        bool typed = v[i].kind == VAL_RUN || v[i].dtype != DT_NONE;
        if (typed && lead < 0)
            lead = i;
        else if (typed && val_dtype_of(cx, &v[i]) != val_dtype_of(cx, &v[lead])) {
            report_clash(cx, v, e, lead, i, user, where);
            return false;
        }
    }
    if (lead < 0)
        return unify_untyped(cx, v, e, n, user, where);
    for (int i = 0; i < n; i++) {
        if (v[i].kind == VAL_CONST &&
            !val_const_to(cx, &v[i], val_dtype_of(cx, &v[lead]), e[i]->where))
            return false;
    }
    return true;
}

/* ---- shapes ---- */

bool elab_check_tile(elab *cx, ir_type t, span where)
{
    int64_t n = 1;

    for (int i = 0; t.kind == TYPE_TILE && i < t.rank && n <= TILE_MAX_ELEMENTS; i++)
        n *= t.shape[i];
    if (n <= TILE_MAX_ELEMENTS)
        return true;
    elab_error(cx, DIAG_LIMIT, where, "a tile %s has more than %d elements", elab_type_text(cx, t),
               TILE_MAX_ELEMENTS);
    return false;
}

static bool join(ir_type *shape, ir_type t)
{
    if (t.kind == TYPE_SCALAR)
        return true;
    if (shape->kind == TYPE_SCALAR) {
        *shape = type_with_dtype(t, (enum dtype)shape->dtype);
        return true;
    }
    if (shape->rank != t.rank)
        return false;
    for (int i = 0; i < t.rank; i++) {
        if (shape->shape[i] == 1)
            shape->shape[i] = t.shape[i];
        else if (t.shape[i] != 1 && t.shape[i] != shape->shape[i])
            return false;
    }
    return true;
}

static void report_shapes(elab *cx, ir_type x, ir_type y, const char *user, span where)
{
    diag *d = elab_error(cx, DIAG_SHAPE_MISMATCH, where, "%s cannot combine the shapes %s and %s",
                         user, elab_type_text(cx, x), elab_type_text(cx, y));

    if (x.rank == 1 && y.rank == 2)
        diag_hint(cx->diags, d, "make the first a column or a row: x[:, None] or x[None, :]");
    else if (x.rank == 2 && y.rank == 1)
        diag_hint(cx->diags, d, "make the second a column or a row: x[:, None] or x[None, :]");
    else if (x.rank == y.rank)
        diag_hint(cx->diags, d, "extents must be equal, or one of them 1");
}

static ir_val widen(elab *cx, ir_val v, ir_type shape)
{
    ir_type t = ir_type_of(cx->b.fn, v);

    if (type_same_shape(t, shape))
        return v;
    shape = type_with_dtype(shape, (enum dtype)t.dtype);
    return t.kind == TYPE_SCALAR ? ir_splat(&cx->b, v, shape) : ir_broadcast(&cx->b, v, shape);
}

/* Reports operand i beside an earlier one that it does not fit; the nearest, so that where() speaks
 * of its two values and not of its condition. */
static void report_join(elab *cx, const ir_val *v, int i, const char *user, span where)
{
    ir_type t = ir_type_of(cx->b.fn, v[i]);
    int k = i;

    for (ir_type shape = t; k > 0; k--, shape = t) {
        if (!join(&shape, ir_type_of(cx->b.fn, v[k - 1])))
            break;
    }
    report_shapes(cx, ir_type_of(cx->b.fn, v[k > 0 ? k - 1 : 0]), t, user, where);
}

bool elab_join(elab *cx, ir_val *v, int n, const char *user, span where)
{
    ir_type shape = ir_type_of(cx->b.fn, v[0]);

    for (int i = 1; i < n; i++) {
        if (!join(&shape, ir_type_of(cx->b.fn, v[i]))) {
            report_join(cx, v, i, user, where);
            return false;
        }
    }
    if (!elab_check_tile(cx, shape, where))
        return false;
    for (int i = 0; i < n; i++)
        v[i] = widen(cx, v[i], shape);
    return true;
}

ir_val val_as(elab *cx, const value *v, ir_type t, const expr *e, const char *user)
{
    if (v->kind == VAL_BAD || !elab_need_number(cx, v, e, user))
        return 0;
    if (v->kind == VAL_RUN && val_run_type(cx, v).dtype != t.dtype) {
        diag *d = elab_error(cx, DIAG_TYPE_MISMATCH, e->where, "%s is %s, not %s", user,
                             elab_type_text(cx, t), val_text(cx, v));
        diag_hint(cx->diags, d, "write cast(%s, %s)", ast_source_text(e, cx->diags->a, 40),
                  dtype_name((enum dtype)t.dtype));
        return 0;
    }
    ir_val x = val_to_run(cx, v, (enum dtype)t.dtype, e->where);
    if (!x)
        return 0;
    ir_type shape = t, from = ir_type_of(cx->b.fn, x);
    if (!join(&shape, from) || !type_same_shape(shape, t)) {
        elab_error(cx, DIAG_SHAPE_MISMATCH, e->where, "%s is %s, not %s", user,
                   elab_type_text(cx, t), elab_type_text(cx, from));
        return 0;
    }
    return widen(cx, x, t);
}
