#include "compiler/base/error.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/ir/irbuild.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/irtext.h"
#include "compiler/passes/pipeline.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

static const char text_of_kernel[] =
    "kernel @k<N>(in %x : view<f32, 1>[N], out %y : view<f32, 1>[N], dim %n : i32 = N) {\n"
    "    %c0 = const.i 0 : i32\n"
    "    %c16 = const.i 16 : i32\n"
    "    for %i = %c0 to %n step %c16 {\n"
    "        %one = const.f 1.0 : f32\n"
    "        %ones = splat %one : f32[16]\n"
    "        %t = load %x, %i extent=[16] inside=0 : f32[16]\n"
    "        %u = mul %ones, %t : f32[16]\n"
    "        %dead = add %u, %u : f32[16]\n"
    "        store %y, %i, %u extent=[16] inside=0\n"
    "        yield\n"
    "    }\n"
    "    return\n"
    "}\n"
    "launch () {\n"
    "    %one = const.i 1 : i64\n"
    "    return %one, %one, %one\n"
    "}\n";

typedef struct job {
    arena a;
    diag_list diags;
    intern names;
    pipeline_options options;
    const char *pass; /* NULL: all */
    strbuf log, ir;
    int said;
} job;

static void keep_text(void *user, const char *heading, const char *text)
{
    job *j = user;

    j->said++;
    sb_fmt(&j->log, "[%s]\n%s\n", heading, text);
}

static tw_status run_job(void *arg)
{
    job *j = arg;

    diag_init(&j->diags, &j->a);
    intern_init(&j->names, &j->a);
    sb_init(&j->log, &j->a);
    sb_init(&j->ir, &j->a);
    const source *src = source_new(&j->a, "k.tir", text_of_kernel, sizeof text_of_kernel - 1);
    ir_module *m = ir_parse(&j->a, &j->names, src, &j->diags);
    if (!m)
        return TW_E_SOURCE;
    j->options.text = keep_text;
    j->options.user = j;
    tw_status st = j->pass ? pipeline_run_pass(m, j->pass, &j->diags, &j->options)
                           : pipeline_run(m, &j->diags, &j->options);
    ir_print(&j->ir, m, 0);
    return st;
}

static tw_status start(job *j)
{
    arena_init(&j->a);
    return guard_run(run_job, j);
}

START_TEST(every_pass_runs_alone_and_has_its_page)
{
    static char page[1 << 16];
    FILE *f = fopen("docs/PASSES.md", "rb");
    char heading[64];
    size_t n = 0;

    ck_assert_ptr_nonnull(f);
    page[fread(page, 1, sizeof page - 1, f)] = '\0';
    fclose(f);
    for (; pipeline_pass_name(n); n++) {
        job j = {.pass = pipeline_pass_name(n)};
        snprintf(heading, sizeof heading, "**%s** ", j.pass);
        ck_assert_msg(strstr(page, heading) != NULL, "the page lacks %s", j.pass);
        ck_assert_int_eq(start(&j), TW_OK);
        arena_release(&j.a);
    }
    ck_assert_uint_ge(n, 5);
}
END_TEST

START_TEST(all_passes_run_quietly)
{
    job j = {.pass = NULL};

    ck_assert_int_eq(start(&j), TW_OK);
    ck_assert_int_eq(j.said, 0);
    ck_assert_ptr_null(strstr(j.ir.s, "mul"));
    ck_assert_ptr_null(strstr(j.ir.s, "dead"));
    arena_release(&j.a);
}
END_TEST

START_TEST(unknown_pass_is_an_argument_error)
{
    job j = {.pass = "simplfy"};

    ck_assert_int_eq(start(&j), TW_E_ARG);
    ck_assert_ptr_nonnull(strstr(error_get()->text, "simplfy"));
    error_clear();
    arena_release(&j.a);
}
END_TEST

START_TEST(dump_of_one_pass)
{
    job j = {.options = {.dump = "licm"}};

    ck_assert_int_eq(start(&j), TW_OK);
    ck_assert_int_eq(j.said, 1);
    ck_assert_ptr_nonnull(strstr(j.log.s, "[after licm (0 changes)]\nkernel @k"));
    arena_release(&j.a);
}
END_TEST

START_TEST(dump_of_what_changed)
{
    job j = {.options = {.dump = "changed"}};

    ck_assert_int_eq(start(&j), TW_OK);
    ck_assert_int_eq(j.said, 1); /* the first simplify leaves nothing for the others */
    ck_assert_ptr_nonnull(strstr(j.log.s, "[after simplify ("));
    arena_release(&j.a);
}
END_TEST

START_TEST(time_of_each_step)
{
    job j = {.options = {.time = true, .verify_each = true}};

    ck_assert_int_eq(start(&j), TW_OK);
    ck_assert_int_ge(j.said, 7);
    ck_assert_ptr_nonnull(strstr(j.log.s, " ms  simplify\n"));
    ck_assert_ptr_nonnull(strstr(j.log.s, " ms  prove_bounds\n"));
    arena_release(&j.a);
}
END_TEST

/* What a pass is given must be right IR; here a value is used before it is defined. */
static tw_status run_on_broken(void *arg)
{
    arena *a = arg;
    intern names;
    diag_list diags;
    pipeline_options verify = {.verify_each = true};

    intern_init(&names, a);
    diag_init(&diags, a);
    ir_module *m = ir_module_new(a, &names);
    ir_fn *fn = m->kernel = ir_fn_new(m, "k");
    ir_fn_begin(fn);
    ir_builder b = ir_at_end(fn, fn->body);
    ir_val zero = ir_const_int(&b, DT_I32, 0);
    ir_val sum = ir_binary(&b, OP_ADD, zero, zero);
    ir_assert(&b, ir_binary(&b, OP_CMP_LE, sum, zero), "0 <= 0");
    ir_return(&b, NULL, 0);
    ir_move_before(ir_def(fn, sum), ir_def(fn, zero));
    return pipeline_run_pass(m, "cse", &diags, &verify);
}

START_TEST(broken_ir_names_the_pass)
{
    arena a;

    arena_init(&a);
    ck_assert_int_eq(guard_run(run_on_broken, &a), TW_E_INTERNAL);
    ck_assert_ptr_nonnull(strstr(error_get()->text, "pass cse broke the IR"));
    error_clear();
    arena_release(&a);
}
END_TEST

/* Every allocation fails once: E_NOMEM, and nothing stays allocated. */
START_TEST(out_of_memory_leaves_nothing)
{
    tw_status st = TW_E_NOMEM;
    long n;

    error_clear();
    for (n = 1; st == TW_E_NOMEM && n < 1000; n++) {
        job j = {.options = {.dump = "changed", .verify_each = true}};
        long live = mem_live();
        mem_fail_after(n);
        st = start(&j);
        mem_fail_after(0);
        arena_release(&j.a);
        error_clear();
        ck_assert_int_eq(mem_live(), live);
    }
    ck_assert_int_eq(st, TW_OK);
    ck_assert_int_gt(n, 4);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("pipeline");
    TCase *t = tcase_create("pipeline");

    tcase_add_test(t, every_pass_runs_alone_and_has_its_page);
    tcase_add_test(t, all_passes_run_quietly);
    tcase_add_test(t, unknown_pass_is_an_argument_error);
    tcase_add_test(t, dump_of_one_pass);
    tcase_add_test(t, dump_of_what_changed);
    tcase_add_test(t, time_of_each_step);
    tcase_add_test(t, broken_ir_names_the_pass);
    tcase_add_test(t, out_of_memory_leaves_nothing);
    suite_add_tcase(s, t);
    return s;
}
