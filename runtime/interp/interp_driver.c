/* Runs tile IR through the interpreter, on all processors: the oracle as a device. */
#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/ir/irtext.h"
#include "compiler/target/interp/interp.h"
#include "runtime/host/host_info.h"
#include "runtime/host/host_pool.h"
#include "runtime/runtime.h"
#include <string.h>

typedef struct interp_loaded {
    arena a;
    ir_module *module;
    interp_program *program;
} interp_loaded;

static tw_status interp_open(tw_device *dev, const char *options)
{
    if (options[0])
        return error_set(TW_E_ARG, "device 'interp' takes no options, not '%.40s'", options);
    dev->threads = host_processors();
    strcpy(dev->name, "interpreter");
    dev->self = pool_create(dev->threads);
    return dev->self ? TW_OK : error_set(TW_E_NOMEM, "no memory for a device");
}

static void interp_close(tw_device *dev)
{
    pool_destroy(dev->self);
}

static bool interp_reaches(const tw_device *dev, DLDevice where)
{
    (void)dev;
    return where.device_type == kDLCPU || where.device_type == kDLCUDAHost;
}

/* ---- code ------------------------------------------------------------------------------------ */

typedef struct load_job {
    interp_loaded *l;
    const code_object *code;
} load_job;

static tw_status load_guarded(void *arg)
{
    load_job *j = arg;
    interp_loaded *l = j->l;
    diag_list diags;
    intern names;

    diag_init(&diags, &l->a);
    intern_init(&names, &l->a);
    const source *src = source_new(&l->a, "artifact", (const char *)j->code->bytes, j->code->size);
    l->module = ir_parse(&l->a, &names, src, &diags);
    if (!l->module)
        return error_set(TW_E_STORE, "the tile IR of an artifact does not parse");
    l->program = interp_prepare(&l->a, l->module);
    return TW_OK;
}

static void interp_unload(tw_device *dev, void *loaded)
{
    interp_loaded *l = loaded;

    (void)dev;
    arena_release(&l->a);
    mem_free(l);
}

static tw_status interp_load(tw_device *dev, const artifact *art, void **loaded)
{
    if (art->nsteps != 1 || art->step[0].object >= art->nobjects ||
        art->object[art->step[0].object].kind != OBJECT_TIR)
        return error_set(TW_E_UNSUPPORTED, "the code of this artifact is not for the interpreter");
    interp_loaded *l = mem_zalloc(sizeof *l);
    if (!l)
        return error_set(TW_E_NOMEM, "no memory to load a kernel");
    arena_init(&l->a);
    load_job j = {l, &art->object[art->step[0].object]};
    tw_status st = error_thrown(guard_run(load_guarded, &j));
    if (st != TW_OK) {
        interp_unload(dev, l);
        return st;
    }
    *loaded = l;
    return TW_OK;
}

/* ---- launches -------------------------------------------------------------------------------- */

typedef struct interp_work {
    const interp_program *program;
    interp_launch launch;
    int64_t first;
    atomic_flag *failed;
    interp_fault *fault; /* of the first program that failed */
} interp_work;

static int32_t interpret(const void *cx, int64_t lo, int64_t hi, void *scratch)
{
    const interp_work *w = cx;
    interp_fault fault;

    (void)scratch;
    tw_status st = interp_run(w->program, &w->launch, w->first + lo, hi - lo, &fault);
    if (st == TW_OK)
        return 0;
    if (!atomic_flag_test_and_set(w->failed)) {
        *w->fault = fault;
        w->fault->status = st;
    }
    return 1;
}

static void print(void *user, int32_t index, const int64_t program[3], const void *elements)
{
    const program_calls *to = user;

    to->print(to, index, (int32_t)program[0], (int32_t)program[1], (int32_t)program[2], elements);
}

static void fill_args(const interp_loaded *l, const driver_step *s, interp_arg *arg)
{
    const ir_fn *fn = l->module->kernel;

    for (uint32_t i = 0; i < fn->params.n; i++) {
        if (fn->params.at[i].kind != PARAM_TENSOR) {
            arg[i].scalar = s->value[i];
            continue;
        }
        arg[i].view.base = s->tensor[i].base;
        memcpy(arg[i].view.stride, s->tensor[i].stride, sizeof arg[i].view.stride);
        memcpy(arg[i].view.extent, s->tensor[i].extent, sizeof arg[i].view.extent);
    }
}

static tw_status interp_launch_step(tw_device *dev, void *loaded, const driver_step *s,
                                    tw_stream *stream, int32_t *failed)
{
    const interp_loaded *l = loaded;
    interp_arg arg[RUNTIME_MAX_PARAMS + RUNTIME_MAX_SYMBOLS];
    atomic_flag flag = ATOMIC_FLAG_INIT;
    interp_fault fault;
    interp_work w = {
        l->program,
        {.arg = arg,
         .grid = {s->grid[0], s->grid[1], s->grid[2]},
         .f64 = s->f64,
         .running_max_low = s->running_max_low,
         .print = print,
         .print_user = (void *)(uintptr_t)s->calls,
         .stop = s->stop,
         .stop_user = s->stop_user},
        s->first,
        &flag,
        &fault};
    const pool_job job = {interpret, &w, s->count, 0};
    int32_t code;

    (void)stream;
    fill_args(l, s, arg);
    if (pool_run(dev->self, &job, s->threads, &code) != TW_OK)
        return error_set(TW_E_NOMEM, "no memory for the interpreter's threads");
    if (code == 0)
        return TW_OK;
    if (fault.status == TW_E_ASSERT) {
        *failed = fault.assert_index + 1;
        if (fault.nvalues)
            s->calls->fail(s->calls, fault.assert_index, (int32_t)fault.program[0],
                           (int32_t)fault.program[1], (int32_t)fault.program[2], fault.value);
        return TW_OK;
    }
    return error_set(fault.status, "interpreter: %s", fault.text);
}

const driver interp_driver = {
    .name = "interp",
    .family = "interp",
    .open = interp_open,
    .close = interp_close,
    .reaches = interp_reaches,
    .load = interp_load,
    .unload = interp_unload,
    .launch = interp_launch_step,
};
