#ifndef TW_TEST_PTX_RIG_H
#define TW_TEST_PTX_RIG_H
/* Tile IR of level 2 compiled to PTX and run by ptx_machine.h, beside the interpreter on the same
 * arguments. What a text says about itself in comments:
 *   # dims: N=1500 M=64           the run-time dimensions
 *   # scalars: s=1.5              scalar parameters (others are 1)
 *   # grid: 2 1 1
 *   # tolerance: 1e-5             error, as a part of the largest element's size; default 0
 *   # range: 100                  elements of inputs lie between minus this and this (2)
 * Tensors are dense, inputs random, outputs poisoned. */
#include <stddef.h>

/* NULL, or what is wrong (in a static buffer). */
const char *ptx_rig_run(const char *name, const char *text, const char *path);

#endif
