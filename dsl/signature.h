#ifndef TW_DSL_SIGNATURE_H
#define TW_DSL_SIGNATURE_H
/* What a caller sees of a kernel, taken from its head at load: parameters, dimensions, compile-time
 * parameters with their defaults, sets of tune parameters. */
#include "dsl/elaborate.h"

#define SIGNATURE_MAX_PARAMS                                                                       \
    32                        /* parameters; compile-time and tune parameters; dimensions: each    \
                               */
#define SIGNATURE_MAX_SET 256 /* values of one set */

/* cx evaluates constants: one for all kernels of a file. Reports into its diagnostics; sig is
 * usable only when nothing was reported. */
void signature_build(kernel_sig *sig, const kernel_ast *k, elab *cx);
/* Evaluates the constants of the file, so that their mistakes show at load. */
void signature_check_constants(const unit_ast *unit, elab *cx);

#endif
