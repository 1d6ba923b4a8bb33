#include "cli/cli.h"
#include "cli/json.h"
#include "cli/tuning.h"
#include <math.h>
#include <stdlib.h>

#define BENCH_SECONDS 1.0 /* unless --repeat says how often */
enum { WARM_UP = 2, FEWEST = 7, MOST = 100000 };

typedef struct timing {
    double *seconds;
    size_t count;
    double median, spread, least; /* spread: median absolute deviation */
} timing;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median_of(double *values, size_t n)
{
    qsort(values, n, sizeof *values, by_size);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2.0;
}

static void summarise(timing *t)
{
    double *apart = cli_alloc(t->count, sizeof *apart);

    t->median = median_of(t->seconds, t->count);
    t->least = t->seconds[0];
    for (size_t i = 0; i < t->count; i++)
        apart[i] = fabs(t->seconds[i] - t->median);
    t->spread = median_of(apart, t->count);
    free(apart);
}

static int time_once(cli *c, const problem *p, const tw_launch_options *opt, double *out)
{
    double start = cli_now();

    if (on_gpu(p))
        return tw_launch_timed(p->kernel, p->dev, NULL, p->arg, p->arg_count, opt, out)
                   ? cli_fail_last(c)
                   : CLI_OK;
    if (tw_launch_with(p->kernel, p->dev, NULL, p->arg, p->arg_count, opt) ||
        tw_stream_sync(p->dev, NULL))
        return cli_fail_last(c);
    *out = cli_now() - start;
    return CLI_OK;
}

static int measure(cli *c, const problem *p, timing *t)
{
    tw_launch_options opt = launch_options(c);
    double one = 0.0;

    opt.quiet = true;
    for (int i = 0; i < WARM_UP; i++)
        CLI_TRY(time_once(c, p, &opt, &one));
    double fit = one > 0.0 ? BENCH_SECONDS / one : MOST;
    t->count = c->opt.repeat > 0 ? (size_t)c->opt.repeat
               : fit < FEWEST    ? FEWEST
               : fit > MOST      ? MOST
                                 : (size_t)fit;
    t->seconds = cli_alloc(t->count, sizeof *t->seconds);
    for (size_t i = 0; i < t->count; i++)
        CLI_TRY(time_once(c, p, &opt, &t->seconds[i]));
    summarise(t);
    return CLI_OK;
}

static void print_timing(const cli *c, const problem *p, const tw_answer *a, const timing *t,
                         double flops)
{
    double bytes = (double)problem_bytes(p);
    table rows;

    print_subject(c, p);
    table_begin(&rows, "ll");
    table_cell(&rows, STYLE_DIM, "configuration");
    table_cell(&rows, STYLE_PLAIN, "%s (%s)", a->config[0] ? a->config : "none to choose",
               tw_layer_text(a->layer));
    table_cell(&rows, STYLE_DIM, "time");
    table_cell(&rows, STYLE_BOLD, "%s +-%.1f%%, least %s, of %zu launches",
               text_seconds(t->median).s, 100.0 * t->spread / t->median, text_seconds(t->least).s,
               t->count);
    if (flops > 0.0) {
        table_cell(&rows, STYLE_DIM, "speed");
        table_cell(&rows, STYLE_PLAIN, "%s", text_rate(flops / t->median, "flop/s").s);
    }
    table_cell(&rows, STYLE_DIM, "memory");
    table_cell(&rows, STYLE_PLAIN, "%s, each byte once: %s", text_bytes(bytes).s,
               text_rate(bytes / t->median, "B/s").s);
    table_print(&rows, &c->term, stdout, 2);
}

static void json_timing(const problem *p, const tw_answer *a, const timing *t, double flops)
{
    json j = {.out = stdout};

    json_object(&j, NULL);
    json_subject(&j, p);
    json_answer(&j, a);
    json_number(&j, "median_s", t->median);
    json_number(&j, "spread_s", t->spread);
    json_number(&j, "least_s", t->least);
    json_int(&j, "samples", (int64_t)t->count);
    if (flops > 0.0)
        json_number(&j, "flops_per_s", flops / t->median);
    json_int(&j, "bytes", (int64_t)problem_bytes(p));
    json_end_object(&j);
}

static int bench_opened(cli *c, problem *p, timing *t)
{
    tw_answer answer;
    double flops;

    CLI_TRY(problem_flops(c, p, &flops));
    CLI_TRY(tuning_settle(c, p, &answer));
    CLI_TRY(measure(c, p, t));
    if (c->opt.json)
        json_timing(p, &answer, t, flops);
    else
        print_timing(c, p, &answer, t, flops);
    return CLI_OK;
}

int cmd_bench(cli *c)
{
    problem p;
    timing t = {0};

    if (c->opt.repeat > MOST)
        return cli_usage(c, "--repeat is at most %d", MOST);
    CLI_TRY(problem_open(c, &p));
    int code = bench_opened(c, &p, &t);
    free(t.seconds);
    problem_close(&p);
    return code;
}
