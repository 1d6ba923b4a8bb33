#ifndef TW_PASSES_FACTS_DRAFT_H
#define TW_PASSES_FACTS_DRAFT_H
/* A value being described, before its type is asked whether it holds it: bounds, a divisor and a
 * form of the exact result, as if nothing wrapped. One function an operation. */
#include "compiler/passes/facts_core.h"

typedef struct draft {
    wide lo, hi;
    int64_t multiple; /* as in struct fact */
    bool has_form;
    form lin;
} draft;

draft draft_any(enum dtype t); /* whatever t holds */
draft draft_between(wide lo, wide hi);
draft draft_constant(int64_t c);
bool draft_is_const(const draft *d);

/* a * x + b * y, where a and b are 1 or -1 */
draft draft_combine(int64_t a, const draft *x, int64_t b, const draft *y);
draft draft_product(const draft *x, const draft *y);
draft draft_quotient(const draft *x, const draft *y);
draft draft_remainder(const facts *f, const draft *x, const draft *y);
/* bits, t: of the operands; counts outside of 0 .. bits - 1 are taken modulo bits. */
draft draft_shift_right(const draft *x, const draft *y, int bits);
draft draft_shift_left(const draft *x, const draft *y, int bits, enum dtype t);
draft draft_and(const draft *x, const draft *y, enum dtype t);
draft draft_or(const draft *x, const draft *y, enum dtype t); /* and xor */
draft draft_either(const draft *x, const draft *y);           /* one of the two, whichever it is */
draft draft_extreme(enum ir_opcode code, const draft *x, const draft *y); /* OP_MAX or OP_MIN */
draft draft_absolute(const draft *x);

/* Largest power of two that divides x; that of 0 is 2^62. */
int64_t draft_power_of_two(int64_t x);
wide wide_min(wide x, wide y);
wide wide_max(wide x, wide y);

#endif
