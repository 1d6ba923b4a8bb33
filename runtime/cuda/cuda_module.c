/* Artifacts as modules of the driver. A context that was made anew has none of the old one's: what
 * was loaded then is loaded again before its next launch. */
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

static void code_free(cuda_device *d, const artifact *art, cuda_code *c)
{
    bool there = cuda_has(d, c->generation);

    for (uint32_t i = 0; i < art->nobjects && there; i++)
        if (c->module[i])
            d->api->cuModuleUnload(c->module[i]);
    cuda_word_give(d, c->word, c->generation);
    mem_free(c->module);
    mem_free(c->entry);
    mem_free(c);
}

static cuda_code *code_new(const cuda_device *d, const artifact *art)
{
    cuda_code *c = mem_zalloc(sizeof *c);

    if (!c)
        return NULL;
    c->generation = cuda_generation(d);
    c->module = mem_zalloc((art->nobjects + 1) * sizeof *c->module);
    c->entry = mem_zalloc((art->nsteps + 1) * sizeof *c->entry);
    if (c->module && c->entry)
        return c;
    mem_free(c->module);
    mem_free(c->entry);
    mem_free(c);
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

static tw_status load_step(cuda_device *d, const artifact *art, uint32_t i, cuda_code *c)
{
    const recipe_step *s = &art->step[i];

    TRY(check_step(d, s));
    if (s->object >= art->nobjects)
        return error_set(TW_E_UNSUPPORTED, "the code of this artifact is not for a GPU");
    if (!c->module[s->object])
        TRY(load_object(d, &art->object[s->object], s->symbol, &c->module[s->object]));
    TRY(CUDA(d, cuModuleGetFunction, &c->entry[i], c->module[s->object], s->symbol));
    if (d->api->cuFuncLoad) /* lazily loaded, it would be so in the middle of a capture */
        TRY(CUDA(d, cuFuncLoad, c->entry[i]));
    return check_entry(d, s, c->entry[i]);
}

static tw_status load_all(cuda_device *d, const artifact *art, cuda_code *c)
{
    for (uint32_t i = 0; i < art->nsteps; i++)
        TRY(load_step(d, art, i, c));
    if (!notes_asserts(art))
        return TW_OK;
    c->word = cuda_word_take(d, c->generation);
    if (c->word)
        return TW_OK;
    return cuda_has(d, c->generation)
               ? error_set(TW_E_NOMEM, "no pinned memory for a kernel's asserts")
               : error_set(TW_E_DEVICE, "device '%s' was made anew while a kernel was loaded",
                           d->dev->spec);
}

static tw_status code_make(cuda_device *d, const artifact *art, cuda_code **out)
{
    cuda_scope s;
    cuda_code *c = NULL;

    tw_status st = cuda_enter_cold(d->cx, &s);
    if (st == TW_OK && !(c = code_new(d, art)))
        st = error_set(TW_E_NOMEM, "no memory to load a kernel");
    if (st == TW_OK)
        st = load_all(d, art, c);
    if (st != TW_OK && c)
        code_free(d, art, c);
    cuda_leave(d->cx, &s);
    *out = st == TW_OK ? c : NULL;
    return st;
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
    cuda_loaded *l = mem_zalloc(sizeof *l);
    cuda_code *c = NULL;

    if (!l)
        return error_set(TW_E_NOMEM, "no memory to load a kernel");
    l->art = art;
    l->name = cuda_keep_name(d, art->nsteps ? art->step[0].symbol : "");
    tw_status st =
        l->name ? code_make(d, art, &c) : error_set(TW_E_NOMEM, "no memory to load a kernel");
    if (st != TW_OK) {
        mem_free(l);
        return st;
    }
    pthread_mutex_init(&l->lock, NULL);
    atomic_init(&l->code, c);
    link_loaded(d, l);
    *loaded = l;
    return TW_OK;
}

static void log_unseen(cuda_device *d, const cuda_loaded *l, const cuda_code *c)
{
    if (cuda_word_read(d, c->word, c->generation))
        runtime_log(
            d->dev->cx, TW_LOG_WARNING,
            "kernel '%s': an assert failed, and nothing asked for it before the kernel went",
            l->name);
}

void cuda_unload(tw_device *dev, void *loaded)
{
    cuda_device *d = cuda_of(dev);
    cuda_loaded *l = loaded;
    cuda_scope s;

    pthread_mutex_lock(&d->lock);
    *l->link = l->next;
    if (l->next)
        l->next->link = l->link;
    pthread_mutex_unlock(&d->lock);
    /* A launch that was queued still runs its code. What is broken is not made anew for this. */
    bool there = atomic_load(&d->cx->state) == CUDA_READY;
    tw_status st = there ? cuda_enter_cold(d->cx, &s) : TW_OK;
    if (there && st == TW_OK)
        d->api->cuCtxSynchronize();
    for (cuda_code *c = atomic_load(&l->code), *next; c; c = next) {
        next = c->next;
        log_unseen(d, l, c);
        code_free(d, l->art, c);
    }
    if (there)
        cuda_leave(d->cx, &s);
    pthread_mutex_destroy(&l->lock);
    mem_free(l);
}

/* ---- before a launch ------------------------------------------------------------------------- */

static tw_status load_again(cuda_device *d, cuda_loaded *l)
{
    cuda_code *old = atomic_load(&l->code), *c = NULL;

    if (old->generation == cuda_generation(d))
        return TW_OK;
    TRY(code_make(d, l->art, &c));
    runtime_log(
        d->dev->cx, TW_LOG_WARNING,
        "device '%s' was made anew after a fault; kernel '%s' is loaded again, and memory of "
        "before is gone",
        d->dev->spec, l->name);
    c->next = old;
    atomic_store_explicit(&l->code, c, memory_order_release);
    return TW_OK;
}

static tw_status renew(cuda_device *d, cuda_loaded *l, tw_stream *stream)
{
    bool capturing = false;

    TRY(cuda_context_ready(d->cx));
    TRY(cuda_capturing(d->dev, stream, &capturing));
    if (capturing)
        return error_set(
            TW_E_UNSUPPORTED,
            "device '%s' was made anew after a fault: kernel '%s' cannot be loaded again "
            "while the stream is capturing",
            d->dev->spec, l->name);
    pthread_mutex_lock(&l->lock);
    tw_status st = load_again(d, l);
    pthread_mutex_unlock(&l->lock);
    return st;
}

tw_status cuda_ready(tw_device *dev, void *loaded, tw_stream *stream, int32_t *failed)
{
    cuda_device *d = cuda_of(dev);
    cuda_loaded *l = loaded;
    cuda_code *c = atomic_load_explicit(&l->code, memory_order_acquire);

    if (c->generation != cuda_generation(d) ||
        atomic_load_explicit(&d->cx->state, memory_order_relaxed) != CUDA_READY) {
        TRY(renew(d, l, stream));
        c = atomic_load_explicit(&l->code, memory_order_acquire);
    }
    *failed = cuda_word_read(d, c->word, c->generation);
    return TW_OK;
}

uint64_t *cuda_assert_word(tw_device *dev, void *loaded)
{
    const cuda_loaded *l = loaded;

    (void)dev;
    return (uint64_t *)atomic_load_explicit(&l->code, memory_order_acquire)->word;
}
