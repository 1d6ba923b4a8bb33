#ifndef TW_RANDOM_KERNEL_H
#define TW_RANDOM_KERNEL_H
/* Random kernels whose results do not depend on the order of additions: floats are small whole
 * numbers throughout, so every target must give the same bits.
 *
 *   kernel random(x: f32[XM, XN], w: i32[WM, WN],
 *                 out yf: f32[F, R, C], out yi: i32[I, R, C], n: i32)
 *
 * x and w hold whole numbers from -8 to 8; n is 0 at run time. Each program stores a few tiles in
 * planes of its own of yf and yi. In some, yi is inout, for atomics; some extend a kernel before
 * them in the text, and are the last one there. */
#include "tests/support/numeric_case.h"

enum { RANDOM_PLANES = 8, RANDOM_EXTENT = 40, RANDOM_PROGRAMS = 2, RANDOM_TEXT = 16384 };

/* Writes the text of kernel number `seed`. */
void random_kernel(uint64_t seed, char text[RANDOM_TEXT]);

#endif
