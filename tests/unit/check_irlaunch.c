#include "compiler/base/guard.h"
#include "compiler/ir/irbuild.h"
#include "compiler/ir/ireval.h"
#include <check.h>

/* kernel f(x: view<f32>[N], scale: f32 = 1 / N, offset: i32) require scale > 0, grid cdiv(N, 64) */
static ir_fn *build_launch(ir_module *m)
{
    ir_fn *fn = ir_fn_new(m, "f");
    int n = ir_add_dim(fn, "N", false, 0);
    ir_param x = {.kind = PARAM_TENSOR, .name = "x", .type = type_view(DT_F32, 1), .dim = {n}};
    ir_param scale = {.kind = PARAM_SCALAR, .name = "scale", .type = type_scalar(DT_F32)};
    ir_param offset = {.kind = PARAM_SCALAR, .name = "offset", .type = type_scalar(DT_I32)};
    ir_param dim = {.kind = PARAM_DIM, .name = "N", .type = type_scalar(DT_I32), .symbol = n};
    ir_param given = {.kind = PARAM_GIVEN, .name = "g", .type = type_scalar(DT_I1), .symbol = 1};

    ir_add_param(fn, x);
    ir_add_param(fn, scale);
    ir_add_param(fn, offset);
    ir_add_param(fn, dim);
    ir_add_param(fn, given);
    ir_fn_begin(fn);
    ir_builder b = ir_at_end(fn, fn->body);
    ir_val extent = ir_param_value(fn, 3);
    ir_val one = ir_const_float(&b, DT_F32, 1.0);
    ir_val inverse = ir_binary(&b, OP_DIV, one, ir_cast(&b, extent, DT_F32));
    ir_val value = ir_where(&b, ir_param_value(fn, 4), ir_param_value(fn, 1), inverse);
    ir_assert(&b, ir_binary(&b, OP_CMP_LT, ir_const_float(&b, DT_F32, 0.0), value), "scale > 0.0");
    ir_val up = ir_binary(&b, OP_ADD, extent, ir_const_int(&b, DT_I32, 63));
    ir_val blocks = ir_binary(&b, OP_DIV, up, ir_const_int(&b, DT_I32, 64));
    ir_val result[5] = {ir_cast(&b, blocks, DT_I64), ir_const_int(&b, DT_I64, 1),
                        ir_const_int(&b, DT_I64, -3), value, ir_param_value(fn, 2)};
    ir_return(&b, result, 5);
    fn->nresults = 5;
    return fn;
}

static tw_status run_launch(void *arg)
{
    arena a;
    intern names;
    const char *failed = NULL;
    int64_t grid[3];

    (void)arg;
    arena_init(&a);
    intern_init(&names, &a);
    launch_program *p = launch_prepare(&a, build_launch(ir_module_new(&a, &names)));
    ir_scalar in[4] = {{.i = 0}, {.f = 0}, {.i = 7}, {.i = 100}};
    ck_assert_int_eq(launch_eval(p, in, 1 << 2, grid, &failed), TW_OK);
    ck_assert_double_eq(in[1].f, (double)(1.0f / 100.0f));
    ck_assert_int_eq(in[2].i, 7);
    ck_assert_int_eq(grid[0], 2);
    ck_assert_int_eq(grid[1], 1);
    ck_assert_int_eq(grid[2], 0);

    in[1].f = 0.5;
    ck_assert_int_eq(launch_eval(p, in, 1 << 1 | 1 << 2, grid, &failed), TW_OK);
    ck_assert_double_eq(in[1].f, 0.5);
    ck_assert_ptr_null(failed);

    in[1].f = -0.5;
    ck_assert_int_eq(launch_eval(p, in, 1 << 1 | 1 << 2, grid, &failed), TW_E_ARG);
    ck_assert_str_eq(failed, "scale > 0.0");
    ck_assert_double_eq(in[1].f, -0.5);
    arena_release(&a);
    return TW_OK;
}

START_TEST(launch_functions_fill_defaults_and_check)
{
    ck_assert_int_eq(guard_run(run_launch, NULL), TW_OK);
}
END_TEST

static tw_status prepare_long_launch(void *arg)
{
    intern names;

    intern_init(&names, arg);
    ir_fn *fn = ir_fn_new(ir_module_new(arg, &names), "long");
    ir_fn_begin(fn);
    ir_builder b = ir_at_end(fn, fn->body);
    for (int i = 0; i < LAUNCH_MAX_SLOTS; i++)
        ir_const_int(&b, DT_I64, i);
    ir_val one = ir_const_int(&b, DT_I64, 1), result[3] = {one, one, one};
    ir_return(&b, result, 3);
    launch_prepare(arg, fn);
    return TW_OK;
}

START_TEST(too_long_a_launch_function_is_a_limit)
{
    arena a;

    arena_init(&a);
    ck_assert_int_eq(guard_run(prepare_long_launch, &a), TW_E_LIMIT);
    arena_release(&a);
}
END_TEST

static const int64_t edge_values[] = {0, 1, -1, 7, -7, INT32_MAX, INT32_MIN, 1 << 16};
#define EDGES ((int)(sizeof edge_values / sizeof *edge_values))

static int64_t launch_one(arena *a, enum ir_opcode code, int64_t x, int64_t y)
{
    intern names;
    ir_scalar in[1];
    int64_t grid[3];
    const char *failed;

    intern_init(&names, a);
    ir_fn *fn = ir_fn_new(ir_module_new(a, &names), "one");
    ir_param p = {.kind = PARAM_SCALAR, .name = "r", .type = type_scalar(DT_I32)};
    ir_add_param(fn, p);
    ir_fn_begin(fn);
    ir_builder b = ir_at_end(fn, fn->body);
    ir_val v = ir_binary(&b, code, ir_const_int(&b, DT_I32, x), ir_const_int(&b, DT_I32, y));
    ir_val one = ir_const_int(&b, DT_I64, 1), result[4] = {one, one, one, ir_cast(&b, v, DT_I32)};
    ir_return(&b, result, 4);
    ck_assert_int_eq(launch_eval(launch_prepare(a, fn), in, 0, grid, &failed), TW_OK);
    return in[0].i;
}

static tw_status compare_ops(void *arg)
{
    static const enum ir_opcode code[] = {
        OP_ADD, OP_SUB,    OP_MUL,    OP_DIV,    OP_REM,    OP_MAX, OP_MIN, OP_SHL,
        OP_SHR, OP_CMP_EQ, OP_CMP_NE, OP_CMP_LT, OP_CMP_LE, OP_AND, OP_OR,  OP_XOR};

    for (size_t c = 0; c < sizeof code / sizeof *code; c++) {
        for (int i = 0; i < EDGES * EDGES; i++) {
            ir_scalar in[3] = {{.i = edge_values[i / EDGES]}, {.i = edge_values[i % EDGES]}};
            arena_mark m = arena_save(arg);
            ck_assert_int_eq(launch_one(arg, code[c], in[0].i, in[1].i),
                             eval_op(code[c], DT_I32, DT_I32, in, false).i);
            arena_rewind(arg, m);
        }
    }
    return TW_OK;
}

START_TEST(launch_functions_compute_what_eval_op_does)
{
    arena a;

    arena_init(&a);
    ck_assert_int_eq(guard_run(compare_ops, &a), TW_OK);
    arena_release(&a);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("irlaunch");
    TCase *t = tcase_create("launch");

    tcase_add_test(t, launch_functions_fill_defaults_and_check);
    tcase_add_test(t, too_long_a_launch_function_is_a_limit);
    tcase_add_test(t, launch_functions_compute_what_eval_op_does);
    suite_add_tcase(s, t);
    return s;
}
