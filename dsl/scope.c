#include "dsl/scope.h"
#include "dsl/foreign.h"
#include <string.h>

void scope_init(scope *s, arena *a, diag_list *diags)
{
    *s = (scope){.a = a, .diags = diags};
}

static scope_entry *find_slot(scope_entry *slot, uint32_t cap, const char *name)
{
    uint32_t i = (uint32_t)(((uintptr_t)name >> 4) * 2654435761u) & (cap - 1);

    while (slot[i].name && slot[i].name != name)
        i = (i + 1) & (cap - 1);
    return &slot[i];
}

static scope_entry *entry_of(scope *s, const char *name)
{
    if (s->n * 2 >= s->cap) {
        uint32_t cap = s->cap ? s->cap * 2 : 256;
        scope_entry *bigger = ARENA_ARRAY(s->a, scope_entry, cap);
        for (uint32_t i = 0; i < s->cap; i++) {
            if (s->slot[i].name)
                *find_slot(bigger, cap, s->slot[i].name) = s->slot[i];
        }
        s->slot = bigger;
        s->cap = cap;
    }
    scope_entry *e = find_slot(s->slot, s->cap, name);
    if (!e->name) {
        e->name = name;
        s->n++;
    }
    return e;
}

void scope_open(scope *s)
{
    vec_push(&s->first, s->a, s->declared.n);
}

void scope_close(scope *s)
{
    uint32_t first = s->first.at[--s->first.n];

    while (s->declared.n > first) {
        decl *d = s->declared.at[--s->declared.n];
        entry_of(s, d->name)->decl = d->hidden;
    }
}

decl *scope_find(const scope *s, const char *name)
{
    return s->cap ? find_slot(s->slot, s->cap, name)->decl : NULL;
}

static void report_duplicate(scope *s, const decl *d, const decl *old)
{
    if (old->scope == 0) {
        diag *e = diag_add(s->diags, DIAG_DUPLICATE_NAME, d->where, "'%s' is built in", d->name);
        diag_hint(s->diags, e, "choose another name");
        return;
    }
    diag *e = diag_add(s->diags, DIAG_DUPLICATE_NAME, d->where, "'%s' is declared twice", d->name);
    diag_note(s->diags, e, old->where, "first here");
}

static void warn_hidden(scope *s, const decl *d, const decl *old)
{
    diag *w = diag_add(s->diags, DIAG_SHADOWED_NAME, d->where, "'%s' hides %s of that name",
                       d->name, old->scope == 0 ? "the built-in" : "another declaration");
    if (old->scope > 0)
        diag_note(s->diags, w, old->where, "the hidden one");
}

void scope_declare(scope *s, decl *d)
{
    scope_entry *e = entry_of(s, d->name);
    decl *old = e->decl;

    d->scope = s->first.n - 1;
    if (old && (old->scope == d->scope || d->scope == 1)) {
        report_duplicate(s, d, old);
        if (old->scope == d->scope)
            return;
    } else if (old) {
        warn_hidden(s, d, old);
    }
    d->hidden = old;
    e->decl = d;
    vec_push(&s->declared, s->a, d);
}

void scope_show(scope *s, decl *d)
{
    entry_of(s, d->name)->decl = d;
    vec_push(&s->declared, s->a, d);
}

void scope_doubt(scope *s, const char *name)
{
    entry_of(s, name)->quiet = true;
}

static const char *nearest(scope *s, const char *name)
{
    VEC(const char *) known = {0};

    if (s->diags->errors > DIAG_CAP)
        return NULL;
    for (uint32_t i = s->declared.n; i-- > 0;)
        vec_push(&known, s->a, s->declared.at[i]->name);
    return diag_nearest(name, known.at, known.n);
}

decl *scope_need(scope *s, const char *name, span where)
{
    decl *d = scope_find(s, name);

    if (d)
        return d;
    if (entry_of(s, name)->quiet)
        return NULL;
    entry_of(s, name)->quiet = true; /* said once is enough */
    const char *hint = foreign_hint(name, strlen(name)), *near = hint ? NULL : nearest(s, name);
    diag *e = diag_add(s->diags, DIAG_UNKNOWN_NAME, where, "nothing here is called '%s'", name);
    if (hint)
        diag_hint(s->diags, e, "%s", hint);
    if (near)
        diag_hint(s->diags, e, "did you mean '%s'?", near);
    return NULL;
}
