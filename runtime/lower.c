#include "runtime/lower.h"
#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include "compiler/ir/irtext.h"
#include "compiler/passes/pipeline.h"
#include "runtime/args.h"
#include <string.h>

void bindings_of(const tw_kernel *k, const problem *p, const config *cfg, binding_list *out)
{
    out->n = 0;
    for (uint32_t i = 0; i < p->nconsts; i++)
        out->at[out->n++] = p->cons[i];
    for (uint32_t i = 0; i < k->source->sig.ntunes && i < cfg->n; i++)
        out->at[out->n++] = cfg->value[i];
}

/* ---- lowering -------------------------------------------------------------------------------- */

void lowering_begin(lowering *l, const tw_kernel *k, const target *t)
{
    memset(l, 0, sizeof *l);
    l->k = k;
    l->t = t;
    arena_init(&l->a);
    diag_init(&l->diags, &l->a);
}

void lowering_end(lowering *l)
{
    arena_release(&l->a);
}

static bool only_limits(const diag_list *l)
{
    for (uint32_t i = 0; i < l->all.n; i++) {
        const diag *d = l->all.at[i];
        if (d->severity == DIAG_ERROR && d->id != DIAG_LIMIT)
            return false;
    }
    return true;
}

tw_status diags_failed(diag_list *diags, tw_status st)
{
    if (diags->errors == 0)
        return error_thrown(st);
    return error_set_diags(st == TW_E_SOURCE && only_limits(diags) ? TW_E_LIMIT : st, diags);
}

typedef struct lower_job {
    lowering *l;
    binding_list bindings;
} lower_job;

/* The one that is rendered last. */
static diag *last_of(const diag_list *l)
{
    diag *last = l->all.at[0];

    for (uint32_t i = 1; i < l->all.n; i++) {
        diag *d = l->all.at[i];
        if (d->where.src != last->where.src || d->where.lo >= last->where.lo)
            last = d;
    }
    return last;
}

/* A mistake may be one for these compile-time values only: "with D = 256, BLOCK = 64". */
static tw_status note_values(void *arg)
{
    lower_job *j = arg;
    const kernel_source *src = j->l->k->source;
    diag_list *diags = &j->l->diags;
    strbuf text;
    char value[32];

    sb_init(&text, &j->l->a);
    for (uint32_t i = 0; i < j->bindings.n; i++) {
        const ir_binding *b = &j->bindings.at[i];
        sb_fmt(&text, "%s%s = ", i ? ", " : "", b->name);
        if (i < src->sig.nconsts)
            sb_str(&text, const_value_text(src, i, b->value, value));
        else
            sb_fmt(&text, "%lld", (long long)b->value);
    }
    diag_note(diags, last_of(diags), (span){0}, "with %s", text.s);
    return TW_OK;
}

static tw_status lower_guarded(void *arg)
{
    lower_job *j = arg;
    lowering *l = j->l;
    const kernel_source *src = l->k->source;

    intern_init(&l->names, &l->a);
    TRY(src->lower(src, &l->a, &l->names, j->bindings.at, j->bindings.n, l->t->name, &l->diags,
                   &l->module));
    l->hash = ir_hash(l->module);
    if (!l->k->checked)
        return TW_OK;
    return pipeline_run_pass(l->module, "check_accesses", &l->diags, l->passes);
}

tw_status lowering_run(lowering *l, const problem *p, const config *cfg)
{
    lower_job j;

    j.l = l;
    bindings_of(l->k, p, cfg, &j.bindings);
    error_clear();
    tw_status st = guard_run(lower_guarded, &j);
    if (st == TW_OK)
        return TW_OK;
    if (l->diags.errors > 0 && j.bindings.n > 0)
        (void)guard_run(note_values, &j); /* without memory it is left out */
    return diags_failed(&l->diags, st);
}

/* ---- plans ----------------------------------------------------------------------------------- */

static int32_t symbol_named(const kernel_sig *sig, const char *name)
{
    for (uint32_t i = 0; i < sig->nsymbols; i++)
        if (strcmp(sig->symbol[i], name) == 0)
            return (int32_t)i;
    return -1;
}

void plan_make(const tw_kernel *k, const ir_module *m, arena *a, launch_plan *out)
{
    const kernel_sig *sig = &k->source->sig;
    const ir_fn *fn = m->kernel;

    out->program = launch_prepare(a, m->launch);
    out->nparams = fn->params.n;
    out->nvisible = sig->nparams;
    out->ndims = fn->dims.n;
    out->dim_symbol = ARENA_ARRAY(a, int32_t, fn->dims.n);
    out->dim_value = ARENA_ARRAY(a, int64_t, fn->dims.n);
    for (uint32_t i = 0; i < fn->dims.n; i++) {
        const ir_dim *d = &fn->dims.at[i];
        out->dim_symbol[i] = d->is_const ? -1 : symbol_named(sig, d->name);
        out->dim_value[i] = d->value;
        ICHECK(d->is_const || out->dim_symbol[i] >= 0, "a run-time dimension is in the signature");
    }
    ICHECK(fn->params.n >= sig->nparams, "lowering keeps the signature's parameters");
    out->in_symbol = ARENA_ARRAY(a, int32_t, fn->params.n - sig->nparams);
    for (uint32_t i = sig->nparams; i < fn->params.n; i++) {
        ICHECK(fn->params.at[i].kind == PARAM_DIM, "hidden parameters are dimensions");
        int32_t s = out->dim_symbol[fn->params.at[i].symbol];
        ICHECK(s >= 0, "a hidden parameter is a run-time dimension");
        out->in_symbol[i - sig->nparams] = s;
    }
}

tw_status plan_eval(const tw_kernel *k, const launch_plan *plan, const launch_args *args,
                    ir_scalar *in, int64_t grid[3])
{
    const char *failed = NULL;

    memcpy(in, args->scalar, sizeof *in * plan->nvisible);
    for (uint32_t i = plan->nvisible; i < plan->nparams; i++)
        in[i].i = args->p.symbol[plan->in_symbol[i - plan->nvisible]];
    tw_status st = launch_eval(plan->program, in, args->given, grid, &failed);
    if (st == TW_OK)
        return TW_OK;
    return error_diag(st, DIAG_BAD_ARGUMENT, NULL, "kernel '%s' refuses these arguments: %s",
                      k->source->sig.name, failed ? failed : "its launch function failed");
}
