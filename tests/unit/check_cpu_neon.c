/* Every kernel of the library compiles to AArch64 code with NEON, on any machine. Nothing of it
 * runs. */
#include "compiler/base/guard.h"
#include "compiler/target/cpu/cpu_isa.h"
#include "compiler/target/target.h"
#include "tests/support/schedule_fixture.h"
#include <check.h>
#include <elf.h>
#include <llvm-c/Target.h>
#include <string.h>

static const struct {
    const char *path, *values;
} kernels[] = {
    {"kernels/vector_add.tw", "T=f32,BLOCK=1024"},
    {"kernels/softmax.tw", "T=f32,BLOCK_M=16,BLOCK_N=128"},
    {"kernels/softmax.tw", "T=f16,BLOCK_M=4,BLOCK_N=64"},
    {"kernels/matmul.tw", "T=f32,BLOCK_M=64,BLOCK_N=64,BLOCK_K=64"},
    {"kernels/matmul.tw", "T=bf16,BLOCK_M=64,BLOCK_N=64,BLOCK_K=64"},
    {"kernels/attention_fwd.tw", "T=f32,D=64,DV=64,CAUSAL=true,BLOCK_M=64,BLOCK_N=64"},
    {"kernels/attention_fwd.tw", "T=f32,D=40,DV=24,BLOCK_M=32,BLOCK_N=64"},
    {"kernels/attention_fwd.tw", "T=bf16,D=128,DV=128,CAUSAL=true,BLOCK_M=64,BLOCK_N=64"},
    {"kernels/attention_fwd.tw", "T=f16,D=64,DV=64,BLOCK_M=64,BLOCK_N=64"},
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

typedef struct emission {
    target_input in;
    const char *data;
    size_t size;
} emission;

static tw_status emit(void *arg)
{
    emission *e = arg;

    return cpu_neon.emit(&cpu_neon, &e->in, "obj", &schedule_memory, &e->data, &e->size);
}

START_TEST(each_kernel)
{
    emission e = {.in.diags = &schedule_diags};
    Elf64_Ehdr head;

    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    e.in.module = schedule_lower(kernels[_i].path, kernels[_i].values, 16);
    ck_assert_int_eq(guard_run(emit, &e), TW_OK);
    ck_assert_uint_gt(e.size, sizeof head);
    memcpy(&head, e.data, sizeof head);
    ck_assert_mem_eq(head.e_ident, ELFMAG, SELFMAG);
    ck_assert_int_eq(head.e_machine, EM_AARCH64);
    ck_assert(!cpu_neon.usable(&cpu_neon));
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("cpu_neon");
    TCase *t = tcase_create("cpu_neon");

    tcase_add_checked_fixture(t, schedule_setup, schedule_teardown);
    tcase_add_loop_test(t, each_kernel, 0, KERNELS);
    suite_add_tcase(s, t);
    return s;
}
