#include "cli/open.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What it does not say stays as it is, which tells what it says. */
static int read_environment(cli *c, tw_config *config)
{
    const tw_config usual = *config;

    config->tune = TW_TUNE_ON_MISS;
    config->tune_budget_s = 0.0;
    if (tw_config_from_env(config))
        return cli_fail_last(c);
    if (!c->opt.tune && config->tune == TW_TUNE_NEVER)
        c->opt.tune = "never";
    if (c->opt.budget <= 0.0)
        c->opt.budget = config->tune_budget_s;
    config->tune = TW_TUNE_NEVER; /* tuning is started by the verbs, to show how it goes */
    config->tune_budget_s = usual.tune_budget_s;
    return CLI_OK;
}

int open_context(cli *c, tw_log_level level, tw_context **out)
{
    tw_config config = TW_CONFIG_INIT;

    CLI_TRY(read_environment(c, &config));
    if (c->opt.store)
        config.store_path = strcmp(c->opt.store, "none") == 0 ? NULL : c->opt.store;
    config.log = cli_log;
    config.log_user = c;
    config.log_level = level;
    return tw_context_create(&config, out) ? cli_fail_last(c) : CLI_OK;
}

static int device_spec(cli *c, char out[64])
{
    const char *name = c->opt.device ? c->opt.device : "auto";

    snprintf(out, 64, "%s", name);
    if (c->opt.threads <= 0)
        return CLI_OK;
    if (strcmp(name, "cpu") != 0 && strcmp(name, "auto") != 0)
        return cli_usage(c, "--threads goes with --device=cpu, not with %s", name);
    snprintf(out, 64, "cpu:%lld", (long long)c->opt.threads);
    return CLI_OK;
}

int open_device(cli *c, tw_context *cx, tw_device **out)
{
    tw_device *dev;
    char spec[64];

    CLI_TRY(device_spec(c, spec));
    if (tw_device_open(cx, spec, &dev))
        return cli_fail_last(c);
    if (c->opt.target && tw_device_force_target(dev, c->opt.target)) {
        int code = cli_fail_last(c);
        tw_device_close(dev);
        return code;
    }
    *out = dev;
    return CLI_OK;
}

/* The colon before a kernel's name, if what is not a file as it stands. */
static const char *split(const char *what)
{
    const char *colon = strrchr(what, ':'), *at = colon;

    if (!colon || colon == what || access(what, F_OK) == 0)
        return NULL;
    while (*++at)
        if (!isalnum((unsigned char)*at) && *at != '_')
            return NULL;
    return colon;
}

int open_kernel(cli *c, tw_context *cx, const char *what, tw_kernel **out)
{
    const char *colon = split(what);
    char *path = cli_format("%.*s", colon ? (int)(colon - what) : (int)strlen(what), what);
    tw_status st = tw_kernel_load(cx, path, colon ? colon + 1 : NULL, out);

    free(path);
    if (st)
        return cli_fail_last(c);
    fputs(tw_kernel_warnings(*out), stderr);
    return c->opt.checked && tw_kernel_set_checked(*out) ? cli_fail_last(c) : CLI_OK;
}
