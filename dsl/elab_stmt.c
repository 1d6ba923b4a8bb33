/* elab_stmt: statements. A loop or branch carries the outer vars that resolve found assigned in it;
 * a var that is bad already is left out. */
#include "compiler/base/check.h"
#include "dsl/elaborate.h"

/* ---- binding ---- */

void elab_name_value(elab *cx, const decl *d, const value *v)
{
    if (v->kind == VAL_RUN && !ir_value_of(cx->b.fn, v->as.run)->name)
        ir_name(cx->b.fn, v->as.run, d->name);
}

/* What the kind float means: the dtypes whose dot is f32. */
static bool is_kernel_float(enum dtype t)
{
    return t == DT_F16 || t == DT_BF16 || t == DT_F32;
}

static bool is_of_kind(const decl *kind, const value *v)
{
    if (kind->kind == DECL_ENUM)
        return v->kind == VAL_MEMBER && v->as.decl->of == kind;
    if (v->kind == VAL_CONST)
        return (kind->id == KIND_INT && v->cls == CLASS_INT) ||
               (kind->id == KIND_BOOL && v->cls == CLASS_BOOL);
    return v->kind == VAL_DTYPE &&
           (kind->id == KIND_DTYPE || (kind->id == KIND_FLOAT && is_kernel_float(v->dtype)));
}

/* int, bool, float, dtype or an enumeration as the type of a const argument: true when d->type is
 * one of them. */
static bool bind_kind(elab *cx, const decl *d, value *v, const expr *e)
{
    const decl *kind = d->type && d->type->kind == EXPR_NAME ? d->type->decl : NULL;

    if (!kind || (kind->kind != DECL_KIND && kind->kind != DECL_ENUM) || !d->is_const)
        return false;
    bool good = is_of_kind(kind, v);
    if (!good && v->kind != VAL_BAD) {
        elab_error(cx, v->kind == VAL_RUN ? DIAG_NOT_CONSTANT : DIAG_BAD_OPERAND, e->where,
                   "'%s' is a compile-time %s, not %s", d->name, kind->name, val_text(cx, v));
        *v = val_bad();
    }
    return true;
}

static value to_type(elab *cx, const decl *d, value v, const expr *e)
{
    ir_type t = elab_type(cx, d->type);
    const char *user = arena_printf(cx->a, "'%s'", d->name);

    if (t.kind == TYPE_NONE || v.kind == VAL_BAD)
        return val_bad();
    if (v.kind == VAL_CONST && t.kind == TYPE_SCALAR)
        return val_const_to(cx, &v, (enum dtype)t.dtype, e->where) ? v : val_bad();
    return val_run(val_as(cx, &v, t, e, user));
}

static value need_constant(elab *cx, const decl *d, value v, const expr *e)
{
    if (v.kind == VAL_CONST || v.kind == VAL_DTYPE || v.kind == VAL_TYPE || v.kind == VAL_BAD ||
        v.kind == VAL_MEMBER || v.kind == VAL_FN)
        return v;
    diag *x = elab_error(cx, DIAG_NOT_CONSTANT, e->where,
                         "'%s' is a compile-time value; this is only known when the kernel runs",
                         d->name);
    if (d->kind == DECL_CONST)
        diag_hint(cx->diags, x, "declare it with let");
    return val_bad();
}

/* A function for a parameter that is one. */
static value to_fn(elab *cx, const decl *d, value v, const expr *e)
{
    if (v.kind == VAL_BAD || (v.kind == VAL_FN && v.as.decl->fn->args.n == d->fn->args.n))
        return v;
    diag *x = elab_error(cx, DIAG_BAD_OPERAND, e->where, "'%s' is %s, not %s", d->name,
                         ast_fn_type(d->fn, cx->diags->a), val_text(cx, &v));
    if (v.kind == VAL_FN)
        diag_note(cx->diags, x, v.as.decl->where, "it is %s",
                  ast_fn_type(v.as.decl->fn, cx->diags->a));
    return val_bad();
}

void elab_bind(elab *cx, const decl *d, value v, const expr *e)
{
    bool runs = d->kind == DECL_VAR || (d->kind == DECL_ARG && d->type && !d->is_const);

    if (v.kind == VAL_NOTHING || v.kind == VAL_PLACE || v.kind == VAL_TEXT) {
        diag *x = elab_error(cx, DIAG_BAD_OPERAND, e->where, "'%s' cannot be %s", d->name,
                             val_text(cx, &v));
        if (v.kind == VAL_PLACE)
            diag_hint(cx->diags, x, "read it: load(%s)", ast_source_text(e, cx->diags->a, 40));
        v = val_bad();
    }
    if (decl_is_fn(d))
        v = to_fn(cx, d, v, e);
    else if (!bind_kind(cx, d, &v, e) && d->type)
        v = to_type(cx, d, v, e);
    if (d->kind == DECL_CONST || d->is_const)
        v = need_constant(cx, d, v, e);
    if (runs && v.kind == VAL_CONST && (cx->mode != ELAB_CONST || d->kind == DECL_VAR))
        v = val_run(val_to_run(cx, &v, DT_NONE, e->where));
    if (d->kind == DECL_VAR && v.kind != VAL_RUN && v.kind != VAL_BAD) {
        elab_error(cx, DIAG_BAD_OPERAND, e->where, "a var holds a scalar or a tile, not %s",
                   val_text(cx, &v));
        v = val_bad();
    }
    elab_name_value(cx, d, &v);
    cx->env[d->slot] = v;
}

static void elab_decls(elab *cx, const stmt *s)
{
    for (uint32_t i = 0; i < s->decls.n; i++) {
        const decl *d = s->decls.at[i];
        value v = d->init ? elab_expr(cx, d->init) : val_bad();
        elab_bind(cx, d, v, d->init);
    }
}

/* ---- assignment ---- */

static value combined(elab *cx, const stmt *s)
{
    static const struct {
        enum token_kind assign, op;
    } row[] = {{TOK_ADD_ASSIGN, TOK_PLUS},    {TOK_SUB_ASSIGN, TOK_MINUS},
               {TOK_MUL_ASSIGN, TOK_STAR},    {TOK_DIV_ASSIGN, TOK_SLASH},
               {TOK_REM_ASSIGN, TOK_PERCENT}, {TOK_AND_ASSIGN, TOK_AMP},
               {TOK_OR_ASSIGN, TOK_PIPE},     {TOK_XOR_ASSIGN, TOK_CARET},
               {TOK_SHL_ASSIGN, TOK_SHL},     {TOK_SHR_ASSIGN, TOK_SHR}};
    expr e = {.kind = EXPR_BINARY, .where = s->where, .at = s->where};
    int i = 0;

    while (row[i].assign != s->op)
        i++;
    e.op = row[i].op;
    e.a = s->targets.at[0];
    e.b = s->list.at[0];
    return elab_expr(cx, &e);
}

static void assign(elab *cx, const expr *target, value v, const expr *e)
{
    const decl *d = target->decl;
    value *var = d ? &cx->env[d->slot] : NULL;

    if (!d || d->kind != DECL_VAR || var->kind != VAL_RUN)
        return;
    if (v.kind != VAL_BAD) {
        const char *user = arena_printf(cx->a, "'%s'", d->name);
        v = val_run(val_as(cx, &v, val_run_type(cx, var), e, user));
    }
    elab_name_value(cx, d, &v);
    *var = v;
}

static void elab_assign(elab *cx, const stmt *s)
{
    uint32_t n = s->list.n;
    value *v = ARENA_ARRAY(cx->a, value, n);

    if (s->op != TOK_ASSIGN) {
        assign(cx, s->targets.at[0], combined(cx, s), s->list.at[0]);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        v[i] = elab_expr(cx, s->list.at[i]);
    for (uint32_t i = 0; i < n; i++)
        assign(cx, s->targets.at[i], v[i], s->list.at[i]);
}

/* ---- carried vars ---- */

carried elab_carry(elab *cx, const decl_list *assigned)
{
    carried c = {.var = ARENA_ARRAY(cx->a, const decl *, assigned->n),
                 .now = ARENA_ARRAY(cx->a, ir_val, assigned->n),
                 .type = ARENA_ARRAY(cx->a, ir_type, assigned->n)};

    for (uint32_t i = 0; i < assigned->n; i++) {
        const value *v = &cx->env[assigned->at[i]->slot];
        if (v->kind != VAL_RUN)
            continue;
        c.var[c.n] = assigned->at[i];
        c.now[c.n] = v->as.run;
        c.type[c.n++] = val_run_type(cx, v);
    }
    return c;
}

void elab_set_vars(elab *cx, const carried *c, ir_val first)
{
    for (uint32_t i = 0; i < c->n; i++) {
        value v = val_run(first + i);
        elab_name_value(cx, c->var[i], &v);
        cx->env[c->var[i]->slot] = v;
    }
}

/* Their values now. One that went bad keeps its old one: the module is dropped anyway, but its ops
 * stay well formed. */
void elab_read_vars(elab *cx, carried *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        const value *v = &cx->env[c->var[i]->slot];
        if (v->kind == VAL_RUN)
            c->now[i] = v->as.run;
    }
}

/* Fills one region: body (may be NULL), then a yield of the carried vars. */
static void fill_region(elab *cx, ir_block *region, const stmt *body, carried *c)
{
    ir_builder outer = cx->b;

    cx->b = ir_at_end(outer.fn, region);
    cx->b.where = outer.where;
    if (body)
        elab_stmt(cx, body);
    elab_read_vars(cx, c);
    ir_yield(&cx->b, c->now, (int)c->n);
    cx->b = outer;
}

void elab_run_if(elab *cx, const stmt *s, ir_val cond)
{
    carried c = elab_carry(cx, &s->assigned);
    ir_val *before = arena_dup(cx->a, c.now, c.n * sizeof *c.now);
    ir_op *op = ir_if(&cx->b, cond, c.type, (int)c.n);

    for (int i = 0; i < 2; i++) {
        for (uint32_t k = 0; k < c.n; k++) {
            cx->env[c.var[k]->slot] = val_run(before[k]);
            c.now[k] = before[k];
        }
        fill_region(cx, op->regions[i], i == 0 ? s->then : s->other, &c);
    }
    elab_set_vars(cx, &c, op->res);
}

static void elab_if(elab *cx, const stmt *s)
{
    value cond = s->cond ? elab_expr(cx, s->cond) : val_bad();

    if (!elab_need_condition(cx, &cond, s->cond, "the condition of 'if'"))
        return;
    if (cond.kind == VAL_CONST) {
        const stmt *arm = cond.as.num.i ? s->then : s->other;
        if (arm)
            elab_stmt(cx, arm);
        return;
    }
    if (elab_need_program(cx, s->cond->where, "a branch on a run-time value"))
        elab_run_if(cx, s, cond.as.run);
}

/* ---- loops ---- */

static bool loop_bounds(elab *cx, const stmt *s, ir_val bound[3])
{
    static const char *const user[] = {"the first value of range", "the end of range",
                                       "the step of range"};
    value v[3] = {val_int(0), val_bad(), val_int(1)};
    const expr *from[3] = {NULL, NULL, NULL};
    bool good = true;

    for (uint32_t i = 0; i < s->list.n && i < 3; i++) {
        int k = s->list.n == 1 ? 1 : (int)i;
        v[k] = elab_expr(cx, s->list.at[i]);
        from[k] = s->list.at[i];
    }
    if (v[2].kind == VAL_CONST && v[2].cls == CLASS_INT && v[2].as.num.i == 0) {
        elab_error(cx, DIAG_BAD_VALUE, from[2]->where, "a range with a step of 0 never ends");
        return false;
    }
    for (int k = 0; k < 3; k++) {
        const expr at = {.where = s->where};
        bound[k] = elab_need_index(cx, &v[k], from[k] ? from[k] : &at, user[k]);
        good = good && bound[k];
    }
    return good;
}

static void elab_for(elab *cx, const stmt *s)
{
    ir_val bound[3];

    if (!elab_need_program(cx, s->where, "a loop") || !loop_bounds(cx, s, bound) || !s->decls.n)
        return;
    carried c = elab_carry(cx, &s->assigned);
    ir_op *op = ir_for(&cx->b, bound[0], bound[1], bound[2], c.now, (int)c.n);
    value counter = val_run(op->regions[0]->arg);
    elab_name_value(cx, s->decls.at[0], &counter);
    cx->env[s->decls.at[0]->slot] = counter;
    elab_set_vars(cx, &c, op->regions[0]->arg + 1);
    elab_read_vars(cx, &c);
    fill_region(cx, op->regions[0], s->then, &c);
    elab_set_vars(cx, &c, op->res);
}

static void elab_while(elab *cx, const stmt *s)
{
    if (!elab_need_program(cx, s->where, "a loop") || !s->cond)
        return;
    carried c = elab_carry(cx, &s->assigned);
    ir_op *op = ir_while(&cx->b, c.now, (int)c.n);
    ir_builder outer = cx->b;
    cx->b = ir_at_end(outer.fn, op->regions[0]);
    cx->b.where = outer.where;
    elab_set_vars(cx, &c, op->regions[0]->arg);
    elab_read_vars(cx, &c);
    value cond = elab_expr(cx, s->cond);
    ir_val test = 0;
    if (elab_need_condition(cx, &cond, s->cond, "the condition of 'while'"))
        test = val_to_run(cx, &cond, DT_I1, s->cond->where);
    elab_read_vars(cx, &c);
    if (test)
        ir_condition(&cx->b, test, c.now, (int)c.n);
    cx->b = outer;
    elab_set_vars(cx, &c, op->regions[1]->arg);
    elab_read_vars(cx, &c);
    fill_region(cx, op->regions[1], s->then, &c);
    elab_set_vars(cx, &c, op->res);
}

/* ---- */

static void elab_value_stmt(elab *cx, const stmt *s)
{
    value v = elab_expr(cx, s->cond);

    if (v.kind == VAL_BAD || v.kind == VAL_NOTHING || s->cond->kind == EXPR_CALL)
        return;
    elab_error(cx, DIAG_BAD_OPERAND, s->cond->where, "this value is not used");
}

static void elab_kind(elab *cx, const stmt *s)
{
    switch (s->kind) {
    case STMT_EMPTY:
    case STMT_JUMP:
    case STMT_FN:
    case STMT_RETURN: /* of a function: elab_call reads it */
        return;
    case STMT_BLOCK:
        for (uint32_t i = 0; i < s->body.n; i++)
            elab_stmt(cx, s->body.at[i]);
        return;
    case STMT_DECL:
        elab_decls(cx, s);
        return;
    case STMT_ASSIGN:
        elab_assign(cx, s);
        return;
    case STMT_EXPR:
        elab_value_stmt(cx, s);
        return;
    case STMT_IF:
        elab_if(cx, s);
        return;
    case STMT_FOR:
        elab_for(cx, s);
        return;
    case STMT_MASKED:
        elab_masked(cx, s);
        return;
    case STMT_WHILE:
        elab_while(cx, s);
        return;
    }
}

void elab_stmt(elab *cx, const stmt *s)
{
    if (elab_enter(cx, s->where)) {
        cx->b.where = s->where;
        elab_kind(cx, s);
    }
    elab_leave(cx);
}
