#include "cli/json.h"
#include <math.h>
#include <stdlib.h>

/* The bytes of the UTF-8 sequence at s, 0 if it is none. */
static int sequence_at(const unsigned char *s)
{
    int n = *s < 0x80                 ? 1
            : *s >= 0xc2 && *s < 0xe0 ? 2
            : *s >= 0xe0 && *s < 0xf0 ? 3
            : *s >= 0xf0 && *s < 0xf5 ? 4
                                      : 0;

    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool beyond = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);
    return overlong || beyond ? 0 : n;
}

static void put_text(json *j, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    fputc('"', j->out);
    while (*s) {
        int n = sequence_at(s);
        if (n == 0)
            fputs("\\ufffd", j->out);
        else if (*s == '"' || *s == '\\')
            fprintf(j->out, "\\%c", *s);
        else if (*s == '\n')
            fputs("\\n", j->out);
        else if (*s < 0x20)
            fprintf(j->out, "\\u%04x", *s);
        else
            fwrite(s, 1, (size_t)n, j->out);
        s += n ? n : 1;
    }
    fputc('"', j->out);
}

static void begin(json *j, const char *name)
{
    if (j->depth)
        fprintf(j->out, "%s\n%*s", j->filled ? "," : "", 2 * j->depth, "");
    if (name) {
        put_text(j, name);
        fputs(": ", j->out);
    }
    j->filled = true;
}

static void open_group(json *j, const char *name, char bracket)
{
    begin(j, name);
    fputc(bracket, j->out);
    j->depth++;
    j->filled = false;
}

static void close_group(json *j, char bracket)
{
    j->depth--;
    if (j->filled)
        fprintf(j->out, "\n%*s", 2 * j->depth, "");
    fputc(bracket, j->out);
    j->filled = true;
    if (j->depth == 0)
        fputc('\n', j->out);
}

void json_object(json *j, const char *name)
{
    open_group(j, name, '{');
}

void json_end_object(json *j)
{
    close_group(j, '}');
}

void json_array(json *j, const char *name)
{
    open_group(j, name, '[');
}

void json_end_array(json *j)
{
    close_group(j, ']');
}

void json_text(json *j, const char *name, const char *text)
{
    begin(j, name);
    if (text)
        put_text(j, text);
    else
        fputs("null", j->out);
}

/* The shortest of the usual precisions that reads back as the same number. */
void json_number(json *j, const char *name, double value)
{
    char text[32];

    begin(j, name);
    if (!isfinite(value)) {
        fputs("null", j->out);
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    fputs(text, j->out);
}

void json_int(json *j, const char *name, int64_t value)
{
    begin(j, name);
    fprintf(j->out, "%lld", (long long)value);
}

void json_bool(json *j, const char *name, bool value)
{
    begin(j, name);
    fputs(value ? "true" : "false", j->out);
}
