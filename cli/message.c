#include "cli/cli.h"
#include "cli/json.h"
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- failures -------------------------------------------------------------------------------- */

static void print_json_error(const char *status, const char *text, const tw_error *e)
{
    json j = {.out = stdout};

    json_object(&j, NULL);
    json_object(&j, "error");
    json_text(&j, "status", status);
    json_text(&j, "text", text);
    json_array(&j, "diagnostics");
    for (size_t i = 0; e && i < e->diagnostic_count; i++) {
        const tw_diagnostic *d = &e->diagnostics[i];
        json_object(&j, NULL);
        json_text(&j, "id", d->id);
        json_text(&j, "severity", d->is_warning ? "warning" : "error");
        json_text(&j, "file", d->file);
        json_int(&j, "line", d->line);
        json_int(&j, "column", d->column);
        json_text(&j, "text", d->text);
        json_text(&j, "hint", d->hint);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_end_object(&j);
    json_end_object(&j);
}

static void print_label(const cli *c, const char *label, style s)
{
    fprintf(stderr, "tilewright: %s%s:%s ", term_on(&c->term, stderr, s), label,
            term_off(&c->term, stderr));
}

int cli_fail(cli *c, tw_status st, const char *format, ...)
{
    va_list list;
    char *text;

    va_start(list, format);
    if (vasprintf(&text, format, list) < 0)
        text = NULL;
    va_end(list);
    print_label(c, "error", STYLE_RED);
    fprintf(stderr, "%s\n", text ? text : format);
    if (c->opt.json)
        print_json_error(tw_status_name(st), text ? text : format, NULL);
    free(text);
    return tw_status_exit_code(st);
}

/* Colours the words that begin a message, as a compiler does. */
static void print_rendered(const cli *c, const char *text)
{
    static const struct {
        const char *word;
        style style;
    } painted[] = {{"error:", STYLE_RED},
                   {"warning:", STYLE_YELLOW},
                   {"note:", STYLE_CYAN},
                   {"hint:", STYLE_CYAN}};
    const char *line = text;

    while (*line) {
        size_t length = strcspn(line, "\n");
        const char *word = NULL;
        style s = STYLE_PLAIN;
        for (size_t i = 0; i < sizeof painted / sizeof *painted && !word; i++) {
            word = memmem(line, length, painted[i].word, strlen(painted[i].word));
            s = painted[i].style;
        }
        size_t before = word ? (size_t)(word - line) : length;
        size_t marked = word ? strcspn(word, ":") + 1 : 0;
        fprintf(stderr, "%.*s%s%.*s%s%.*s\n", (int)before, line, term_on(&c->term, stderr, s),
                (int)marked, line + before, marked ? term_off(&c->term, stderr) : "",
                (int)(length - before - marked), line + before + marked);
        line += length + (line[length] == '\n');
    }
}

int cli_fail_last(cli *c)
{
    const tw_error *e = tw_last_error();

    if (e->diagnostic_count == 0)
        print_label(c, "error", STYLE_RED);
    print_rendered(c, *e->text ? e->text : tw_status_meaning(e->status));
    if (c->opt.json)
        print_json_error(tw_status_name(e->status), e->text, e);
    return tw_status_exit_code(e->status);
}

int cli_usage(cli *c, const char *format, ...)
{
    va_list list;
    char *text;

    va_start(list, format);
    if (vasprintf(&text, format, list) < 0)
        text = NULL;
    va_end(list);
    print_label(c, "error", STYLE_RED);
    fprintf(stderr, "%s\nTry: tilewright help%s%s\n", text ? text : format, c->verb ? " " : "",
            c->verb ? c->verb->name : "");
    if (c->opt.json)
        print_json_error("USAGE", text ? text : format, NULL);
    free(text);
    return CLI_USAGE;
}

void cli_warn(cli *c, const char *format, ...)
{
    va_list list;

    print_label(c, "warning", STYLE_YELLOW);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
}

/* ---- the log --------------------------------------------------------------------------------- */

static bool said_before(const char *text)
{
    static char *said[16];
    enum { ROOM = sizeof said / sizeof *said };
    size_t i = 0;

    for (; i < ROOM && said[i]; i++)
        if (strcmp(said[i], text) == 0)
            return true;
    if (i < ROOM)
        said[i] = strdup(text);
    return false;
}

void cli_log(void *user, tw_log_level level, const char *text)
{
    cli *c = user;

    if (level == TW_LOG_PRINT) {
        term_bar_clear(&c->term);
        fprintf(c->opt.json ? stderr : stdout, "%s\n", text);
        return;
    }
    if (level > TW_LOG_WARNING) {
        size_t n = strlen(text);
        fprintf(stderr, "%s%s", text, n && text[n - 1] == '\n' ? "" : "\n");
        return;
    }
    if (said_before(text))
        return;
    term_bar_clear(&c->term);
    if (level == TW_LOG_WARNING) {
        cli_warn(c, "%s", text);
    } else {
        print_label(c, "error", STYLE_RED);
        fprintf(stderr, "%s\n", text);
    }
}

/* ---- memory and time ------------------------------------------------------------------------- */

static _Noreturn void no_memory(void)
{
    fputs("tilewright: error: out of memory\n", stderr);
    exit(tw_status_exit_code(TW_E_NOMEM));
}

void *cli_alloc(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);

    if (!memory)
        no_memory();
    return memory;
}

char *cli_format(const char *format, ...)
{
    va_list list;
    char *text;

    va_start(list, format);
    int n = vasprintf(&text, format, list);
    va_end(list);
    if (n < 0)
        no_memory();
    return text;
}

double cli_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *layer_name(tw_layer layer)
{
    switch (layer) {
    case TW_LAYER_PINNED:
        return "pinned";
    case TW_LAYER_TUNED:
        return "tuned";
    case TW_LAYER_EXACT:
        return "exact";
    case TW_LAYER_OTHER_DRIVER:
        return "other-driver";
    case TW_LAYER_SEED:
        return "seed";
    case TW_LAYER_NEAREST_PROBLEM:
        return "nearest-problem";
    case TW_LAYER_NEAREST_DEVICE:
        return "nearest-device";
    case TW_LAYER_DEFAULT:
        return "default";
    }
    return "unknown";
}

/* ---- ctrl-C ---------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    static const char text[] = "\ntilewright: stopping after this launch; again to end at once\n";
    int kept = errno;

    (void)number;
    interrupted = 1;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    errno = kept;
}

static const int ends[] = {SIGINT, SIGTERM};
static struct sigaction before[2];

/* A signal that whoever started us chose to ignore stays ignored. */
void interrupt_begin(void)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};

    interrupted = 0;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < 2; i++) {
        sigaction(ends[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(ends[i], &action, NULL);
    }
}

bool interrupt_seen(void)
{
    return interrupted != 0;
}

void interrupt_end(void)
{
    for (int i = 0; i < 2; i++)
        sigaction(ends[i], &before[i], NULL);
}
