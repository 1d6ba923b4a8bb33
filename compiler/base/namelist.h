#ifndef TW_BASE_NAMELIST_H
#define TW_BASE_NAMELIST_H
/* Names in a text of fixed size, for messages: "it has a, b, c". Those that do not fit are counted,
 * never cut: "it has a, b and 12 more".
 *
 *   char text[120];
 *   namelist l = namelist_begin(text, sizeof text, "it has ", ", ");
 *   namelist_add(&l, "%s", name);
 *   namelist_end(&l); */
#include <stddef.h>

typedef struct namelist {
    char *text;
    const char *between;
    size_t size, n; /* n: bytes without the NUL */
    unsigned shown, more;
} namelist;

/* size: enough for `before` and 24 bytes, which are kept for "and N more". */
namelist namelist_begin(char *text, size_t size, const char *before, const char *between);
/* Once a name did not fit, those after it are counted too. */
void namelist_add(namelist *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Tells how many were left out, if any. */
void namelist_end(namelist *l);

#endif
