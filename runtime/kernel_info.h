#ifndef TW_RUNTIME_KERNEL_INFO_H
#define TW_RUNTIME_KERNEL_INFO_H
#include "runtime/runtime.h"

/* Fills k->params from the signature, in k's arena. Under guard_run. */
void kernel_describe(tw_kernel *k);

#endif
