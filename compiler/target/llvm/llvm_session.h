#ifndef TW_TARGET_LLVM_SESSION_H
#define TW_TARGET_LLVM_SESSION_H
/* One use of LLVM by one thread: context, module, target machine, and what must happen when LLVM
 * fails (llvm_trouble.h): the context of that compile is then abandoned.
 *
 * Threads: any number of sessions at a time, each of one thread. */
#include "compiler/target/llvm/llvm_build.h"
#include "compiler/target/llvm/llvm_trouble.h"
#include "tilewright.h"
#include <llvm-c/TargetMachine.h>

typedef struct llvm_session {
    ll_cx cx;
    LLVMTargetMachineRef machine;
    LLVMMemoryBufferRef buffer;
    llvm_trouble trouble;
} llvm_session;

/* Runs fn in a session whose module is empty, and closes the session whatever happens.
 * Returns what fn returned or threw; a problem that LLVM reported gives TW_E_INTERNAL and its text
 * in the last error, memory that LLVM did not find TW_E_NOMEM. Nests in guard_run. */
tw_status llvm_session_run(const char *module, tw_status (*fn)(llvm_session *s, void *arg),
                           void *arg);

/* Code is generated for this machine: LLVM's names. */
typedef struct llvm_machine {
    const char *triple;   /* NULL: this machine's */
    const char *cpu;
    const char *features; /* "+fma,..." or "" */
} llvm_machine;

enum llvm_output { LLVM_OUTPUT_IR, LLVM_OUTPUT_ASM, LLVM_OUTPUT_OBJECT };
/* Chooses machine and data layout; before the module is filled. */
void llvm_session_target(llvm_session *s, const llvm_machine *m);
/* Verifies the module and prints or compiles it. The result lives in a. */
tw_status llvm_session_emit(llvm_session *s, enum llvm_output what, arena *a, const char **data,
                            size_t *size);

/* Makes LLVM's native target and NVPTX known, once. */
void llvm_initialize(void);

#endif
