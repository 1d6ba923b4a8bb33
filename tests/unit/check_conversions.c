/* A tile in one layout, converted to any other: as code it arrives as it was, in each dtype. What
 * moves between warps goes through shared memory, as the schedule makes it. */
#include "compiler/base/check.h"
#include "compiler/base/error.h"
#include "compiler/base/guard.h"
#include "compiler/schedule/schedule.h"
#include "tests/support/ir_fixture.h"
#include "tests/support/ptx_rig.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 8, DTYPES = 8 };

/* Layouts that fit one tile, and those that are only there to make others from. */
static const struct {
    int rank, warps;
    const char *shape, *layouts, *name[MOST];
} group[] = {
    {2,
     4,
     "64, 64",
     "#wide = blocked(regs=[1, 8], lanes=[4, 8], warps=[4, 1], order=[1, 0])\n"
     "#tall = blocked(regs=[4, 1], lanes=[1, 32], warps=[2, 2], order=[0, 1])\n"
     "#rows = mma(warps=[4, 1])\n"
     "#square = mma(warps=[2, 2])\n"
     "#left = mma_a(warps=[4, 1])\n"
     "#columns = mma(warps=[1, 4])\n"
     "#turned = trans(#columns, perm=[1, 0])\n",
     {"#wide", "#tall", "#rows", "#square", "#left", "#turned"}},
    {2,
     2,
     "32, 80",
     "#five = blocked(regs=[2, 5], lanes=[4, 8], warps=[1, 2], order=[1, 0])\n"
     "#rows = mma(warps=[2, 1])\n"
     "#copies = mma(warps=[1, 1])\n"
     "#turned = trans(#rows, perm=[1, 0])\n"
     "#left = mma_a(warps=[2, 1])\n",
     {"#five", "#rows", "#copies", "#left"}},
    {1,
     4,
     "64",
     "#four = blocked(regs=[4], lanes=[16], warps=[1], order=[0])\n"
     "#each = blocked(regs=[1], lanes=[16], warps=[4], order=[0])\n"
     "#rows = mma(warps=[4, 1])\n"
     "#square = mma(warps=[2, 2])\n"
     "#row = slice(#rows, dim=1)\n"
     "#column = slice(#rows, dim=0)\n"
     "#half = slice(#square, dim=0)\n",
     {"#four", "#each", "#row", "#column", "#half"}},
    {3,
     4,
     "4, 16, 32",
     "#deep = blocked(regs=[1, 2, 2], lanes=[2, 2, 8], warps=[1, 2, 2], order=[2, 0, 1])\n"
     "#first = blocked(regs=[2, 1, 1], lanes=[1, 1, 32], warps=[2, 2, 1], order=[0, 1, 2])\n"
     "#other = blocked(regs=[1, 1, 2], lanes=[4, 4, 2], warps=[1, 4, 1], order=[1, 2, 0])\n",
     {"#deep", "#first", "#other"}},
};
static const char *const dtypes[DTYPES] = {"i8", "bf16", "f32", "i1", "f64", "u16", "i64", "f16"};

static const char *write_text(int g, const char *from, const char *to, const char *dtype)
{
    static const char *const dims[] = {"", "N", "N, N", "N, N, N"};
    static const char *const zeros[] = {"", "%0", "%0, %0", "%0, %0, %0"};
    const char *shape = group[g].shape, *dim = dims[group[g].rank], *zero = zeros[group[g].rank];
    int rank = group[g].rank;

    return arena_printf(&ir_arena,
                        "level 2 warps=%d\n"
                        "%skernel @move<N>(in %%x : view<%s, %d>[%s] unit align=16,\n"
                        "    out %%y : view<%s, %d>[%s] unit align=16, dim %%n : i32 = N) {\n"
                        "    %%0 = const.i 0 : i32\n"
                        "    %%a = load %%x, %s extent=[%s] inside=0 : %s[%s] %s\n"
                        "    %%b = convert %%a : %s[%s] %s\n"
                        "    store %%y, %s, %%b extent=[%s] inside=0\n"
                        "    return\n"
                        "}\n",
                        group[g].warps, group[g].layouts, dtype, rank, dim, dtype, rank, dim, zero,
                        shape, dtype, shape, from, dtype, shape, to, zero, shape);
}

static tw_status legalize(void *m)
{
    static const char *const passes[] = {"legalize_converts", "plan_shared", "place_barriers"};
    const gpu_limits gpu = gpu_limits_of(80);
    const schedule_params params = schedule_defaults();

    for (int i = 0; i < 3; i++)
        TRY(schedule_run_pass(m, passes[i], &gpu, &params, &ir_diags, NULL, NULL));
    return TW_OK;
}

/* NULL, or what is wrong. */
static const char *move(int g, const char *from, const char *to, const char *dtype)
{
    ir_module *m = ir_must(write_text(g, from, to, dtype));
    strbuf text;

    if (guard_run(legalize, m) != TW_OK)
        return error_get()->text;
    sb_init(&text, &ir_arena);
    sb_fmt(&text, "# dims: N=%d\n", group[g].rank < 3 ? 96 : 48);
    ir_print(&text, m, 0);
    return ptx_rig_run("move", text.s, "sm_80");
}

START_TEST(each_layout_becomes_each_other)
{
    int n = 0;

    for (int i = 0; group[_i].name[i]; i++)
        for (int j = 0; group[_i].name[j]; j++) {
            const char *from = group[_i].name[i], *to = group[_i].name[j];
            const char *dtype = dtypes[n++ % DTYPES];
            if (i == j)
                continue;
            ir_fixture_setup();
            const char *wrong = move(_i, from, to, dtype);
            ck_assert_msg(wrong == NULL, "%s[%s], %s to %s: %s", dtype, group[_i].shape, from, to,
                          wrong);
            ir_fixture_teardown();
        }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("conversions");
    TCase *t = tcase_create("pairs");

    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, each_layout_becomes_each_other, 0, (int)(sizeof group / sizeof *group));
    suite_add_tcase(s, t);
    return s;
}
