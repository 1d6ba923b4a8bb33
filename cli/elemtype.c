#include "cli/elemtype.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const elemtype elemtypes[ELEM_COUNT] = {
#define ELEMTYPE(id, name, bytes, npy, code, is_float, tolerance)                                  \
    [ELEM_##id] = {name, bytes, npy, code, is_float, tolerance},
#include "cli/elemtype.def"
#undef ELEMTYPE
};

const elemtype *elemtype_named(const char *name, size_t length)
{
    for (int i = 0; i < ELEM_COUNT; i++)
        if (strlen(elemtypes[i].name) == length && memcmp(elemtypes[i].name, name, length) == 0)
            return &elemtypes[i];
    return NULL;
}

const elemtype *elemtype_of_npy(char kind, int bytes)
{
    for (int i = 0; i < ELEM_COUNT; i++)
        if (elemtypes[i].npy == kind && elemtypes[i].bytes == bytes)
            return &elemtypes[i];
    return NULL;
}

const elemtype *elemtype_of_dlpack(DLDataType d)
{
    for (int i = 0; i < ELEM_COUNT; i++)
        if (elemtypes[i].code == d.code && elemtypes[i].bytes * 8 == d.bits && d.lanes == 1)
            return &elemtypes[i];
    return NULL;
}

DLDataType elemtype_dlpack(const elemtype *e)
{
    return (DLDataType){e->code, (uint8_t)(e->bytes * 8), 1};
}

/* ---- two-byte floats ------------------------------------------------------------------------- */

typedef struct narrow_float {
    int fraction, bias; /* bits of the fraction; of the exponent's offset */
} narrow_float;
static const narrow_float f16 = {10, 15}, bf16 = {7, 127};

static double widen(narrow_float f, uint16_t bits)
{
    int exponent = (bits & 0x7fff) >> f.fraction, fraction = bits & ((1 << f.fraction) - 1);
    double value;

    if (exponent == 2 * f.bias + 1)
        value = fraction ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, 1 - f.bias - f.fraction);
    else
        value = ldexp(fraction + (1 << f.fraction), exponent - f.bias - f.fraction);
    return bits & 0x8000 ? -value : value;
}

/* The fraction is rounded as an integer at the scale of the exponent; a carry out of it is right.
 */
static uint16_t narrow(narrow_float f, double value)
{
    int infinite = (2 * f.bias + 1) << f.fraction, sign = signbit(value) ? 0x8000 : 0, exponent;

    if (isnan(value))
        return (uint16_t)(sign | infinite | 1 << (f.fraction - 1));
    if (value == 0.0 || isinf(value))
        return (uint16_t)(sign | (value == 0.0 ? 0 : infinite));
    frexp(value, &exponent);
    exponent = exponent - 1 > 1 - f.bias ? exponent - 1 : 1 - f.bias;
    double bits = rint(ldexp(fabs(value), f.fraction - exponent));
    if (exponent > f.bias)
        return (uint16_t)(sign | infinite);
    bits += (exponent + f.bias - 1) << f.fraction;
    return (uint16_t)(sign | (bits < infinite ? (int)bits : infinite));
}

/* ---- one element ----------------------------------------------------------------------------- */

#define LOAD(type, p) (*(const type *)memcpy(&(type){0}, (p), sizeof(type)))

double elemtype_value(const elemtype *e, const void *p)
{
    switch ((enum elemtype_id)(e - elemtypes)) {
    case ELEM_I1:
    case ELEM_U8:
        return LOAD(uint8_t, p);
    case ELEM_I8:
        return LOAD(int8_t, p);
    case ELEM_I16:
        return LOAD(int16_t, p);
    case ELEM_U16:
        return LOAD(uint16_t, p);
    case ELEM_I32:
        return LOAD(int32_t, p);
    case ELEM_U32:
        return LOAD(uint32_t, p);
    case ELEM_I64:
        return (double)LOAD(int64_t, p);
    case ELEM_U64:
        return (double)LOAD(uint64_t, p);
    case ELEM_F32:
        return (double)LOAD(float, p);
    case ELEM_F64:
        return LOAD(double, p);
    case ELEM_F16:
        return widen(f16, LOAD(uint16_t, p));
    case ELEM_BF16:
        return widen(bf16, LOAD(uint16_t, p));
    case ELEM_COUNT:
        break;
    }
    return 0.0;
}

void elemtype_put(const elemtype *e, double value, void *out)
{
    if (e->bytes == 8)
        memcpy(out, &value, 8);
    else if (e->bytes == 4)
        memcpy(out, &(float){(float)value}, 4);
    else
        memcpy(out, &(uint16_t){narrow(e->code == kDLBfloat ? bf16 : f16, value)}, 2);
}

static bool parse_float(const elemtype *e, const char *text, void *out)
{
    char *end;

    errno = 0;
    double value = strtod(text, &end);
    bool is_beyond = errno == ERANGE && isinf(value);
    if (end == text || *end || is_beyond)
        return false;
    elemtype_put(e, value, out);
    return isfinite(elemtype_value(e, out)) || !isfinite(value);
}

static bool parse_bool(const char *text, void *out)
{
    uint8_t value = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;

    memcpy(out, &value, 1);
    return value || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
}

/* Hexadecimal when it says so; a leading 0 does not mean octal. */
static int base_of(const char *text)
{
    const char *digits = text + strspn(text, "+-");

    return digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') ? 16 : 10;
}

/* Little endian: the low bytes come first. */
static bool parse_int(const elemtype *e, const char *text, void *out)
{
    int bits = e->bytes * 8;
    bool is_signed = e->code == kDLInt;
    char *end;

    errno = 0;
    uint64_t value = is_signed ? (uint64_t)strtoll(text, &end, base_of(text))
                               : strtoull(text, &end, base_of(text));
    if (end == text || *end || errno || (!is_signed && strchr(text, '-')))
        return false;
    if (bits < 64) {
        uint64_t bias = is_signed ? (uint64_t)1 << (bits - 1) : 0;
        if ((value + bias) >> bits)
            return false;
    }
    memcpy(out, &value, (size_t)e->bytes);
    return true;
}

bool elemtype_parse(const elemtype *e, const char *text, void *out)
{
    if (e->is_float)
        return parse_float(e, text, out);
    return e->code == kDLBool ? parse_bool(text, out) : parse_int(e, text, out);
}
