/* The public ways to launch: by name, and bound. The warm path takes no lock, allocates nothing and
 * touches no file:  arguments -> key -> row -> executable -> driver. */
#include "compiler/base/check.h"
#include "compiler/base/mem.h"
#include "runtime/resolve.h"
#include "runtime/spec.h"
#include <string.h>

static tw_status read_options(const tw_device *dev, const tw_launch_options *given,
                              tw_launch_options *out)
{
    *out = (tw_launch_options)TW_LAUNCH_OPTIONS_INIT;
    if (!given)
        return TW_OK;
    if (given->size < sizeof given->size || given->size > 4096)
        return error_set(TW_E_ARG,
                         "tw_launch_options: size is %zu; start from "
                         "TW_LAUNCH_OPTIONS_INIT",
                         given->size);
    memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    if ((out->f64 || out->running_max_low) &&
        (dev->drv == &host_driver || dev->drv == &cuda_driver))
        return error_set(TW_E_ARG,
                         "tw_launch_options: f64 and running_max_low are for device "
                         "'interp', not '%s'",
                         dev->spec);
    if (out->program_first < 0 || out->program_count < 0)
        return error_set(TW_E_ARG, "tw_launch_options: a range of programs is not negative");
    return TW_OK;
}

static launch_options internal(const tw_launch_options *opt, tw_stream *stream)
{
    return (launch_options){.stream = stream,
                            .prints = !opt->quiet,
                            .f64 = opt->f64,
                            .running_max_low = opt->running_max_low,
                            .program_first = opt->program_first,
                            .program_count = opt->program_count};
}

/* What waits, loads or times would break a capture. */
static tw_status add_capture(tw_device *dev, tw_stream *stream, unsigned *flags)
{
    bool capturing = false;

    if (dev->drv->capturing)
        TRY(dev->drv->capturing(dev, stream, &capturing));
    *flags |= capturing ? SPEC_CAPTURING : 0u;
    return TW_OK;
}

/* The executable of a row, built if need be; NULL when the grid is empty. */
static tw_status executable_of(tw_kernel *k, tw_device *dev, tw_stream *stream, launch_args *args,
                               const char *pin, unsigned flags, spec_row **row, executable **out)
{
    TRY(spec_find(k, dev, args, pin, row));
    *out = atomic_load_explicit(&(*row)->exe, memory_order_acquire);
    if (*out && atomic_load_explicit(&(*row)->settled, memory_order_relaxed))
        return TW_OK;
    TRY(add_capture(dev, stream, &flags));
    TRY(spec_build(k, dev, *row, args, flags));
    *out = atomic_load_explicit(&(*row)->exe, memory_order_acquire);
    return TW_OK;
}

static tw_status launch_resolved(tw_kernel *k, tw_device *dev, tw_stream *stream, launch_args *args,
                                 const tw_launch_options *opt)
{
    const launch_options inner = internal(opt, stream);
    executable *exe;
    spec_row *row;

    TRY(executable_of(k, dev, stream, args, opt->config, 0, &row, &exe));
    return exe ? runtime_launch_exe(exe, args, &inner) : TW_OK;
}

tw_status tw_launch_with(tw_kernel *k, tw_device *dev, tw_stream *stream, const tw_arg *args,
                         size_t count, const tw_launch_options *options)
{
    launch_args *resolved;
    tw_launch_options opt;

    error_clear();
    if (!k || !dev)
        return error_set(TW_E_ARG, "tw_launch: k or dev is NULL");
    TRY(read_options(dev, options, &opt));
    TRY(runtime_resolve_named(k, dev, args, count, &resolved));
    return launch_resolved(k, dev, stream, resolved, &opt);
}

tw_status tw_launch_timed(tw_kernel *k, tw_device *dev, tw_stream *stream, const tw_arg *args,
                          size_t count, const tw_launch_options *options, double *seconds)
{
    launch_args resolved;
    tw_launch_options opt;
    executable *exe;
    spec_row *row;

    error_clear();
    if (!k || !dev || !seconds)
        return error_set(TW_E_ARG, "tw_launch_timed: k, dev or seconds is NULL");
    TRY(read_options(dev, options, &opt));
    TRY(runtime_resolve_args(k, dev, args, count, 0, &resolved));
    TRY(executable_of(k, dev, stream, &resolved, opt.config, 0, &row, &exe));
    const launch_options inner = internal(&opt, stream);
    *seconds = 0.0;
    return exe ? runtime_time_exe(exe, &resolved, &inner, seconds) : TW_OK;
}

tw_status tw_launch(tw_kernel *k, tw_device *dev, tw_stream *stream, const tw_arg *args,
                    size_t count)
{
    return tw_launch_with(k, dev, stream, args, count, NULL);
}

/* ---- bound kernels --------------------------------------------------------------------------- */

struct tw_bound {
    tw_kernel *k;
    tw_device *dev;
    executable *exe; /* holds a reference */
    uint64_t serial;
    tw_launch_options opt;
    char config[RUNTIME_CONFIG_TEXT]; /* pins exe's configuration for tensors of other facts */
};

tw_status tw_kernel_specialize(tw_kernel *k, tw_device *dev, const tw_arg *args, size_t count,
                               const tw_launch_options *options, tw_bound **out)
{
    launch_args resolved;
    tw_launch_options opt;
    executable *exe;
    spec_row *row;

    error_clear();
    if (!k || !dev || !out)
        return error_set(TW_E_ARG, "tw_kernel_specialize: k, dev or out is NULL");
    TRY(read_options(dev, options, &opt));
    TRY(runtime_resolve_args(k, dev, args, count, 0, &resolved));
    TRY(executable_of(k, dev, NULL, &resolved, opt.config, SPEC_ALWAYS, &row, &exe));
    TRY(runtime_exe_load(exe));
    tw_bound *b = mem_zalloc(sizeof *b);
    if (!b)
        return error_set(TW_E_NOMEM, "no memory for a bound kernel");
    *b = (tw_bound){.k = k, .dev = dev, .exe = exe, .serial = runtime_serial(), .opt = opt};
    tw_status st = config_text(&exe->cfg, b->config);
    if (st != TW_OK) {
        mem_free(b);
        return st;
    }
    b->opt.config = b->config;
    runtime_exe_retain(exe);
    *out = b;
    return TW_OK;
}

/* Does what the code assumes hold for these tensors? */
static bool facts_hold(const executable *exe, const launch_args *args)
{
    const kernel_sig *sig = &exe->kernel->source->sig;

    for (uint32_t i = 0; i < sig->nparams; i++)
        if (sig->param[i].is_tensor &&
            ((exe->p.facts[i].unit_inner && !args->p.facts[i].unit_inner) ||
             exe->p.facts[i].align > args->p.facts[i].align))
            return false;
    return true;
}

tw_status tw_bound_launch(tw_bound *b, tw_stream *stream, const tw_arg *args, size_t count)
{
    launch_args *resolved;

    error_clear();
    if (!b)
        return error_set(TW_E_ARG, "tw_bound_launch: b is NULL");
    TRY(runtime_resolve_bound(b->serial, b->exe, args, count, &resolved));
    if (!facts_hold(b->exe, resolved))
        return launch_resolved(b->k, b->dev, stream, resolved, &b->opt);
    const launch_options inner = internal(&b->opt, stream);
    return runtime_launch_exe(b->exe, resolved, &inner);
}

void tw_bound_destroy(tw_bound *b)
{
    if (!b)
        return;
    runtime_exe_release(b->exe);
    mem_free(b);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static tw_status fill_answer(tw_kernel *k, const spec_row *row, const executable *exe,
                             const launch_args *args, tw_answer *out)
{
    int64_t grid[3];

    TRY(runtime_grid(exe, args, grid));
    if (__builtin_mul_overflow(grid[0] * grid[1], grid[2], &out->programs))
        out->programs = INT64_MAX;
    TRY(config_text(&exe->cfg, out->config));
    pthread_mutex_lock(&k->lock);
    out->layer = row->layer;
    out->seconds = row->seconds;
    pthread_mutex_unlock(&k->lock);
    out->artifact_stored = exe->from_store;
    out->compile_s = exe->compile_s;
    out->code_bytes = exe->art->code_bytes;
    out->ir_ops = exe->art->ir_ops;
    out->text_lines = k->source->sig.text_lines;
    return TW_OK;
}

tw_status tw_query(tw_kernel *k, tw_device *dev, const tw_arg *args, size_t count,
                   const tw_launch_options *options, tw_answer *answer)
{
    tw_answer all = TW_ANSWER_INIT;
    launch_args resolved;
    tw_launch_options opt;
    executable *exe;
    spec_row *row;

    error_clear();
    if (!k || !dev || !answer || answer->size < sizeof answer->size || answer->size > 4096)
        return error_set(TW_E_ARG, "tw_query: k, dev or answer is NULL, or answer has no size");
    TRY(read_options(dev, options, &opt));
    TRY(runtime_resolve_args(k, dev, args, count, 0, &resolved));
    TRY(executable_of(k, dev, NULL, &resolved, opt.config, SPEC_NEVER_TUNE | SPEC_ALWAYS, &row,
                      &exe));
    TRY(fill_answer(k, row, exe, &resolved, &all));
    all.size = answer->size;
    memcpy(answer, &all, all.size < sizeof all ? all.size : sizeof all);
    return TW_OK;
}
