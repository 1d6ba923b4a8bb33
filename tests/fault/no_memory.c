/* Every allocation between an empty process and a result fails in turn: each call says so or works,
 * nothing is lost, and nothing crashes. */
#include "compiler/base/error.h"
#include "compiler/base/mem.h"
#include "tilewright_ir.h"
#include <check.h>
#include <stdlib.h>
#include <string.h>

typedef struct session {
    tw_context *cx;
    tw_device *dev;
    tw_kernel *k, *built;
    tw_bound *b;
    char *text;
} session;

static float memory[3][64];
static int64_t shape[1] = {64};
static DLTensor tensor[3];
static tw_arg args[4];

static void make_args(void)
{
    static const char *const name[] = {"a", "b", "c"};

    for (int i = 0; i < 3; i++) {
        tensor[i] = (DLTensor){memory[i], {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0};
        args[i] = TW_TENSOR(name[i], &tensor[i]);
    }
    args[3] = TW_TEXT("T", "f32");
}

/* ---- y = x + 1, built from C ---- */

static void build_launch(void *user, tw_ir *b)
{
    (void)user;
    tw_ir_grid(b, tw_ir_dim(b, "N"), 0, 0);
}

static void build_body(void *user, tw_ir *b)
{
    const tw_ir_val at[] = {tw_ir_program_id(b, 0)};
    const int64_t extent[] = {0};
    tw_ir_val one = tw_ir_const_float(b, TW_IR_F32, 1.0), x;

    (void)user;
    TW_IR_AT(b);
    x = tw_ir_load(b, tw_ir_param_value(b, "a"), at, extent);
    tw_ir_if_begin(b, tw_ir_binary(b, "lt", x, one));
    tw_ir_store(b, tw_ir_param_value(b, "b"), at, extent, tw_ir_binary(b, "add", x, one));
    tw_ir_if_end(b, NULL, 0, NULL);
}

static tw_status run_built(session *s)
{
    static const tw_ir_param params[] = {
        {"a", TW_PARAM_TENSOR, TW_IN, "T", {"N"}, false},
        {"b", TW_PARAM_TENSOR, TW_OUT, "T", {"N"}, false}};
    static const tw_ir_const consts[] = {{"T", "dtype", "f32", NULL}};
    tw_ir_kernel def = TW_IR_KERNEL_INIT;

    def.name = "built";
    def.params = params;
    def.param_count = 2;
    def.consts = consts;
    def.const_count = 1;
    def.launch = build_launch;
    def.body = build_body;
    tw_status st = tw_ir_kernel_create(s->cx, &def, &s->built);
    return st == TW_OK ? tw_launch(s->built, s->dev, NULL, args, 2) : st;
}

static tw_status look_inside(session *s)
{
    tw_compile_options opt = TW_COMPILE_OPTIONS_INIT;
    tw_answer answer = TW_ANSWER_INIT;
    size_t size;

    tw_status st = tw_query(s->k, s->dev, args, 3, NULL, &answer);
    if (st != TW_OK)
        return st;
    opt.target = "interp";
    opt.emit = "tir";
    opt.set = "T=f32";
    opt.dump = "changed";
    return tw_kernel_compile(s->k, &opt, &s->text, &size);
}

static tw_status run(session *s)
{
    tw_launch_options pinned = TW_LAUNCH_OPTIONS_INIT;
    tw_status st = tw_context_create(NULL, &s->cx);

    if (st == TW_OK)
        st = tw_device_open(s->cx, "interp", &s->dev);
    if (st == TW_OK)
        st = tw_kernel_load(s->cx, "kernels/vector_add.tw", NULL, &s->k);
    if (st == TW_OK)
        st = tw_launch(s->k, s->dev, NULL, args, 4);
    pinned.config = "BLOCK=32";
    if (st == TW_OK)
        st = tw_launch_with(s->k, s->dev, NULL, args, 3, &pinned);
    if (st == TW_OK)
        st = tw_kernel_specialize(s->k, s->dev, args, 3, NULL, &s->b);
    if (st == TW_OK)
        st = tw_bound_launch(s->b, NULL, args, 3);
    if (st == TW_OK)
        st = run_built(s);
    return st == TW_OK ? look_inside(s) : st;
}

static void finish(session *s)
{
    tw_free(s->text);
    tw_bound_destroy(s->b);
    tw_kernel_destroy(s->k);
    tw_kernel_destroy(s->built);
    tw_device_close(s->dev);
    tw_context_destroy(s->cx);
    error_clear();
}

START_TEST(each_allocation_in_turn)
{
    long before = mem_live();
    tw_status st = TW_E_NOMEM;
    long n;

    make_args();
    for (n = 1; st != TW_OK && n < 20000; n++) {
        session s = {0};
        mem_fail_after(n);
        st = run(&s);
        mem_fail_after(0);
        ck_assert_msg(st == TW_OK || st == TW_E_NOMEM, "allocation %ld: %s: %s", n,
                      tw_status_name(st), tw_last_error()->text);
        ck_assert(st == TW_OK || tw_last_error()->text[0]);
        finish(&s);
        ck_assert_msg(mem_live() == before, "allocation %ld: %ld blocks are lost", n,
                      mem_live() - before);
    }
    ck_assert_int_eq(st, TW_OK);
    ck_assert_int_gt(n, 50);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("no_memory");
    TCase *t = tcase_create("no_memory");

    tcase_add_test(t, each_allocation_in_turn);
    suite_add_tcase(s, t);
    return s;
}
