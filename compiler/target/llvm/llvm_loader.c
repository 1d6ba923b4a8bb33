#include "compiler/target/llvm/llvm_loader.h"
#include "compiler/base/error.h"
#include "compiler/base/mem.h"
#include "compiler/target/llvm/llvm_session.h"
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <pthread.h>
#include <stdio.h>

/* One JIT a process, made at the first load and kept. Each object has a library of its own, so that
 * two objects may define one name. LLVM cannot delete a library: an emptied one is used again. */
struct llvm_loaded {
    LLVMOrcJITDylibRef library;
};

enum { MAX_EMPTIED = 64 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LLVMOrcLLJITRef jit;
static LLVMOrcJITDylibRef emptied[MAX_EMPTIED];
static unsigned nemptied, serial;
static char detail[256]; /* the first thing that the JIT reported; its errors only refer to it */

/* Takes e; true when it was an error, which is then the thread's last. */
static bool failed(LLVMErrorRef e)
{
    if (!e)
        return false;
    char *text = LLVMGetErrorMessage(e);
    (void)error_set(TW_E_INTERNAL, "loading machine code: %s", detail[0] ? detail : text);
    LLVMDisposeErrorMessage(text);
    detail[0] = '\0';
    return true;
}

static void on_report(void *arg, LLVMErrorRef e)
{
    char *text = LLVMGetErrorMessage(e);

    (void)arg;
    if (!detail[0])
        snprintf(detail, sizeof detail, "%s", text);
    LLVMDisposeErrorMessage(text);
}

static tw_status make_jit(void)
{
    if (jit)
        return TW_OK;
    llvm_initialize();
    if (failed(LLVMOrcCreateLLJIT(&jit, LLVMOrcCreateLLJITBuilder())))
        return TW_E_INTERNAL;
    LLVMOrcExecutionSessionSetErrorReporter(LLVMOrcLLJITGetExecutionSession(jit), on_report, NULL);
    return TW_OK;
}

static LLVMOrcJITDylibRef take_library(void)
{
    char name[32];

    if (nemptied)
        return emptied[--nemptied];
    snprintf(name, sizeof name, "tw.%u", serial++);
    return LLVMOrcExecutionSessionCreateBareJITDylib(LLVMOrcLLJITGetExecutionSession(jit), name);
}

static void release(llvm_loaded *l)
{
    LLVMErrorRef e = LLVMOrcJITDylibClear(l->library);

    if (e)
        LLVMConsumeError(e);
    else if (nemptied < MAX_EMPTIED)
        emptied[nemptied++] = l->library;
    mem_free(l);
}

typedef struct found {
    LLVMErrorRef error;
    LLVMOrcExecutorAddress address;
} found;

static void on_found(LLVMErrorRef e, LLVMOrcCSymbolMapPairs symbols, size_t n, void *arg)
{
    found *f = arg;

    f->error = e;
    if (!e && n == 1)
        f->address = symbols[0].Sym.Address;
}

/* The JIT has no threads of its own, so the lookup has ended when it returns. */
static tw_status look_up(llvm_loaded *l, const char *symbol, void **entry)
{
    found f = {0};
    LLVMOrcCJITDylibSearchOrderElement where = {l->library,
                                                LLVMOrcJITDylibLookupFlagsMatchAllSymbols};
    LLVMOrcCLookupSetElement what = {LLVMOrcLLJITMangleAndIntern(jit, symbol),
                                     LLVMOrcSymbolLookupFlagsRequiredSymbol};

    LLVMOrcExecutionSessionLookup(LLVMOrcLLJITGetExecutionSession(jit), LLVMOrcLookupKindStatic,
                                  &where, 1, &what, 1, on_found, &f);
    if (failed(f.error))
        return TW_E_INTERNAL;
    *entry = (void *)(uintptr_t)f.address;
    return *entry ? TW_OK : error_set(TW_E_INTERNAL, "no symbol '%s' in machine code", symbol);
}

static tw_status load_locked(const void *bytes, size_t size, const char *symbol, llvm_loaded **out,
                             void **entry)
{
    tw_status st = make_jit();

    if (st != TW_OK)
        return st;
    llvm_loaded *l = mem_alloc(sizeof *l);
    if (!l)
        return error_set(TW_E_NOMEM, "out of memory");
    l->library = take_library();
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes, size, symbol);
    st = failed(LLVMOrcLLJITAddObjectFile(jit, l->library, buffer)) ? TW_E_INTERNAL : TW_OK;
    if (st == TW_OK)
        st = look_up(l, symbol, entry);
    if (st != TW_OK)
        release(l);
    else
        *out = l;
    return st;
}

tw_status llvm_load(const void *bytes, size_t size, const char *symbol, llvm_loaded **out,
                    void **entry)
{
    *out = NULL;
    *entry = NULL;
    pthread_mutex_lock(&lock);
    tw_status st = load_locked(bytes, size, symbol, out, entry);
    pthread_mutex_unlock(&lock);
    return st;
}

tw_status llvm_find(llvm_loaded *l, const char *symbol, void **entry)
{
    pthread_mutex_lock(&lock);
    tw_status st = look_up(l, symbol, entry);
    pthread_mutex_unlock(&lock);
    return st;
}

void llvm_unload(llvm_loaded *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&lock);
    release(l);
    pthread_mutex_unlock(&lock);
}
