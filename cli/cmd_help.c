#include "cli/cli.h"
#include <string.h>

static void heading(const cli *c, FILE *out, const char *text)
{
    fprintf(out, "\n%s%s%s\n", term_on(&c->term, out, STYLE_BOLD), text, term_off(&c->term, out));
}

/* Each line of text after four spaces. */
static void print_lines(FILE *out, const char *text)
{
    while (*text) {
        int n = (int)strcspn(text, "\n");
        fprintf(out, "%*s%.*s\n", n ? 4 : 0, "", n, text);
        text += n + (text[n] == '\n');
    }
}

void help_verb(const cli *c, const verb *v)
{
    printf("%stilewright %s%s %s\n", term_on(&c->term, stdout, STYLE_BOLD), v->name,
           term_off(&c->term, stdout), v->words);
    print_lines(stdout, v->summary);
    if (*v->about) {
        putchar('\n');
        print_lines(stdout, v->about);
    }
    heading(c, stdout, "Options");
    options_print(c, v->bit, stdout);
    heading(c, stdout, "Examples");
    print_lines(stdout, v->examples);
}

void help_overview(const cli *c, FILE *out)
{
    table t;

    fprintf(out, "%sTilewright %s%s: compiles, tunes and runs tile kernels\n",
            term_on(&c->term, out, STYLE_BOLD), tw_version(), term_off(&c->term, out));
    heading(c, out, "Verbs");
    table_begin(&t, "ll");
    for (const verb *v = verbs; v->name; v++) {
        table_cell(&t, STYLE_CYAN, "%s", v->name);
        table_cell(&t, STYLE_PLAIN, "%s", v->summary);
    }
    table_print(&t, &c->term, out, 4);
    heading(c, out, "Start with");
    print_lines(out,
                "tilewright run kernels/vector_add.tw a=rand:f32[1000] b=rand:f32[1000] --check\n"
                "tilewright help run");
}

/* ---- topics -----------------------------------------------------------------------------------
 */

static void topic_values(const cli *c)
{
    static const char *const row[][2] = {
        {"FILE.npy", "an array; .npy format 1.0 to 3.0, little endian, C or Fortran order"},
        {"DTYPE:FILE.npy",
         "the same, and its elements must be of this type; any two-byte file as bf16 or f16"},
        {"rand:DTYPE[2,64]", "normal numbers; the same for the same --seed and name"},
        {"zeros:DTYPE[2,64]", "zeros"},
        {"full:VALUE:DTYPE[2,64]", "one value everywhere: 1.5, -3, inf, nan, true"},
    };
    table t;

    puts("What NAME=VALUE may say.");
    heading(c, stdout, "A tensor");
    table_begin(&t, "ll");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        table_cell(&t, STYLE_CYAN, "%s", row[i][0]);
        table_cell(&t, STYLE_PLAIN, "%s", row[i][1]);
    }
    table_print(&t, &c->term, stdout, 4);
    heading(c, stdout, "An output");
    print_lines(stdout,
                "FILE.npy, which is written; its shape follows from the other arguments.\n"
                "An inout tensor is given as an input; --save=NAME=FILE writes its result.");
    heading(c, stdout, "A number or a compile-time value");
    print_lines(stdout,
                "0.125, -3, 1e-3, inf, nan, true, false, or a dtype: f32, f64, i32, i64, i1.\n"
                "It is read as the type of its parameter.");
}

static void topic_environment(const cli *c)
{
    static const char *const row[][2] = {
        {"TILEWRIGHT_STORE", "the store's file (else $XDG_CACHE_HOME/tilewright/store.db, else\n"
                             "~/.cache/tilewright/store.db)"},
        {"NO_COLOR", "when set, no colours"},
    };

    (void)c;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        puts(row[i][0]);
        print_lines(stdout, row[i][1]);
    }
}

static void topic_exit_codes(const cli *c)
{
    static const tw_status status[] = {
#define STATUS(name, code, text) TW_##name,
        TW_STATUS_MAP(STATUS)
#undef STATUS
    };
    table t;

    table_begin(&t, "rll");
    for (size_t i = 0; i < sizeof status / sizeof *status; i++) {
        if (i == 1) {
            table_cell(&t, STYLE_CYAN, "%d", CLI_USAGE);
            table_cell(&t, STYLE_PLAIN, "%s", "");
            table_cell(&t, STYLE_PLAIN, "%s",
                       "the command line makes no sense; the message says why");
        }
        table_cell(&t, STYLE_CYAN, "%d", tw_status_exit_code(status[i]));
        table_cell(&t, STYLE_PLAIN, "%s", tw_status_name(status[i]));
        table_cell(&t, STYLE_PLAIN, "%s", tw_status_meaning(status[i]));
    }
    table_print(&t, &c->term, stdout, 0);
}

int cmd_help(cli *c)
{
    static const struct {
        const char *name;
        void (*print)(const cli *c);
    } topic[] = {{"values", topic_values},
                 {"environment", topic_environment},
                 {"exit-codes", topic_exit_codes}};
    const char *word = c->opt.word_count ? c->opt.word[0] : NULL;

    if (!word) {
        help_overview(c, stdout);
        return CLI_OK;
    }
    for (size_t i = 0; i < sizeof topic / sizeof *topic; i++)
        if (strcmp(topic[i].name, word) == 0) {
            topic[i].print(c);
            return CLI_OK;
        }
    const verb *v = verb_find(word);
    if (!v)
        return cli_usage(c,
                         "there is no help on '%s'; topics are the verbs, values, environment and "
                         "exit-codes",
                         word);
    help_verb(c, v);
    return CLI_OK;
}
