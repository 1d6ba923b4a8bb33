/* Words of pinned memory, which code writes failed asserts to and the host reads without asking the
 * driver. They go with their generation of the context, at any moment that a thread does not hold
 * it: each access is between cuda_hold and cuda_unhold. */
#include "compiler/base/check.h"
#include "compiler/base/mem.h"
#include "runtime/cuda/cuda_device.h"

/* Under d's lock, in its context. Each word is cleared when it is taken. */
static cuda_words *words_new(cuda_device *d, unsigned generation)
{
    cuda_words *w = mem_zalloc(sizeof *w);
    void *at = NULL;

    if (!w)
        return NULL;
    if (d->api->cuMemHostAlloc(&at, CUDA_WORDS * sizeof *w->at,
                               CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP) !=
        CUDA_SUCCESS) {
        mem_free(w);
        return NULL;
    }
    if (cuda_generation(d) != generation) { /* made anew meanwhile: whose it is, is not known */
        d->api->cuMemFreeHost(at);
        mem_free(w);
        return NULL;
    }
    w->at = at;
    w->generation = generation;
    w->next = d->words;
    d->words = w;
    return w;
}

static volatile uint64_t *word_of(cuda_device *d, cuda_words *w, unsigned generation)
{
    for (int i = 0; i < CUDA_WORDS && w->generation == generation; i++) {
        if (w->used[i])
            continue;
        if (!cuda_hold(d->cx, generation))
            return NULL;
        w->at[i] = 0;
        cuda_unhold(d->cx);
        w->used[i] = true;
        return &w->at[i];
    }
    return NULL;
}

volatile uint64_t *cuda_word_take(cuda_device *d, unsigned generation)
{
    volatile uint64_t *word = NULL;

    pthread_mutex_lock(&d->lock);
    for (cuda_words *w = d->words; w && !word; w = w->next)
        word = word_of(d, w, generation);
    cuda_words *more = word ? NULL : words_new(d, generation);
    if (more)
        word = word_of(d, more, generation);
    pthread_mutex_unlock(&d->lock);
    return word;
}

/* Memory of another generation may have been at the same address. */
void cuda_word_give(cuda_device *d, volatile uint64_t *word, unsigned generation)
{
    pthread_mutex_lock(&d->lock);
    for (cuda_words *w = d->words; w && word; w = w->next)
        if (w->generation == generation && word >= w->at && word < w->at + CUDA_WORDS)
            w->used[word - w->at] = false;
    pthread_mutex_unlock(&d->lock);
}

int32_t cuda_word_read(cuda_device *d, volatile uint64_t *word, unsigned generation)
{
    uint64_t v = 0;

    if (!word || !cuda_hold(d->cx, generation))
        return 0;
    if (__atomic_load_n(word, __ATOMIC_RELAXED))
        v = __atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL);
    cuda_unhold(d->cx);
    return v > INT32_MAX ? INT32_MAX : (int32_t)v;
}

void cuda_words_drop(cuda_device *d)
{
    while (d->words) {
        cuda_words *w = d->words;
        cuda_scope s;
        d->words = w->next;
        if (cuda_has(d, w->generation)) {
            if (cuda_enter_cold(d->cx, &s) == TW_OK)
                d->api->cuMemFreeHost((void *)w->at);
            cuda_leave(d->cx, &s);
        }
        mem_free(w);
    }
}
