/* What the layer over LLVM promises when things go wrong, and the loader. */
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/target/llvm/llvm_loader.h"
#include "compiler/target/llvm/llvm_session.h"
#include "tests/support/patience.h"
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a fatal error inside LLVM abandons is a leak by design (llvm_session.h). */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libLLVM";
}

/* A sanitizer wants terabytes of addresses, and a fork's child may find its allocator locked. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static const llvm_machine plain = {NULL, "generic", ""};

typedef struct product {
    arena a;
    const char *data;
    size_t size;
} product;

/* int32_t answer(void) { return n; }, and a call of `callee` in it unless that is NULL */
static void build_answer(llvm_session *s, int n, const char *callee)
{
    ll_cx *cx = &s->cx;
    LLVMTypeRef type = LLVMFunctionType(cx->i32, NULL, 0, 0);

    cx->fn = LLVMAddFunction(cx->module, "answer", type);
    ll_at(cx, ll_block(cx, "entry"));
    LLVMValueRef v = ll_int(cx->i32, n);
    if (callee)
        v = LLVMBuildCall2(cx->b, type, LLVMAddFunction(cx->module, callee, type), NULL, 0, "");
    LLVMBuildRet(cx->b, v);
}

static tw_status make_answer(llvm_session *s, void *arg)
{
    product *p = arg;

    llvm_session_target(s, &plain);
    build_answer(s, 42, NULL);
    return llvm_session_emit(s, LLVM_OUTPUT_OBJECT, &p->a, &p->data, &p->size);
}

static tw_status make_caller(llvm_session *s, void *arg)
{
    product *p = arg;

    llvm_session_target(s, &plain);
    build_answer(s, 0, "nobody_defines_this");
    return llvm_session_emit(s, LLVM_OUTPUT_OBJECT, &p->a, &p->data, &p->size);
}

static tw_status make_unterminated(llvm_session *s, void *arg)
{
    product *p = arg;

    llvm_session_target(s, &plain);
    build_answer(s, 0, NULL);
    (void)ll_block(&s->cx, "empty");
    return llvm_session_emit(s, LLVM_OUTPUT_OBJECT, &p->a, &p->data, &p->size);
}

/* An intrinsic that the machine has no instruction for: a fatal error of LLVM. */
static tw_status make_unselectable(llvm_session *s, void *arg)
{
    product *p = arg;
    ll_cx *cx = &s->cx;
    LLVMTypeRef type = LLVMFunctionType(ll_lanes(cx->f32, 16), &cx->ptr, 1, 0);

    llvm_session_target(s, &plain);
    cx->fn = LLVMAddFunction(cx->module, "answer", type);
    ll_at(cx, ll_block(cx, "entry"));
    LLVMValueRef x = ll_load(cx, ll_lanes(cx->f32, 16), LLVMGetParam(cx->fn, 0), 4);
    LLVMValueRef arg5[] = {x, x, x, LLVMConstAllOnes(cx->i16), ll_int(cx->i32, 4)};
    x = ll_call(cx, "llvm.x86.avx512.mask.scalef.ps.512", NULL, 0, arg5, 5);
    LLVMBuildRet(cx->b, x);
    return llvm_session_emit(s, LLVM_OUTPUT_OBJECT, &p->a, &p->data, &p->size);
}

static tw_status throw_in_session(llvm_session *s, void *arg)
{
    (void)s, (void)arg;
    guard_throw(TW_E_NOMEM);
    return TW_OK;
}

static void product_init(product *p)
{
    memset(p, 0, sizeof *p);
    arena_init(&p->a);
}

static int32_t call(void *entry)
{
    int32_t (*fn)(void);

    memcpy(&fn, &entry, sizeof fn);
    return fn();
}

static int32_t load_and_call(const product *p)
{
    llvm_loaded *l;
    void *entry;

    ck_assert_int_eq(llvm_load(p->data, p->size, "answer", &l, &entry), TW_OK);
    int32_t v = call(entry);
    llvm_unload(l);
    return v;
}

START_TEST(code_is_made_and_loaded)
{
    product p;

    product_init(&p);
    ck_assert_int_eq(llvm_session_run("m", make_answer, &p), TW_OK);
    ck_assert_int_eq(load_and_call(&p), 42);
    arena_release(&p.a);
    ck_assert_int_eq(mem_live(), 0);
}
END_TEST

START_TEST(a_broken_module_is_an_internal_error)
{
    product p;

    product_init(&p);
    ck_assert_int_eq(llvm_session_run("m", make_unterminated, &p), TW_E_INTERNAL);
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "terminator"));
    arena_release(&p.a);
}
END_TEST

START_TEST(a_fatal_error_ends_the_compile_only)
{
#if defined(__x86_64__)
    product p;

    for (int i = 0; i < 3; i++) {
        product_init(&p);
        ck_assert_int_eq(llvm_session_run("m", make_unselectable, &p), TW_E_INTERNAL);
        ck_assert_msg(strncmp(tw_last_error()->text, "LLVM: ", 6) == 0, "%s",
                      tw_last_error()->text);
        ck_assert_int_eq(llvm_session_run("m", make_answer, &p), TW_OK);
        ck_assert_int_eq(load_and_call(&p), 42);
        arena_release(&p.a);
    }
#endif
}
END_TEST

/* A function long enough that LLVM asks for memory many times in each of its phases. */
static tw_status make_long(llvm_session *s, void *arg)
{
    product *p = arg;
    ll_cx *cx = &s->cx;

    llvm_session_target(s, &plain);
    cx->fn = LLVMAddFunction(cx->module, "answer", LLVMFunctionType(cx->i32, &cx->ptr, 1, 0));
    ll_at(cx, ll_block(cx, "entry"));
    LLVMValueRef x = ll_load(cx, cx->i32, LLVMGetParam(cx->fn, 0), 4), v = x;
    for (int i = 0; i < 1000; i++)
        v = i % 2 ? LLVMBuildMul(cx->b, v, x, "")
                  : LLVMBuildXor(cx->b, LLVMBuildAdd(cx->b, v, ll_int(cx->i32, i), ""), x, "");
    LLVMBuildRet(cx->b, v);
    return llvm_session_emit(s, LLVM_OUTPUT_OBJECT, &p->a, &p->data, &p->size);
}

/* A process whose address space may grow by room bytes compiles and loads, and does so again when
 * it has memory. Its exit code: 100 if the first time succeeded, else the status. */
static void compile_within(size_t room)
{
    unsigned long pages;
    struct rlimit limit;
    product p, q;
    llvm_loaded *l = NULL;
    void *entry;
    FILE *f = fopen("/proc/self/statm", "r");

    if (!f || fscanf(f, "%lu", &pages) != 1 || getrlimit(RLIMIT_AS, &limit) != 0)
        _exit(90);
    fclose(f);
    product_init(&p);
    product_init(&q);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + room;
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        _exit(91);
    tw_status st = llvm_session_run("m", make_long, &p);
    if (st == TW_OK)
        st = llvm_load(p.data, p.size, "answer", &l, &entry);
    limit.rlim_cur = before;
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        _exit(92);
    if (st != TW_OK && !strstr(tw_last_error()->text, "memory"))
        _exit(93);
    llvm_unload(l);
    if (llvm_session_run("m", make_answer, &q) != TW_OK || load_and_call(&q) != 42)
        _exit(94);
    _exit(st == TW_OK ? 100 : (int)st);
}

START_TEST(memory_that_llvm_lacks_ends_the_compile_only)
{
    int failures = 0, status;

    llvm_initialize();
    for (size_t room = 0; room < (size_t)8 << 20 && !SANITIZED; room += 336 << 10) {
        const pid_t child = fork();
        if (child == 0)
            compile_within(room);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFEXITED(status), "%zu KiB: signal %d", room >> 10, WTERMSIG(status));
        const int code = WEXITSTATUS(status);
        ck_assert_msg(code == TW_E_NOMEM || code == 100, "%zu KiB: %d", room >> 10, code);
        failures += code == TW_E_NOMEM;
    }
    ck_assert(SANITIZED || failures >= 3);
}
END_TEST

#ifndef PR_SET_MDWE /* Linux 6.3 */
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

/* As under systemd's MemoryDenyWriteExecute. Exit code 100: this kernel cannot forbid it. */
static void load_without_executable_memory(const product *p)
{
    llvm_loaded *l;
    void *entry;

    if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0ul, 0ul, 0ul) != 0)
        _exit(100);
    tw_status st = llvm_load(p->data, p->size, "answer", &l, &entry);
    _exit(st == TW_E_UNSUPPORTED && strstr(tw_last_error()->text, "execmem") ? 0 : 1 + (int)st);
}

START_TEST(memory_that_may_not_be_executable_is_no_bug)
{
    int status;
    product p;

    product_init(&p);
    ck_assert_int_eq(llvm_session_run("m", make_answer, &p), TW_OK);
    const pid_t child = fork();
    if (child == 0)
        load_without_executable_memory(&p);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 100));
    arena_release(&p.a);
}
END_TEST

typedef void (*new_handler)(void);
new_handler set_new_handler(new_handler handler) __asm__("_ZSt15set_new_handlerPFvvE");

static void handler_of_the_application(void)
{
}

START_TEST(the_handler_of_operator_new_stays_the_applications)
{
    product p;

    product_init(&p);
    (void)set_new_handler(handler_of_the_application);
    ck_assert_int_eq(llvm_session_run("m", make_answer, &p), TW_OK);
    ck_assert_int_eq(load_and_call(&p), 42);
    ck_assert(set_new_handler(NULL) == handler_of_the_application);
    ck_assert_int_eq(llvm_session_run("m", make_answer, &p), TW_OK);
    ck_assert(set_new_handler(NULL) == NULL);
    arena_release(&p.a);
}
END_TEST

START_TEST(what_is_thrown_passes_through)
{
    ck_assert_int_eq(llvm_session_run("m", throw_in_session, NULL), TW_E_NOMEM);
    ck_assert_int_eq(guard_active(), 0);
}
END_TEST

START_TEST(an_undefined_symbol_is_not_looked_for)
{
    llvm_loaded *l;
    void *entry;
    product p;

    product_init(&p);
    ck_assert_int_eq(llvm_session_run("m", make_caller, &p), TW_OK);
    ck_assert_int_eq(llvm_load(p.data, p.size, "answer", &l, &entry), TW_E_INTERNAL);
    ck_assert_ptr_null(l);
    ck_assert_msg(strstr(tw_last_error()->text, "nobody_defines_this") != NULL, "%s",
                  tw_last_error()->text);
    arena_release(&p.a);
}
END_TEST

START_TEST(no_such_entry_and_no_object_at_all)
{
    llvm_loaded *l;
    void *entry;
    product p;

    product_init(&p);
    ck_assert_int_eq(llvm_session_run("m", make_answer, &p), TW_OK);
    ck_assert_int_eq(llvm_load(p.data, p.size, "question", &l, &entry), TW_E_INTERNAL);
    ck_assert_int_eq(llvm_load("not an object", 13, "answer", &l, &entry), TW_E_INTERNAL);
    for (size_t n = 0; n < p.size; n += 97) /* cut off anywhere: never a crash */
        (void)llvm_load(p.data, n, "question", &l, &entry);
    ck_assert_int_eq(load_and_call(&p), 42);
    arena_release(&p.a);
    ck_assert_int_eq(mem_live(), 0);
}
END_TEST

START_TEST(two_objects_may_have_one_name)
{
    llvm_loaded *l[40];
    void *entry[40];
    product p;

    product_init(&p);
    ck_assert_int_eq(llvm_session_run("m", make_answer, &p), TW_OK);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 40; i++)
            ck_assert_int_eq(llvm_load(p.data, p.size, "answer", &l[i], &entry[i]), TW_OK);
        for (int i = 0; i < 40; i++)
            ck_assert_int_eq(call(entry[i]), 42);
        for (int i = 0; i < 40; i++)
            llvm_unload(l[i]);
    }
    arena_release(&p.a);
    ck_assert_int_eq(mem_live(), 0);
}
END_TEST

static void *compile_and_call(void *arg)
{
    intptr_t wrong = 0;
    product p;

    (void)arg;
    for (int i = 0; i < 5; i++) {
        product_init(&p);
        wrong += llvm_session_run("m", make_answer, &p) != TW_OK || load_and_call(&p) != 42;
#if defined(__x86_64__)
        wrong += llvm_session_run("m", make_unselectable, &p) != TW_E_INTERNAL;
#endif
        arena_release(&p.a);
    }
    return (void *)wrong;
}

START_TEST(threads_compile_load_and_fail_apart)
{
    pthread_t thread[4];
    void *wrong;

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, compile_and_call, NULL), 0);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_join(thread[i], &wrong), 0);
        ck_assert_ptr_null(wrong);
    }
}
END_TEST

static atomic_bool enough;

static void *compile_and_load(void *arg)
{
    product p;

    (void)arg;
    while (!enough) {
        product_init(&p);
        if (llvm_session_run("m", make_answer, &p) == TW_OK)
            (void)load_and_call(&p);
        arena_release(&p.a);
    }
    return NULL;
}

/* A child that waits for a lock of a thread that it does not have is ended by its alarm. */
START_TEST(children_of_a_process_that_loads_do_not_hang)
{
    pthread_t thread[2];
    product p;

    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, compile_and_load, NULL), 0);
    for (int i = 0; i < 40 && !SANITIZED; i++) {
        int status;
        const pid_t child = fork();
        if (child == 0) {
            alarm(20 * PATIENCE);
            product_init(&p);
            _exit(llvm_session_run("m", make_answer, &p) == TW_OK && load_and_call(&p) == 42 ? 0
                                                                                             : 1);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
    }
    enough = true;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("layer over LLVM");
    TCase *t = tcase_create("sessions and loading");

    tcase_set_timeout(t, 60 * PATIENCE);
    tcase_add_test(t, code_is_made_and_loaded);
    tcase_add_test(t, a_broken_module_is_an_internal_error);
    tcase_add_test(t, a_fatal_error_ends_the_compile_only);
    tcase_add_test(t, memory_that_llvm_lacks_ends_the_compile_only);
    tcase_add_test(t, memory_that_may_not_be_executable_is_no_bug);
    tcase_add_test(t, the_handler_of_operator_new_stays_the_applications);
    tcase_add_test(t, what_is_thrown_passes_through);
    tcase_add_test(t, an_undefined_symbol_is_not_looked_for);
    tcase_add_test(t, no_such_entry_and_no_object_at_all);
    tcase_add_test(t, two_objects_may_have_one_name);
    tcase_add_test(t, threads_compile_load_and_fail_apart);
    tcase_add_test(t, children_of_a_process_that_loads_do_not_hang);
    suite_add_tcase(s, t);
    return s;
}
