#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/base/namelist.h"
#include "compiler/ir/tirsource.h"
#include "dsl/dsl.h"
#include "runtime/kernel_info.h"
#include "runtime/lower.h"
#include "runtime/resolve.h"
#include "runtime/spec.h"
#include "runtime/text_file.h"
#include <stdio.h>
#include <string.h>

/* ---- finding the kernel in a text ------------------------------------------------------------ */

typedef struct load_job {
    tw_kernel *k;
    const char *name, *text, *kernel;
    size_t length;
    const kernel_source *given;
    const dsl_reader *reader; /* NULL: nothing can be imported */
    diag_list diags;
    arena a; /* of diags */
} load_job;

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

static tw_status no_such_kernel(const load_job *j, size_t n)
{
    const dsl_unit *u = j->k->unit;
    char list[120];
    namelist l = namelist_begin(list, sizeof list, "it has ", ", ");

    if (n == 0)
        return error_set(TW_E_ARG, "%s: there is no kernel in it", j->name);
    for (size_t i = 0; i < n; i++)
        namelist_add(&l, "%s", dsl_kernel_name(u, i));
    namelist_end(&l);
    if (!j->kernel)
        return error_diag(TW_E_ARG, DIAG_BAD_ARGUMENT, list, "%.100s: which of its kernels?",
                          j->name);
    return error_diag(TW_E_ARG, DIAG_BAD_ARGUMENT, list, "%.100s: no kernel '%.60s'", j->name,
                      j->kernel);
}

static tw_status pick_kernel(load_job *j)
{
    dsl_unit *u = j->k->unit;
    size_t n = dsl_kernel_count(u);

    for (size_t i = 0; i < n; i++) {
        if (j->kernel ? strcmp(dsl_kernel_name(u, i), j->kernel) == 0 : n == 1) {
            j->k->source = dsl_kernel(u, i);
            return TW_OK;
        }
    }
    return no_such_kernel(j, n);
}

static tw_status load_tir(load_job *j)
{
    kernel_source *src = NULL;

    TRY(tir_source_new(j->name, j->text, j->length, &j->diags, &src));
    j->k->source = src;
    if (j->kernel && strcmp(src->sig.name, j->kernel) != 0)
        return error_set(TW_E_ARG, "%s: no kernel '%s'; it has %s", j->name, j->kernel,
                         src->sig.name);
    return TW_OK;
}

static tw_status load_dsl(load_job *j)
{
    TRY(dsl_load_from(j->reader, j->name, j->text, j->length, &j->diags, &j->k->unit));
    return pick_kernel(j);
}

static tw_status take_source(load_job *j)
{
    j->k->source = j->given;
    return TW_OK;
}

static tw_status check_limits(const kernel_sig *sig)
{
    if (sig->nparams > RUNTIME_MAX_PARAMS || sig->nsymbols > RUNTIME_MAX_SYMBOLS ||
        sig->nconsts > RUNTIME_MAX_CONSTS || sig->ntunes > RUNTIME_MAX_CONFIG)
        return error_diag(TW_E_LIMIT, DIAG_LIMIT, NULL,
                          "kernel '%s' is above the limit of %d parameters, %d dimensions, %d "
                          "compile-time values or %d tune parameters",
                          sig->name, RUNTIME_MAX_PARAMS, RUNTIME_MAX_SYMBOLS, RUNTIME_MAX_CONSTS,
                          RUNTIME_MAX_CONFIG);
    return TW_OK;
}

/* In the text of a configuration a name is found, and means one thing. */
static tw_status check_tune_name(const kernel_sig *sig, const char *name)
{
    const size_t most = sizeof((text_pair){0}.name) - 1;

    if (strlen(name) > most)
        return error_diag(TW_E_LIMIT, DIAG_LIMIT, NULL,
                          "tune parameter '%.20s...' of kernel '%s' has a name of more than %zu "
                          "characters",
                          name, sig->name, most);
    for (size_t t = 0; t < target_count(); t++)
        if (target_sched(target_at(t), name))
            return error_diag(TW_E_SOURCE, DIAG_BAD_SIGNATURE, "give it another name",
                              "tune parameter '%s' of kernel '%s' has the name of a schedule "
                              "parameter of target '%s'",
                              name, sig->name, target_at(t)->name);
    return TW_OK;
}

static tw_status check_tune_names(const kernel_sig *sig)
{
    for (uint32_t i = 0; i < sig->ntunes; i++)
        TRY(check_tune_name(sig, sig->tune[i].name));
    return TW_OK;
}

static tw_status describe_guarded(void *arg)
{
    load_job *j = arg;
    strbuf b;

    sb_init(&b, &j->k->a);
    if (j->diags.warnings > 0)
        diag_render(&j->diags, &b, 0);
    j->k->warnings = b.s;
    kernel_describe(j->k);
    return TW_OK;
}

static tw_status load(load_job *j, tw_status (*find)(load_job *))
{
    tw_status st = find(j);

    if (st != TW_OK)
        return diags_failed(&j->diags, st);
    TRY(check_limits(&j->k->source->sig));
    TRY(check_tune_names(&j->k->source->sig));
    return error_thrown(guard_run(describe_guarded, j));
}

static void link_kernel(tw_kernel *k)
{
    tw_context *cx = k->cx;

    pthread_mutex_lock(&cx->lock);
    k->next = cx->kernels;
    k->link = &cx->kernels;
    if (k->next)
        k->next->link = &k->next;
    cx->kernels = k;
    pthread_mutex_unlock(&cx->lock);
}

static void unlink_kernel(tw_kernel *k)
{
    pthread_mutex_lock(&k->cx->lock); /* a neighbour that goes writes to k->link */
    if (k->link) {
        *k->link = k->next;
        if (k->next)
            k->next->link = k->link;
        spec_drop(k, NULL);
    }
    pthread_mutex_unlock(&k->cx->lock);
}

uint64_t runtime_serial(void)
{
    static atomic_uint_fast64_t last;

    return 1 + atomic_fetch_add_explicit(&last, 1, memory_order_relaxed);
}

static tw_kernel *kernel_new(tw_context *cx)
{
    tw_kernel *k = mem_zalloc(sizeof *k);

    if (!k)
        return NULL;
    k->serial = runtime_serial();
    k->cx = cx;
    arena_init(&k->a);
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->built, NULL);
    return k;
}

/* Runs load on a new kernel. */
static tw_status make_kernel(tw_context *cx, load_job *j, tw_status (*find)(load_job *),
                             tw_kernel **out)
{
    j->k = kernel_new(cx);
    if (!j->k)
        return error_set(TW_E_NOMEM, "no memory for a kernel");
    arena_init(&j->a);
    diag_init(&j->diags, &j->a);
    tw_status st = load(j, find);
    arena_release(&j->a);
    if (st != TW_OK) {
        tw_kernel_destroy(j->k);
        return st;
    }
    link_kernel(j->k);
    *out = j->k;
    return TW_OK;
}

tw_status runtime_kernel_of(tw_context *cx, const kernel_source *src, tw_kernel **out)
{
    load_job j = {.given = src};
    tw_status st = make_kernel(cx, &j, take_source, out);

    if (!j.k) /* not even the kernel that would have freed it */
        src->destroy((kernel_source *)src);
    return st;
}

void tw_kernel_destroy(tw_kernel *k)
{
    if (!k)
        return;
    unlink_kernel(k);
    if (k->unit)
        dsl_unit_destroy(k->unit);
    else if (k->source)
        k->source->destroy((kernel_source *)k->source);
    arena_release(&k->a);
    pthread_cond_destroy(&k->built);
    pthread_mutex_destroy(&k->lock);
    mem_free(k);
}

/* ---- texts and files ------------------------------------------------------------------------- */

static const char too_long[] = "above the limit of 1 MiB for a kernel's text";

static tw_status read_file(void *user, const char *path, char **text, size_t *length,
                           const char **why)
{
    tw_status st = text_file_read(path, SOURCE_MAX_BYTES, text, length, why);

    (void)user;
    if (st == TW_E_LIMIT)
        *why = too_long;
    return st;
}

static tw_status load_text(tw_context *cx, const char *name, const char *text, size_t length,
                           const char *kernel, const dsl_reader *reader, tw_kernel **out)
{
    load_job j = {
        .name = name, .text = text, .kernel = kernel, .length = length, .reader = reader};
    bool is_tir = ends_with(name, ".tir") || ends_with(name, ".sched");

    return make_kernel(cx, &j, is_tir ? load_tir : load_dsl, out);
}

tw_status tw_kernel_load_text(tw_context *cx, const char *name, const char *text, size_t length,
                              const char *kernel, tw_kernel **out)
{
    error_clear();
    if (!cx || !name || !text || !out)
        return error_set(TW_E_ARG, "tw_kernel_load_text: cx, name, text or out is NULL");
    if (length > SOURCE_MAX_BYTES) /* which may be no length at all: nothing is read */
        return error_set(TW_E_LIMIT, "%s: %s", name, too_long);
    return load_text(cx, name, text, length, kernel, NULL, out);
}

tw_status tw_kernel_load(tw_context *cx, const char *path, const char *kernel, tw_kernel **out)
{
    static const dsl_reader files = {read_file, NULL};
    const char *why = "";
    char *text = NULL;
    size_t length = 0;

    error_clear();
    if (!cx || !path || !out)
        return error_set(TW_E_ARG, "tw_kernel_load: cx, path or out is NULL");
    tw_status st = read_file(NULL, path, &text, &length, &why);
    if (st != TW_OK)
        return error_set(st, "%s: %s", path, why);
    st = load_text(cx, path, text, length, kernel, &files, out);
    mem_free(text);
    return st;
}
