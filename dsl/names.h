#ifndef TW_DSL_NAMES_H
#define TW_DSL_NAMES_H
/* Names: binds every use to its declaration, gives each declaration a slot, and computes which
 * outer vars a loop, branch or function assigns, also through the local functions it calls. All
 * that can be said about a text without compile-time values is said here, once, at load. */
#include "dsl/ast.h"

enum builtin_id {
#define BUILTIN(id, name, least, most, form) BUILTIN_##id,
#include "dsl/builtin.def"
    BUILTIN_COUNT
};

#define RESOLVE_MAX_ASSIGNED 256 /* outer vars that one loop, branch or function may assign */

void names_resolve(unit_ast *unit, arena *a, intern *names, diag_list *diags);
/* The same for a function that stands beside those of a resolved file. Others may be reading the
 * unit; one thread at a time may do this. */
void names_resolve_beside(unit_ast *unit, decl *fn, arena *a, intern *names, diag_list *diags);
/* Reports and returns false when tensor d may not be read or written as the built-in does. */
bool names_check_direction(diag_list *diags, const decl *d, span where, int called);

#endif
