#ifndef TW_DSL_IMPORT_H
#define TW_DSL_IMPORT_H
/* The files that a text imports, also through others: each once, in the order found. */
#include "dsl/ast.h"
#include "dsl/dsl.h"

#define IMPORT_MAX 64 /* files of one unit */

typedef struct import {
    const char *path; /* as seen from where the first file's name is */
    span where;       /* who asks for it first */
} import;
typedef VEC(import) import_list;

/* Adds what a parsed file imports, but for the first file itself. */
tw_status imports_of(import_list *list, arena *a, const char *first, const unit_ast *unit);
/* Reads import i; the caller frees *text with mem_free. TW_E_SOURCE, reported, when it cannot. Not
 * under guard_run. */
tw_status import_read(const dsl_reader *reader, const import_list *list, uint32_t i,
                      diag_list *diags, char **text, size_t *len);

#endif
