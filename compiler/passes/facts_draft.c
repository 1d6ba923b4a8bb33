#include "compiler/passes/facts_draft.h"

bool dtype_bounds(enum dtype t, int64_t *lo, int64_t *hi)
{
    int bits = dtype_bits(t);
    bool is_signed = dtype_kind(t) == DTK_SINT;

    *lo = is_signed ? -(int64_t)(UINT64_MAX >> (65 - bits)) - 1 : 0;
    *hi = (int64_t)(UINT64_MAX >> ((is_signed ? 65 : 64) - bits));
    if (t != DT_U64)
        return true;
    *lo = INT64_MIN;
    *hi = INT64_MAX;
    return false;
}

int64_t draft_power_of_two(int64_t x)
{
    uint64_t u = (uint64_t)x, bit = u & (0 - u);

    return bit && !(bit >> 62) ? (int64_t)bit : (int64_t)1 << 62;
}

draft draft_any(enum dtype t)
{
    draft d = {.multiple = 1};
    int64_t lo, hi;

    dtype_bounds(t, &lo, &hi);
    d.lo = lo;
    d.hi = hi;
    return d;
}

draft draft_between(wide lo, wide hi)
{
    return (draft){.lo = lo, .hi = hi, .multiple = 1};
}

bool draft_is_const(const draft *d)
{
    return d->lo == d->hi;
}

draft draft_combine(int64_t a, const draft *x, int64_t b, const draft *y)
{
    draft d = {.multiple = gcd_of(x->multiple, y->multiple)};

    d.lo = a * (a > 0 ? x->lo : x->hi) + b * (b > 0 ? y->lo : y->hi);
    d.hi = a * (a > 0 ? x->hi : x->lo) + b * (b > 0 ? y->hi : y->lo);
    d.has_form = x->has_form && y->has_form && form_combine(&d.lin, a, &x->lin, b, &y->lin);
    return d;
}

static wide least_of(const wide v[4])
{
    wide m = v[0];

    for (int i = 1; i < 4; i++)
        m = v[i] < m ? v[i] : m;
    return m;
}

draft draft_product(const draft *x, const draft *y)
{
    const wide p[4] = {x->lo * y->lo, x->lo * y->hi, x->hi * y->lo, x->hi * y->hi};
    const wide n[4] = {-p[0], -p[1], -p[2], -p[3]};
    draft d = draft_between(least_of(p), -least_of(n));
    const draft *factor = draft_is_const(y) ? y : x, *other = draft_is_const(y) ? x : y;
    form zero = form_const(0);

    if (__builtin_mul_overflow(x->multiple, y->multiple, &d.multiple))
        d.multiple = x->multiple;
    d.has_form = draft_is_const(factor) && other->has_form &&
                 form_combine(&d.lin, (int64_t)factor->lo, &other->lin, 0, &zero);
    return d;
}

static wide magnitude(const draft *x)
{
    wide a = x->lo < 0 ? -x->lo : x->lo, b = x->hi < 0 ? -x->hi : x->hi;

    return a > b ? a : b;
}

wide wide_min(wide x, wide y)
{
    return x < y ? x : y;
}

wide wide_max(wide x, wide y)
{
    return x > y ? x : y;
}

/* All coefficients are multiples of c: the quotient without a rest. */
static bool divide_form(form *r, const form *x, int64_t c)
{
    if (c == INT64_MIN || c == -1 || x->c % c)
        return false;
    *r = *x;
    r->c /= c;
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->at[i].k % c)
            return false;
        r->at[i].k /= c;
    }
    return true;
}

draft draft_quotient(const draft *x, const draft *y)
{
    int64_t c = (int64_t)y->lo;

    if (!draft_is_const(y) || c == 0) { /* x / 0 = 0 */
        wide m = magnitude(x);
        bool natural = x->lo >= 0 && y->lo >= 0;
        return draft_between(natural ? 0 : -m, natural && y->lo > 0 ? x->hi / y->lo : m);
    }
    draft d = draft_between(wide_min(x->lo / c, x->hi / c), wide_max(x->lo / c, x->hi / c));
    if (c == -1)
        d.multiple = x->multiple;
    else if (x->multiple % c == 0)
        d.multiple = x->multiple / c;
    d.has_form = x->has_form && divide_form(&d.lin, &x->lin, c);
    return d;
}

draft draft_remainder(const facts *f, const draft *x, const draft *y)
{
    wide m = magnitude(x), below = magnitude(y) - 1;

    if (draft_is_const(y) && y->lo > 0 && x->has_form && x->lo >= 0 && x->hi < y->lo)
        return *x;
    if (draft_is_const(y) && y->lo > 0 && x->has_form && form_divisible(f, &x->lin, (int64_t)y->lo))
        return draft_between(0, 0);
    if (y->lo > 0 || y->hi < 0)
        m = wide_min(m, below);
    draft d = draft_between(x->lo < 0 ? -m : 0, x->hi > 0 ? m : 0);
    d.multiple = draft_is_const(y) ? gcd_of(x->multiple, y->multiple) : 1;
    return d;
}

draft draft_shift_right(const draft *x, const draft *y, int bits)
{
    if (!draft_is_const(y) || y->lo < 0 || y->lo >= bits)
        return x->lo >= 0 ? draft_between(0, x->hi)
                          : draft_between(wide_min(x->lo, -1), wide_max(x->hi, 0));
    return draft_between(x->lo >> (int)y->lo, x->hi >> (int)y->lo);
}

draft draft_shift_left(const draft *x, const draft *y, int bits, enum dtype t)
{
    draft factor;

    if (!draft_is_const(y) || y->lo < 0 || y->lo >= bits || y->lo > 61)
        return draft_any(t);
    int64_t power = (int64_t)1 << (int)y->lo;
    factor = draft_between(power, power);
    factor.multiple = power;
    return draft_product(x, &factor);
}

draft draft_and(const draft *x, const draft *y, enum dtype t)
{
    draft d = draft_any(t);

    if (x->lo >= 0)
        d = draft_between(0, y->lo >= 0 ? wide_min(x->hi, y->hi) : x->hi);
    else if (y->lo >= 0)
        d = draft_between(0, y->hi);
    int64_t a = draft_power_of_two(x->multiple), b = draft_power_of_two(y->multiple);
    d.multiple = a > b ? a : b;
    return d;
}

draft draft_or(const draft *x, const draft *y, enum dtype t)
{
    draft d = draft_any(t);
    wide top = 1;

    if (x->lo >= 0 && y->lo >= 0) {
        while (top <= wide_max(x->hi, y->hi))
            top *= 2;
        d = draft_between(0, top - 1);
    }
    d.multiple = gcd_of(draft_power_of_two(x->multiple), draft_power_of_two(y->multiple));
    return d;
}

/* One of the two, whichever it is. */
draft draft_either(const draft *x, const draft *y)
{
    draft d = draft_between(wide_min(x->lo, y->lo), wide_max(x->hi, y->hi));

    d.multiple = gcd_of(x->multiple, y->multiple);
    d.has_form = x->has_form && y->has_form && form_equal(&x->lin, &y->lin);
    d.lin = x->lin;
    return d;
}

draft draft_extreme(enum ir_opcode code, const draft *x, const draft *y)
{
    bool is_max = code == OP_MAX;

    if (is_max ? x->lo >= y->hi : x->hi <= y->lo)
        return *x;
    if (is_max ? y->lo >= x->hi : y->hi <= x->lo)
        return *y;
    draft d = draft_either(x, y);
    d.lo = is_max ? wide_max(x->lo, y->lo) : wide_min(x->lo, y->lo);
    d.hi = is_max ? wide_max(x->hi, y->hi) : wide_min(x->hi, y->hi);
    return d;
}

draft draft_absolute(const draft *x)
{
    draft zero = draft_between(0, 0);

    zero.has_form = true;
    zero.multiple = 0;
    if (x->lo >= 0)
        return *x;
    if (x->hi <= 0)
        return draft_combine(-1, x, 1, &zero);
    draft d = draft_between(0, magnitude(x));
    d.multiple = x->multiple;
    return d;
}

draft draft_constant(int64_t c)
{
    draft d = draft_between(c, c);

    d.multiple = c;
    d.has_form = true;
    d.lin = form_const(c);
    return d;
}
