#include "tests/support/built_kernel.h"
#include <check.h>

tw_context *built_cx;

void built_setup(void)
{
    ck_assert_int_eq(tw_context_create(NULL, &built_cx), TW_OK);
}

void built_teardown(void)
{
    tw_context_destroy(built_cx);
}

static const int64_t blocks[] = {8, 16};
static const tw_ir_tune tunes[] = {{"BLOCK", NULL, blocks, 2}};
static const tw_ir_const consts[] = {
    {"T", "float", "f32", NULL}, {"MODE", "mode", "up", "up down"}, {"FLAG", "bool", NULL, NULL}};
static const tw_ir_param params[] = {{"x", TW_PARAM_TENSOR, TW_IN, "T", {"M", "N"}, false},
                                     {"y", TW_PARAM_TENSOR, TW_OUT, "T", {"M", "N"}, false},
                                     {"z", TW_PARAM_TENSOR, TW_INOUT, "i32", {"N"}, false},
                                     {"s", TW_PARAM_SCALAR, TW_IN, "f32", {NULL}, true},
                                     {"k", TW_PARAM_SCALAR, TW_IN, "i32", {NULL}, false}};

void built_launch(tw_ir *b)
{
    tw_ir_default(b, "s", tw_ir_const_float(b, TW_IR_F32, 2.0));
    tw_ir_grid(b, tw_ir_dim(b, "M"), 0, 0);
}

static void run_launch(void *user, tw_ir *b)
{
    const built_pair *p = user;

    (p->launch ? p->launch : built_launch)(b);
}

static void run_body(void *user, tw_ir *b)
{
    const built_pair *p = user;

    if (p->body)
        p->body(b);
}

tw_ir_kernel built_kernel(built_pair *p)
{
    tw_ir_kernel def = TW_IR_KERNEL_INIT;

    def.name = "f";
    def.params = params;
    def.param_count = sizeof params / sizeof *params;
    def.consts = consts;
    def.const_count = sizeof consts / sizeof *consts;
    def.tunes = tunes;
    def.tune_count = 1;
    def.user = p;
    def.launch = run_launch;
    def.body = run_body;
    return def;
}
