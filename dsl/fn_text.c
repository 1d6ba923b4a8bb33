/* fn_text: a text becomes the body of a function that stands beside those of the file. */
#include "dsl/fn_text.h"
#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "dsl/diag_source.h"
#include "dsl/names.h"
#include "dsl/parse.h"
#include <stdatomic.h>
#include <string.h>

void fn_texts_init(fn_texts *t, unit_ast *unit, intern *names)
{
    t->unit = unit;
    t->names = names;
    pthread_mutex_init(&t->lock, NULL);
}

static void text_free(fn_text *f)
{
    arena_release(&f->a);
    mem_free(f);
}

void fn_texts_release(fn_texts *t)
{
    fn_text *f = atomic_load(&t->newest);

    if (!t->unit)
        return;
    while (f) {
        fn_text *next = f->next;
        text_free(f);
        f = next;
    }
    pthread_mutex_destroy(&t->lock);
}

/* ---- values ---- */

static const fn_text *text_of_value(const unit_ast *unit, int64_t value)
{
    const fn_text *f = unit->texts ? atomic_load(&((fn_texts *)unit->texts)->newest) : NULL;

    while (f && f->value != value)
        f = f->next;
    return f;
}

const decl *fn_of_value(const unit_ast *unit, int64_t value)
{
    if (value >= 0 && value < (int64_t)unit->top.n) {
        const decl *d = unit->top.at[value];
        return d->kind == DECL_FN ? d : NULL;
    }
    const fn_text *f = text_of_value(unit, value);
    return f ? f->fn : NULL;
}

const char *fn_value_text(const unit_ast *unit, int64_t value)
{
    const decl *d = fn_of_value(unit, value);
    const fn_text *f = text_of_value(unit, value);

    return f ? f->text : d ? d->name : "?";
}

int64_t fn_value_of(const unit_ast *unit, const decl *fn)
{
    for (uint32_t i = 0; i < unit->top.n; i++) {
        if (unit->top.at[i] == fn)
            return i;
    }
    return -1;
}

/* ---- texts ---- */

static const fn_text *known_text(const fn_texts *t, const decl *param, const char *text)
{
    const fn_text *f = atomic_load_explicit(&((fn_texts *)t)->newest, memory_order_acquire);

    while (f && (f->param != param || strcmp(f->text, text) != 0))
        f = f->next;
    return f;
}

static int64_t named_fn(const unit_ast *unit, const char *text)
{
    for (uint32_t i = 0; i < unit->top.n; i++) {
        const decl *d = unit->top.at[i];
        if (d->kind == DECL_FN && strcmp(d->name, text) == 0)
            return i;
    }
    return -1;
}

/* "fn visible(b, h, row, col) { return (TEXT); }", or with TEXT as the body. */
static const char *whole_text(arena *a, const decl *param, const char *text)
{
    bool is_body = text[strspn(text, " \t\r\n")] == '{';
    const char *type = ast_fn_type(param->fn, a);

    return is_body ? arena_printf(a, "fn %s%s %s", param->name, type + 2, text)
                   : arena_printf(a, "fn %s%s { return (%s); }", param->name, type + 2, text);
}

typedef struct reading {
    fn_texts *t;
    fn_text *made;
    diag_list *diags;
} reading;

static void check_one(const unit_ast *read, diag_list *diags)
{
    const source *src = read->src;

    if (read->top.n != 1 || read->top.at[0]->kind != DECL_FN)
        diag_add(diags, DIAG_SYNTAX, (span){src, 0, src->len},
                 "a function's text is one expression, or one body in braces");
}

static tw_status read_guarded(void *arg)
{
    reading *r = arg;
    fn_text *f = r->made;
    uint32_t before = r->diags->errors;
    const char *whole = whole_text(&f->a, f->param, f->text);
    const source *src = source_new(&f->a, f->param->name, whole, strlen(whole));
    const unit_ast *read = parse_text(&f->a, r->t->names, src, r->diags);

    if (r->diags->errors == before)
        check_one(read, r->diags);
    if (r->diags->errors == before) {
        f->fn = read->top.at[0];
        names_resolve_beside(r->t->unit, f->fn, &f->a, r->t->names, r->diags);
    }
    if (r->diags->errors == before)
        return TW_OK;
    diags_keep_source(r->diags, src);
    return TW_E_SOURCE;
}

static tw_status copy_guarded(void *arg)
{
    fn_text *f = arg;

    f->text = arena_strdup(&f->a, f->text);
    return TW_OK;
}

/* Under the lock. */
static tw_status add_text(fn_texts *t, const decl *param, const char *text, diag_list *diags,
                          int64_t *out)
{
    fn_text *newest = atomic_load(&t->newest), *f = mem_zalloc(sizeof *f);
    int64_t first = (int64_t)t->unit->top.n;
    reading r = {t, f, diags};

    if (!f)
        return TW_E_NOMEM;
    *f = (fn_text){.next = newest, .param = param, .text = text};
    f->value = newest ? newest->value + 1 : first;
    arena_init(&f->a);
    tw_status st = f->value - first < FN_TEXT_MAX ? guard_run(copy_guarded, f) : TW_E_LIMIT;
    if (st == TW_OK)
        st = guard_run(read_guarded, &r);
    if (st != TW_OK) {
        text_free(f);
        return st;
    }
    *out = f->value;
    atomic_store_explicit(&t->newest, f, memory_order_release);
    return TW_OK;
}

typedef struct refusal {
    diag_list *diags;
    const decl *param, *fn;
} refusal;

static tw_status refuse_count(void *arg)
{
    const refusal *r = arg;
    diag *d = diag_add(r->diags, DIAG_BAD_BINDING, r->param->where, "'%s' is %s, but '%s' is %s",
                       r->param->name, ast_fn_type(r->param->fn, r->diags->a), r->fn->name,
                       ast_fn_type(r->fn->fn, r->diags->a));

    diag_note(r->diags, d, r->fn->where, "'%s' is declared here", r->fn->name);
    return TW_E_ARG;
}

tw_status fn_texts_value(fn_texts *t, const decl *param, const char *text, diag_list *diags,
                         int64_t *out)
{
    const fn_text *known = known_text(t, param, text);
    tw_status st = TW_OK;

    *out = named_fn(t->unit, text);
    if (*out >= 0) {
        refusal r = {diags, param, t->unit->top.at[*out]};
        return r.fn->fn->args.n == param->fn->args.n ? TW_OK : guard_run(refuse_count, &r);
    }
    if (!known) {
        if (strlen(text) > FN_TEXT_MAX_BYTES)
            return TW_E_LIMIT;
        pthread_mutex_lock(&t->lock);
        known = known_text(t, param, text);
        if (!known)
            st = add_text(t, param, text, diags, out);
        pthread_mutex_unlock(&t->lock);
    }
    if (known)
        *out = known->value;
    return st;
}
