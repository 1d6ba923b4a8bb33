#ifndef TW_TERM_H
#define TW_TERM_H
/* What a terminal shows: colours, a progress bar, aligned tables, numbers with units. On anything
 * but a terminal (or with NO_COLOR, or TERM=dumb) there is no escape sequence and no bar. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct term {
    bool out_colour, err_colour;
    bool err_tty; /* and it understands escape sequences */
    bool utf8;
    int width;     /* of the terminal behind stderr */
    int out_width; /* of the one behind stdout; 0: that is none */
} term;

typedef enum style {
    STYLE_PLAIN,
    STYLE_BOLD,
    STYLE_DIM,
    STYLE_RED,
    STYLE_GREEN,
    STYLE_YELLOW,
    STYLE_CYAN
} style;

void term_open(term *t);
/* What switches a style on, and all off: "" where there are no colours. file: stdout or stderr. */
const char *term_on(const term *t, FILE *file, style s);
const char *term_off(const term *t, FILE *file);

/* A bar on stderr that is redrawn in place: done from 0 to 1, and a text beside it. */
void term_bar(const term *t, double done, const char *text);
void term_bar_clear(const term *t);

typedef struct number_text {
    char s[32];
} number_text;
number_text text_seconds(double s);                         /* "1.42 ms" */
number_text text_bytes(double n);                           /* "11.2 KiB" */
number_text text_rate(double per_second, const char *unit); /* "213 Gflop/s" */

/* A table that sizes its columns to what is in them. Cells are copied; align has a letter a column,
 * l or r. */
typedef struct table {
    const char *align;
    size_t columns, count, room;
    struct table_cell {
        char *text;
        style style;
    } * cell;
} table;
void table_begin(table *t, const char *align);
void table_cell(table *t, style s, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Prints each row after indent spaces and frees the table. Where a terminal is too narrow, the
 * widest columns of words (l) become narrower and their cells several lines. */
void table_print(table *t, const term *on, FILE *out, int indent);
void table_free(table *t);

#endif
