#include "cli/cli.h"
#include "cli/json.h"
#include "cli/tuning.h"
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 8 }; /* rows of the table; --json has all */

static const char *const state_names[] = {
    [TW_TRIAL_OK] = "measured",   [TW_TRIAL_STOPPED] = "stopped early",
    [TW_TRIAL_PRUNED] = "pruned", [TW_TRIAL_FAILED] = "failed",
    [TW_TRIAL_WRONG] = "wrong",   [TW_TRIAL_SKIPPED] = "not reached",
};
enum { STATES = sizeof state_names / sizeof *state_names };

typedef struct result {
    problem p;
    tw_tune_report *report;
    size_t count;
    const tw_trial *winner, *initial; /* NULL: there is none */
    double flops;
    double elapsed_s;
    bool stopped;
} result;

static bool was_measured(const tw_trial *t)
{
    return t && (t->state == TW_TRIAL_OK || t->state == TW_TRIAL_STOPPED) && t->median_s > 0.0;
}

static const tw_trial *trial_at(const result *r, size_t i)
{
    const tw_trial *t = i < r->count ? tw_tune_report_trial(r->report, i) : NULL;

    return was_measured(t) ? t : NULL;
}

static void read_report(result *r)
{
    if (!r->report)
        return;
    r->count = tw_tune_report_count(r->report);
    r->winner = trial_at(r, tw_tune_report_winner(r->report));
    r->initial = trial_at(r, tw_tune_report_default(r->report));
}

static double gain(const result *r)
{
    return r->winner && r->initial ? r->initial->median_s / r->winner->median_s : 0.0;
}

/* ---- for people ------------------------------------------------------------------------------ */

static int faster(const void *a, const void *b)
{
    double x = (*(const tw_trial *const *)a)->median_s, y = (*(const tw_trial *const *)b)->median_s;

    return (x > y) - (x < y);
}

static size_t sorted_trials(const result *r, const tw_trial **out)
{
    size_t n = 0;

    for (size_t i = 0; i < r->count; i++)
        if (trial_at(r, i))
            out[n++] = trial_at(r, i);
    qsort(out, n, sizeof *out, faster);
    return n;
}

static void print_trial(const result *r, const tw_trial *t, table *rows)
{
    style s = t == r->winner ? STYLE_GREEN : STYLE_PLAIN;
    const char *mark = t == r->winner ? "winner" : t == r->initial ? "default" : "";

    table_cell(rows, s, "%s", t->config);
    table_cell(rows, s, "%s", text_seconds(t->median_s).s);
    table_cell(rows, STYLE_DIM, "+-%.1f%%", 100.0 * t->spread_s / t->median_s);
    if (r->flops > 0.0)
        table_cell(rows, s, "%s", text_rate(r->flops / t->median_s, "flop/s").s);
    else
        table_cell(rows, s, "%s", "");
    if (r->initial)
        table_cell(rows, s, "%.2fx", r->initial->median_s / t->median_s);
    else
        table_cell(rows, s, "%s", "");
    table_cell(rows, s, "%s", r->winner == r->initial && t == r->winner ? "winner, default" : mark);
}

static void print_heading(const result *r, table *rows)
{
    const char *const word[] = {
        "configuration",          "time", "spread", r->flops > 0.0 ? "speed" : "",
        r->initial ? "gain" : "", ""};

    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        table_cell(rows, STYLE_DIM, "%s", word[i]);
}

static void print_trials(const cli *c, const result *r)
{
    const tw_trial **sorted = cli_alloc(r->count + 1, sizeof *sorted);
    size_t n = sorted_trials(r, sorted);
    bool shown = false;
    table rows;

    table_begin(&rows, "lrrrrl");
    if (n > 0)
        print_heading(r, &rows);
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        print_trial(r, sorted[i], &rows);
        shown |= sorted[i] == r->initial;
    }
    if (r->initial && !shown)
        print_trial(r, r->initial, &rows);
    table_print(&rows, &c->term, stdout, 2);
    free(sorted);
}

/* How many of each state and were compiled, and why those failed that did. */
static void print_states(const result *r)
{
    const char *separator = "  ";

    for (int s = 0; s < STATES; s++) {
        size_t n = 0;
        for (size_t i = 0; i < r->count; i++)
            n += (int)tw_tune_report_trial(r->report, i)->state == s;
        if (n == 0)
            continue;
        printf("%s%zu %s", separator, n, state_names[s]);
        separator = ", ";
    }
    if (tw_tune_report_compiled(r->report) > 0)
        printf("; %zu compiled", tw_tune_report_compiled(r->report));
    printf(r->count ? "\n" : "");
    for (size_t i = 0; i < r->count; i++) {
        const tw_trial *t = tw_tune_report_trial(r->report, i);
        if (t->state == TW_TRIAL_FAILED || t->state == TW_TRIAL_WRONG)
            printf("  %s %s: %s\n", t->config, state_names[t->state], t->reason);
    }
}

static void print_result(const cli *c, const result *r)
{
    bool known = r->report && tw_tune_report_layer(r->report) == TW_LAYER_EXACT;

    print_subject(c, &r->p);
    print_trials(c, r);
    if (r->count > 1)
        print_states(r);
    if (known)
        printf("  the store had it already; --again tunes anew\n");
    else if (r->winner)
        printf("  %s, in %s\n",
               c->opt.checked ? "checked, nothing is stored"
               : r->stopped   ? tuning_kept(r->report)
                              : "stored",
               text_seconds(r->elapsed_s).s);
    else if (!r->stopped && r->count > 0)
        printf("  nothing was measured: %s\n", tw_tune_report_trial(r->report, 0)->reason);
}

/* ---- for machines ---------------------------------------------------------------------------- */

static void json_result(const result *r)
{
    json j = {.out = stdout};

    json_object(&j, NULL);
    json_subject(&j, &r->p);
    json_text(&j, "layer", r->report ? layer_name(tw_tune_report_layer(r->report)) : NULL);
    json_bool(&j, "cancelled", r->stopped);
    json_number(&j, "elapsed_s", r->elapsed_s);
    json_number(&j, "compiled", (double)tw_tune_report_compiled(r->report));
    if (r->winner)
        json_trial(&j, "winner", r->winner);
    if (r->initial)
        json_trial(&j, "default", r->initial);
    if (gain(r) > 0.0)
        json_number(&j, "gain", gain(r));
    if (r->flops > 0.0 && r->winner)
        json_number(&j, "flops_per_s", r->flops / r->winner->median_s);
    json_array(&j, "trials");
    for (size_t i = 0; i < r->count; i++)
        json_trial(&j, NULL, tw_tune_report_trial(r->report, i));
    json_end_array(&j);
    json_end_object(&j);
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int tune_opened(cli *c, result *r)
{
    double start = cli_now();

    CLI_TRY(problem_flops(c, &r->p, &r->flops));
    int code = tuning_start(c, &r->p, c->opt.budget > 0.0 ? c->opt.budget : 60.0, &r->report);
    r->stopped = code == tw_status_exit_code(TW_E_CANCELLED);
    if (code && !r->stopped)
        return code;
    r->elapsed_s = cli_now() - start;
    read_report(r);
    if (c->opt.json)
        json_result(r);
    else
        print_result(c, r);
    if (r->stopped)
        cli_warn(c, "tuning was %s", tuning_kept(r->report));
    return code;
}

int cmd_tune(cli *c)
{
    result r = {0};

    CLI_TRY(problem_open(c, &r.p));
    int code = tune_opened(c, &r);
    tw_tune_report_destroy(r.report);
    problem_close(&r.p);
    return code;
}
