#ifndef TW_TESTS_RANDOM_BUILD_H
#define TW_TESTS_RANDOM_BUILD_H
/* Calls of tilewright_ir.h as bytes say: any call, in any order, with operands that are mostly
 * values and sometimes not. */
#include "tilewright_ir.h"

/* Builds and compiles (to tile IR) such a kernel; *calls (may be NULL): how many came before the
 * first wrong one. */
tw_status random_build(tw_context *cx, const uint8_t *bytes, size_t size, unsigned *calls);

#endif
