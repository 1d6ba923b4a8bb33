#include "tests/support/runtime_fixture.h"
#include "compiler/base/mem.h"
#include "compiler/ir/irtext.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

tw_context *rt_cx;
char rt_log[4096];
static long blocks_before;

static void keep_log(void *user, tw_log_level level, const char *text)
{
    size_t n = strlen(rt_log);

    (void)user, (void)level;
    snprintf(rt_log + n, sizeof rt_log - n, "%s\n", text);
}

void rt_context(const tw_config *given, const tuner_ops *tuner)
{
    tw_config cfg = TW_CONFIG_INIT;

    if (given)
        cfg = *given;
    cfg.log = keep_log;
    tw_context_destroy(rt_cx);
    rt_cx = NULL;
    RT_OK(runtime_context_create(&cfg, tuner, &rt_cx));
}

void rt_setup(void)
{
    tw_status st = error_set(TW_E_ARG, "so that this thread's record exists");

    (void)st;
    error_clear();
    blocks_before = mem_live();
    rt_log[0] = 0;
    rt_context(NULL, NULL);
}

void rt_teardown(void)
{
    tw_context_destroy(rt_cx);
    rt_cx = NULL;
    error_clear();
    ck_assert_int_eq(mem_live(), blocks_before);
}

tw_device *rt_device(const char *spec)
{
    tw_device *dev = NULL;

    RT_OK(tw_device_open(rt_cx, spec, &dev));
    return dev;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* $T: dtype, $B: elements a program, $U: one less */
static const char add_text[] = "kernel @add<N>(\n"
                               "    in %x : view<$T, 1>[N],\n"
                               "    out %y : view<$T, 1>[N],\n"
                               "    %by : $T default,\n"
                               "    dim %n : i32 = N\n"
                               ") {\n"
                               "    %zero = const.f 0.0 : $T\n"
                               "    %block = const.i $B : i32\n"
                               "    %id = program_id 0 : i32\n"
                               "    %at = mul %id, %block : i32\n"
                               "    %first = load %x, %at extent=[0] inside=0 : $T\n"
                               "    %good = le %zero, %first : i1\n"
                               "    assert %good \"x is not negative\"\n"
                               "    %v = load %x, %at extent=[$B] inside=0 : $T[$B]\n"
                               "    %wide = splat %by : $T[$B]\n"
                               "    %sum = add %v, %wide : $T[$B]\n"
                               "    store %y, %at, %sum extent=[$B] inside=0\n"
                               "    return\n"
                               "}\n"
                               "\n"
                               "launch (\n"
                               "    given %has_by : i1 = %by\n"
                               ") {\n"
                               "    %one = const.i 1 : i64\n"
                               "    %unit = const.f 1.0 : $T\n"
                               "    %up = const.i $U : i32\n"
                               "    %block = const.i $B : i32\n"
                               "    %most = const.i 1000000 : i32\n"
                               "    %fits = le %n, %most : i1\n"
                               "    assert %fits \"N <= 1000000\"\n"
                               "    %value = where %has_by, %by, %unit : $T\n"
                               "    %more = add %n, %up : i32\n"
                               "    %count = div %more, %block : i32\n"
                               "    %grid = cast %count : i64\n"
                               "    return %grid, %one, %one, %value\n"
                               "}\n";

static const char *add_source(arena *a, const char *type, int block)
{
    strbuf b;

    sb_init(&b, a);
    for (const char *s = add_text; *s; s++) {
        if (*s != '$')
            sb_char(&b, *s);
        else if (*++s == 'T')
            sb_str(&b, type);
        else
            sb_fmt(&b, "%d", *s == 'B' ? block : block - 1);
    }
    return b.s;
}

tw_kernel *rt_add_kernel(void)
{
    tw_kernel *k = NULL;
    arena a;

    arena_init(&a);
    const char *text = add_source(&a, "f32", 32);
    RT_OK(tw_kernel_load_text(rt_cx, "add.tir", text, strlen(text), NULL, &k));
    arena_release(&a);
    return k;
}

atomic_int rt_lowerings;

static const int64_t blocks[] = {64, 32, 128};
static struct sig_set block_set = {"", 3, blocks};
static const sig_tune tunes[] = {{"BLOCK", 1, &block_set}};
static const char *const symbols[] = {"N"};
static const sig_const consts[] = {
    {.name = "T", .kind = BIND_DTYPE, .dtypes = 1u << DT_F32 | 1u << DT_F64},
    {.name = "FLAG", .kind = BIND_BOOL, .has_default = true}};
static const sig_param params[] = {
    {"x", true, DIR_IN, DT_NONE, 0, 1, {{SIG_DIM_SYMBOL, 0, 0}}, false, NULL},
    {"y", true, DIR_OUT, DT_NONE, 0, 1, {{SIG_DIM_SYMBOL, 0, 0}}, false, NULL},
    {"by", false, DIR_IN, DT_NONE, 0, 0, {{0}}, true, "2.0"}};

static tw_status lower_tuned(const kernel_source *src, arena *a, intern *names, const ir_binding *b,
                             uint32_t n, const char *path, diag_list *diags, ir_module **out)
{
    int block = (int)binding_find(b, n, "BLOCK")->value;
    const char *type = dtype_name((enum dtype)binding_find(b, n, "T")->value);
    const char *text = add_source(a, type, block);

    (void)src, (void)path;
    atomic_fetch_add(&rt_lowerings, 1);
    *out = ir_parse(a, names, source_new(a, "tuned", text, strlen(text)), diags);
    return *out ? TW_OK : TW_E_SOURCE;
}

static bool tuned_valid(const kernel_source *src, const ir_binding *b, uint32_t n, const char *path,
                        const char **why)
{
    (void)src, (void)path;
    *why = "BLOCK < 128 || FLAG";
    return binding_find(b, n, "BLOCK")->value < 128 || binding_find(b, n, "FLAG")->value;
}

static const char *no_ast(const kernel_source *src, arena *a)
{
    (void)src, (void)a;
    return NULL;
}

static void keep(kernel_source *src)
{
    (void)src;
}

tw_kernel *rt_tuned_kernel(void)
{
    static const kernel_source src = {
        .sig = {"tuned", 3, 1, 2, 1, params, symbols, consts, tunes, 30},
        .lower = lower_tuned,
        .valid = tuned_valid,
        .print_ast = no_ast,
        .destroy = keep};
    tw_kernel *k = NULL;

    atomic_store(&rt_lowerings, 0);
    RT_OK(runtime_kernel_of(rt_cx, &src, &k));
    return k;
}

void rt_vector_init(rt_vector *v, int64_t n, float value)
{
    v->shape[0] = n;
    v->stride[0] = 1;
    v->t = (DLTensor){v->x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, v->shape, v->stride, 0};
    for (size_t i = 0; i < sizeof v->x / sizeof *v->x; i++)
        v->x[i] = value;
}
