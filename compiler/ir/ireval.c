#include "compiler/ir/ireval.h"
#include "compiler/base/check.h"
#include <math.h>
#include <string.h>

/* dtype.def again, where a compiler can see it: launches and the interpreter come here per element.
 */
static const uint8_t width_of[DT_COUNT] = {
#define DTYPE(id, name, bits, kind, dlcode, dlbits) [DT_##id] = bits,
#include "compiler/ir/dtype.def"
#undef DTYPE
};
static const uint8_t kind_of[DT_COUNT] = {
#define DTYPE(id, name, bits, kind, dlcode, dlbits) [DT_##id] = DTK_##kind,
#include "compiler/ir/dtype.def"
#undef DTYPE
};

/* ---- rounding -------------------------------------------------------------------------------- */

static uint64_t bits_of(double x)
{
    uint64_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

static double from_bits(uint64_t u)
{
    double x;

    memcpy(&x, &u, sizeof x);
    return x;
}

/* A binary format narrower than double: mantissa bits after the point, least normal exponent, the
 * largest finite value, and 2^52 quanta of its subnormals (adding that rounds to a quantum). */
typedef struct narrow {
    int mantissa, min_exponent;
    double max, subnormal;
} narrow;
static const narrow half = {10, -14, 0x1.ffcp15, 0x1p28};
static const narrow brain = {7, -126, 0x1.fep127, 0x1p-81};

/* To nearest, ties to even. */
static double round_narrow(double x, const narrow *t)
{
    uint64_t u = bits_of(x), mag = u & ~(1ull << 63);
    int exponent = (int)(mag >> 52) - 1023;
    int drop = 52 - t->mantissa;

    if (mag == 0 || exponent == 1024)
        return x;
    if (exponent < t->min_exponent)
        return copysign((from_bits(mag) + t->subnormal) - t->subnormal, x);
    mag += ((1ull << (drop - 1)) - 1) + ((mag >> drop) & 1);
    mag &= ~((1ull << drop) - 1);
    double y = from_bits(mag);
    return copysign(y > t->max ? (double)INFINITY : y, x);
}

static double round_float(enum dtype t, double x)
{
    switch ((int)t) {
    case DT_F32:
        return (double)(float)x;
    case DT_F16:
        return round_narrow(x, &half);
    case DT_BF16:
        return round_narrow(x, &brain);
    default:
        return x;
    }
}

/* What an operation gives in t: 16-bit floats are computed in f32, whose result is rounded again.
 */
static double round_result(enum dtype t, double x)
{
    return round_float(t, t == DT_F64 ? x : (double)(float)x);
}

static int64_t wrap(enum dtype t, uint64_t x)
{
    int spare = 64 - width_of[t];

    if (kind_of[t] == DTK_SINT)
        return (int64_t)(x << spare) >> spare;
    return (int64_t)(x << spare >> spare);
}

ir_scalar eval_round(enum dtype t, ir_scalar v)
{
    if (kind_of[t] == DTK_FLOAT)
        return (ir_scalar){.f = round_float(t, v.f)};
    return (ir_scalar){.i = wrap(t, (uint64_t)v.i)};
}

/* ---- integers and booleans ------------------------------------------------------------------- */

static uint64_t int_divide(enum dtype t, uint64_t x, uint64_t y)
{
    if (y == 0)
        return 0;
    if (kind_of[t] != DTK_SINT)
        return x / y;
    return (int64_t)y == -1 ? 0 - x : (uint64_t)((int64_t)x / (int64_t)y);
}

static uint64_t int_remainder(enum dtype t, uint64_t x, uint64_t y)
{
    if (y == 0)
        return x;
    if (kind_of[t] != DTK_SINT)
        return x % y;
    return (int64_t)y == -1 ? 0 : (uint64_t)((int64_t)x % (int64_t)y);
}

static bool int_less(enum dtype t, uint64_t x, uint64_t y)
{
    return kind_of[t] == DTK_SINT ? (int64_t)x < (int64_t)y : x < y;
}

static uint64_t int_shift_right(enum dtype t, uint64_t x, unsigned count)
{
    return kind_of[t] == DTK_SINT ? (uint64_t)((int64_t)x >> count) : x >> count;
}

static int64_t eval_unary_int(enum ir_opcode code, enum dtype t, uint64_t x)
{
    switch ((int)code) {
    case OP_NEG:
        return wrap(t, 0 - x);
    case OP_NOT:
        return wrap(t, ~x);
    case OP_ABS:
        return wrap(t, int_less(t, x, 0) ? 0 - x : x);
    default:
        ICHECK(0, "an integer operation that can be evaluated");
        return 0;
    }
}

static int64_t eval_binary_int(enum ir_opcode code, enum dtype t, uint64_t x, uint64_t y)
{
    unsigned count = (unsigned)y & (width_of[t] - 1u);

    switch ((int)code) {
    case OP_ADD:
        return wrap(t, x + y);
    case OP_SUB:
        return wrap(t, x - y);
    case OP_MUL:
        return wrap(t, x * y);
    case OP_DIV:
        return wrap(t, int_divide(t, x, y));
    case OP_REM:
        return wrap(t, int_remainder(t, x, y));
    case OP_AND:
        return (int64_t)(x & y);
    case OP_OR:
        return (int64_t)(x | y);
    case OP_XOR:
        return (int64_t)(x ^ y);
    case OP_SHL:
        return wrap(t, x << count);
    case OP_SHR:
        return wrap(t, int_shift_right(t, x, count));
    case OP_MAX:
    case OP_RUNNING_MAX:
        return (int64_t)(int_less(t, x, y) ? y : x);
    case OP_MIN:
        return (int64_t)(int_less(t, y, x) ? y : x);
    case OP_CMP_EQ:
        return x == y;
    case OP_CMP_NE:
        return x != y;
    case OP_CMP_LT:
        return int_less(t, x, y);
    case OP_CMP_LE:
        return !int_less(t, y, x);
    default:
        ICHECK(0, "an integer operation that can be evaluated");
        return 0;
    }
}

static int64_t eval_int(enum ir_opcode code, enum dtype t, const ir_scalar *in)
{
    if (code == OP_NEG || code == OP_NOT || code == OP_ABS)
        return eval_unary_int(code, t, (uint64_t)in[0].i);
    return eval_binary_int(code, t, (uint64_t)in[0].i, (uint64_t)in[1].i);
}

/* ---- floats ---------------------------------------------------------------------------------- */

static double float_max(double x, double y)
{
    if (isnan(x) || isnan(y))
        return x + y;
    if (x == y)
        return signbit(x) ? y : x;
    return x > y ? x : y;
}

static double float_fma(enum dtype t, const ir_scalar *in, bool exact)
{
    if (exact || t == DT_F64)
        return fma(in[0].f, in[1].f, in[2].f);
    return (double)fmaf((float)in[0].f, (float)in[1].f, (float)in[2].f);
}

static double eval_unary_float(enum ir_opcode code, double x)
{
    switch ((int)code) {
    case OP_NEG:
        return -x;
    case OP_ABS:
        return fabs(x);
    case OP_EXP:
        return exp(x);
    case OP_EXP2:
        return exp2(x);
    case OP_LOG:
        return log(x);
    case OP_LOG2:
        return log2(x);
    case OP_SIN:
        return sin(x);
    case OP_COS:
        return cos(x);
    case OP_TANH:
        return tanh(x);
    case OP_ERF:
        return erf(x);
    case OP_SQRT:
        return sqrt(x);
    case OP_RSQRT:
        return 1.0 / sqrt(x);
    case OP_FLOOR:
        return floor(x);
    case OP_CEIL:
        return ceil(x);
    default:
        ICHECK(0, "a float operation that can be evaluated");
        return 0.0;
    }
}

/* In double: one later rounding of + - * / to at most 25 bits equals rounding once. */
static double eval_float(enum ir_opcode code, const ir_scalar *in)
{
    switch ((int)code) {
    case OP_ADD:
        return in[0].f + in[1].f;
    case OP_SUB:
        return in[0].f - in[1].f;
    case OP_MUL:
        return in[0].f * in[1].f;
    case OP_DIV:
        return in[0].f / in[1].f;
    case OP_REM:
        return fmod(in[0].f, in[1].f);
    case OP_MAX:
    case OP_RUNNING_MAX:
        return float_max(in[0].f, in[1].f);
    case OP_MIN:
        return -float_max(-in[0].f, -in[1].f);
    default:
        return eval_unary_float(code, in[0].f);
    }
}

static int64_t eval_compare(enum ir_opcode code, double x, double y)
{
    switch ((int)code) {
    case OP_CMP_EQ:
        return x == y;
    case OP_CMP_NE:
        return x != y;
    case OP_CMP_LT:
        return x < y;
    default:
        return x <= y;
    }
}

static bool is_compare(enum ir_opcode code)
{
    return code == OP_CMP_EQ || code == OP_CMP_NE || code == OP_CMP_LT || code == OP_CMP_LE;
}

/* ---- casts ----------------------------------------------------------------------------------- */

static int64_t float_to_int(enum dtype to, double x)
{
    int bits = width_of[to];

    if (isnan(x))
        return 0;
    if (kind_of[to] == DTK_UINT) {
        if (x >= ldexp(1.0, bits))
            return wrap(to, UINT64_MAX);
        return x <= 0.0 ? 0 : (int64_t)(uint64_t)x;
    }
    if (x >= ldexp(1.0, bits - 1))
        return (int64_t)(UINT64_MAX >> (65 - bits));
    if (x <= -ldexp(1.0, bits - 1))
        return -(int64_t)(UINT64_MAX >> (65 - bits)) - 1;
    return (int64_t)x;
}

static double int_to_float(enum dtype from, enum dtype to, int64_t x)
{
    bool negative = kind_of[from] == DTK_SINT && x < 0;
    uint64_t magnitude = negative ? 0 - (uint64_t)x : (uint64_t)x;
    double y;

    if (to == DT_F64)
        y = (double)magnitude;
    else
        y = round_float(to, (double)(float)magnitude);
    return negative ? -y : y;
}

static ir_scalar eval_cast(enum dtype from, enum dtype to, ir_scalar x, bool exact)
{
    bool from_float = kind_of[from] == DTK_FLOAT;

    if (to == DT_I1)
        return (ir_scalar){.i = from_float ? x.f != 0.0 : x.i != 0};
    if (kind_of[to] == DTK_FLOAT) {
        if (from_float)
            return (ir_scalar){.f = exact ? x.f : round_result(to, x.f)};
        return (ir_scalar){.f = int_to_float(from, exact ? DT_F64 : to, x.i)};
    }
    if (from_float)
        return (ir_scalar){.i = float_to_int(to, x.f)};
    return (ir_scalar){.i = wrap(to, (uint64_t)x.i)};
}

ir_scalar eval_op(enum ir_opcode code, enum dtype from, enum dtype to, const ir_scalar *in,
                  bool exact)
{
    if (code == OP_WHERE)
        return in[0].i ? in[1] : in[2];
    if (code == OP_CAST)
        return eval_cast(from, to, in[0], exact);
    if (kind_of[from] != DTK_FLOAT)
        return (ir_scalar){.i = eval_int(code, from, in)};
    if (is_compare(code))
        return (ir_scalar){.i = eval_compare(code, in[0].f, in[1].f)};
    double y = code == OP_FMA ? float_fma(from, in, exact) : eval_float(code, in);
    if ((code == OP_SIN || code == OP_COS) && fabs(in[0].f) > ANGLE_MAX)
        y = (double)NAN;
    if ((code == OP_EXP || code == OP_EXP2) && y < 0x1p-126 && to != DT_F64 && !exact)
        y = 0.0; /* as on the targets */
    return (ir_scalar){.f = exact ? y : round_result(to, y)};
}
