/* --flops: + - * / and parentheses over numbers and the kernel's dimensions and compile-time ints,
 * as the arguments give them. By recursive descent, with a limit on nesting. */
#include "cli/problem.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NESTING = 64 };

typedef struct formula {
    const problem *p;
    const char *text, *at;
    int depth;
    char error[120];
} formula;

static double wrong(formula *f, const char *what)
{
    if (!f->error[0])
        snprintf(f->error, sizeof f->error, "%s at '%.20s'", what, f->at);
    return 0.0;
}

static char next(formula *f)
{
    while (*f->at == ' ')
        f->at++;
    return *f->at;
}

static bool is_named(const char *name, const char *at, size_t length)
{
    return name && strlen(name) == length && memcmp(name, at, length) == 0;
}

static bool look_up(const problem *p, const char *at, size_t length, double *out)
{
    for (size_t i = 0; i < p->count; i++) {
        const parameter *q = &p->param[i];
        for (int d = 0; q->tensor.type && d < q->info.rank && d < q->tensor.view.ndim; d++)
            if (is_named(q->info.dims[d], at, length))
                return *out = (double)q->tensor.shape[d], true;
        if (q->text && q->info.kind != TW_PARAM_TENSOR && is_named(q->info.name, at, length)) {
            char *end;
            *out = strtod(q->text, &end);
            return end != q->text && *end == '\0';
        }
    }
    return false;
}

static double name_value(formula *f)
{
    size_t length = 0;
    double value = 0.0;

    while (isalnum((unsigned char)f->at[length]) || f->at[length] == '_')
        length++;
    if (!look_up(f->p, f->at, length, &value))
        return wrong(f, "no dimension of that name");
    f->at += length;
    return value;
}

static double sum(formula *f);

static double factor(formula *f)
{
    char *end;
    double value;

    if (next(f) == '(') {
        if (++f->depth > MAX_NESTING)
            return wrong(f, "too many parentheses");
        f->at++;
        value = sum(f);
        f->depth--;
        if (next(f) != ')')
            return wrong(f, "')' is missing");
        f->at++;
        return value;
    }
    if (isalpha((unsigned char)*f->at) || *f->at == '_')
        return name_value(f);
    if (!isdigit((unsigned char)*f->at) && *f->at != '.')
        return wrong(f, "a number or a name was expected");
    value = strtod(f->at, &end);
    f->at = end;
    return value;
}

static double product(formula *f)
{
    double value = factor(f);

    while (!f->error[0] && (next(f) == '*' || *f->at == '/')) {
        char op = *f->at++;
        double by = factor(f);
        value = op == '*' ? value * by : value / by;
    }
    return value;
}

static double sum(formula *f)
{
    double value = product(f);

    while (!f->error[0] && (next(f) == '+' || *f->at == '-')) {
        char op = *f->at++;
        double by = product(f);
        value = op == '+' ? value + by : value - by;
    }
    return value;
}

int problem_flops(cli *c, const problem *p, double *out)
{
    formula f = {.p = p, .text = c->opt.flops, .at = c->opt.flops};

    *out = 0.0;
    if (!c->opt.flops)
        return CLI_OK;
    *out = sum(&f);
    if (next(&f))
        wrong(&f, "an operator was expected");
    if (!f.error[0] && !(*out > 0.0))
        wrong(&f, "the result is not positive");
    return f.error[0] ? cli_usage(c, "--flops='%s': %s", f.text, f.error) : CLI_OK;
}
