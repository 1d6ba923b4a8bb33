#ifndef TW_TUNER_SESSION_H
#define TW_TUNER_SESSION_H
/* One tuning of one problem on one device: the search (tune.c) and the parts it is made of. A part
 * returns TW_OK, or the status that ends the tuning; a candidate that fails does not end it. */
#include "runtime/resolve.h"
#include "runtime/runtime.h"
#include "tuner/race.h"
#include "tuner/scratch.h"
#include "tuner/search.h"

#define TRIAL_MAX_SAMPLES 64
#define NO_TRIAL UINT32_MAX

typedef struct trial {
    tw_trial_state state;
    bool done;     /* has a state, and was stored */
    bool contends; /* close to the leader: races again at the end */
    bool broke;    /* an earlier process lost its device by it; the reason says how */
    bool same;     /* as another trial, whose code it would run */
    hash128 code;  /* of the schedule, where it is known before compiling */
    double weight; /* of its compile, beside others */
    config cfg;
    executable *exe; /* kept while it may run again */
    uint32_t nsamples;
    double sample[TRIAL_MAX_SAMPLES];
    double log_time; /* of its time to that of point 0, by paired measurements */
    char reason[160];
} trial;

typedef struct tune_request {
    tw_kernel *k;
    tw_device *dev;
    const launch_args *args; /* p.content known */
    config start;            /* where the search begins: the default, with what is pinned */
    uint64_t pinned;         /* bit i: start.value[i] may not change */
    double budget_s;
    double started; /* clock_seconds() */
    tw_tune_progress_fn progress;
    void *progress_user;
    store_key key;
    store_lease *lease; /* renewed now and then; may be NULL */
} tune_request;

typedef struct session {
    tune_request rq;
    arena a;
    space sp;
    config known; /* what a launch would get now; the start when nothing is known */
    search *search;
    trial *trial;      /* [sp.npoints]; 0 is the start */
    executable **code; /* [sp.npoints]: what was compiled, kept for points that share its code */
    uint32_t ncompiled;
    uint32_t *order; /* points in the order tried */
    uint32_t norder;
    scratch out;      /* what candidates write */
    char **reference; /* [out.n]: each output as the start computes it, packed */
    char **buffer;    /* [out.n]: room to read one back */
    bool checks;      /* the device computes something that can be compared */
    bool cancelled;
    bool empty;       /* the grid is: there is nothing to measure */
    uint32_t best;    /* point that leads */
    uint32_t repeats; /* launches a sample */
    double compile_s; /* of all that was compiled, in its thread */
    double compile_weight;
    uint32_t ntimed;      /* how many that was */
    int checked_programs; /* by the interpreter */
    double ticked;        /* when progress was last reported */
    const char *phase;    /* as reported then */
} session;

/* ---- session.c ---- */
tw_status session_create(const tune_request *rq, session **out);
void session_destroy(session *s);
double session_elapsed(const session *s);
double session_left(const session *s); /* of the budget; below 0 when it is spent */
/* Reports progress and renews the lease. False: the caller wants to stop. */
bool session_tick(session *s, const char *phase);
/* Gives point p its state, stores it and tells the search. fmt may be NULL. A second call, after
 * more samples, stores it once more. Its executable goes unless it is still needed. */
void session_finish(session *s, uint32_t p, tw_trial_state state, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* p's executable was compiled: how long that took is counted, and its code serves other points. */
void session_keep_code(session *s, uint32_t p);
void session_drop(session *s, uint32_t p); /* p's executable, unless it is still needed */
/* p did not run, for this thread's error. If the device is lost with it, the tuning ends with the
 * status returned, and later ones of the same problem leave p out. */
tw_status session_failed(session *s, uint32_t p);
bool session_lost(const session *s); /* the device, for the rest of the process */
double trial_median(const trial *t);
/* "matrix 'o'[3, 7]" of a mismatch, with both values. */
void session_mismatch_text(const session *s, uint32_t tensor, const mismatch *m, char *out,
                           size_t size);

/* ---- candidates.c: compiling, several at a time; what differs only in dynamic schedule parameters
 * (threads) shares one code. One thread, the session's, calls these. ---- */
typedef struct compile_queue compile_queue;
tw_status compile_open(session *s, compile_queue **out);
/* Can another be submitted? Where the device compiles itself, not while any of those before is
 * still to be taken. */
bool compile_room(compile_queue *q);
void compile_submit(compile_queue *q, uint32_t point);
/* A point whose compile ended, the earliest submitted of them; its trial is done if that failed or
 * is not worth running. Where the device compiles itself, nothing is compiled any more when the
 * first is given out. NO_TRIAL: there are no more, none came until reserve_s of the budget were
 * left, or the session is cancelled. */
uint32_t compile_take(compile_queue *q, double reserve_s);
/* The code of a point that was submitted, not loaded; NULL: there is none, or the session is
 * cancelled. */
executable *compile_await(compile_queue *q, uint32_t point);
/* Nothing is begun any more. */
void compile_stop(compile_queue *q);
/* Waits for what is being compiled, and lets go of what nobody took. */
void compile_close(compile_queue *q);
/* Is the device another than the one that compiles? Then the one goes on while the other
 * measures. */
bool compiles_aside(const session *s);
/* The first line of this thread's error, without what goes before a diagnostic's own text. */
void copy_reason(char *out, size_t size);

/* ---- prune.c: limits known before compiling ---- */
/* True when cfg cannot be worth compiling; why says which limit. needs: what is known by then. Any
 * thread. */
bool prune(const tw_kernel *k, const tw_device *dev, const problem *p, const config *cfg,
           target_needs *needs, char *why, size_t size);

/* ---- measure.c: running and timing on the scratch copies ---- */
/* One run from initial values, its results in the scratch outputs. */
tw_status run_for_results(session *s, executable *exe);
/* First samples of the start. */
tw_status measure_start(session *s);
/* Measures p against the leader until the answer is clear, and finishes it, as leader or not. */
tw_status race_candidate(session *s, uint32_t p);
/* Those that were close race again, at more length, until reserve_s of the budget are left. */
tw_status race_contenders(session *s, double reserve_s);
/* Seconds that race_contenders would take now. */
double contest_seconds(const session *s);
/* Seconds of a pair of samples, and of what is around it. */
double pair_seconds(const session *s);
/* The leader against the start once more, for the numbers that are reported. */
tw_status run_final(session *s);

/* ---- verify.c: results ---- */
/* Runs some programs of the grid by the interpreter, in a tenth of the budget. *out may be NULL
 * then, and there is nothing to compare with. */
typedef struct oracle oracle;
tw_status verify_interpret(session *s, oracle **out);
/* Keeps the start's results as the reference and checks them against the interpreter's. */
tw_status verify_start(session *s, oracle *o);
void verify_end(oracle *o); /* may be NULL */
/* Do the scratch outputs, just written, equal the reference? *why when not. */
tw_status verify_outputs(session *s, bool *equal, char *why, size_t size);

/* ---- tune.c ---- */
/* The whole: TW_OK also when the budget ran out, TW_E_CANCELLED, or why the start cannot be used.
 * s->best is the winner whatever it returns, once the start was measured. */
tw_status tune_search(session *s);

#endif
