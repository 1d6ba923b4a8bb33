/* elab_math: built-ins that work element by element, on scalars, tiles and constants alike. */
#include "compiler/base/check.h"
#include "dsl/elaborate.h"

enum operands { NUMBERS, FLOATS };

typedef struct ewise_row {
    enum ir_opcode code;
    enum operands takes;
    bool in_program; /* not an op of launch functions */
} ewise_row;
static const ewise_row ewise[BUILTIN_COUNT] = {
    [BUILTIN_MAXIMUM] = {OP_MAX, NUMBERS, false},
    [BUILTIN_MINIMUM] = {OP_MIN, NUMBERS, false},
    [BUILTIN_RUNNING_MAX] = {OP_RUNNING_MAX, FLOATS, true},
    [BUILTIN_FMA] = {OP_FMA, FLOATS, false},
    [BUILTIN_ABS] = {OP_ABS, NUMBERS, false},
    [BUILTIN_EXP] = {OP_EXP, FLOATS, false},
    [BUILTIN_EXP2] = {OP_EXP2, FLOATS, false},
    [BUILTIN_LOG] = {OP_LOG, FLOATS, false},
    [BUILTIN_LOG2] = {OP_LOG2, FLOATS, false},
    [BUILTIN_SIN] = {OP_SIN, FLOATS, false},
    [BUILTIN_COS] = {OP_COS, FLOATS, false},
    [BUILTIN_TANH] = {OP_TANH, FLOATS, false},
    [BUILTIN_ERF] = {OP_ERF, FLOATS, false},
    [BUILTIN_SQRT] = {OP_SQRT, FLOATS, false},
    [BUILTIN_RSQRT] = {OP_RSQRT, FLOATS, false},
    [BUILTIN_FLOOR] = {OP_FLOOR, FLOATS, false},
    [BUILTIN_CEIL] = {OP_CEIL, FLOATS, false},
};

static const char *user_of(elab *cx, const expr *e)
{
    return arena_printf(cx->a, "'%s'", e->a->lit.name);
}

static bool need_numbers(elab *cx, const expr *e, value *v, const char *user)
{
    for (uint32_t i = 0; i < e->list.n; i++) {
        if (!elab_need_number(cx, &v[i], e->list.at[i], user))
            return false;
    }
    return true;
}

/* A compile-time int given to a float function is a float. */
static void ints_to_floats(value *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (v[i].kind == VAL_CONST && v[i].cls == CLASS_INT && v[i].dtype == DT_NONE)
            v[i] = val_float((double)v[i].as.num.i);
    }
}

static bool check_dtype(elab *cx, const value *v, enum operands takes, const char *user,
                        const expr *e)
{
    enum dtype t = val_dtype_of(cx, v);

    if (takes == FLOATS ? dtype_is_float(t) : t != DT_I1)
        return true;
    diag *d = elab_error(cx, DIAG_BAD_OPERAND, e->where, "%s takes %s, not %s", user,
                         takes == FLOATS ? "floats" : "numbers", val_text(cx, v));
    diag_hint(cx->diags, d, "write cast(%s, %s)", ast_source_text(e, cx->diags->a, 40),
              takes == FLOATS ? "f32" : "i32");
    return false;
}

value elab_elementwise(elab *cx, const expr *e, value *v)
{
    const ewise_row *row = &ewise[e->a->decl->id];
    const char *user = user_of(cx, e);
    int n = (int)e->list.n;

    if (!need_numbers(cx, e, v, user))
        return val_bad();
    if (row->takes == FLOATS)
        ints_to_floats(v, e->list.n);
    if (!elab_unify(cx, v, (const expr *const *)e->list.at, n, user, e->at) ||
        !check_dtype(cx, &v[0], row->takes, user, e->list.at[0]) ||
        (row->in_program && !elab_need_program(cx, e->where, user)))
        return val_bad();
    return elab_apply(cx, row->code, v, n, user, e->where);
}

static value elab_where(elab *cx, const expr *e, value *v, const char *user)
{
    const expr *const from[2] = {e->list.at[1], e->list.at[2]};

    if (val_dtype_of(cx, &v[0]) != DT_I1) {
        diag *d = elab_error(cx, DIAG_BAD_OPERAND, e->list.at[0]->where,
                             "the condition of 'where' is i1, not %s", val_text(cx, &v[0]));
        diag_hint(cx->diags, d, "write %s != 0", ast_source_text(e->list.at[0], cx->diags->a, 40));
        return val_bad();
    }
    if (!elab_unify(cx, v + 1, from, 2, user, e->at))
        return val_bad();
    if (v[0].kind == VAL_CONST && v[1].kind == VAL_CONST && v[2].kind == VAL_CONST)
        return v[0].as.num.i ? v[1] : v[2];
    return elab_apply(cx, OP_WHERE, v, 3, user, e->where);
}

static bool check_cast(elab *cx, const expr *e, const value *v, const char *user)
{
    if (v[1].kind == VAL_DTYPE)
        return elab_need_number(cx, &v[0], e->list.at[0], user);
    elab_error(cx, DIAG_BAD_OPERAND, e->list.at[1]->where, "%s needs a dtype, not %s", user,
               val_text(cx, &v[1]));
    return false;
}

static value elab_bitcast(elab *cx, const expr *e, value *v)
{
    if (!check_cast(cx, e, v, "'bitcast'") || !elab_need_program(cx, e->where, "'bitcast'"))
        return val_bad();
    enum dtype from = val_dtype_of(cx, &v[0]), to = v[1].dtype;
    if (dtype_bits(from) != dtype_bits(to)) {
        elab_error(cx, DIAG_TYPE_MISMATCH, e->where, "'bitcast' of %s, %d bits, to %s, %d bits",
                   dtype_name(from), dtype_bits(from), dtype_name(to), dtype_bits(to));
        return val_bad();
    }
    ir_val x = val_to_run(cx, &v[0], DT_NONE, e->list.at[0]->where);
    if (!x || from == to)
        return val_run(x);
    ir_type t = type_with_dtype(ir_type_of(cx->b.fn, x), to);
    return val_run(ir_build(&cx->b, OP_BITCAST, &x, 1, NULL, t)->res);
}

static value elab_cast(elab *cx, const expr *e, value *v)
{
    if (!check_cast(cx, e, v, "'cast'"))
        return val_bad();
    enum dtype from = val_dtype_of(cx, &v[0]), to = v[1].dtype;
    if (v[0].kind == VAL_RUN)
        return from == to ? v[0] : val_run(ir_cast(&cx->b, v[0].as.run, to));
    if (v[0].dtype == DT_NONE) /* from the widest, so that no bit is lost on the way */
        from = v[0].cls == CLASS_INT ? DT_I64 : DT_F64;
    value res = {.kind = VAL_CONST, .dtype = to, .as.num = v[0].as.num};
    if (from != to)
        res.as.num = eval_op(OP_CAST, from, to, &v[0].as.num, false);
    res.cls = dtype_is_float(to) ? CLASS_FLOAT : to == DT_I1 ? CLASS_BOOL : CLASS_INT;
    return res;
}

static value elab_clamp(elab *cx, const expr *e, value *v, const char *user)
{
    if (!elab_unify(cx, v, (const expr *const *)e->list.at, 3, user, e->at) ||
        !check_dtype(cx, &v[0], NUMBERS, user, e->list.at[0]))
        return val_bad();
    value above = elab_apply(cx, OP_MAX, v, 2, user, e->where);
    if (above.kind == VAL_BAD)
        return above;
    return elab_apply(cx, OP_MIN, (value[]){above, v[2]}, 2, user, e->where);
}

/* a / b rounded up, for b > 0: a / b + (a % b > 0). Never a + b - 1, which may wrap. */
static value elab_cdiv(elab *cx, const expr *e, value *v, const char *user)
{
    if (!elab_unify(cx, v, (const expr *const *)e->list.at, 2, user, e->at))
        return val_bad();
    enum dtype t = val_dtype_of(cx, &v[0]);
    if (!dtype_is_int(t)) {
        elab_error(cx, DIAG_BAD_OPERAND, e->list.at[0]->where, "'cdiv' takes integers, not %s",
                   val_text(cx, &v[0]));
        return val_bad();
    }
    bool is_signed = dtype_kind(t) == DTK_SINT;
    if (v[1].kind == VAL_CONST && (v[1].as.num.i == 0 || (is_signed && v[1].as.num.i < 0))) {
        elab_error(cx, DIAG_BAD_VALUE, e->list.at[1]->where, "'cdiv' divides by %lld",
                   (long long)v[1].as.num.i);
        return val_bad();
    }
    value down = elab_apply(cx, OP_DIV, v, 2, user, e->where);
    value rest = elab_apply(cx, OP_REM, v, 2, user, e->where);
    if (down.kind == VAL_BAD || rest.kind == VAL_BAD)
        return val_bad();
    if (down.kind == VAL_CONST) {
        bool up = is_signed ? rest.as.num.i > 0 : rest.as.num.i != 0;
        down.as.num.i = (int64_t)((uint64_t)down.as.num.i + up);
        return down;
    }
    value zero = val_int(0);
    val_const_to(cx, &zero, t, e->where);
    value more = elab_apply(cx, OP_CMP_LT, (value[]){zero, rest}, 2, user, e->where);
    value one = val_run(ir_cast(&cx->b, more.as.run, t));
    return elab_apply(cx, OP_ADD, (value[]){down, one}, 2, user, e->where);
}

value elab_special(elab *cx, const expr *e, value *v)
{
    const char *user = user_of(cx, e);
    int id = e->a->decl->id;

    if (id == BUILTIN_CAST)
        return elab_cast(cx, e, v);
    if (id == BUILTIN_BITCAST)
        return elab_bitcast(cx, e, v);
    if (!need_numbers(cx, e, v, user))
        return val_bad();
    if (id == BUILTIN_WHERE)
        return elab_where(cx, e, v, user);
    return id == BUILTIN_CLAMP ? elab_clamp(cx, e, v, user) : elab_cdiv(cx, e, v, user);
}

/* ---- assert, static_assert ---- */

value elab_check(elab *cx, const expr *e, value *v)
{
    const expr *cond = e->list.at[0];
    bool is_static = e->a->decl->id == BUILTIN_STATIC_ASSERT;
    const char *text = ast_source_text(cond, cx->a, 200);

    if (e->list.n == 2 && v[1].kind != VAL_TEXT) {
        elab_error(cx, DIAG_BAD_OPERAND, e->list.at[1]->where, "the message is a text: \"...\"");
        return val_bad();
    }
    if (e->list.n == 2)
        text = v[1].as.text;
    if (!elab_need_condition(cx, &v[0], cond,
                             is_static ? "the condition of 'static_assert'"
                                       : "the condition of 'assert'"))
        return val_bad();
    if (!is_static) {
        if (!elab_need_program(cx, e->where, "'assert'"))
            return val_bad();
        ir_assert(&cx->b, val_to_run(cx, &v[0], DT_I1, cond->where), text);
        return val_nothing();
    }
    if (v[0].kind == VAL_RUN) {
        diag *d = elab_error(cx, DIAG_NOT_CONSTANT, cond->where,
                             "'static_assert' needs a compile-time condition");
        diag_hint(cx->diags, d, "assert(...) checks when the kernel runs");
        return val_bad();
    }
    if (!v[0].as.num.i)
        elab_error(cx, DIAG_STATIC_ASSERT, e->where, "%s", text);
    return v[0].as.num.i ? val_nothing() : val_bad();
}

/* ---- print ---- */

value elab_print(elab *cx, const expr *e, value *v)
{
    uint32_t last = e->list.n - 1;
    const expr *shown = e->list.at[last];
    const char *text = ast_source_text(shown, cx->a, 60);

    if (last && v[0].kind != VAL_TEXT) {
        elab_error(cx, DIAG_BAD_OPERAND, e->list.at[0]->where, "the label is a text: \"...\"");
        return val_bad();
    }
    if (last)
        text = v[0].as.text;
    if (!elab_need_program(cx, e->where, "'print'") ||
        !elab_need_number(cx, &v[last], shown, "'print'"))
        return val_bad();
    ir_val x = val_to_run(cx, &v[last], DT_NONE, shown->where);
    if (x)
        ir_print_value(&cx->b, x, text);
    return x ? val_nothing() : val_bad();
}
