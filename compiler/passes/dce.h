#ifndef TW_PASSES_DCE_H
#define TW_PASSES_DCE_H
#include "compiler/ir/ir.h"

/* What pass_dce does to one function; the number of ops and carried values removed. */
uint32_t dce_fn(ir_fn *fn, arena *scratch);

#endif
