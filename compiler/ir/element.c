#include "compiler/ir/element.h"
#include <math.h>
#include <string.h>

static double half_to_double(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double sign = h >> 15 ? -1.0 : 1.0;

    if (exponent == 31)
        return fraction ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

/* x must be a value that f16 can hold. */
static uint16_t half_from_double(double x)
{
    unsigned sign = signbit(x) ? 0x8000 : 0;
    int exponent;

    if (isnan(x))
        return (uint16_t)(sign | 0x7e00);
    if (isinf(x))
        return (uint16_t)(sign | 0x7c00);
    double fraction = frexp(fabs(x), &exponent); /* [0.5, 1) or 0 */
    if (exponent < -13 || x == 0.0) /* subnormal, or zero */
        return (uint16_t)(sign | (unsigned)ldexp(fabs(x), 24));
    return (uint16_t)(sign | ((unsigned)(exponent + 14) << 10) |
                      ((unsigned)ldexp(fraction, 11) & 1023));
}

static ir_scalar float_read(enum dtype t, const void *p)
{
    ir_scalar v;
    uint16_t half;
    uint32_t word;
    float single;

    if (t == DT_F64) {
        memcpy(&v.f, p, sizeof v.f);
    } else if (t == DT_F32) {
        memcpy(&single, p, sizeof single);
        v.f = single;
    } else {
        memcpy(&half, p, sizeof half);
        word = (uint32_t)half << 16;
        memcpy(&single, &word, sizeof single);
        v.f = t == DT_BF16 ? single : half_to_double(half);
    }
    return v;
}

static void float_write(enum dtype t, void *p, ir_scalar v)
{
    float single;
    uint16_t half;
    uint32_t word;

    v = eval_round(t, v);
    if (t == DT_F64) {
        memcpy(p, &v.f, sizeof v.f);
        return;
    }
    single = (float)v.f;
    if (t == DT_F32) {
        memcpy(p, &single, sizeof single);
        return;
    }
    memcpy(&word, &single, sizeof word);
    half = t == DT_BF16 ? (uint16_t)(word >> 16) : half_from_double(v.f);
    memcpy(p, &half, sizeof half);
}

#define READ_AS(type)                  \
    do {                               \
        type w_;                       \
        memcpy(&w_, p, sizeof w_);     \
        return (ir_scalar){.i = (int64_t)w_}; \
    } while (0)

ir_scalar element_read(enum dtype t, const void *p)
{
    switch ((unsigned)t) {
    case DT_I1:
        return (ir_scalar){.i = *(const uint8_t *)p != 0};
    case DT_I8:
        READ_AS(int8_t);
    case DT_U8:
        READ_AS(uint8_t);
    case DT_I16:
        READ_AS(int16_t);
    case DT_U16:
        READ_AS(uint16_t);
    case DT_I32:
        READ_AS(int32_t);
    case DT_U32:
        READ_AS(uint32_t);
    case DT_I64:
    case DT_U64:
        READ_AS(int64_t);
    default:
        return float_read(t, p);
    }
}

void element_write(enum dtype t, void *p, ir_scalar v)
{
    uint8_t byte = t == DT_I1 ? v.i != 0 : (uint8_t)v.i;
    uint16_t half = (uint16_t)v.i;
    uint32_t word = (uint32_t)v.i;

    if (dtype_is_float(t))
        float_write(t, p, v);
    else if (dtype_bytes(t) == 1)
        memcpy(p, &byte, 1);
    else if (dtype_bytes(t) == 2)
        memcpy(p, &half, 2);
    else if (dtype_bytes(t) == 4)
        memcpy(p, &word, 4);
    else
        memcpy(p, &v.i, 8);
}
