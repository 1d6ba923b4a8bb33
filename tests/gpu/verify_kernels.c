/* Every kernel on a GPU, element by element against float64, over dtypes, head dims, shapes,
 * strides, causal and not, and schedules. On a machine with a GPU:
 *
 *   build-portable/tests/gpu/verify_kernels              all tables, the device's own path
 *   TW_GPU_TARGET=sm_80 ...                              another path
 *   TW_GPU_THIN=n ...                                    each n-th case (compute-sanitizer: 10)
 *   TW_GPU_DEVICE=cpu TW_GPU_THIN=40 ...                 tries the program itself without a GPU
 *   CK_RUN_CASE=attention-3 ...                          one table
 *   TW_GPU_LIST=1 ...                                    runs nothing: the names of all tables
 *
 * Run in the root of the project. One line a table; ends with Check's counts. tests/gpu/prove.sh
 * runs the tables side by side. */
#include "tests/support/attention_tables.h"
#include "tests/support/kernel_tables.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct table_row {
    const char *name, *kernel, *type;
    void (*cases)(num_subject *s, int thin);
    int thin; /* how much of the table a run takes */
} table_row;

static const table_row attention_rows[] = {
    {"shapes", "attention_fwd", "bf16", attention_shapes, 1},
    {"wide heads", "attention_fwd", "bf16", attention_wide_heads, 1},
    {"offsets", "attention_fwd", "bf16", attention_offsets, 1},
    {"groups", "attention_fwd", "bf16", attention_groups, 1},
    {"layouts", "attention_fwd", "bf16", attention_layouts, 1},
    {"blocks", "attention_fwd", "bf16", attention_blocks, 1},
    {"empty", "attention_fwd", "bf16", attention_empty, 1},
    {"magnitudes", "attention_fwd", "bf16", attention_magnitudes, 1},
    {"odd heads", "attention_fwd", "bf16", attention_odd_heads, 1},
    {"odd heads", "attention_fwd", "f16", attention_odd_heads, 3},
    {"shapes", "attention_fwd", "f16", attention_shapes, 3},
    {"wide heads", "attention_fwd", "f16", attention_wide_heads, 3},
    {"layouts", "attention_fwd", "f16", attention_layouts, 3},
    {"shapes", "attention_fwd", "f32", attention_shapes, 5},
    {"wide heads", "attention_fwd", "f32", attention_wide_heads, 5},
    {"layouts", "attention_fwd", "f32", attention_layouts, 5},
    {"magnitudes", "attention_fwd", "f32", attention_magnitudes, 1},
    {"shapes", "variants/attention_rounded", "bf16", attention_shapes, 3},
    {"odd heads", "variants/attention_rounded", "bf16", attention_odd_heads, 3},
    {"odd heads", "attention_fwd", "f32", attention_odd_heads, 5},
    {"magnitudes", "variants/attention_rounded", "f16", attention_magnitudes, 1},
};
static const table_row kernel_rows[] = {
    {"all", "vector_add", "f32", vector_add_table, 1}, {"all", "softmax", "f32", softmax_table, 1},
    {"all", "softmax", "bf16", softmax_table, 3},      {"all", "matmul", "f32", matmul_table, 3},
    {"all", "matmul", "bf16", matmul_table, 1},        {"all", "matmul", "f16", matmul_table, 3},
};
/* What a schedule may be: the first is the target's own choice. */
static const char *const schedules[] = {
    NULL,
    "num_warps=4,num_stages=1",
    "num_warps=8,num_stages=2,stage_blocks=2",
    "num_warps=4,num_stages=3,operand_registers=1",
    "num_warps=8,num_stages=2,operand_registers=1,lazy_rescale=0",
};
enum { BF16_ROWS = 9 }; /* that come first */
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const char *setting(const char *name, const char *usual)
{
    const char *given = getenv(name);

    return given && *given ? given : usual;
}

static void run_table(const table_row *row, const char *schedule, int thin)
{
    struct timespec from, to;
    num_subject s;

    clock_gettime(CLOCK_MONOTONIC, &from);
    ck_assert(subject_open(&s, setting("TW_GPU_DEVICE", "cuda"), setting("TW_GPU_TARGET", NULL),
                           row->kernel, 7000));
    s.type = row->type;
    s.schedule = schedule;
    s.rounded_sums = strcmp(row->kernel, "variants/attention_rounded") == 0;
    row->cases(&s, row->thin * thin * atoi(setting("TW_GPU_THIN", "1")));
    clock_gettime(CLOCK_MONOTONIC, &to);
    num_say("%-14s %-5s %-11s %-60s %5.1f s\n", row->kernel, row->type, row->name,
            schedule ? schedule : "",
            (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9);
    subject_close(&s);
}

START_TEST(attention)
{
    run_table(&attention_rows[_i], NULL, 1);
}
END_TEST

/* bf16 alone, and a fifth of the cases: schedules and dtypes meet in few places. */
START_TEST(attention_with_schedules)
{
    int row = _i % BF16_ROWS, at = 1 + _i / BF16_ROWS;
    const char *schedule = schedules[at];
    bool wide = attention_rows[row].cases == attention_wide_heads ||
                attention_rows[row].cases == attention_odd_heads; /* memory is too small for all */

    if (at == 3 && wide)
        schedule = "BLOCK_N=32,num_warps=4,num_stages=3,operand_registers=1";
    else if (at == 2 && wide)
        schedule = "BLOCK_N=32,num_warps=8,num_stages=2,stage_blocks=2";
    else if (at == 2 && attention_rows[row].cases == attention_blocks)
        schedule = "num_warps=8,num_stages=2";
    run_table(&attention_rows[row], schedule, 5);
}
END_TEST

START_TEST(kernels)
{
    run_table(&kernel_rows[_i], NULL, 1);
}
END_TEST

START_TEST(kernels_with_schedules)
{
    run_table(&kernel_rows[4], schedules[1 + _i], 3);
}
END_TEST

/* What the paths of the CPU have in schedules that pack. */
START_TEST(packed_attention)
{
    run_table(&attention_rows[_i], "pack=1", 2);
}
END_TEST

START_TEST(packed_kernels)
{
    run_table(&kernel_rows[4], "pack=1", 1);
}
END_TEST

/* Code paths with the schedule parameter. */
static bool packs(void)
{
    const char *target = setting("TW_GPU_TARGET", "");

    return !strcmp(target, "cpu-amx") || !strcmp(target, "cpu-avx512-bf16");
}

Suite *test_suite(void);
/* Each row is a test case of its own, "attention-3": several processes can share the work. */
static void add(Suite *s, const char *name, const TTest *test, int rows)
{
    static char names[80][32]; /* Check keeps the pointer */
    static int used;

    for (int i = 0; i < rows; i++) {
        snprintf(names[used], sizeof names[used], "%s-%d", name, i);
        TCase *t = tcase_create(names[used++]);
        tcase_add_loop_test(t, test, i, i + 1);
        suite_add_tcase(s, t);
        if (atoi(setting("TW_GPU_LIST", "0")))
            puts(names[used - 1]);
    }
}

Suite *test_suite(void)
{
    Suite *s = suite_create("kernels on a GPU");

    add(s, "kernels", kernels, COUNT(kernel_rows));
    add(s, "attention", attention, COUNT(attention_rows));
    if (strncmp(setting("TW_GPU_DEVICE", "cuda"), "cuda", 4) == 0) { /* the CPU has no such ones */
        add(s, "scheduled-kernels", kernels_with_schedules, COUNT(schedules) - 1);
        add(s, "scheduled-attention", attention_with_schedules,
            BF16_ROWS * (COUNT(schedules) - 1));
    }
    if (packs()) {
        add(s, "packed-kernels", packed_kernels, 1);
        add(s, "packed-attention", packed_attention, BF16_ROWS);
    }
    if (atoi(setting("TW_GPU_LIST", "0")))
        exit(EXIT_SUCCESS);
    return s;
}
