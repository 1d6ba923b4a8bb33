#include "compiler/base/strbuf.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char no_text[1]; /* what an empty buffer points at; cap 0 keeps it unwritten */

void sb_init(strbuf *b, arena *a)
{
    *b = (strbuf){a, no_text, 0, 0};
}

/* Room for n more bytes and the NUL. */
static void make_room(strbuf *b, size_t n)
{
    if (b->cap - b->n > n && b->cap)
        return;
    size_t cap = b->cap ? b->cap * 2 : 64;
    if (cap < b->n + n + 1)
        cap = b->n + n + 1;
    char *bigger = arena_alloc(b->a, cap);
    memcpy(bigger, b->s, b->n);
    b->s = bigger;
    b->cap = cap;
}

void sb_char(strbuf *b, char c)
{
    sb_mem(b, &c, 1);
}

void sb_str(strbuf *b, const char *s)
{
    sb_mem(b, s, strlen(s));
}

void sb_mem(strbuf *b, const char *s, size_t n)
{
    if (!n)
        return;
    make_room(b, n);
    memcpy(b->s + b->n, s, n);
    b->n += n;
    b->s[b->n] = '\0';
}

void sb_fmt(strbuf *b, const char *fmt, ...)
{
    va_list ap, again;

    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n > 0) {
        make_room(b, (size_t)n);
        vsnprintf(b->s + b->n, (size_t)n + 1, fmt, ap);
        b->n += (size_t)n;
    }
    va_end(ap);
}

void sb_pad(strbuf *b, char c, int times)
{
    if (times <= 0)
        return;
    make_room(b, (size_t)times);
    memset(b->s + b->n, c, (size_t)times);
    b->n += (size_t)times;
    b->s[b->n] = '\0';
}

/* x = 0.d1d2d3... * 10^point. Digits and exponent, not text with a decimal point, because printf
 * and strtod use the decimal point of whatever locale the application has set. */
typedef struct decimal {
    char digit[20];
    int n, point;
} decimal;

static void to_decimal(double x, int precision, decimal *d)
{
    char text[64];
    const char *s = text;

    snprintf(text, sizeof text, "%.*e", precision - 1, x);
    d->n = 0;
    for (; *s != 'e'; s++) {
        if (*s >= '0' && *s <= '9')
            d->digit[d->n++] = *s;
    }
    d->point = atoi(s + 1) + 1;
    while (d->n > 1 && d->digit[d->n - 1] == '0')
        d->n--;
    d->digit[d->n] = '\0';
}

/* Also when read as a double and then rounded, which is what a lexer may do. */
static bool reads_back(const decimal *d, double x, int is_f32)
{
    char text[40];

    snprintf(text, sizeof text, "%se%d", d->digit, d->point - d->n);
    double y = strtod(text, NULL);
    if (!is_f32)
        return y == x;
    return (float)y == (float)x && strtof(text, NULL) == (float)x;
}

static void put_scientific(strbuf *b, const decimal *d)
{
    sb_char(b, d->digit[0]);
    if (d->n > 1) {
        sb_char(b, '.');
        sb_mem(b, d->digit + 1, (size_t)d->n - 1);
    }
    sb_fmt(b, "e%d", d->point - 1);
}

static void put_fixed(strbuf *b, const decimal *d)
{
    int whole = d->n < d->point ? d->n : d->point;

    if (d->point <= 0) {
        sb_str(b, "0.");
        sb_pad(b, '0', -d->point);
        sb_mem(b, d->digit, (size_t)d->n);
        return;
    }
    sb_mem(b, d->digit, (size_t)whole);
    sb_pad(b, '0', d->point - whole);
    sb_char(b, '.');
    if (d->n > whole)
        sb_mem(b, d->digit + whole, (size_t)(d->n - whole));
    else
        sb_char(b, '0');
}

void sb_float(strbuf *b, double x, int is_f32)
{
    decimal d = {0};

    if (isnan(x)) {
        sb_str(b, "nan");
        return;
    }
    if (signbit(x))
        sb_char(b, '-');
    x = fabs(is_f32 ? (double)(float)x : x);
    if (isinf(x)) {
        sb_str(b, "inf");
        return;
    }
    for (int precision = 1; precision <= 17; precision++) {
        to_decimal(x, precision, &d);
        if (reads_back(&d, x, is_f32))
            break;
    }
    if (d.point < -4 || d.point > 16)
        put_scientific(b, &d);
    else
        put_fixed(b, &d);
}
