#include "compiler/base/check.h"
#include "runtime/args.h"
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ------------------------------------------------------------------------------------ */

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void open_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* Whatever the application's locale takes for a decimal point. */
static bool text_float(const char *text, double *out)
{
    char *end;

    pthread_once(&c_locale_once, open_c_locale);
    errno = 0;
    *out = c_locale ? strtod_l(text, &end, c_locale) : strtod(text, &end);
    return end != text && *end == 0 && !(errno == ERANGE && isinf(*out));
}

/* Hexadecimal when it says so; a leading 0 does not mean octal. */
static int base_of(const char *text)
{
    const char *digits = text + strspn(text, " +-");

    return digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') ? 16 : 10;
}

bool text_int(const char *text, int64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoll(text, &end, base_of(text));
    return end != text && *end == 0 && errno == 0;
}

static bool text_u64(const char *text, int64_t *out)
{
    char *end;

    errno = 0;
    uint64_t v = strtoull(text, &end, base_of(text));
    memcpy(out, &v, sizeof v);
    return end != text && *end == 0 && errno == 0 && !strchr(text, '-');
}

bool text_bool(const char *text, int64_t *out)
{
    if (strcmp(text, "true") == 0 || strcmp(text, "1") == 0)
        return *out = 1, true;
    if (strcmp(text, "false") == 0 || strcmp(text, "0") == 0)
        return *out = 0, true;
    return false;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static bool int_fits(enum dtype t, int64_t v)
{
    int bits = dtype_bits(t);

    if (dtype_kind(t) == DTK_BOOL)
        return v == 0 || v == 1;
    if (dtype_kind(t) == DTK_UINT)
        return v >= 0 && (bits == 64 || v < (int64_t)1 << bits);
    return bits == 64 || (v >= -((int64_t)1 << (bits - 1)) && v < (int64_t)1 << (bits - 1));
}

/* A double that is an integer below 2^63 in size. */
static bool double_to_int(double f, int64_t *out)
{
    if (!(f >= -0x1p63 && f < 0x1p63) || f != floor(f))
        return false;
    *out = (int64_t)f;
    return true;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static tw_status not_a(const char *name, const char *got, const char *type)
{
    return ARG_ERROR(NULL, "argument '%s': %s is not a value of type %s", name, got, type);
}

static const char *number_text(const tw_arg *arg, char out[64])
{
    if ((unsigned)arg->kind > TW_ARG_TEXT) {
        snprintf(out, 64, "kind %u, which is no tw_arg_kind,", (unsigned)arg->kind);
        return out;
    }
    switch (arg->kind) {
    case TW_ARG_TENSOR:
        return "a tensor";
    case TW_ARG_TEXT:
        snprintf(out, 64, "'%.50s'", arg->value.text ? arg->value.text : "NULL");
        return out;
    case TW_ARG_FLOAT:
        snprintf(out, 64, "%.17g", arg->value.f);
        return out;
    case TW_ARG_INT:
    case TW_ARG_BOOL:
        break;
    }
    snprintf(out, 64, "%lld", (long long)arg->value.i);
    return out;
}

static bool int_value(const tw_arg *arg, enum dtype t, int64_t *out)
{
    switch (arg->kind) {
    case TW_ARG_INT:
        *out = arg->value.i;
        return int_fits(t, *out);
    case TW_ARG_BOOL:
        *out = arg->value.i;
        return dtype_kind(t) == DTK_BOOL && int_fits(t, *out);
    case TW_ARG_FLOAT:
        return double_to_int(arg->value.f, out) && int_fits(t, *out);
    case TW_ARG_TEXT:
        if (!arg->value.text)
            return false;
        if (dtype_kind(t) == DTK_BOOL)
            return text_bool(arg->value.text, out);
        if (t == DT_U64)
            return text_u64(arg->value.text, out);
        return text_int(arg->value.text, out) && int_fits(t, *out);
    case TW_ARG_TENSOR:
        break;
    }
    return false;
}

/* A float argument is rounded to its parameter's dtype, an integer must be exact in it; a finite
 * value must stay finite. */
static bool float_value(const tw_arg *arg, enum dtype t, double *out)
{
    double v = 0.0;
    bool exact = false;

    switch (arg->kind) {
    case TW_ARG_INT:
        v = (double)arg->value.i;
        exact = true;
        if (!(v < 0x1p63) || (int64_t)v != arg->value.i)
            return false;
        break;
    case TW_ARG_FLOAT:
        v = arg->value.f;
        break;
    case TW_ARG_TEXT:
        if (!arg->value.text || !text_float(arg->value.text, &v))
            return false;
        break;
    case TW_ARG_BOOL:
    case TW_ARG_TENSOR:
    default:
        return false;
    }
    *out = t == DT_F32 ? (double)(float)v : eval_round(t, (ir_scalar){.f = v}).f;
    return (!exact || *out == v) && (isfinite(*out) || !isfinite(v));
}

tw_status arg_scalar(const char *name, const tw_arg *arg, enum dtype t, ir_scalar *out)
{
    char got[64];
    bool ok = dtype_is_float(t) ? float_value(arg, t, &out->f) : int_value(arg, t, &out->i);

    return ok ? TW_OK : not_a(name, number_text(arg, got), dtype_name(t));
}

tw_status arg_is_not(const tw_arg *arg, const char *type)
{
    char got[64];

    return not_a(arg->name, number_text(arg, got), type);
}

bool arg_int(const tw_arg *arg, int64_t *out)
{
    *out = arg->value.i;
    return arg->kind == TW_ARG_INT ||
           (arg->kind == TW_ARG_FLOAT && double_to_int(arg->value.f, out));
}
