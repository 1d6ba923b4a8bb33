#ifndef TW_BASE_SOURCE_H
#define TW_BASE_SOURCE_H
/* A source text and positions in it. A span is a half-open byte range; lines and columns are
 * computed only when shown. Columns count bytes from 1, tabs as one. */
#include "compiler/base/arena.h"
#include <stdint.h>

typedef struct source {
    const char *name; /* as shown in messages: a path or "<text>" */
    const char *text; /* NUL-terminated; may hold NULs before len (an error to the lexer) */
    uint32_t len;
    uint32_t *line; /* offset of each line's first byte */
    uint32_t nlines;
} source;

typedef struct span {
    const source *src; /* NULL: no position (built from C) */
    uint32_t lo, hi;
} span;

#define SOURCE_MAX_BYTES (1u << 20) /* a longer kernel text is refused by whoever reads it */

source *source_new(arena *a, const char *name, const char *text, size_t len);
int source_line(const source *s, uint32_t at);   /* from 1 */
int source_column(const source *s, uint32_t at); /* from 1 */
/* The text of a line (from 1), without its newline; its length in *n. */
const char *source_line_text(const source *s, int line, size_t *n);

#endif
