#include "compiler/base/namelist.h"
#include "compiler/base/check.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FOR_MORE = 24 };

namelist namelist_begin(char *text, size_t size, const char *before, const char *between)
{
    namelist l = {.text = text, .between = between, .size = size, .n = strlen(before)};

    ICHECK(l.n + FOR_MORE <= size, "a list of names has room for its beginning");
    memcpy(text, before, l.n + 1);
    return l;
}

void namelist_add(namelist *l, const char *fmt, ...)
{
    const char *between = l->shown ? l->between : "";
    size_t room = l->size - FOR_MORE - l->n, gap = strlen(between);
    va_list ap;

    if (l->more) {
        l->more++;
        return;
    }
    va_start(ap, fmt);
    int m = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (m < 0 || gap + (size_t)m >= room) {
        l->more = 1;
        return;
    }
    memcpy(l->text + l->n, between, gap);
    va_start(ap, fmt);
    vsnprintf(l->text + l->n + gap, (size_t)m + 1, fmt, ap);
    va_end(ap);
    l->n += gap + (size_t)m;
    l->shown++;
}

void namelist_end(namelist *l)
{
    if (l->more)
        snprintf(l->text + l->n, l->size - l->n, "%s%u more", l->shown ? " and " : "", l->more);
}
