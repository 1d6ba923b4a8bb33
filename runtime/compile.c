#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/ir/iredit.h"
#include "compiler/passes/pipeline.h"
#include "runtime/clock.h"
#include "runtime/launch.h"
#include "runtime/lower.h"
#include "runtime/resolve.h"
#include <string.h>

/* Raised when the meaning of what goes into a key changes. */
#define ARTIFACT_SCHEMA "tilewright-artifact-2"

extern const char runtime_code_hash[]; /* generated: cmake/code_hash.cmake */

typedef struct compile_job {
    lowering l;
    executable *exe;
    const uint8_t *bytes; /* the artifact as read from the store */
    size_t size;
    hash128 asserts;
    double lower_s;
} compile_job;

/* ---- keys ------------------------------------------------------------------------------------ */

static hash128 mix_text(hash128 h, const char *text)
{
    return hash_mix(h, hash_str(text));
}

/* Schedule parameters that shape the code; dynamic ones (threads) are read at the launch. */
static hash128 mix_schedule(hash128 h, const target *t, const config *cfg)
{
    for (uint32_t i = 0; i < cfg->n; i++) {
        const sched_param *s = target_sched(t, cfg->value[i].name);
        if (!s || s->dynamic)
            continue;
        h = mix_text(h, s->name);
        h = hash_mix(h, hash_mem(&cfg->value[i].value, sizeof cfg->value[i].value));
    }
    return h;
}

/* A schedule may count on what one product has and another of its capability has not. */
static hash128 mix_gpu(hash128 h, const gpu_limits *gpu)
{
    const int64_t has[] = {gpu->capability,    gpu->multiprocessors,  gpu->shared_per_block,
                           gpu->shared_per_sm, gpu->registers_per_sm, gpu->threads_per_sm,
                           gpu->blocks_per_sm, gpu->l2_bytes};

    return gpu->capability ? hash_mix(h, hash_mem(has, sizeof has)) : h;
}

static hash128 artifact_key(const target *t, const compile_job *j)
{
    const executable *exe = j->exe;
    const kernel_sig *sig = &exe->kernel->source->sig;
    hash128 h = mix_text(hash_str(ARTIFACT_SCHEMA), tw_version());

    h = hash_mix(h, hash_mix(j->l.hash, j->asserts));
    h = mix_text(h, sig->name); /* the symbol of the code, which drivers and profilers show */
    if (exe->kernel->checked)
        h = mix_text(h, "checked");
    h = mix_schedule(h, t, &exe->cfg);
    for (uint32_t i = 0; i < sig->nparams; i++) {
        if (!sig->param[i].is_tensor)
            continue;
        uint32_t known = (uint32_t)exe->p.facts[i].align << 1 | exe->p.facts[i].unit_inner;
        h = hash_mix(h, hash_mem(&known, sizeof known));
    }
    h = mix_text(h, t->name);
    h = mix_text(h, t->features(t));
    h = mix_text(h, exe->device->code_key);
    h = mix_gpu(h, &exe->device->gpu.limits);
    h = mix_text(h, runtime_code_hash);
    return mix_text(h, target_codegen_version());
}

tw_status runtime_content_hash(const tw_kernel *k, const tw_device *dev, const char *pin,
                               problem *p)
{
    lowering l;
    config cfg;

    TRY(config_of_content(k, dev, p, pin, &cfg));
    lowering_begin(&l, k, dev->target);
    tw_status st = lowering_run(&l, p, &cfg);
    p->content = l.hash;
    lowering_end(&l);
    return st;
}

/* ---- making an artifact ---------------------------------------------------------------------- */

void set_facts(ir_module *m, const kernel_sig *sig, const tensor_facts *known)
{
    for (uint32_t i = 0; i < sig->nparams; i++) {
        if (!sig->param[i].is_tensor)
            continue;
        m->kernel->params.at[i].unit_inner = known[i].unit_inner;
        m->kernel->params.at[i].align = known[i].align;
    }
}

/* An artifact says where its asserts stand in the text; the IR's hash does not know positions. */
static void mix_assert(ir_op *op, void *arg)
{
    compile_job *j = arg;

    if (op->code == OP_ASSERT || op->code == OP_PRINT)
        j->asserts = mix_text(j->asserts, artifact_assert_text(&j->l.a, op));
}

static tw_status plan_guarded(void *arg)
{
    compile_job *j = arg;

    ir_walk(j->l.module->kernel->body, mix_assert, j);
    plan_make(j->exe->kernel, j->l.module, &j->exe->a, &j->exe->plan);
    return TW_OK;
}

static tw_status read_guarded(void *arg)
{
    compile_job *j = arg;

    return artifact_read(&j->exe->a, j->bytes, j->size, &j->exe->art);
}

static tw_status compile_guarded(void *arg)
{
    compile_job *j = arg;
    executable *exe = j->exe;
    const gpu_profile *gpu = &exe->device->gpu;
    const target_input in = {j->l.module, exe->cfg.value, exe->cfg.n, &j->l.diags,
                             gpu->limits.capability ? &gpu->limits : NULL, NULL};

    set_facts(j->l.module, &exe->kernel->source->sig, exe->p.facts);
    TRY(pipeline_run(j->l.module, &j->l.diags, NULL));
    return j->l.t->compile(j->l.t, &in, &exe->a, &exe->art);
}

static bool read_stored(compile_job *j)
{
    void *bytes = NULL;

    if (!store_artifact_get(j->exe->device->cx->store, j->exe->key, &bytes, &j->size))
        return false;
    j->bytes = bytes;
    tw_status st = guard_run(read_guarded, j);
    mem_free(bytes);
    j->bytes = NULL;
    return st == TW_OK;
}

typedef struct write_job {
    const executable *exe;
    arena a;
    const uint8_t *bytes;
    size_t size;
    store_key key;
} write_job;

static tw_status write_guarded(void *arg)
{
    write_job *j = arg;

    artifact_write(j->exe->art, &j->a, &j->bytes, &j->size);
    config_store_key(j->exe->kernel, j->exe->device, &j->exe->p, &j->a, &j->key);
    return TW_OK;
}

void runtime_exe_store(executable *exe)
{
    write_job j = {.exe = exe};

    if (exe->from_store)
        return;
    arena_init(&j.a);
    /* Persistence lost is the store's to say, once; the result stands. */
    if (guard_run(write_guarded, &j) == TW_OK)
        (void)!store_artifact_put(exe->device->cx->store, exe->key, &j.key, j.bytes, j.size);
    arena_release(&j.a);
}

/* The stored artifact, loaded unless flags say otherwise. Whatever is wrong with it is a miss. */
static bool take_stored(compile_job *j, unsigned flags)
{
    executable *exe = j->exe;

    if ((flags & COMPILE_NO_STORE_READ) || !read_stored(j) || recipe_check(exe) != TW_OK)
        return false;
    if (!(flags & COMPILE_NO_LOAD) && runtime_exe_load(exe) != TW_OK)
        return false;
    exe->from_store = true;
    return true;
}

static tw_status finish(executable *exe)
{
    const driver *drv = exe->device->drv;

    return drv->finish ? drv->finish(exe->device, exe->art, &exe->a) : TW_OK;
}

static tw_status compile_afresh(compile_job *j, unsigned flags)
{
    double start = clock_seconds();

    error_clear();
    tw_status st = guard_run(compile_guarded, j);
    if (st != TW_OK)
        return diags_failed(&j->l.diags, st);
    TRY(recipe_check(j->exe));
    if (!(flags & COMPILE_NO_FINISH))
        TRY(finish(j->exe));
    if (!(flags & COMPILE_NO_LOAD))
        TRY(runtime_exe_load(j->exe));
    j->exe->compile_s = j->lower_s + clock_seconds() - start;
    if (!(flags & COMPILE_NO_STORE_WRITE))
        runtime_exe_store(j->exe);
    return TW_OK;
}

static tw_status make(compile_job *j, unsigned flags)
{
    double start = clock_seconds();

    TRY(lowering_run(&j->l, &j->exe->p, &j->exe->cfg));
    TRY(error_thrown(guard_run(plan_guarded, j)));
    j->exe->key = artifact_key(j->l.t, j);
    j->lower_s = clock_seconds() - start;
    return take_stored(j, flags) ? TW_OK : compile_afresh(j, flags);
}

static int threads_of(const config *cfg, const tw_device *dev)
{
    const ir_binding *b = binding_find(cfg->value, cfg->n, "threads");
    const sched_param *s = target_sched(dev->target, "threads");

    return b && s && s->dynamic && b->value >= 1 ? (int)b->value : dev->threads;
}

static executable *exe_new(tw_kernel *k, tw_device *dev, const problem *p, const config *cfg)
{
    executable *exe = mem_zalloc(sizeof *exe);

    if (!exe)
        return NULL;
    atomic_init(&exe->refs, 1);
    exe->serial = runtime_serial();
    exe->kernel = k;
    exe->device = dev;
    exe->p = *p;
    exe->cfg = *cfg;
    exe->threads = threads_of(cfg, dev);
    arena_init(&exe->a);
    pthread_mutex_init(&exe->load_lock, NULL);
    return exe;
}

tw_status runtime_exe_twin(executable *of, const config *cfg, executable **out)
{
    TRY(runtime_exe_load(of));
    executable *exe = exe_new(of->kernel, of->device, &of->p, cfg);
    if (!exe)
        return error_set(TW_E_NOMEM, "no memory for an executable");
    runtime_exe_retain(of);
    exe->twin = of;
    exe->key = of->key;
    exe->plan = of->plan;
    exe->art = of->art;
    exe->loaded = of->loaded;
    exe->from_store = of->from_store;
    atomic_store(&exe->is_loaded, true);
    *out = exe;
    return TW_OK;
}

tw_status runtime_compile(tw_kernel *k, tw_device *dev, const problem *p, const config *cfg,
                          unsigned flags, executable **out)
{
    compile_job j;

    atomic_store(&dev->used, true);
    memset(&j, 0, sizeof j);
    j.exe = exe_new(k, dev, p, cfg);
    if (!j.exe)
        return error_set(TW_E_NOMEM, "no memory for an executable");
    lowering_begin(&j.l, k, dev->target);
    tw_status st = make(&j, flags);
    lowering_end(&j.l);
    if (st != TW_OK) {
        runtime_exe_release(j.exe);
        return st;
    }
    *out = j.exe;
    return TW_OK;
}

tw_status runtime_exe_finish(executable *exe)
{
    double start = clock_seconds();

    if (exe->from_store)
        return TW_OK;
    TRY(finish(exe));
    exe->compile_s += clock_seconds() - start;
    return TW_OK;
}

/* ---- executables ----------------------------------------------------------------------------- */

/* What came from the store does not load: from another machine or driver, say. */
static tw_status make_again(executable *exe)
{
    compile_job j;

    memset(&j, 0, sizeof j);
    j.exe = exe;
    lowering_begin(&j.l, exe->kernel, exe->device->target);
    tw_status st = lowering_run(&j.l, &exe->p, &exe->cfg);
    exe->from_store = false;
    if (st == TW_OK)
        st = compile_afresh(&j, COMPILE_NO_LOAD);
    lowering_end(&j.l);
    return st;
}

static tw_status load(executable *exe)
{
    tw_status st = exe->device->drv->load(exe->device, exe->art, &exe->loaded);

    if (st == TW_OK || !exe->from_store)
        return st;
    TRY(make_again(exe));
    return exe->device->drv->load(exe->device, exe->art, &exe->loaded);
}

tw_status runtime_exe_load(executable *exe)
{
    tw_status st = TW_OK;

    if (atomic_load_explicit(&exe->is_loaded, memory_order_acquire))
        return TW_OK;
    pthread_mutex_lock(&exe->load_lock);
    if (!atomic_load_explicit(&exe->is_loaded, memory_order_relaxed)) {
        st = load(exe);
        atomic_store_explicit(&exe->is_loaded, st == TW_OK, memory_order_release);
    }
    pthread_mutex_unlock(&exe->load_lock);
    return st;
}

void runtime_exe_retain(executable *exe)
{
    atomic_fetch_add_explicit(&exe->refs, 1, memory_order_relaxed);
}

void runtime_exe_release(executable *exe)
{
    if (!exe || atomic_fetch_sub_explicit(&exe->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (atomic_load(&exe->is_loaded) && !exe->twin)
        exe->device->drv->unload(exe->device, exe->loaded);
    runtime_exe_release(exe->twin);
    pthread_mutex_destroy(&exe->load_lock);
    arena_release(&exe->a);
    mem_free(exe);
}
