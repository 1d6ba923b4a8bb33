#ifndef TW_DSL_SCOPE_H
#define TW_DSL_SCOPE_H
/* What names mean at one place of the text: a table from name to innermost declaration, and the
 * stack of scopes that restores it. */
#include "dsl/ast.h"

typedef struct scope_entry {
    const char *name;
    decl *decl; /* NULL: not visible here */
    bool quiet; /* not to be reported as unknown */
} scope_entry;

typedef struct scope {
    arena *a;
    diag_list *diags;
    scope_entry *slot; /* open addressing, by address of the name */
    uint32_t n, cap;
    decl_list declared;  /* in order; those of the open scopes */
    VEC(uint32_t) first; /* of each open scope, in declared */
} scope;

void scope_init(scope *s, arena *a, diag_list *diags);
void scope_open(scope *s);
void scope_close(scope *s);
decl *scope_find(const scope *s, const char *name); /* NULL when nothing declares it */
/* Reports a duplicate (and keeps the first) or, for a local that hides something, a warning. */
void scope_declare(scope *s, decl *d);
/* Makes d, declared elsewhere, known too, without a change to d: others may be reading it. */
void scope_show(scope *s, decl *d);
/* name may be declared by a statement that could not be read. */
void scope_doubt(scope *s, const char *name);
/* scope_find that reports an unknown name, with the nearest known one. */
decl *scope_need(scope *s, const char *name, span where);

#endif
