/* How long from kernel text to a result, in a new process: with nothing kept, and with a store of
 * an earlier process. Each figure is a median of several processes; a table in milliseconds:
 *
 *   bench_cold_start [device]       "cuda", "cuda:N", "cpu", ...; in the root of the project
 *
 * context: the CUDA context, made by the driver's own calls before the library's first. open:
 * context and device of the library, and the store. text: the kernel is read. code: it is compiled,
 * and loaded. result: the first launch, its end, and a copy of the result's first bytes. beyond:
 * all but the context. The driver's own cache of code is switched off. */
#include "bare_cuda.h"
#include "tilewright.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RUNS = 5, STEPS = 5 };
static const char *const step_name[STEPS] = {"context", "open", "text", "code", "result"};

/* ---- one process ----------------------------------------------------------------------------- */

typedef struct subject {
    const char *label, *path;
    int tensors, at_result;
    const char *name[5];
    int rank[5];
    int64_t shape[5][4];
    DLDataType type[5];
} subject;

#define BF16 {kDLBfloat, 16, 1}
#define F32 {kDLFloat, 32, 1}
static const subject subjects[] = {
    {"vector_add", "kernels/vector_add.tw", 3, 2, {"a", "b", "c"}, {1, 1, 1},
     {{4096}, {4096}, {4096}}, {F32, F32, F32}},
    {"attention_fwd", "kernels/attention_fwd.tw", 5, 3, {"q", "k", "v", "o", "lse"},
     {4, 4, 4, 4, 3},
     {{1, 8, 1024, 128}, {1, 8, 1024, 128}, {1, 8, 1024, 128}, {1, 8, 1024, 128}, {1, 8, 1024}},
     {BF16, BF16, BF16, BF16, F32}},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + 1e-6 * (double)t.tv_nsec;
}

static void must(tw_status st)
{
    if (st == TW_OK)
        return;
    fprintf(stderr, "%s\n", tw_last_error()->text);
    exit(tw_status_exit_code(st));
}

static size_t bytes_of(const subject *s, int i)
{
    size_t n = s->type[i].bits / 8;

    for (int d = 0; d < s->rank[i]; d++)
        n *= (size_t)s->shape[i][d];
    return n;
}

/* Zeros: what is computed is no matter here. */
static int make_args(const subject *s, tw_device *dev, DLTensor *tensor, tw_arg *arg)
{
    tw_device_info info = TW_DEVICE_INFO_INIT;

    must(tw_device_query(dev, &info));
    for (int i = 0; i < s->tensors; i++) {
        size_t size = bytes_of(s, i);
        void *zeros = calloc(1, size), *at;
        must(tw_memory_alloc(dev, size, &at));
        must(tw_memory_copy(dev, at, zeros, size, TW_COPY_TO_DEVICE, NULL));
        free(zeros);
        tensor[i] = (DLTensor){at, info.memory, s->rank[i], s->type[i],
                               (int64_t *)(uintptr_t)s->shape[i], NULL, 0};
        arg[i] = TW_TENSOR(s->name[i], &tensor[i]);
    }
    return s->tensors;
}

/* Prints the times of the steps and whether the code came from the store. */
static int run_once(const char *device, const subject *s, const char *store)
{
    tw_config cfg = TW_CONFIG_INIT;
    tw_answer answer = TW_ANSWER_INIT;
    DLTensor tensor[5];
    tw_arg arg[5];
    tw_context *cx;
    tw_device *dev;
    tw_kernel *k;
    tw_bound *b;
    char back[16];
    double at[STEPS + 1] = {now()};

    if (strncmp(device, "cuda", 4) == 0 && !bare_context(device[4] ? atoi(device + 5) : 0))
        return 1;
    at[1] = now();
    cfg.store_path = store;
    must(tw_context_create(&cfg, &cx));
    must(tw_device_open(cx, device, &dev));
    at[2] = now();
    double before = now();
    int n = make_args(s, dev, tensor, arg);
    double tensors = now() - before; /* which count for nothing */
    must(tw_kernel_load(cx, s->path, NULL, &k));
    at[3] = now() - tensors;
    must(tw_kernel_specialize(k, dev, arg, (size_t)n, NULL, &b));
    at[4] = now() - tensors;
    must(tw_bound_launch(b, NULL, arg, (size_t)n));
    must(tw_stream_sync(dev, NULL));
    must(tw_memory_copy(dev, back, tensor[s->at_result].data, sizeof back, TW_COPY_FROM_DEVICE,
                        NULL));
    at[5] = now() - tensors;
    must(tw_query(k, dev, arg, (size_t)n, NULL, &answer));
    for (int i = 0; i < STEPS; i++)
        printf("%.4f ", at[i + 1] - at[i]);
    printf("%d\n", answer.artifact_stored);
    return 0; /* the process ends: nothing is given back one by one */
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *v)
{
    qsort(v, RUNS, sizeof *v, ascending);
    return v[RUNS / 2];
}

/* A process of its own; its times, and their sum without the context, in column `run`. */
static void start_one(const char *self, const char *device, int which, const char *store,
                      double times[STEPS + 1][RUNS], int run, int *stored)
{
    char command[2048];

    snprintf(command, sizeof command, "'%s' '%s' %d '%s'", self, device, which, store);
    FILE *f = popen(command, "r");
    times[STEPS][run] = 0.0;
    for (int i = 0; f && i < STEPS; i++) {
        if (fscanf(f, "%lf", &times[i][run]) != 1)
            exit(1); /* it said why */
        times[STEPS][run] += i ? times[i][run] : 0.0;
    }
    if (!f || fscanf(f, "%d", stored) != 1 || pclose(f) != 0)
        exit(1);
}

static void drop(const char *store)
{
    static const char *const part[] = {"", "-wal", "-shm"};
    char path[640];

    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", store, part[i]);
        unlink(path);
    }
}

/* warm: a process before the first leaves its code in the store. */
static void measure(const char *self, const char *device, int which, bool warm,
                    const char *folder)
{
    double times[STEPS + 1][RUNS];
    char store[600];
    int stored = 0;

    snprintf(store, sizeof store, "%s/store.db", folder);
    for (int run = -warm; run < RUNS; run++) {
        start_one(self, device, which, store, times, run < 0 ? 0 : run, &stored);
        if (run >= 0 && stored != warm)
            fprintf(stderr, "the code is %sfrom the store\n", stored ? "" : "not ");
        if (!warm || run == RUNS - 1)
            drop(store);
    }
    printf("%-15s %-6s", subjects[which].label, warm ? "warm" : "cold");
    for (int i = 0; i <= STEPS; i++)
        printf(" %9.2f", median(times[i]));
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *device = argc > 1 ? argv[1] : "cuda";
    char folder[] = "/tmp/cold_startXXXXXX", self[512];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    if (argc > 3)
        return run_once(device, &subjects[atoi(argv[2])], argv[3]);
    if (n < 0 || !mkdtemp(folder))
        return 1;
    self[n] = 0;
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    printf("%-15s %-6s", "ms", "store");
    for (int i = 0; i < STEPS; i++)
        printf(" %9s", step_name[i]);
    printf(" %9s\n", "beyond");
    for (int s = 0; s < SUBJECTS; s++)
        for (int warm = 0; warm < 2; warm++)
            measure(self, device, s, warm, folder);
    return rmdir(folder);
}
