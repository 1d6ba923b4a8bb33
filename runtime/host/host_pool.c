#include "runtime/host/host_pool.h"
#include "compiler/base/mem.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINE 64
#define SLOTS 32 /* jobs at once; more callers wait for one to end */
/* Long enough to bridge the gap between launches of a loop, short enough not to be seen in the
 * load: about 30 us. */
#define SPINS 2000
/* Chunks a thread gets on average: few enough atomics for tiny programs, small enough ends. */
#define CHUNKS_PER_THREAD 256

/* A slot's state: how many helpers are in the job and may be, in one word, so that joining is one
 * compare-and-swap. */
enum {
    HELPERS = 0x3ff,
    LIMIT_SHIFT = 10,
    LIMIT = 0x3ff << LIMIT_SHIFT,
    OWNED = 1 << 20,
    OPEN = 1 << 21,  /* helpers may join */
    WAITED = 1 << 22 /* the owner sleeps until the last helper leaves */
};

typedef struct scratch {
    void *p;
    size_t size;
} scratch;

typedef struct slot {
    _Alignas(LINE) atomic_uint state;
    pool_job job; /* stable while OPEN or helpers are in */
    int64_t chunk;
    scratch own; /* of the calling thread */
    _Alignas(LINE) atomic_llong next;
    atomic_llong total;
    atomic_int code;
} slot;

typedef struct worker {
    host_pool *pool;
    pthread_t thread;
    scratch own;
} worker;

struct host_pool {
    _Alignas(LINE) atomic_uint generation; /* jobs published; what helpers sleep on */
    atomic_int sleepers;
    atomic_bool stop;
    _Alignas(LINE) atomic_int started; /* helpers */
    pthread_mutex_t lock;              /* starting helpers */
    host_pool *next, **link;           /* among all pools of the process */
    int threads;
    worker *workers;
    slot slot[SLOTS];
};

/* ---- what the processor and the kernel offer ------------------------------------------------- */

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void futex_wait(atomic_uint *word, unsigned seen)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word, int n)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

static bool grow(scratch *s, size_t size)
{
    if (s->size >= size && s->p)
        return true;
    mem_free(s->p);
    s->size = (size + 4095) & ~(size_t)4095;
    s->p = mem_alloc_aligned(LINE, s->size ? s->size : LINE);
    if (!s->p)
        s->size = 0;
    return s->p != NULL;
}

/* ---- a job ----------------------------------------------------------------------------------- */

static void work(slot *s, void *own)
{
    int64_t chunk = s->chunk, total = s->job.total;

    for (;;) {
        int64_t lo = atomic_fetch_add_explicit(&s->next, chunk, memory_order_relaxed);
        if (lo >= total)
            return;
        int64_t hi = total - lo < chunk ? total : lo + chunk;
        int32_t code = s->job.fn(s->job.cx, lo, hi, own);
        if (code != 0) {
            int none = 0;
            atomic_compare_exchange_strong(&s->code, &none, code);
            atomic_store(&s->next, total);
        }
    }
}

static bool has_work(slot *s)
{
    return atomic_load_explicit(&s->next, memory_order_relaxed) <
           atomic_load_explicit(&s->total, memory_order_relaxed);
}

static bool join_job(slot *s)
{
    unsigned st = atomic_load_explicit(&s->state, memory_order_relaxed);

    while ((st & OPEN) && (st & HELPERS) < (st & LIMIT) >> LIMIT_SHIFT && has_work(s))
        if (atomic_compare_exchange_weak_explicit(&s->state, &st, st + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    return false;
}

static void leave_job(slot *s)
{
    unsigned st = atomic_fetch_sub_explicit(&s->state, 1, memory_order_acq_rel) - 1;

    if ((st & HELPERS) == 0 && (st & WAITED))
        futex_wake(&s->state, 1);
}

/* Takes no new helpers and returns when the last one has left. */
static void close_job(slot *s)
{
    unsigned st = atomic_fetch_and_explicit(&s->state, ~(unsigned)OPEN, memory_order_acq_rel);

    for (int i = 0; i < SPINS && (st & HELPERS); i++) {
        pause_briefly();
        st = atomic_load_explicit(&s->state, memory_order_acquire);
    }
    while (st & HELPERS) {
        st = atomic_fetch_or_explicit(&s->state, WAITED, memory_order_acq_rel) | WAITED;
        if (st & HELPERS)
            futex_wait(&s->state, st);
        st = atomic_load_explicit(&s->state, memory_order_acquire);
    }
}

/* ---- helpers --------------------------------------------------------------------------------- */

static bool help(worker *w)
{
    bool helped = false;

    for (int i = 0; i < SLOTS; i++) {
        slot *s = &w->pool->slot[i];
        if (!join_job(s))
            continue;
        if (grow(&w->own, s->job.scratch_bytes)) {
            work(s, w->own.p);
            helped = true;
        }
        leave_job(s);
    }
    return helped;
}

static void rest(host_pool *p, unsigned seen)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&p->generation, memory_order_relaxed) != seen)
            return;
        pause_briefly();
    }
    atomic_fetch_add(&p->sleepers, 1);
    futex_wait(&p->generation, seen);
    atomic_fetch_sub(&p->sleepers, 1);
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    host_pool *p = w->pool;

    for (;;) {
        unsigned seen = atomic_load(&p->generation);
        if (atomic_load(&p->stop))
            return NULL;
        if (!help(w))
            rest(p, seen);
    }
}

/* ---- fork ------------------------------------------------------------------------------------ */

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER;
static host_pool *pools;

static void before_fork(void)
{
    pthread_mutex_lock(&pools_lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&pools_lock);
}

/* Helpers are gone, and so are the callers of other threads. The child has one thread still: nobody
 * meets a pool that is half renewed. */
static void in_child(void)
{
    for (host_pool *p = pools; p; p = p->next) {
        pthread_mutex_init(&p->lock, NULL);
        for (int i = 0; i < SLOTS; i++)
            atomic_store(&p->slot[i].state, 0);
        atomic_store(&p->sleepers, 0);
        atomic_store(&p->started, 0);
    }
    pthread_mutex_unlock(&pools_lock);
}

static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, in_parent, in_child);
}

static void link_pool(host_pool *p)
{
    pthread_once(&fork_once, watch_forks);
    pthread_mutex_lock(&pools_lock);
    p->next = pools;
    p->link = &pools;
    if (p->next)
        p->next->link = &p->next;
    pools = p;
    pthread_mutex_unlock(&pools_lock);
}

static void unlink_pool(host_pool *p)
{
    pthread_mutex_lock(&pools_lock);
    *p->link = p->next;
    if (p->next)
        p->next->link = p->link;
    pthread_mutex_unlock(&pools_lock);
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Helpers take no signals: those belong to the application's threads. */
static bool start_worker(host_pool *p, worker *w)
{
    sigset_t all, before;

    w->pool = p;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&w->thread, NULL, worker_main, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed)
        pthread_setname_np(w->thread, "tilewright");
    return !failed;
}

/* Fewer helpers than asked for are no error: the caller does their share. */
static void start_workers(host_pool *p, int want)
{
    pthread_mutex_lock(&p->lock);
    int n = atomic_load(&p->started);
    while (n < want && start_worker(p, &p->workers[n]))
        n++;
    atomic_store_explicit(&p->started, n, memory_order_release);
    pthread_mutex_unlock(&p->lock);
}

/* ---- the pool -------------------------------------------------------------------------------- */

host_pool *pool_create(int threads)
{
    host_pool *p = mem_alloc_aligned(LINE, sizeof *p);

    if (!p)
        return NULL;
    memset(p, 0, sizeof *p);
    p->threads = threads < 1 ? 1 : threads > POOL_MAX_THREADS ? POOL_MAX_THREADS : threads;
    p->workers = mem_zalloc(sizeof *p->workers * (size_t)p->threads);
    if (!p->workers) {
        mem_free(p);
        return NULL;
    }
    pthread_mutex_init(&p->lock, NULL);
    link_pool(p);
    return p;
}

void pool_destroy(host_pool *p)
{
    if (!p)
        return;
    unlink_pool(p);
    atomic_store(&p->stop, true);
    atomic_fetch_add(&p->generation, 1);
    futex_wake(&p->generation, POOL_MAX_THREADS);
    for (int i = 0; i < atomic_load(&p->started); i++)
        pthread_join(p->workers[i].thread, NULL);
    for (int i = 0; i < p->threads; i++)
        mem_free(p->workers[i].own.p);
    for (int i = 0; i < SLOTS; i++)
        mem_free(p->slot[i].own.p);
    pthread_mutex_destroy(&p->lock);
    mem_free(p->workers);
    mem_free(p);
}

static slot *take_slot(host_pool *p)
{
    for (;;) {
        for (int i = 0; i < SLOTS; i++) {
            unsigned none = 0;
            if (atomic_load_explicit(&p->slot[i].state, memory_order_relaxed) == 0 &&
                atomic_compare_exchange_strong_explicit(&p->slot[i].state, &none, OWNED,
                                                        memory_order_acquire, memory_order_relaxed))
                return &p->slot[i];
        }
        sched_yield();
    }
}

static void publish(host_pool *p, slot *s, int helpers)
{
    atomic_store_explicit(&s->state, OWNED | OPEN | (unsigned)helpers << LIMIT_SHIFT,
                          memory_order_release);
    atomic_fetch_add(&p->generation, 1);
    if (atomic_load(&p->sleepers) > 0)
        futex_wake(&p->generation, helpers);
}

/* How many threads besides the caller. */
static int helpers_for(host_pool *p, const pool_job *job, int threads)
{
    int64_t n = threads < p->threads ? threads : p->threads;

    n = n < job->total ? n : job->total;
    if (n <= 1)
        return 0;
    if (atomic_load_explicit(&p->started, memory_order_acquire) < n - 1)
        start_workers(p, (int)n - 1);
    int64_t started = atomic_load_explicit(&p->started, memory_order_acquire);
    return (int)(started < n - 1 ? started : n - 1);
}

tw_status pool_run(host_pool *p, const pool_job *job, int threads, int32_t *code)
{
    *code = 0;
    if (job->total <= 0)
        return TW_OK;
    int helpers = helpers_for(p, job, threads);
    slot *s = take_slot(p);
    if (!grow(&s->own, job->scratch_bytes)) {
        atomic_store_explicit(&s->state, 0, memory_order_release);
        return TW_E_NOMEM;
    }
    s->job = *job;
    s->chunk = 1 + (job->total - 1) / ((int64_t)(helpers + 1) * CHUNKS_PER_THREAD);
    atomic_store_explicit(&s->code, 0, memory_order_relaxed);
    atomic_store_explicit(&s->next, 0, memory_order_relaxed);
    atomic_store_explicit(&s->total, job->total, memory_order_relaxed);
    if (helpers > 0)
        publish(p, s, helpers);
    work(s, s->own.p);
    if (helpers > 0)
        close_job(s);
    *code = atomic_load_explicit(&s->code, memory_order_relaxed);
    atomic_store_explicit(&s->state, 0, memory_order_release);
    return TW_OK;
}
