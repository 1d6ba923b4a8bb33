#include "cli/tuning.h"
#include <stdlib.h>
#include <string.h>

typedef struct watch {
    cli *c;
    double flops;
} watch;

static bool on_progress(void *user, const tw_tune_progress *p)
{
    const watch *w = user;
    double left = p->budget_s - p->elapsed_s;
    char best[64] = "", text[160];

    if (interrupt_seen())
        return false;
    if (p->best_s > 0.0 && w->flops > 0.0)
        snprintf(best, sizeof best, "best %s  ", text_rate(w->flops / p->best_s, "flop/s").s);
    else if (p->best_s > 0.0)
        snprintf(best, sizeof best, "best %s  ", text_seconds(p->best_s).s);
    snprintf(text, sizeof text, "%zu/%zu %s  %s%.0f s left", p->tried, p->total, p->phase, best,
             left > 0.0 ? left : 0.0);
    double by_count = p->total ? (double)p->tried / (double)p->total : 0.0;
    double by_time = p->budget_s > 0.0 ? p->elapsed_s / p->budget_s : 0.0;
    term_bar(&w->c->term, by_count > by_time ? by_count : by_time, text);
    return true;
}

int tuning_start(cli *c, problem *p, double budget_s, tw_tune_report **report)
{
    tw_tune_options opt = TW_TUNE_OPTIONS_INIT;
    watch w = {c, 0.0};

    *report = NULL;
    CLI_TRY(problem_flops(c, p, &w.flops));
    opt.budget_s = budget_s;
    opt.config = c->opt.config;
    opt.again = c->opt.again;
    opt.progress = on_progress;
    opt.progress_user = &w;
    interrupt_begin();
    tw_status st = tw_tune(p->kernel, p->dev, p->arg, p->arg_count, &opt, report);
    interrupt_end();
    term_bar_clear(&c->term);
    if (st == TW_E_CANCELLED)
        return tw_status_exit_code(st);
    return st ? cli_fail_last(c) : CLI_OK;
}

tw_launch_options launch_options(const cli *c)
{
    tw_launch_options opt = TW_LAUNCH_OPTIONS_INIT;

    opt.config = c->opt.config;
    opt.f64 = c->opt.f64;
    opt.program_first = c->opt.program_first;
    opt.program_count = c->opt.program_count;
    return opt;
}

/* The interpreter and the null device have no speed to tune, part of a grid is no measure of it. */
static bool may_tune(const cli *c, const problem *p)
{
    const char *spec = p->device.spec;

    return !c->opt.config && !c->opt.checked && !c->opt.program_count &&
           strcmp(spec, "interp") != 0 && strcmp(spec, "null") != 0 &&
           !(c->opt.tune && strcmp(c->opt.tune, "never") == 0);
}

const char *tuning_kept(const tw_tune_report *report)
{
    return report && tw_tune_report_winner(report) != tw_tune_report_default(report)
               ? "stopped; the best so far is kept"
               : "stopped; nothing was faster than the default so far, and only trials are kept";
}

static int tune_now(cli *c, problem *p)
{
    tw_tune_report *report;
    int code = tuning_start(c, p, c->opt.budget > 0.0 ? c->opt.budget : 10.0, &report);

    if (code == tw_status_exit_code(TW_E_CANCELLED))
        code = cli_fail(c, TW_E_CANCELLED, "tuning was %s", tuning_kept(report));
    tw_tune_report_destroy(report);
    return code;
}

int tuning_settle(cli *c, problem *p, tw_answer *answer)
{
    tw_launch_options opt = launch_options(c);

    *answer = (tw_answer)TW_ANSWER_INIT;
    if (tw_query(p->kernel, p->dev, p->arg, p->arg_count, &opt, answer))
        return cli_fail_last(c);
    if (answer->layer <= TW_LAYER_EXACT || answer->programs == 0 || !may_tune(c, p))
        return CLI_OK;
    CLI_TRY(tune_now(c, p));
    if (tw_query(p->kernel, p->dev, p->arg, p->arg_count, &opt, answer))
        return cli_fail_last(c);
    return CLI_OK;
}

void print_subject(const cli *c, const problem *p)
{
    const term *t = &c->term;

    printf("%s%s%s on %s (%s", term_on(t, stdout, STYLE_BOLD), tw_kernel_name(p->kernel),
           term_off(t, stdout), p->device.spec, p->device.target);
    if (p->device.threads > 1)
        printf(", %d %s", p->device.threads, on_gpu(p) ? "multiprocessors" : "threads");
    printf(")\n");
}

void json_subject(json *j, const problem *p)
{
    json_text(j, "kernel", tw_kernel_name(p->kernel));
    json_text(j, "device", p->device.spec);
    json_text(j, "device_name", p->device.name);
    json_text(j, "target", p->device.target);
    json_int(j, "threads", p->device.threads);
}

void json_answer(json *j, const tw_answer *a)
{
    json_text(j, "config", a->config);
    json_text(j, "layer", layer_name(a->layer));
    json_bool(j, "artifact_stored", a->artifact_stored);
    json_number(j, "compile_s", a->compile_s);
    json_int(j, "code_bytes", (int64_t)a->code_bytes);
    json_int(j, "ir_ops", a->ir_ops);
    json_int(j, "text_lines", a->text_lines);
    json_int(j, "programs", a->programs);
}

const char *trial_word(tw_trial_state state)
{
    switch (state) {
    case TW_TRIAL_OK:
        return "ok";
    case TW_TRIAL_STOPPED:
        return "stopped";
    case TW_TRIAL_PRUNED:
        return "pruned";
    case TW_TRIAL_FAILED:
        return "failed";
    case TW_TRIAL_WRONG:
        return "wrong";
    case TW_TRIAL_SKIPPED:
        return "skipped";
    }
    return "unknown";
}

void json_trial(json *j, const char *name, const tw_trial *t)
{
    json_object(j, name);
    json_text(j, "config", t->config);
    json_text(j, "state", trial_word(t->state));
    json_number(j, "median_s", t->median_s);
    json_number(j, "spread_s", t->spread_s);
    json_int(j, "samples", t->samples);
    if (t->reason[0])
        json_text(j, "reason", t->reason);
    json_end_object(j);
}
