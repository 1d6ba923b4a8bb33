#include "compiler/base/diag.h"
#include "compiler/base/check.h"
#include "compiler/base/control.h"
#include <string.h>

typedef struct diag_row {
    const char *name;
    enum diag_severity severity;
} diag_row;

static const diag_row row[DIAG_COUNT] = {
#define DIAG(id, name, severity, meaning) {name, DIAG_##severity},
#include "compiler/base/diag.def"
};

const char *diag_name(enum diag_id id)
{
    return row[id].name;
}

void diag_init(diag_list *l, arena *a)
{
    *l = (diag_list){.a = a};
}

static int said_before(const diag_list *l, enum diag_id id, span where, const char *text)
{
    for (uint32_t i = 0; i < l->all.n; i++) {
        const diag *d = l->all.at[i];
        if (d->id == id && d->where.src == where.src && d->where.lo == where.lo &&
            d->where.hi == where.hi && strcmp(d->text, text) == 0)
            return 1;
    }
    return 0;
}

diag *diag_add(diag_list *l, enum diag_id id, span where, const char *fmt, ...)
{
    uint32_t *count = row[id].severity == DIAG_ERROR ? &l->errors : &l->warnings;
    va_list ap;

    va_start(ap, fmt);
    const char *text = arena_vprintf(l->a, fmt, ap);
    va_end(ap);
    if (said_before(l, id, where, text))
        return NULL;
    if ((*count)++ >= DIAG_CAP) {
        l->dropped++;
        return NULL;
    }
    diag *d = ARENA_NEW(l->a, diag);
    d->id = id;
    d->severity = row[id].severity;
    d->where = where;
    d->text = text;
    vec_push(&l->all, l->a, d);
    return d;
}

void diag_note(diag_list *l, diag *d, span where, const char *fmt, ...)
{
    va_list ap;

    if (!d)
        return;
    va_start(ap, fmt);
    diag_at note = {where, arena_vprintf(l->a, fmt, ap)};
    va_end(ap);
    vec_push(&d->notes, l->a, note);
}

void diag_hint(diag_list *l, diag *d, const char *fmt, ...)
{
    va_list ap;

    if (!d)
        return;
    va_start(ap, fmt);
    d->hint = arena_vprintf(l->a, fmt, ap);
    va_end(ap);
}

/* ---- rendering ---- */

#define SHOWN_BYTES 160 /* of a longer line only this much is quoted */

enum paint { PAINT_ERROR, PAINT_WARNING, PAINT_NOTE, PAINT_BOLD, PAINT_OFF };
static const char *const ansi[] = {"\033[1;31m", "\033[1;35m", "\033[1;36m", "\033[1m", "\033[0m"};

typedef struct pen {
    strbuf *out;
    int color;
} pen;

static void paint(const pen *p, enum paint what)
{
    if (p->color)
        sb_str(p->out, ansi[what]);
}

static int is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80; /* of a UTF-8 sequence: takes no column */
}

static void put_clean(strbuf *out, const char *s, size_t n)
{
    for (size_t i = 0, bytes; i < n; i += bytes ? bytes : 1) {
        bytes = control_at(s + i, n - i);
        sb_char(out, bytes ? '?' : s[i]);
    }
}

/* The part of a line that is shown. */
typedef struct excerpt {
    const char *s;
    size_t from, to; /* byte range within the line */
    size_t lo, hi;   /* the span within the line, cut to the range */
    size_t len;
} excerpt;

static excerpt excerpt_of(span where, int line)
{
    excerpt x = {0};

    x.s = source_line_text(where.src, line, &x.len);
    if (x.len && x.s[x.len - 1] == '\r')
        x.len--;
    x.lo = where.lo - where.src->line[line - 1];
    x.lo = x.lo < x.len ? x.lo : x.len;
    x.hi = where.hi - where.src->line[line - 1];
    x.to = x.len;
    if (x.len > SHOWN_BYTES) {
        x.from = x.lo > SHOWN_BYTES / 2 ? x.lo - SHOWN_BYTES / 2 : 0;
        x.to = x.from + SHOWN_BYTES < x.len ? x.from + SHOWN_BYTES : x.len;
    }
    while (x.from < x.lo && is_continuation(x.s[x.from]))
        x.from++;
    while (x.to > x.lo && x.to < x.len && is_continuation(x.s[x.to]))
        x.to--;
    x.hi = x.hi < x.to ? x.hi : x.to;
    return x;
}

static void put_marks(const pen *p, const excerpt *x, enum paint what)
{
    int marks = 0;

    for (size_t i = x->from; i < x->lo; i++) {
        if (!is_continuation(x->s[i]))
            sb_char(p->out, x->s[i] == '\t' ? '\t' : ' ');
    }
    for (size_t i = x->lo; i < x->hi; i++)
        marks += !is_continuation(x->s[i]);
    paint(p, what);
    sb_char(p->out, '^');
    sb_pad(p->out, '~', marks - 1);
    paint(p, PAINT_OFF);
}

static void put_quote(const pen *p, span where, enum paint what)
{
    int line = source_line(where.src, where.lo);
    excerpt x = excerpt_of(where, line);
    const char *cut = x.from ? "..." : "";

    sb_fmt(p->out, "%5d | %s", line, cut);
    put_clean(p->out, x.s + x.from, x.to - x.from);
    sb_str(p->out, x.to < x.len ? "...\n" : "\n");
    sb_fmt(p->out, "      | %*s", (int)strlen(cut), "");
    put_marks(p, &x, what);
    sb_char(p->out, '\n');
}

static void put_head(const pen *p, span where, enum paint what, const char *kind)
{
    paint(p, PAINT_BOLD);
    if (where.src) {
        put_clean(p->out, where.src->name, strlen(where.src->name));
        sb_fmt(p->out, ":%d:%d: ", source_line(where.src, where.lo),
               source_column(where.src, where.lo));
    }
    paint(p, PAINT_OFF);
    paint(p, what);
    sb_fmt(p->out, "%s:", kind);
    paint(p, PAINT_OFF);
    sb_char(p->out, ' ');
}

static void put_diag(const pen *p, const diag *d)
{
    int is_error = d->severity == DIAG_ERROR;
    enum paint what = is_error ? PAINT_ERROR : PAINT_WARNING;

    put_head(p, d->where, what, is_error ? "error" : "warning");
    put_clean(p->out, d->text, strlen(d->text));
    sb_fmt(p->out, " [%s]\n", diag_name(d->id));
    if (d->where.src)
        put_quote(p, d->where, what);
    if (d->hint) {
        sb_str(p->out, "      = hint: ");
        put_clean(p->out, d->hint, strlen(d->hint));
        sb_char(p->out, '\n');
    }
    for (uint32_t i = 0; i < d->notes.n; i++) {
        const diag_at *note = &d->notes.at[i];
        put_head(p, note->where, PAINT_NOTE, "note");
        put_clean(p->out, note->text, strlen(note->text));
        sb_char(p->out, '\n');
        if (note->where.src)
            put_quote(p, note->where, PAINT_NOTE);
    }
}

/* Position within one source; what belongs to different sources stays in the order it came. */
static int is_before(const diag *a, const diag *b)
{
    return a->where.src == b->where.src && a->where.lo < b->where.lo;
}

static void sort_by_position(diag_list *l)
{
    for (uint32_t i = 1; i < l->all.n; i++) {
        diag *d = l->all.at[i];
        uint32_t j = i;
        for (; j > 0 && is_before(d, l->all.at[j - 1]); j--)
            l->all.at[j] = l->all.at[j - 1];
        l->all.at[j] = d;
    }
}

void diag_render(diag_list *l, strbuf *out, int color)
{
    pen p = {out, color};

    sort_by_position(l);
    for (uint32_t i = 0; i < l->all.n; i++)
        put_diag(&p, l->all.at[i]);
    if (l->dropped)
        sb_fmt(out, "(%u more not shown)\n", l->dropped);
}

/* ---- suggestions ---- */

#define LONGEST_WORD 63

static int min3(int a, int b, int c)
{
    int ab = a < b ? a : b;

    return ab < c ? ab : c;
}

/* Insertions, deletions, substitutions and swaps of neighbours that turn a into b. */
static int edit_distance(const char *a, int na, const char *b, int nb)
{
    int d[3][LONGEST_WORD + 1]; /* the rows of a[i-2], a[i-1], a[i], taking turns */

    for (int j = 0; j <= nb; j++)
        d[0][j] = j;
    for (int i = 1; i <= na; i++) {
        int *now = d[i % 3], *before = d[(i + 2) % 3], *earlier = d[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= nb; j++) {
            int changed = before[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = min3(before[j] + 1, now[j - 1] + 1, changed);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                earlier[j - 2] + 1 < now[j])
                now[j] = earlier[j - 2] + 1;
        }
    }
    return d[na % 3][nb];
}

const char *diag_nearest(const char *word, const char *const *candidates, size_t n)
{
    size_t len = strlen(word);
    const char *nearest = NULL;

    if (len > LONGEST_WORD)
        return NULL;
    int best = (int)len / 3 + 1;
    for (size_t i = 0; i < n; i++) {
        size_t other = strlen(candidates[i]);
        if (other > LONGEST_WORD)
            continue;
        int d = edit_distance(word, (int)len, candidates[i], (int)other);
        if (d < best) {
            best = d;
            nearest = candidates[i];
        }
    }
    return nearest;
}
