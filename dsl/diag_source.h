#ifndef TW_DSL_DIAG_SOURCE_H
#define TW_DSL_DIAG_SOURCE_H
#include "compiler/base/diag.h"

/* Diagnostics outlive the text they speak of: what points into old points into a copy from now on,
 * which belongs to the diagnostics. */
void diags_keep_source(diag_list *diags, const source *old);

#endif
