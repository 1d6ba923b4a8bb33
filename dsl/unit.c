/* unit: a loaded file, and its kernels as sources. */
#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "dsl/diag_source.h"
#include "dsl/dsl.h"
#include "dsl/elaborate.h"
#include "dsl/extend.h"
#include "dsl/fn_text.h"
#include "dsl/import.h"
#include "dsl/parse.h"
#include "dsl/signature.h"
#include <string.h>

typedef struct constraint {
    const char *target; /* prefix */
    const expr *cond;
    const char *text;
} constraint;

typedef struct dsl_source {
    kernel_source base; /* first: a kernel_source is cast back to this */
    dsl_unit *unit;
    const kernel_ast *ast;
    VEC(constraint) constraints;
} dsl_source;

struct dsl_unit {
    arena a;
    intern names;
    unit_ast *ast;
    import_list imports;
    VEC(const source *) sources; /* the file and what it imports */
    unit_list units;             /* their trees; at[0] takes in what the others declare */
    fn_texts texts;
    VEC(dsl_source *) kernels;
};

static const dsl_source *source_of(const kernel_source *src)
{
    return (const dsl_source *)src;
}

/* ---- a kernel as a source ---- */

static tw_status lower(const kernel_source *src, arena *a, intern *names, const ir_binding *binding,
                       uint32_t nbinding, const char *target, diag_list *diags, ir_module **out)
{
    const dsl_source *s = source_of(src);

    (void)target; /* nothing in a text asks for it yet but tune sets, which are not lowered */
    return elab_lower(s->unit->ast, s->ast, &src->sig, a, names, binding, nbinding, diags, out);
}

typedef struct validation {
    const dsl_source *s;
    const ir_binding *binding;
    uint32_t nbinding;
    const char *target;
    arena a;
    const char *why;
} validation;

static tw_status validate(void *arg)
{
    validation *v = arg;
    diag_list diags;
    elab cx;

    diag_init(&diags, &v->a);
    elab_init(&cx, v->s->unit->ast, v->s->ast, &v->a, &diags);
    elab_bindings(&cx, &v->s->base.sig, v->binding, v->nbinding);
    for (uint32_t i = 0; i < v->s->constraints.n; i++) {
        const constraint *c = &v->s->constraints.at[i];
        if (strncmp(c->target, v->target, strlen(c->target)) != 0)
            continue;
        v->why = c->text;
        value x = elab_expr(&cx, c->cond);
        if (!elab_need_condition(&cx, &x, c->cond, "a tune constraint") || !x.as.num.i)
            return TW_E_ARG;
    }
    return TW_OK;
}

static bool valid(const kernel_source *src, const ir_binding *binding, uint32_t nbinding,
                  const char *target, const char **why)
{
    validation v = {.s = source_of(src), .binding = binding, .nbinding = nbinding};

    if (v.s->constraints.n == 0)
        return true;
    v.target = target ? target : "";
    arena_init(&v.a);
    tw_status st = guard_run(validate, &v);
    arena_release(&v.a);
    if (st != TW_OK && why)
        *why = v.why ? v.why : "out of memory";
    return st == TW_OK;
}

static const char *print_ast(const kernel_source *src, arena *a)
{
    const dsl_source *s = source_of(src);

    return ast_print_kernel(s->ast, s->unit->ast, a);
}

static tw_status fn_value(const kernel_source *src, uint32_t i, const char *text, diag_list *diags,
                          int64_t *out)
{
    const dsl_source *s = source_of(src);

    return fn_texts_value(&s->unit->texts, s->ast->brackets.at[i], text, diags, out);
}

static const char *fn_text_of(const kernel_source *src, int64_t v)
{
    return fn_value_text(source_of(src)->unit->ast, v);
}

static void keep(kernel_source *src)
{
    (void)src; /* its unit owns it */
}

/* ---- load ---- */

static dsl_source *new_source(dsl_unit *u, const kernel_ast *k)
{
    dsl_source *s = ARENA_NEW(&u->a, dsl_source);

    s->base = (kernel_source){.lower = lower,
                              .valid = valid,
                              .print_ast = print_ast,
                              .destroy = keep,
                              .fn_value = fn_value,
                              .fn_text = fn_text_of};
    s->unit = u;
    s->ast = k;
    for (uint32_t i = 0; i < k->tunes.n; i++) {
        const tune_clause *t = &k->tunes.at[i];
        for (uint32_t j = 0; j < t->constraints.n; j++) {
            const expr *e = t->constraints.at[j];
            constraint c = {t->target, e, ast_source_text(e, &u->a, 200)};
            vec_push(&s->constraints, &u->a, c);
        }
    }
    return s;
}

typedef struct loading {
    const char *name, *text; /* of the file at hand */
    size_t len;
    diag_list *diags;
    dsl_unit *u;
    uint32_t before; /* errors */
    bool is_whole;   /* no import is missing: names that nothing declares are mistakes */
} loading;

/* A text over the limit is reported by the lexer; what is beyond it is never looked at. */
static unit_ast *parse_file(loading *l)
{
    dsl_unit *u = l->u;
    size_t len = l->len > SOURCE_MAX_BYTES ? SOURCE_MAX_BYTES + 1 : l->len;
    const source *src = source_new(&u->a, l->name, l->text, len);

    vec_push(&u->sources, &u->a, src);
    unit_ast *read = parse_text(&u->a, &u->names, src, l->diags);
    vec_push(&u->units, &u->a, read);
    return read;
}

static tw_status parse_first(void *arg)
{
    loading *l = arg;

    intern_init(&l->u->names, &l->u->a);
    l->u->ast = parse_file(l);
    return imports_of(&l->u->imports, &l->u->a, l->u->sources.at[0]->name, l->u->ast);
}

/* What an imported file declares, but for its kernels, stands beside what is there. */
static tw_status parse_import(void *arg)
{
    loading *l = arg;
    unit_ast *whole = l->u->ast;
    const unit_ast *part = parse_file(l);

    for (uint32_t i = 0; i < part->top.n; i++) {
        if (part->top.at[i]->kind != DECL_KERNEL)
            vec_push(&whole->top, &l->u->a, part->top.at[i]);
    }
    for (uint32_t i = 0; i < part->doubtful.n; i++)
        vec_push(&whole->doubtful, &l->u->a, part->doubtful.at[i]);
    return imports_of(&l->u->imports, &l->u->a, l->u->sources.at[0]->name, part);
}

static tw_status read_imports(loading *l, const dsl_reader *reader)
{
    import_list *list = &l->u->imports;

    for (uint32_t i = 0; i < list->n; i++) {
        char *text = NULL;
        tw_status st = import_read(reader, list, i, l->diags, &text, &l->len);
        if (st == TW_E_SOURCE) {
            l->is_whole = false;
            continue; /* the others may be read */
        }
        TRY(st);
        l->name = list->at[i].path;
        l->text = text;
        st = guard_run(parse_import, l);
        mem_free(text);
        TRY(st);
    }
    return TW_OK;
}

static tw_status resolve(void *arg)
{
    loading *l = arg;
    dsl_unit *u = l->u;
    elab cx;

    if (l->is_whole) {
        extend_kernels(&u->units, &u->a, &u->names, l->diags);
        names_resolve(u->ast, &u->a, &u->names, l->diags);
    }
    if (l->diags->errors > l->before)
        return TW_E_SOURCE;
    elab_init(&cx, u->ast, NULL, &u->a, l->diags);
    signature_check_constants(u->ast, &cx);
    for (uint32_t i = 0; i < u->ast->top.n; i++) {
        const decl *d = u->ast->top.at[i];
        if (d->kind != DECL_KERNEL)
            continue;
        dsl_source *s = new_source(u, d->kernel);
        signature_build(&s->base.sig, d->kernel, &cx);
        vec_push(&u->kernels, &u->a, s);
    }
    fn_texts_init(&u->texts, u->ast, &u->names);
    u->ast->texts = &u->texts;
    return l->diags->errors > l->before ? TW_E_SOURCE : TW_OK;
}

/* The diagnostics outlive the unit. */
static tw_status keep_sources(void *arg)
{
    loading *l = arg;

    for (uint32_t i = 0; i < l->u->sources.n; i++)
        diags_keep_source(l->diags, l->u->sources.at[i]);
    return TW_OK;
}

static tw_status load(loading *l, const dsl_reader *reader)
{
    TRY(guard_run(parse_first, l));
    TRY(read_imports(l, reader));
    return guard_run(resolve, l);
}

tw_status dsl_load_from(const dsl_reader *reader, const char *name, const char *text, size_t len,
                        diag_list *diags, dsl_unit **out)
{
    loading l = {name, text, len, diags, mem_zalloc(sizeof(dsl_unit)), diags->errors, true};

    if (!l.u)
        return TW_E_NOMEM;
    arena_init(&l.u->a);
    tw_status st = load(&l, reader);
    tw_status kept = guard_run(keep_sources, &l);
    if (st == TW_OK)
        st = kept;
    if (st != TW_OK) {
        dsl_unit_destroy(l.u);
        return st;
    }
    *out = l.u;
    return TW_OK;
}

tw_status dsl_load(const char *name, const char *text, size_t len, diag_list *diags, dsl_unit **out)
{
    return dsl_load_from(NULL, name, text, len, diags, out);
}

void dsl_unit_destroy(dsl_unit *u)
{
    if (!u)
        return;
    fn_texts_release(&u->texts);
    arena_release(&u->a);
    mem_free(u);
}

size_t dsl_kernel_count(const dsl_unit *u)
{
    return u->kernels.n;
}

const char *dsl_kernel_name(const dsl_unit *u, size_t i)
{
    return u->kernels.at[i]->base.sig.name;
}

const kernel_source *dsl_kernel(const dsl_unit *u, size_t i)
{
    return &u->kernels.at[i]->base;
}
