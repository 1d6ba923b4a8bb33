#include "compiler/target/llvm/llvm_session.h"
#include "compiler/base/check.h"
#include "compiler/base/error.h"
#include "compiler/base/guard.h"
#include <llvm-c/Analysis.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Target.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ---- once a process -------------------------------------------------------------------------- */

static pthread_once_t targets_once = PTHREAD_ONCE_INIT;

static void initialize_targets(void)
{
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    LLVMInitializeNativeAsmParser();
}

void llvm_initialize(void)
{
    pthread_once(&targets_once, initialize_targets);
}

/* ---- LLVM's errors --------------------------------------------------------------------------- */

/* The fatal handler belongs to the process, and an application may have its own LLVM: ours is
 * there only while one of our sessions is. */
static pthread_mutex_t handler_lock = PTHREAD_MUTEX_INITIALIZER;
static int handler_users;
static _Thread_local llvm_session *innermost;

static void on_fatal(const char *reason)
{
    llvm_session *s = innermost;

    if (!s || !guard_active())
        return; /* not ours: LLVM does what it does without a handler */
    snprintf(s->problem, sizeof s->problem, "%s", reason);
    s->fatal = true;
    guard_throw(TW_E_INTERNAL);
}

static void watch_fatal(int change)
{
    pthread_mutex_lock(&handler_lock);
    if (change > 0 && handler_users == 0)
        LLVMInstallFatalErrorHandler(on_fatal);
    handler_users += change;
    if (handler_users == 0)
        LLVMResetFatalErrorHandler();
    pthread_mutex_unlock(&handler_lock);
}

static void on_diagnostic(LLVMDiagnosticInfoRef info, void *arg)
{
    llvm_session *s = arg;

    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || s->problem[0])
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    snprintf(s->problem, sizeof s->problem, "%s", text);
    LLVMDisposeMessage(text);
}

/* ---- a session ------------------------------------------------------------------------------- */

typedef struct session_call {
    llvm_session *s;
    tw_status (*fn)(llvm_session *s, void *arg);
    void *arg;
} session_call;

static tw_status call_guarded(void *arg)
{
    session_call *c = arg;

    return c->fn(c->s, c->arg);
}

static void dispose(llvm_session *s)
{
    if (s->fatal)
        return;
    if (s->buffer)
        LLVMDisposeMemoryBuffer(s->buffer);
    LLVMDisposeBuilder(s->cx.b);
    LLVMDisposeModule(s->cx.module);
    if (s->machine)
        LLVMDisposeTargetMachine(s->machine);
    LLVMContextDispose(s->cx.context);
}

tw_status llvm_session_run(const char *module, tw_status (*fn)(llvm_session *s, void *arg),
                           void *arg)
{
    llvm_session s = {.outer = innermost};
    session_call call = {&s, fn, arg};

    llvm_initialize();
    watch_fatal(1);
    ll_open(&s.cx, LLVMContextCreate(), module);
    LLVMContextSetDiagnosticHandler(s.cx.context, on_diagnostic, &s);
    innermost = &s;
    tw_status st = guard_run(call_guarded, &call);
    innermost = s.outer;
    dispose(&s);
    watch_fatal(-1);
    if (s.problem[0])
        st = error_set(TW_E_INTERNAL, "LLVM: %s", s.problem);
    return st;
}

static LLVMTargetMachineRef machine_of(LLVMTargetRef target, const char *triple,
                                       const llvm_machine *m)
{
    LLVMTargetMachineOptionsRef options = LLVMCreateTargetMachineOptions();

    LLVMTargetMachineOptionsSetCPU(options, m->cpu);
    LLVMTargetMachineOptionsSetFeatures(options, m->features);
    LLVMTargetMachineOptionsSetCodeGenOptLevel(options, LLVMCodeGenLevelDefault);
    bool is_gpu = strncmp(triple, "nvptx", 5) == 0;
    LLVMTargetMachineOptionsSetRelocMode(options, is_gpu ? LLVMRelocDefault : LLVMRelocPIC);
    LLVMTargetMachineRef machine = LLVMCreateTargetMachineWithOptions(target, triple, options);
    LLVMDisposeTargetMachineOptions(options);
    return machine;
}

static void use_machine(llvm_session *s, const char *triple)
{
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(s->machine);

    LLVMSetModuleDataLayout(s->cx.module, layout);
    LLVMDisposeTargetData(layout);
    LLVMSetTarget(s->cx.module, triple);
}

void llvm_session_target(llvm_session *s, const llvm_machine *m)
{
    LLVMTargetRef target;
    char *host = LLVMGetDefaultTargetTriple(), *why = NULL;
    const char *triple = m->triple ? m->triple : host;

    if (LLVMGetTargetFromTriple(triple, &target, &why)) {
        snprintf(s->problem, sizeof s->problem, "%s", why);
        LLVMDisposeMessage(why);
    } else {
        s->machine = machine_of(target, triple, m);
        use_machine(s, triple);
    }
    LLVMDisposeMessage(host);
    if (!s->machine)
        guard_throw(TW_E_INTERNAL);
}

static tw_status verify(llvm_session *s)
{
    char *why = NULL;
    bool broken = LLVMVerifyModule(s->cx.module, LLVMReturnStatusAction, &why);

    if (broken)
        snprintf(s->problem, sizeof s->problem, "%s", why);
    LLVMDisposeMessage(why);
    return broken ? TW_E_INTERNAL : TW_OK;
}

static tw_status print_module(llvm_session *s, arena *a, const char **data, size_t *size)
{
    char *text = LLVMPrintModuleToString(s->cx.module);

    s->buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "ll");
    LLVMDisposeMessage(text);
    *size = LLVMGetBufferSize(s->buffer);
    *data = arena_strndup(a, LLVMGetBufferStart(s->buffer), *size);
    return TW_OK;
}

tw_status llvm_session_emit(llvm_session *s, enum llvm_output what, arena *a, const char **data,
                            size_t *size)
{
    char *why = NULL;

    TRY(verify(s));
    if (what == LLVM_OUTPUT_IR)
        return print_module(s, a, data, size);
    LLVMCodeGenFileType type = what == LLVM_OUTPUT_ASM ? LLVMAssemblyFile : LLVMObjectFile;
    if (LLVMTargetMachineEmitToMemoryBuffer(s->machine, s->cx.module, type, &why, &s->buffer)) {
        snprintf(s->problem, sizeof s->problem, "%s", why);
        LLVMDisposeMessage(why);
        return TW_E_INTERNAL;
    }
    *size = LLVMGetBufferSize(s->buffer);
    *data = arena_strndup(a, LLVMGetBufferStart(s->buffer), *size);
    return s->problem[0] ? TW_E_INTERNAL : TW_OK;
}
