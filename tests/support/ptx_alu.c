#include "tests/support/ptx_code.h"
#include <math.h>
#include <string.h>

/* ---- numbers --------------------------------------------------------------------------------- */

static float f32_of(uint64_t x)
{
    uint32_t u = (uint32_t)x;
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

static uint64_t bits_f32(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

static double f64_of(uint64_t x)
{
    double f;

    memcpy(&f, &x, sizeof f);
    return f;
}

static uint64_t bits_f64(double f)
{
    uint64_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

float ptx_half_to_float(uint16_t h)
{
    int e = h >> 10 & 31, m = h & 1023;
    float v = e == 31 ? (m ? NAN : INFINITY)
              : e     ? ldexpf((float)(m | 1024), e - 25)
                      : ldexpf((float)m, -24);

    return h & 0x8000 ? -v : v;
}

static uint16_t float_to_half(float f)
{
    uint16_t sign = signbit(f) ? 0x8000 : 0;
    float a = fabsf(f);
    int e;

    if (isnan(f))
        return 0x7fff;
    if (a >= 65520.0f)
        return sign | 0x7c00;
    if (a < 0x1p-14f)
        return (uint16_t)(sign | (uint16_t)nearbyintf(a * 0x1p24f));
    frexpf(a, &e);
    return (uint16_t)(sign | (uint16_t)(nearbyintf(ldexpf(a, 11 - e)) + (float)((e + 13) << 10)));
}

static uint16_t float_to_bf16(float f)
{
    uint32_t u = (uint32_t)bits_f32(f);

    return isnan(f) ? 0x7fff : (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static uint64_t narrow(uint64_t x, int bits)
{
    return bits >= 64 ? x : x & (((uint64_t)1 << bits) - 1);
}

static int64_t sign_extend(uint64_t x, int bits)
{
    return bits >= 64 ? (int64_t)x : (int64_t)(x << (64 - bits)) >> (64 - bits);
}

/* Of a float type, as double: exact. */
static double real_of(ptx_ty t, uint64_t x)
{
    if (t.kind == PT_BF)
        return f32_of(x << 16);
    if (t.bits == 16)
        return ptx_half_to_float((uint16_t)x);
    return t.bits == 32 ? f32_of(x) : f64_of(x);
}

static uint64_t real_to(ptx_ty t, double v)
{
    if (t.kind == PT_BF)
        return float_to_bf16((float)v);
    if (t.bits == 16)
        return float_to_half((float)v);
    return t.bits == 32 ? bits_f32((float)v) : bits_f64(v);
}

static bool is_real(ptx_ty t)
{
    return t.kind == PT_F || t.kind == PT_BF;
}

/* ---- conversions ----------------------------------------------------------------------------- */

static uint64_t real_to_int(const ptx_instr *i, ptx_ty to, double v)
{
    double lo = to.kind == PT_S ? -ldexp(1.0, to.bits - 1) : 0.0;
    double hi = ldexp(1.0, to.kind == PT_S ? to.bits - 1 : to.bits);

    v = ptx_has(i, ".rmi")   ? floor(v)
        : ptx_has(i, ".rpi") ? ceil(v)
        : ptx_has(i, ".rni") ? nearbyint(v)
                             : trunc(v);
    if (isnan(v))
        return 0;
    if (v < lo)
        v = lo;
    if (v >= hi)
        return to.kind == PT_S ? ((uint64_t)1 << (to.bits - 1)) - 1 : narrow(~(uint64_t)0, to.bits);
    return narrow(to.kind == PT_S ? (uint64_t)(int64_t)v : (uint64_t)v, to.bits);
}

static uint64_t int_to_real(ptx_ty to, ptx_ty from, uint64_t x)
{
    int64_t s = sign_extend(x, from.bits);
    uint64_t u = narrow(x, from.bits);

    if (to.bits == 64)
        return bits_f64(from.kind == PT_S ? (double)s : (double)u);
    return real_to(to, from.kind == PT_S ? (float)s : (float)u);
}

static uint64_t convert(const ptx_instr *i, const uint64_t *x)
{
    ptx_ty to = i->type[0], from = i->type[1];

    if (to.kind == PT_BF2)
        return (uint64_t)float_to_bf16(f32_of(x[0])) << 16 | float_to_bf16(f32_of(x[1]));
    if (to.kind == PT_F2)
        return (uint64_t)float_to_half(f32_of(x[0])) << 16 | float_to_half(f32_of(x[1]));
    if (to.kind == PT_TF32)
        return (x[0] + 0x1000) & 0xffffe000;
    if (is_real(to) && is_real(from)) {
        double v = real_of(from, x[0]);
        if (ptx_has(i, ".rmi"))
            v = floor(v);
        if (ptx_has(i, ".rpi"))
            v = ceil(v);
        if (ptx_has(i, ".rzi"))
            v = trunc(v);
        if (ptx_has(i, ".rni"))
            v = nearbyint(v);
        return real_to(to, v);
    }
    if (is_real(from))
        return real_to_int(i, to, real_of(from, x[0]));
    if (is_real(to))
        return int_to_real(to, from, x[0]);
    uint64_t v =
        from.kind == PT_S ? (uint64_t)sign_extend(x[0], from.bits) : narrow(x[0], from.bits);
    /* what is narrower than its register is extended there: PTX ISA, "Operand Size Exceeding
     * Instruction-Type Size"; no register has less than 16 bits */
    return to.kind == PT_S && to.bits == 8 ? narrow((uint64_t)sign_extend(v, 8), 16)
                                           : narrow(v, to.bits);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static bool compare(const ptx_instr *i, ptx_ty t, uint64_t a, uint64_t b)
{
    static const char *const names[] = {".eq", ".ne", ".lt", ".le", ".gt",
                                        ".ge", ".lo", ".ls", ".hi", ".hs"};
    int less = 0, k = 0;
    bool nan = false;

    if (is_real(t)) {
        double x = real_of(t, a), y = real_of(t, b);
        nan = isnan(x) || isnan(y);
        less = x < y ? -1 : x > y;
        if (ptx_has(i, ".num") || ptx_has(i, ".nan"))
            return ptx_has(i, ".nan") == nan;
    } else if (t.kind == PT_S) {
        int64_t x = sign_extend(a, t.bits), y = sign_extend(b, t.bits);
        less = x < y ? -1 : x > y;
    } else {
        uint64_t x = narrow(a, t.bits), y = narrow(b, t.bits);
        less = x < y ? -1 : x > y;
    }
    bool unordered = false;
    for (k = 0; k < 10; k++) {
        char with_u[8] = "";
        strcat(strcpy(with_u, names[k]), "u");
        unordered = is_real(t) && ptx_has(i, with_u);
        if (unordered || ptx_has(i, names[k]))
            break;
    }
    if (nan)
        return unordered;
    switch (k) {
    case 0:
        return less == 0;
    case 1:
        return less != 0;
    case 2:
    case 6:
        return less < 0;
    case 3:
    case 7:
        return less <= 0;
    case 4:
    case 8:
        return less > 0;
    default:
        return less >= 0;
    }
}

static uint64_t set_predicate(const ptx_instr *i, const uint64_t *x)
{
    bool c = compare(i, i->type[0], x[0], x[1]);

    if (ptx_has(i, ".and"))
        return c && x[2];
    if (ptx_has(i, ".or"))
        return c || x[2];
    return c;
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

static double extreme(const ptx_instr *i, double a, double b, bool greatest)
{
    if (isnan(a) || isnan(b))
        return ptx_has(i, ".NaN") ? NAN : isnan(a) ? b : a;
    return (a > b) == greatest ? a : b;
}

static bool real_math(const ptx_instr *i, ptx_ty t, const uint64_t *x, uint64_t *out)
{
    double a = real_of(t, x[0]), b = i->nargs > 2 ? real_of(t, x[1]) : 0.0;
    double c = i->nargs > 3 ? real_of(t, x[2]) : 0.0, v;
    const char *op = i->base;
    bool single = t.bits == 32;

    if (!strcmp(op, "add"))
        v = single ? (float)a + (float)b : a + b;
    else if (!strcmp(op, "sub"))
        v = single ? (float)a - (float)b : a - b;
    else if (!strcmp(op, "mul"))
        v = single ? (float)a * (float)b : a * b;
    else if (!strcmp(op, "div"))
        v = single ? (float)a / (float)b : a / b;
    else if (!strcmp(op, "fma"))
        v = single ? fmaf((float)a, (float)b, (float)c) : fma(a, b, c);
    else if (!strcmp(op, "max"))
        v = extreme(i, a, b, true);
    else if (!strcmp(op, "min"))
        v = extreme(i, a, b, false);
    else if (!strcmp(op, "neg"))
        v = -a;
    else if (!strcmp(op, "abs"))
        v = fabs(a);
    else if (!strcmp(op, "sqrt"))
        v = single ? sqrtf((float)a) : sqrt(a);
    else if (!strcmp(op, "rcp"))
        v = single ? 1.0f / (float)a : 1.0 / a;
    else if (!strcmp(op, "ex2"))
        v = exp2f((float)a) < 0x1p-126f ? 0.0 : exp2f((float)a); /* .ftz */
    else if (!strcmp(op, "copysign"))
        v = copysign(b, a);
    else
        return false;
    *out = real_to(t, v);
    return true;
}

__extension__ typedef __int128 wide_int;
__extension__ typedef unsigned __int128 wide_uint;

static uint64_t high_half(ptx_ty t, uint64_t a, uint64_t b)
{
    if (t.kind == PT_S)
        return (uint64_t)(((wide_int)sign_extend(a, t.bits) * sign_extend(b, t.bits)) >> t.bits);
    return (uint64_t)(((wide_uint)narrow(a, t.bits) * narrow(b, t.bits)) >> t.bits);
}

static uint64_t product(const ptx_instr *i, ptx_ty t, uint64_t a, uint64_t b)
{
    if (ptx_has(i, ".hi"))
        return high_half(t, a, b);
    if (ptx_has(i, ".wide"))
        return t.kind == PT_S ? (uint64_t)(sign_extend(a, t.bits) * sign_extend(b, t.bits))
                              : narrow(a, t.bits) * narrow(b, t.bits);
    return a * b;
}

static uint64_t shifted(const ptx_instr *i, ptx_ty t, uint64_t a, uint64_t by)
{
    by = narrow(by, 32);
    if (!strcmp(i->base, "shl"))
        return by >= t.bits ? 0 : a << by;
    if (t.kind == PT_S)
        return (uint64_t)(sign_extend(a, t.bits) >> (by >= t.bits ? t.bits - 1 : (int)by));
    return by >= t.bits ? 0 : narrow(a, t.bits) >> by;
}

static uint64_t quotient(ptx_ty t, uint64_t a, uint64_t b, bool rest)
{
    if (t.kind == PT_S) {
        int64_t x = sign_extend(a, t.bits), y = sign_extend(b, t.bits);
        if (y == 0)
            return ~(uint64_t)0;
        return (uint64_t)(y == -1 ? (rest ? 0 : (int64_t)(0 - (uint64_t)x)) : rest ? x % y : x / y);
    }
    uint64_t x = narrow(a, t.bits), y = narrow(b, t.bits);
    return y == 0 ? ~(uint64_t)0 : rest ? x % y : x / y;
}

static uint64_t field(ptx_ty t, const uint64_t *x)
{
    int at = (int)x[1], n = (int)x[2];
    uint64_t v = at >= t.bits ? 0 : narrow(x[0], t.bits) >> at;

    return t.kind == PT_S && n > 0 ? (uint64_t)sign_extend(narrow(v, n), n) : narrow(v, n);
}

/* 32 of the 64 bits b:a, shifted to the left or the right. */
static uint64_t funnelled(const ptx_instr *i, const uint64_t *x)
{
    uint64_t both = x[1] << 32 | narrow(x[0], 32);
    unsigned by = (unsigned)x[2];

    by = ptx_has(i, ".wrap") ? by & 31 : by < 32 ? by : 32;
    return ptx_has(i, ".l") ? both << by >> 32 : both >> by;
}

static uint64_t permuted(const uint64_t *x)
{
    uint64_t both = (x[1] & 0xffffffff) << 32 | (x[0] & 0xffffffff), v = 0;

    for (int k = 0; k < 4; k++) {
        uint64_t pick = x[2] >> 4 * k, byte = both >> 8 * (pick & 7) & 0xff;
        if (pick & 8) /* the sign of the byte, eight times */
            byte = byte & 0x80 ? 0xff : 0;
        v |= byte << 8 * k;
    }
    return v;
}

static uint64_t saturated(const ptx_instr *i, uint64_t a, uint64_t b)
{
    int64_t v = sign_extend(a, 32) + (!strcmp(i->base, "sub") ? -1 : 1) * sign_extend(b, 32);

    return (uint64_t)(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
}

static bool int_math(const ptx_instr *i, ptx_ty t, const uint64_t *x, uint64_t *out)
{
    const char *op = i->base;
    bool less = t.kind == PT_S ? sign_extend(x[0], t.bits) < sign_extend(x[1], t.bits)
                               : narrow(x[0], t.bits) < narrow(x[1], t.bits);
    uint64_t v;

    if (ptx_has(i, ".sat"))
        v = saturated(i, x[0], x[1]);
    else if (!strcmp(op, "add"))
        v = x[0] + x[1];
    else if (!strcmp(op, "sub"))
        v = x[0] - x[1];
    else if (!strcmp(op, "mul"))
        v = product(i, t, x[0], x[1]);
    else if (!strcmp(op, "mad"))
        v = product(i, t, x[0], x[1]) + x[2];
    else if (!strcmp(op, "div") || !strcmp(op, "rem"))
        v = quotient(t, x[0], x[1], op[0] == 'r');
    else if (!strcmp(op, "and"))
        v = x[0] & x[1];
    else if (!strcmp(op, "or"))
        v = x[0] | x[1];
    else if (!strcmp(op, "xor"))
        v = x[0] ^ x[1];
    else if (!strcmp(op, "not"))
        v = t.kind == PT_PRED ? !x[0] : ~x[0];
    else if (!strcmp(op, "neg"))
        v = 0 - x[0];
    else if (!strcmp(op, "abs"))
        v = sign_extend(x[0], t.bits) < 0 ? 0 - x[0] : x[0];
    else if (!strcmp(op, "shl") || !strcmp(op, "shr"))
        v = shifted(i, t, x[0], x[1]);
    else if (!strcmp(op, "max"))
        v = less ? x[1] : x[0];
    else if (!strcmp(op, "min"))
        v = less ? x[0] : x[1];
    else if (!strcmp(op, "bfe"))
        v = field(t, x);
    else if (!strcmp(op, "prmt"))
        v = permuted(x);
    else if (!strcmp(op, "shf"))
        v = funnelled(i, x);
    else
        return false;
    *out = narrow(v, ptx_has(i, ".wide") ? 2 * t.bits : t.bits);
    return true;
}

bool ptx_compute(const ptx_instr *i, const uint64_t *x, uint64_t *out)
{
    ptx_ty t = i->type[0];

    if (!strcmp(i->base, "cvt"))
        *out = convert(i, x);
    else if (!strcmp(i->base, "setp"))
        *out = set_predicate(i, x);
    else if (!strcmp(i->base, "selp"))
        *out = narrow(x[2] ? x[0] : x[1], t.bits);
    else if (!strcmp(i->base, "mov"))
        *out = narrow(x[0], t.bits);
    else
        return is_real(t) ? real_math(i, t, x, out) : int_math(i, t, x, out);
    return true;
}

uint64_t ptx_atomic(const ptx_instr *i, uint64_t old, uint64_t a, uint64_t b)
{
    ptx_ty t = i->type[0];
    ptx_instr as = *i;
    uint64_t x[3] = {old, a, 0}, v = 0;

    if (ptx_has(i, ".cas"))
        return narrow(old, t.bits) == narrow(a, t.bits) ? b : old;
    if (ptx_has(i, ".exch"))
        return a;
    strcpy(as.base, ptx_has(i, ".add")   ? "add"
                    : ptx_has(i, ".max") ? "max"
                    : ptx_has(i, ".min") ? "min"
                                         : "?");
    as.nargs = 3;
    return (is_real(t) ? real_math(&as, t, x, &v) : int_math(&as, t, x, &v)) ? v : ~old;
}

/* ---- mma.sync -------------------------------------------------------------------------------- */

/* Element (row, k) of A and (k, column) of B, by the tables of the PTX ISA for m16n8k8 and m16n8k16
 * of 16 bits and for m16n8k8 of tf32. */
static float left(uint64_t (*a)[4], bool wide, bool bf, int row, int k)
{
    if (wide)
        return f32_of(a[row % 8 * 4 + k % 4][row / 8 + 2 * (k / 4)]);
    uint64_t word = a[row % 8 * 4 + k % 8 / 2][row / 8 + 2 * (k / 8)];
    uint16_t h = (uint16_t)(word >> 16 * (k % 2));
    return bf ? f32_of((uint64_t)h << 16) : ptx_half_to_float(h);
}

static float right(uint64_t (*b)[2], bool wide, bool bf, int k, int column)
{
    if (wide)
        return f32_of(b[column * 4 + k % 4][k / 4]);
    uint64_t word = b[column * 4 + k % 8 / 2][k / 8];
    uint16_t h = (uint16_t)(word >> 16 * (k % 2));
    return bf ? f32_of((uint64_t)h << 16) : ptx_half_to_float(h);
}

void ptx_mma(const ptx_instr *i, uint64_t (*a)[4], uint64_t (*b)[2], uint64_t (*c)[4],
             uint64_t (*d)[4])
{
    bool wide = ptx_has(i, ".tf32"), bf = ptx_has(i, ".bf16");
    int depth = ptx_has(i, ".m16n8k16") ? 16 : 8;

    for (int row = 0; row < 16; row++) {
        for (int column = 0; column < 8; column++) {
            int lane = row % 8 * 4 + column / 2, at = row / 8 * 2 + column % 2;
            double sum = f32_of(c[lane][at]);
            for (int k = 0; k < depth; k++)
                sum += (double)left(a, wide, bf, row, k) * (double)right(b, wide, bf, k, column);
            d[lane][at] = bits_f32((float)sum);
        }
    }
}
