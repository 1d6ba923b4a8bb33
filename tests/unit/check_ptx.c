/* Each schedule in tests/nvptx, and kernels as they are scheduled, run as PTX by a machine in
 * software, give what the interpreter gives. */
#include "compiler/base/guard.h"
#include "compiler/ir/irtext.h"
#include "tests/support/ptx_rig.h"
#include "tests/support/schedule_fixture.h"
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 256 };

static char name[MAX_FILES][300];
static int count;

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void list_files(void)
{
    DIR *dir = opendir("tests/nvptx");
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        size_t n = strlen(entry->d_name);
        if (n > 6 && strcmp(entry->d_name + n - 6, ".sched") == 0 && count < MAX_FILES)
            snprintf(name[count++], sizeof *name, "tests/nvptx/%s", entry->d_name);
    }
    if (dir)
        closedir(dir);
    qsort(name, (size_t)count, sizeof *name, by_name);
}

static char *read_text(const char *path)
{
    static char text[1 << 18];
    FILE *f = fopen(path, "rb");

    ck_assert_ptr_nonnull(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

START_TEST(ptx_gives_what_the_interpreter_gives)
{
    const char *wrong = ptx_rig_run(name[_i], read_text(name[_i]), "sm_80");

    ck_assert_msg(wrong == NULL, "%s: %s", name[_i], wrong);
}
END_TEST

/* Of each other code path some, in turn: LLVM selects other instructions for newer ones. */
START_TEST(so_does_the_ptx_of_other_code_paths)
{
    static const char *const paths[] = {"sm_90", "sm_120", "sm_89", "sm_100", "sm_86", "sm_87"};
    const char *path = paths[(size_t)_i % (sizeof paths / sizeof *paths)];
    const char *wrong = ptx_rig_run(name[_i], read_text(name[_i]), path);

    ck_assert_msg(wrong == NULL, "%s for %s: %s", name[_i], path, wrong);
}
END_TEST

static const struct {
    const char *kernel, *values;
    int warps, stages, operand_registers, stage_blocks, align;
    const char *notes;
} kernels[] = {
    {"attention_fwd", "T=bf16,D=64,DV=64,CAUSAL=true,BLOCK_M=64,BLOCK_N=32", 4, 2, 0, 1, 16,
     "# dims: B=2 H=2 HK=1 M=100 N=150\n# scalars: scale=0.3 offset=50\n# grid: 2 2 2\n"},
    {"attention_fwd", "T=f16,D=64,DV=64,CAUSAL=false,BLOCK_M=64,BLOCK_N=32", 4, 1, 1, 1, 16,
     "# dims: B=1 H=1 HK=1 M=100 N=150\n# scalars: scale=0.3 offset=50\n# grid: 2 1 1\n"},
    {"attention_fwd", "T=bf16,D=80,DV=96,CAUSAL=true,BLOCK_M=64,BLOCK_N=32", 4, 3, 1, 1, 16,
     "# dims: B=1 H=1 HK=1 M=100 N=150\n# scalars: scale=0.3 offset=50\n# grid: 2 1 1\n"},
    {"attention_fwd", "T=f32,D=32,DV=32,CAUSAL=true,BLOCK_M=32,BLOCK_N=32", 4, 2, 0, 1, 4,
     "# dims: B=1 H=1 HK=1 M=50 N=70\n# scalars: scale=0.3 offset=20\n# grid: 2 1 1\n"},
    {"attention_fwd", "T=bf16,D=48,DV=24,CAUSAL=true,BLOCK_M=64,BLOCK_N=64", 8, 2, 0, 1, 2,
     "# dims: B=1 H=1 HK=1 M=50 N=170\n# scalars: scale=0.3 offset=120\n# grid: 1 1 1\n"},
    {"attention_fwd", "T=bf16,D=40,DV=40,CAUSAL=true,BLOCK_M=64,BLOCK_N=32", 4, 2, 0, 1, 16,
     "# dims: B=1 H=2 HK=1 M=70 N=90\n# scalars: scale=0.3 offset=20\n# grid: 2 2 1\n"},
    {"attention_fwd", "T=f16,D=100,DV=88,CAUSAL=false,BLOCK_M=64,BLOCK_N=32", 4, 2, 1, 1, 8,
     "# dims: B=1 H=1 HK=1 M=70 N=70\n# scalars: scale=0.3 offset=0\n# grid: 2 1 1\n"},
    {"attention_fwd", "T=bf16,D=33,DV=17,CAUSAL=true,BLOCK_M=32,BLOCK_N=32", 4, 2, 0, 1, 2,
     "# dims: B=1 H=1 HK=1 M=40 N=70\n# scalars: scale=0.3 offset=30\n# grid: 2 1 1\n"},
    {"../tests/data/attention_gradients", "T=bf16,D=72,BLOCK_M=32,BLOCK_N=64", 4, 2, 0, 1, 16,
     "# dims: B=1 H=1 M=40 N=70\n# grid: 2 1 1\n# range: 0.5\n"},
    {"../tests/data/attention_gradients", "T=f16,D=20,BLOCK_M=32,BLOCK_N=64", 4, 1, 1, 1, 8,
     "# dims: B=1 H=1 M=40 N=70\n# grid: 2 1 1\n# range: 0.5\n"},
    {"variants/attention_rounded", "T=f16,D=64,DV=64,CAUSAL=true,BLOCK_M=64,BLOCK_N=16", 4, 2, 1, 2,
     16,
     "# dims: B=1 H=1 HK=1 M=100 N=150\n# scalars: scale=0.3 offset=50\n# grid: 2 1 1\n"},
    {"variants/attention_quantized", "T=f16,D=32,DV=32,CAUSAL=false,BLOCK_M=64,BLOCK_N=32", 4, 2, 0,
     1, 16,
     "# dims: B=1 H=2 HK=1 M=100 N=150\n# scalars: scale=0.3 offset=50\n# grid: 2 2 1\n"},
    {"variants/attention_relative", "T=bf16,D=32,DV=32,CAUSAL=true,BLOCK_M=64,BLOCK_N=16", 4, 2, 0,
     1, 16,
     "# dims: B=1 H=1 HK=1 M=100 N=150 DISTANCES=33\n# scalars: scale=0.3 offset=50\n"
     "# grid: 2 1 1\n"},
    {"matmul", "T=bf16,BLOCK_M=32,BLOCK_N=32,BLOCK_K=32", 2, 3, 0, 1, 16,
     "# dims: M=90 N=104 K=72\n# grid: 3 4 1\n"},
    {"matmul", "T=f32,BLOCK_M=32,BLOCK_N=32,BLOCK_K=32", 4, 2, 0, 1, 4,
     "# dims: M=90 N=100 K=70\n# grid: 3 4 1\n"},
    {"softmax", "T=f16,BLOCK_M=4,BLOCK_N=64", 4, 2, 0, 1, 2, "# dims: M=23 N=300\n# grid: 6 1 1\n"},
    {"vector_add", "T=bf16,BLOCK=256", 8, 2, 0, 1, 16, "# dims: N=1300\n# grid: 6 1 1\n"},
};

typedef struct scheduling {
    int which;
    strbuf text;
} scheduling;

static tw_status print_schedule(void *arg)
{
    scheduling *s = arg;
    char path[64];
    schedule_params params = schedule_defaults();

    snprintf(path, sizeof path, "kernels/%s.tw", kernels[s->which].kernel);
    ir_module *m = schedule_lower(path, kernels[s->which].values, kernels[s->which].align);
    params.num_warps = kernels[s->which].warps;
    params.num_stages = kernels[s->which].stages;
    params.operand_registers = kernels[s->which].operand_registers;
    params.stage_blocks = kernels[s->which].stage_blocks;
    params.program_order = strstr(kernels[s->which].values, "CAUSAL=true") != NULL;
    ck_assert_int_eq(schedule_make(m, 80, params, NULL), TW_OK);
    sb_init(&s->text, &schedule_memory);
    sb_fmt(&s->text, "%s# tolerance: 1e-2\n", kernels[s->which].notes);
    ir_print(&s->text, m, 0);
    return TW_OK;
}

START_TEST(kernels_give_what_the_interpreter_gives)
{
    scheduling s = {.which = _i};

    schedule_setup();
    ck_assert_int_eq(guard_run(print_schedule, &s), TW_OK);
    const char *wrong = ptx_rig_run(kernels[_i].kernel, s.text.s, "sm_80");
    ck_assert_msg(wrong == NULL, "%s %s: %s", kernels[_i].kernel, kernels[_i].values, wrong);
    schedule_teardown();
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("ptx");
    TCase *t = tcase_create("ptx");

    list_files();
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, ptx_gives_what_the_interpreter_gives, 0, count);
    tcase_add_loop_test(t, so_does_the_ptx_of_other_code_paths, 0, count);
    tcase_add_loop_test(t, kernels_give_what_the_interpreter_gives, 0,
                        sizeof kernels / sizeof *kernels);
    suite_add_tcase(suite, t);
    return suite;
}
