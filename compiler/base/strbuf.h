#ifndef TW_BASE_STRBUF_H
#define TW_BASE_STRBUF_H
/* Builds text in an arena; always NUL-terminated, never truncated. */
#include "compiler/base/arena.h"

typedef struct strbuf {
    arena *a;
    char *s;
    size_t n, cap;
} strbuf;

void sb_init(strbuf *b, arena *a);
void sb_char(strbuf *b, char c);
void sb_str(strbuf *b, const char *s);
void sb_mem(strbuf *b, const char *s, size_t n);
void sb_fmt(strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sb_pad(strbuf *b, char c, int times);
/* Shortest decimal text that reads back as the same float (is_f32) or double; inf, -inf, nan;
 * always with a '.', an exponent or a letter, so that it cannot be taken for an integer. */
void sb_float(strbuf *b, double x, int is_f32);

#endif
