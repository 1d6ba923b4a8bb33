#include "compiler/base/check.h"
#include "compiler/base/mem.h"
#include "compiler/ir/element.h"
#include "runtime/clock.h"
#include "runtime/launch.h"
#include "runtime/lower.h"
#include <string.h>

/* ---- workspaces: one block a launch, kept by the device between launches --------------------- */

typedef struct workspace {
    size_t size; /* of the bytes behind this header */
    char *bytes;
} workspace;

#define PART 256 /* alignment of each part of a block */

static void workspace_free(workspace *w)
{
    if (!w)
        return;
    mem_free(w->bytes);
    mem_free(w);
}

void workspace_drop(tw_device *dev)
{
    workspace_free(atomic_exchange(&dev->workspace, NULL));
}

/* The kept block when it is large enough and nobody else has it, else a new one. */
static tw_status workspace_take(tw_device *dev, size_t size, workspace **out)
{
    workspace *w = atomic_exchange(&dev->workspace, NULL);

    if (w && w->size >= size)
        return *out = w, TW_OK;
    workspace_free(w);
    w = mem_zalloc(sizeof *w);
    if (w)
        *w = (workspace){size, mem_alloc_aligned(PART, size)};
    if (!w || !w->bytes) {
        workspace_free(w);
        return error_set(TW_E_NOMEM, "no memory for a workspace of %zu bytes", size);
    }
    *out = w;
    return TW_OK;
}

static void workspace_give(tw_device *dev, workspace *w)
{
    workspace_free(atomic_exchange(&dev->workspace, w));
}

/* ---- one launch ------------------------------------------------------------------------------ */

typedef struct launch_state {
    executable *exe;
    const launch_args *args;
    const launch_options *opt;
    int64_t grid[3];
    int64_t first, count;
    workspace *work;                         /* or NULL */
    driver_scratch scratch;                  /* what part is counted in; bytes NULL: none */
    size_t part[RUNTIME_MAX_WORKSPACES + 1]; /* offset of each workspace, then of the counters */
    launch_calls calls;
    ir_scalar in[RUNTIME_MAX_PARAMS + RUNTIME_MAX_SYMBOLS];
    uint64_t slots[RUNTIME_MAX_SLOTS];
} launch_state;

static const char *name_of(const launch_state *l)
{
    return l->exe->kernel->source->sig.name;
}

static tw_status check_grid(launch_state *l)
{
    int64_t total = 1;

    for (int d = 0; d < 3; d++)
        if (l->grid[d] > INT32_MAX || __builtin_mul_overflow(total, l->grid[d], &total))
            return error_set(
                TW_E_LIMIT,
                "kernel '%s': a grid of %lld x %lld x %lld programs is above the limit "
                "of 2147483647 in one dimension and 2^63 in all",
                name_of(l), (long long)l->grid[0], (long long)l->grid[1], (long long)l->grid[2]);
    l->first = 0;
    l->count = total;
    if (!l->opt || l->opt->program_count == 0)
        return TW_OK;
    l->first = l->opt->program_first;
    l->count = l->opt->program_count;
    if (l->first < 0 || l->count < 0)
        return error_set(TW_E_ARG, "programs %lld .. of kernel '%s': negative", (long long)l->first,
                         name_of(l));
    if (l->first >= total)
        l->count = 0;
    else if (l->count > total - l->first)
        l->count = total - l->first;
    return TW_OK;
}

static int64_t dim_value(const launch_state *l, uint32_t dim)
{
    const launch_plan *plan = &l->exe->plan;
    int32_t s = plan->dim_symbol[dim];

    return s < 0 ? plan->dim_value[dim] : l->args->p.symbol[s];
}

/* What it is in this launch; -1: more than 63 bits hold. */
static int64_t count_value(const launch_state *l, const recipe_count *c)
{
    int64_t n = 1;

    for (int i = 0; i < c->nterms; i++) {
        int64_t extent = dim_value(l, c->dim[i]);
        int64_t blocks = extent / c->per[i] + (extent % c->per[i] != 0);
        if (__builtin_mul_overflow(n, blocks, &n))
            return -1;
    }
    if (__builtin_add_overflow(n, c->more, &n) || __builtin_mul_overflow(n, c->factor, &n))
        return -1;
    return n;
}

static tw_status workspace_size(const launch_state *l, const recipe_count *bytes, size_t *out)
{
    int64_t size = count_value(l, bytes);

    if (size < 0 || size > INT64_MAX / (RUNTIME_MAX_WORKSPACES + 1) - PART)
        return error_set(TW_E_LIMIT, "kernel '%s' needs a workspace larger than memory",
                         name_of(l));
    *out = ((size_t)size + PART - 1) / PART * PART;
    return TW_OK;
}

static tw_stream *stream_of(const launch_state *l)
{
    return l->opt ? l->opt->stream : NULL;
}

static tw_status scratch_take(launch_state *l, size_t size)
{
    tw_device *dev = l->exe->device;

    if (dev->drv->scratch_take)
        return dev->drv->scratch_take(dev, size, stream_of(l), &l->scratch);
    TRY(workspace_take(dev, size, &l->work));
    l->scratch.bytes = l->work->bytes;
    return TW_OK;
}

static void scratch_give(launch_state *l)
{
    tw_device *dev = l->exe->device;

    if (l->work)
        workspace_give(dev, l->work);
    else if (l->scratch.bytes)
        dev->drv->scratch_give(dev, &l->scratch, stream_of(l));
}

static tw_status take_workspaces(launch_state *l)
{
    const artifact *art = l->exe->art;
    size_t total = 0, size = 0;

    l->work = NULL;
    l->scratch = (driver_scratch){NULL, NULL};
    if (art->nworkspaces == 0 && art->ncounters == 0)
        return TW_OK;
    for (uint32_t i = 0; i < art->nworkspaces; i++) {
        TRY(workspace_size(l, &art->workspace[i], &size));
        l->part[i] = total;
        total += size;
    }
    l->part[art->nworkspaces] = total;
    total += art->ncounters * sizeof(uint64_t);
    return scratch_take(l, total ? total : PART);
}

/* The entry reads a scalar from the low bytes of its slot. */
static uint64_t scalar_bits(const launch_state *l, uint32_t i)
{
    const executable *exe = l->exe;
    uint64_t bits = 0;

    element_write(param_dtype(&exe->kernel->source->sig.param[i], &exe->p), &bits, l->in[i]);
    return bits;
}

static uint64_t slot_value(const launch_state *l, recipe_slot s)
{
    const tensor_arg *tensor = &l->args->tensor[s.param];

    switch ((enum slot_kind)s.kind) {
    case SLOT_POINTER:
        return (uintptr_t)tensor->base;
    case SLOT_STRIDE:
        return (uint64_t)tensor->stride[s.index];
    case SLOT_DIM:
        return (uint64_t)dim_value(l, s.index);
    case SLOT_SCALAR:
        return scalar_bits(l, s.param);
    case SLOT_GRID:
        return (uint64_t)l->grid[s.index];
    case SLOT_WORKSPACE:
        return (uintptr_t)(l->scratch.bytes + l->part[s.index]);
    case SLOT_COUNTER:
        return (uintptr_t)(l->scratch.bytes + l->part[l->exe->art->nworkspaces] +
                           s.index * sizeof(uint64_t));
    case SLOT_ASSERT:
        return (uintptr_t)l->exe->device->drv->assert_record(l->exe->device, l->exe->loaded);
    case SLOT_CALLS:
        return (uintptr_t)&l->calls.calls;
    case SLOT_FIRST:
        return 0; /* what a driver launches from elsewhere, it writes itself */
    }
    return 0;
}

static tw_status clear_counters(const launch_state *l)
{
    const artifact *art = l->exe->art;
    tw_device *dev = l->exe->device;
    size_t size = art->ncounters * sizeof(uint64_t);

    if (size == 0)
        return TW_OK;
    char *at = l->scratch.bytes + l->part[art->nworkspaces];
    if (dev->drv->clear)
        return dev->drv->clear(dev, at, size, stream_of(l));
    memset(at, 0, size);
    return TW_OK;
}

static tw_status assert_status(const launch_state *l, int32_t failed)
{
    char text[512];

    if (failed == 0)
        return TW_OK;
    return error_set(TW_E_ASSERT, "kernel '%s': assert failed: %s", name_of(l),
                     launch_assert_text(&l->calls, failed, text, sizeof text));
}

/* Where the step has a grid of its own, it takes the place of the kernel's. */
static tw_status own_grid(const launch_state *l, const recipe_step *step, driver_step *s)
{
    if (step->programs.factor == 0)
        return TW_OK;
    int64_t n = count_value(l, &step->programs);
    if (n < 1 || n > INT32_MAX)
        return error_set(TW_E_LIMIT,
                         "kernel '%s': a step of its launch has more than 2147483647 programs",
                         name_of(l));
    s->grid[0] = (int32_t)n;
    s->grid[1] = s->grid[2] = 1;
    s->first = 0;
    s->count = n;
    return TW_OK;
}

static tw_status run_step(launch_state *l, const recipe_step *step)
{
    executable *exe = l->exe;
    driver_step s = {
        .art = exe->art,
        .step = step,
        .slots = l->slots,
        .tensor = l->args->tensor,
        .value = l->in,
        .grid = {(int32_t)l->grid[0], (int32_t)l->grid[1], (int32_t)l->grid[2]},
        .first = l->first,
        .count = l->count,
        .threads = exe->threads,
        .f64 = l->opt && l->opt->f64,
        .running_max_low = l->opt && l->opt->running_max_low,
        .calls = &l->calls.calls,
        .stop = l->opt ? l->opt->stop : NULL,
        .stop_user = l->opt ? l->opt->stop_user : NULL,
    };
    int32_t failed = 0;

    TRY(own_grid(l, step, &s));
    TRY(clear_counters(l));
    for (uint32_t i = 0; i < step->nslots; i++)
        l->slots[i] = slot_value(l, step->slot[i]);
    TRY(exe->device->drv->launch(exe->device, exe->loaded, &s, stream_of(l), &failed));
    return assert_status(l, failed);
}

static tw_status make_ready(const launch_state *l)
{
    const executable *exe = l->exe;
    int32_t failed = 0;

    if (!exe->device->drv->ready)
        return TW_OK;
    TRY(exe->device->drv->ready(exe->device, exe->loaded, &l->calls.calls, &failed));
    return assert_status(l, failed);
}

/* plan_eval, unless the thread's last launch was of these values with exe. */
static tw_status evaluate(launch_state *l)
{
    static _Thread_local struct {
        uint64_t exe, values;
        int64_t grid[3];
        ir_scalar in[RUNTIME_MAX_PARAMS + RUNTIME_MAX_SYMBOLS];
    } last;
    const executable *exe = l->exe;
    size_t size = exe->plan.nparams * sizeof *l->in;

    if (l->args->values && last.values == l->args->values && last.exe == exe->serial) {
        memcpy(l->grid, last.grid, sizeof l->grid);
        memcpy(l->in, last.in, size);
        return TW_OK;
    }
    last.values = 0;
    TRY(plan_eval(exe->kernel, &exe->plan, l->args, l->in, l->grid));
    memcpy(last.grid, l->grid, sizeof l->grid);
    memcpy(last.in, l->in, size);
    last.exe = exe->serial;
    last.values = l->args->values;
    return TW_OK;
}

tw_status runtime_launch_exe(executable *exe, const launch_args *args, const launch_options *opt)
{
    launch_state l; /* not cleared: large, and every part is written before it is read */
    tw_status st = TW_OK;

    l.exe = exe;
    l.args = args;
    l.opt = opt;
    TRY(evaluate(&l));
    if (grid_is_empty(l.grid))
        return TW_OK;
    TRY(check_grid(&l));
    if (l.count == 0)
        return TW_OK;
    TRY(runtime_exe_load(exe));
    launch_calls_begin(&l.calls, exe->kernel->cx, exe->art, opt && opt->prints);
    TRY(make_ready(&l));
    TRY(take_workspaces(&l));
    for (uint32_t i = 0; i < exe->art->nsteps && st == TW_OK; i++)
        st = run_step(&l, &exe->art->step[i]);
    scratch_give(&l);
    return st;
}

tw_status runtime_grid(const executable *exe, const launch_args *args, int64_t grid[3])
{
    ir_scalar in[RUNTIME_MAX_PARAMS + RUNTIME_MAX_SYMBOLS];

    return plan_eval(exe->kernel, &exe->plan, args, in, grid);
}

/* ---- timing ---------------------------------------------------------------------------------- */

static tw_status time_by_clock(executable *exe, const launch_args *args, const launch_options *opt,
                               double *seconds)
{
    const driver *drv = exe->device->drv;
    tw_stream *stream = opt ? opt->stream : NULL;

    if (drv->sync)
        TRY(drv->sync(exe->device, stream));
    double start = clock_seconds();
    TRY(runtime_launch_exe(exe, args, opt));
    if (drv->sync)
        TRY(drv->sync(exe->device, stream));
    *seconds = clock_seconds() - start;
    return TW_OK;
}

static tw_status time_between(executable *exe, const launch_args *args, const launch_options *opt,
                              void *from, void *to, double *seconds)
{
    tw_device *dev = exe->device;
    tw_stream *stream = opt ? opt->stream : NULL;

    if (dev->drv->flush)
        TRY(dev->drv->flush(dev, stream));
    TRY(dev->drv->event_record(dev, from, stream));
    TRY(runtime_launch_exe(exe, args, opt));
    TRY(dev->drv->event_record(dev, to, stream));
    TRY(dev->drv->sync(dev, stream));
    return dev->drv->event_seconds(dev, from, to, seconds);
}

static tw_status time_by_events(executable *exe, const launch_args *args, const launch_options *opt,
                                double *seconds)
{
    tw_device *dev = exe->device;
    void *from = NULL, *to = NULL;

    tw_status st = dev->drv->event_create(dev, &from);
    if (st == TW_OK)
        st = dev->drv->event_create(dev, &to);
    if (st == TW_OK)
        st = time_between(exe, args, opt, from, to, seconds);
    if (to)
        dev->drv->event_destroy(dev, to);
    if (from)
        dev->drv->event_destroy(dev, from);
    return st;
}

tw_status runtime_time_exe(executable *exe, const launch_args *args, const launch_options *opt,
                           double *seconds)
{
    if (exe->device->drv->event_create)
        return time_by_events(exe, args, opt, seconds);
    return time_by_clock(exe, args, opt, seconds);
}
