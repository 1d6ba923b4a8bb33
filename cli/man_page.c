/* The manual page, as man(7) macros. */
#include "cli/cli.h"
#include "cli/pages.h"
#include <string.h>

/* Text with what roff would read as its own escaped: a backslash, a dash, a dot or quote that
 * begins a line. */
static void roff(FILE *out, const char *text)
{
    bool line_begins = true;

    for (; *text; text++) {
        if (line_begins && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else
            fputc(*text, out);
        line_begins = *text == '\n';
    }
}

static void item(FILE *out, const char *name, const char *text)
{
    fputs(".TP\n\\fB", out);
    roff(out, name);
    fputs("\\fR\n", out);
    roff(out, text);
    fputc('\n', out);
}

static void rows(FILE *out, const char *section, const help_row *row)
{
    fprintf(out, ".SH %s\n", section);
    for (; row->name; row++)
        item(out, row->name, row->text);
}

static void option_item(FILE *out, const option_text *o)
{
    fputs(".TP\n", out);
    if (o->letter)
        fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", out);
    roff(out, o->name);
    fputs("\\fR", out);
    if (o->value) {
        fputs("=\\fI", out);
        roff(out, o->value);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    roff(out, o->help);
    fputc('\n', out);
}

static void verb_part(FILE *out, const verb *v)
{
    option_text o;

    fprintf(out, ".SS tilewright %s ", v->name);
    roff(out, v->words);
    fputc('\n', out);
    roff(out, v->summary);
    fputs(".\n", out);
    if (*v->about) {
        fputs(".PP\n", out);
        roff(out, v->about);
        fputc('\n', out);
    }
    for (size_t i = 0; option_describe(i, &o); i++)
        if (o.verbs & v->bit)
            option_item(out, &o);
    fputs(".PP\n.nf\n.RS\n", out);
    roff(out, v->examples);
    fputs("\n.RE\n.fi\n", out);
}

static void exit_codes(FILE *out)
{
    static const tw_status status[] = {
#define STATUS(name, code, text) TW_##name,
        TW_STATUS_MAP(STATUS)
#undef STATUS
    };
    char number[16];

    fputs(".SH EXIT STATUS\n", out);
    for (size_t i = 0; i < sizeof status / sizeof *status; i++) {
        snprintf(number, sizeof number, "%d", tw_status_exit_code(status[i]));
        item(out, number, tw_status_meaning(status[i]));
        if (i == 0)
            item(out, "2", "the command line makes no sense; the message says why");
    }
}

void write_man_page(FILE *out)
{
    fprintf(out, ".TH TILEWRIGHT 1 \"\" \"Tilewright %s\" \"User Commands\"\n", tw_version());
    fputs(".SH NAME\ntilewright \\- compiles, tunes and runs tile kernels\n"
          ".SH SYNOPSIS\n\\fBtilewright\\fR \\fIVERB\\fR [\\fIWORD\\fR]... [\\fIOPTION\\fR]...\n"
          ".SH DESCRIPTION\n"
          "A kernel is a few lines of text at tile level. Tilewright compiles it to machine code,\n"
          "finds the tile sizes that are fastest on this machine, remembers them in a store, and\n"
          "runs it. Options may stand anywhere after the verb, as \\-\\-NAME=VALUE or\n"
          "\\-\\-NAME VALUE; \\-\\- ends them.\n"
          ".SH VERBS\n",
          out);
    for (const verb *v = verbs; v->name; v++)
        verb_part(out, v);
    rows(out, "TENSORS", help_tensors);
    rows(out, "OUTPUTS", help_outputs);
    rows(out, "OTHER VALUES", help_others);
    rows(out, "ENVIRONMENT", help_environment);
    exit_codes(out);
    fputs(".SH SEE ALSO\n"
          "\\fILANGUAGE.md\\fR, the language of kernels, \\fITUTORIAL.md\\fR, and \\fIEMBEDDING.md\\fR, the\n"
          "interface to C, in share/doc/tilewright/docs where the command is installed.\n",
          out);
}
