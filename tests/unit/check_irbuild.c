#include "tests/support/ir_fixture.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include <check.h>
#include <math.h>
#include <signal.h>
#include <string.h>

/* kernel f<M>(in x : f32[M, 8], dim m) */
static ir_fn *small_fn(void)
{
    ir_module *m = ir_module_new(&ir_arena, &ir_names);
    ir_fn *fn = m->kernel = ir_fn_new(m, "f");
    int rows = ir_add_dim(fn, "M", false, 0), columns = ir_add_dim(fn, NULL, true, 8);

    ir_add_param(fn, (ir_param){.kind = PARAM_TENSOR,
                                .name = "x",
                                .type = type_view(DT_F32, 2),
                                .dim = {rows, columns}});
    ir_add_param(
        fn,
        (ir_param){.kind = PARAM_DIM, .name = "m", .type = type_scalar(DT_I32), .symbol = rows});
    ir_fn_begin(fn);
    return fn;
}

static const char *type_of(const ir_fn *fn, ir_val v)
{
    return type_text(&ir_arena, ir_type_of(fn, v));
}

START_TEST(result_types_are_inferred)
{
    ir_fn *fn = small_fn();
    ir_builder b = ir_at_end(fn, fn->body);
    int32_t wide[] = {4, 8};
    ir_val at[] = {ir_const_int(&b, DT_I32, 0), ir_program_id(&b, 0)};
    ir_val x = ir_load(&b, ir_param_value(fn, 0), at, (int32_t[]){4, 8});
    ir_val row = ir_load(&b, ir_param_value(fn, 0), at, (int32_t[]){0, 8});
    ir_val one = ir_load(&b, ir_param_value(fn, 0), at, (int32_t[]){0, 0});

    ck_assert_str_eq(type_of(fn, x), "f32[4, 8]");
    ck_assert_str_eq(type_of(fn, row), "f32[8]");
    ck_assert_str_eq(type_of(fn, one), "f32");
    ck_assert_str_eq(type_of(fn, ir_trans(&b, x, (int[]){1, 0})), "f32[8, 4]");
    ck_assert_str_eq(type_of(fn, ir_expand(&b, row, 0)), "f32[1, 8]");
    ck_assert_str_eq(type_of(fn, ir_expand(&b, row, 1)), "f32[8, 1]");
    ir_val broad = ir_broadcast(&b, ir_expand(&b, row, 0), type_tile(DT_I1, 2, wide));
    ck_assert_str_eq(type_of(fn, broad), "f32[4, 8]");
    ck_assert_str_eq(type_of(fn, ir_splat(&b, one, type_tile(DT_I1, 2, wide))), "f32[4, 8]");
    ck_assert_str_eq(type_of(fn, ir_cast(&b, x, DT_F16)), "f16[4, 8]");
    ck_assert_str_eq(type_of(fn, ir_reduce(&b, OP_REDUCE_MAX, x, 0)), "f32[8]");
    ck_assert_str_eq(type_of(fn, ir_reduce(&b, OP_REDUCE_MAX, row, 0)), "f32");
    ir_val less = ir_binary(&b, OP_CMP_LT, x, broad);
    ck_assert_str_eq(type_of(fn, less), "i1[4, 8]");
    ck_assert_str_eq(type_of(fn, ir_reduce(&b, OP_REDUCE_SUM, less, 1)), "i32[4]");
    ck_assert_str_eq(type_of(fn, ir_where(&b, less, x, broad)), "f32[4, 8]");
    ck_assert_str_eq(type_of(fn, ir_arange(&b, 3, 5)), "i32[5]");
}
END_TEST

START_TEST(the_accumulator_follows_the_factors)
{
    ir_fn *fn = small_fn();
    ir_builder b = ir_at_end(fn, fn->body);
    int32_t sides[] = {4, 4};
    ir_val f16 = ir_splat(&b, ir_const_float(&b, DT_F16, 1), type_tile(DT_F16, 2, sides));
    ir_val f32 = ir_splat(&b, ir_const_float(&b, DT_F32, 1), type_tile(DT_F32, 2, sides));
    ir_val i8 = ir_splat(&b, ir_const_int(&b, DT_I8, 1), type_tile(DT_I8, 2, sides));
    ir_val i32 = ir_splat(&b, ir_const_int(&b, DT_I32, 1), type_tile(DT_I32, 2, sides));

    ck_assert_str_eq(type_of(fn, ir_dot(&b, f16, f16, f32)), "f32[4, 4]");
    ck_assert_str_eq(type_of(fn, ir_dot(&b, f32, f32, f32)), "f32[4, 4]");
    ck_assert_str_eq(type_of(fn, ir_dot(&b, i8, i8, i32)), "i32[4, 4]");
}
END_TEST

START_TEST(constants_take_their_type)
{
    ir_fn *fn = small_fn();
    ir_builder b = ir_at_end(fn, fn->body);

    ck_assert_int_eq(ir_def(fn, ir_const_int(&b, DT_I8, 200))->attr[0].i, -56);
    ck_assert_int_eq(ir_def(fn, ir_const_int(&b, DT_U8, -1))->attr[0].i, 255);
    ck_assert_int_eq(ir_def(fn, ir_const_int(&b, DT_I1, 3))->attr[0].i, 1);
    ck_assert_int_eq(ir_def(fn, ir_const_int(&b, DT_U64, -1))->attr[0].i, -1);
    ck_assert(ir_def(fn, ir_const_float(&b, DT_F32, 0.1))->attr[0].f == (double)0.1f);
    ck_assert(ir_def(fn, ir_const_float(&b, DT_F64, 0.1))->attr[0].f == 0.1);
    ck_assert(ir_def(fn, ir_const_float(&b, DT_BF16, 1.001))->attr[0].f == 1.0);
    ck_assert(isnan(ir_def(fn, ir_const_float(&b, DT_F32, (double)NAN))->attr[0].f));
}
END_TEST

START_TEST(a_dimension_is_a_constant_or_its_parameter)
{
    ir_fn *fn = small_fn();
    ir_builder b = ir_at_end(fn, fn->body);

    ck_assert_uint_eq(ir_dim_value(&b, 0), ir_param_value(fn, 1));
    ck_assert_int_eq(ir_def(fn, ir_dim_value(&b, 1))->attr[0].i, 8);
    ck_assert_int_eq(ir_add_dim(fn, NULL, true, 8), 1);
    ck_assert_int_eq(ir_add_dim(fn, NULL, true, 9), 2);
}
END_TEST

START_TEST(ops_go_where_the_builder_stands)
{
    ir_fn *fn = small_fn();
    ir_builder b = ir_at_end(fn, fn->body);
    ir_val first = ir_const_int(&b, DT_I32, 1), last = ir_const_int(&b, DT_I32, 3);
    ir_builder c = ir_before(fn, ir_def(fn, last));
    ir_val middle = ir_const_int(&c, DT_I32, 2);
    ir_builder d = ir_before(fn, ir_def(fn, first));
    ir_val zeroth = ir_const_int(&d, DT_I32, 0);

    ir_return(&b, NULL, 0);
    ck_assert_ptr_eq(fn->body->first, ir_def(fn, zeroth));
    ck_assert_ptr_eq(ir_def(fn, first)->next, ir_def(fn, middle));
    ck_assert_ptr_eq(ir_def(fn, last)->prev, ir_def(fn, middle));
    ck_assert_msg(ir_verify(fn->module, &ir_diags), "%s", ir_messages());
}
END_TEST

/* for i = 0 to m step 8 (sum = 0.0) { yield sum + 1.0 } */
static ir_op *counting_loop(ir_fn *fn, ir_builder *b)
{
    ir_val zero = ir_const_int(b, DT_I32, 0), step = ir_const_int(b, DT_I32, 8);
    ir_val start = ir_const_float(b, DT_F32, 0);
    ir_op *loop = ir_for(b, zero, ir_param_value(fn, 1), step, &start, 1);
    ir_builder in = ir_at_end(fn, loop->regions[0]);
    ir_val one = ir_const_float(&in, DT_F32, 1);
    ir_val next = ir_binary(&in, OP_ADD, loop->regions[0]->arg + 1, one);

    ir_yield(&in, &next, 1);
    return loop;
}

START_TEST(control_has_regions_and_results)
{
    ir_fn *fn = small_fn();
    ir_builder b = ir_at_end(fn, fn->body);
    ir_op *loop = counting_loop(fn, &b);
    ir_val yes = ir_const_int(&b, DT_I1, 1);
    ir_type type = type_scalar(DT_F32);
    ir_op *branch = ir_if(&b, yes, &type, 1);
    ir_op *again = ir_while(&b, &branch->res, 1);

    for (int i = 0; i < 2; i++) {
        ir_builder arm = ir_at_end(fn, branch->regions[i]);
        ir_yield(&arm, &loop->res, 1);
    }
    ir_builder test = ir_at_end(fn, again->regions[0]), body = ir_at_end(fn, again->regions[1]);
    ir_condition(&test, yes, &again->regions[0]->arg, 1);
    ir_yield(&body, &again->regions[1]->arg, 1);
    ir_return(&b, NULL, 0);
    ck_assert_str_eq(type_of(fn, again->res), "f32");
    ck_assert_uint_eq(loop->regions[0]->nargs, 2);
    ck_assert_int_eq(ir_op_count(fn), 15);
    ck_assert_msg(ir_verify(fn->module, &ir_diags), "%s", ir_messages());
}
END_TEST

START_TEST(names_are_hints)
{
    ir_fn *fn = small_fn();
    ir_builder b = ir_at_end(fn, fn->body);
    ir_val v = ir_const_int(&b, DT_I32, 1), w = ir_const_int(&b, DT_I32, 2);
    ir_val odd = ir_const_int(&b, DT_I32, 3);

    ir_name(fn, v, "x");
    ir_name(fn, w, "x");
    ir_name(fn, odd, "no name");
    ir_return(&b, NULL, 0);
    const char *text = ir_show(fn->module, 0);
    ck_assert_ptr_nonnull(strstr(text, "%x_1 = const.i 1"));
    ck_assert_ptr_nonnull(strstr(text, "%x_2 = const.i 2"));
    ck_assert_ptr_nonnull(strstr(text, "%0 = const.i 3"));
}
END_TEST

/* ---- editing ---- */

START_TEST(uses_are_replaced_in_regions_too)
{
    ir_fn *fn = small_fn();
    ir_builder b = ir_at_end(fn, fn->body);
    ir_op *loop = counting_loop(fn, &b);
    ir_op *one = loop->regions[0]->first;
    ir_builder c = ir_before(fn, loop);
    ir_val two = ir_const_float(&c, DT_F32, 2);

    ir_return(&b, NULL, 0);
    ck_assert_int_eq(ir_count_uses(fn, one->res), 1);
    ir_replace_uses(fn, one->res, two);
    ck_assert_int_eq(ir_count_uses(fn, one->res), 0);
    ck_assert_int_eq(ir_count_uses(fn, two), 1);
    ir_unlink(one);
    ck_assert_msg(ir_verify(fn->module, &ir_diags), "%s", ir_messages());
}
END_TEST

START_TEST(ops_move_and_know_where_they_are)
{
    ir_fn *fn = small_fn();
    ir_builder b = ir_at_end(fn, fn->body);
    ir_op *loop = counting_loop(fn, &b);
    ir_block *body = loop->regions[0];
    ir_op *one = body->first;

    ir_return(&b, NULL, 0);
    ck_assert_int_eq(ir_depth(fn->body), 0);
    ck_assert_int_eq(ir_depth(body), 1);
    ck_assert(ir_inside(body, loop) && !ir_inside(fn->body, loop));
    ck_assert(!ir_defined_outside(fn, one->res, loop));
    ck_assert(!ir_defined_outside(fn, body->arg, loop));
    ck_assert(!ir_defined_outside(fn, loop->res, loop));
    ck_assert(ir_defined_outside(fn, loop->args[0], loop));
    ck_assert(ir_defined_outside(fn, ir_param_value(fn, 1), loop));
    ir_move_before(one, loop);
    ck_assert(ir_defined_outside(fn, one->res, loop));
    ck_assert_ptr_eq(loop->prev, one);
    ir_move_before(loop->prev, loop);
    ck_assert_ptr_eq(loop->prev, one);
    ck_assert_msg(ir_verify(fn->module, &ir_diags), "%s", ir_messages());
}
END_TEST

START_TEST(a_clone_prints_alike_and_stands_alone)
{
    ir_fn *fn = small_fn();
    ir_builder b = ir_at_end(fn, fn->body);
    arena other;

    counting_loop(fn, &b);
    ir_assert(&b, ir_const_int(&b, DT_I1, 1), "always");
    ir_return(&b, NULL, 0);
    const char *text = ir_show(fn->module, 0);
    arena_init(&other);
    ir_module *copy = ir_clone(fn->module, &other);
    memset(fn->body->first, 0xAB, sizeof *fn->body->first);
    ck_assert_str_eq(ir_show(copy, 0), text);
    ck_assert_msg(ir_verify(copy, &ir_diags), "%s", ir_messages());
    arena_release(&other);
}
END_TEST

/* ---- a wrong call ---- */

static tw_status add_unlike(void *arg)
{
    ir_builder *b = arg;
    ir_val x = ir_const_int(b, DT_I32, 1), y = ir_const_float(b, DT_F32, 1);

    ir_binary(b, OP_ADD, x, y);
    return TW_OK;
}

START_TEST(a_wrong_call_is_a_bug_of_the_caller)
{
    ir_fn *fn = small_fn();
    ir_builder b = ir_at_end(fn, fn->body);

    /* A debug build aborts in ICHECK, which the test case expects. */
    ck_assert_int_eq(guard_run(add_unlike, &b), TW_E_INTERNAL);
    raise(SIGABRT);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("irbuild");
    TCase *tc = tcase_create("irbuild");

    tcase_add_checked_fixture(tc, ir_fixture_setup, ir_fixture_teardown);
    tcase_add_test(tc, result_types_are_inferred);
    tcase_add_test(tc, the_accumulator_follows_the_factors);
    tcase_add_test(tc, constants_take_their_type);
    tcase_add_test(tc, a_dimension_is_a_constant_or_its_parameter);
    tcase_add_test(tc, ops_go_where_the_builder_stands);
    tcase_add_test(tc, control_has_regions_and_results);
    tcase_add_test(tc, names_are_hints);
    tcase_add_test(tc, uses_are_replaced_in_regions_too);
    tcase_add_test(tc, ops_move_and_know_where_they_are);
    tcase_add_test(tc, a_clone_prints_alike_and_stands_alone);
    tcase_add_test_raise_signal(tc, a_wrong_call_is_a_bug_of_the_caller, SIGABRT);
    suite_add_tcase(s, tc);
    return s;
}
