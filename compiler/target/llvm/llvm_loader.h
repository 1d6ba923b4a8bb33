#ifndef TW_TARGET_LLVM_LOADER_H
#define TW_TARGET_LLVM_LOADER_H
/* Puts object code of the CPU target into this process. The object may refer to nothing outside of
 * itself: there is no search of the process's symbols.
 *
 * Threads: any. Unload only what no thread runs. */
#include "tilewright.h"
#include <stddef.h>

typedef struct llvm_loaded llvm_loaded;

/* bytes are copied. *entry is the address of symbol. Fails with TW_E_NOMEM, TW_E_UNSUPPORTED
 * (memory may not be made executable), TW_E_INTERNAL (not an object of this machine, an undefined
 * symbol): tw_last_error says why. */
tw_status llvm_load(const void *bytes, size_t size, const char *symbol, llvm_loaded **out,
                    void **entry);
/* Another symbol of the same object. TW_E_INTERNAL: it has none of that name; TW_E_NOMEM. */
tw_status llvm_find(llvm_loaded *l, const char *symbol, void **entry);
void llvm_unload(llvm_loaded *l);

/* For a fork: no other thread is in the JIT in between, so that the child has it whole. */
void llvm_loader_hold(void);
void llvm_loader_let_go(void);

#endif
