/* Compiling candidates, several at a time: a queue that threads take from. Whatever is compiled is
 * handed out at once, so one that takes long holds up nobody. On a processor measuring wants the
 * machine alone: there nothing is handed out until nothing is compiled any more, and nothing is
 * begun until all of it was measured. A GPU is measured while others are compiled; one thread less
 * does that, so that launches are queued in time. */
#include "compiler/base/error.h"
#include "compiler/base/check.h"
#include "compiler/base/mem.h"
#include "runtime/clock.h"
#include "tuner/session.h"
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Bytes of spill stores a thread, beyond the start's, above which code is not measured. Attention
 * that was fastest on an H200 spills up to 172 bytes in its start or seed, which always are. */
#define SPILLED_BYTES 64
#define MAX_THREADS 64
#define MAX_JOBS (MAX_THREADS + MAX_THREADS / 2 + 1)
#define TICK_S 0.1
/* The driver takes time in proportion to the text that it is given, within 0.7 and 1.8 times that
 * for attention. Seconds a byte: twice what an H200's took for one text alone, for several at once
 * are slower; and how much longer than the slowest so far the next may take. */
#define FINISH_S 4e-6
#define FINISH_MARGIN 1.2
#define END_SHARE 0.02 /* of the budget, for what comes behind */

enum job_state {
    JOB_NONE,
    JOB_TWIN, /* shares the code of another, which it waits for */
    JOB_WAITS,
    JOB_COMPILES,
    JOB_DONE
};

typedef struct compile_job {
    enum job_state state; /* under lock, as place is */
    uint32_t place;       /* in the order submitted */
    uint32_t point;
    const config *cfg;
    executable *exe;
    bool compiled;       /* by itself */
    double bytes, begun; /* the driver is at so many since then; 0: it is not; under lock */
    char reason[160];    /* why there is no executable; none: there was no time left for it */
} compile_job;

/* A worker sees its job, and of the session what tuning does not change. */
struct compile_queue {
    session *s;
    unsigned flags;  /* of runtime_compile */
    bool aside;      /* handed out while others are compiled */
    bool drains;     /* not aside: no more until all are handed out */
    uint32_t most;   /* jobs at a time */
    uint32_t places; /* given so far */
    uint32_t wanted_threads, nthreads;
    pthread_t thread[MAX_THREADS];
    pthread_mutex_t lock;
    pthread_cond_t submitted, finished;
    bool stop;      /* under lock */
    double slowest; /* seconds a byte that the driver took at most; under lock */
    uint32_t idle;  /* threads that wait; under lock */
    compile_job job[MAX_JOBS];
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

/* Is the code of a job's point that of one before it, which is not handed out yet? */
static bool waits_for_code(const compile_queue *q, uint32_t place, uint32_t point)
{
    for (uint32_t i = 0; i < MAX_JOBS; i++) {
        const compile_job *j = &q->job[i];
        if (j->state != JOB_NONE && j->place < place && same_code(q->s, j->point, point))
            return true;
    }
    return false;
}

void copy_reason(char *out, size_t size)
{
    const tw_error *e = error_get();
    const char *text = e->diagnostic_count ? e->diagnostics[0].text : e->text;

    snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
}

/* ---- compiling ------------------------------------------------------------------------------- */

/* Under lock. Of what is not done yet, it is known how long it takes at least. */
static double slowest_finish(const compile_queue *q)
{
    double now = clock_seconds(), most = q->slowest;

    for (uint32_t i = 0; i < MAX_JOBS; i++)
        if (q->job[i].begun > 0.0)
            most = fmax(most, (now - q->job[i].begun) / q->job[i].bytes);
    return most;
}

/* The start is needed whatever it takes; others must not outlast the budget. */
static bool begin_finish(compile_queue *q, compile_job *j)
{
    const artifact *art = j->exe->art;
    double bytes = 1.0, time = session_left(q->s) - END_SHARE * q->s->rq.budget_s;

    for (uint32_t i = 0; i < art->nobjects; i++)
        bytes += (double)art->object[i].size;
    pthread_mutex_lock(&q->lock);
    bool begins = j->point == 0 || (!q->stop && time > FINISH_MARGIN * slowest_finish(q) * bytes);
    if (begins) {
        j->bytes = bytes;
        j->begun = clock_seconds();
    }
    pthread_mutex_unlock(&q->lock);
    return begins;
}

static void end_finish(compile_queue *q, compile_job *j)
{
    pthread_mutex_lock(&q->lock);
    q->slowest = fmax(q->slowest, (clock_seconds() - j->begun) / j->bytes);
    j->begun = 0.0;
    pthread_mutex_unlock(&q->lock);
}

static tw_status finish(compile_queue *q, compile_job *j)
{
    tw_status st = TW_OK;
    bool begins = j->exe->from_store || begin_finish(q, j);

    if (begins && !j->exe->from_store) {
        st = runtime_exe_finish(j->exe);
        end_finish(q, j);
    }
    if (begins && st == TW_OK)
        return TW_OK;
    runtime_exe_release(j->exe);
    j->exe = NULL;
    return st;
}

/* twin: of this code; NULL: anew. */
static void make_executable(compile_queue *q, compile_job *j, executable *twin)
{
    const tune_request *rq = &q->s->rq;

    j->compiled = !twin;
    tw_status st = twin ? runtime_exe_twin(twin, j->cfg, &j->exe)
                        : runtime_compile(rq->k, rq->dev, &rq->args->p, j->cfg, q->flags, &j->exe);
    if (st == TW_OK && j->compiled && q->aside)
        st = finish(q, j);
    if (st != TW_OK)
        copy_reason(j->reason, sizeof j->reason);
    if (st != TW_OK && !j->reason[0])
        snprintf(j->reason, sizeof j->reason, "it did not compile");
}

/* The first of those in this state. */
static compile_job *first_in(compile_queue *q, enum job_state state)
{
    compile_job *found = NULL;

    for (uint32_t i = 0; i < MAX_JOBS; i++) {
        compile_job *j = &q->job[i];
        if (j->state == state && (!found || j->place < found->place))
            found = j;
    }
    return found;
}

/* Under lock, which it gives back meanwhile. False: there is nothing to do. */
static bool compile_first(compile_queue *q)
{
    compile_job *j = first_in(q, JOB_WAITS);

    if (!j || q->stop)
        return false;
    j->state = JOB_COMPILES;
    pthread_mutex_unlock(&q->lock);
    make_executable(q, j, NULL);
    pthread_mutex_lock(&q->lock);
    j->state = JOB_DONE;
    pthread_cond_signal(&q->finished);
    return true;
}

static void *worker(void *arg)
{
    compile_queue *q = arg;

    pthread_mutex_lock(&q->lock);
    while (!q->stop) {
        if (compile_first(q))
            continue;
        q->idle++;
        pthread_cond_wait(&q->submitted, &q->lock);
        q->idle--;
    }
    pthread_mutex_unlock(&q->lock);
    error_clear(); /* the error of a thread that ends */
    return NULL;
}

/* ---- handing over ---------------------------------------------------------------------------- */

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

static void take_over(compile_queue *q, compile_job *j)
{
    session *s = q->s;
    trial *t = &s->trial[j->point];

    if (j->state == JOB_TWIN)
        make_executable(q, j, code_of(s, j->point));
    load_code(j);
    t->exe = j->exe;
    if (j->exe && j->compiled)
        session_keep_code(s, j->point);
    if (j->reason[0])
        session_finish(s, j->point, TW_TRIAL_FAILED, "%s", j->reason);
    else if (spills_too_much(s, j->point))
        session_finish(s, j->point, TW_TRIAL_PRUNED, NULL); /* the reason is its spills */
}

static bool is_pending(const compile_job *j)
{
    return j->state == JOB_WAITS || j->state == JOB_COMPILES;
}

static uint32_t count_jobs(const compile_queue *q, bool pending)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < MAX_JOBS; i++)
        n += pending ? is_pending(&q->job[i]) : q->job[i].state != JOB_NONE;
    return n;
}

/* Under lock. The first that can be handed out; NULL: none yet. */
static compile_job *next_out(compile_queue *q)
{
    if (!q->aside && count_jobs(q, true) > 0)
        return NULL;
    compile_job *done = first_in(q, JOB_DONE), *twin = first_in(q, JOB_TWIN);
    if (twin && waits_for_code(q, twin->place, twin->point))
        twin = NULL;
    if (!done || !twin)
        return done ? done : twin;
    return done->place < twin->place ? done : twin;
}

/* Under lock. Waits for a thread to finish something, but not long, and calls the progress
 * function. */
static void wait_a_little(compile_queue *q, double most_s)
{
    struct timespec until;

    if (q->nthreads == 0) { /* this thread does all */
        (void)compile_first(q);
    } else {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += (long)(1e9 * fmin(most_s, TICK_S));
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&q->finished, &q->lock, &until);
    }
    pthread_mutex_unlock(&q->lock);
    session_tick(q->s, "compiling");
    pthread_mutex_lock(&q->lock);
}

/* Seconds that may be waited for a candidate. */
static double patience(const compile_queue *q, double reserve_s)
{
    return q->s->cancelled ? 0.0 : q->aside ? session_left(q->s) - reserve_s : TICK_S;
}

/* ---- the queue ------------------------------------------------------------------------------- */

tw_status compile_open(session *s, compile_queue **out)
{
    compile_queue *q = mem_zalloc(sizeof *q);
    uint32_t threads = processors(s);

    if (!q)
        return error_set(TW_E_NOMEM, "no memory to compile candidates");
    q->s = s;
    q->aside = compiles_aside(s);
    q->slowest = FINISH_S;
    q->flags = COMPILE_NO_STORE_WRITE | (q->aside ? COMPILE_NO_LOAD | COMPILE_NO_FINISH : 0);
    q->wanted_threads = threads - q->aside;
    q->most = q->aside ? q->wanted_threads + (q->wanted_threads + 1) / 2 : q->wanted_threads;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->submitted, NULL);
    pthread_cond_init(&q->finished, NULL);
    *out = q;
    return TW_OK;
}

bool compile_room(compile_queue *q)
{
    pthread_mutex_lock(&q->lock);
    uint32_t n = count_jobs(q, false);
    pthread_mutex_unlock(&q->lock);
    q->drains = q->drains && n > 0;
    return n < q->most && (q->aside || !q->drains);
}

/* Under lock. A thread more, unless enough are idle or there. */
static void wake_worker(compile_queue *q)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < MAX_JOBS; i++)
        n += q->job[i].state == JOB_WAITS;
    pthread_cond_signal(&q->submitted);
    if (n > q->idle && q->nthreads < q->wanted_threads &&
        pthread_create(&q->thread[q->nthreads], NULL, worker, q) == 0)
        q->nthreads++;
}

void compile_submit(compile_queue *q, uint32_t point)
{
    uint32_t place = q->places++;

    pthread_mutex_lock(&q->lock);
    bool twin = code_of(q->s, point) || waits_for_code(q, place, point);
    compile_job *j = first_in(q, JOB_NONE);
    *j = (compile_job){.state = twin ? JOB_TWIN : JOB_WAITS,
                       .place = place,
                       .point = point,
                       .cfg = &q->s->trial[point].cfg};
    if (!twin)
        wake_worker(q);
    pthread_mutex_unlock(&q->lock);
}

uint32_t compile_take(compile_queue *q, double reserve_s)
{
    compile_job *j = NULL;
    double most;

    q->drains = true;
    pthread_mutex_lock(&q->lock);
    while ((most = patience(q, reserve_s)) > 0.0 && !(j = next_out(q)) && count_jobs(q, false) > 0)
        wait_a_little(q, most);
    pthread_mutex_unlock(&q->lock);
    if (!j)
        return NO_TRIAL;
    uint32_t point = j->point;
    take_over(q, j);
    pthread_mutex_lock(&q->lock);
    j->state = JOB_NONE;
    pthread_mutex_unlock(&q->lock);
    return point;
}

/* Under lock. */
static compile_job *job_of(compile_queue *q, uint32_t point)
{
    uint32_t i = 0;

    while (q->job[i].state == JOB_NONE || q->job[i].point != point)
        i++;
    return &q->job[i];
}

executable *compile_await(compile_queue *q, uint32_t point)
{
    pthread_mutex_lock(&q->lock);
    compile_job *j = job_of(q, point);
    while (is_pending(j) && !q->s->cancelled)
        wait_a_little(q, TICK_S);
    executable *exe = j->state == JOB_DONE ? j->exe : NULL;
    if (j->state == JOB_DONE)
        j->state = JOB_NONE;
    pthread_mutex_unlock(&q->lock);
    return exe;
}

/* What failed is worth knowing, but not what failed with the device. */
static void discard(compile_queue *q, compile_job *j)
{
    session *s = q->s;

    s->ncompiled += j->exe && j->compiled;
    if (j->reason[0] && !session_lost(s))
        session_finish(s, j->point, TW_TRIAL_FAILED, "%s", j->reason);
    runtime_exe_release(j->exe);
    j->state = JOB_NONE;
}

void compile_stop(compile_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->stop = true;
    pthread_cond_broadcast(&q->submitted);
    pthread_mutex_unlock(&q->lock);
}

void compile_close(compile_queue *q)
{
    compile_job *j;

    compile_stop(q);
    for (uint32_t i = 0; i < q->nthreads; i++)
        pthread_join(q->thread[i], NULL);
    while ((j = first_in(q, JOB_DONE)))
        discard(q, j);
    pthread_cond_destroy(&q->submitted);
    pthread_cond_destroy(&q->finished);
    pthread_mutex_destroy(&q->lock);
    mem_free(q);
}
