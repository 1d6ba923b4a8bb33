#ifndef TW_DSL_FN_TEXT_H
#define TW_DSL_FN_TEXT_H
/* The functions that a compile-time parameter such as visible: fn(b, h, row, col) may be.
 *
 * A value of it is a number: that of a function of the file, in the order of unit_ast.top, or one
 * beyond these for a function that a caller gave as text:
 *   col <= row            an expression over the parameter's own names
 *   { let d = row - col; return d >= 0 && d < 512; }     a body
 * Such texts see what is declared in the file. They are kept as long as the unit; they are found
 * without a lock, and added under one. */
#include "dsl/ast.h"
#include <pthread.h>

#define FN_TEXT_MAX 1000        /* texts of one unit */
#define FN_TEXT_MAX_BYTES 16384 /* of one text */

typedef struct fn_text {
    struct fn_text *next; /* older */
    arena a;              /* owns the rest */
    const decl *param;
    const char *text;
    decl *fn;
    int64_t value;
} fn_text;

typedef struct fn_texts {
    _Atomic(fn_text *) newest;
    pthread_mutex_t lock;
    unit_ast *unit;
    intern *names;
} fn_texts;

void fn_texts_init(fn_texts *t, unit_ast *unit, intern *names);
void fn_texts_release(fn_texts *t);
/* The function that text means for param; see kernel_source.fn_value. */
tw_status fn_texts_value(fn_texts *t, const decl *param, const char *text, diag_list *diags,
                         int64_t *out);
/* NULL when there is no such value. */
const decl *fn_of_value(const unit_ast *unit, int64_t value);
const char *fn_value_text(const unit_ast *unit, int64_t value);
/* The value of a function of the file; -1 when it is none. */
int64_t fn_value_of(const unit_ast *unit, const decl *fn);

#endif
