/* Times every configuration of a kernel and prints one line each: what the search is tested on
 * (tests/data/trials_*.txt, tests/unit/check_search.c).
 *
 *   bench_record_trials attention|matmul|softmax [rounds] > tests/data/trials_attention.txt
 *
 * All configurations run once a round, in turn; of each the least processor time counts, so that a
 * machine with other work gives nearly the same lines as a quiet one. One thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tilewright.h"

#define MAX_CONFIGS 1024
#define MAX_TENSORS 5

typedef struct subject {
    const char *name, *path;
    int tensors;
    struct {
        const char *name;
        int rank;
        int64_t dim[4];
    } t[MAX_TENSORS];
} subject;

static const subject subjects[] = {
    {"attention",
     "kernels/attention_fwd.tw",
     5,
     {{"q", 4, {1, 2, 1024, 64}},
      {"k", 4, {1, 2, 1024, 64}},
      {"v", 4, {1, 2, 1024, 64}},
      {"o", 4, {1, 2, 1024, 64}},
      {"lse", 3, {1, 2, 1024}}}},
    {"matmul",
     "kernels/matmul.tw",
     3,
     {{"a", 2, {384, 640}}, {"b", 2, {640, 512}}, {"c", 2, {384, 512}}}},
    {"softmax", "kernels/softmax.tw", 2, {{"x", 2, {500, 3000}}, {"y", 2, {500, 3000}}}}};

typedef struct run {
    char config[256];
    double least;
} run;

static run runs[MAX_CONFIGS];
static size_t nruns;
static DLTensor tensors[MAX_TENSORS];
static int64_t strides[MAX_TENSORS][4];
static tw_arg args[MAX_TENSORS];

static void must(tw_status st)
{
    if (st == TW_OK)
        return;
    fprintf(stderr, "%s: %s\n", tw_status_name(st), tw_last_error()->text);
    exit(tw_status_exit_code(st));
}

static void make_tensor(const subject *s, int i)
{
    int64_t n = 1;

    for (int d = s->t[i].rank; d-- > 0;) {
        strides[i][d] = n;
        n *= s->t[i].dim[d];
    }
    float *data = aligned_alloc(64, (size_t)n * sizeof *data + 64 - (size_t)n * sizeof *data % 64);
    if (!data)
        exit(10);
    for (int64_t j = 0; j < n; j++)
        data[j] = (float)(j * 7919 % 2003) / 1001.0f - 1.0f;
    tensors[i] = (DLTensor){data,
                            {kDLCPU, 0},
                            s->t[i].rank,
                            {kDLFloat, 32, 1},
                            (int64_t *)(uintptr_t)s->t[i].dim,
                            strides[i],
                            0};
    args[i] = tw_arg_tensor(s->t[i].name, &tensors[i]);
}

/* The report of a tuning that has no time to measure names all configurations. */
static void list_configs(const subject *s, tw_kernel *k, tw_device *dev)
{
    tw_tune_options opt = TW_TUNE_OPTIONS_INIT;
    tw_tune_report *r;

    opt.budget_s = 1e-3;
    must(tw_tune(k, dev, args, (size_t)s->tensors, &opt, &r));
    nruns = tw_tune_report_count(r);
    if (nruns > MAX_CONFIGS)
        nruns = MAX_CONFIGS;
    for (size_t i = 0; i < nruns; i++)
        strcpy(runs[i].config, tw_tune_report_trial(r, i)->config);
    tw_tune_report_destroy(r);
}

static double processor_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void time_all(const subject *s, tw_kernel *k, tw_device *dev, int rounds)
{
    for (int r = 0; r <= rounds; r++) /* round 0 compiles */
        for (size_t i = 0; i < nruns; i++) {
            tw_launch_options opt = TW_LAUNCH_OPTIONS_INIT;
            opt.config = runs[i].config;
            double start = processor_seconds();
            must(tw_launch_with(k, dev, NULL, args, (size_t)s->tensors, &opt));
            double took = processor_seconds() - start;
            if (r == 1 || (r > 1 && took < runs[i].least))
                runs[i].least = took;
        }
}

static void record(const subject *s, int rounds)
{
    tw_context *cx;
    tw_device *dev;
    tw_kernel *k;
    tw_device_info info = TW_DEVICE_INFO_INIT;

    must(tw_context_create(NULL, &cx));
    must(tw_device_open(cx, "cpu:1", &dev));
    must(tw_kernel_load(cx, s->path, NULL, &k));
    for (int i = 0; i < s->tensors; i++)
        make_tensor(s, i);
    list_configs(s, k, dev);
    time_all(s, k, dev, rounds);
    must(tw_device_query(dev, &info));
    printf("# %s on %s, %s, one thread, least of %d rounds, seconds\n", s->name, info.name,
           info.target, rounds);
    for (size_t i = 0; i < nruns; i++)
        printf("%s %.6g\n", runs[i].config, runs[i].least);
    for (int i = 0; i < s->tensors; i++)
        free(tensors[i].data);
    tw_kernel_destroy(k);
    tw_device_close(dev);
    tw_context_destroy(cx);
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 15;

    for (size_t i = 0; argc > 1 && i < sizeof subjects / sizeof subjects[0]; i++)
        if (!strcmp(argv[1], subjects[i].name)) {
            record(&subjects[i], rounds > 0 ? rounds : 1);
            return 0;
        }
    fprintf(stderr, "usage: bench_record_trials attention|matmul|softmax [rounds]\n");
    return 2;
}
