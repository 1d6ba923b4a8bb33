/* What the library itself costs: from kernel text to the first launch, and each launch after it,
 * for attention_fwd with five tensors and two scalars. An empty grid leaves nothing but the
 * library. Times are of this thread's processor time, so a busy machine disturbs them little; the
 * median of several rounds is printed. On a GPU also launches of one head, which are queued, beside
 * the driver's own launch of an empty kernel with as many parameters, taking turns.
 *
 *   bench_launch_overhead [device [store]]     with a store: its code, in the second run
 */
#include "bare_cuda.h"
#include "tilewright.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 9, LAUNCHES = 100000, HEADS = 4, ROWS = 64, COLUMNS = 64, D = 64 };
enum { TURNS = 25, QUEUED = 400, PARAMS = 27 }; /* what a GPU takes without waiting; slots, about */

static void *memory[5];
static int64_t shape[5][4] = {{1, HEADS, ROWS, D},
                              {1, HEADS, COLUMNS, D},
                              {1, HEADS, COLUMNS, D},
                              {1, HEADS, ROWS, D},
                              {1, HEADS, ROWS, 0}};
static DLTensor tensor[5];
static tw_arg args[8];

static double seconds(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(tw_status st)
{
    if (st == TW_OK)
        return;
    fprintf(stderr, "%s\n", tw_last_error()->text);
    exit(tw_status_exit_code(st));
}

static void make_args(tw_device *dev)
{
    tw_device_info info = TW_DEVICE_INFO_INIT;

    must(tw_device_query(dev, &info));
    static const char *const name[] = {"q", "k", "v", "o", "lse"};

    for (int i = 0; i < 5; i++) {
        must(tw_memory_alloc(dev, sizeof(float) * HEADS * ROWS * D, &memory[i]));
        tensor[i] = (DLTensor){
            memory[i], info.memory, i == 4 ? 3 : 4, {kDLFloat, 32, 1}, shape[i], NULL, 0};
        args[i] = TW_TENSOR(name[i], &tensor[i]);
    }
    args[5] = TW_F32("scale", 0.125);
    args[6] = TW_INT("offset", 0);
    args[7] = TW_BOOL("CAUSAL", true);
}

static void rows(int64_t n)
{
    shape[0][2] = shape[3][2] = shape[4][2] = n;
}

typedef struct subject {
    tw_kernel *k;
    tw_device *dev;
    tw_bound *b;
    const tw_launch_options *pinned;
} subject;

static void by_name(const subject *s)
{
    must(tw_launch(s->k, s->dev, NULL, args, 8));
}

static void pinned(const subject *s)
{
    must(tw_launch_with(s->k, s->dev, NULL, args, 8, s->pinned));
}

static void bound(const subject *s)
{
    must(tw_bound_launch(s->b, NULL, args, 7));
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void measure(const char *what, void (*launch)(const subject *), const subject *s)
{
    double time[ROUNDS];

    launch(s); /* the first of its kind may compile */
    for (int r = 0; r < ROUNDS; r++) {
        double start = seconds(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < LAUNCHES; i++)
            launch(s);
        time[r] = (seconds(CLOCK_THREAD_CPUTIME_ID) - start) / LAUNCHES * 1e9;
    }
    qsort(time, ROUNDS, sizeof *time, ascending);
    printf("%-40s %7.0f ns  (%.0f .. %.0f)\n", what, time[ROUNDS / 2], time[0], time[ROUNDS - 1]);
}

/* ---- launches that are queued ---------------------------------------------------------------- */

static void bare(const subject *s)
{
    (void)s;
    if (!bare_launch())
        exit(1);
}

static double queue_some(void (*launch)(const subject *), const subject *s)
{
    double start = seconds(CLOCK_MONOTONIC);

    for (int i = 0; i < QUEUED; i++)
        launch(s);
    double each = (seconds(CLOCK_MONOTONIC) - start) / QUEUED * 1e9;
    must(tw_stream_sync(s->dev, NULL));
    return each;
}

static void measure_queued(const subject *s)
{
    static const char *const what[] = {"cuLaunchKernel of an empty kernel", "a launch, by name",
                                       "a launch, bound"};
    void (*const launch[])(const subject *) = {bare, by_name, bound};
    double time[3][TURNS];

    for (int r = 0; r < TURNS; r++)
        for (int i = 0; i < 3; i++)
            time[i][r] = queue_some(launch[i], s);
    for (int i = 0; i < 3; i++)
        qsort(time[i], TURNS, sizeof **time, ascending);
    for (int i = 0; i < 3; i++)
        printf("%-40s %7.0f ns  (%.0f .. %.0f), %.0f over the first\n", what[i],
               time[i][TURNS / 2], time[i][0], time[i][TURNS - 1],
               time[i][TURNS / 2] - time[0][TURNS / 2]);
}

int main(int argc, char **argv)
{
    const char *device = argc > 1 ? argv[1] : "cpu";
    bool gpu = strncmp(device, "cuda", 4) == 0;
    tw_config cfg = TW_CONFIG_INIT;
    tw_launch_options opt = TW_LAUNCH_OPTIONS_INIT;
    tw_answer answer = TW_ANSWER_INIT;
    subject s = {.pinned = &opt};
    tw_context *cx;

    if (gpu && !bare_context(device[4] ? atoi(device + 5) : 0))
        return 1;
    cfg.store_path = argc > 2 ? argv[2] : NULL;
    opt.config = "BLOCK_M=64,BLOCK_N=64";
    double start = seconds(CLOCK_MONOTONIC);
    must(tw_context_create(&cfg, &cx));
    must(tw_device_open(cx, device, &s.dev));
    make_args(s.dev);
    must(tw_kernel_load(cx, "kernels/attention_fwd.tw", NULL, &s.k));
    double loaded = seconds(CLOCK_MONOTONIC);
    must(tw_launch(s.k, s.dev, NULL, args, 8));
    double launched = seconds(CLOCK_MONOTONIC);
    must(tw_query(s.k, s.dev, args, 8, NULL, &answer));
    printf("%-40s %7.2f ms\n", "context, device, text", (loaded - start) * 1e3);
    printf("%-40s %7.2f ms  (%s)\n", "first launch", (launched - loaded) * 1e3,
           answer.artifact_stored ? "code from the store" : "compiled");
    must(tw_kernel_specialize(s.k, s.dev, args, 8, &opt, &s.b));
    if (gpu && bare_load(PARAMS))
        measure_queued(&s);
    rows(0);
    measure("launch of an empty grid, by name", by_name, &s);
    measure("the same, configuration pinned", pinned, &s);
    measure("the same, bound", bound, &s);
    tw_bound_destroy(s.b);
    tw_kernel_destroy(s.k);
    for (int i = 0; i < 5; i++)
        tw_memory_free(s.dev, memory[i]);
    tw_device_close(s.dev);
    tw_context_destroy(cx);
    return 0;
}
