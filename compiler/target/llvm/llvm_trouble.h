#ifndef TW_TARGET_LLVM_TROUBLE_H
#define TW_TARGET_LLVM_TROUBLE_H
/* LLVM gives up by ending the process: at a fatal error, and where it finds no memory. Here either
 * ends one call of ours instead, with TW_E_INTERNAL or TW_E_NOMEM. What LLVM had in hand is then
 * abandoned (leaked), because its destructors may not be trusted and its locks may be held.
 *
 * Threads: any number of calls at a time. Other users of LLVM and of operator new in this process
 * see no difference: what is not ours ends as it would without us. */
#include "compiler/base/guard.h"
#include <stdbool.h>

typedef struct llvm_trouble {
    char problem[512]; /* what LLVM said first; "" = nothing */
    bool abandoned;    /* LLVM's objects of this call may not be touched any more */
    struct llvm_trouble *outer;
} llvm_trouble;

/* guard_run(fn, arg), with *t (zeroes before) telling what LLVM did. Nests. */
tw_status llvm_protected(llvm_trouble *t, guard_fn fn, void *arg);

/* For a fork: no call of another thread is changing handlers in between. */
void llvm_trouble_hold(void);
void llvm_trouble_let_go(void);

#endif
