#ifndef TW_ELEMTYPE_H
#define TW_ELEMTYPE_H
/* Element types as files, specifications and DLPack name them. */
#include "tilewright.h"

enum elemtype_id {
#define ELEMTYPE(id, name, bytes, npy, code, rand, tolerance) ELEM_##id,
#include "cli/elemtype.def"
#undef ELEMTYPE
    ELEM_COUNT
};

typedef struct elemtype {
    const char *name;
    int bytes;
    char npy;
    uint8_t code;
    bool is_float;
    double tolerance;
} elemtype;
extern const elemtype elemtypes[ELEM_COUNT];

/* NULL when there is no such type. */
const elemtype *elemtype_named(const char *name, size_t length);
const elemtype *elemtype_of_npy(char kind, int bytes);
const elemtype *elemtype_of_dlpack(DLDataType d);
DLDataType elemtype_dlpack(const elemtype *e);

/* The element at p as a number; only what a double can say of a 64-bit integer. */
double elemtype_value(const elemtype *e, const void *p);
/* A float as type e, which is one, rounded to nearest. */
void elemtype_put(const elemtype *e, double value, void *out);
/* Reads a number (inf, nan, true, false too) as type e; false when it is none or does not fit. */
bool elemtype_parse(const elemtype *e, const char *text, void *out);

#endif
