#include "compiler/base/error.h"
#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct record {
    tw_error shown;
    arena a;
    char fixed[512];
    tw_diagnostic one; /* for error_diag, so that it allocates nothing */
    char one_text[1024], one_hint[256];
} record;

static _Thread_local record last = {.shown.text = ""};

/* Frees the arena of a thread that ends. */
static pthread_key_t at_exit_key;
static pthread_once_t at_exit_once = PTHREAD_ONCE_INIT;
static int at_exit_ready;

static void release_record(void *r)
{
    arena_release(&((record *)r)->a);
}

static void make_key(void)
{
    at_exit_ready = pthread_key_create(&at_exit_key, release_record) == 0;
}

/* An unloaded library must not be called back by a thread that ends later. */
__attribute__((destructor)) static void drop_key(void)
{
    if (at_exit_ready)
        pthread_key_delete(at_exit_key);
}

static void release_at_thread_exit(void)
{
    pthread_once(&at_exit_once, make_key);
    if (at_exit_ready)
        (void)pthread_setspecific(at_exit_key, &last);
}

void error_clear(void)
{
    if (last.shown.status == TW_OK)
        return;
    arena_release(&last.a);
    last.shown = (tw_error){.status = TW_OK, .text = ""};
}

const tw_error *error_get(void)
{
    return &last.shown;
}

typedef struct job {
    arena a; /* the new record's; the old one may be read until the new text stands */
    tw_error made;
    const char *fmt;
    va_list ap;
    diag_list *diags;
} job;

static void take(job *j, tw_status st)
{
    error_clear();
    last.a = j->a;
    last.shown = j->made;
    last.shown.status = st;
    release_at_thread_exit();
}

static tw_status long_text(void *arg)
{
    job *j = arg;

    j->made.text = arena_vprintf(&j->a, j->fmt, j->ap);
    return TW_OK;
}

static void set_text(tw_status st, const char *fmt, va_list ap)
{
    job j = {.fmt = fmt};
    char text[sizeof last.fixed];

    va_copy(j.ap, ap);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    if (n >= (int)sizeof text && guard_run(long_text, &j) == TW_OK) {
        take(&j, st);
    } else {
        arena_release(&j.a);
        error_clear();
        memcpy(last.fixed, text, sizeof text);
        last.shown.status = st;
        last.shown.text = last.fixed;
    }
    va_end(j.ap);
}

tw_status error_set(tw_status st, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    set_text(st, fmt, ap);
    va_end(ap);
    return st;
}

tw_status error_diag(tw_status st, enum diag_id id, const char *hint, const char *fmt, ...)
{
    char text[sizeof last.one_text], advice[sizeof last.one_hint];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    snprintf(advice, sizeof advice, "%s", hint ? hint : "");
    error_set(st, "error: %s [%s]%s%s", text, diag_name(id), hint ? "\n      = hint: " : "",
              advice);
    memcpy(last.one_text, text, sizeof text);
    memcpy(last.one_hint, advice, sizeof advice);
    last.one = (tw_diagnostic){
        diag_name(id), false, NULL, 0, 0, last.one_text, hint ? last.one_hint : NULL};
    last.shown.diagnostics = &last.one;
    last.shown.diagnostic_count = 1;
    return st;
}

static tw_diagnostic public_diag(arena *a, const diag *d)
{
    const source *src = d->where.src;

    return (tw_diagnostic){
        .id = diag_name(d->id),
        .is_warning = d->severity == DIAG_WARNING,
        .file = src ? arena_strdup(a, src->name) : NULL,
        .line = src ? source_line(src, d->where.lo) : 0,
        .column = src ? source_column(src, d->where.lo) : 0,
        .text = arena_strdup(a, d->text),
        .hint = d->hint ? arena_strdup(a, d->hint) : NULL,
    };
}

static tw_status copy_diags(void *arg)
{
    job *j = arg;
    diag_list *l = j->diags;
    strbuf text;

    sb_init(&text, &j->a);
    diag_render(l, &text, 0);
    if (text.n > 0 && text.s[text.n - 1] == '\n')
        text.s[--text.n] = 0;
    tw_diagnostic *all = ARENA_ARRAY(&j->a, tw_diagnostic, l->all.n);
    for (uint32_t i = 0; i < l->all.n; i++)
        all[i] = public_diag(&j->a, l->all.at[i]);
    j->made.text = text.s;
    j->made.diagnostics = all;
    j->made.diagnostic_count = l->all.n;
    return TW_OK;
}

tw_status error_set_diags(tw_status st, diag_list *l)
{
    job j = {.diags = l};

    if (guard_run(copy_diags, &j) == TW_OK) {
        take(&j, st);
        return st;
    }
    arena_release(&j.a);
    return error_set(st, "%.400s", l->all.n ? l->all.at[0]->text : tw_status_meaning(st));
}

typedef struct placed {
    arena a;
    diag_list list;
    enum diag_id id;
    span where;
    const char *hint, *text;
} placed;

static tw_status make_placed(void *arg)
{
    placed *p = arg;

    diag_init(&p->list, &p->a);
    diag *d = diag_add(&p->list, p->id, p->where, "%s", p->text);
    if (p->hint)
        diag_hint(&p->list, d, "%s", p->hint);
    return TW_OK;
}

tw_status error_diag_at(tw_status st, enum diag_id id, span where, const char *hint,
                        const char *fmt, ...)
{
    char text[sizeof last.one_text];
    placed p = {.id = id, .where = where, .hint = hint, .text = text};
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (where.src && guard_run(make_placed, &p) == TW_OK)
        error_set_diags(st, &p.list);
    else
        error_diag(st, id, hint, "%s", text);
    arena_release(&p.a);
    return st;
}

tw_status error_thrown(tw_status st)
{
    if (st == TW_OK || last.shown.status == st)
        return st;
    if (st == TW_E_INTERNAL && icheck_last())
        return error_set(st, "internal check failed: %s", icheck_last());
    return error_set(st, "%s", tw_status_meaning(st));
}
