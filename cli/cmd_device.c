#include "cli/cli.h"
#include "cli/json.h"
#include "cli/open.h"
#include <string.h>

static void gpu_rows(table *t, const tw_device_info *d)
{
    table_cell(t, STYLE_DIM, "capability");
    table_cell(t, STYLE_PLAIN, "%d.%d", d->capability / 10, d->capability % 10);
    table_cell(t, STYLE_DIM, "driver");
    table_cell(t, STYLE_PLAIN, "%s", d->driver);
    table_cell(t, STYLE_DIM, "memory");
    table_cell(t, STYLE_PLAIN, "%s, %s L2 cache", text_bytes((double)d->memory_bytes).s,
               text_bytes((double)d->l2_bytes).s);
    table_cell(t, STYLE_DIM, "a block");
    table_cell(t, STYLE_PLAIN, "at most %s of shared memory, %d threads, %d registers",
               text_bytes(d->block_shared_bytes).s, d->block_threads, d->registers);
}

static void print_device(const cli *c, const tw_device_info *d)
{
    table t;

    printf("%s%s%s  %s\n", term_on(&c->term, stdout, STYLE_BOLD), d->spec,
           term_off(&c->term, stdout), d->name);
    table_begin(&t, "ll");
    table_cell(&t, STYLE_DIM, "code path");
    table_cell(&t, STYLE_PLAIN, "%s", d->target);
    table_cell(&t, STYLE_DIM, d->capability ? "multiprocessors" : "threads");
    table_cell(&t, STYLE_PLAIN, "%d", d->threads);
    if (d->capability)
        gpu_rows(&t, d);
    if (d->l1_bytes) {
        table_cell(&t, STYLE_DIM, "cache a core");
        table_cell(&t, STYLE_PLAIN, "%s L1, %s L2", text_bytes((double)d->l1_bytes).s,
                   text_bytes((double)d->l2_bytes).s);
    }
    if (d->features && *d->features) {
        table_cell(&t, STYLE_DIM, "features");
        table_cell(&t, STYLE_PLAIN, "%s", d->features);
    }
    table_print(&t, &c->term, stdout, 2);
}

static void json_device(json *j, const tw_device_info *d)
{
    json_object(j, NULL);
    json_text(j, "device", d->spec);
    json_text(j, "name", d->name);
    json_text(j, "target", d->target);
    json_text(j, "features", d->features);
    json_int(j, "threads", d->threads);
    json_int(j, "l1_bytes", (int64_t)d->l1_bytes);
    json_int(j, "l2_bytes", (int64_t)d->l2_bytes);
    if (d->capability) {
        json_int(j, "capability", d->capability);
        json_text(j, "driver", d->driver);
        json_int(j, "memory_bytes", (int64_t)d->memory_bytes);
        json_int(j, "block_shared_bytes", d->block_shared_bytes);
        json_int(j, "block_threads", d->block_threads);
        json_int(j, "registers", d->registers);
    }
    json_end_object(j);
}

enum { MOST_GPUS = 64, USUAL = 2 };

typedef struct device_list {
    tw_device *at[MOST_GPUS + USUAL];
    size_t count;
} device_list;

static int open_named(cli *c, tw_context *cx, device_list *list)
{
    if (c->opt.word_count > MOST_GPUS + USUAL)
        return cli_usage(c, "more than %d devices at once", MOST_GPUS + USUAL);
    for (size_t i = 0; i < c->opt.word_count; i++) {
        if (tw_device_open(cx, c->opt.word[i], &list->at[list->count]))
            return cli_fail_last(c);
        list->count++;
    }
    return CLI_OK;
}

/* Every GPU that the driver shows; one that cannot be used is told of, and is no failure. */
static void open_gpus(cli *c, tw_context *cx, device_list *list)
{
    for (int i = 0; i < MOST_GPUS; i++) {
        char spec[24];
        snprintf(spec, sizeof spec, "cuda:%d", i);
        tw_status st = tw_device_open(cx, spec, &list->at[list->count]);
        if (st == TW_OK)
            list->count++;
        else if (st == TW_E_DEVICE)
            return; /* there is no such GPU, nor another */
        else
            cli_warn(c, "%.*s", (int)strcspn(tw_last_error()->text, "\n"), tw_last_error()->text);
        if (st == TW_E_DRIVER)
            return;
    }
}

static int open_usual(cli *c, tw_context *cx, device_list *list)
{
    static const char *const usual[USUAL] = {"cpu", "interp"};

    for (size_t i = 0; i < USUAL; i++) {
        if (tw_device_open(cx, usual[i], &list->at[list->count]))
            return cli_fail_last(c);
        list->count++;
    }
    open_gpus(c, cx, list);
    return CLI_OK;
}

static int show_all(cli *c, tw_device *const *dev, size_t count)
{
    json j = {.out = stdout};

    if (c->opt.json)
        json_array(&j, NULL);
    for (size_t i = 0; i < count; i++) {
        tw_device_info info = TW_DEVICE_INFO_INIT;
        if (tw_device_query(dev[i], &info))
            return cli_fail_last(c);
        if (c->opt.json)
            json_device(&j, &info);
        else
            print_device(c, &info);
    }
    if (c->opt.json)
        json_end_array(&j);
    return CLI_OK;
}

int cmd_device(cli *c)
{
    device_list list = {.count = 0};
    tw_context *cx = NULL;

    c->opt.store = "none";
    int code = open_context(c, TW_LOG_WARNING, &cx);
    if (!code)
        code = c->opt.word_count ? open_named(c, cx, &list) : open_usual(c, cx, &list);
    if (!code)
        code = show_all(c, list.at, list.count);
    for (size_t i = 0; i < list.count; i++)
        tw_device_close(list.at[i]);
    tw_context_destroy(cx);
    return code;
}
