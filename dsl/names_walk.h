#ifndef TW_DSL_NAMES_WALK_H
#define TW_DSL_NAMES_WALK_H
/* One walk over the tree, declarations in order: what the files of names share.
 *
 *   names.c        the file, its kernels and their parameters
 *   names_stmt.c   statements and functions
 *   names_expr.c   expressions, calls, and what they use and assign
 *
 * A region is the body of a loop, branch or function. The regions around a place form a stack; an
 * assignment to v is noted in every region between that place and v's declaration, but not beyond
 * the body of a function: defining one assigns nothing, calling it does. */
#include "dsl/names.h"
#include "dsl/scope.h"

typedef struct region {
    decl_list *assigned;
    bool is_fn;
} region;

typedef struct resolver {
    scope names;
    arena *a;
    intern *strings;
    diag_list *diags;
    unit_ast *unit;
    VEC(region) regions;
    decl *top;          /* the declaration of the file that is walked */
    const decl *scalar; /* whose default is walked, or NULL */
    bool compares;      /* the name at hand is an operand of == or !=, and may be a function */
} resolver;

/* ---- names_expr.c ---- */
void names_declare(resolver *r, decl *d); /* from here on, in the innermost scope */
void names_open_region(resolver *r, decl_list *assigned, bool is_fn);
void names_close_region(resolver *r);
void names_note_assigned(resolver *r, decl *d);
decl *names_use(resolver *r, expr *e);   /* NULL after a diagnostic */
void names_expr(resolver *r, expr *e);   /* e may be NULL */
void names_passed(resolver *r, expr *e); /* e, where the name of a function must stand */
const char *names_of_builtin(int id);

/* ---- names_stmt.c ---- */
void names_stmt(resolver *r, stmt *s);
void names_fn(resolver *r, decl *d);

#endif
