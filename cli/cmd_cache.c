#include "cli/cli.h"
#include "cli/open.h"
#include "cli/tuning.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct listing {
    cli *c;
    table rows;
    json j;
    int count;
} listing;

/* Only once the store has answered: until then the output may become an error instead. */
static void begin_json(listing *l)
{
    if (l->j.depth == 0)
        json_array(&l->j, NULL);
}

static void date_text(int64_t unix_time, char out[32])
{
    time_t t = (time_t)unix_time;
    struct tm when;

    if (!localtime_r(&t, &when) || !strftime(out, 32, "%Y-%m-%d %H:%M", &when))
        out[0] = '\0';
}

/* ---- list ------------------------------------------------------------------------------------ */

static void list_heading(table *t)
{
    static const char *const word[] = {"id",   "kernel", "problem", "target", "configuration",
                                       "time", "trials", "code",    "when"};

    table_begin(t, "rllllrrrl");
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        table_cell(t, STYLE_DIM, "%s", word[i]);
}

static bool list_row(void *user, const tw_store_row *row)
{
    listing *l = user;
    table *t = &l->rows;
    char when[32];

    date_text(row->unix_time, when);
    l->count++;
    table_cell(t, STYLE_CYAN, "%lld", (long long)row->id);
    table_cell(t, STYLE_BOLD, "%s", row->kernel);
    table_cell(t, STYLE_PLAIN, "%s", row->problem);
    table_cell(t, STYLE_PLAIN, "%s", row->target);
    table_cell(t, STYLE_PLAIN, "%s", row->config);
    table_cell(t, STYLE_PLAIN, "%s", row->seconds > 0.0 ? text_seconds(row->seconds).s : "-");
    table_cell(t, STYLE_PLAIN, "%d", row->trials);
    table_cell(t, STYLE_PLAIN, "%s", text_bytes((double)row->bytes).s);
    table_cell(t, STYLE_DIM, "%s", when);
    return true;
}

static bool list_json(void *user, const tw_store_row *row)
{
    listing *l = user;
    json *j = &l->j;

    begin_json(l);
    json_object(j, NULL);
    json_int(j, "id", row->id);
    json_text(j, "kernel", row->kernel);
    json_text(j, "problem", row->problem);
    json_text(j, "target", row->target);
    json_text(j, "device", row->device);
    json_text(j, "config", row->config);
    json_number(j, "seconds", row->seconds);
    json_int(j, "trials", row->trials);
    json_int(j, "artifacts", row->artifacts);
    json_int(j, "bytes", row->bytes);
    json_int(j, "unix_time", row->unix_time);
    json_end_object(j);
    return true;
}

static int cache_list(cli *c, tw_context *cx, const char *word)
{
    listing l = {.c = c, .j = {.out = stdout}};

    (void)word;
    if (c->opt.json) {
        if (tw_store_list(cx, list_json, &l))
            return cli_fail_last(c);
        begin_json(&l);
        json_end_array(&l.j);
        return CLI_OK;
    }
    list_heading(&l.rows);
    tw_status st = tw_store_list(cx, list_row, &l);
    int code = st ? cli_fail_last(c) : CLI_OK;
    if (!st && l.count)
        table_print(&l.rows, &c->term, stdout, 0);
    else
        table_free(&l.rows);
    if (!st && !l.count)
        puts("nothing is stored");
    return code;
}

/* ---- show ------------------------------------------------------------------------------------ */

static bool show_trial(void *user, const tw_trial *trial)
{
    listing *l = user;
    bool measured = trial->median_s > 0.0;

    l->count++;
    if (l->c->opt.json) {
        begin_json(l);
        json_trial(&l->j, NULL, trial);
        return true;
    }
    table_cell(&l->rows, STYLE_PLAIN, "%s", trial->config);
    table_cell(&l->rows, trial->state == TW_TRIAL_OK ? STYLE_GREEN : STYLE_DIM, "%s",
               trial_word(trial->state));
    table_cell(&l->rows, STYLE_PLAIN, "%s", measured ? text_seconds(trial->median_s).s : "-");
    table_cell(&l->rows, STYLE_PLAIN, "%d", trial->samples);
    table_cell(&l->rows, STYLE_DIM, "%s", trial->reason);
    return true;
}

typedef struct wanted {
    int64_t id;
    bool found;
} wanted;

static bool is_wanted(void *user, const tw_store_row *row)
{
    wanted *w = user;

    w->found |= row->id == w->id;
    return !w->found;
}

/* Of a row that has none: it may have lost them. */
static int show_no_trials(cli *c, tw_context *cx, int64_t id)
{
    wanted w = {id, false};

    if (tw_store_list(cx, is_wanted, &w))
        return cli_fail_last(c);
    if (!w.found)
        return cli_fail(c, TW_E_ARG, "nothing is stored under id %lld", (long long)id);
    puts(c->opt.json ? "[]" : "its trials were pruned or left out; the configuration is kept");
    return CLI_OK;
}

static int cache_show(cli *c, tw_context *cx, const char *word)
{
    listing l = {.c = c, .j = {.out = stdout}};
    char *end = NULL;
    long long id = word ? strtoll(word, &end, 10) : 0;

    if (!word || end == word || *end)
        return cli_usage(c, "show needs an id, as list prints it");
    table_begin(&l.rows, "llrrl");
    tw_status st = tw_store_trials(cx, id, show_trial, &l);
    if (st || l.count == 0) {
        table_free(&l.rows);
        return st ? cli_fail_last(c) : show_no_trials(c, cx, id);
    }
    if (c->opt.json)
        json_end_array(&l.j);
    table_print(&l.rows, &c->term, stdout, 0);
    return CLI_OK;
}

/* ---- clear, path ----------------------------------------------------------------------------- */

static int cache_clear(cli *c, tw_context *cx, const char *word)
{
    int64_t removed = 0;

    if (tw_store_clear(cx, word, &removed))
        return cli_fail_last(c);
    if (c->opt.json) {
        json j = {.out = stdout};
        json_object(&j, NULL);
        json_int(&j, "removed", removed);
        json_end_object(&j);
    } else {
        printf("%lld configuration%s forgotten\n", (long long)removed, removed == 1 ? "" : "s");
    }
    return CLI_OK;
}

/* ---- export, import, prune ------------------------------------------------------------------- */

static void print_count(int64_t n, const char *what, bool *any)
{
    if (n)
        printf("%s%lld %s%s", *any ? ", " : "", (long long)n, what, n == 1 ? "" : "s");
    *any = *any || n;
}

static int show_counts(const cli *c, const tw_store_counts *n, const char *done)
{
    bool any = false;

    if (c->opt.json) {
        json j = {.out = stdout};
        json_object(&j, NULL);
        json_int(&j, "configs", n->configs);
        json_int(&j, "trials", n->trials);
        json_int(&j, "artifacts", n->artifacts);
        json_int(&j, "known", n->known);
        json_int(&j, "refused", n->refused);
        json_end_object(&j);
        return CLI_OK;
    }
    print_count(n->configs, "configuration", &any);
    print_count(n->trials, "trial", &any);
    print_count(n->artifacts, "artifact", &any);
    printf("%s%s\n", any ? " " : "nothing ", done);
    if (n->known)
        printf("%lld rows were known already, or known to be faster\n", (long long)n->known);
    return CLI_OK;
}

static int cache_export(cli *c, tw_context *cx, const char *word)
{
    tw_store_counts n = TW_STORE_COUNTS_INIT;

    if (!word)
        return cli_usage(c, "export needs the name of a new file");
    return tw_store_export(cx, word, c->opt.artifacts, &n) ? cli_fail_last(c)
                                                           : show_counts(c, &n, "written");
}

static int cache_import(cli *c, tw_context *cx, const char *word)
{
    tw_store_counts n = TW_STORE_COUNTS_INIT;

    if (!word)
        return cli_usage(c, "import needs the name of a file that export wrote");
    if (tw_store_import(cx, word, c->opt.artifacts, &n))
        return cli_fail_last(c);
    if (n.refused)
        cli_warn(c, "%s: %lld row%s not what an export writes; left out", word,
                 (long long)n.refused, n.refused == 1 ? " is" : "s are");
    return show_counts(c, &n, "taken over");
}

static int cache_prune(cli *c, tw_context *cx, const char *word)
{
    tw_prune_options how = TW_PRUNE_OPTIONS_INIT;
    tw_store_counts n = TW_STORE_COUNTS_INIT;

    (void)word;
    if (c->opt.older > 0.0)
        how.older_s = c->opt.older;
    how.max_bytes = c->opt.max_size;
    return tw_store_prune(cx, &how, &n) ? cli_fail_last(c) : show_counts(c, &n, "forgotten");
}

static const struct {
    const char *name;
    int (*run)(cli *c, tw_context *cx, const char *word);
    size_t words; /* at most, after the name */
} actions[] = {{"list", cache_list, 0},     {"show", cache_show, 1},
               {"clear", cache_clear, 1},   {"export", cache_export, 1},
               {"import", cache_import, 1}, {"prune", cache_prune, 0}};

int cmd_cache(cli *c)
{
    const options *opt = &c->opt;
    const char *name = opt->word_count ? opt->word[0] : "list";
    const char *word = opt->word_count > 1 ? opt->word[1] : NULL;
    tw_context *cx;

    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        if (strcmp(name, actions[i].name) != 0)
            continue;
        if (opt->word_count > 1 + actions[i].words)
            return cli_usage(c, "'%s' is one word too many", opt->word[1 + actions[i].words]);
        CLI_TRY(open_context(c, TW_LOG_WARNING, &cx));
        int code = actions[i].run(c, cx, word);
        tw_context_destroy(cx);
        return code;
    }
    return cli_usage(c, "'%s' is none of list, show, clear, export, import, prune", name);
}
