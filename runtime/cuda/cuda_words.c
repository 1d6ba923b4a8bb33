/* Words of pinned memory, which code writes failed asserts to and the host reads without asking the
 * driver. They live as long as their context, which is kept, broken or not, until the last device
 * closes. */
#include "compiler/base/check.h"
#include "compiler/base/mem.h"
#include "runtime/cuda/cuda_device.h"

/* Under d's lock, in its context. */
static cuda_words *words_new(cuda_device *d)
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
    w->at = at;
    w->next = d->words;
    d->words = w;
    return w;
}

/* Each word is cleared when it is taken. */
static volatile uint64_t *word_of(cuda_words *w)
{
    for (int i = 0; i < CUDA_WORDS; i++) {
        if (w->used[i])
            continue;
        w->used[i] = true;
        __atomic_store_n(&w->at[i], 0, __ATOMIC_RELAXED);
        return &w->at[i];
    }
    return NULL;
}

volatile uint64_t *cuda_word_take(cuda_device *d)
{
    volatile uint64_t *word = NULL;

    pthread_mutex_lock(&d->lock);
    for (cuda_words *w = d->words; w && !word; w = w->next)
        word = word_of(w);
    cuda_words *more = word ? NULL : words_new(d);
    if (more)
        word = word_of(more);
    pthread_mutex_unlock(&d->lock);
    return word;
}

void cuda_word_give(cuda_device *d, volatile uint64_t *word)
{
    pthread_mutex_lock(&d->lock);
    for (cuda_words *w = d->words; w && word; w = w->next)
        if (word >= w->at && word < w->at + CUDA_WORDS)
            w->used[word - w->at] = false;
    pthread_mutex_unlock(&d->lock);
}

int32_t cuda_word_read(volatile uint64_t *word)
{
    uint64_t v = 0;

    if (word && __atomic_load_n(word, __ATOMIC_RELAXED))
        v = __atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL);
    return v > INT32_MAX ? INT32_MAX : (int32_t)v;
}

void cuda_words_drop(cuda_device *d)
{
    while (d->words) {
        cuda_words *w = d->words;
        cuda_scope s;
        d->words = w->next;
        if (cuda_is_ready(d->cx)) {
            if (cuda_enter_cold(d->cx, &s) == TW_OK)
                d->api->cuMemFreeHost((void *)w->at);
            cuda_leave(d->cx, &s);
        }
        mem_free(w);
    }
}
