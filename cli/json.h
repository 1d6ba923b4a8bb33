#ifndef TW_JSON_H
#define TW_JSON_H
/* Writes JSON to a file, indented, in the order of the calls. Names and texts are escaped, and
 * bytes that are no UTF-8 become U+FFFD. A number that JSON cannot hold (inf, nan) is written as
 * null. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct json {
    FILE *out;
    int depth;
    bool filled; /* the innermost object or array has something in it */
} json;

/* name: NULL in an array and at the top. */
void json_object(json *j, const char *name);
void json_end_object(json *j);
void json_array(json *j, const char *name);
void json_end_array(json *j);
void json_text(json *j, const char *name, const char *text); /* NULL text: null */
void json_number(json *j, const char *name, double value);
void json_int(json *j, const char *name, int64_t value);
void json_bool(json *j, const char *name, bool value);

#endif
