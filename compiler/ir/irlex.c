#include "compiler/ir/irlex.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DIGITS 64 /* of a number as written */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word_char(char c)
{
    return is_letter(c) || is_digit(c) || c == '.';
}

bool ir_is_name(const char *s)
{
    if (!is_letter(*s))
        return false;
    while (is_word_char(*s))
        s++;
    return !*s;
}

static char peek(const ir_lexer *lx, uint32_t ahead)
{
    return lx->at + ahead < lx->src->len ? lx->src->text[lx->at + ahead] : '\0';
}

static span from(const ir_lexer *lx, uint32_t lo)
{
    return (span){lx->src, lo, lx->at};
}

/* # and a letter is the name of a layout; any other # starts a comment. */
static bool at_comment(const ir_lexer *lx)
{
    return (peek(lx, 0) == '#' && !is_letter(peek(lx, 1))) ||
           (peek(lx, 0) == '/' && peek(lx, 1) == '/');
}

static void skip_blank(ir_lexer *lx)
{
    for (;;) {
        char c = peek(lx, 0);
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            lx->at++;
        } else if (at_comment(lx)) {
            while (lx->at < lx->src->len && peek(lx, 0) != '\n')
                lx->at++;
        } else {
            return;
        }
    }
}

static ir_token bad(ir_lexer *lx, uint32_t lo, const char *what)
{
    diag_add(lx->diags, DIAG_IR_SYNTAX, from(lx, lo), "%s", what);
    return (ir_token){.kind = IRT_BAD, .where = from(lx, lo)};
}

static ir_token name_token(ir_lexer *lx, enum ir_token_kind kind, uint32_t lo)
{
    uint32_t start = lx->at;

    while (is_word_char(peek(lx, 0)))
        lx->at++;
    if (lx->at == start)
        return bad(lx, lo, "a name is expected here");
    return (ir_token){.kind = kind,
                      .where = from(lx, lo),
                      .s = intern_mem(lx->names, lx->src->text + start, lx->at - start)};
}

/* ---- numbers ---- */

static ir_token integer(ir_lexer *lx, uint32_t lo, const char *text)
{
    ir_token t = {.kind = IRT_INT, .where = from(lx, lo)};

    errno = 0;
    t.i = strtoll(text, NULL, 10);
    if (errno == ERANGE)
        return bad(lx, lo, "an integer has at most 64 bits");
    t.f = (double)t.i;
    return t;
}

static long clamp_exponent(long e)
{
    const long most = 100000; /* far beyond what a double holds */

    return e > most ? most : e < -most ? -most : e;
}

/* Rewritten as digits and an exponent: strtod takes the decimal point from the application's
 * locale. */
static double decimal(const char *text)
{
    char digits[MAX_DIGITS + 32];
    long exponent = 0;
    size_t n = 0;
    bool after_point = false;

    for (; *text && *text != 'e' && *text != 'E'; text++) {
        if (*text == '.') {
            after_point = true;
            continue;
        }
        digits[n++] = *text;
        exponent -= after_point;
    }
    if (*text)
        exponent += clamp_exponent(strtol(text + 1, NULL, 10));
    snprintf(digits + n, sizeof digits - n, "e%ld", exponent);
    return strtod(digits, NULL);
}

static bool take_digits(ir_lexer *lx)
{
    uint32_t start = lx->at;

    while (is_digit(peek(lx, 0)))
        lx->at++;
    return lx->at > start;
}

static ir_token number(ir_lexer *lx, uint32_t lo)
{
    char text[MAX_DIGITS + 1];
    bool is_float = false;

    take_digits(lx);
    if (peek(lx, 0) == '.') {
        is_float = true;
        lx->at++;
        take_digits(lx);
    }
    if (peek(lx, 0) == 'e' || peek(lx, 0) == 'E') {
        is_float = true;
        lx->at += peek(lx, 1) == '-' || peek(lx, 1) == '+' ? 2 : 1;
        if (!take_digits(lx))
            return bad(lx, lo, "an exponent has digits");
    }
    if (is_letter(peek(lx, 0)))
        return bad(lx, lo, "a number is followed by a letter");
    if (lx->at - lo > MAX_DIGITS)
        return bad(lx, lo, "a number is too long");
    memcpy(text, lx->src->text + lo, lx->at - lo);
    text[lx->at - lo] = '\0';
    if (!is_float)
        return integer(lx, lo, text);
    return (ir_token){.kind = IRT_FLOAT, .where = from(lx, lo), .f = decimal(text)};
}

static ir_token negative(ir_lexer *lx, uint32_t lo)
{
    lx->at++;
    if (is_digit(peek(lx, 0)))
        return number(lx, lo);
    ir_token t = name_token(lx, IRT_WORD, lo);
    if (t.kind == IRT_WORD && strcmp(t.s, "inf") != 0)
        return bad(lx, lo, "a number is expected after '-'");
    if (t.kind == IRT_WORD) {
        t.kind = IRT_FLOAT;
        t.f = -(double)INFINITY;
    }
    return t;
}

/* ---- text ---- */

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The character of an escape whose backslash is taken; -1 when it is none. */
static int escape(ir_lexer *lx)
{
    char c = peek(lx, 0);

    lx->at++;
    if (c == '"' || c == '\\')
        return c;
    if (c == 'n')
        return '\n';
    if (c == 't')
        return '\t';
    int high = hex_digit(peek(lx, 0)), low = hex_digit(peek(lx, 1));
    if (c != 'x' || high < 0 || low < 0 || (high | low) == 0)
        return -1;
    lx->at += 2;
    return high * 16 + low;
}

static ir_token text(ir_lexer *lx, uint32_t lo)
{
    strbuf out;

    sb_init(&out, lx->a);
    lx->at++;
    while (peek(lx, 0) != '"') {
        int c = (unsigned char)peek(lx, 0);
        if (c < ' ' && c != '\t')
            return bad(lx, lo, "a text ends on its line");
        lx->at++;
        if (c == '\\' && (c = escape(lx)) < 0)
            return bad(lx, lo, "an escape is one of \\\" \\\\ \\n \\t \\x01 ... \\xff");
        sb_char(&out, (char)c);
    }
    lx->at++;
    return (ir_token){.kind = IRT_TEXT, .where = from(lx, lo), .s = out.s};
}

static ir_token sigil(ir_lexer *lx, enum ir_token_kind kind, uint32_t lo)
{
    lx->at++;
    return name_token(lx, kind, lo);
}

ir_token ir_lex(ir_lexer *lx)
{
    skip_blank(lx);
    uint32_t lo = lx->at;
    char c = peek(lx, 0);

    if (lo >= lx->src->len)
        return (ir_token){.kind = IRT_END, .where = from(lx, lo)};
    if (is_letter(c))
        return name_token(lx, IRT_WORD, lo);
    if (is_digit(c))
        return number(lx, lo);
    switch (c) {
    case '-':
        return negative(lx, lo);
    case '"':
        return text(lx, lo);
    case '%':
        return sigil(lx, IRT_VALUE, lo);
    case '@':
        return sigil(lx, IRT_FUNCTION, lo);
    case '#':
        return sigil(lx, IRT_LAYOUT, lo);
    case '(':
    case ')':
    case '[':
    case ']':
    case '{':
    case '}':
    case '<':
    case '>':
    case ',':
    case ':':
    case '=':
        lx->at++;
        return (ir_token){.kind = IRT_PUNCT, .where = from(lx, lo), .i = c};
    default:
        lx->at++;
        return bad(lx, lo, "this character has no meaning here");
    }
}
