#include "cli/cli.h"
#include "cli/json.h"
#include "cli/open.h"
#include <stdlib.h>

static void print_device(const cli *c, const tw_device_info *d)
{
    table t;

    printf("%s%s%s  %s\n", term_on(&c->term, stdout, STYLE_BOLD), d->spec,
           term_off(&c->term, stdout), d->name);
    table_begin(&t, "ll");
    table_cell(&t, STYLE_DIM, "code path");
    table_cell(&t, STYLE_PLAIN, "%s", d->target);
    table_cell(&t, STYLE_DIM, "threads");
    table_cell(&t, STYLE_PLAIN, "%d", d->threads);
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
    json_end_object(j);
}

static int open_all(cli *c, tw_context *cx, const char *const *spec, size_t count, tw_device **dev)
{
    for (size_t i = 0; i < count; i++)
        if (tw_device_open(cx, spec[i], &dev[i]))
            return cli_fail_last(c);
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
    static const char *there_are[] = {"cpu", "interp"};
    const char **spec = c->opt.word_count ? c->opt.word : there_are;
    size_t count = c->opt.word_count ? c->opt.word_count : 2;
    tw_device **dev = cli_alloc(count, sizeof *dev);
    tw_context *cx = NULL;

    c->opt.store = "none";
    int code = open_context(c, TW_LOG_WARNING, &cx);
    if (!code)
        code = open_all(c, cx, spec, count, dev);
    if (!code)
        code = show_all(c, dev, count);
    for (size_t i = 0; i < count; i++)
        tw_device_close(dev[i]);
    tw_context_destroy(cx);
    free(dev);
    return code;
}
