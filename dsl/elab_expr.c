/* elab_expr: expressions, but for calls and branches. */
#include "compiler/base/check.h"
#include "dsl/elaborate.h"

bool elab_enter(elab *cx, span where)
{
    const char *what = NULL;
    int most = 0;

    cx->depth++;
    if (cx->over)
        return false;
    if (cx->depth > ELAB_MAX_DEPTH)
        what = "levels of calls, blocks and expressions inside each other", most = ELAB_MAX_DEPTH;
    else if (cx->steps++ > ELAB_MAX_STEPS)
        what = "expressions and statements after inlining", most = ELAB_MAX_STEPS;
    else if (cx->b.fn && cx->b.fn->values.n > ELAB_MAX_VALUES)
        what = "operations after inlining", most = ELAB_MAX_VALUES;
    if (!what)
        return true;
    elab_error(cx, DIAG_LIMIT, where, "the kernel has more than %d %s", most, what);
    cx->over = true;
    return false;
}

void elab_leave(elab *cx)
{
    cx->depth--;
}

bool elab_need_builder(elab *cx, span where, const char *user)
{
    if (cx->mode != ELAB_CONST)
        return true;
    elab_error(cx, DIAG_NOT_CONSTANT, where,
               "%s is only known when the kernel runs; a constant is "
               "needed here",
               user);
    return false;
}

bool elab_need_program(elab *cx, span where, const char *user)
{
    if (cx->mode == ELAB_KERNEL)
        return true;
    if (elab_need_builder(cx, where, user)) {
        diag *d = elab_error(cx, DIAG_NOT_HOST, where,
                             "%s has no place in a default, require or "
                             "grid",
                             user);
        diag_hint(cx->diags, d,
                  "these are computed once a launch, before any program runs, from "
                  "dimensions and scalars");
    }
    return false;
}

/* ---- names ---- */

static value file_constant(elab *cx, const decl *d)
{
    enum elab_mode outer = cx->mode;

    cx->mode = ELAB_CONST;
    value v = elab_expr(cx, d->init);
    elab_bind(cx, d, v, d->init);
    cx->mode = outer;
    return cx->env[d->slot];
}

static value elab_name(elab *cx, const expr *e)
{
    const decl *d = e->decl;
    diag *x;

    if (!d)
        return val_bad();
    if (cx->env[d->slot].kind != VAL_UNSET)
        return cx->env[d->slot];
    switch ((int)d->kind) {
    case DECL_DTYPE:
        return val_dtype((enum dtype)d->id);
    case DECL_NUMBER:
        return val_float(d->number);
    case DECL_CONST:
        return d->scope == 1 ? file_constant(cx, d) : val_bad();
    case DECL_MEMBER:
        return val_member(d);
    case DECL_FN:
        return val_fn(d);
    case DECL_ENUM:
        x = elab_error(cx, DIAG_BAD_OPERAND, e->at, "'%s' is an enumeration", d->name);
        diag_hint(cx->diags, x, "its values are called by their own names: %s",
                  d->members.n ? d->members.at[0]->name : "");
        return val_bad();
    case DECL_KIND:
        x = elab_error(cx, DIAG_BAD_OPERAND, e->at, "'%s' is a kind of compile-time parameter",
                       d->name);
        diag_hint(cx->diags, x, "a type is a dtype such as f32, with a shape for a tile: f32[64]");
        return val_bad();
    case DECL_TENSOR:
        elab_need_program(cx, e->at, "a tensor");
        return val_bad();
    default:
        x = elab_error(cx, DIAG_NOT_CONSTANT, e->at, "'%s' is not known here", d->name);
        diag_note(cx->diags, x, d->where, "declared here");
        diag_hint(cx->diags, x, "only constants and literals can stand here");
        return val_bad();
    }
}

/* ---- types ---- */

ir_type elab_shape_of(elab *cx, enum dtype t, const expr_list *list, span where)
{
    ir_type tile = {.kind = TYPE_TILE, .dtype = (uint8_t)t};
    bool good = true;

    if (list->n > TILE_MAX_RANK) {
        elab_error(cx, DIAG_BAD_VALUE, where, "a tile has at most %d dimensions", TILE_MAX_RANK);
        return (ir_type){0};
    }
    for (uint32_t i = 0; i < list->n; i++) {
        const expr *e = list->at[i];
        int64_t extent = 0;
        if (e->kind == EXPR_ALL || e->kind == EXPR_NONE || e->kind == EXPR_SPAN) {
            elab_error(cx, DIAG_BAD_OPERAND, e->where, "a type's extents are compile-time ints");
            good = false;
            continue;
        }
        value v = elab_expr(cx, e);
        good =
            elab_need_int(cx, &v, e, "an extent of a tile", 1, TILE_MAX_ELEMENTS, &extent) && good;
        tile.shape[i] = (int32_t)extent;
    }
    tile.rank = (uint8_t)list->n;
    return good && elab_check_tile(cx, tile, where) ? tile : (ir_type){0};
}

ir_type elab_type(elab *cx, const expr *e)
{
    value v = elab_expr(cx, e);

    if (v.kind == VAL_TYPE)
        return v.as.type;
    if (v.kind == VAL_DTYPE)
        return type_scalar(v.dtype);
    if (v.kind != VAL_BAD)
        elab_error(cx, DIAG_BAD_OPERAND, e->where, "a type is needed here, not %s",
                   val_text(cx, &v));
    return (ir_type){0};
}

/* ---- operators ---- */

enum operands { TAKES_NUMBERS, TAKES_INTS, TAKES_BITS, TAKES_ALL };

typedef struct binary_row {
    enum token_kind token;
    enum ir_opcode code;
    enum operands takes;
    bool swap;
} binary_row;
static const binary_row binary[] = {
    {TOK_PLUS, OP_ADD, TAKES_NUMBERS, false},    {TOK_MINUS, OP_SUB, TAKES_NUMBERS, false},
    {TOK_STAR, OP_MUL, TAKES_NUMBERS, false},    {TOK_SLASH, OP_DIV, TAKES_NUMBERS, false},
    {TOK_PERCENT, OP_REM, TAKES_NUMBERS, false}, {TOK_AMP, OP_AND, TAKES_BITS, false},
    {TOK_PIPE, OP_OR, TAKES_BITS, false},        {TOK_CARET, OP_XOR, TAKES_BITS, false},
    {TOK_SHL, OP_SHL, TAKES_INTS, false},        {TOK_SHR, OP_SHR, TAKES_INTS, false},
    {TOK_EQ, OP_CMP_EQ, TAKES_ALL, false},       {TOK_NE, OP_CMP_NE, TAKES_ALL, false},
    {TOK_LT, OP_CMP_LT, TAKES_NUMBERS, false},   {TOK_LE, OP_CMP_LE, TAKES_NUMBERS, false},
    {TOK_GT, OP_CMP_LT, TAKES_NUMBERS, true},    {TOK_GE, OP_CMP_LE, TAKES_NUMBERS, true},
};

static bool check_operand(elab *cx, const value *v, enum operands takes, const char *user,
                          span where)
{
    enum dtype t = val_dtype_of(cx, v);
    static const char *const wanted[] = {"numbers", "integers", "integers or i1"};
    bool good = takes == TAKES_ALL || (takes == TAKES_NUMBERS && t != DT_I1) ||
                (takes == TAKES_INTS && dtype_is_int(t)) ||
                (takes == TAKES_BITS && !dtype_is_float(t));

    if (good)
        return true;
    diag *d = elab_error(cx, DIAG_BAD_OPERAND, where, "%s takes %s, not %s", user, wanted[takes],
                         val_text(cx, v));
    if (t == DT_I1)
        diag_hint(cx->diags, d, "cast(x, i32) makes 0 and 1 of it");
    return false;
}

/* What a compile-time operand of an integer operator must not be. */
static bool check_constant(elab *cx, const value *right, enum ir_opcode code, const expr *e)
{
    if (right->kind != VAL_CONST || right->cls != CLASS_INT)
        return true;
    if ((code == OP_DIV || code == OP_REM) && right->as.num.i == 0) {
        elab_error(cx, DIAG_BAD_VALUE, e->where, "division by the constant 0");
        return false;
    }
    int bits = right->dtype == DT_NONE ? 64 : dtype_bits(right->dtype);
    if ((code == OP_SHL || code == OP_SHR) && (right->as.num.i < 0 || right->as.num.i >= bits)) {
        elab_error(cx, DIAG_BAD_VALUE, e->where, "a shift of %d bits by %lld", bits,
                   (long long)right->as.num.i);
        return false;
    }
    return true;
}

/* == and != of two dtypes, two functions, or two members of one enumeration. */
static value compare_names(elab *cx, const value *v, const expr *e)
{
    bool dtypes = v[0].kind == VAL_DTYPE;
    bool same = dtypes ? v[0].dtype == v[1].dtype : v[0].as.decl == v[1].as.decl;

    if (dtypes || v[0].kind == VAL_FN || v[0].as.decl->of == v[1].as.decl->of)
        return val_bool(same == (e->op == TOK_EQ));
    elab_error(cx, DIAG_TYPE_MISMATCH, e->at, "'%s' needs one enumeration, not %s and %s",
               token_text(e->op), val_text(cx, &v[0]), val_text(cx, &v[1]));
    return val_bad();
}

static value elab_binary(elab *cx, const expr *e)
{
    const binary_row *row = binary;
    const char *user = arena_printf(cx->a, "'%s'", token_text(e->op));

    while (row->token != e->op)
        row++;
    value v[2] = {elab_expr(cx, e->a), elab_expr(cx, e->b)};
    const expr *const from[2] = {e->a, e->b};
    if (row->takes == TAKES_ALL && v[0].kind == v[1].kind &&
        (v[0].kind == VAL_DTYPE || v[0].kind == VAL_MEMBER || v[0].kind == VAL_FN))
        return compare_names(cx, v, e);
    if (v[0].kind == VAL_BAD || v[1].kind == VAL_BAD)
        return val_bad();
    bool good = elab_need_number(cx, &v[0], e->a, user);
    if (!elab_need_number(cx, &v[1], e->b, user) || !good)
        return val_bad();
    if (!elab_unify(cx, v, from, 2, user, e->at) ||
        !check_operand(cx, &v[0], row->takes, user, e->at) ||
        !check_constant(cx, &v[1], row->code, e->b))
        return val_bad();
    if (row->swap)
        return elab_apply(cx, row->code, (value[]){v[1], v[0]}, 2, user, e->at);
    return elab_apply(cx, row->code, v, 2, user, e->at);
}

static value elab_unary(elab *cx, const expr *e)
{
    const char *user = arena_printf(cx->a, "'%s'", token_text(e->op));
    value v = elab_expr(cx, e->a);

    if (!elab_need_number(cx, &v, e->a, user))
        return val_bad();
    if (e->op == TOK_MINUS)
        return check_operand(cx, &v, TAKES_NUMBERS, user, e->at)
                   ? elab_apply(cx, OP_NEG, &v, 1, user, e->at)
                   : val_bad();
    if (e->op == TOK_BANG && val_dtype_of(cx, &v) != DT_I1) {
        diag *d = elab_error(cx, DIAG_BAD_OPERAND, e->at, "'!' takes i1, not %s", val_text(cx, &v));
        diag_hint(cx->diags, d, "write %s == 0", ast_source_text(e->a, cx->diags->a, 40));
        return val_bad();
    }
    return check_operand(cx, &v, TAKES_BITS, user, e->at)
               ? elab_apply(cx, OP_NOT, &v, 1, user, e->at)
               : val_bad();
}

static value misplaced(elab *cx, const expr *e)
{
    elab_error(cx, DIAG_BAD_OPERAND, e->where, "this has no place here");
    return val_bad();
}

static value elab_kind(elab *cx, const expr *e)
{
    switch (e->kind) {
    case EXPR_BAD:
        return val_bad();
    case EXPR_INT:
        return val_int(e->lit.i);
    case EXPR_FLOAT:
        return val_float(e->lit.f);
    case EXPR_BOOL:
        return val_bool(e->lit.i != 0);
    case EXPR_TEXT:
        return (value){.kind = VAL_TEXT, .as.text = e->lit.name};
    case EXPR_NAME:
        return elab_name(cx, e);
    case EXPR_UNARY:
        return elab_unary(cx, e);
    case EXPR_BINARY:
        return e->op == TOK_AND_AND || e->op == TOK_OR_OR ? elab_logic(cx, e) : elab_binary(cx, e);
    case EXPR_COND:
        return elab_cond(cx, e);
    case EXPR_CALL:
        return elab_call(cx, e);
    case EXPR_INDEX:
        return elab_index(cx, e);
    case EXPR_NONE:
    case EXPR_ALL:
    case EXPR_SPAN:
    case EXPR_RANGE:
        return misplaced(cx, e);
    }
    return val_bad();
}

value elab_expr(elab *cx, const expr *e)
{
    span outer = cx->b.where;
    value v = val_bad();

    if (elab_enter(cx, e->where)) {
        cx->b.where = e->where;
        v = elab_kind(cx, e);
        cx->b.where = outer;
    }
    elab_leave(cx);
    return v;
}
