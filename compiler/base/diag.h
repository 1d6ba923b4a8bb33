#ifndef TW_BASE_DIAG_H
#define TW_BASE_DIAG_H
/* Diagnostics: what is wrong with the user's program or call, where, why and what to do.
 * Every one has an id from diag.def; a test fails on an id that no test provokes.
 *
 *   diag *d = diag_add(list, DIAG_TYPE_MISMATCH, sp, "'+' needs equal types: %s and %s", a, b);
 *   diag_note(list, d, other_span, "'x' is declared here");
 *   diag_hint(list, d, "write cast(x, %s)", a);
 *
 * A list is capped (DIAG_CAP errors and as many warnings, then silence) and keeps source order when
 * rendered. What was already said at the same place is not said again: a function body is checked
 * once per inlining. d may be NULL (over the cap, or said before): diag_note and diag_hint then do
 * nothing. */
#include "compiler/base/source.h"
#include "compiler/base/strbuf.h"
#include "compiler/base/vec.h"

enum diag_id {
#define DIAG(id, name, severity, meaning) DIAG_##id,
#include "compiler/base/diag.def"
    DIAG_COUNT
};
enum diag_severity { DIAG_ERROR, DIAG_WARNING };
#define DIAG_CAP 20

typedef struct diag_at {
    span where;
    const char *text;
} diag_at;
typedef struct diag {
    enum diag_id id;
    enum diag_severity severity;
    span where;
    const char *text; /* one line, no full stop */
    VEC(diag_at) notes;
    const char *hint; /* NULL or one line: what to do */
} diag;
typedef struct diag_list {
    arena *a;
    VEC(diag *) all;
    uint32_t errors, warnings, dropped;
} diag_list;

void diag_init(diag_list *l, arena *a);
diag *diag_add(diag_list *l, enum diag_id id, span where, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void diag_note(diag_list *l, diag *d, span where, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void diag_hint(diag_list *l, diag *d, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

const char *diag_name(enum diag_id id); /* "type-mismatch" */
/* Sorts by position, then renders all:
 *   file.tw:12:13: error: '+' needs equal types: f32[64] and i32[64] [type-mismatch]
 *      12 |     let x = a + b;
 *         |             ^~~~~
 *         = hint: write cast(b, f32)
 *   file.tw:9:9: note: 'b' is declared here
 *       9 |     let b = arange(64);
 *         |         ^
 * Control characters in the quoted line are shown as '?'; a long line is cut around the span.
 * color: ANSI colours. */
void diag_render(diag_list *l, strbuf *out, int color);
/* The candidate nearest to word by edit distance (at most a third of its length), or NULL. */
const char *diag_nearest(const char *word, const char *const *candidates, size_t n);

#endif
