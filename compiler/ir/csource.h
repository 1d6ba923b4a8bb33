#ifndef TW_IR_CSOURCE_H
#define TW_IR_CSOURCE_H
/* A kernel described by a tw_ir_kernel -> kernel_source. Its functions are called for each
 * lowering; what they built is verified, so that nothing wrong passes for a kernel. */
#include "compiler/ir/irsource.h"
#include "tilewright_ir.h"

/* Copies what def points to, but for user. Sets this thread's error: TW_E_ARG, TW_E_LIMIT,
 * TW_E_NOMEM. (*out)->destroy calls def->destroy only after csource_owns_user. */
tw_status csource_new(const tw_ir_kernel *def, kernel_source **out);
void csource_owns_user(kernel_source *src);

#endif
