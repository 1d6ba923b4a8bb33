/* Descriptions of kernels that are built from C: what is wrong with one is told when it is given.
 */
#include "tests/support/built_kernel.h"
#include <check.h>
#include <string.h>

/* ---- descriptions ---- */

static tw_ir_param param_row[3];
static tw_ir_const const_row[2];
static tw_ir_tune tune_row[2];

static void rank_none(tw_ir_kernel *d)
{
    param_row[0].dims[0] = NULL;
    (void)d;
}
static void type_unknown(tw_ir_kernel *d)
{
    param_row[0].type = "f31";
    (void)d;
}
static void name_twice(tw_ir_kernel *d)
{
    param_row[1].name = "x";
    (void)d;
}
static void name_of_dtype(tw_ir_kernel *d)
{
    param_row[1].name = "f32";
    (void)d;
}
static void name_odd(tw_ir_kernel *d)
{
    param_row[1].name = "a.b";
    (void)d;
}
static void dim_taken(tw_ir_kernel *d)
{
    param_row[0].dims[1] = "s";
    param_row[1].name = "t";
    param_row[2].name = "s";
    (void)d;
    param_row[0].dims[0] = "s";
    d->param_count = 3;
}
static void dim_large(tw_ir_kernel *d)
{
    param_row[0].dims[0] = "3000000000";
    (void)d;
}
static void dim_dtype(tw_ir_kernel *d)
{
    param_row[0].dims[0] = "T";
    (void)d;
}
static void const_type(tw_ir_kernel *d)
{
    const_row[0].type = "i32";
    (void)d;
}
static void const_value(tw_ir_kernel *d)
{
    const_row[0].value = "i32";
    (void)d;
}
static void enum_twice(tw_ir_kernel *d)
{
    const_row[0] = (tw_ir_const){"T", "e", NULL, "a a"};
    (void)d;
}
static void enum_empty(tw_ir_kernel *d)
{
    const_row[0] = (tw_ir_const){"T", "e", NULL, " "};
    (void)d;
}
static void tune_empty(tw_ir_kernel *d)
{
    tune_row[0].count = 0;
    (void)d;
}
static void tune_no_general(tw_ir_kernel *d)
{
    tune_row[0].target = "cpu";
    (void)d;
}
static void tune_same(tw_ir_kernel *d)
{
    tune_row[1] = tune_row[0];
    d->tune_count = 2;
}
static void tune_schedule(tw_ir_kernel *d)
{
    tune_row[0].name = "threads";
    (void)d;
}
static void no_body(tw_ir_kernel *d)
{
    d->body = NULL;
}
static void no_name(tw_ir_kernel *d)
{
    d->name = "two words";
}
static void no_size(tw_ir_kernel *d)
{
    d->size = 0;
}
static void null_params(tw_ir_kernel *d)
{
    d->params = NULL;
}
static void many_params(tw_ir_kernel *d)
{
    d->param_count = 1000;
}

static const struct bad_def {
    void (*spoil)(tw_ir_kernel *d);
    tw_status st;
    const char *said;
} bad_defs[] = {
    {rank_none, TW_E_ARG, "parameter 'x': a tensor has dimensions"},
    {type_unknown, TW_E_ARG, "parameter 'x': its type is"},
    {name_twice, TW_E_ARG, "parameter 'x': something else has that name"},
    {name_of_dtype, TW_E_ARG, "something else has that name"},
    {name_odd, TW_E_ARG, "a name is"},
    {dim_taken, TW_E_ARG, "parameter 's': something else has that name"},
    {dim_large, TW_E_ARG, "between 0 and 2^31 - 1"},
    {dim_dtype, TW_E_ARG, "a dimension is an int"},
    {const_type, TW_E_ARG, "compile-time value 'T': its type is"},
    {const_value, TW_E_ARG, "its default is no value of its type"},
    {enum_twice, TW_E_ARG, "two members have one name"},
    {enum_empty, TW_E_ARG, "an enumeration has a name and members"},
    {tune_empty, TW_E_ARG, "a set has 1 to 256 values"},
    {tune_no_general, TW_E_ARG, "it needs a set for any target"},
    {tune_same, TW_E_ARG, "two sets are for one target"},
    {tune_schedule, TW_E_SOURCE, "the name of a schedule parameter"},
    {no_body, TW_E_ARG, "a name, launch and body"},
    {no_name, TW_E_ARG, "a name, launch and body"},
    {no_size, TW_E_ARG, "def has no size"},
    {null_params, TW_E_ARG, "NULL though its count is not 0"},
    {many_params, TW_E_LIMIT, "1000 parameters; at most 32"},
};

static int destroyed;

static void on_destroy(void *user)
{
    (void)user;
    destroyed++;
}

START_TEST(a_wrong_description_is_told)
{
    built_pair p = {0};
    tw_ir_kernel def = built_kernel(&p);
    tw_kernel *k = NULL;

    param_row[0] = (tw_ir_param){"x", TW_PARAM_TENSOR, TW_IN, "T", {"M"}, false};
    param_row[1] = (tw_ir_param){"s", TW_PARAM_SCALAR, TW_IN, "f32", {NULL}, true};
    param_row[2] = (tw_ir_param){"u", TW_PARAM_SCALAR, TW_IN, "f32", {NULL}, true};
    const_row[0] = (tw_ir_const){"T", "float", "f32", NULL};
    tune_row[0] = def.tunes[0];
    def.params = param_row;
    def.param_count = 2;
    def.consts = const_row;
    def.const_count = 1;
    def.tunes = tune_row;
    def.destroy = on_destroy;
    destroyed = 0;
    ck_assert_int_eq(tw_ir_kernel_create(built_cx, &def, &k), TW_OK);
    tw_kernel_destroy(k);
    ck_assert_int_eq(destroyed, 1);
    k = NULL;
    bad_defs[_i].spoil(&def);
    tw_status st = tw_ir_kernel_create(built_cx, &def, &k);
    ck_assert_msg(st == bad_defs[_i].st && strstr(tw_last_error()->text, bad_defs[_i].said),
                  "%s: %s\nexpected: %s", tw_status_name(st), tw_last_error()->text,
                  bad_defs[_i].said);
    ck_assert(!k && destroyed == 1);
}
END_TEST

/* ---- configurations that are none ---- */

static const char *refuse_large(void *user, tw_ir *b)
{
    (void)user;
    ck_assert_uint_eq(tw_ir_const_int(NULL, TW_IR_I32, 1), 0);
    return tw_ir_int(b, "BLOCK") > 8 ? "BLOCK is at most 8" : NULL;
}

static const char *refuse_wrongly(void *user, tw_ir *b)
{
    (void)user;
    tw_ir_const_int(b, TW_IR_I32, 1);
    return NULL;
}

START_TEST(a_configuration_may_be_refused)
{
    built_pair p = {0};
    tw_ir_kernel def = built_kernel(&p);
    tw_compile_options options = TW_COMPILE_OPTIONS_INIT;
    tw_kernel *k;
    char *text;
    size_t n;

    def.refuse = refuse_large;
    ck_assert_int_eq(tw_ir_kernel_create(built_cx, &def, &k), TW_OK);
    options.target = "interp";
    options.emit = "tir";
    options.set = "FLAG=true,BLOCK=16";
    ck_assert_int_eq(tw_kernel_compile(k, &options, &text, &n), TW_E_ARG);
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "BLOCK is at most 8"));
    options.set = "FLAG=true,BLOCK=7"; /* any value may be given by hand */
    ck_assert_msg(tw_kernel_compile(k, &options, &text, &n) == TW_OK, "%s", tw_last_error()->text);
    tw_free(text);
    tw_kernel_destroy(k);
    def.refuse = refuse_wrongly;
    ck_assert_int_eq(tw_ir_kernel_create(built_cx, &def, &k), TW_OK);
    ck_assert_int_eq(tw_kernel_compile(k, &options, &text, &n), TW_E_ARG);
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "its refuse function"));
    tw_kernel_destroy(k);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("csource");
    TCase *t = tcase_create("csource");

    tcase_add_checked_fixture(t, built_setup, built_teardown);
    tcase_add_loop_test(t, a_wrong_description_is_told, 0,
                        (int)(sizeof bad_defs / sizeof *bad_defs));
    tcase_add_test(t, a_configuration_may_be_refused);
    suite_add_tcase(s, t);
    return s;
}
