/* The whole public interface as a C program sees it: nothing but tilewright.h. */
#include "tilewright.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        tw_status status_ = (call);                                                                \
        ck_assert_msg(status_ == TW_OK, "%s: %s", #call, tw_last_error()->text);                   \
    } while (0)
#define FAILS(call, st, said)                                                                      \
    do {                                                                                           \
        tw_status status_ = (call);                                                                \
        ck_assert_msg(status_ == (st), "%s: %s: %s", #call, tw_status_name(status_),               \
                      tw_last_error()->text);                                                      \
        ck_assert_msg(strstr(tw_last_error()->text, (said)) != NULL, "%s: %s", #call,              \
                      tw_last_error()->text);                                                      \
    } while (0)

static tw_context *cx;
static tw_device *dev;

static void setup(void)
{
    OK(tw_context_create(NULL, &cx));
    OK(tw_device_open(cx, "interp", &dev));
}

static void teardown(void)
{
    tw_device_close(dev);
    tw_context_destroy(cx);
}

/* ---- attention, from a file to a result ------------------------------------------------------ */

enum { HEADS = 2, ROWS = 5, COLUMNS = 7, D = 16 };

typedef struct attention {
    float q[HEADS][ROWS][D], k[COLUMNS][D], v[COLUMNS][D], o[HEADS][ROWS][D], lse[HEADS][ROWS];
    int64_t shape[5][4];
    DLTensor t[5];
    tw_arg args[7];
} attention;

static DLTensor f32(void *data, int rank, int64_t *shape)
{
    DLTensor t = {data, {kDLCPU, 0}, rank, {kDLFloat, 32, 1}, shape, NULL, 0};

    return t;
}

static void make(attention *a)
{
    static const int64_t shape[5][4] = {{1, HEADS, ROWS, D},
                                        {1, 1, COLUMNS, D},
                                        {1, 1, COLUMNS, D},
                                        {1, HEADS, ROWS, D},
                                        {1, HEADS, ROWS, 0}};
    static const char *const name[] = {"q", "k", "v", "o", "lse"};
    void *const data[] = {a->q, a->k, a->v, a->o, a->lse};

    memset(a, 0, sizeof *a);
    memcpy(a->shape, shape, sizeof shape);
    for (int i = 0; i < 5; i++) {
        a->t[i] = f32(data[i], i == 4 ? 3 : 4, a->shape[i]);
        a->args[i] = TW_TENSOR(name[i], &a->t[i]);
    }
    a->args[5] = TW_BOOL("CAUSAL", false);
    a->args[6] = TW_F32("scale", 1.0);
    for (int j = 0; j < COLUMNS; j++)
        a->v[j][3] = (float)j;
}

/* q = 0: every key weighs the same, o is the mean of v and lse the logarithm of their number. */
START_TEST(a_launch)
{
    static attention a;
    tw_kernel *k;
    tw_answer answer = TW_ANSWER_INIT;

    make(&a);
    OK(tw_kernel_load(cx, "kernels/attention_fwd.tw", "attention_fwd", &k));
    OK(tw_launch(k, dev, NULL, a.args, 7));
    OK(tw_stream_sync(dev, NULL));
    ck_assert_float_eq_tol(a.o[1][4][3], 3.0f, 1e-5f);
    ck_assert_float_eq_tol(a.lse[1][4], 1.9459101f, 1e-5f);
    OK(tw_query(k, dev, a.args, 7, NULL, &answer));
    ck_assert_int_eq(answer.layer, TW_LAYER_DEFAULT);
    ck_assert_ptr_nonnull(strstr(answer.config, "BLOCK_M="));
    ck_assert_int_eq((int)answer.programs, HEADS);
    ck_assert(answer.ir_ops > 0 && answer.text_lines > 0 && answer.compile_s > 0.0);
    tw_kernel_destroy(k);
}
END_TEST

START_TEST(bound)
{
    static attention a;
    tw_launch_options opt = TW_LAUNCH_OPTIONS_INIT;
    tw_kernel *k;
    tw_bound *b;

    make(&a);
    OK(tw_kernel_load(cx, "kernels/attention_fwd.tw", NULL, &k));
    opt.config = "BLOCK_M=32,BLOCK_N=32";
    OK(tw_kernel_specialize(k, dev, a.args, 7, &opt, &b));
    a.args[5] = a.args[6];
    a.args[6] = TW_INT("offset", 0);
    OK(tw_bound_launch(b, NULL, a.args, 7));
    ck_assert_float_eq_tol(a.o[0][0][3], 3.0f, 1e-5f);
    tw_bound_destroy(b);
    tw_kernel_destroy(k);
}
END_TEST

/* A text that is NULL keeps the place of what is left out, also of what is launched again. */
START_TEST(left_out_in_the_middle)
{
    static const char text[] =
        "kernel k[TWICE: bool = true](x: f32[N], out y: f32[N], by: f32 = 3.0, z: f32[N])\n"
        "grid (1) { store(y[0 :+ 4], load(x[0 :+ 4]) * by + load(z[0 :+ 4]) * (TWICE ? 2 : 1)); }\n";
    float x[4] = {1, 2, 3, 4}, y[4], z[4] = {10, 20, 30, 40};
    int64_t n = 4;
    DLTensor tx = f32(x, 1, &n), ty = f32(y, 1, &n), tz = f32(z, 1, &n);
    tw_arg args[] = {TW_TENSOR("x", &tx), TW_TENSOR("y", &ty), TW_TEXT("by", NULL),
                     TW_TENSOR("z", &tz), TW_TEXT("TWICE", NULL)};
    tw_kernel *k;
    tw_bound *b;

    OK(tw_kernel_load_text(cx, "k.tw", text, sizeof text - 1, NULL, &k));
    OK(tw_launch(k, dev, NULL, args, 5));
    ck_assert_float_eq(y[3], 92.0f);
    FAILS(tw_launch(k, dev, NULL, (tw_arg[]){TW_TEXT("buy", NULL)}, 1), TW_E_ARG, "'buy'");
    OK(tw_kernel_specialize(k, dev, args, 5, NULL, &b));
    for (int i = 0; i < 6; i++) {
        args[2] = i % 3 == 2 ? TW_F32("", 5.0) : TW_TEXT("", NULL);
        y[3] = 0.0f;
        OK(tw_bound_launch(b, NULL, args, 4));
        ck_assert_float_eq(y[3], i % 3 == 2 ? 100.0f : 92.0f);
    }
    args[3] = TW_TEXT("", NULL);
    FAILS(tw_bound_launch(b, NULL, args, 4), TW_E_ARG, "tensor 'z' of kernel 'k' is not given");
    tw_bound_destroy(b);
    tw_kernel_destroy(k);
}
END_TEST

START_TEST(refusals_name_the_argument)
{
    static attention a;
    tw_kernel *k;

    make(&a);
    OK(tw_kernel_load(cx, "kernels/attention_fwd.tw", NULL, &k));
    a.args[6] = TW_F32("scale", -1.0);
    FAILS(tw_launch(k, dev, NULL, a.args, 7), TW_E_ARG, "scale > 0.0");
    a.args[6] = TW_F32("scale", 1.0);
    a.t[4].dtype.bits = 16;
    FAILS(tw_launch(k, dev, NULL, a.args, 7), TW_E_ARG, "'lse' must be f32");
    ck_assert_int_eq((int)tw_last_error()->diagnostic_count, 1);
    ck_assert_str_eq(tw_last_error()->diagnostics[0].id, "bad-argument");
    FAILS(tw_launch(NULL, dev, NULL, a.args, 7), TW_E_ARG, "NULL");
    FAILS(tw_launch(k, NULL, NULL, a.args, 7), TW_E_ARG, "NULL");
    tw_kernel_destroy(k);
}
END_TEST

/* The code of a kernel would be kept beyond the device that it was loaded on. */
START_TEST(contexts_do_not_mix)
{
    static attention a;
    tw_context *other = NULL;
    tw_device *there = NULL;
    tw_kernel *k = NULL;
    tw_bound *b = NULL;
    tw_answer answer = TW_ANSWER_INIT;

    make(&a);
    OK(tw_kernel_load(cx, "kernels/attention_fwd.tw", NULL, &k));
    OK(tw_context_create(NULL, &other));
    OK(tw_device_open(other, "cpu:1", &there));
    FAILS(tw_launch(k, there, NULL, a.args, 7), TW_E_ARG, "'cpu:1' are of two contexts");
    FAILS(tw_query(k, there, a.args, 7, NULL, &answer), TW_E_ARG, "two contexts");
    FAILS(tw_kernel_specialize(k, there, a.args, 7, NULL, &b), TW_E_ARG, "two contexts");
    FAILS(tw_tune(k, there, a.args, 7, NULL, NULL), TW_E_ARG, "two contexts");
    tw_device_close(there);
    tw_context_destroy(other);
    tw_kernel_destroy(k);
}
END_TEST

/* ---- kernels --------------------------------------------------------------------------------- */

START_TEST(parameters)
{
    tw_kernel *k;
    tw_param_info p = TW_PARAM_INFO_INIT;

    OK(tw_kernel_load(cx, "kernels/attention_fwd.tw", NULL, &k));
    ck_assert_str_eq(tw_kernel_name(k), "attention_fwd");
    ck_assert_str_eq(tw_kernel_warnings(k), "");
    ck_assert_int_eq((int)tw_kernel_param_count(k), 7 + 11 + 2);
    OK(tw_kernel_param(k, 3, &p));
    ck_assert_str_eq(p.name, "o");
    ck_assert_int_eq(p.kind, TW_PARAM_TENSOR);
    ck_assert_int_eq(p.direction, TW_OUT);
    ck_assert_str_eq(p.type, "T");
    ck_assert_int_eq(p.rank, 4);
    ck_assert_str_eq(p.dims[2], "M");
    ck_assert_str_eq(p.dims[3], "DV");
    OK(tw_kernel_param(k, 6, &p));
    ck_assert_str_eq(p.name, "offset");
    ck_assert_int_eq(p.kind, TW_PARAM_SCALAR);
    ck_assert_str_eq(p.type, "i32");
    ck_assert(p.has_default);
    ck_assert_str_eq(p.value, "N - M");
    OK(tw_kernel_param(k, 7, &p));
    ck_assert_str_eq(p.name, "T");
    ck_assert_int_eq(p.kind, TW_PARAM_CONST);
    ck_assert_str_eq(p.type, "dtype");
    ck_assert(!p.has_default);
    ck_assert_ptr_null(p.value);
    OK(tw_kernel_param(k, 10, &p));
    ck_assert_str_eq(p.name, "CAUSAL");
    ck_assert_str_eq(p.value, "false");
    OK(tw_kernel_param(k, 11, &p));
    ck_assert_str_eq(p.name, "score");
    ck_assert_str_eq(p.value, "plain");
    OK(tw_kernel_param(k, 19, &p));
    ck_assert_str_eq(p.name, "BLOCK_N");
    ck_assert_int_eq(p.kind, TW_PARAM_TUNE);
    ck_assert_str_eq(p.value, "64, 32, 128; on cpu-amx: 128, 64, 256; on sm_: 64, 32, 128");
    FAILS(tw_kernel_param(k, 20, &p), TW_E_ARG, "20 parameters");
    tw_kernel_destroy(k);
}
END_TEST

START_TEST(shapes)
{
    static attention a;
    tw_kernel *k;
    int rank;
    int64_t dims[8];
    DLDataType type;

    make(&a);
    OK(tw_kernel_load(cx, "kernels/attention_fwd.tw", NULL, &k));
    OK(tw_kernel_shape(k, a.args, 3, "lse", &rank, dims, &type));
    ck_assert_int_eq(rank, 3);
    ck_assert(dims[0] == 1 && dims[1] == HEADS && dims[2] == ROWS);
    ck_assert(type.code == kDLFloat && type.bits == 32 && type.lanes == 1);
    OK(tw_kernel_shape(k, a.args, 3, "o", &rank, dims, &type));
    ck_assert(rank == 4 && dims[3] == D);
    FAILS(tw_kernel_shape(k, a.args, 2, "o", &rank, dims, &type), TW_E_ARG, "'DV' of tensor 'o'");
    FAILS(tw_kernel_shape(k, a.args, 3, "p", &rank, dims, &type), TW_E_ARG, "no tensor 'p'");
    FAILS(tw_kernel_shape(k, a.args, 3, "scale", &rank, dims, &type), TW_E_ARG, "no tensor");
    tw_kernel_destroy(k);
}
END_TEST

START_TEST(loading_fails_with_reasons)
{
    static const char two[] = "kernel a[T: float](x: T[N]) grid (1) {}\n"
                              "kernel b[T: float](x: T[N]) grid (1) {}\n";
    static const char wrong[] = "kernel a(x: f32[N]) grid (cdiv(N, 4)) { let y = z; }\n";
    static const char taken[] = "kernel a(x: f32[N]) tune threads in {1, 2} grid (1) {}\n";
    static const char wide[] = "kernel a(x: f32[N]) tune B in range(1, 1000) grid (1) {}\n";
    static const char both[] = "kernel a(x: f32[N]) tune B in range(1, 1000) grid (M) {}\n";
    static const char lengthy[] =
        "kernel a(x: f32[N]) tune "
        "B1234567890123456789012345678901234567890123456789012345678901234 in {1} grid (1) {}\n";
    tw_kernel *k = NULL;

    FAILS(tw_kernel_load(cx, "kernels/none.tw", NULL, &k), TW_E_IO, "kernels/none.tw");
    FAILS(tw_kernel_load(cx, "kernels", NULL, &k), TW_E_IO, "not a regular file");
    FAILS(tw_kernel_load(cx, "kernels/attention_fwd.tw", "attn", &k), TW_E_ARG, "attention_fwd");
    FAILS(tw_kernel_load_text(cx, "two.tw", two, strlen(two), NULL, &k), TW_E_ARG, "it has a, b");
    OK(tw_kernel_load_text(cx, "two.tw", two, strlen(two), "b", &k));
    tw_kernel_destroy(k);
    k = NULL;
    FAILS(tw_kernel_load_text(cx, "none.tw", "", 0, NULL, &k), TW_E_ARG, "no kernel");
    FAILS(tw_kernel_load_text(cx, "bad.tw", wrong, strlen(wrong), NULL, &k), TW_E_SOURCE,
          "bad.tw:1:");
    ck_assert(tw_last_error()->diagnostics[0].line == 1);
    FAILS(tw_kernel_load_text(cx, "bad.tir", wrong, strlen(wrong), NULL, &k), TW_E_SOURCE,
          "bad.tir:1:");
    FAILS(tw_kernel_load_text(cx, "taken.tw", taken, strlen(taken), NULL, &k), TW_E_SOURCE,
          "'threads' of kernel 'a' has the name of a schedule parameter of target 'cpu-");
    FAILS(tw_kernel_load_text(cx, "wide.tw", wide, strlen(wide), NULL, &k), TW_E_LIMIT, "[limit]");
    FAILS(tw_kernel_load_text(cx, "both.tw", both, strlen(both), NULL, &k), TW_E_SOURCE, "");
    FAILS(tw_kernel_load_text(cx, "lengthy.tw", lengthy, strlen(lengthy), NULL, &k), TW_E_LIMIT,
          "more than 63 characters");
    FAILS(tw_kernel_load_text(cx, "n.tw", two, SIZE_MAX, NULL, &k), TW_E_LIMIT, "1 MiB");
    ck_assert_ptr_null(k);
}
END_TEST

START_TEST(warnings_of_a_load)
{
    static const char text[] = "kernel a(out x: f32[N]) grid (1)\n"
                               "{\n"
                               "    let y = 1.0;\n"
                               "    if (N > 3) { let y = 2.0; store(x[0], y); }\n"
                               "    store(x[1], y);\n"
                               "}\n";
    tw_kernel *k;

    OK(tw_kernel_load_text(cx, "shadow.tw", text, strlen(text), NULL, &k));
    ck_assert_ptr_nonnull(strstr(tw_kernel_warnings(k), "shadow.tw:4:"));
    ck_assert_ptr_nonnull(strstr(tw_kernel_warnings(k), "shadowed-name"));
    tw_kernel_destroy(k);
    ck_assert_str_eq(tw_kernel_warnings(NULL), "");
}
END_TEST

/* ---- stages ---------------------------------------------------------------------------------- */

static char *emit(tw_kernel *k, const char *stage, const char *set)
{
    tw_compile_options opt = TW_COMPILE_OPTIONS_INIT;
    char *data = NULL;
    size_t size = 0;

    opt.target = "interp";
    opt.emit = stage;
    opt.set = set;
    OK(tw_kernel_compile(k, &opt, &data, &size));
    ck_assert_uint_eq(strlen(data), size);
    return data;
}

static void log_dump(void *user, tw_log_level level, const char *text)
{
    (void)level;
    *(size_t *)user += strlen(text);
}

START_TEST(stages)
{
    tw_kernel *k;
    char *text;

    OK(tw_kernel_load(cx, "kernels/attention_fwd.tw", NULL, &k));
    text = emit(k, "ast", NULL);
    ck_assert_ptr_nonnull(strstr(text, "attention_fwd"));
    tw_free(text);
    text = emit(k, "tir", "T=f32,D=32,DV=32,BLOCK_M=48");
    ck_assert_ptr_nonnull(strstr(text, "48"));
    tw_kernel *again;
    OK(tw_kernel_load_text(cx, "again.tir", text, strlen(text), NULL, &again));
    tw_free(text);
    tw_kernel_destroy(again);
    tw_kernel_destroy(k);
}
END_TEST

START_TEST(dumps_go_to_the_log)
{
    size_t logged = 0;
    tw_config cfg = TW_CONFIG_INIT;
    tw_compile_options opt = TW_COMPILE_OPTIONS_INIT;
    tw_context *loud;
    tw_kernel *k;
    char *data;
    size_t size;

    cfg.log = log_dump;
    cfg.log_user = &logged;
    cfg.log_level = TW_LOG_DEBUG;
    OK(tw_context_create(&cfg, &loud));
    OK(tw_kernel_load(loud, "kernels/vector_add.tw", NULL, &k));
    opt.target = "interp";
    opt.emit = "tir";
    opt.set = "T=f32";
    opt.dump = "changed";
    OK(tw_kernel_compile(k, &opt, &data, &size));
    tw_free(data);
    ck_assert_uint_gt(logged, 100);
    opt.dump = "no_such_pass";
    FAILS(tw_kernel_compile(k, &opt, &data, &size), TW_E_ARG, "no pass 'no_such_pass'");
    tw_kernel_destroy(k);
    tw_context_destroy(loud);
}
END_TEST

static void refuse_set(tw_kernel *k, const char *stage, const char *set, const char *said)
{
    tw_compile_options opt = TW_COMPILE_OPTIONS_INIT;
    char *data;
    size_t size;

    opt.target = "interp";
    opt.emit = stage;
    opt.set = set;
    FAILS(tw_kernel_compile(k, &opt, &data, &size), TW_E_ARG, said);
}

START_TEST(settings_are_checked)
{
    tw_kernel *k;
    tw_compile_options opt = TW_COMPILE_OPTIONS_INIT;
    char *data;
    size_t size;

    OK(tw_kernel_load(cx, "kernels/attention_fwd.tw", NULL, &k));
    refuse_set(k, "tir", "T=f32,D=64", "'DV'");
    refuse_set(k, "tir", "T=f32,D=64,DV=64,D=32", "'D' is given twice");
    refuse_set(k, "tir", "T=f32,D=x,DV=64", "'x' is not an int");
    refuse_set(k, "tir", "T=i32,D=64,DV=64", "not allow i32");
    refuse_set(k, "tir", "T=f32,D=64,DV=64,BLOCK=4", "no parameter 'BLOCK'");
    refuse_set(k, "tir", "T=f32,D=64,DV=64,generic=2", "'generic'");
    refuse_set(k, "cubin", "T=f32,D=64,DV=64", "cannot emit 'cubin'");
    tw_free(emit(k, "tir", "T=f32,D=64,DV=64,generic=true"));
    opt.target = "z80";
    FAILS(tw_kernel_compile(k, &opt, &data, &size), TW_E_ARG, "'z80'");
    tw_kernel_destroy(k);
}
END_TEST

/* ---- devices --------------------------------------------------------------------------------- */

START_TEST(devices)
{
    tw_device *other = NULL;
    tw_device_info info = TW_DEVICE_INFO_INIT;
    tw_null_stats stats;

    OK(tw_device_query(dev, &info));
    ck_assert_str_eq(info.spec, "interp");
    ck_assert_str_eq(info.target, "interp");
    ck_assert_int_ge(info.threads, 1);
    FAILS(tw_device_open(cx, "gpu", &other), TW_E_DEVICE, "no device 'gpu'");
    FAILS(tw_device_open(cx, "cpuX", &other), TW_E_DEVICE, "no device 'cpuX'");
    FAILS(tw_device_open(cx, "interp:2", &other), TW_E_ARG, "no options");
    FAILS(tw_device_open(cx, "cpu:0", &other), TW_E_ARG, "threads must be 1");
    FAILS(tw_device_open(cx, "cpu:two", &other), TW_E_ARG, "cpu:N");
    FAILS(tw_device_open(cx, "cpu:+1", &other), TW_E_ARG, "cpu:N");
    FAILS(tw_device_open(cx, "cpu: 1", &other), TW_E_ARG, "cpu:N");
    FAILS(tw_device_open(cx, "cpu:", &other), TW_E_DEVICE, "no device 'cpu:'");
    FAILS(tw_device_open(cx, NULL, &other), TW_E_ARG, "NULL");
    FAILS(tw_null_query(dev, &stats), TW_E_ARG, "not a null device");
    FAILS(tw_device_force_target(dev, "z80"), TW_E_ARG, "no code path 'z80'");
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "it has interp"));
    OK(tw_device_force_target(dev, "interp"));
    OK(tw_device_force_target(dev, ""));
    ck_assert_ptr_null(other);
    OK(tw_device_open(cx, "cpu:2", &other));
    OK(tw_device_query(other, &info));
    ck_assert_str_eq(info.spec, "cpu:2");
    ck_assert_int_eq(info.threads, 2);
    ck_assert(info.name[0] && strncmp(info.target, "cpu-", 4) == 0);
    tw_device_close(other);
}
END_TEST

START_TEST(a_used_device_keeps_its_target)
{
    static attention a;
    tw_kernel *k;

    make(&a);
    OK(tw_kernel_load(cx, "kernels/attention_fwd.tw", NULL, &k));
    OK(tw_launch(k, dev, NULL, a.args, 7));
    FAILS(tw_device_force_target(dev, "interp"), TW_E_ARG, "used already");
    tw_kernel_destroy(k);
}
END_TEST

/* ---- configuration --------------------------------------------------------------------------- */

START_TEST(configuration_from_the_environment)
{
    tw_config cfg = TW_CONFIG_INIT;

    setenv("TILEWRIGHT_STORE", "/somewhere/store.db", 1);
    setenv("TILEWRIGHT_TUNE", "on-miss", 1);
    setenv("TILEWRIGHT_BUDGET", "2.5", 1);
    OK(tw_config_from_env(&cfg));
    ck_assert_str_eq(cfg.store_path, "/somewhere/store.db");
    ck_assert_int_eq(cfg.tune, TW_TUNE_ON_MISS);
    ck_assert(cfg.tune_budget_s == 2.5);
    setenv("TILEWRIGHT_STORE", "none", 1);
    OK(tw_config_from_env(&cfg));
    ck_assert_ptr_null(cfg.store_path);
    unsetenv("TILEWRIGHT_STORE");
    setenv("XDG_CACHE_HOME", "/cache", 1);
    OK(tw_config_from_env(&cfg));
    ck_assert_str_eq(cfg.store_path, "/cache/tilewright/store.db");
    setenv("XDG_CACHE_HOME", "relative", 1);
    setenv("HOME", "/home/me", 1);
    OK(tw_config_from_env(&cfg));
    ck_assert_str_eq(cfg.store_path, "/home/me/.cache/tilewright/store.db");
    setenv("TILEWRIGHT_TUNE", "always", 1);
    FAILS(tw_config_from_env(&cfg), TW_E_ARG, "'always'");
    unsetenv("TILEWRIGHT_TUNE");
    setenv("TILEWRIGHT_BUDGET", "-1", 1);
    FAILS(tw_config_from_env(&cfg), TW_E_ARG, "TILEWRIGHT_BUDGET");
    setenv("TILEWRIGHT_BUDGET", "soon", 1);
    FAILS(tw_config_from_env(&cfg), TW_E_ARG, "'soon'");
    unsetenv("TILEWRIGHT_BUDGET");
    unsetenv("HOME");
    unsetenv("XDG_CACHE_HOME");
    OK(tw_config_from_env(&cfg));
    ck_assert_ptr_null(cfg.store_path);
    FAILS(tw_config_from_env(NULL), TW_E_ARG, "TW_CONFIG_INIT");
    setenv("TILEWRIGHT_SEEDS", "/my/seeds.txt", 1);
    cfg.size = offsetof(tw_config, seeds_path); /* of a program built before there were any */
    OK(tw_config_from_env(&cfg));
    ck_assert_ptr_null(cfg.seeds_path);
    cfg.size = sizeof cfg;
    OK(tw_config_from_env(&cfg));
    ck_assert_str_eq(cfg.seeds_path, "/my/seeds.txt");
    unsetenv("TILEWRIGHT_SEEDS");
    cfg.size = 0;
    FAILS(tw_config_from_env(&cfg), TW_E_ARG, "TW_CONFIG_INIT");
}
END_TEST

START_TEST(contexts_check_their_configuration)
{
    tw_config cfg = TW_CONFIG_INIT;
    tw_context *other = NULL;

    cfg.size = 0;
    FAILS(tw_context_create(&cfg, &other), TW_E_ARG, "TW_CONFIG_INIT");
    cfg = (tw_config)TW_CONFIG_INIT;
    cfg.tune_budget_s = -1.0;
    FAILS(tw_context_create(&cfg, &other), TW_E_ARG, "tune_budget_s");
    cfg = (tw_config)TW_CONFIG_INIT;
    cfg.tune = (tw_tune_mode)7;
    FAILS(tw_context_create(&cfg, &other), TW_E_ARG, "tune is 7");
    cfg = (tw_config)TW_CONFIG_INIT;
    cfg.log_level = (tw_log_level)7;
    FAILS(tw_context_create(&cfg, &other), TW_E_ARG, "log_level is 7");
    cfg = (tw_config)TW_CONFIG_INIT;
    cfg.size = offsetof(tw_config, log); /* of a program built before there was a log */
    OK(tw_context_create(&cfg, &other));
    tw_context_destroy(other);
    FAILS(tw_context_create(NULL, NULL), TW_E_ARG, "NULL");
    FAILS(tw_store_list(NULL, NULL, NULL), TW_E_ARG, "NULL");
}
END_TEST

/* ---- code in the store ----------------------------------------------------------------------- */

static tw_answer stored_answer(const char *path, const char *config)
{
    static attention a;
    tw_config cfg = TW_CONFIG_INIT;
    tw_launch_options opt = TW_LAUNCH_OPTIONS_INIT;
    tw_answer answer = TW_ANSWER_INIT;
    tw_context *one;
    tw_device *d;
    tw_kernel *k;

    make(&a);
    cfg.store_path = path;
    opt.config = config;
    OK(tw_context_create(&cfg, &one));
    OK(tw_device_open(one, "interp", &d));
    OK(tw_kernel_load(one, "kernels/attention_fwd.tw", NULL, &k));
    OK(tw_launch_with(k, d, NULL, a.args, 7, &opt));
    ck_assert_float_eq_tol(a.o[1][4][3], 3.0f, 1e-5f);
    OK(tw_query(k, d, a.args, 7, &opt, &answer));
    tw_kernel_destroy(k);
    tw_device_close(d);
    tw_context_destroy(one);
    return answer;
}

START_TEST(code_is_found_again)
{
    char dir[] = "/tmp/tw-public-api-XXXXXX", path[64];

    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/store.db", dir);
    ck_assert(!stored_answer(path, NULL).artifact_stored);
    tw_answer again = stored_answer(path, NULL);
    ck_assert(again.artifact_stored);
    ck_assert(again.compile_s == 0.0);
    ck_assert(!stored_answer(path, "BLOCK_M=32").artifact_stored);
    ck_assert(stored_answer(path, "BLOCK_M=32").artifact_stored);
    unlink(path);
    char side[80];
    snprintf(side, sizeof side, "%s-wal", path);
    unlink(side);
    snprintf(side, sizeof side, "%s-shm", path);
    unlink(side);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("public_api");
    TCase *t = tcase_create("public_api");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_launch);
    tcase_add_test(t, bound);
    tcase_add_test(t, left_out_in_the_middle);
    tcase_add_test(t, refusals_name_the_argument);
    tcase_add_test(t, contexts_do_not_mix);
    tcase_add_test(t, parameters);
    tcase_add_test(t, shapes);
    tcase_add_test(t, loading_fails_with_reasons);
    tcase_add_test(t, warnings_of_a_load);
    tcase_add_test(t, stages);
    tcase_add_test(t, dumps_go_to_the_log);
    tcase_add_test(t, settings_are_checked);
    tcase_add_test(t, devices);
    tcase_add_test(t, a_used_device_keeps_its_target);
    tcase_add_test(t, configuration_from_the_environment);
    tcase_add_test(t, contexts_check_their_configuration);
    tcase_add_test(t, code_is_found_again);
    suite_add_tcase(s, t);
    return s;
}
