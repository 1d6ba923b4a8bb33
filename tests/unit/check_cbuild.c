/* Kernels built from C: every operation can be built, every wrong call is told, none crashes. */
#include "compiler/ir/ir.h"
#include "tests/support/built_kernel.h"
#include "tests/support/random_build.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tw_status compile(const tw_ir_kernel *def, char **text)
{
    tw_compile_options options = TW_COMPILE_OPTIONS_INIT;
    tw_kernel *k;
    size_t n;

    *text = NULL;
    ck_assert_msg(tw_ir_kernel_create(built_cx, def, &k) == TW_OK, "%s", tw_last_error()->text);
    options.target = "interp";
    options.emit = "tir";
    options.set = "FLAG=true";
    tw_status st = tw_kernel_compile(k, &options, text, &n);
    tw_kernel_destroy(k);
    return st;
}

static tw_ir_val i32(tw_ir *b, int64_t v)
{
    return tw_ir_const_int(b, TW_IR_I32, v);
}

static tw_ir_val f32(tw_ir *b, double v)
{
    return tw_ir_const_float(b, TW_IR_F32, v);
}

/* ---- every operation ---- */

static bool built[OP_COUNT];

/* Operands are tiles that depend on the tensors, and what is built is stored: no pass drops it. */
static void build_named(tw_ir *b, int code, tw_ir_val of_float, tw_ir_val of_int, tw_ir_val cond)
{
    const ir_op_info *info = op_info((enum ir_opcode)code);
    tw_ir_val args[3] = {of_float, of_float, of_float};
    bool of_ints = code == OP_SHL || code == OP_SHR || code == OP_AND || code == OP_OR ||
                   code == OP_XOR || code == OP_NOT;

    for (int i = 0; i < 3 && of_ints; i++)
        args[i] = of_int;
    if (code == OP_WHERE)
        args[0] = cond;
    tw_ir_op(b, info->name, args, (size_t)info->min_args, NULL, 0, NULL);
    built[code] = tw_ir_status(b) == TW_OK;
}

static void build_elementwise(tw_ir *b)
{
    const int64_t n = 4;
    tw_ir_val of_int = tw_ir_arange(b, 0, n), of_float = tw_ir_cast(b, of_int, TW_IR_F32);
    tw_ir_val cond = tw_ir_binary(b, "lt", of_int, of_int);

    for (int code = 0; code < OP_COUNT; code++)
        if (op_info((enum ir_opcode)code)->traits & OPT_EWISE)
            build_named(b, code, of_float, of_int, cond);
}

static void build_shapes(tw_ir *b)
{
    static const int64_t square[] = {4, 4}, turn[] = {1, 0}, flat[] = {16}, one[] = {1, 4};
    tw_ir_val x = tw_ir_splat(b, f32(b, 1.0), 2, square), row = tw_ir_splat(b, f32(b, 1.0), 2, one);

    tw_ir_dot(b, x, tw_ir_trans(b, x, 2, turn), tw_ir_like(b, row, x));
    tw_ir_broadcast(b, tw_ir_expand_dims(b, tw_ir_reduce(b, "reduce_max", x, 0), 0), 2, square);
    tw_ir_reduce(b, "reduce_min", x, 1);
    tw_ir_reduce(b, "reduce_sum", x, 1);
    tw_ir_val mask = tw_ir_binary(b, "lt", x, x);
    tw_ir_unary(b, "some", mask);
    tw_ir_unary(b, "every", mask);
    tw_ir_reduce(b, "scan_sum", x, 1);
    tw_ir_reduce(b, "scan_prod", x, 0);
    tw_ir_bitcast(b, tw_ir_reshape(b, x, 1, flat), TW_IR_I32);
    tw_ir_num_programs(b, 2);
    for (int scan = 0; scan < 2; scan++) {
        tw_ir_val two[2];
        tw_ir_fold_begin(b, scan ? "scan" : "reduce", x, 1, two);
        tw_ir_val most = tw_ir_fold_end(b, tw_ir_binary(b, "maximum", two[0], two[1]));
        ck_assert_int_eq(tw_ir_type_of(b, most).rank, scan ? 2 : 1);
    }
    built[OP_REDUCE] = built[OP_SCAN] = tw_ir_status(b) == TW_OK;
}

static void build_control(tw_ir *b)
{
    tw_ir_val zero = i32(b, 0), v = i32(b, 5), w;
    tw_ir_val i = tw_ir_for_begin(b, zero, tw_ir_dim(b, "N"), i32(b, 1), &v, 1, &w);

    w = tw_ir_binary(b, "add", w, i);
    tw_ir_for_end(b, &w, 1, &v);
    tw_ir_while_begin(b, &v, 1, &w);
    tw_ir_while_do(b, tw_ir_binary(b, "lt", zero, w), &w, 1, &w);
    w = tw_ir_binary(b, "sub", w, i32(b, 3));
    tw_ir_while_end(b, &w, 1, &v);
    tw_ir_if_begin(b, tw_ir_binary(b, "lt", v, zero));
    tw_ir_else(b, &v, 1);
    w = tw_ir_unary(b, "neg", v);
    tw_ir_if_end(b, &w, 1, &v);
    tw_ir_if_begin(b, tw_ir_binary(b, "eq", v, zero));
    tw_ir_assert(b, tw_ir_binary(b, "le", zero, v), "not below 0");
    tw_ir_if_end(b, NULL, 0, NULL);
    const tw_ir_val at[] = {zero};
    const int64_t extent[] = {0};
    tw_ir_val z = tw_ir_param_value(b, "z");
    tw_ir_name(b, v, "total");
    tw_ir_store(b, z, at, extent, tw_ir_binary(b, "add", v, tw_ir_load(b, z, at, extent)));
    built[OP_FOR] = built[OP_WHILE] = built[OP_IF] = tw_ir_status(b) == TW_OK;
}

static void build_all(tw_ir *b)
{
    build_elementwise(b);
    build_shapes(b);
    build_control(b);
}

START_TEST(every_operation_can_be_built)
{
    built_pair p = {NULL, build_all};
    tw_ir_kernel def = built_kernel(&p);
    char *text;

    ck_assert_msg(compile(&def, &text) == TW_OK, "%s", tw_last_error()->text);
    ck_assert_ptr_nonnull(strstr(text, "%total"));
    tw_free(text);
    for (int code = 0; code < OP_COUNT; code++) { /* those without regions: tw_ir_op takes any */
        const ir_op_info *info = op_info((enum ir_opcode)code);
        bool must = (info->regions || (info->traits & OPT_EWISE)) && !(info->traits & OPT_SCHED);
        ck_assert_msg(built[code] || !must, "%s", info->name);
    }
}
END_TEST

/* ---- wrong calls ---- */

static const int64_t square[] = {4, 4};

static void types_clash(tw_ir *b)
{
    tw_ir_binary(b, "add", f32(b, 1.0), i32(b, 1));
}
static void no_operation(tw_ir *b)
{
    tw_ir_unary(b, "exq2", f32(b, 1.0));
}
static void control_by_name(tw_ir *b)
{
    tw_ir_op(b, "yield", NULL, 0, NULL, 0, NULL);
}
static void no_value(tw_ir *b)
{
    tw_ir_binary(b, "add", f32(b, 1.0), 0);
}
static void foreign_value(tw_ir *b)
{
    tw_ir_unary(b, "neg", 100000);
}
static void attribute_missing(tw_ir *b)
{
    tw_ir_val x = tw_ir_splat(b, f32(b, 1.0), 2, square);

    tw_ir_op(b, "reduce_sum", &x, 1, NULL, 0, NULL);
}
static void attribute_unknown(tw_ir *b)
{
    tw_ir_op(b, "program_id", NULL, 0, &(tw_ir_attr){.name = "axes"}, 1, NULL);
}
static void region_over(tw_ir *b)
{
    tw_ir_if_begin(b, tw_ir_const_int(b, TW_IR_I1, 1));
    tw_ir_val x = f32(b, 1.0);
    tw_ir_if_end(b, NULL, 0, NULL);
    tw_ir_unary(b, "neg", x);
}
static void wrong_region(tw_ir *b)
{
    tw_ir_if_begin(b, tw_ir_const_int(b, TW_IR_I1, 1));
    tw_ir_for_end(b, NULL, 0, NULL);
}
static void no_region(tw_ir *b)
{
    tw_ir_while_end(b, NULL, 0, NULL);
}
static void not_ended(tw_ir *b)
{
    tw_ir_if_begin(b, tw_ir_const_int(b, TW_IR_I1, 1));
}
static void carried_type(tw_ir *b)
{
    tw_ir_val v = i32(b, 0), w = f32(b, 0.0), in;

    tw_ir_for_begin(b, v, v, v, &v, 1, &in);
    tw_ir_for_end(b, &w, 1, &in);
}
static void arms_differ(tw_ir *b)
{
    tw_ir_val v = i32(b, 0), w = f32(b, 0.0), out;

    tw_ir_if_begin(b, tw_ir_const_int(b, TW_IR_I1, 1));
    tw_ir_else(b, &v, 1);
    tw_ir_if_end(b, &w, 1, &out);
}
static void no_else(tw_ir *b)
{
    tw_ir_val v = i32(b, 0), out;

    tw_ir_if_begin(b, tw_ir_const_int(b, TW_IR_I1, 1));
    tw_ir_if_end(b, &v, 1, &out);
}
static void two_tests(tw_ir *b)
{
    tw_ir_val yes = tw_ir_const_int(b, TW_IR_I1, 1);

    tw_ir_while_begin(b, NULL, 0, NULL);
    tw_ir_while_do(b, yes, NULL, 0, NULL);
    tw_ir_while_do(b, yes, NULL, 0, NULL);
}
static void fold_loads(tw_ir *b)
{
    tw_ir_val two[2];

    tw_ir_fold_begin(b, "reduce", tw_ir_splat(b, f32(b, 1.0), 2, square), 1, two);
    tw_ir_program_id(b, 0);
}
static void fold_branches(tw_ir *b)
{
    tw_ir_val two[2], yes = tw_ir_const_int(b, TW_IR_I1, 1);

    tw_ir_fold_begin(b, "scan", tw_ir_splat(b, f32(b, 1.0), 2, square), 1, two);
    tw_ir_if_begin(b, yes);
}
static void fold_type(tw_ir *b)
{
    tw_ir_val two[2];

    tw_ir_fold_begin(b, "scan", tw_ir_splat(b, f32(b, 1.0), 2, square), 1, two);
    tw_ir_fold_end(b, i32(b, 1));
}
static void fold_of_what(tw_ir *b)
{
    tw_ir_val two[2] = {1, 1};

    tw_ir_fold_begin(b, "for", tw_ir_splat(b, f32(b, 1.0), 2, square), 1, two);
    ck_assert(!two[0] && !two[1]);
}
static void fold_not_open(tw_ir *b)
{
    tw_ir_if_begin(b, tw_ir_const_int(b, TW_IR_I1, 1));
    tw_ir_fold_end(b, f32(b, 1.0));
}
static void too_deep(tw_ir *b)
{
    for (int i = 0; i < 100; i++)
        tw_ir_if_begin(b, tw_ir_const_int(b, TW_IR_I1, 1));
}
static void too_many(tw_ir *b)
{
    while (tw_ir_status(b) == TW_OK)
        i32(b, 1);
}
static void list_too_long(tw_ir *b)
{
    static tw_ir_val many[2000];

    tw_ir_while_begin(b, many, 2000, many);
}
static void null_list(tw_ir *b)
{
    tw_ir_while_begin(b, NULL, 2, NULL);
}
static void read_out(tw_ir *b)
{
    const tw_ir_val at[] = {i32(b, 0), i32(b, 0)};

    tw_ir_load(b, tw_ir_param_value(b, "y"), at, square);
}
static void write_in(tw_ir *b)
{
    const tw_ir_val at[] = {i32(b, 0), i32(b, 0)};

    tw_ir_store(b, tw_ir_param_value(b, "x"), at, square, tw_ir_splat(b, f32(b, 0.0), 2, square));
}
static void tile_too_large(tw_ir *b)
{
    static const int64_t huge[] = {1 << 12, 1 << 12}, wide[] = {(int64_t)1 << 40};

    tw_ir_splat(b, f32(b, 0.0), tw_ir_int(b, "BLOCK") ? 2 : 1, tw_ir_bool(b, "FLAG") ? huge : wide);
}
static void odd_extent(tw_ir *b)
{
    static const int64_t wide[] = {(int64_t)1 << 40};

    tw_ir_splat(b, f32(b, 0.0), 1, wide);
}
static void odd_dtype(tw_ir *b)
{
    tw_ir_cast(b, f32(b, 0.0), (tw_ir_dtype)99);
}
static void float_constant(tw_ir *b)
{
    tw_ir_const_float(b, TW_IR_I32, 1.0);
}
static void no_parameter(tw_ir *b)
{
    tw_ir_param_value(b, "q");
}
static void no_constant(tw_ir *b)
{
    ck_assert_int_eq(tw_ir_int(b, "BLOCKS"), 0);
    ck_assert_int_eq(tw_ir_int(b, "BLOCK"), 8); /* answers also now */
    ck_assert_str_eq(tw_ir_member(b, "MODE"), "up");
}
static void kind_of_constant(tw_ir *b)
{
    ck_assert(tw_ir_dtype_of(b, "T") == TW_IR_F32 && tw_ir_bool(b, "FLAG"));
    tw_ir_int(b, "FLAG");
}
static void own_error(tw_ir *b)
{
    tw_ir_fail(b, "no such size");
}
static void grid_in_body(tw_ir *b)
{
    tw_ir_grid(b, 0, 0, 0);
}
static void placed(tw_ir *b)
{
    tw_ir_at(b, "mine.c", 42);
    tw_ir_unary(b, "exp2", i32(b, 1));
}
static void no_text(tw_ir *b)
{
    tw_ir_assert(b, tw_ir_const_int(b, TW_IR_I1, 1), NULL);
}
static void launch_without_grid(tw_ir *b)
{
    tw_ir_default(b, "s", f32(b, 1.0));
}
static void launch_without_default(tw_ir *b)
{
    tw_ir_grid(b, 0, 0, 0);
}
static void launch_goes_on(tw_ir *b)
{
    built_launch(b);
    i32(b, 1);
}
static void launch_two_defaults(tw_ir *b)
{
    tw_ir_default(b, "s", f32(b, 1.0));
    tw_ir_default(b, "s", f32(b, 1.0));
}
static void launch_bad_default(tw_ir *b)
{
    tw_ir_default(b, "s", i32(b, 1));
}
static void launch_no_default(tw_ir *b)
{
    tw_ir_default(b, "k", i32(b, 1));
}
static void launch_loads(tw_ir *b)
{
    tw_ir_param_value(b, "x");
}
static void launch_id(tw_ir *b)
{
    tw_ir_program_id(b, 0);
}
static void launch_loop(tw_ir *b)
{
    tw_ir_if_begin(b, tw_ir_const_int(b, TW_IR_I1, 1));
}
static void launch_float_grid(tw_ir *b)
{
    tw_ir_default(b, "s", f32(b, 1.0));
    tw_ir_grid(b, tw_ir_param_value(b, "s"), 0, 0);
}

static const struct wrong {
    built_pair p;
    tw_status st;
    const char *said;
} wrong[] = {
    {{NULL, types_clash},
     TW_E_SOURCE,
     "the body, call 3, 'add': operands have one type; operands: f32, i32"},
    {{NULL, no_operation}, TW_E_SOURCE, "no operation 'exq2'; did you mean 'exp2'?"},
    {{NULL, control_by_name}, TW_E_SOURCE, "'yield' has calls of its own"},
    {{NULL, no_value}, TW_E_SOURCE, "operand 2 is no value"},
    {{NULL, foreign_value}, TW_E_SOURCE, "operand 1 is no value"},
    {{NULL, attribute_missing}, TW_E_SOURCE, "'reduce_sum' needs the attribute 'axis'"},
    {{NULL, attribute_unknown}, TW_E_SOURCE, "'program_id' has no attribute 'axes'"},
    {{NULL, region_over}, TW_E_SOURCE, "operand 1 is not in sight"},
    {{NULL, wrong_region}, TW_E_SOURCE, "the region that is open here belongs to 'if'"},
    {{NULL, no_region}, TW_E_SOURCE, "no 'while' is open here"},
    {{NULL, not_ended}, TW_E_SOURCE, "'if' has no end"},
    {{NULL, carried_type}, TW_E_SOURCE, "value 1 is f32 and should be i32"},
    {{NULL, arms_differ}, TW_E_SOURCE, "value 1 is f32 and should be i32"},
    {{NULL, no_else}, TW_E_SOURCE, "needs an else"},
    {{NULL, two_tests}, TW_E_SOURCE, "has its test already"},
    {{NULL, fold_loads}, TW_E_SOURCE, "is of elementwise operations"},
    {{NULL, fold_branches}, TW_E_SOURCE, "the function of a reduction is a straight line"},
    {{NULL, fold_type}, TW_E_SOURCE, "value 1 is i32 and should be f32"},
    {{NULL, fold_of_what}, TW_E_SOURCE, "'for' is neither reduce nor scan"},
    {{NULL, fold_not_open}, TW_E_SOURCE, "no reduce or scan is open"},
    {{NULL, too_deep}, TW_E_LIMIT, "nested at most 64 deep"},
    {{NULL, too_many}, TW_E_LIMIT, "more than 131072 calls"},
    {{NULL, list_too_long}, TW_E_LIMIT, "more than 1024 values"},
    {{NULL, null_list}, TW_E_SOURCE, "NULL though its count is not 0"},
    {{NULL, read_out}, TW_E_SOURCE, "an 'out' tensor is not read"},
    {{NULL, write_in}, TW_E_SOURCE, "an 'in' tensor is not written"},
    {{NULL, tile_too_large}, TW_E_SOURCE, "within the limits"},
    {{NULL, odd_extent}, TW_E_SOURCE, "within the limits"},
    {{NULL, odd_dtype}, TW_E_SOURCE, "no element type"},
    {{NULL, float_constant}, TW_E_SOURCE, "i32 is no float type"},
    {{NULL, no_parameter}, TW_E_SOURCE, "no parameter 'q'"},
    {{NULL, no_constant}, TW_E_SOURCE, "no compile-time value 'BLOCKS'"},
    {{NULL, kind_of_constant}, TW_E_SOURCE, "'FLAG' is no int"},
    {{NULL, own_error}, TW_E_ARG, "no such size"},
    {{NULL, grid_in_body}, TW_E_SOURCE, "only a launch function"},
    {{NULL, placed}, TW_E_SOURCE, "'exp2' at mine.c:42: operands are of a float type"},
    {{NULL, no_text}, TW_E_SOURCE, "the text attribute is missing"},
    {{launch_without_grid, NULL}, TW_E_SOURCE, "the launch function, call 2, 'end': no grid"},
    {{launch_without_default, NULL}, TW_E_SOURCE, "'s' has a default, which was not given"},
    {{launch_goes_on, NULL}, TW_E_SOURCE, "the grid is the last"},
    {{launch_two_defaults, NULL}, TW_E_SOURCE, "'s' has its default already"},
    {{launch_bad_default, NULL}, TW_E_SOURCE, "operands have one type"},
    {{launch_no_default, NULL}, TW_E_SOURCE, "no scalar 'k' that has a default"},
    {{launch_loads, NULL}, TW_E_SOURCE, "does not use tensors"},
    {{launch_id, NULL}, TW_E_SOURCE, "only operations that the host runs"},
    {{launch_loop, NULL}, TW_E_SOURCE, "a straight line"},
    {{launch_float_grid, NULL}, TW_E_SOURCE, "an extent of the grid is an integer, not f32"},
};

START_TEST(a_wrong_call_is_told)
{
    const struct wrong *w = &wrong[_i];
    built_pair p = w->p;
    tw_ir_kernel def = built_kernel(&p);
    char *text;

    tw_status st = compile(&def, &text);
    const char *said = tw_last_error()->text;
    ck_assert_msg(st == w->st && strstr(said, w->said), "%s: %s\nexpected: %s", tw_status_name(st),
                  said, w->said);
    ck_assert_ptr_null(text);
}
END_TEST

START_TEST(calls_without_a_builder_do_nothing)
{
    tw_ir_val out[1] = {7};

    ck_assert_uint_eq(tw_ir_unary(NULL, "neg", 1), 0);
    ck_assert_int_eq(tw_ir_int(NULL, "B"), 0);
    ck_assert_str_eq(tw_ir_member(NULL, "B"), "");
    ck_assert_str_eq(tw_ir_target(NULL), "");
    ck_assert_int_eq(tw_ir_type_of(NULL, 1).rank, -1);
    ck_assert_int_eq(tw_ir_status(NULL), TW_E_ARG);
    tw_ir_for_end(NULL, NULL, 1, out);
    ck_assert_uint_eq(out[0], 0);
    tw_ir_at(NULL, "f", 1);
    tw_ir_fail(NULL, "f");
}
END_TEST

/* ---- any calls ---- */

/* The same calls each time; others, and more, are scripts/fuzz.sh's. */
START_TEST(any_calls_end_in_a_status)
{
    unsigned seed = 1, good = 0;
    uint8_t bytes[600];

    srand(seed);
    for (int round = 0; round < 3000; round++) {
        size_t n = (size_t)rand() % sizeof bytes;
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)rand();
        tw_status st = random_build(built_cx, bytes, n, NULL);
        good += st == TW_OK;
        ck_assert_msg(st == TW_OK || st == TW_E_SOURCE || st == TW_E_ARG || st == TW_E_LIMIT,
                      "seed %u, round %d: %s: %s", seed, round, tw_status_name(st),
                      tw_last_error()->text);
    }
    ck_assert_uint_gt(good, 10);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("cbuild");
    TCase *t = tcase_create("cbuild");

    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, built_setup, built_teardown);
    tcase_add_test(t, every_operation_can_be_built);
    tcase_add_loop_test(t, a_wrong_call_is_told, 0, (int)(sizeof wrong / sizeof *wrong));
    tcase_add_test(t, calls_without_a_builder_do_nothing);
    tcase_add_test(t, any_calls_end_in_a_status);
    suite_add_tcase(s, t);
    return s;
}
