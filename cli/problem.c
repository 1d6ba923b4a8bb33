#include "cli/problem.h"
#include "cli/open.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool is_output(const parameter *q)
{
    return q->info.kind == TW_PARAM_TENSOR && q->info.direction != TW_IN;
}

bool is_input(const parameter *q)
{
    return q->info.kind == TW_PARAM_TENSOR && q->info.direction != TW_OUT;
}

/* ---- what the command line says -------------------------------------------------------------- */

static int read_parameters(cli *c, problem *p)
{
    p->count = tw_kernel_param_count(p->kernel);
    p->param = cli_alloc(p->count + 1, sizeof *p->param);
    p->arg = cli_alloc(p->count + 1, sizeof *p->arg);
    p->here = cli_alloc(p->count + 1, sizeof *p->here);
    for (size_t i = 0; i < p->count; i++) {
        p->param[i].info = (tw_param_info)TW_PARAM_INFO_INIT;
        if (tw_kernel_param(p->kernel, i, &p->param[i].info))
            return cli_fail_last(c);
    }
    return CLI_OK;
}

static int no_parameter(cli *c, const problem *p, const char *name)
{
    const char **list = cli_alloc(p->count + 1, sizeof *list);

    for (size_t i = 0; i < p->count; i++)
        list[i] = p->param[i].info.name;
    const char *near = nearest_word(name, list, p->count);
    free(list);
    if (near)
        return cli_fail(c, TW_E_ARG, "%s has no parameter '%s'; did you mean '%s'?",
                        tw_kernel_name(p->kernel), name, near);
    return cli_fail(c, TW_E_ARG, "%s has no parameter '%s'", tw_kernel_name(p->kernel), name);
}

static int find_parameter(cli *c, const problem *p, const char *word, const char *form,
                          parameter **out, const char **value)
{
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : 0;

    if (length == 0)
        return cli_usage(c, "'%s': %s was expected", word, form);
    *value = equals + 1;
    for (size_t i = 0; i < p->count; i++) {
        const char *name = p->param[i].info.name;
        if (strlen(name) == length && memcmp(name, word, length) == 0) {
            *out = &p->param[i];
            return CLI_OK;
        }
    }
    char *name = cli_format("%.*s", (int)length, word);
    int code = no_parameter(c, p, name);
    free(name);
    return code;
}

static int take_word(cli *c, problem *p, const char *word)
{
    parameter *q;
    const char *value;

    CLI_TRY(find_parameter(c, p, word, "NAME=VALUE", &q, &value));
    const char *name = q->info.name;
    if (q->text)
        return cli_usage(c, "'%s' is given twice", name);
    if (q->info.kind == TW_PARAM_TUNE)
        return cli_usage(c, "'%s' is a tune parameter: give it as --config=%s", name, word);
    if (*value == '\0')
        return cli_usage(c, "'%s' has no value", word);
    q->text = value;
    if (q->info.kind == TW_PARAM_TENSOR && !is_input(q) && !value_is_made(value))
        q->save = value;
    return CLI_OK;
}

/* An output whose shape no other argument says. */
static bool is_made_output(const parameter *q)
{
    return is_output(q) && !is_input(q) && q->text && value_is_made(q->text);
}

static int take_save(cli *c, problem *p, const char *word)
{
    parameter *q;
    const char *path;

    CLI_TRY(find_parameter(c, p, word, "--save=NAME=FILE", &q, &path));
    if (!is_output(q))
        return cli_usage(c, "--save: '%s' is not an output", q->info.name);
    q->save = path;
    return CLI_OK;
}

/* What is there already may have any name: a pipe, a device. A new file may not: a slip of the pen,
 * such as rands:f32[8], would become one. */
static bool may_be_written(const char *path)
{
    const char *end = strrchr(path, '.');

    return (end && strcmp(end, ".npy") == 0) || access(path, F_OK) == 0;
}

static int check_saves(cli *c, const problem *p)
{
    npy_error error;

    for (size_t i = 0; i < p->count; i++) {
        const parameter *q = &p->param[i];
        if (q->save && !may_be_written(q->save))
            return cli_fail(c, TW_E_ARG,
                            "'%s': an output names a .npy file, not '%s' (tilewright help values)",
                            q->info.name, q->save);
        if (q->save && npy_can_write(q->save, &error))
            return cli_fail(c, TW_E_IO, "'%s' cannot be written to %s: %s", q->info.name, q->save,
                            error.text);
        for (size_t j = 0; q->save && j < i; j++)
            if (p->param[j].save && strcmp(p->param[j].save, q->save) == 0)
                return cli_usage(c, "'%s' and '%s' would both be written to %s",
                                 p->param[j].info.name, q->info.name, q->save);
    }
    return CLI_OK;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static int make_input(cli *c, problem *p, parameter *q)
{
    if (!q->text)
        return cli_fail(c, TW_E_ARG, "'%s' is missing: %s=%s", q->info.name, q->info.name,
                        VALUE_FORMS);
    CLI_TRY(tensor_parse(c, q->info.name, q->text, &q->tensor));
    p->arg[p->arg_count++] = TW_TENSOR(q->info.name, &q->tensor.view);
    return CLI_OK;
}

static int make_output(cli *c, problem *p, parameter *q)
{
    int64_t dims[NPY_MAX_RANK];
    int rank = 0;
    DLDataType dtype;

    if (tw_kernel_shape(p->kernel, p->arg, p->arg_count, q->info.name, &rank, dims, &dtype))
        return cli_fail_last(c);
    const elemtype *type = elemtype_of_dlpack(dtype);
    if (!type)
        return cli_fail(c, TW_E_UNSUPPORTED, "'%s': this dtype has no file form", q->info.name);
    return tensor_allocate(c, q->info.name, &q->tensor, type, rank, dims);
}

static bool is_left_to_us(const parameter *q)
{
    return is_output(q) && !is_input(q) && !is_made_output(q);
}

/* Inputs and numbers first: they give the outputs their shapes. */
static int make_arguments(cli *c, problem *p)
{
    for (size_t i = 0; i < p->count; i++) {
        parameter *q = &p->param[i];
        if (is_input(q) || is_made_output(q))
            CLI_TRY(make_input(c, p, q));
        else if (q->text && q->info.kind != TW_PARAM_TENSOR)
            p->arg[p->arg_count++] = TW_TEXT(q->info.name, q->text);
    }
    for (size_t i = 0; i < p->count; i++)
        if (is_left_to_us(&p->param[i]))
            CLI_TRY(make_output(c, p, &p->param[i]));
    for (size_t i = 0; i < p->count; i++)
        if (is_left_to_us(&p->param[i]))
            p->arg[p->arg_count++] = TW_TENSOR(p->param[i].info.name, &p->param[i].tensor.view);
    return CLI_OK;
}

/* ---- the device's memory --------------------------------------------------------------------- */

bool on_gpu(const problem *p)
{
    return p->device.capability > 0;
}

static int send(cli *c, problem *p, parameter *q)
{
    void *memory = NULL;

    if (tw_memory_alloc(p->dev, q->tensor.bytes, &memory))
        return cli_fail_last(c);
    q->there = q->tensor.view;
    q->there.data = memory;
    q->there.device = p->device.memory;
    if (tw_memory_copy(p->dev, memory, q->tensor.memory, q->tensor.bytes, TW_COPY_TO_DEVICE, NULL))
        return cli_fail_last(c);
    return CLI_OK;
}

static int send_all(cli *c, problem *p)
{
    memcpy(p->here, p->arg, p->arg_count * sizeof *p->arg);
    for (size_t i = 0; i < p->count && on_gpu(p); i++) {
        parameter *q = &p->param[i];
        if (q->info.kind != TW_PARAM_TENSOR)
            continue;
        CLI_TRY(send(c, p, q));
        for (size_t k = 0; k < p->arg_count; k++)
            if (strcmp(p->arg[k].name, q->info.name) == 0)
                p->arg[k].value.tensor = &q->there;
    }
    return CLI_OK;
}

int problem_fetch(cli *c, problem *p)
{
    for (size_t i = 0; i < p->count; i++) {
        const parameter *q = &p->param[i];
        if (q->there.data && is_output(q) &&
            tw_memory_copy(p->dev, q->tensor.memory, q->there.data, q->tensor.bytes,
                           TW_COPY_FROM_DEVICE, NULL))
            return cli_fail_last(c);
    }
    return CLI_OK;
}

static int open_all(cli *c, problem *p)
{
    options *opt = &c->opt;

    if (opt->word_count == 0)
        return cli_usage(c, "a kernel is missing: FILE.tw or FILE.tw:KERNEL");
    CLI_TRY(open_context(c, TW_LOG_WARNING, &p->cx));
    CLI_TRY(open_kernel(c, p->cx, opt->word[0], &p->kernel));
    CLI_TRY(read_parameters(c, p));
    for (size_t i = 1; i < opt->word_count; i++)
        CLI_TRY(take_word(c, p, opt->word[i]));
    for (size_t i = 0; i < opt->save_count; i++)
        CLI_TRY(take_save(c, p, opt->save[i]));
    CLI_TRY(check_saves(c, p));
    CLI_TRY(open_device(c, p->cx, &p->dev));
    p->device = (tw_device_info)TW_DEVICE_INFO_INIT;
    if (tw_device_query(p->dev, &p->device))
        return cli_fail_last(c);
    CLI_TRY(make_arguments(c, p));
    return send_all(c, p);
}

int problem_open(cli *c, problem *p)
{
    *p = (problem){0};
    int code = open_all(c, p);
    if (code)
        problem_close(p);
    return code;
}

void problem_close(problem *p)
{
    for (size_t i = 0; i < p->count; i++) {
        tensor_free(&p->param[i].tensor);
        if (p->param[i].there.data)
            tw_memory_free(p->dev, p->param[i].there.data);
    }
    free(p->param);
    free(p->arg);
    free(p->here);
    tw_kernel_destroy(p->kernel);
    tw_device_close(p->dev);
    tw_context_destroy(p->cx);
    *p = (problem){0};
}

size_t problem_bytes(const problem *p)
{
    size_t n = 0;

    for (size_t i = 0; i < p->count; i++)
        n += p->param[i].tensor.bytes;
    return n;
}
