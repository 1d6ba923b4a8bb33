#include "compiler/target/llvm/llvm_loader.h"
#include "compiler/base/check.h"
#include "compiler/base/error.h"
#include "compiler/base/mem.h"
#include "compiler/target/llvm/llvm_session.h"
#include "compiler/target/llvm/llvm_trouble.h"
#include <errno.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One JIT a process, made at the first load and kept. Each object has a library of its own, so that
 * two objects may define one name. LLVM cannot delete a library: an emptied one is used again.
 * A JIT that gave up in the middle of something may hold its own locks: it is left behind with the
 * code that it holds, and the next load makes another. */
struct llvm_loaded {
    LLVMOrcLLJITRef owner;
    LLVMOrcJITDylibRef library;
};

enum { MAX_EMPTIED = 64 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LLVMOrcLLJITRef jit;
static LLVMOrcJITDylibRef emptied[MAX_EMPTIED];
static unsigned nemptied, nloaded, serial;
static bool disposed_at_exit;
static char detail[256]; /* the first thing that the JIT reported; its errors only refer to it */

/* LLVM's own texts come from strerror. */
static bool says(const char *why, int number)
{
    return strstr(why, strerror(number)) != NULL;
}

static tw_status explain(const char *why)
{
    if (says(why, ENOMEM))
        return error_set(TW_E_NOMEM, "loading machine code: %s", why);
    if (says(why, EACCES) || says(why, EPERM))
        return error_diag(TW_E_UNSUPPORTED, DIAG_UNSUPPORTED,
                          "MemoryDenyWriteExecute of systemd, PR_SET_MDWE and SELinux's execmem "
                          "forbid it; device 'interp' needs none of it",
                          "this process may not make memory executable: %s", why);
    return error_set(TW_E_INTERNAL, "loading machine code: %s", why);
}

/* Takes e; an error is then the thread's last. */
static tw_status status_of(LLVMErrorRef e)
{
    if (!e)
        return TW_OK;
    char *text = LLVMGetErrorMessage(e);
    tw_status st = explain(detail[0] ? detail : text);
    LLVMDisposeErrorMessage(text);
    detail[0] = '\0';
    return st;
}

static void on_report(void *arg, LLVMErrorRef e)
{
    char *text = LLVMGetErrorMessage(e);

    (void)arg;
    if (!detail[0])
        snprintf(detail, sizeof detail, "%s", text);
    LLVMDisposeErrorMessage(text);
}

/* When the process ends or this library is unloaded. Where something is loaded still, others may
 * run it and unload it later. */
static void dispose_jit(void)
{
    if (pthread_mutex_trylock(&lock))
        return;
    if (jit && nloaded == 0) {
        LLVMErrorRef e = LLVMOrcDisposeLLJIT(jit);
        if (e)
            LLVMConsumeError(e);
        jit = NULL;
        nemptied = 0;
    }
    pthread_mutex_unlock(&lock);
}

static tw_status make_jit(void)
{
    if (jit)
        return TW_OK;
    TRY(status_of(LLVMOrcCreateLLJIT(&jit, LLVMOrcCreateLLJITBuilder())));
    LLVMOrcExecutionSessionSetErrorReporter(LLVMOrcLLJITGetExecutionSession(jit), on_report, NULL);
    if (!disposed_at_exit)
        disposed_at_exit = atexit(dispose_jit) == 0;
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

typedef struct loading {
    llvm_loaded *l;
    const void *bytes;
    size_t size;
    const char *symbol;
    void *entry;
} loading;

/* The JIT has no threads of its own, so the lookup has ended when it returns. */
static tw_status look_up(void *arg)
{
    loading *c = arg;
    found f = {0};
    LLVMOrcCJITDylibSearchOrderElement where = {c->l->library,
                                                LLVMOrcJITDylibLookupFlagsMatchAllSymbols};
    LLVMOrcCLookupSetElement what = {LLVMOrcLLJITMangleAndIntern(c->l->owner, c->symbol),
                                     LLVMOrcSymbolLookupFlagsRequiredSymbol};

    LLVMOrcExecutionSessionLookup(LLVMOrcLLJITGetExecutionSession(c->l->owner),
                                  LLVMOrcLookupKindStatic, &where, 1, &what, 1, on_found, &f);
    TRY(status_of(f.error));
    c->entry = (void *)(uintptr_t)f.address;
    return c->entry ? TW_OK : error_set(TW_E_INTERNAL, "no symbol '%s' in machine code", c->symbol);
}

static tw_status add(void *arg)
{
    loading *c = arg;

    TRY(make_jit());
    c->l->library = take_library();
    c->l->owner = jit;
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(c->bytes, c->size, c->symbol);
    TRY(status_of(LLVMOrcLLJITAddObjectFile(jit, c->l->library, buffer)));
    return look_up(c);
}

static tw_status clear(void *arg)
{
    llvm_loaded *l = arg;
    LLVMErrorRef e = LLVMOrcJITDylibClear(l->library);

    if (e)
        LLVMConsumeError(e);
    else if (nemptied < MAX_EMPTIED)
        emptied[nemptied++] = l->library;
    return TW_OK;
}

/* With lock. */
static tw_status in_jit(guard_fn fn, void *arg)
{
    llvm_trouble t = {0};
    tw_status st = llvm_protected(&t, fn, arg);

    if (!t.abandoned)
        return st;
    jit = NULL;
    nemptied = 0;
    detail[0] = '\0';
    return t.problem[0] ? error_set(st, "loading machine code: LLVM: %s", t.problem)
                        : error_set(st, "out of memory: LLVM found none for machine code");
}

static void release(llvm_loaded *l)
{
    if (l->owner && l->owner == jit)
        (void)in_jit(clear, l);
    mem_free(l);
}

tw_status llvm_load(const void *bytes, size_t size, const char *symbol, llvm_loaded **out,
                    void **entry)
{
    llvm_loaded *l = mem_alloc(sizeof *l);
    loading c = {l, bytes, size, symbol, NULL};

    *out = NULL;
    *entry = NULL;
    if (!l)
        return error_set(TW_E_NOMEM, "out of memory");
    *l = (llvm_loaded){NULL, NULL};
    llvm_initialize();
    pthread_mutex_lock(&lock);
    tw_status st = in_jit(add, &c);
    if (st != TW_OK)
        release(l);
    else
        nloaded++, *out = l, *entry = c.entry;
    pthread_mutex_unlock(&lock);
    return st;
}

tw_status llvm_find(llvm_loaded *l, const char *symbol, void **entry)
{
    loading c = {l, NULL, 0, symbol, NULL};

    *entry = NULL;
    pthread_mutex_lock(&lock);
    tw_status st = l->owner == jit
                       ? in_jit(look_up, &c)
                       : error_set(TW_E_NOMEM, "'%s' was lost when memory ran out", symbol);
    pthread_mutex_unlock(&lock);
    *entry = c.entry;
    return st;
}

void llvm_unload(llvm_loaded *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&lock);
    nloaded--;
    release(l);
    pthread_mutex_unlock(&lock);
}

void llvm_loader_hold(void)
{
    pthread_mutex_lock(&lock);
}

void llvm_loader_let_go(void)
{
    pthread_mutex_unlock(&lock);
}
