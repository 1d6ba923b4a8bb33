#include "cli/runcheck.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TIME_LIMIT 5.0 /* seconds that the interpreter may take for a sample */
enum { SAMPLE = 64 };  /* programs in a sample */

/* ---- the tensors that the interpreter writes ------------------------------------------------- */

static void *copy_of(cli *c, const tensor *t)
{
    void *copy = aligned_alloc(NPY_ALIGN, (t->bytes + NPY_ALIGN) / NPY_ALIGN * NPY_ALIGN);

    if (!copy)
        cli_fail(c, TW_E_NOMEM, "--check: out of memory for the reference");
    else
        memcpy(copy, t->memory, t->bytes);
    return copy;
}

/* What outputs of the reference hold at first: an element still so was hardly written. No NaN or
 * infinity, no truth, and not the same everywhere, so that no constant is it. */
static void poison(tensor *t)
{
    unsigned char *at = t->memory;

    for (size_t i = 0; i < t->bytes; i++)
        at[i] = (unsigned char)(0x80 | ((i * 37 + i / 64) & 0x3f));
}

/* reference: like t, with the same strides and memory of its own. */
static int twin(cli *c, const parameter *q, tensor *reference, void **before)
{
    *reference = q->tensor;
    reference->memory = copy_of(c, &q->tensor);
    if (!reference->memory)
        return tw_status_exit_code(TW_E_NOMEM);
    if (!is_input(q))
        poison(reference);
    reference->view.data = reference->memory;
    reference->view.shape = reference->shape;
    reference->view.strides = reference->stride;
    *before = copy_of(c, reference);
    return *before ? CLI_OK : tw_status_exit_code(TW_E_NOMEM);
}

int check_begin(cli *c, const problem *p, check *k)
{
    *k = (check){.reference = cli_alloc(p->count + 1, sizeof *k->reference),
                 .before = cli_alloc(p->count + 1, sizeof *k->before),
                 .verdict = cli_alloc(p->count + 1, sizeof *k->verdict)};
    for (size_t i = 0; i < p->count; i++)
        if (is_output(&p->param[i]))
            CLI_TRY(twin(c, &p->param[i], &k->reference[i], &k->before[i]));
    return CLI_OK;
}

void check_free(const problem *p, check *k)
{
    for (size_t i = 0; k->reference && i < p->count; i++) {
        tensor_free(&k->reference[i]);
        free(k->before[i]);
    }
    free(k->reference);
    free(k->before);
    free(k->verdict);
    *k = (check){0};
}

/* As it was before the interpreter ran: a program that runs twice must find what it found first. */
static void restore(const problem *p, const check *k)
{
    for (size_t i = 0; i < p->count; i++)
        if (k->before[i])
            memcpy(k->reference[i].memory, k->before[i], k->reference[i].bytes);
}

/* ---- interpreting ---------------------------------------------------------------------------- */

typedef struct oracle {
    cli *c;
    const problem *p;
    tw_device *dev;
    tw_arg *arg;
    char config[sizeof((tw_answer){0}).config]; /* tune parameters of the launch that is checked */
} oracle;

/* Blocks and the numbers of programs follow from the tune parameters; the interpreter has none of
 * the device's schedule parameters. */
static void keep_tune_parameters(const problem *p, const char *config, char *out)
{
    size_t length = 0;

    for (const char *at = config; *at; at += *at == ',') {
        size_t name = strcspn(at, "="), pair = strcspn(at, ",");
        for (size_t i = 0; i < tw_kernel_param_count(p->kernel); i++) {
            tw_param_info info = TW_PARAM_INFO_INIT;
            if (tw_kernel_param(p->kernel, i, &info) || info.kind != TW_PARAM_TUNE ||
                strlen(info.name) != name || memcmp(info.name, at, name) != 0)
                continue;
            if (length)
                out[length++] = ',';
            memcpy(out + length, at, pair);
            length += pair;
        }
        at += pair;
    }
    out[length] = '\0';
}

static void use_references(const problem *p, const check *k, tw_arg *arg)
{
    for (size_t i = 0; i < p->arg_count; i++) {
        arg[i] = p->here[i];
        for (size_t q = 0; q < p->count; q++)
            if (k->before[q] && strcmp(p->param[q].info.name, arg[i].name) == 0)
                arg[i].value.tensor = &k->reference[q].view;
    }
}

static int interpret(oracle *o, int64_t first, int64_t count)
{
    tw_launch_options opt = TW_LAUNCH_OPTIONS_INIT;

    opt.config = o->config;
    opt.f64 = true;
    opt.program_first = first;
    opt.program_count = count;
    opt.quiet = true; /* the launch that is checked has printed */
    return tw_launch_with(o->p->kernel, o->dev, NULL, o->arg, o->p->arg_count, &opt)
               ? cli_fail_last(o->c)
               : CLI_OK;
}

/* A sample, spread from the first program to the last; then all of them, if the sample says that
 * there is time for that. */
static int interpret_enough(oracle *o, check *k)
{
    int64_t first = o->c->opt.program_first, n = k->programs, count = n < SAMPLE ? n : SAMPLE;
    double start = cli_now(), spent = 0.0;

    for (int64_t i = 0; i < count && spent < TIME_LIMIT; i++) {
        int64_t at = count > 1 ? i * (n - 1) / (count - 1) : 0;
        CLI_TRY(interpret(o, first + at, 1));
        k->interpreted++;
        spent = cli_now() - start;
    }
    double rest = spent / (double)k->interpreted * (double)n / o->p->device.threads;
    if (k->interpreted == n || spent + rest > TIME_LIMIT)
        return CLI_OK;
    k->interpreted = n;
    restore(o->p, k);
    return interpret(o, first, n);
}

static int count_programs(oracle *o, check *k)
{
    tw_launch_options pinned = TW_LAUNCH_OPTIONS_INIT;
    tw_answer answer = TW_ANSWER_INIT;
    const options *opt = &o->c->opt;

    pinned.config = o->config;
    if (tw_query(o->p->kernel, o->dev, o->arg, o->p->arg_count, &pinned, &answer))
        return cli_fail_last(o->c);
    k->programs = answer.programs;
    if (opt->program_count) {
        int64_t left = answer.programs - opt->program_first;
        k->programs = left < 0 ? 0 : left < opt->program_count ? left : opt->program_count;
    }
    return CLI_OK;
}

static int run_oracle(cli *c, const problem *p, const char *config, check *k)
{
    oracle o = {.c = c, .p = p, .arg = cli_alloc(p->arg_count + 1, sizeof *o.arg)};
    int code = CLI_OK;

    keep_tune_parameters(p, config, o.config);
    use_references(p, k, o.arg);
    if (tw_device_open(p->cx, "interp", &o.dev))
        code = cli_fail_last(c);
    if (!code)
        code = count_programs(&o, k);
    if (!code && k->programs > 0)
        code = interpret_enough(&o, k);
    tw_device_close(o.dev);
    free(o.arg);
    return code;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static double error_of(double got, double expected)
{
    if (got == expected || (isnan(got) && isnan(expected)))
        return 0.0;
    return isfinite(got) && isfinite(expected) ? fabs(got - expected) : INFINITY;
}

/* Root mean square of what is finite in the reference and was written. */
static double rms_of(const tensor *reference, const void *before)
{
    const elemtype *e = reference->type;
    size_t step = (size_t)e->bytes, n = 0;
    double sum = 0.0;

    for (size_t at = 0; at < reference->bytes; at += step) {
        const char *element = (const char *)reference->memory + at;
        double value = elemtype_value(e, element);
        if (memcmp(element, (const char *)before + at, step) == 0 || !isfinite(value))
            continue;
        sum += value * value;
        n++;
    }
    return n ? sqrt(sum / (double)n) : 0.0;
}

typedef struct difference {
    double got, expected, error, scale;
    bool wrong;
} difference;

static difference difference_of(const elemtype *e, const char *got, const char *expected,
                                double rms, double tolerance)
{
    difference d = {elemtype_value(e, got), elemtype_value(e, expected), 0.0, rms, false};
    bool same = memcmp(got, expected, (size_t)e->bytes) == 0;

    d.error = same ? 0.0 : error_of(d.got, d.expected);
    d.scale += isfinite(d.expected) ? fabs(d.expected) : 0.0;
    d.wrong = !same && !(d.error <= tolerance * d.scale);
    return d;
}

static void count(verdict *v, size_t at, const difference *d)
{
    v->elements++;
    v->wrong += d->wrong;
    if (v->elements == 1 || d->error > v->worst) {
        v->worst = d->error;
        v->worst_relative = d->error > 0.0 ? d->error / d->scale : 0.0;
        v->at = at;
        v->got = d->got;
        v->expected = d->expected;
    }
}

/* Compares what the interpreter wrote; when it ran everything, what it left alone must have been
 * left alone. Of 16 bits and less some results are what the poison is: then the launch has that
 * too. */
static void compare_tensor(const tensor *got, const tensor *reference, const void *before,
                           bool whole, bool fresh, verdict *v)
{
    const elemtype *e = got->type;
    size_t step = (size_t)e->bytes;
    double rms = rms_of(reference, before);
    static const char zero[8];

    for (size_t at = 0; at < got->bytes; at += step) {
        const char *x = (const char *)got->memory + at;
        const char *y = (const char *)reference->memory + at;
        const char *old = (const char *)before + at;
        bool written = memcmp(y, old, step) != 0;
        if (!written && !whole)
            continue;
        difference d = difference_of(e, x, y, rms, v->tolerance);
        if (!written && fresh && d.wrong)
            d = difference_of(e, x, zero, rms, v->tolerance);
        count(v, at / step, &d);
    }
}

int check_compare(cli *c, const problem *p, const char *config, check *k)
{
    CLI_TRY(run_oracle(c, p, config, k));
    k->pass = true;
    for (size_t i = 0; i < p->count; i++) {
        const parameter *q = &p->param[i];
        verdict *v = &k->verdict[i];
        if (!is_output(q))
            continue;
        v->compared = true;
        v->tolerance = c->opt.tolerance >= 0.0 ? c->opt.tolerance : q->tensor.type->tolerance;
        compare_tensor(&q->tensor, &k->reference[i], k->before[i], k->interpreted == k->programs,
                       !is_input(q), v);
        v->pass = v->wrong == 0;
        k->pass &= v->pass;
    }
    return CLI_OK;
}
