#include "dsl/signature.h"
#include "dsl/fn_text.h"
#include <string.h>

typedef struct reader {
    elab *cx; /* for constants */
    const kernel_ast *k;
    kernel_sig *sig;
    arena *a;
    diag_list *diags;
} reader;

static diag *report(reader *r, span where, const char *text)
{
    return diag_add(r->diags, DIAG_BAD_SIGNATURE, where, "%s", text);
}

/* ---- compile-time parameters ---- */

static uint32_t allowed_dtypes(int kind)
{
    uint32_t all = (1u << DT_COUNT) - 1;

    return kind == KIND_FLOAT ? 1u << DT_F16 | 1u << DT_BF16 | 1u << DT_F32 : all;
}

static void read_default(reader *r, const decl *d, sig_const *c)
{
    value v = elab_expr(r->cx, d->init);
    bool good = false;

    c->has_default = true;
    if (v.kind == VAL_BAD)
        return;
    if (c->kind == BIND_DTYPE)
        good = v.kind == VAL_DTYPE && c->dtypes >> v.dtype & 1;
    else if (v.kind == VAL_CONST)
        good = v.cls == (c->kind == BIND_INT ? CLASS_INT : CLASS_BOOL);
    c->default_value = v.kind == VAL_DTYPE ? (int64_t)v.dtype : v.as.num.i;
    if (!good)
        diag_add(r->diags, DIAG_TYPE_MISMATCH, d->init->where,
                 "the default of '%s' is a %s, not %s", d->name, d->type->decl->name,
                 val_text(r->cx, &v));
}

static void read_fn(reader *r, const decl *d, sig_const *c)
{
    const decl *fn = d->init && d->init->kind == EXPR_NAME ? d->init->decl : NULL;

    c->kind = BIND_FN;
    c->type = ast_fn_type(d->fn, r->a);
    c->has_default = d->init != NULL;
    if (!fn)
        return;
    c->default_value = fn_value_of(r->cx->unit, fn);
    if (c->default_value < 0)
        report(r, d->init->where, "a default is a function of the file");
    else if (fn->fn->args.n != d->fn->args.n)
        diag_add(r->diags, DIAG_TYPE_MISMATCH, d->init->where, "'%s' is %s, but '%s' is %s",
                 d->name, c->type, fn->name, ast_fn_type(fn->fn, r->diags->a));
}

static void read_enum(reader *r, const decl *d, sig_const *c)
{
    const decl *kind = d->type->decl;
    const char **member = ARENA_ARRAY(r->a, const char *, kind->members.n);

    for (uint32_t i = 0; i < kind->members.n; i++)
        member[i] = kind->members.at[i]->name;
    c->kind = BIND_ENUM;
    c->type = kind->name;
    c->nmembers = kind->members.n;
    c->member = member;
    c->has_default = d->init != NULL;
    if (!d->init)
        return;
    value v = elab_expr(r->cx, d->init);
    if (v.kind == VAL_MEMBER && v.as.decl->of == kind)
        c->default_value = v.as.decl->id;
    else if (v.kind != VAL_BAD)
        diag_add(r->diags, DIAG_TYPE_MISMATCH, d->init->where,
                 "the default of '%s' is a %s, not %s", d->name, kind->name, val_text(r->cx, &v));
}

static void read_bracket(reader *r, const decl *d, sig_const *c)
{
    c->name = d->name;
    if (decl_is_fn(d)) {
        read_fn(r, d, c);
        return;
    }
    const decl *kind = d->type->kind == EXPR_NAME ? d->type->decl : NULL;
    if (kind && kind->kind == DECL_ENUM) {
        read_enum(r, d, c);
        return;
    }
    if (!kind || kind->kind != DECL_KIND) {
        diag *x = report(r, d->type->where, "a compile-time parameter has a kind");
        diag_hint(r->diags, x,
                  "the kinds are int, bool, float (f16, bf16 or f32), dtype, enumerations and "
                  "fn(...)");
        return;
    }
    c->kind = kind->id == KIND_INT ? BIND_INT : kind->id == KIND_BOOL ? BIND_BOOL : BIND_DTYPE;
    c->dtypes = c->kind == BIND_DTYPE ? allowed_dtypes(kind->id) : 0;
    if (d->init)
        read_default(r, d, c);
}

/* ---- parameters ---- */

static void read_dtype(reader *r, const expr *e, sig_param *p)
{
    const decl *d = e->kind == EXPR_NAME ? e->decl : NULL;

    p->dtype = DT_NONE;
    p->dtype_const = -1;
    if (d && d->kind == DECL_DTYPE) {
        p->dtype = (enum dtype)d->id;
    } else if (d && d->kind == DECL_BRACKET && r->sig->cons[d->id].kind == BIND_DTYPE) {
        p->dtype_const = d->id;
    } else {
        diag *x = report(r, e->where,
                         "a parameter's element type is a dtype, or a compile-time "
                         "parameter that is one");
        if (d && d->kind == DECL_KIND)
            diag_hint(r->diags, x, "write a dtype such as f32, or add a parameter [T: float]");
    }
}

static void read_dim(reader *r, const expr *e, sig_dim *dim)
{
    const decl *d = e->kind == EXPR_NAME ? e->decl : NULL;
    value v = val_bad();

    if (d && d->kind == DECL_DIM) {
        dim->kind = SIG_DIM_SYMBOL;
        dim->index = d->id;
        return;
    }
    if (d && d->kind == DECL_BRACKET && r->sig->cons[d->id].kind == BIND_INT) {
        dim->kind = SIG_DIM_CONST;
        dim->index = d->id;
        return;
    }
    dim->kind = SIG_DIM_LITERAL;
    if (e->kind == EXPR_INT || (d && d->kind == DECL_CONST)) {
        v = elab_expr(r->cx, e);
        elab_need_int(r->cx, &v, e, "a dimension", 0, INT32_MAX, &dim->literal);
        return;
    }
    report(r, e->where, "a dimension is a name, an integer or a compile-time int");
}

static void read_tensor(reader *r, const decl *d, sig_param *p)
{
    const expr_list *dims = &d->type->list;

    read_dtype(r, d->type->a, p);
    p->is_tensor = true;
    p->direction = d->direction;
    p->rank = (int32_t)dims->n;
    if (d->init)
        report(r, d->init->where, "a tensor has no default");
    if (dims->n > VIEW_MAX_RANK) {
        diag_add(r->diags, DIAG_LIMIT, d->type->where, "a tensor has at most %d dimensions",
                 VIEW_MAX_RANK);
        return;
    }
    for (uint32_t i = 0; i < dims->n; i++)
        read_dim(r, dims->at[i], &p->dim[i]);
}

/* What is written, on one line. */
static const char *text_at(reader *r, span where)
{
    strbuf b;
    bool gap = false;

    sb_init(&b, r->a);
    for (uint32_t i = where.lo; i < where.hi; i++) {
        char c = where.src->text[i];
        bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        if (!space && gap)
            sb_char(&b, ' ');
        if (!space)
            sb_char(&b, c);
        gap = space;
    }
    return b.s;
}

static void read_param(reader *r, const decl *d, sig_param *p)
{
    p->name = d->name;
    if (d->kind == DECL_TENSOR) {
        read_tensor(r, d, p);
        return;
    }
    read_dtype(r, d->type, p);
    p->has_default = d->init != NULL;
    if (d->init)
        p->default_text = text_at(r, d->init->where);
    if (d->direction != DIR_IN) {
        diag *x = report(r, d->where, "only a tensor can be out or inout");
        diag_hint(r->diags, x, "a result of one element is a tensor of one: f32[1]");
    }
}

/* ---- tune parameters ---- */

typedef VEC(int64_t) set_values;

static bool set_has(const set_values *set, int64_t v)
{
    for (uint32_t i = 0; i < set->n; i++) {
        if (set->at[i] == v)
            return true;
    }
    return false;
}

static bool read_value(reader *r, const expr *e, const char *user, int64_t *out)
{
    value v = elab_expr(r->cx, e);

    return elab_need_int(r->cx, &v, e, user, INT32_MIN, INT32_MAX, out);
}

static void add_one(reader *r, set_values *set, const expr *e)
{
    int64_t v = 0;

    if (!read_value(r, e, "a value of a tune parameter", &v))
        return;
    if (set_has(set, v))
        report(r, e->where, "this value is in the set already");
    else if (set->n <= SIGNATURE_MAX_SET)
        vec_push(set, r->a, v);
}

/* Values that the set has already are left where they are, so that favourites may come first. */
static void add_range(reader *r, set_values *set, const expr *e)
{
    int64_t bound[3] = {0, 0, 1};

    if (e->list.n < 1 || e->list.n > 3) {
        report(r, e->where, "range takes an end, or first and end, or first, end and step");
        return;
    }
    for (uint32_t i = 0; i < e->list.n; i++) {
        if (!read_value(r, e->list.at[i], "a bound of a range", &bound[e->list.n == 1 ? 1 : i]))
            return;
    }
    if (bound[2] == 0) {
        report(r, e->where, "a range with a step of 0 never ends");
        return;
    }
    uint32_t before = set->n;
    for (int64_t v = bound[0];
         (bound[2] > 0 ? v < bound[1] : v > bound[1]) && set->n <= SIGNATURE_MAX_SET;
         v += bound[2]) {
        if (!set_has(set, v))
            vec_push(set, r->a, v);
    }
    if (set->n == before && before <= SIGNATURE_MAX_SET)
        report(r, e->where, "a range that adds no value to the set");
}

static void read_set(reader *r, const tune_set *from, const char *target, sig_tune *t)
{
    struct sig_set *set = &t->set[t->nsets++];
    set_values values = {0};

    set->target = target;
    for (uint32_t i = 0; i + 1 < t->nsets; i++) {
        if (strcmp(t->set[i].target, target) == 0)
            report(r, from->where, "this tune parameter has two sets for one target");
    }
    if (from->values.n == 0)
        report(r, from->where, "a set of no values");
    for (uint32_t i = 0; i < from->values.n; i++) {
        const expr *e = from->values.at[i];
        if (e->kind == EXPR_RANGE)
            add_range(r, &values, e);
        else
            add_one(r, &values, e);
    }
    if (values.n > SIGNATURE_MAX_SET)
        diag_add(r->diags, DIAG_LIMIT, from->where, "a set of more than %d values",
                 SIGNATURE_MAX_SET);
    set->value = values.at;
    set->n = values.n;
}

static void read_knob(reader *r, const decl *d, sig_tune *t)
{
    uint32_t most = 0;

    t->name = d->name;
    for (uint32_t i = 0; i < r->k->tunes.n; i++)
        most += r->k->tunes.at[i].sets.n;
    t->set = ARENA_ARRAY(r->a, struct sig_set, most);
    for (uint32_t i = 0; i < r->k->tunes.n; i++) {
        const tune_clause *clause = &r->k->tunes.at[i];
        for (uint32_t j = 0; j < clause->sets.n; j++) {
            if (clause->sets.at[j].param == d)
                read_set(r, &clause->sets.at[j], clause->target, t);
        }
    }
}

/* ---- the whole ---- */

static void check_grid(reader *r)
{
    if (!r->k->has_grid) {
        diag *x = report(r, r->k->self->where, "a kernel needs a grid");
        diag_hint(r->diags, x,
                  "write grid (cdiv(M, BLOCK_M)) before the body: how many programs run");
    } else if (r->k->grid.n < 1 || r->k->grid.n > 3) {
        report(r, r->k->grid_at, "a grid has one, two or three extents");
    }
}

static bool check_counts(reader *r)
{
    const kernel_ast *k = r->k;
    const struct {
        uint32_t n;
        const char *what;
    } list[] = {{k->params.n, "parameters"},
                {k->brackets.n, "compile-time parameters"},
                {k->knobs.n, "tune parameters"},
                {k->dims.n, "named dimensions"},
                {k->tunes.n, "tune clauses"}};

    for (int i = 0; i < 5; i++) {
        if (list[i].n <= SIGNATURE_MAX_PARAMS)
            continue;
        diag_add(r->diags, DIAG_LIMIT, k->self->where, "%u %s; at most %d are allowed", list[i].n,
                 list[i].what, SIGNATURE_MAX_PARAMS);
        return false;
    }
    return true;
}

static void read_dims(reader *r)
{
    const char **name = ARENA_ARRAY(r->a, const char *, r->k->dims.n);

    for (uint32_t i = 0; i < r->k->dims.n; i++)
        name[i] = r->k->dims.at[i]->name;
    r->sig->symbol = name;
    r->sig->nsymbols = r->k->dims.n;
}

void signature_build(kernel_sig *sig, const kernel_ast *k, elab *cx)
{
    arena *a = cx->a;
    reader r = {.cx = cx, .k = k, .sig = sig, .a = a, .diags = cx->diags};
    sig_const *cons = ARENA_ARRAY(a, sig_const, k->brackets.n);
    sig_param *param = ARENA_ARRAY(a, sig_param, k->params.n);
    sig_tune *tune = ARENA_ARRAY(a, sig_tune, k->knobs.n);

    cx->steps = 0;
    *sig = (kernel_sig){.name = k->self->name,
                        .nparams = k->params.n,
                        .nconsts = k->brackets.n,
                        .ntunes = k->knobs.n,
                        .param = param,
                        .cons = cons,
                        .tune = tune};
    sig->text_lines =
        source_line(k->where.src, k->where.hi) - source_line(k->where.src, k->where.lo) + 1;
    check_grid(&r);
    if (!check_counts(&r))
        return;
    read_dims(&r);
    for (uint32_t i = 0; i < k->brackets.n; i++)
        read_bracket(&r, k->brackets.at[i], &cons[i]);
    for (uint32_t i = 0; i < k->params.n; i++)
        read_param(&r, k->params.at[i], &param[i]);
    for (uint32_t i = 0; i < k->knobs.n; i++)
        read_knob(&r, k->knobs.at[i], &tune[i]);
}

void signature_check_constants(const unit_ast *unit, elab *cx)
{
    for (uint32_t i = 0; i < unit->top.n; i++) {
        const expr use = {
            .kind = EXPR_NAME, .decl = unit->top.at[i], .where = unit->top.at[i]->where};
        if (unit->top.at[i]->kind == DECL_CONST)
            elab_expr(cx, &use);
    }
}
