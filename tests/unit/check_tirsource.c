#include "tests/support/ir_fixture.h"
#include "compiler/base/mem.h"
#include "compiler/ir/iredit.h"
#include "compiler/ir/tirsource.h"
#include <check.h>
#include <string.h>

static const char kernel_text[] =
    "kernel @scale<M, D = 8, 2>(\n"
    "    in %x : view<f16, 3>[2, M, D] unit align=16, inout %y : view<f32, 1>[M],\n"
    "    %by : f32 default, dim %m : i32 = M) { return }\n"
    "launch (given %g : i1 = %by) {\n"
    "    %n = cast %m : i64\n"
    "    return %n, %n, %n, %by\n"
    "}\n";

static kernel_source *load(const char *text)
{
    kernel_source *src = NULL;

    tir_source_new("k.tir", text, strlen(text), &ir_diags, &src);
    return src;
}

START_TEST(the_signature_is_that_of_the_module)
{
    kernel_source *src = load(kernel_text);
    const kernel_sig *sig = &src->sig;

    ck_assert_str_eq(sig->name, "scale");
    ck_assert_uint_eq(sig->nparams, 3);
    ck_assert_uint_eq(sig->nsymbols, 1);
    ck_assert_uint_eq(sig->nconsts + sig->ntunes, 0);
    ck_assert_str_eq(sig->symbol[0], "M");
    ck_assert_str_eq(sig->param[0].name, "x");
    ck_assert(sig->param[0].is_tensor && sig->param[0].dtype == DT_F16);
    ck_assert_int_eq(sig->param[0].rank, 3);
    ck_assert_int_eq(sig->param[0].dim[0].kind, SIG_DIM_LITERAL);
    ck_assert_int_eq(sig->param[0].dim[0].literal, 2);
    ck_assert_int_eq(sig->param[0].dim[1].kind, SIG_DIM_SYMBOL);
    ck_assert_int_eq(sig->param[0].dim[1].index, 0);
    ck_assert_int_eq(sig->param[0].dim[2].literal, 8);
    ck_assert_int_eq(sig->param[1].direction, DIR_INOUT);
    ck_assert(!sig->param[2].is_tensor && sig->param[2].has_default);
    ck_assert_int_eq(sig->param[2].dtype_const, -1);
    ck_assert_int_eq(sig->text_lines, 8);
    src->destroy(src);
}
END_TEST

START_TEST(each_lowering_is_a_copy)
{
    kernel_source *src = load(kernel_text);
    ir_module *a, *b;
    const char *why;

    ck_assert_int_eq(src->lower(src, &ir_arena, &ir_names, NULL, 0, "", &ir_diags, &a), TW_OK);
    a->kernel->params.at[0].align = 64;
    ck_assert_int_eq(src->lower(src, &ir_arena, &ir_names, NULL, 0, "", &ir_diags, &b), TW_OK);
    ck_assert_int_eq(b->kernel->params.at[0].align, 16);
    ck_assert(ir_verify(b, &ir_diags));
    ck_assert(src->valid(src, NULL, 0, "", &why));
    ck_assert_ptr_null(src->print_ast(src, &ir_arena));
    src->destroy(src);
}
END_TEST

static void count_inside(ir_op *op, void *arg)
{
    if (op->code == OP_LOAD || op->code == OP_STORE)
        *(int64_t *)arg += 100 + op->attr[1].i;
}

START_TEST(a_text_proves_nothing)
{
    kernel_source *src = load("kernel @lies<N>(in %x : view<f32, 1>[N], out %y : view<f32, 1>[N],\n"
                              "    %at : i32, dim %n : i32 = N) {\n"
                              "    %small = lt %at, %n : i1\n"
                              "    if %small {\n"
                              "        %t = load %x, %at extent=[64] inside=1 : f32[64]\n"
                              "        store %y, %at, %t extent=[64] inside=1\n"
                              "        yield\n"
                              "    } else {\n"
                              "        yield\n"
                              "    }\n"
                              "    return\n"
                              "}\n"
                              "launch () {\n"
                              "    %one = const.i 1 : i64\n"
                              "    return %one, %one, %one, %at\n"
                              "}\n");
    ir_module *m;
    int64_t sum = 0;

    ck_assert_ptr_nonnull(src);
    ck_assert_int_eq(src->lower(src, &ir_arena, &ir_names, NULL, 0, "", &ir_diags, &m), TW_OK);
    ir_walk(m->kernel->body, count_inside, &sum);
    ck_assert_int_eq(sum, 200); /* two accesses, none of them proved */
    src->destroy(src);
}
END_TEST

START_TEST(diagnostics_outlive_the_source)
{
    ck_assert_ptr_null(load("kernel @f() {\n    %a = neg %b : f32\n}\n"));
    ck_assert_ptr_nonnull(strstr(ir_messages(), "k.tir:2:14: error:"));
}
END_TEST

START_TEST(a_kernel_to_run_has_a_launch_function)
{
    ck_assert_ptr_null(load("kernel @f() { return }"));
    ck_assert_ptr_nonnull(strstr(ir_messages(), "has a launch function"));
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    tw_status st = TW_E_NOMEM;
    kernel_source *src = NULL;
    int n = 0;

    while (st == TW_E_NOMEM && n < 1000) {
        mem_fail_after(++n);
        st = tir_source_new("k.tir", kernel_text, strlen(kernel_text), &ir_diags, &src);
        mem_fail_after(0);
        ck_assert((st == TW_OK) == (src != NULL));
    }
    ck_assert_int_eq(st, TW_OK);
    ck_assert_int_gt(n, 2);
    src->destroy(src);
}
END_TEST

START_TEST(the_longest_matching_prefix_wins)
{
    int64_t any[] = {64}, cpu[] = {32}, wide[] = {96};
    struct sig_set set[] = {{"cpu", 1, cpu}, {"", 1, any}, {"cpu-avx512", 1, wide}};
    sig_tune tune = {"BLOCK_M", 3, set};
    kernel_sig sig = {.ntunes = 1, .tune = &tune};

    ck_assert_ptr_eq(sig_tune_set(&sig, 0, "cpu-avx512"), &set[2]);
    ck_assert_ptr_eq(sig_tune_set(&sig, 0, "cpu-avx2"), &set[0]);
    ck_assert_ptr_eq(sig_tune_set(&sig, 0, "interp"), &set[1]);
    tune.nsets = 1;
    ck_assert_ptr_null(sig_tune_set(&sig, 0, "interp"));
    ck_assert_ptr_null(sig_tune_set(&sig, 1, "cpu"));
}
END_TEST

START_TEST(bindings_are_found_by_name)
{
    ir_binding b[] = {{"D", BIND_INT, 64}, {"CAUSAL", BIND_BOOL, 1}};

    ck_assert_ptr_eq(binding_find(b, 2, "CAUSAL"), &b[1]);
    ck_assert_ptr_null(binding_find(b, 2, "DV"));
    ck_assert_ptr_null(binding_find(NULL, 0, "D"));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("tirsource");
    TCase *tc = tcase_create("tirsource");

    tcase_add_checked_fixture(tc, ir_fixture_setup, ir_fixture_teardown);
    tcase_add_test(tc, the_signature_is_that_of_the_module);
    tcase_add_test(tc, each_lowering_is_a_copy);
    tcase_add_test(tc, a_text_proves_nothing);
    tcase_add_test(tc, diagnostics_outlive_the_source);
    tcase_add_test(tc, a_kernel_to_run_has_a_launch_function);
    tcase_add_test(tc, every_allocation_may_fail);
    tcase_add_test(tc, the_longest_matching_prefix_wins);
    tcase_add_test(tc, bindings_are_found_by_name);
    suite_add_tcase(s, tc);
    return s;
}
