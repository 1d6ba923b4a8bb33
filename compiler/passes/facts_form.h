#ifndef TW_PASSES_FACTS_FORM_H
#define TW_PASSES_FACTS_FORM_H
/* Linear forms  c + sum k_i * key_i  over mathematical integers: nothing here wraps. A key is a
 * node of facts_core.h, or an axis: the position of an element along one dimension of a tile. */
#include <stdbool.h>
#include <stdint.h>

__extension__ typedef __int128 wide; /* bounds of forms: no sum or product of theirs overflows it */

enum { FORM_TERMS = 8 };
#define FORM_AXIS 0xfffffff0u /* FORM_AXIS + d: position along dimension d */

typedef struct form_term {
    uint32_t key;
    int64_t k; /* not 0 */
} form_term;
typedef struct form {
    int64_t c;
    uint32_t n;
    form_term at[FORM_TERMS]; /* by key, greatest first */
} form;

form form_const(int64_t c);
form form_key(uint32_t key);
/* *r = a * x + b * y, false when it does not fit (too many terms, or a coefficient overflows).
 * r may be x or y. */
bool form_combine(form *r, int64_t a, const form *x, int64_t b, const form *y);
bool form_add_const(form *r, int64_t c);
int64_t form_coefficient(const form *x, uint32_t key);
/* *r = x with key replaced by y / scale, all times scale / gcd(scale, coefficient); scale > 0.
 * So  r <= 0  if and only if  x <= 0  after the replacement. */
bool form_replace(form *r, const form *x, uint32_t key, const form *y, int64_t scale);
bool form_equal(const form *x, const form *y);
int64_t gcd_of(int64_t x, int64_t y); /* not negative; gcd(0, x) = |x| */

#endif
