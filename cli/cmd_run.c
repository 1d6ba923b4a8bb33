#include "cli/cli.h"
#include "cli/json.h"
#include "cli/tuning.h"
#include "cli/runcheck.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct outcome {
    problem p;
    tw_answer answer;
    check check;
    double launch_s;
} outcome;

/* ---- for people ------------------------------------------------------------------------------ */

static void print_configuration(const cli *c, const outcome *r)
{
    const tw_answer *a = &r->answer;
    table t;

    table_begin(&t, "ll");
    table_cell(&t, STYLE_DIM, "configuration");
    table_cell(&t, STYLE_PLAIN, "%s (%s)", a->config[0] ? a->config : "none to choose",
               tw_layer_text(a->layer));
    table_cell(&t, STYLE_DIM, "code");
    if (a->artifact_stored)
        table_cell(&t, STYLE_PLAIN, "%s, from the store", text_bytes((double)a->code_bytes).s);
    else
        table_cell(&t, STYLE_PLAIN, "%s, compiled in %s", text_bytes((double)a->code_bytes).s,
                   text_seconds(a->compile_s).s);
    table_cell(&t, STYLE_DIM, "launch");
    table_cell(&t, STYLE_PLAIN, "%s", text_seconds(r->launch_s).s);
    table_print(&t, &c->term, stdout, 2);
}

static void print_outputs(const cli *c, const problem *p)
{
    table t;

    table_begin(&t, "lll");
    for (size_t i = 0; i < p->count; i++) {
        if (!p->param[i].save)
            continue;
        char *shape = tensor_text(&p->param[i].tensor);
        table_cell(&t, STYLE_DIM, "wrote");
        table_cell(&t, STYLE_PLAIN, "%s", p->param[i].save);
        table_cell(&t, STYLE_PLAIN, "%s %s", p->param[i].info.name, shape);
        free(shape);
    }
    table_print(&t, &c->term, stdout, 2);
}

static char *index_text(const tensor *t, size_t at)
{
    char *text = cli_format("[");

    for (int i = 0; i < t->view.ndim; i++) {
        char *longer = cli_format("%s%s%lld", text, i ? "," : "",
                                  (long long)((int64_t)at / t->stride[i] % t->shape[i]));
        free(text);
        text = longer;
    }
    char *whole = cli_format("%s]", text);
    free(text);
    return whole;
}

static void print_wrong(const parameter *q, const verdict *v)
{
    char *index = index_text(&q->tensor, v->at);

    printf("    worst at %s%s: %.9g instead of %.9g; %zu of %zu elements are wrong\n", q->info.name,
           index, v->got, v->expected, v->wrong, v->elements);
    free(index);
}

static void print_check(const cli *c, const outcome *r)
{
    const problem *p = &r->p;
    const check *k = &r->check;
    table t;

    printf("  against the interpreter in double precision, %lld of %lld programs\n",
           (long long)k->interpreted, (long long)k->programs);
    table_begin(&t, "lll");
    for (size_t i = 0; i < p->count; i++) {
        const verdict *v = &k->verdict[i];
        if (!v->compared)
            continue;
        table_cell(&t, STYLE_PLAIN, "%s", p->param[i].info.name);
        table_cell(&t, STYLE_PLAIN, "worst error %.2g, %.2g relative (%.2g allowed)", v->worst,
                   v->worst_relative, v->tolerance);
        table_cell(&t, v->pass ? STYLE_GREEN : STYLE_RED, v->pass ? "PASS" : "FAIL");
    }
    table_print(&t, &c->term, stdout, 4);
    for (size_t i = 0; i < p->count; i++)
        if (k->verdict[i].compared && !k->verdict[i].pass)
            print_wrong(&p->param[i], &k->verdict[i]);
}

static void print_outcome(const cli *c, const outcome *r)
{
    print_subject(c, &r->p);
    print_configuration(c, r);
    print_outputs(c, &r->p);
    if (c->opt.check)
        print_check(c, r);
}

/* ---- for machines ---------------------------------------------------------------------------- */

static void json_check(json *j, const outcome *r)
{
    const check *k = &r->check;

    json_object(j, "check");
    json_bool(j, "pass", k->pass);
    json_int(j, "programs", k->programs);
    json_int(j, "interpreted", k->interpreted);
    json_array(j, "outputs");
    for (size_t i = 0; i < r->p.count; i++) {
        const verdict *v = &k->verdict[i];
        if (!v->compared)
            continue;
        json_object(j, NULL);
        json_text(j, "name", r->p.param[i].info.name);
        json_bool(j, "pass", v->pass);
        json_int(j, "elements", (int64_t)v->elements);
        json_int(j, "wrong", (int64_t)v->wrong);
        json_number(j, "worst", v->worst);
        json_number(j, "worst_relative", v->worst_relative);
        json_number(j, "tolerance", v->tolerance);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static void json_outputs(json *j, const problem *p)
{
    json_array(j, "outputs");
    for (size_t i = 0; i < p->count; i++) {
        const parameter *q = &p->param[i];
        if (!is_output(q))
            continue;
        json_object(j, NULL);
        json_text(j, "name", q->info.name);
        json_text(j, "dtype", q->tensor.type->name);
        json_array(j, "shape");
        for (int d = 0; d < q->tensor.view.ndim; d++)
            json_int(j, NULL, q->tensor.shape[d]);
        json_end_array(j);
        json_text(j, "file", q->save);
        json_end_object(j);
    }
    json_end_array(j);
}

static void json_outcome(const cli *c, const outcome *r)
{
    json j = {.out = stdout};

    json_object(&j, NULL);
    json_subject(&j, &r->p);
    json_answer(&j, &r->answer);
    json_number(&j, "launch_s", r->launch_s);
    json_outputs(&j, &r->p);
    if (c->opt.check)
        json_check(&j, r);
    json_end_object(&j);
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int launch(cli *c, outcome *r)
{
    tw_launch_options opt = launch_options(c);
    double start = cli_now();

    if (on_gpu(&r->p)) /* by its own clock: what waiting for it costs is no part of the launch */
        return tw_launch_timed(r->p.kernel, r->p.dev, NULL, r->p.arg, r->p.arg_count, &opt,
                               &r->launch_s)
                   ? cli_fail_last(c)
                   : problem_fetch(c, &r->p);
    if (tw_launch_with(r->p.kernel, r->p.dev, NULL, r->p.arg, r->p.arg_count, &opt) ||
        tw_stream_sync(r->p.dev, NULL))
        return cli_fail_last(c);
    r->launch_s = cli_now() - start;
    return CLI_OK;
}

static int save_outputs(cli *c, const problem *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->param[i].save)
            CLI_TRY(tensor_save(c, p->param[i].info.name, &p->param[i].tensor, p->param[i].save));
    return CLI_OK;
}

/* A range beyond the grid would run nothing, and look like success. */
static int check_range(cli *c, const tw_answer *a)
{
    if (c->opt.program_count == 0 || c->opt.program_first < a->programs)
        return CLI_OK;
    return cli_fail(c, TW_E_ARG, "--programs=%lld:%lld: the grid has %lld program%s",
                    (long long)c->opt.program_first, (long long)c->opt.program_count,
                    (long long)a->programs, a->programs == 1 ? "" : "s");
}

static int run_opened(cli *c, outcome *r)
{
    CLI_TRY(tuning_settle(c, &r->p, &r->answer));
    CLI_TRY(check_range(c, &r->answer));
    if (c->opt.check)
        CLI_TRY(check_begin(c, &r->p, &r->check));
    CLI_TRY(launch(c, r));
    CLI_TRY(save_outputs(c, &r->p));
    if (c->opt.check)
        CLI_TRY(check_compare(c, &r->p, r->answer.config, &r->check));
    if (c->opt.json)
        json_outcome(c, r);
    else
        print_outcome(c, r);
    return c->opt.check && !r->check.pass ? tw_status_exit_code(TW_E_MISMATCH) : CLI_OK;
}

int cmd_run(cli *c)
{
    outcome r = {0};

    CLI_TRY(problem_open(c, &r.p));
    int code = run_opened(c, &r);
    check_free(&r.p, &r.check);
    problem_close(&r.p);
    return code;
}
