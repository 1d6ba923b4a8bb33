#ifndef TW_TESTS_BUILT_KERNEL_H
#define TW_TESTS_BUILT_KERNEL_H
/* A kernel built from C around functions of a test: tensors x and y of T[M, N] and z of i32[N],
 * scalars s with a default and k, compile-time values T, MODE and FLAG, a tune parameter BLOCK in
 * {8, 16}. */
#include "tilewright_ir.h"

extern tw_context *built_cx;
void built_setup(void);
void built_teardown(void);

typedef void (*built_fn)(tw_ir *b);
typedef struct built_pair {
    built_fn launch, body; /* NULL: built_launch; nothing */
} built_pair;

/* Named "f"; p lives as long as the kernel. */
tw_ir_kernel built_kernel(built_pair *p);
void built_launch(tw_ir *b); /* s is 2 by default; M programs */

#endif
