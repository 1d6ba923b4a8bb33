#include "cli/term.h"
#include "cli/cli.h"
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const char *const style_codes[] = {
    [STYLE_PLAIN] = "",        [STYLE_BOLD] = "\x1b[1m",   [STYLE_DIM] = "\x1b[2m",
    [STYLE_RED] = "\x1b[31m",  [STYLE_GREEN] = "\x1b[32m", [STYLE_YELLOW] = "\x1b[33m",
    [STYLE_CYAN] = "\x1b[36m",
};

static bool takes_escapes(int fd)
{
    const char *kind = getenv("TERM");

    return isatty(fd) && kind && strcmp(kind, "dumb") != 0;
}

void term_open(term *t)
{
    struct winsize size = {0};
    const char *off = getenv("NO_COLOR");
    bool colour = !(off && *off);

    setlocale(LC_CTYPE, ""); /* numbers stay as C writes them */
    t->err_tty = takes_escapes(STDERR_FILENO);
    t->out_colour = colour && takes_escapes(STDOUT_FILENO);
    t->err_colour = colour && t->err_tty;
    t->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    t->width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        t->out_width = size.ws_col;
}

const char *term_on(const term *t, FILE *file, style s)
{
    return (file == stdout ? t->out_colour : t->err_colour) ? style_codes[s] : "";
}

const char *term_off(const term *t, FILE *file)
{
    return (file == stdout ? t->out_colour : t->err_colour) ? "\x1b[0m" : "";
}

/* ---- the bar --------------------------------------------------------------------------------- */

static void put_times(const char *piece, int count)
{
    for (int i = 0; i < count; i++)
        fputs(piece, stderr);
}

void term_bar(const term *t, double done, const char *text)
{
    int room = t->width - 40, wide = room < 10 ? 10 : room > 32 ? 32 : room;
    int full = (int)lround(fmin(fmax(done, 0.0), 1.0) * wide);

    if (!t->err_tty)
        return;
    fprintf(stderr, "\r%s", term_on(t, stderr, STYLE_CYAN));
    put_times(t->utf8 ? "━" : "=", full);
    fprintf(stderr, "%s%s", term_off(t, stderr), term_on(t, stderr, STYLE_DIM));
    put_times(t->utf8 ? "─" : "-", wide - full);
    fprintf(stderr, "%s  %.*s", term_off(t, stderr), t->width - wide - 3, text);
    fputs("\x1b[K", stderr);
    fflush(stderr);
}

void term_bar_clear(const term *t)
{
    if (t->err_tty)
        fputs("\r\x1b[K", stderr);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Three significant digits before a unit. */
static number_text with_unit(double value, const char *unit)
{
    double size = fabs(value);
    int digits = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
    number_text out;

    snprintf(out.s, sizeof out.s, "%.*f %s", digits, value, unit);
    return out;
}

number_text text_seconds(double s)
{
    if (s < 999.5e-9)
        return with_unit(s * 1e9, "ns");
    if (s < 999.5e-6)
        return with_unit(s * 1e6, "us");
    if (s < 0.9995)
        return with_unit(s * 1e3, "ms");
    return with_unit(s, "s");
}

number_text text_bytes(double n)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int i = 0;
    number_text out;

    for (; n >= 1023.5 && i < 4; i++)
        n /= 1024.0;
    if (i > 0)
        return with_unit(n, unit[i]);
    snprintf(out.s, sizeof out.s, "%.0f B", n);
    return out;
}

number_text text_rate(double per_second, const char *unit)
{
    static const char prefix[] = " kMGTP";
    char name[16];
    int i = 0;

    for (; per_second >= 999.5 && prefix[i + 1]; i++)
        per_second /= 1000.0;
    snprintf(name, sizeof name, "%.1s%.12s", i ? &prefix[i] : "", unit);
    return with_unit(per_second, name);
}

/* ---- tables ---------------------------------------------------------------------------------- */

void table_begin(table *t, const char *align)
{
    *t = (table){.align = align, .columns = strlen(align)};
}

void table_cell(table *t, style s, const char *format, ...)
{
    va_list list;
    char *text;

    va_start(list, format);
    if (vasprintf(&text, format, list) < 0)
        text = NULL;
    va_end(list);
    if (t->count == t->room) {
        struct table_cell *grown = cli_alloc(t->room * 2 + 64, sizeof *grown);
        if (t->count)
            memcpy(grown, t->cell, t->count * sizeof *grown);
        free(t->cell);
        t->cell = grown;
        t->room = t->room * 2 + 64;
    }
    t->cell[t->count++] = (struct table_cell){text, s};
}

/* Characters, not bytes: continuation bytes of UTF-8 take no room. */
static int width_of(const char *text, size_t bytes)
{
    int n = 0;

    for (size_t i = 0; i < bytes; i++)
        n += (text[i] & 0xc0) != 0x80;
    return n;
}

/* Bytes of the text's first line: all of it where it fits, else up to where a part of a word ends,
 * or in the middle of one that is too long. */
static size_t line_length(const char *text, int width)
{
    size_t n = 0, end = 0;

    for (int shown = 0; text[n]; n++) {
        if ((text[n] & 0xc0) != 0x80 && shown++ == width)
            return end ? end : n;
        if (strchr(" ,;-_", text[n]))
            end = n + 1;
    }
    return n;
}

/* A line of the cell, from *rest, which is moved on. *gap: spaces due before the next text, so that
 * no line ends in spaces. */
static void print_cell(const table *t, const term *on, FILE *out, size_t i, int width,
                       const char **rest, int *gap)
{
    const struct table_cell *cell = &t->cell[i];
    bool right = t->align[i % t->columns] == 'r';
    size_t n = *rest ? line_length(*rest, width) : 0, shown = n;

    while (shown > 0 && (*rest)[shown - 1] == ' ')
        shown--;
    int pad = width - width_of(*rest, shown);
    if (shown) {
        fprintf(out, "%*s%s%.*s%s", *gap + (right ? pad : 0), "", term_on(on, out, cell->style),
                (int)shown, *rest, cell->style ? term_off(on, out) : "");
        *gap = right ? 0 : pad;
    } else {
        *gap += pad;
    }
    *gap += 2;
    if (*rest)
        *rest += n;
}

/* The row that begins with cell i, of which rest has the texts. */
static void print_row(const table *t, const term *on, FILE *out, size_t i, const int *width,
                      const char **rest, int indent)
{
    bool more;

    do {
        int gap = indent;
        more = false;
        for (size_t k = 0; k < t->columns; k++) {
            print_cell(t, on, out, i + k, width[k], &rest[k], &gap);
            more = more || (rest[k] && *rest[k]);
        }
        fputc('\n', out);
    } while (more);
}

/* Makes columns of words narrower until all fit into the terminal. */
static void fit(const table *t, int *width, int room)
{
    enum { NARROWEST = 8 };
    int sum = 2 * ((int)t->columns - 1);

    for (size_t i = 0; i < t->columns; i++)
        sum += width[i];
    for (; sum > room; sum--) {
        int *widest = NULL;
        for (size_t i = 0; i < t->columns; i++)
            if (t->align[i] == 'l' && width[i] > NARROWEST && (!widest || width[i] > *widest))
                widest = &width[i];
        if (!widest)
            return;
        --*widest;
    }
}

void table_free(table *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->cell[i].text);
    free(t->cell);
    *t = (table){0};
}

void table_print(table *t, const term *on, FILE *out, int indent)
{
    int *width = cli_alloc(t->columns, sizeof *width);
    const char **rest = cli_alloc(t->columns, sizeof *rest);

    for (size_t i = 0; i < t->count; i++) {
        const char *text = t->cell[i].text;
        int n = text ? width_of(text, strlen(text)) : 0;
        if (n > width[i % t->columns])
            width[i % t->columns] = n;
    }
    if (on->out_width && out != stderr)
        fit(t, width, on->out_width - indent);
    for (size_t i = 0; i + t->columns <= t->count; i += t->columns) {
        for (size_t k = 0; k < t->columns; k++)
            rest[k] = t->cell[i + k].text;
        print_row(t, on, out, i, width, rest, indent);
    }
    free(rest);
    free(width);
    table_free(t);
}
