#include "compiler/target/llvm/llvm_trouble.h"
#include <llvm-c/ErrorHandling.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

/* LLVM's C interface has no handler for memory that is not there, and C no name for operator new's:
 * these are functions of C++, by the names that the C++ ABI of Linux gives them. */
typedef void (*new_handler)(void);
typedef void (*bad_alloc_handler)(void *user, const char *reason, bool crash_report);
void llvm_install_bad_alloc(bad_alloc_handler handler, void *user) __asm__(
    "_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_");
void llvm_remove_bad_alloc(void) __asm__("_ZN4llvm30remove_bad_alloc_error_handlerEv");
new_handler cxx_set_new_handler(new_handler handler) __asm__("_ZSt15set_new_handlerPFvvE");
new_handler cxx_get_new_handler(void) __asm__("_ZSt15get_new_handlerv");
_Noreturn void cxx_throw_bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv");

/* The handlers belong to the process, and an application may have its own LLVM and its own handler
 * of operator new: ours are there only while one of our calls is. */
static pthread_mutex_t handler_lock = PTHREAD_MUTEX_INITIALIZER;
static int handler_users;
static _Atomic(new_handler) others;
static _Thread_local llvm_trouble *innermost;

/* Returns where the trouble is not ours. */
static void give_up(tw_status st, const char *reason)
{
    llvm_trouble *t = innermost;

    if (!t || !guard_active())
        return;
    if (st == TW_E_INTERNAL)
        snprintf(t->problem, sizeof t->problem, "%s", reason);
    t->abandoned = true;
    guard_throw(st);
}

static void on_fatal(const char *reason)
{
    give_up(TW_E_INTERNAL, reason);
}

static void on_bad_alloc(void *user, const char *reason, bool crash_report)
{
    (void)user, (void)crash_report;
    give_up(TW_E_NOMEM, reason);
}

static void on_new(void)
{
    give_up(TW_E_NOMEM, NULL);
    new_handler other = atomic_load(&others);
    if (!other)
        cxx_throw_bad_alloc();
    other();
}

static void watch(int change)
{
    pthread_mutex_lock(&handler_lock);
    if (change > 0 && handler_users == 0) {
        LLVMInstallFatalErrorHandler(on_fatal);
        llvm_install_bad_alloc(on_bad_alloc, NULL);
        atomic_store(&others, cxx_get_new_handler());
        (void)cxx_set_new_handler(on_new);
    }
    handler_users += change;
    if (handler_users == 0) {
        LLVMResetFatalErrorHandler();
        llvm_remove_bad_alloc();
        if (cxx_get_new_handler() == on_new) /* else the application has set another meanwhile */
            (void)cxx_set_new_handler(atomic_load(&others));
    }
    pthread_mutex_unlock(&handler_lock);
}

void llvm_trouble_hold(void)
{
    pthread_mutex_lock(&handler_lock);
}

void llvm_trouble_let_go(void)
{
    pthread_mutex_unlock(&handler_lock);
}

tw_status llvm_protected(llvm_trouble *t, guard_fn fn, void *arg)
{
    t->outer = innermost;
    watch(1);
    innermost = t;
    tw_status st = guard_run(fn, arg);
    innermost = t->outer;
    watch(-1);
    return st;
}
