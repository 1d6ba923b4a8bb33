#include "compiler/base/source.h"
#include "compiler/base/check.h"
#include <string.h>

static uint32_t count_lines(const char *text, size_t len)
{
    uint32_t n = 1;

    for (size_t i = 0; i < len; i++)
        n += text[i] == '\n';
    return n;
}

source *source_new(arena *a, const char *name, const char *text, size_t len)
{
    ICHECK(len < UINT32_MAX, "a source is shorter than 4 GiB");
    source *s = ARENA_NEW(a, source);
    uint32_t n = 0;

    s->name = arena_strdup(a, name);
    s->text = arena_strndup(a, text, len);
    s->len = (uint32_t)len;
    s->nlines = count_lines(text, len);
    s->line = ARENA_ARRAY(a, uint32_t, s->nlines);
    s->line[n++] = 0;
    for (uint32_t i = 0; i < s->len; i++) {
        if (text[i] == '\n')
            s->line[n++] = i + 1;
    }
    return s;
}

int source_line(const source *s, uint32_t at)
{
    uint32_t lo = 0, hi = s->nlines;

    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (s->line[mid] <= at)
            lo = mid;
        else
            hi = mid;
    }
    return (int)lo + 1;
}

int source_column(const source *s, uint32_t at)
{
    return (int)(at - s->line[source_line(s, at) - 1]) + 1;
}

const char *source_line_text(const source *s, int line, size_t *n)
{
    uint32_t i = (uint32_t)line - 1;
    uint32_t lo = s->line[i];
    uint32_t hi = i + 1 < s->nlines ? s->line[i + 1] - 1 : s->len;

    *n = hi - lo;
    return s->text + lo;
}
