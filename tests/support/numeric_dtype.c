#include "tests/support/numeric_dtype.h"
#include <math.h>
#include <string.h>

const num_dtype num_dtypes[NUM_DTYPES] = {
    {"i8", kDLInt, 8, false, true, 0, 0},        {"i16", kDLInt, 16, false, true, 0, 0},
    {"i32", kDLInt, 32, false, true, 0, 0},      {"i64", kDLInt, 64, false, true, 0, 0},
    {"u8", kDLUInt, 8, false, false, 0, 0},      {"u16", kDLUInt, 16, false, false, 0, 0},
    {"u32", kDLUInt, 32, false, false, 0, 0},    {"u64", kDLUInt, 64, false, false, 0, 0},
    {"f16", kDLFloat, 16, true, true, 10, -14},  {"bf16", kDLBfloat, 16, true, true, 7, -126},
    {"f32", kDLFloat, 32, true, true, 23, -126}, {"f64", kDLFloat, 64, true, true, 52, -1022},
};

const num_dtype *num_dtype_named(const char *name)
{
    for (int i = 0; i < NUM_DTYPES; i++)
        if (strcmp(num_dtypes[i].name, name) == 0)
            return &num_dtypes[i];
    return NULL;
}

num_wide num_wrap(const num_dtype *t, num_wide v)
{
    num_wide modulus = (num_wide)1 << t->bits, low = v & (modulus - 1);

    return t->is_signed && low >= modulus / 2 ? low - modulus : low;
}

/* By counting in units of the last place. */
double num_round(const num_dtype *t, double x)
{
    if (t->bits == 64 || x == 0.0 || !isfinite(x))
        return x;
    int exponent = ilogb(x) < t->least_exponent ? t->least_exponent : ilogb(x);
    double unit = ldexp(1.0, exponent - t->mantissa), y = nearbyint(x / unit) * unit;
    return fabs(y) >= ldexp(1.0, 1 - t->least_exponent + 1) ? copysign((double)INFINITY, x)
                                                            : copysign(y, x);
}

static uint64_t half_bits(const num_dtype *t, double x)
{
    int bias = 1 - t->least_exponent;
    uint64_t sign = signbit(x) ? 0x8000 : 0;

    x = fabs(x);
    if (isnan(x))
        return sign | (uint64_t)(2 * bias + 1) << t->mantissa | 1u << (t->mantissa - 1);
    if (isinf(x))
        return sign | (uint64_t)(2 * bias + 1) << t->mantissa;
    int exponent = x == 0.0 || ilogb(x) < t->least_exponent ? t->least_exponent : ilogb(x);
    uint64_t units = (uint64_t)ldexp(x, t->mantissa - exponent); /* hidden bit included */
    return sign | (((uint64_t)(exponent + bias - 1) << t->mantissa) + units);
}

static double half_value(const num_dtype *t, uint64_t bits)
{
    int bias = 1 - t->least_exponent, exponent = (int)(bits >> t->mantissa) & (2 * bias + 1);
    double fraction = (double)(bits & ((1u << t->mantissa) - 1)), sign = bits >> 15 ? -1.0 : 1.0;

    if (exponent == 2 * bias + 1)
        return fraction > 0 ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, t->least_exponent - t->mantissa);
    return sign * ldexp(fraction + ldexp(1.0, t->mantissa), exponent - bias - t->mantissa);
}

void num_put(const num_dtype *t, void *base, int64_t i, num_value v)
{
    uint64_t bits = (uint64_t)v.i;
    float single = (float)v.f;

    if (t->is_float && t->bits == 16)
        bits = half_bits(t, v.f);
    else if (t->is_float && t->bits == 32)
        memcpy(&bits, &single, sizeof single);
    else if (t->is_float)
        memcpy(&bits, &v.f, sizeof v.f);
    memcpy((char *)base + i * (t->bits / 8), &bits, (size_t)t->bits / 8);
}

num_value num_get(const num_dtype *t, const void *base, int64_t i)
{
    uint64_t bits = 0;
    float single;
    double f;

    memcpy(&bits, (const char *)base + i * (t->bits / 8), (size_t)t->bits / 8);
    memcpy(&single, &bits, sizeof single);
    memcpy(&f, &bits, sizeof f);
    if (!t->is_float)
        return (num_value){.i = num_wrap(t, (num_wide)bits)};
    return (num_value){.f = t->bits == 16   ? half_value(t, bits)
                            : t->bits == 32 ? (double)single
                                            : f};
}

DLTensor num_vector(const num_dtype *t, void *at, int64_t *n)
{
    return (DLTensor){at, {kDLCPU, 0}, 1, {t->code, (uint8_t)t->bits, 1}, n, NULL, 0};
}

bool num_run_text(num_device *d, const char *source, const tw_arg *args, size_t n)
{
    tw_kernel *k = NULL;

    num_must(tw_kernel_load_text(d->cx, "dtypes", source, strlen(source), NULL, &k), source);
    tw_status st = num_try(d, k, args, n, NULL);
    if (d->is_gpu && st == TW_E_LIMIT) {
        tw_launch_options many = TW_LAUNCH_OPTIONS_INIT;
        many.config = "num_warps=16";
        st = num_try(d, k, args, n, &many);
    }
    tw_kernel_destroy(k);
    if (d->is_gpu && st == TW_E_LIMIT)
        return false;
    if (st == TW_E_UNSUPPORTED && strcmp(d->label, "interp") != 0)
        return false;
    num_must(st, source);
    return true;
}
