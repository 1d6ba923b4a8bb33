#include "compiler/passes/facts_form.h"
#include <string.h>

form form_const(int64_t c)
{
    return (form){.c = c};
}

form form_key(uint32_t key)
{
    return (form){.n = 1, .at = {{key, 1}}};
}

/* a * x + b * y */
static bool mix(int64_t *r, int64_t a, int64_t x, int64_t b, int64_t y)
{
    int64_t p, q;

    return !__builtin_mul_overflow(a, x, &p) && !__builtin_mul_overflow(b, y, &q) &&
           !__builtin_add_overflow(p, q, r);
}

bool form_combine(form *r, int64_t a, const form *x, int64_t b, const form *y)
{
    form sum = {0};
    uint32_t i = 0, j = 0;

    if (!mix(&sum.c, a, x->c, b, y->c))
        return false;
    while (i < x->n || j < y->n) {
        bool take_x = j == y->n || (i < x->n && x->at[i].key >= y->at[j].key);
        bool take_y = i == x->n || (j < y->n && y->at[j].key >= x->at[i].key);
        form_term t = {take_x ? x->at[i].key : y->at[j].key, 0};
        if (!mix(&t.k, a, take_x ? x->at[i].k : 0, b, take_y ? y->at[j].k : 0))
            return false;
        i += take_x;
        j += take_y;
        if (t.k == 0)
            continue;
        if (sum.n == FORM_TERMS)
            return false;
        sum.at[sum.n++] = t;
    }
    *r = sum;
    return true;
}

bool form_add_const(form *r, int64_t c)
{
    return !__builtin_add_overflow(r->c, c, &r->c);
}

int64_t form_coefficient(const form *x, uint32_t key)
{
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->at[i].key == key)
            return x->at[i].k;
    }
    return 0;
}

int64_t gcd_of(int64_t x, int64_t y)
{
    uint64_t a = x < 0 ? 0 - (uint64_t)x : (uint64_t)x, b = y < 0 ? 0 - (uint64_t)y : (uint64_t)y;

    while (b) {
        uint64_t t = a % b;
        a = b;
        b = t;
    }
    return a > INT64_MAX ? 1 : (int64_t)a;
}

bool form_replace(form *r, const form *x, uint32_t key, const form *y, int64_t scale)
{
    int64_t k = form_coefficient(x, key), g = gcd_of(k, scale);
    form one = form_key(key), rest;

    if (k == 0 || k == INT64_MIN)
        return false;
    return form_combine(&rest, 1, x, -k, &one) && form_combine(r, scale / g, &rest, k / g, y);
}

bool form_equal(const form *x, const form *y)
{
    if (x->c != y->c || x->n != y->n)
        return false;
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->at[i].key != y->at[i].key || x->at[i].k != y->at[i].k)
            return false;
    }
    return true;
}
