#ifndef TW_CLI_H
#define TW_CLI_H
/* What the verbs of the command share. The command uses the public header only, as any program that
 * embeds the library would.
 *
 * A function that can fail returns an exit code: 0, CLI_USAGE for a command line that makes no
 * sense, or the exit code of a tw_status. Whoever returns one first has already reported it, so
 * callers pass it on (CLI_TRY). */
#include "cli/options.h"
#include "cli/term.h"
#include "tilewright.h"

enum { CLI_OK = 0, CLI_USAGE = 2 };

#define CLI_TRY(e)                                                                                 \
    do {                                                                                           \
        int code_ = (e);                                                                           \
        if (code_)                                                                                 \
            return code_;                                                                          \
    } while (0)

typedef struct cli {
    const struct verb *verb;
    options opt;
    term term;
    int argc; /* what follows the verb */
    char **argv;
} cli;

typedef struct verb {
    const char *name;
    unsigned bit;        /* VERB_..., which options it takes  */
    const char *words;   /* what it takes besides options     */
    const char *summary; /* one line                          */
    const char *about;   /* paragraphs of its help            */
    const char *examples;
    int (*run)(cli *c);
} verb;
extern const verb verbs[]; /* a NULL name ends it */
const verb *verb_find(const char *name);

int cmd_run(cli *c);
int cmd_tune(cli *c);
int cmd_bench(cli *c);
int cmd_compile(cli *c);
int cmd_explain(cli *c);
int cmd_cache(cli *c);
int cmd_device(cli *c);
int cmd_doctor(cli *c);
int cmd_new(cli *c);
int cmd_help(cli *c);
void help_verb(const cli *c, const verb *v);
void help_overview(const cli *c, FILE *out);

/* ---- reporting ------------------------------------------------------------------------------- */

/* Our own message for a failure, with the exit code of st. */
int cli_fail(cli *c, tw_status st, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The library's message: tw_last_error(). */
int cli_fail_last(cli *c);
/* A command line that makes no sense; says where help is. */
int cli_usage(cli *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_warn(cli *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For tw_config.log; user is the cli. Says the same thing once. */
void cli_log(void *user, tw_log_level level, const char *text);

/* Memory that is never NULL: when there is none, says so and ends the process. For what is small;
 * freed with free(). */
void *cli_alloc(size_t count, size_t size);
double cli_now(void);                   /* seconds of a steady clock */
const char *layer_name(tw_layer layer); /* "exact": for machines */
char *cli_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- ctrl-C ---------------------------------------------------------------------------------- */

/* From here the first ctrl-C only sets a flag, the second ends the process; until interrupt_end. */
void interrupt_begin(void);
bool interrupt_seen(void);
void interrupt_end(void);

#endif
