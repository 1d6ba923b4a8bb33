/* The inline functions of the CPU targets over all of f32: sampled bit patterns, against double. */
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/ir/irbuild.h"
#include "tests/support/cpu_rig.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1024, STRIDE = 4099, SAMPLES = 1 << 20 };

static float *x, *y;

typedef struct function {
    enum ir_opcode code;
    double (*exact)(double);
    double ulps; /* allowed */
} function;

static double reciprocal_root(double v)
{
    return 1.0 / sqrt(v);
}

static double sine(double v)
{
    return fabs(v) > ANGLE_MAX ? (double)NAN : sin(v);
}

static double cosine(double v)
{
    return fabs(v) > ANGLE_MAX ? (double)NAN : cos(v);
}

static const function functions[] = {
    {OP_EXP2, exp2, 2.0},  {OP_EXP, exp, 1.5},   {OP_LOG2, log2, 1.5},
    {OP_LOG, log, 1.5},    {OP_SQRT, sqrt, 0.5}, {OP_RSQRT, reciprocal_root, 1.6},
    {OP_TANH, tanh, 2.0},  {OP_ERF, erf, 2.0},   {OP_SIN, sine, 0.6},
    {OP_COS, cosine, 0.6},
};

/* y = f(x), BLOCK elements a program, as a tile or (of the first element) as a scalar. */
static ir_module *kernel_of(arena *a, intern *names, enum ir_opcode code, bool scalar)
{
    ir_module *m = ir_module_new(a, names);
    ir_fn *fn = m->kernel = ir_fn_new(m, "f");
    int n = ir_add_dim(fn, NULL, true, SAMPLES);
    int32_t extent = scalar ? 0 : BLOCK;

    for (int i = 0; i < 2; i++) {
        ir_param p = {.kind = PARAM_TENSOR,
                      .name = i ? "y" : "x",
                      .type = type_view(DT_F32, 1),
                      .direction = i ? DIR_OUT : DIR_IN,
                      .unit_inner = true};
        p.dim[0] = n;
        ir_add_param(fn, p);
    }
    ir_fn_begin(fn);
    ir_builder b = ir_at_end(fn, fn->body);
    ir_val at = ir_binary(&b, OP_MUL, ir_program_id(&b, 0), ir_const_int(&b, DT_I32, BLOCK));
    ir_val v = ir_load(&b, ir_param_value(fn, 0), &at, &extent);
    ir_store(&b, ir_param_value(fn, 1), &at, &extent, ir_unary(&b, code, v));
    ir_return(&b, NULL, 0);
    return m;
}

typedef struct run {
    const function *f;
    const target *t;
    bool scalar;
} run;

static tw_status evaluate(void *arg)
{
    const run *r = arg;
    interp_arg args[2] = {{.view = {x, {1}, {SAMPLES}}}, {.view = {y, {1}, {SAMPLES}}}};
    int64_t grid[3] = {SAMPLES / BLOCK, 1, 1};
    int failed = 0;
    arena a;
    intern names;

    arena_init(&a);
    intern_init(&names, &a);
    ir_module *m = kernel_of(&a, &names, r->f->code, r->scalar);
    ck_assert_int_eq(cpu_rig_run(m, r->t, args, grid, &failed), TW_OK);
    arena_release(&a);
    return TW_OK;
}

static double error_in_ulps(double want, float got)
{
    int exponent;

    if (isnan(want) || isinf((float)want))
        return (isnan(want) ? isnan(got) : (float)want == got) ? 0.0 : INFINITY;
    frexp(want, &exponent);
    double ulp = ldexp(1.0, (exponent < -125 ? -125 : exponent) - 24);
    return fabs((double)got - want) / ulp;
}

static double worst_error(const function *f, int step)
{
    double worst = 0.0;

    for (int i = 0; i < SAMPLES; i += step) {
        double e = error_in_ulps(f->exact((double)x[i]), y[i]);
        if (!(e <= f->ulps))
            fprintf(stderr, "%s(%a) = %a, %g ulp off\n", op_info(f->code)->name, (double)x[i],
                    (double)y[i], e);
        worst = e > worst ? e : worst;
    }
    return worst;
}

static void fill_samples(void)
{
    static const float special[] = {
        0.0f,      -0.0f,           1.0f,           -1.0f,        0.5f,    2.0f,    126.0f,
        127.0f,    128.0f,          -126.0f,        -127.0f,      -149.0f, -150.0f, -151.0f,
        88.7f,     88.8f,           -87.3f,         -87.4f,       -103.9f, -104.1f, 0x1p-149f,
        0x1p-126f, 0x1.fffffep127f, 0x1.fffffep-1f, 0x1.000002p0f};

    for (uint32_t i = 0; i < SAMPLES; i++) {
        uint32_t u = i * STRIDE;
        memcpy(&x[i], &u, sizeof u);
        /* half of all patterns are beyond the range of exp2: fold those into it */
        if (i % 2)
            x[i] = (float)((double)u * 0x1p-32 * 300.0 - 160.0);
    }
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        x[BLOCK * i] = special[i];
    x[BLOCK * 30] = INFINITY;
    x[BLOCK * 31] = -INFINITY;
    x[BLOCK * 32] = NAN;
}

START_TEST(functions_are_accurate_over_all_of_f32)
{
    x = cpu_rig_alloc(SAMPLES * sizeof *x, false);
    y = cpu_rig_alloc(SAMPLES * sizeof *y, false);
    fill_samples();
    for (size_t i = 0; i < target_count(); i++) {
        const target *t = target_at(i);
        if (strcmp(t->family, "cpu") != 0 || !t->usable(t))
            continue;
        for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
            const function *f = &functions[k];
            run r = {f, t, false};
            ck_assert_int_eq(guard_run(evaluate, &r), TW_OK);
            double worst = worst_error(f, 1);
            printf("%s: %s is within %.2f ulp\n", t->name, op_info(f->code)->name, worst);
            ck_assert_double_le(worst, f->ulps);
            r.scalar = true;
            ck_assert_int_eq(guard_run(evaluate, &r), TW_OK);
            ck_assert_double_le(worst_error(f, BLOCK), f->ulps);
        }
    }
    cpu_rig_free(x, SAMPLES * sizeof *x, false);
    cpu_rig_free(y, SAMPLES * sizeof *y, false);
}
END_TEST

START_TEST(exp2_of_an_integer_is_exact)
{
    static const function f = {OP_EXP2, exp2, 0.0};

    x = cpu_rig_alloc(SAMPLES * sizeof *x, false);
    y = cpu_rig_alloc(SAMPLES * sizeof *y, false);
    for (int i = 0; i < SAMPLES; i++)
        x[i] = (float)(i % 280 - 149);
    for (size_t i = 0; i < target_count(); i++) {
        run r = {&f, target_at(i), false};
        if (strcmp(r.t->family, "cpu") != 0 || !r.t->usable(r.t))
            continue;
        ck_assert_int_eq(guard_run(evaluate, &r), TW_OK);
        ck_assert_double_eq(worst_error(&f, 1), 0.0);
    }
    cpu_rig_free(x, SAMPLES * sizeof *x, false);
    cpu_rig_free(y, SAMPLES * sizeof *y, false);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("math of the CPU targets");
    TCase *t = tcase_create("functions");

    tcase_add_test(t, functions_are_accurate_over_all_of_f32);
    tcase_add_test(t, exp2_of_an_integer_is_exact);
    suite_add_tcase(s, t);
    return s;
}
