/* tw_kernel_compile: a kernel compiled without tensors, stopped at any stage. */
#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/base/namelist.h"
#include "compiler/ir/irtext.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/explain.h"
#include "runtime/args.h"
#include "runtime/clock.h"
#include "runtime/lower.h"
#include "runtime/resolve.h"
#include <stdio.h>
#include <string.h>

typedef struct emit_job {
    tw_kernel *k;
    tw_compile_options opt;
    const target *t;
    problem p;
    config cfg;
    gpu_profile gpu;
    bool has_gpu; /* a profile was asked for */
    bool generic;
    bool pinned; /* something of the configuration was given */
    pipeline_options passes;
    bool dumped; /* the pass that was asked for has run */
    lowering l;
    const char *data;
    size_t size;
} emit_job;

/* ---- settings -------------------------------------------------------------------------------- */

static int const_index(const kernel_sig *sig, const char *name)
{
    for (uint32_t i = 0; i < sig->nconsts; i++)
        if (strcmp(sig->cons[i].name, name) == 0)
            return (int)i;
    return -1;
}

static tw_status set_const(emit_job *j, int i, const text_pair *pair, uint64_t *named)
{
    if (*named >> i & 1)
        return ARG_ERROR(NULL, "set: '%s' is given twice", pair->name);
    *named |= (uint64_t)1 << i;
    return text_const(j->k->source, (uint32_t)i, pair->value, &j->p.cons[i].value);
}

static const char *example_of(const sig_const *c)
{
    switch (c->kind) {
    case BIND_DTYPE:
        return "f32";
    case BIND_INT:
        return "64";
    case BIND_BOOL:
        return "true";
    case BIND_ENUM:
        return c->member[0];
    case BIND_FN:
        break;
    }
    return "NAME";
}

/* Names the first compile-time value without any, and shows how all of them are given. */
static tw_status are_set(const kernel_sig *sig, uint64_t named)
{
    char hint[400];
    namelist l = namelist_begin(hint, sizeof hint, "set what has no default, as in ", ",");
    const char *first = NULL;

    for (uint32_t i = 0; i < sig->nconsts; i++) {
        const sig_const *c = &sig->cons[i];
        if (c->has_default || named >> i & 1)
            continue;
        namelist_add(&l, "%s=%s", c->name, example_of(c));
        first = first ? first : c->name;
    }
    namelist_end(&l);
    if (!first)
        return TW_OK;
    return ARG_ERROR(hint, "compile-time value '%s' of kernel '%s' is not set", first, sig->name);
}

static tw_status set_consts(emit_job *j, const char *text)
{
    const kernel_sig *sig = &j->k->source->sig;
    uint64_t named = 0;
    text_pair pair;

    j->p.nconsts = sig->nconsts;
    for (uint32_t i = 0; i < sig->nconsts; i++)
        j->p.cons[i] =
            (ir_binding){sig->cons[i].name, sig->cons[i].kind, sig->cons[i].default_value};
    while (pair_next(&text, &pair)) {
        int i = const_index(sig, pair.name);
        if (i >= 0)
            TRY(set_const(j, i, &pair, &named));
    }
    return are_set(sig, named);
}

static tw_status set_generic(emit_job *j, const text_pair *pair)
{
    int64_t v;

    if (!text_bool(pair->value, &v))
        return ARG_ERROR(NULL, "'generic': '%.40s' is not a bool (true or false)", pair->value);
    j->generic = v != 0;
    return TW_OK;
}

/* Everything in text that is not a compile-time value, as a configuration's pins. */
static tw_status set_config(emit_job *j, const char *text)
{
    const kernel_sig *sig = &j->k->source->sig;
    char pins[RUNTIME_CONFIG_TEXT] = "";
    size_t n = 0;
    text_pair pair;

    while (pair_next(&text, &pair)) {
        if (const_index(sig, pair.name) >= 0)
            continue;
        if (strcmp(pair.name, "generic") == 0) {
            TRY(set_generic(j, &pair));
            continue;
        }
        int m = snprintf(pins + n, sizeof pins - n, "%s%s=%s", n ? "," : "", pair.name, pair.value);
        n += m > 0 ? (size_t)m : 0;
        if (n >= sizeof pins)
            return error_set(TW_E_LIMIT, "set: a configuration is above the limit of %d bytes",
                             RUNTIME_CONFIG_TEXT - 1);
    }
    j->pinned = n > 0;
    return config_pin(j->k, j->t, NULL, &j->p, pins, &j->cfg, NULL);
}

/* As documented for tw_kernel_compile: aligned and dense, unless generic. */
static void assume_facts(emit_job *j)
{
    const kernel_sig *sig = &j->k->source->sig;

    for (uint32_t i = 0; i < sig->nparams; i++) {
        const sig_param *p = &sig->param[i];
        enum dtype t = p->dtype_const < 0 ? p->dtype : (enum dtype)j->p.cons[p->dtype_const].value;
        j->p.facts[i] = (tensor_facts){!j->generic, (uint16_t)(j->generic ? dtype_bytes(t) : 16)};
    }
}

/* ---- stages ---------------------------------------------------------------------------------- */

static tw_status unknown_stage(const emit_job *j)
{
    char list[120];
    namelist l = namelist_begin(list, sizeof list, "it has ast, ", ", ");

    namelist_add(&l, "tir");
    for (const char *const *e = j->t->emits; *e; e++)
        namelist_add(&l, "%s", *e);
    namelist_end(&l);
    return ARG_ERROR(list, "target '%s' cannot emit '%.40s'", j->t->name, j->opt.emit);
}

static bool is_pass(const char *(*name)(size_t i), const char *pass)
{
    for (size_t i = 0; name(i); i++)
        if (strcmp(name(i), pass) == 0)
            return true;
    return false;
}

static tw_status check_dump(const char *pass)
{
    if (!pass || strcmp(pass, "changed") == 0 || is_pass(pipeline_pass_name, pass) ||
        is_pass(schedule_pass_name, pass))
        return TW_OK;
    return ARG_ERROR("give a pass, or changed", "there is no pass '%.40s'", pass);
}

static tw_status check_dumped(const emit_job *j)
{
    if (!j->opt.dump || j->dumped || strcmp(j->opt.dump, "changed") == 0)
        return TW_OK;
    return ARG_ERROR("peel_tails is for CPUs, check_accesses for checked kernels, and tile IR of "
                     "level 2 goes through no pass",
                     "pass '%s' does not run for target '%s'", j->opt.dump, j->t->name);
}

static bool target_emits(const target *t, const char *kind)
{
    for (const char *const *e = t->emits; *e; e++)
        if (strcmp(*e, kind) == 0)
            return true;
    return false;
}

static void log_stage(void *user, const char *heading, const char *text)
{
    emit_job *j = user;
    bool has_text = text && *text;

    if (strcmp(heading, "time") == 0 && has_text)
        runtime_log_text(j->k->cx, TW_LOG_INFO, text);
    else
        runtime_log_text(
            j->k->cx, TW_LOG_DEBUG,
            arena_printf(&j->l.a, "%s%s%s", heading, has_text ? "\n" : "", has_text ? text : ""));
    j->dumped = j->dumped || strcmp(heading, "time") != 0;
}

static tw_status ast_guarded(void *arg)
{
    emit_job *j = arg;
    const kernel_source *src = j->k->source;

    j->data = src->print_ast ? src->print_ast(src, &j->l.a) : NULL;
    j->size = j->data ? strlen(j->data) : 0;
    return TW_OK;
}

/* For targets that have nothing of their own to say. */
static void explain_places(emit_job *j)
{
    explain_map map;
    strbuf text;

    sb_init(&text, &j->l.a);
    explain_begin(&map, j->l.module->kernel, &j->l.a);
    explain_rows(&map, &text);
    j->data = text.s;
    j->size = text.n;
}

/* Of the target, for dumps and times, where the stage that was asked for comes before them. */
static tw_status run_own_passes(emit_job *j, const target_input *in)
{
    const char *data;
    size_t size;

    if ((!j->opt.dump && !j->opt.time) || !j->t->emits[0])
        return TW_OK;
    return j->t->emit(j->t, in, j->t->emits[0], &j->l.a, &data, &size);
}

static tw_status stage_guarded(void *arg)
{
    emit_job *j = arg;
    const target_input in = {.module = j->l.module,
                             .config = j->cfg.value,
                             .nconfig = j->cfg.n,
                             .diags = &j->l.diags,
                             .gpu = j->has_gpu ? &j->gpu.limits : NULL,
                             .passes = &j->passes};
    strbuf text;

    if (strcmp(j->opt.emit, "tir") == 0) {
        sb_init(&text, &j->l.a);
        ir_print(&text, j->l.module, 0);
        j->data = text.s;
        j->size = text.n;
        if (!j->opt.dump && !j->opt.time)
            return TW_OK;
    }
    set_facts(j->l.module, &j->k->source->sig, j->p.facts);
    TRY(pipeline_run(j->l.module, &j->l.diags, &j->passes));
    if (strcmp(j->opt.emit, "explain") == 0 && !target_emits(j->t, "explain"))
        explain_places(j);
    if (j->data)
        return run_own_passes(j, &in);
    return j->t->emit(j->t, &in, j->opt.emit, &j->l.a, &j->data, &j->size);
}

static tw_status emit_ast(emit_job *j)
{
    tw_status st = guard_run(ast_guarded, j);

    if (st == TW_OK && !j->data)
        return error_set(TW_E_UNSUPPORTED,
                         "kernel '%s' was loaded as tile IR: it has no syntax "
                         "tree",
                         j->k->source->sig.name);
    return error_thrown(st);
}

/* The first row of "explain": which code path, GPU and configuration the others are about. */
static tw_status say_what_for(void *arg)
{
    emit_job *j = arg;
    char chosen[RUNTIME_CONFIG_TEXT];
    strbuf text;

    TRY(config_text(&j->cfg, chosen));
    sb_init(&text, &j->l.a);
    sb_fmt(&text, "for\t%s\t%s\t%s\n", j->t->name, j->has_gpu ? j->gpu.name : "", chosen);
    sb_mem(&text, j->data, j->size);
    j->data = text.s;
    j->size = text.n;
    return TW_OK;
}

static tw_status take_profile(emit_job *j)
{
    int needs = 0;

    if (!j->opt.profile)
        return TW_OK;
    TRY(profile_find(j->opt.profile, &j->gpu));
    if (strcmp(j->t->family, "cuda") != 0)
        return ARG_ERROR("give it with a target such as sm_89", "target '%s' takes no profile",
                         j->t->name);
    if (sscanf(j->t->name, "sm_%d", &needs) == 1 && needs > j->gpu.limits.capability)
        return ARG_ERROR("leave the target out: a profile says which",
                         "%s, of capability %d.%d, cannot run code of target '%s'", j->gpu.name,
                         j->gpu.limits.capability / 10, j->gpu.limits.capability % 10, j->t->name);
    j->has_gpu = true;
    return TW_OK;
}

static tw_status make_stage(emit_job *j)
{
    TRY(lowering_run(&j->l, &j->p, &j->cfg));
    tw_status st = guard_run(stage_guarded, j);
    if (st == TW_OK && strcmp(j->opt.emit, "explain") == 0)
        st = guard_run(say_what_for, j);
    return st;
}

/* As a launch does: of the defaults the first that the limits allow. */
static tw_status make_fitting(emit_job *j)
{
    double started = clock_seconds();
    tw_status st = make_stage(j);

    for (int tried = 1; st == TW_E_LIMIT && !j->pinned && config_worth_another(tried, started) &&
                        config_next(j->k, j->t, &j->p, 0, &j->cfg);
         tried++) {
        lowering_end(&j->l);
        lowering_begin(&j->l, j->k, j->t);
        j->l.passes = &j->passes;
        j->data = NULL;
        st = make_stage(j);
    }
    if (st == TW_OK)
        error_clear();
    return st;
}

static tw_status emit(emit_job *j)
{
    const char *set = j->opt.set ? j->opt.set : "";

    if (strcmp(j->opt.emit, "ast") == 0)
        return emit_ast(j);
    if (strcmp(j->opt.emit, "tir") != 0 && strcmp(j->opt.emit, "explain") != 0 &&
        !target_emits(j->t, j->opt.emit))
        return unknown_stage(j);
    TRY(check_dump(j->opt.dump));
    TRY(take_profile(j));
    TRY(set_consts(j, set));
    TRY(set_config(j, set));
    assume_facts(j);
    j->passes =
        (pipeline_options){.dump = j->opt.dump, .text = log_stage, .user = j, .time = j->opt.time};
    j->l.passes = &j->passes;
    tw_status st = make_fitting(j);
    return st == TW_OK ? check_dumped(j) : diags_failed(&j->l.diags, st);
}

/* ---- the call -------------------------------------------------------------------------------- */

static tw_status hand_over(const emit_job *j, char **data, size_t *size)
{
    char *copy = mem_alloc(j->size + 1);

    if (!copy)
        return error_set(TW_E_NOMEM, "no memory for %zu bytes of output", j->size);
    memcpy(copy, j->data, j->size);
    copy[j->size] = 0;
    *data = copy;
    *size = j->size;
    return TW_OK;
}

static tw_status read_options(const tw_compile_options *given, tw_compile_options *out)
{
    *out = (tw_compile_options)TW_COMPILE_OPTIONS_INIT;
    if (!given)
        return TW_OK;
    if (given->size < sizeof given->size || given->size > 4096)
        return error_set(TW_E_ARG, "tw_compile_options: start from TW_COMPILE_OPTIONS_INIT");
    memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    if (!out->emit)
        out->emit = "ll";
    return TW_OK;
}

/* The newest path whose code a GPU of this capability runs, or NULL. */
static const target *path_for(int capability)
{
    const target *t = NULL;
    char name[16];

    for (; capability > 0 && !t; capability--) {
        snprintf(name, sizeof name, "sm_%d", capability);
        t = target_find(name);
    }
    return t;
}

static tw_status unknown_target(const char *name)
{
    char list[240];
    int capability = 0;
    bool of_gpu = sscanf(name, "sm_%3d", &capability) == 1;
    const target *t = of_gpu ? path_for(capability) : NULL;
    namelist l = namelist_begin(list, sizeof list, "there are cpu, ", ", ");

    for (size_t i = 0; i < target_count(); i++)
        namelist_add(&l, "%s", target_at(i)->name);
    namelist_end(&l);
    if (t)
        snprintf(list, sizeof list, "such a GPU runs code of target '%s'; a profile has its limits",
                 t->name);
    return ARG_ERROR(list, "no target '%.40s'", name);
}

/* The one that is named; else the newest that a profile's GPU runs; else the CPU's. */
static tw_status find_target(emit_job *j)
{
    const char *name = j->opt.target ? j->opt.target : "cpu";

    if (!j->opt.target && j->opt.profile) {
        TRY(profile_find(j->opt.profile, &j->gpu));
        j->t = path_for(j->gpu.limits.capability);
        name = j->opt.profile;
    } else {
        j->t = target_find(name);
    }
    return j->t ? TW_OK : unknown_target(name);
}

tw_status tw_kernel_compile(tw_kernel *k, const tw_compile_options *options, char **data,
                            size_t *size)
{
    emit_job j;

    error_clear();
    if (!k || !data || !size)
        return error_set(TW_E_ARG, "tw_kernel_compile: k, data or size is NULL");
    memset(&j, 0, sizeof j);
    j.k = k;
    TRY(read_options(options, &j.opt));
    TRY(find_target(&j));
    lowering_begin(&j.l, k, j.t);
    tw_status st = emit(&j);
    if (st == TW_OK)
        st = hand_over(&j, data, size);
    lowering_end(&j.l);
    return st;
}
