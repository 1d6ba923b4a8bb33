#include "compiler/target/target.h"
#include "compiler/base/mem.h"
#include "compiler/ir/irbuild.h"
#include "compiler/ir/ireval.h"
#include "compiler/ir/irtext.h"
#include "compiler/target/interp/interp.h"
#include <check.h>
#include <string.h>

typedef struct bench {
    arena a;
    intern names;
    diag_list diags;
} bench;

static void setup(bench *s)
{
    arena_init(&s->a);
    intern_init(&s->names, &s->a);
    diag_init(&s->diags, &s->a);
}

static void teardown(bench *s)
{
    arena_release(&s->a);
    ck_assert_int_eq(mem_live(), 0);
}

static ir_module *parse(bench *s, const char *text)
{
    ir_module *m = ir_parse(&s->a, &s->names, source_new(&s->a, "test.tir", text, strlen(text)),
                            &s->diags);

    ck_assert_msg(m != NULL, "%s", s->diags.all.n ? s->diags.all.at[0]->text : "no diagnostic");
    return m;
}

/* y[i] = x[i] * s, eight elements a program; at most 100 elements. */
static const char *const scale_text =
    "kernel @scale<N>(\n"
    "    in %x : view<f32, 1>[N],\n"
    "    out %y : view<f32, 1>[N],\n"
    "    %s : f32 default,\n"
    "    dim %N : i32 = N\n"
    ") {\n"
    "    %limit = const.i 100 : i32\n"
    "    %few = le %N, %limit : i1\n"
    "    assert %few \"at most 100 elements\"\n"
    "    %id = program_id 0 : i32\n"
    "    %eight = const.i 8 : i32\n"
    "    %at = mul %id, %eight : i32\n"
    "    %v = load %x, %at extent=[8] inside=0 : f32[8]\n"
    "    %t = splat %s : f32[8]\n"
    "    %w = mul %v, %t : f32[8]\n"
    "    store %y, %at, %w extent=[8] inside=0\n"
    "    return\n"
    "}\n"
    "\n"
    "launch (\n"
    "    given %s_given : i1 = %s\n"
    ") {\n"
    "    %two = const.f 2.0 : f32\n"
    "    %v = where %s_given, %s, %two : f32\n"
    "    %n = cast %N : i64\n"
    "    %seven = const.i 7 : i64\n"
    "    %up = add %n, %seven : i64\n"
    "    %eight = const.i 8 : i64\n"
    "    %x_programs = div %up, %eight : i64\n"
    "    %one = const.i 1 : i64\n"
    "    return %x_programs, %one, %one, %v\n"
    "}\n";

static artifact *compile_scale(bench *s)
{
    target_input in = {.module = parse(s, scale_text), .diags = &s->diags};
    artifact *art = NULL, *back = NULL;
    const uint8_t *bytes;
    size_t n;

    ck_assert_int_eq(interp_target.compile(&interp_target, &in, &s->a, &art), TW_OK);
    artifact_write(art, &s->a, &bytes, &n);
    ck_assert_int_eq(artifact_read(&s->a, bytes, n, &back), TW_OK);
    return back;
}

START_TEST(the_recipe_takes_all_that_parameters_are_made_of)
{
    static const recipe_slot want[] = {{SLOT_POINTER, 0, 0}, {SLOT_STRIDE, 0, 0},
                                       {SLOT_POINTER, 0, 1}, {SLOT_STRIDE, 0, 1},
                                       {SLOT_SCALAR, 0, 2},  {SLOT_DIM, 0, 0},
                                       {SLOT_GRID, 0, 0},    {SLOT_GRID, 1, 0},
                                       {SLOT_GRID, 2, 0}};
    bench s;

    setup(&s);
    artifact *art = compile_scale(&s);
    ck_assert_uint_eq(art->nsteps, 1);
    ck_assert_uint_eq(art->step->nslots, sizeof want / sizeof *want);
    for (uint32_t i = 0; i < art->step->nslots; i++) {
        ck_assert_int_eq(art->step->slot[i].kind, want[i].kind);
        ck_assert_int_eq(art->step->slot[i].index, want[i].index);
        ck_assert_int_eq(art->step->slot[i].param, want[i].param);
    }
    ck_assert_uint_eq(art->nasserts, 1);
    ck_assert_str_eq(art->assert_text[0], "at most 100 elements (test.tir:9)");
    ck_assert_str_eq(art->step->symbol, "scale");
    teardown(&s);
}
END_TEST

/* What another process does with the artifact: grid and defaults from the launch text, results
 * from the object. */
START_TEST(an_artifact_runs_without_its_source)
{
    float x[11], y[11];
    ir_scalar value[4] = {{0}};
    int64_t grid[3];
    const char *failed = NULL;
    bench s;

    setup(&s);
    artifact *art = compile_scale(&s);
    ir_module *launch = parse(&s, art->launch_text);
    ck_assert_int_eq(launch->kernel->body->first->code, OP_RETURN);
    value[3].i = 11;
    launch_program *lp = launch_prepare(&s.a, launch->launch);
    ck_assert_int_eq(launch_eval(lp, value, 0, grid, &failed), TW_OK);
    ck_assert_int_eq(grid[0], 2);
    ck_assert_double_eq(value[2].f, 2.0);

    ir_module *m = parse(&s, (const char *)art->object[0].bytes);
    interp_arg arg[4] = {{.view = {x, {1}, {11}}},
                         {.view = {y, {1}, {11}}},
                         {.scalar = value[2]},
                         {.scalar = value[3]}};
    for (int i = 0; i < 11; i++)
        x[i] = (float)i;
    interp_launch l = {.arg = arg, .grid = {grid[0], grid[1], grid[2]}};
    ck_assert_int_eq(interp_run(interp_prepare(&s.a, m), &l, 0, INT64_MAX, NULL), TW_OK);
    for (int i = 0; i < 11; i++)
        ck_assert_float_eq(y[i], 2.0f * (float)i);
    teardown(&s);
}
END_TEST

START_TEST(targets_are_found_by_name_and_by_family)
{
    bool seen = false;

    ck_assert_ptr_eq(target_find("interp"), &interp_target);
    ck_assert_ptr_null(target_find("vax"));
    ck_assert_ptr_null(target_find(""));
    for (size_t i = 0; i < target_count(); i++) {
        const target *t = target_at(i);

        ck_assert_ptr_eq(target_find(t->name), t);
        const target *best = target_find(t->family);
        ck_assert(!t->usable(t) ||
                  (best && best->usable(best) && !strcmp(best->family, t->family)));
        seen |= t == &interp_target;
    }
    ck_assert(seen);
    ck_assert_ptr_null(target_sched(&interp_target, "threads"));
    ck_assert(!strncmp(target_codegen_version(), "llvm-", 5));
    ck_assert_ptr_eq(target_codegen_version(), target_codegen_version());
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("target");
    TCase *t = tcase_create("table"), *i = tcase_create("interp");

    tcase_add_test(t, targets_are_found_by_name_and_by_family);
    tcase_add_test(i, the_recipe_takes_all_that_parameters_are_made_of);
    tcase_add_test(i, an_artifact_runs_without_its_source);
    suite_add_tcase(s, t);
    suite_add_tcase(s, i);
    return s;
}
