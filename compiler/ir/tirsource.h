#ifndef TW_IR_TIRSOURCE_H
#define TW_IR_TIRSOURCE_H
/* Tile IR text -> kernel_source. What a .tir file holds is lowered already: the signature comes
 * from the module, has no compile-time parameters and no tuning space, and every lowering is a
 * copy. */
#include "compiler/ir/irsource.h"

/* TW_E_SOURCE with diagnostics (also for a file without a launch function), TW_E_LIMIT, TW_E_NOMEM.
 * Owns its memory; text is copied; diags do not refer to it. Free with (*out)->destroy. */
tw_status tir_source_new(const char *name, const char *text, size_t len, diag_list *diags,
                         kernel_source **out);

#endif
