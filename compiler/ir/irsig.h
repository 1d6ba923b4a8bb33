#ifndef TW_IR_SIG_H
#define TW_IR_SIG_H
/* A signature and values for its compile-time parameters -> the two functions of a module, their
 * dimensions and parameters in the order that the runtime expects: symbols are the first
 * dimensions, the visible parameters come first, then the hidden ones, then the `given` ones of a
 * launch function. Every source that knows a kernel_sig makes its functions here. Runs under
 * guard_run. */
#include "compiler/ir/ir.h"
#include "compiler/ir/irsource.h"

/* The extent of a dimension that is no symbol. False when it is below 0 or above 2^31 - 1, which
 * the source reports as it sees fit before it asks for functions. */
bool sig_extent(const kernel_sig *sig, const sig_dim *dim, const ir_binding *binding, uint32_t n,
                int64_t *extent);

/* A module of level 1 whose kernel and launch function have parameters and an empty body. binding
 * has every bracket parameter; all extents are in range. */
ir_module *sig_module(const kernel_sig *sig, arena *a, intern *names, const ir_binding *binding,
                      uint32_t n);

#endif
