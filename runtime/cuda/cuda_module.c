/* Artifacts as modules of the driver. */
#include "compiler/base/check.h"
#include "compiler/base/mem.h"
#include "runtime/cuda/cuda_device.h"
#include <string.h>

/* Bytes of a kernel's parameters; 32764 from driver 12.1 on (CUDA C++ Programming Guide, "Function
 * parameters"). */
#define PARAM_BYTES 4096
#define PARAM_BYTES_12_1 32764
#define USUAL_SHARED 49152 /* dynamic shared memory that need not be asked for */

static bool notes_asserts(const artifact *art)
{
    for (uint32_t i = 0; i < art->nsteps; i++)
        for (uint32_t k = 0; k < art->step[i].nslots; k++)
            if (art->step[i].slot[k].kind == SLOT_ASSERT)
                return true;
    return false;
}

/* ---- limits ---------------------------------------------------------------------------------- */

static tw_status too_much(const cuda_device *d, const recipe_step *s, const char *what,
                          int64_t needs, int64_t has)
{
    return error_diag(TW_E_LIMIT, DIAG_LIMIT, "take smaller tiles, fewer stages or fewer warps",
                      "kernel '%s' needs %lld %s; '%s' (%s) has %lld", s->symbol, (long long)needs,
                      what, d->dev->spec, d->dev->name, (long long)has);
}

static tw_status check_step(const cuda_device *d, const recipe_step *s)
{
    const gpu_limits *gpu = &d->dev->gpu.limits;
    int64_t room = d->api->version >= 12010 ? PARAM_BYTES_12_1 : PARAM_BYTES;

    if (s->block_threads < 1 || s->shared_bytes < 0)
        return error_set(TW_E_UNSUPPORTED, "the code of this artifact is not for a GPU");
    if (s->block_threads > gpu->threads_per_block)
        return too_much(d, s, "threads a block", s->block_threads, gpu->threads_per_block);
    if (s->shared_bytes > gpu->shared_per_block)
        return too_much(d, s, "bytes of shared memory a block", s->shared_bytes,
                        gpu->shared_per_block);
    if (s->nslots * 8 > room)
        return too_much(d, s, "bytes of parameters", s->nslots * 8, room);
    return TW_OK;
}

/* What is only known of the loaded code: registers, and shared memory of its own. */
static tw_status check_entry(cuda_device *d, const recipe_step *s, CUfunction fn)
{
    int threads = 0, shared = 0, registers = 0;

    TRY(CUDA(d, cuFuncGetAttribute, &threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, fn));
    TRY(CUDA(d, cuFuncGetAttribute, &shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, fn));
    TRY(CUDA(d, cuFuncGetAttribute, &registers, CU_FUNC_ATTRIBUTE_NUM_REGS, fn));
    if (threads < s->block_threads)
        return too_much(d, s, "registers a block", (int64_t)registers * s->block_threads,
                        d->dev->gpu.limits.registers_per_sm);
    if (shared + s->shared_bytes > d->dev->gpu.limits.shared_per_block)
        return too_much(d, s, "bytes of shared memory a block", shared + s->shared_bytes,
                        d->dev->gpu.limits.shared_per_block);
    if (shared + s->shared_bytes <= USUAL_SHARED)
        return TW_OK;
    /* A hint: how much of the cache becomes shared memory. */
    d->api->cuFuncSetAttribute(fn, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100);
    return CUDA(d, cuFuncSetAttribute, fn, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                s->shared_bytes);
}

/* ---- loading --------------------------------------------------------------------------------- */

/* In d's context, unless that is broken: then its modules stay. */
static void loaded_free(cuda_device *d, cuda_loaded *l)
{
    bool there = cuda_is_ready(d->cx);

    for (uint32_t i = 0; l->module && i < l->art->nobjects && there; i++)
        if (l->module[i])
            d->api->cuModuleUnload(l->module[i]);
    cuda_record_give(d, l->record);
    mem_free(l->module);
    mem_free(l->entry);
    mem_free(l);
}

static cuda_loaded *loaded_new(cuda_device *d, const artifact *art)
{
    cuda_loaded *l = mem_zalloc(sizeof *l);

    if (!l)
        return NULL;
    l->art = art;
    l->name = cuda_keep_name(d, art->nsteps ? art->step[0].symbol : "");
    l->module = mem_zalloc((art->nobjects + 1) * sizeof *l->module);
    l->entry = mem_zalloc((art->nsteps + 1) * sizeof *l->entry);
    if (l->name && l->module && l->entry)
        return l;
    mem_free(l->module);
    mem_free(l->entry);
    mem_free(l);
    return NULL;
}

static tw_status load_object(cuda_device *d, const code_object *o, const char *name, CUmodule *out)
{
    void *cubin = NULL;
    size_t size = 0;

    if (o->kind == OBJECT_CUBIN && o->size > 4 && memcmp(o->bytes, "\177ELF", 4) == 0)
        return CUDA(d, cuModuleLoadData, out, o->bytes);
    if (o->kind != OBJECT_PTX)
        return error_set(TW_E_UNSUPPORTED, "the code of this artifact is not for a GPU");
    TRY(cuda_link(d, o, name, &cubin, &size, NULL, NULL));
    tw_status st = CUDA(d, cuModuleLoadData, out, cubin);
    mem_free(cubin);
    return st;
}

static tw_status load_step(cuda_device *d, cuda_loaded *l, uint32_t i)
{
    const artifact *art = l->art;
    const recipe_step *s = &art->step[i];

    TRY(check_step(d, s));
    if (s->object >= art->nobjects)
        return error_set(TW_E_UNSUPPORTED, "the code of this artifact is not for a GPU");
    if (!l->module[s->object])
        TRY(load_object(d, &art->object[s->object], s->symbol, &l->module[s->object]));
    TRY(CUDA(d, cuModuleGetFunction, &l->entry[i], l->module[s->object], s->symbol));
    if (d->api->cuFuncLoad) /* lazily loaded, it would be so in the middle of a capture */
        TRY(CUDA(d, cuFuncLoad, l->entry[i]));
    return check_entry(d, s, l->entry[i]);
}

static tw_status load_all(cuda_device *d, cuda_loaded *l)
{
    for (uint32_t i = 0; i < l->art->nsteps; i++)
        TRY(load_step(d, l, i));
    if (!notes_asserts(l->art))
        return TW_OK;
    l->record = cuda_record_take(d);
    return l->record ? TW_OK : error_set(TW_E_NOMEM, "no pinned memory for a kernel's asserts");
}

static void link_loaded(cuda_device *d, cuda_loaded *l)
{
    pthread_mutex_lock(&d->lock);
    l->next = d->loaded;
    l->link = &d->loaded;
    if (l->next)
        l->next->link = &l->next;
    d->loaded = l;
    pthread_mutex_unlock(&d->lock);
}

tw_status cuda_load(tw_device *dev, const artifact *art, void **loaded)
{
    cuda_device *d = cuda_of(dev);
    cuda_loaded *l = NULL;
    cuda_scope s;

    tw_status st = cuda_enter_cold(d->cx, &s);
    if (st == TW_OK && !(l = loaded_new(d, art)))
        st = error_set(TW_E_NOMEM, "no memory to load a kernel");
    if (st == TW_OK)
        st = load_all(d, l);
    if (st != TW_OK && l)
        loaded_free(d, l);
    cuda_leave(d->cx, &s);
    if (st != TW_OK)
        return st;
    link_loaded(d, l);
    *loaded = l;
    return TW_OK;
}

void cuda_unload(tw_device *dev, void *loaded)
{
    cuda_device *d = cuda_of(dev);
    cuda_loaded *l = loaded;
    char text[600];
    cuda_scope s;

    pthread_mutex_lock(&d->lock);
    *l->link = l->next;
    if (l->next)
        l->next->link = l->link;
    pthread_mutex_unlock(&d->lock);
    /* A launch that was queued still runs its code. */
    bool there = cuda_is_ready(d->cx);
    tw_status st = there ? cuda_enter_cold(d->cx, &s) : TW_OK;
    if (there && st == TW_OK)
        d->api->cuCtxSynchronize();
    if (cuda_failed_text(d, l, text, sizeof text))
        runtime_log(d->dev->cx, TW_LOG_WARNING, "%s: nothing asked for it before the kernel went",
                    text);
    loaded_free(d, l);
    if (there)
        cuda_leave(d->cx, &s);
}

tw_status cuda_ready(tw_device *dev, void *loaded, const program_calls *calls, int32_t *failed)
{
    cuda_device *d = cuda_of(dev);
    const cuda_loaded *l = loaded;

    if (!cuda_is_ready(d->cx))
        TRY(cuda_context_ready(d->cx));
    *failed = cuda_record_read(l->record, calls);
    return TW_OK;
}

assert_record *cuda_assert_record(tw_device *dev, void *loaded)
{
    const cuda_loaded *l = loaded;

    (void)dev;
    return l->record;
}
