/* Compiling candidates, several at a time. On a processor measuring waits meanwhile: it wants the
 * machine alone. A GPU is measured while the next ones are compiled; one thread less does that, so
 * that launches are queued in time. */
#include "compiler/base/error.h"
#include "compiler/base/mem.h"
#include "runtime/clock.h"
#include "tuner/session.h"
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Bytes of spill stores a thread, beyond the start's, above which code is not measured. Attention
 * that was fastest on an H200 spills up to 172 bytes in its start or seed, which always are. */
#define SPILLED_BYTES 64
#define MAX_THREADS 64
#define TICK_MS 100

typedef struct compile_job {
    uint32_t point;
    bool waits; /* for a job before it, whose code it shares */
    executable *exe;
    bool compiled;
    double seconds;
    char reason[160]; /* why there is no executable */
} compile_job;

struct compile_batch {
    session *s;
    compile_job *job;
    uint32_t n, nthreads;
    pthread_t thread[MAX_THREADS];
    pthread_mutex_t lock;
    pthread_cond_t finished;
    uint32_t next, done; /* under lock */
    bool stop;
};

static uint32_t processors(const session *s)
{
    int n = s->rq.k->cx->cfg.threads;
    cpu_set_t set;

    if (n <= 0)
        n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > MAX_THREADS ? MAX_THREADS : (uint32_t)n;
}

bool compiles_aside(const session *s)
{
    return s->rq.dev->drv->event_record && processors(s) > 1;
}

static uint32_t compile_threads(const session *s)
{
    return processors(s) - compiles_aside(s);
}

/* Half of them where two batches are under way: what is learned from one is known to the one after
 * the next. Link and code generation take as long as measuring does, so all threads find work. */
uint32_t compile_batch_size(const session *s)
{
    return compiles_aside(s) ? (compile_threads(s) + 1) / 2 : compile_threads(s);
}

/* ---- code that serves several points --------------------------------------------------------- */

static bool is_dynamic(const session *s, const char *name)
{
    const sched_param *p = target_sched(s->rq.dev->target, name);

    return p && p->dynamic;
}

static bool same_code(const session *s, uint32_t x, uint32_t y)
{
    const config *a = &s->trial[x].cfg, *b = &s->trial[y].cfg;

    for (uint32_t i = 0; i < a->n; i++) {
        if (a->value[i].value != b->value[i].value && !is_dynamic(s, a->value[i].name))
            return false;
    }
    return true;
}

/* NULL: it must be compiled. */
static executable *code_of(const session *s, uint32_t point)
{
    for (uint32_t i = 0; i < s->sp.npoints; i++) {
        if (s->code[i] && same_code(s, i, point))
            return s->code[i];
    }
    return NULL;
}

static void find_twins(compile_batch *b)
{
    for (uint32_t i = 1; i < b->n; i++) {
        for (uint32_t j = 0; j < i; j++)
            b->job[i].waits = b->job[i].waits || same_code(b->s, b->job[j].point, b->job[i].point);
    }
}

void copy_reason(char *out, size_t size)
{
    const tw_error *e = error_get();
    const char *text = e->diagnostic_count ? e->diagnostics[0].text : e->text;

    snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
}

static tw_status make_executable(const session *s, const config *cfg, executable *twin,
                                 executable **out)
{
    const tune_request *rq = &s->rq;
    unsigned later = compiles_aside(s) ? COMPILE_NO_LOAD : 0;

    if (twin)
        return runtime_exe_twin(twin, cfg, out);
    return runtime_compile(rq->k, rq->dev, &rq->args->p, cfg, COMPILE_NO_STORE_WRITE | later, out);
}

static void compile_one(session *s, compile_job *j)
{
    const config *cfg = &s->trial[j->point].cfg;
    executable *twin = code_of(s, j->point);
    double start = clock_seconds();

    j->compiled = !twin;
    if (make_executable(s, cfg, twin, &j->exe) != TW_OK)
        copy_reason(j->reason, sizeof j->reason);
    if (!j->exe && !j->reason[0])
        snprintf(j->reason, sizeof j->reason, "it did not compile");
    j->seconds = clock_seconds() - start;
}

static void work(compile_batch *b)
{
    pthread_mutex_lock(&b->lock);
    while (b->next < b->n && !b->stop) {
        compile_job *j = &b->job[b->next++];
        pthread_mutex_unlock(&b->lock);
        if (!j->waits)
            compile_one(b->s, j);
        pthread_mutex_lock(&b->lock);
        b->done++;
        pthread_cond_signal(&b->finished);
    }
    pthread_mutex_unlock(&b->lock);
}

static void *worker(void *arg)
{
    work(arg);
    error_clear(); /* the error of a thread that ends */
    return NULL;
}

/* Calls the progress function while the others work; told to stop, they finish what they are at. */
static void wait_for(compile_batch *b)
{
    pthread_mutex_lock(&b->lock);
    while (b->done < b->n && !b->stop) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += TICK_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&b->finished, &b->lock, &until);
        pthread_mutex_unlock(&b->lock);
        bool go_on = session_tick(b->s, "compiling");
        pthread_mutex_lock(&b->lock);
        b->stop = b->stop || !go_on;
    }
    pthread_mutex_unlock(&b->lock);
}

static void start_threads(compile_batch *b)
{
    uint32_t want = compile_threads(b->s);

    want = want < b->n ? want : b->n;
    while (b->nthreads < want &&
           pthread_create(&b->thread[b->nthreads], NULL, worker, b) == 0)
        b->nthreads++;
    if (b->nthreads == 0)
        work(b);
}

/* Loading holds up what a GPU's driver does for others: it waits until nothing is measured. */
static void load_code(compile_job *j)
{
    if (!j->exe || runtime_exe_load(j->exe) == TW_OK)
        return;
    copy_reason(j->reason, sizeof j->reason);
    runtime_exe_release(j->exe);
    j->exe = NULL;
}

/* What is known to be good elsewhere was measured with its spills. */
static bool spills_too_much(const session *s, uint32_t point)
{
    const executable *start = s->trial[0].exe, *exe = s->trial[point].exe;
    int32_t allowed = SPILLED_BYTES + (start && start->art ? start->art->spill_bytes : 0);

    return exe && exe->art && exe->art->spill_bytes > allowed &&
           !config_equal(&s->trial[point].cfg, &s->known);
}

static void take_over(session *s, compile_job *j)
{
    trial *t = &s->trial[j->point];

    load_code(j);
    t->exe = j->exe;
    if (j->exe && j->compiled)
        session_keep_code(s, j->point);
    if (spills_too_much(s, j->point)) {
        session_finish(s, j->point, TW_TRIAL_PRUNED, NULL); /* the reason is its spills */
        return;
    }
    if (!j->reason[0]) { /* compiled, or not come to */
        if (j->exe && !j->exe->from_store)
            s->compile_s += (j->seconds - s->compile_s) / ++s->ntimed;
        return;
    }
    session_finish(s, j->point, TW_TRIAL_FAILED, "%s", j->reason);
}

compile_batch *compile_begin(session *s, const uint32_t *point, uint32_t n)
{
    compile_batch *b = n ? mem_zalloc(sizeof *b) : NULL;

    if (b)
        b->job = mem_zalloc(n * sizeof *b->job);
    if (!b || !b->job) {
        mem_free(b);
        for (uint32_t i = 0; i < n; i++)
            session_finish(s, point[i], TW_TRIAL_FAILED, "out of memory");
        return NULL;
    }
    b->s = s;
    b->n = n;
    for (uint32_t i = 0; i < n; i++)
        b->job[i].point = point[i];
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->finished, NULL);
    find_twins(b);
    start_threads(b);
    return b;
}

void compile_end(compile_batch *b)
{
    if (!b)
        return;
    wait_for(b);
    for (uint32_t i = 0; i < b->nthreads; i++)
        pthread_join(b->thread[i], NULL);
    pthread_cond_destroy(&b->finished);
    pthread_mutex_destroy(&b->lock);
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->job[i].waits && !b->stop)
            compile_one(b->s, &b->job[i]);
        take_over(b->s, &b->job[i]);
    }
    mem_free(b->job);
    mem_free(b);
}
