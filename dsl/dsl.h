#ifndef TW_DSL_H
#define TW_DSL_H
/* Kernel text -> kernel_source. docs/LANGUAGE.md is the specification.
 *
 *   text -> tokens (lex) -> AST (parse) -> names resolved (names)  | once, at load
 *        -> elaborate: one walk per set of compile-time values that checks types and shapes and
 *           builds tile IR through irbuild. Checking and lowering are one walk because types depend
 *           on compile-time values, dead arms are not checked, and a local function is checked
 *           where it is inlined.
 */
#include "compiler/ir/irsource.h"

typedef struct dsl_unit dsl_unit; /* a parsed file; immutable once loaded */

/* Lexes, parses and resolves. On TW_E_SOURCE *out is NULL and diags says why; warnings may come
 * with TW_OK. The unit owns its memory. */
tw_status dsl_load(const char *name, const char *text, size_t len, diag_list *diags,
                   dsl_unit **out);
/* The same with imports, which dsl_load refuses: read gives the text of a file, to be freed with
 * mem_free, or why it cannot (a static text). Paths are relative to the file that imports. */
typedef struct dsl_reader {
    tw_status (*read)(void *user, const char *path, char **text, size_t *len, const char **why);
    void *user;
} dsl_reader;
tw_status dsl_load_from(const dsl_reader *reader, const char *name, const char *text, size_t len,
                        diag_list *diags, dsl_unit **out);
void dsl_unit_destroy(dsl_unit *u);
size_t dsl_kernel_count(const dsl_unit *u);
const char *dsl_kernel_name(const dsl_unit *u, size_t i);
/* The source of kernel i; owned by the unit. */
const kernel_source *dsl_kernel(const dsl_unit *u, size_t i);

#endif
