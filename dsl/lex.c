/* lex: kernel text -> tokens, in one forward walk.
 *
 * Numbers: decimal, 0x, 0b, with _ between digits; an integer has at most 63 bits. A digit directly
 * followed by a letter is one malformed number, not two tokens. A leading 0 is refused: C would
 * read 010 as 8.
 */
#include "dsl/lex.h"
#include "compiler/base/control.h"
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct lexer {
    const source *src;
    const char *at, *end;
    arena *a;
    intern *names;
    diag_list *diags;
    token_list *out;
} lexer;

static const char *const text_of[TOK_COUNT] = {
#define TOKEN(id, text) text,
#include "dsl/token.def"
};

const char *token_text(enum token_kind k)
{
    return text_of[k];
}

static int is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static span span_from(const lexer *x, const char *from)
{
    return (span){x->src, (uint32_t)(from - x->src->text), (uint32_t)(x->at - x->src->text)};
}

static token *add(lexer *x, enum token_kind kind, const char *from)
{
    span s = span_from(x, from);
    token t = {.kind = kind, .lo = s.lo, .hi = s.hi};

    vec_push(&x->out->all, x->a, t);
    return &vec_last(&x->out->all);
}

static void skip_comment(lexer *x)
{
    const char *from = x->at;

    if (x->at[1] == '/') {
        while (x->at < x->end && *x->at != '\n')
            x->at++;
        return;
    }
    x->at += 2;
    while (x->at < x->end && !(x->at[0] == '*' && x->at[1] == '/'))
        x->at++;
    if (x->at < x->end) {
        x->at += 2;
        return;
    }
    span s = span_from(x, from);
    s.hi = s.lo + 2;
    diag_add(x->diags, DIAG_BAD_LITERAL, s, "this comment is never closed");
}

static void lex_word(lexer *x)
{
    const char *from = x->at;

    while (is_letter(*x->at) || is_digit(*x->at))
        x->at++;
    size_t n = (size_t)(x->at - from);
    for (int k = TOK_KERNEL; k < TOK_COUNT; k++) {
        if (strlen(text_of[k]) == n && memcmp(text_of[k], from, n) == 0) {
            add(x, (enum token_kind)k, from);
            return;
        }
    }
    add(x, TOK_NAME, from)->value.name = intern_mem(x->names, from, n);
}

/* Moves over everything that looks like a number; whether it has a '.' or an exponent. */
static int scan_number(lexer *x)
{
    int is_float = 0;
    int based = x->at[0] == '0' && (x->at[1] == 'x' || x->at[1] == 'b');

    while (is_digit(*x->at) || is_letter(*x->at) || *x->at == '.') {
        char c = *x->at++;
        if (based)
            continue;
        if (c == '.')
            is_float = 1;
        if (c == 'e' || c == 'E') {
            is_float = 1;
            if (*x->at == '+' || *x->at == '-')
                x->at++;
        }
    }
    return is_float;
}

/* The text of a number without '_'; NULL when a '_' is not between two digits. */
static char *without_separators(lexer *x, const char *from)
{
    size_t n = (size_t)(x->at - from), k = 0;
    char *copy = arena_strndup(x->a, from, n);

    for (size_t i = 0; i < n; i++) {
        if (from[i] != '_')
            copy[k++] = from[i];
        else if (i == 0 || i + 1 == n || from[i - 1] == '_' || from[i - 1] == '.' ||
                 from[i + 1] == '.')
            return NULL;
    }
    copy[k] = '\0';
    return copy;
}

/* Beyond any exponent that a text of SOURCE_MAX_BYTES can make up for by its digits. */
#define EXPONENT_MAX (1 << 24)

static long read_exponent(const char *text, char **stop)
{
    long e = strtol(text, stop, 10);

    return e > EXPONENT_MAX ? EXPONENT_MAX : e < -EXPONENT_MAX ? -EXPONENT_MAX : e;
}

/* "12.5e3" -> "125e2": strtod would look for the decimal point of the application's locale.
 * 0, ERANGE when no f64 is that large, else EINVAL. */
static int to_float(lexer *x, const char *text, double *f)
{
    char *digits = arena_alloc(x->a, strlen(text) + 1), *stop = NULL;
    size_t n = 0, after_point = 0;
    long exponent = 0;
    const char *at = text;
    int points = 0;

    for (; is_digit(*at) || *at == '.'; at++) {
        if (*at == '.')
            points++;
        else
            digits[n++] = *at, after_point += points > 0;
    }
    if (*at == 'e' || *at == 'E') {
        exponent = read_exponent(at + 1, &stop);
        if (stop == at + 1 || is_letter(at[1]))
            return EINVAL;
        at = stop;
    }
    if (points > 1 || *at != '\0')
        return EINVAL;
    *f = strtod(arena_printf(x->a, "%se%ld", digits, exponent - (long)after_point), NULL);
    return isinf(*f) ? ERANGE : 0;
}

/* 0 when text is an integer, ERANGE when it is one that i64 cannot hold, else EINVAL. */
static int to_int(const char *text, int64_t *i)
{
    int base = text[0] != '0' ? 10 : text[1] == 'x' ? 16 : text[1] == 'b' ? 2 : 10;
    const char *digits = base == 10 ? text : text + 2;
    char *stop = NULL;

    if ((base == 10 && text[0] == '0' && text[1]) || strpbrk(digits, "xX+-"))
        return EINVAL;
    errno = 0;
    *i = strtoll(digits, &stop, base);
    return stop == digits || *stop != '\0' ? EINVAL : errno;
}

static void lex_number(lexer *x)
{
    const char *from = x->at;
    int is_float = scan_number(x);
    char *text = without_separators(x, from);
    token *t = add(x, is_float ? TOK_FLOAT : TOK_INT, from);
    int error = EINVAL;

    if (text && is_float)
        error = to_float(x, text, &t->value.f);
    else if (text)
        error = to_int(text, &t->value.i);
    if (error == ERANGE) {
        diag_add(x->diags, DIAG_BAD_LITERAL, span_from(x, from),
                 is_float ? "this number is beyond the largest f64; write inf"
                          : "this integer does not fit i64");
    } else if (error) {
        diag *d = diag_add(x->diags, DIAG_BAD_LITERAL, span_from(x, from), "malformed number");
        diag_hint(x->diags, d,
                  "write 12, 0x1f, 0b101, 1_000, 1.5 or 2e-3; a literal has no suffix, "
                  "it takes the type it meets");
    }
}

/* Whoever shows the text would hand it to a terminal. */
static void report_control(lexer *x, const char *at, size_t bytes)
{
    uint32_t lo = (uint32_t)(at - x->src->text);

    diag_add(x->diags, DIAG_BAD_LITERAL, (span){x->src, lo, lo + (uint32_t)bytes},
             "a control character is not part of the language");
}

static void lex_string(lexer *x)
{
    const char *from = x->at++;
    strbuf text;

    sb_init(&text, x->a);
    while (x->at < x->end && *x->at != '"' && *x->at != '\n') {
        if (*x->at == '\\' && (x->at[1] == '"' || x->at[1] == '\\'))
            x->at++;
        size_t control = control_at(x->at, (size_t)(x->end - x->at));
        if (!control)
            sb_char(&text, *x->at);
        else if (*x->at != '\r') /* may end the line */
            report_control(x, x->at, control);
        x->at += control ? control : 1;
    }
    if (x->at < x->end && *x->at == '"')
        x->at++;
    else
        diag_add(x->diags, DIAG_BAD_LITERAL, span_from(x, from), "this text is never closed");
    add(x, TOK_STRING, from)->value.name = intern_mem(x->names, text.s, text.n);
}

static void lex_symbol(lexer *x)
{
    const char *from = x->at;
    size_t left = (size_t)(x->end - x->at);

    for (int k = TOK_SHL_ASSIGN; k < TOK_KERNEL; k++) {
        size_t n = strlen(text_of[k]);
        if (n <= left && memcmp(text_of[k], from, n) == 0) {
            x->at += n;
            add(x, (enum token_kind)k, from);
            return;
        }
    }
    do
        x->at++;
    while (x->at < x->end && ((unsigned char)*x->at & 0xC0) == 0x80);
    const size_t control = control_at(from, left);
    if (control)
        report_control(x, from, control);
    else
        diag_add(x->diags, DIAG_BAD_LITERAL, span_from(x, from),
                 "'%.*s' is not part of the language", (int)(x->at - from), from);
}

/* ---- UTF-8 ---- */

/* The bytes of the character at s, 0 when they are none of UTF-8; s is ended by a NUL. */
static size_t character_at(const char *s)
{
    const unsigned char *u = (const unsigned char *)s;
    size_t n = u[0] < 0x80 ? 1 : u[0] < 0xc2 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;

    for (size_t i = 1; i < n; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return 0;
    }
    bool is_long = (u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xf0 && u[1] < 0x90);
    bool is_beyond = (u[0] == 0xed && u[1] > 0x9f) || (u[0] == 0xf4 && u[1] > 0x8f) || u[0] > 0xf4;
    return is_long || is_beyond ? 0 : n;
}

/* false, and reported, when the text is of another encoding: then nothing in it means anything. */
static bool check_utf8(lexer *x)
{
    const char *at = x->at;
    size_t n = 1;

    while (at < x->end && (n = character_at(at)) != 0)
        at += n;
    if (n)
        return true;
    uint32_t lo = (uint32_t)(at - x->src->text);
    bool is_wide = x->src->len > 1 && (memcmp(x->src->text, "\xff\xfe", 2) == 0 ||
                                       memcmp(x->src->text, "\xfe\xff", 2) == 0);
    diag *d = diag_add(x->diags, DIAG_BAD_LITERAL, (span){x->src, lo, lo + 1},
                       "a byte that is not UTF-8: 0x%02x", (unsigned)(unsigned char)*at);
    diag_hint(x->diags, d, "save the text as UTF-8%s", is_wide ? "; this is UTF-16" : "");
    return false;
}

/* ---- all of it ---- */

static void lex_all(lexer *x)
{
    while (x->at < x->end) {
        char c = *x->at;
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
            x->at++;
        else if (c == '/' && (x->at[1] == '/' || x->at[1] == '*'))
            skip_comment(x);
        else if (is_letter(c))
            lex_word(x);
        else if (is_digit(c) || (c == '.' && is_digit(x->at[1])))
            lex_number(x);
        else if (c == '"')
            lex_string(x);
        else
            lex_symbol(x);
    }
    add(x, TOK_EOF, x->at);
}

void lex_text(token_list *out, arena *a, intern *names, const source *src, diag_list *diags)
{
    lexer x = {src, src->text, src->text + src->len, a, names, diags, out};
    bool is_text = src->len <= SOURCE_MAX_BYTES;

    *out = (token_list){0};
    if (!is_text)
        diag_add(diags, DIAG_LIMIT, (span){src, 0, 0}, "the text is longer than %u bytes",
                 SOURCE_MAX_BYTES);
    if (src->len >= 3 && memcmp(x.at, "\xef\xbb\xbf", 3) == 0)
        x.at += 3; /* the mark that some editors begin a file with */
    if (!is_text || !check_utf8(&x))
        x.at = x.end;
    lex_all(&x);
}

void lex_part(token_list *out, arena *a, intern *names, span part, diag_list *diags)
{
    const char *text = part.src->text;
    lexer x = {part.src, text + part.lo, text + part.hi, a, names, diags, out};

    *out = (token_list){0};
    lex_all(&x);
}
