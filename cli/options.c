#include "cli/options.h"
#include "cli/cli.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum option_kind {
    KIND_TEXT,
    KIND_FLAG,
    KIND_SECONDS, /* 5, 5s, 500ms, 2m */
    KIND_AGE,     /* 90d, 12h */
    KIND_SIZE,    /* 200M, 1G */
    KIND_NUMBER,
    KIND_INT,
    KIND_RANGE, /* FIRST:COUNT, to the two fields from offset on */
    KIND_LIST   /* may come several times */
} option_kind;

typedef struct option_row {
    const char *name;
    char letter;
    option_kind kind;
    size_t offset;
    const char *value; /* as the help names it */
    unsigned verbs;
    const char *help;
    const char *choices; /* "a|b": the values there are */
} option_row;

#define AT(field) offsetof(options, field)
#define LAUNCH (VERB_RUN | VERB_TUNE | VERB_BENCH)
#define ALL                                                                                        \
    (LAUNCH | VERB_COMPILE | VERB_EXPLAIN | VERB_CACHE | VERB_DEVICE | VERB_HELP | VERB_DOCTOR |   \
     VERB_NEW)

static const option_row rows[] = {
    {"device", 0, KIND_TEXT, AT(device), "NAME", LAUNCH,
     "where to run: auto, cuda, cuda:N, cpu, cpu:THREADS, interp, null (auto)", NULL},
    {"target", 0, KIND_TEXT, AT(target), "PATH", LAUNCH | VERB_COMPILE | VERB_EXPLAIN,
     "force a code path: cpu-amx, cpu-avx512-bf16, cpu-avx512, ...", NULL},
    {"threads", 0, KIND_INT, AT(threads), "N", LAUNCH, "worker threads (all processors)", NULL},
    {"config", 0, KIND_TEXT, AT(config), "NAME=N,...", LAUNCH,
     "pin tune and schedule parameters; the rest takes its default", NULL},
    {"tune", 0, KIND_TEXT, AT(tune), "MODE", VERB_RUN | VERB_BENCH,
     "on a miss in the store: on-miss tunes, never does not (on-miss)", "never|on-miss"},
    {"budget", 0, KIND_SECONDS, AT(budget), "TIME", LAUNCH,
     "time for tuning, as 5s, 500ms, 2m (tune: 60s, others: 10s)", NULL},
    {"store", 0, KIND_TEXT, AT(store), "FILE", LAUNCH | VERB_CACHE | VERB_DOCTOR,
     "the store to use, or none (see help environment)", NULL},
    {"seed", 0, KIND_INT, AT(seed), "N", LAUNCH, "seed of rand: values (0)", NULL},
    {"check", 0, KIND_FLAG, AT(check), NULL, VERB_RUN,
     "compare with the interpreter in double precision", NULL},
    {"checked", 0, KIND_FLAG, AT(checked), NULL, LAUNCH | VERB_COMPILE,
     "assert before each access and integer division what it needs (an index inside, no 0)", NULL},
    {"tolerance", 0, KIND_NUMBER, AT(tolerance), "X", VERB_RUN,
     "relative error that --check accepts (by dtype; f32: 3e-5)", NULL},
    {"programs", 0, KIND_RANGE, AT(program_first), "FIRST:COUNT", VERB_RUN,
     "run only these programs of the grid", NULL},
    {"f64", 0, KIND_FLAG, AT(f64), NULL, VERB_RUN,
     "interp only: keep floats in double, round at stores", NULL},
    {"save", 0, KIND_LIST, AT(save), "NAME=FILE", VERB_RUN,
     "write an out or inout tensor to a .npy file", NULL},
    {"again", 0, KIND_FLAG, AT(again), NULL, VERB_TUNE, "tune even if the store has an answer",
     NULL},
    {"flops", 0, KIND_TEXT, AT(flops), "EXPR", VERB_TUNE | VERB_BENCH,
     "operations of a launch, over its dimensions: '4*B*H*M*N*D'", NULL},
    {"repeat", 0, KIND_INT, AT(repeat), "N", VERB_BENCH,
     "launches to time (as many as fit in a second)", NULL},
    {"set", 0, KIND_TEXT, AT(set), "NAME=V,...", VERB_COMPILE | VERB_EXPLAIN,
     "values in brackets, tune and schedule parameters, generic=true", NULL},
    {"emit", 0, KIND_TEXT, AT(emit), "STAGE", VERB_COMPILE,
     "ast, tir, ll; CPU: asm, obj; GPU: sched, ptx, cubin (ll)", NULL},
    {"output", 'o', KIND_TEXT, AT(output), "FILE", VERB_COMPILE, "where to (standard output)",
     NULL},
    {"profile", 0, KIND_TEXT, AT(profile), "NAME", VERB_COMPILE | VERB_EXPLAIN,
     "GPUs: make code for this one: rtx4080, h100, ... or a file (what its capability has)",
     NULL},
    {"dump", 0, KIND_TEXT, AT(dump), "PASS", VERB_COMPILE,
     "show the IR after a pass, or after each that changed it: changed", NULL},
    {"time", 0, KIND_FLAG, AT(time), NULL, VERB_COMPILE, "show how long each pass took", NULL},
    {"artifacts", 0, KIND_FLAG, AT(artifacts), NULL, VERB_CACHE,
     "export, import: compiled code too; it runs as it is, so only from whom you trust", NULL},
    {"older", 0, KIND_AGE, AT(older), "AGE", VERB_CACHE,
     "prune: forget all that was stored longer ago, as 90d, 12h", NULL},
    {"max-size", 0, KIND_SIZE, AT(max_size), "SIZE", VERB_CACHE,
     "prune: until the file is this small, as 200M, 1G: the oldest code, then trials", NULL},
    {"json", 0, KIND_FLAG, AT(json), NULL,
     LAUNCH | VERB_CACHE | VERB_DEVICE | VERB_DOCTOR | VERB_EXPLAIN, "print the result as JSON",
     NULL},
    {"help", 'h', KIND_FLAG, AT(help), NULL, ALL, "show this help", NULL},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- the nearest word ------------------------------------------------------------------------ */

enum { LONGEST_WORD = 32 };

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Edit distance with swaps of neighbours, by rows of the table. */
static int distance(const char *a, const char *b)
{
    int row[3][LONGEST_WORD + 1], n = (int)strlen(b);
    int *two = row[0], *one = row[1], *now = row[2];

    if (n > LONGEST_WORD)
        return LONGEST_WORD;
    for (int j = 0; j <= n; j++)
        one[j] = two[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        now[0] = i;
        for (int j = 1; j <= n; j++) {
            int same = a[i - 1] == b[j - 1] ? 0 : 1;
            now[j] = smaller(one[j - 1] + same, smaller(one[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = smaller(now[j], two[j - 2] + 1);
        }
        int *old = two;
        two = one;
        one = now;
        now = old;
    }
    return one[n];
}

/* What begins as the word does is nearer than what is as far without. */
const char *nearest_word(const char *name, const char *const *list, size_t count)
{
    const size_t length = strlen(name);
    int best = 2 * (1 + (int)length / 3);
    const char *found = NULL;

    for (size_t i = 0; i < count; i++) {
        bool begins = length > 0 && strncmp(name, list[i], length) == 0;
        int edits = begins && length > 2 ? 1 : distance(name, list[i]), d = 2 * edits - begins;
        if (d <= best && edits < (int)strlen(list[i])) {
            best = d - 1;
            found = list[i];
        }
    }
    return found;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool read_number(const char *text, double *out, const char **end)
{
    char *stop;

    *out = strtod(text, &stop);
    *end = stop;
    return stop != text && isfinite(*out) && *out >= 0.0;
}

static bool read_int(const char *text, char stop_at, int64_t *out, const char **end)
{
    char *stop;

    errno = 0;
    *out = strtoll(text, &stop, 10);
    *end = stop + (*stop && *stop == stop_at);
    return stop != text && errno == 0 && *out >= 0 && *stop == stop_at;
}

typedef struct unit {
    const char *name;
    double size;
} unit;
static const unit seconds[] = {{"", 1.0},   {"s", 1.0},    {"ms", 1e-3},
                               {"m", 60.0}, {"min", 60.0}, {0}};
static const unit ages[] = {{"d", 86400.0}, {"h", 3600.0}, {0}};
static const unit sizes[] = {{"", 1.0},      {"k", 1024.0},    {"K", 1024.0},
                             {"M", 1048576.0}, {"G", 1073741824.0}, {0}};

static bool read_measured(const char *text, const unit *units, double *out)
{
    const char *end;

    if (!read_number(text, out, &end))
        return false;
    for (const unit *u = units; u->name; u++)
        if (strcmp(end, u->name) == 0) {
            *out *= u->size;
            return *out > 0.0;
        }
    return false;
}

static bool read_size(const char *text, int64_t *out)
{
    double bytes;

    if (!read_measured(text, sizes, &bytes) || bytes < 1.0 || bytes > 1e15)
        return false;
    *out = (int64_t)bytes;
    return true;
}

static bool read_range(const char *text, int64_t out[2])
{
    return read_int(text, ':', &out[0], &text) && read_int(text, '\0', &out[1], &text) &&
           out[1] > 0;
}

static bool is_choice(const char *choices, const char *text)
{
    size_t n = strlen(text);

    for (const char *at = choices; at; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, text, n) == 0 && (at[n] == '|' || at[n] == '\0'))
            return true;
    }
    return false;
}

static void add_word(const char ***list, size_t *count, const char *word)
{
    const char **grown = cli_alloc(*count + 1, sizeof *grown);

    if (*count)
        memcpy(grown, *list, *count * sizeof *grown);
    free(*list);
    grown[(*count)++] = word;
    *list = grown;
}

static bool set_value(options *opt, const option_row *row, const char *value)
{
    void *field = (char *)opt + row->offset;
    const char *end;

    switch (row->kind) {
    case KIND_TEXT:
        *(const char **)field = value;
        return !row->choices || is_choice(row->choices, value);
    case KIND_FLAG:
        *(bool *)field = true;
        return true;
    case KIND_SECONDS:
        return read_measured(value, seconds, field);
    case KIND_AGE:
        return read_measured(value, ages, field);
    case KIND_SIZE:
        return read_size(value, field);
    case KIND_NUMBER:
        return read_number(value, field, &end) && *end == '\0';
    case KIND_INT:
        return read_int(value, '\0', field, &end);
    case KIND_RANGE:
        return read_range(value, field);
    case KIND_LIST:
        add_word(&opt->save, &opt->save_count, value);
        return true;
    }
    return false;
}

/* ---- the command line ------------------------------------------------------------------------ */

static const option_row *row_named(const char *name, size_t length)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0)
            return &rows[i];
    return NULL;
}

static const option_row *row_lettered(const char *arg)
{
    for (size_t i = 0; arg[1] && i < ROWS; i++)
        if (rows[i].letter == arg[1])
            return &rows[i];
    return NULL;
}

static int unknown(cli *c, const char *arg, size_t length)
{
    const char *list[ROWS], *near;
    size_t n = 0;

    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].verbs & c->verb->bit)
            list[n++] = rows[i].name;
    char *name = cli_format("%.*s", (int)length, arg);
    near = nearest_word(name + strspn(name, "-"), list, n);
    int code = near ? cli_usage(c, "unknown option '%s'; did you mean --%s?", name, near)
                    : cli_usage(c, "unknown option '%s'", name);
    free(name);
    return code;
}

static int bad_value(cli *c, const option_row *row, const char *value)
{
    if (row->choices)
        return cli_usage(c, "--%s cannot be '%s'; it is one of %s", row->name, value, row->choices);
    return cli_usage(c, "--%s=%s: '%s' was expected (%s)", row->name, value, row->value, row->help);
}

/* One option; *i is moved to its value if that is an argument of its own. */
static int parse_option(cli *c, int *i)
{
    const char *arg = c->argv[*i], *equals = strchr(arg, '=');
    bool is_long = arg[1] == '-';
    size_t length = is_long && equals ? (size_t)(equals - arg) : strlen(arg);
    const option_row *row = is_long ? row_named(arg + 2, length - 2) : row_lettered(arg);
    const char *value = is_long ? (equals ? equals + 1 : NULL) : (arg[2] ? arg + 2 : NULL);

    if (!row)
        return unknown(c, arg, length);
    if (!(row->verbs & c->verb->bit))
        return cli_usage(c, "'%s' takes no --%s", c->verb->name, row->name);
    if (row->kind == KIND_FLAG) {
        if (value)
            return cli_usage(c, "--%s takes no value", row->name);
    } else if (!value) {
        if (*i + 1 == c->argc)
            return cli_usage(c, "--%s needs a value: %s", row->name, row->value);
        value = c->argv[++*i];
    }
    return set_value(&c->opt, row, value) ? CLI_OK : bad_value(c, row, value);
}

/* Before all else: whether what is wrong with the options is an object, too. */
static bool wants_json(const cli *c)
{
    for (int i = 0; i < c->argc && strcmp(c->argv[i], "--") != 0; i++)
        if (strcmp(c->argv[i], "--json") == 0)
            return (row_named("json", 4)->verbs & c->verb->bit) != 0;
    return false;
}

int options_parse(cli *c)
{
    bool ended = false;

    c->opt = (options){.budget = -1.0, .tolerance = -1.0, .older = -1.0, .json = wants_json(c)};
    for (int i = 0; i < c->argc; i++) {
        const char *arg = c->argv[i];
        if (!ended && strcmp(arg, "--") == 0)
            ended = true;
        else if (!ended && arg[0] == '-' && arg[1])
            CLI_TRY(parse_option(c, &i));
        else
            add_word(&c->opt.word, &c->opt.word_count, arg);
    }
    return CLI_OK;
}

void options_free(options *opt)
{
    free(opt->word);
    free(opt->save);
}

bool option_describe(size_t i, option_text *out)
{
    if (i >= ROWS)
        return false;
    *out = (option_text){rows[i].name,    rows[i].letter, rows[i].value,
                         rows[i].choices, rows[i].help,   rows[i].verbs};
    return true;
}

void options_print(const cli *c, unsigned mask, FILE *out)
{
    table t;

    table_begin(&t, "ll");
    for (size_t i = 0; i < ROWS; i++) {
        if (!(rows[i].verbs & mask))
            continue;
        char letter[8] = "";
        if (rows[i].letter)
            snprintf(letter, sizeof letter, "-%c, ", rows[i].letter);
        table_cell(&t, STYLE_CYAN, "%s--%s%s%s", letter, rows[i].name, rows[i].value ? "=" : "",
                   rows[i].value ? rows[i].value : "");
        table_cell(&t, STYLE_PLAIN, "%s", rows[i].help);
    }
    table_print(&t, &c->term, out, 4);
}
