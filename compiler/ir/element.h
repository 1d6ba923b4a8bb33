#ifndef TW_IR_ELEMENT_H
#define TW_IR_ELEMENT_H
/* Elements as they lie in memory, in the host's byte order; p needs no alignment. */
#include "compiler/ir/ireval.h"

/* The value of one: floats in .f, exactly; integers in .i, an i1 as 0 or 1. */
ir_scalar element_read(enum dtype t, const void *p);
/* Rounds a float to t; of an integer the low bits are stored. */
void element_write(enum dtype t, void *p, ir_scalar v);

#endif
