#ifndef TW_DSL_EXTEND_H
#define TW_DSL_EXTEND_H
/* Kernels that extend another. Before names are resolved, such a kernel becomes a whole one:
 *
 *   brackets, parameters   those of the base, then its own; one of the same name takes the place
 *   require                those of the base, then its own
 *   tune, grid             its own or, without any, those of the base
 *   body                   { its own statements; { the body of the base } }
 *
 * A function in the body takes the place of the base's parameter of that name. The base is read
 * anew from its text each time, since resolving writes into a tree. */
#include "dsl/ast.h"

typedef VEC(const unit_ast *) unit_list;

/* Completes every kernel of units[0]; the kernels of all units may be extended. Under guard_run. */
void extend_kernels(const unit_list *units, arena *a, intern *names, diag_list *diags);

#endif
