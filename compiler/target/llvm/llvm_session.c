#include "compiler/target/llvm/llvm_session.h"
#include "compiler/base/check.h"
#include "compiler/base/error.h"
#include "compiler/target/llvm/llvm_loader.h"
#include <llvm-c/Analysis.h>
#include <llvm-c/Target.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ---- once a process -------------------------------------------------------------------------- */

static pthread_once_t targets_once = PTHREAD_ONCE_INIT;

/* A child has its parent's locks as they were: held by threads that it does not have. */
static void before_fork(void)
{
    llvm_loader_hold();
    llvm_trouble_hold();
}

static void after_fork(void)
{
    llvm_trouble_let_go();
    llvm_loader_let_go();
}

static void initialize_targets(void)
{
    (void)pthread_atfork(before_fork, after_fork, after_fork);
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

static void on_diagnostic(LLVMDiagnosticInfoRef info, void *arg)
{
    llvm_session *s = arg;

    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || s->trouble.problem[0])
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    snprintf(s->trouble.problem, sizeof s->trouble.problem, "%s", text);
    LLVMDisposeMessage(text);
}

/* ---- a session ------------------------------------------------------------------------------- */

typedef struct session_call {
    llvm_session *s;
    const char *module;
    tw_status (*fn)(llvm_session *s, void *arg);
    void *arg;
} session_call;

static tw_status call_guarded(void *arg)
{
    session_call *c = arg;

    ll_open(&c->s->cx, LLVMContextCreate(), c->module);
    LLVMContextSetDiagnosticHandler(c->s->cx.context, on_diagnostic, c->s);
    return c->fn(c->s, c->arg);
}

static void dispose(llvm_session *s)
{
    if (s->trouble.abandoned)
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
    llvm_session s = {0};
    session_call call = {&s, module, fn, arg};

    llvm_initialize();
    tw_status st = llvm_protected(&s.trouble, call_guarded, &call);
    dispose(&s);
    if (s.trouble.problem[0])
        return error_set(TW_E_INTERNAL, "LLVM: %s", s.trouble.problem);
    if (s.trouble.abandoned)
        return error_set(st, "out of memory: LLVM found none");
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
        snprintf(s->trouble.problem, sizeof s->trouble.problem, "%s", why);
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
        snprintf(s->trouble.problem, sizeof s->trouble.problem, "%s", why);
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
        snprintf(s->trouble.problem, sizeof s->trouble.problem, "%s", why);
        LLVMDisposeMessage(why);
        return TW_E_INTERNAL;
    }
    *size = LLVMGetBufferSize(s->buffer);
    *data = arena_strndup(a, LLVMGetBufferStart(s->buffer), *size);
    return s->trouble.problem[0] ? TW_E_INTERNAL : TW_OK;
}
