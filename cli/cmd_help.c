#include "cli/cli.h"
#include "cli/open.h"
#include "cli/pages.h"
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
    heading(c, out, "Topics");
    print_lines(out, "values, environment, exit-codes, FILE.tw: tilewright help values");
    heading(c, out, "Start with");
    print_lines(out,
                "tilewright run kernels/vector_add.tw a=rand:f32[1000] b=rand:f32[1000] --check\n"
                "tilewright help run");
}

/* ---- topics ---------------------------------------------------------------------------------- */

const help_row help_tensors[] = {
    {"FILE.npy", "an array; .npy format 1.0 to 3.0, little endian, C or Fortran order"},
    {"DTYPE:FILE.npy",
     "the same, and its elements must be of this type; any two-byte file as bf16 or f16"},
    {"rand:DTYPE[2,64]", "normal numbers; the same for the same --seed and name"},
    {"zeros:DTYPE[2,64]", "zeros"},
    {"full:VALUE:DTYPE[2,64]", "one value everywhere: 1.5, -3, inf, nan, true"},
    {0},
};

const help_row help_outputs[] = {
    {"FILE.npy", "is written; its shape follows from the other arguments"},
    {"zeros:DTYPE[2,64]", "where it does not; --save=NAME=FILE.npy writes it"},
    {"inout", "a tensor of this kind is given as an input; --save=NAME=FILE.npy writes its result"},
    {0},
};

const help_row help_others[] = {
    {"a number", "0.125, -3, 1e-3, inf, nan, read as the type of its parameter"},
    {"a bool", "true or false"},
    {"a dtype", "f16, bf16, f32, f64, i1, i8, i16, i32, i64, u8, u16, u32, u64"},
    {"an enumeration", "one of its members"},
    {"a function", "one of the file by name, or an expression over its arguments, as\n"
                   "'visible=col <= row', or a body, '{ ... return e; }'"},
    {0},
};

const help_row help_environment[] = {
    {"TILEWRIGHT_STORE", "the store's file, or none (else $XDG_CACHE_HOME/tilewright/store.db,\n"
                         "else ~/.cache/tilewright/store.db)"},
    {"TILEWRIGHT_TUNE", "never or on-miss: --tune where that is not given"},
    {"TILEWRIGHT_BUDGET", "a number of seconds: --budget where that is not given"},
    {"TILEWRIGHT_CHECKED",
     "1: checked launches: on a GPU every pointer is checked, and each launch\n"
     "waits for its end, so that it reports its own fault (--checked is about\n"
     "kernels, on any device)"},
    {"TILEWRIGHT_SEEDS",
     "a file of configurations for what was never tuned here, instead of those that\n"
     "are built in"},
    {"NO_COLOR", "when set, no colours"},
    {0},
};

static void values_section(const cli *c, const char *title, const help_row *row)
{
    table t;

    heading(c, stdout, title);
    table_begin(&t, "ll");
    for (; row->name; row++) {
        const char *line = row->text;
        for (const char *name = row->name; *line; name = "") {
            int n = (int)strcspn(line, "\n");
            table_cell(&t, STYLE_CYAN, "%s", name);
            table_cell(&t, STYLE_PLAIN, "%.*s", n, line);
            line += n + (line[n] == '\n');
        }
    }
    table_print(&t, &c->term, stdout, 4);
}

static void topic_values(const cli *c)
{
    puts("What NAME=VALUE may say.");
    values_section(c, "A tensor", help_tensors);
    values_section(c, "An output", help_outputs);
    values_section(c, "Other values", help_others);
}

static void topic_environment(const cli *c)
{
    (void)c;
    for (const help_row *row = help_environment; row->name; row++) {
        puts(row->name);
        print_lines(stdout, row->text);
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

static void topic_man(const cli *c)
{
    (void)c;
    write_man_page(stdout);
}

static void topic_bash(const cli *c)
{
    (void)c;
    write_bash_completion(stdout);
}

static void topic_zsh(const cli *c)
{
    (void)c;
    write_zsh_completion(stdout);
}

static void topic_fish(const cli *c)
{
    (void)c;
    write_fish_completion(stdout);
}

/* ---- a kernel -------------------------------------------------------------------------------- */

static void parameter_type(const tw_param_info *p, char *out, size_t size)
{
    static const char *const direction[] = {"", "out ", "inout "};
    bool is_tensor = p->kind == TW_PARAM_TENSOR;
    int n = snprintf(out, size, "%s%s", is_tensor ? direction[p->direction] : "", p->type);

    for (int i = 0; is_tensor && i < p->rank && n >= 0 && (size_t)n < size; i++)
        n += snprintf(out + n, size - (size_t)n, "%s%s%s", i ? ", " : "[", p->dims[i],
                      i + 1 == p->rank ? "]" : "");
}

/* Where a value comes from that nobody gives. */
static void default_cell(table *t, const tw_param_info *p)
{
    if (p->has_default && p->value)
        table_cell(t, STYLE_DIM, "= %s", p->value);
    else if (p->has_default)
        table_cell(t, STYLE_DIM, "has a default");
    else if (p->kind == TW_PARAM_CONST && strcmp(p->type, "bool") != 0)
        table_cell(t, STYLE_DIM, "follows from the tensors, or is given");
    else
        table_cell(t, STYLE_DIM, "%s", "");
}

static void parameter_rows(const cli *c, const tw_kernel *k)
{
    table t;

    table_begin(&t, "lll");
    for (size_t i = 0; i < tw_kernel_param_count(k); i++) {
        tw_param_info p = TW_PARAM_INFO_INIT;
        char type[256];
        if (tw_kernel_param(k, i, &p) || p.kind == TW_PARAM_TUNE)
            continue;
        parameter_type(&p, type, sizeof type);
        table_cell(&t, STYLE_CYAN, "%s", p.name);
        table_cell(&t, STYLE_PLAIN, "%s", type);
        default_cell(&t, &p);
    }
    table_print(&t, &c->term, stdout, 4);
}

/* A set of candidates a row; the name beside the first. */
static void tune_rows(const cli *c, const tw_kernel *k)
{
    table t;

    table_begin(&t, "ll");
    for (size_t i = 0; i < tw_kernel_param_count(k); i++) {
        tw_param_info p = TW_PARAM_INFO_INIT;
        if (tw_kernel_param(k, i, &p) || p.kind != TW_PARAM_TUNE)
            continue;
        for (const char *set = p.value, *end; set; set = end) {
            end = strstr(set, "; ");
            table_cell(&t, STYLE_CYAN, "%s", set == p.value ? p.name : "");
            table_cell(&t, STYLE_PLAIN, "%.*s", end ? (int)(end - set) : (int)strlen(set), set);
            end = end ? end + strlen("; ") : NULL;
        }
    }
    table_print(&t, &c->term, stdout, 4);
}

/* The completions read the rows under Arguments. */
static int help_kernel(cli *c, const char *file)
{
    tw_context *cx;
    tw_kernel *k;

    c->opt.store = "none";
    CLI_TRY(open_context(c, TW_LOG_WARNING, &cx));
    int code = open_kernel(c, cx, file, &k);
    if (!code) {
        printf("%s%s%s\n", term_on(&c->term, stdout, STYLE_BOLD), tw_kernel_name(k),
               term_off(&c->term, stdout));
        heading(c, stdout, "Arguments");
        parameter_rows(c, k);
        heading(c, stdout, "Tune parameters: what is tried, the default first");
        tune_rows(c, k);
        tw_kernel_destroy(k);
    }
    tw_context_destroy(cx);
    return code;
}

int cmd_help(cli *c)
{
    static const struct {
        const char *name;
        void (*print)(const cli *c);
    } topic[] = {{"values", topic_values},
                 {"environment", topic_environment},
                 {"exit-codes", topic_exit_codes},
                 {"man", topic_man},
                 {"bash", topic_bash},
                 {"zsh", topic_zsh},
                 {"fish", topic_fish}};
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
    if (strstr(word, ".tw"))
        return help_kernel(c, word);
    const verb *v = verb_find(word);
    if (!v)
        return cli_usage(c,
                         "there is no help on '%s'; topics are the verbs, values, environment, "
                         "exit-codes, and FILE.tw",
                         word);
    help_verb(c, v);
    return CLI_OK;
}
