/* The inline functions of the CPU targets on f64: random and special arguments, against the 64-bit
 * mantissas of long double. */
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/ir/irbuild.h"
#include "tests/support/cpu_rig.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1024, SAMPLES = 1 << 18 };

static double *x, *y;

typedef struct function {
    enum ir_opcode code;
    long double (*exact)(long double);
    double from, to; /* most arguments; the rest are any bits */
    double ulps;     /* allowed */
} function;

static long double sine(long double v)
{
    return fabsl(v) > (long double)ANGLE_MAX ? (long double)NAN : sinl(v);
}

static long double cosine(long double v)
{
    return fabsl(v) > (long double)ANGLE_MAX ? (long double)NAN : cosl(v);
}

static const function functions[] = {
    {OP_EXP2, exp2l, -1080.0, 1030.0, 1.5}, {OP_EXP, expl, -750.0, 712.0, 1.5},
    {OP_LOG2, log2l, 0.0, 4.0, 1.5},        {OP_LOG, logl, 0.0, 4.0, 1.5},
    {OP_TANH, tanhl, -4.0, 4.0, 2.0},       {OP_ERF, erfl, -4.0, 4.0, 2.0},
    {OP_SIN, sine, -1e4, 1e4, 1.0},         {OP_COS, cosine, -1e4, 1e4, 1.0},
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
                      .type = type_view(DT_F64, 1),
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

static double error_in_ulps(long double want, double got)
{
    int exponent;

    if (isnan(want) || isinf((double)want))
        return (isnan(want) ? isnan(got) : (double)want == got) ? 0.0 : INFINITY;
    frexpl(want, &exponent);
    long double ulp = ldexpl(1.0L, (exponent < -1021 ? -1021 : exponent) - 53);
    return (double)(fabsl((long double)got - want) / ulp);
}

static double worst_error(const function *f, int step)
{
    double worst = 0.0;

    for (int i = 0; i < SAMPLES; i += step) {
        double e = error_in_ulps(f->exact((long double)x[i]), y[i]);
        if (!(e <= f->ulps))
            fprintf(stderr, "%s(%a) = %a, %g ulp off\n", op_info(f->code)->name, x[i], y[i], e);
        worst = e > worst ? e : worst;
    }
    return worst;
}

static uint64_t next(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = (*state ^ *state >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* A quarter of any bits, a quarter near 0 and 1, the rest in the function's range. */
static void fill_samples(const function *f)
{
    static const double special[] = {0.0,
                                     -0.0,
                                     1.0,
                                     -1.0,
                                     0.5,
                                     2.0,
                                     1023.0,
                                     1024.0,
                                     -1022.0,
                                     -1074.0,
                                     -1075.0,
                                     709.78,
                                     709.79,
                                     -708.4,
                                     -745.1,
                                     -745.2,
                                     0x1p-1074,
                                     0x1p-1022,
                                     5.9,
                                     6.0,
                                     0x1p26,
                                     -0x1p26,
                                     1e300,
                                     -1e300,
                                     0x1.921fb54442d18p0,
                                     0x1.921fb54442d18p25,
                                     0.99,
                                     1.01};
    uint64_t state = 42;

    for (int i = 0; i < SAMPLES; i++) {
        uint64_t u = next(&state);
        double unit = (double)(u >> 11) * 0x1p-53;
        if (i % 4 == 0)
            memcpy(&x[i], &u, sizeof u);
        else if (i % 4 == 1)
            x[i] = (i % 8 == 1) + (unit - 0.5) * ldexp(1.0, -(int)(u % 40));
        else
            x[i] = f->from + unit * (f->to - f->from);
    }
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        x[BLOCK * i] = special[i];
    x[BLOCK * 40] = INFINITY;
    x[BLOCK * 41] = -INFINITY;
    x[BLOCK * 42] = NAN;
}

static double worst_of(const function *f, const target *t, bool scalar)
{
    run r = {f, t, scalar};

    ck_assert_int_eq(guard_run(evaluate, &r), TW_OK);
    return worst_error(f, scalar ? BLOCK : 1);
}

START_TEST(functions_are_accurate)
{
    x = cpu_rig_alloc(SAMPLES * sizeof *x, false);
    y = cpu_rig_alloc(SAMPLES * sizeof *y, false);
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        const function *f = &functions[k];
        fill_samples(f);
        for (size_t i = 0; i < target_count(); i++) {
            const target *t = target_at(i);
            if (strcmp(t->family, "cpu") != 0 || !t->usable(t))
                continue;
            double worst = worst_of(f, t, false);
            printf("%s: %s of f64 is within %.2f ulp\n", t->name, op_info(f->code)->name, worst);
            ck_assert_double_le(worst, f->ulps);
            ck_assert_double_le(worst_of(f, t, true), f->ulps);
        }
    }
    cpu_rig_free(x, SAMPLES * sizeof *x, false);
    cpu_rig_free(y, SAMPLES * sizeof *y, false);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("math of f64");
    TCase *t = tcase_create("functions");

    tcase_add_test(t, functions_are_accurate);
    tcase_set_timeout(t, 120);
    suite_add_tcase(s, t);
    return s;
}
