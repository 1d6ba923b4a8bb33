#ifndef TW_DSL_SIGNATURE_H
#define TW_DSL_SIGNATURE_H
/* What a caller sees of a kernel, taken from its head at load: parameters, dimensions, compile-time
 * parameters with their defaults, sets of tune parameters. */
#include "dsl/ast.h"

#define SIGNATURE_MAX_PARAMS                                                                       \
    32 /* tensors and scalars; brackets; tune parameters; dimensions: each */

/* Reports into diags; sig is usable only when nothing was reported. */
void signature_build(kernel_sig *sig, const unit_ast *unit, const kernel_ast *k, arena *a,
                     diag_list *diags);
/* Evaluates the constants of the file, so that their mistakes show at load. */
void signature_check_constants(const unit_ast *unit, arena *a, diag_list *diags);

#endif
