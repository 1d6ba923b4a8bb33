#include "tests/support/math_rig.h"
#include "compiler/base/guard.h"
#include "compiler/ir/irbuild.h"
#include "tests/support/cpu_rig.h"
#include <check.h>
#include <math.h>
#include <string.h>

static size_t bytes_of(const math_rig *r)
{
    return (size_t)r->n * (size_t)dtype_bytes(r->t);
}

void math_rig_open(math_rig *r, enum dtype t, int nargs, int64_t n)
{
    *r = (math_rig){.t = t, .nargs = nargs, .n = n};
    for (int i = 0; i < nargs; i++)
        r->arg[i] = cpu_rig_alloc(bytes_of(r), false);
    r->out = cpu_rig_alloc(bytes_of(r), false);
}

void math_rig_close(math_rig *r)
{
    for (int i = 0; i < r->nargs; i++)
        cpu_rig_free(r->arg[i], bytes_of(r), false);
    cpu_rig_free(r->out, bytes_of(r), false);
}

void math_rig_put(math_rig *r, int arg, int64_t i, double v)
{
    if (r->t == DT_F32)
        ((float *)r->arg[arg])[i] = (float)v;
    else
        ((double *)r->arg[arg])[i] = v;
}

double math_rig_get(const math_rig *r, int64_t i)
{
    return r->t == DT_F32 ? (double)((const float *)r->out)[i] : ((const double *)r->out)[i];
}

static ir_val operation(ir_builder *b, const math_rig *r, const ir_val *v)
{
    if (r->nargs == 1)
        return ir_unary(b, r->code, v[0]);
    return r->nargs == 2 ? ir_binary(b, r->code, v[0], v[1]) : ir_fma(b, v[0], v[1], v[2]);
}

static ir_module *kernel_of(const math_rig *r, arena *a, intern *names, bool scalar)
{
    static const char *const name[] = {"x", "y", "z"};
    ir_module *m = ir_module_new(a, names);
    ir_fn *fn = m->kernel = ir_fn_new(m, "f");
    int n = ir_add_dim(fn, NULL, true, r->n);
    int32_t extent = scalar ? 0 : MATH_BLOCK;
    ir_val v[3];

    for (int i = 0; i <= r->nargs; i++) {
        ir_param p = {.kind = PARAM_TENSOR,
                      .name = i == r->nargs ? "out" : name[i],
                      .type = type_view(r->t, 1),
                      .direction = i == r->nargs ? DIR_OUT : DIR_IN,
                      .unit_inner = true};
        p.dim[0] = n;
        ir_add_param(fn, p);
    }
    ir_fn_begin(fn);
    ir_builder b = ir_at_end(fn, fn->body);
    ir_val block = ir_const_int(&b, DT_I32, MATH_BLOCK);
    ir_val at = ir_binary(&b, OP_MUL, ir_program_id(&b, 0), block);
    for (int i = 0; i < r->nargs; i++)
        v[i] = ir_load(&b, ir_param_value(fn, i), &at, &extent);
    ir_store(&b, ir_param_value(fn, r->nargs), &at, &extent, operation(&b, r, v));
    ir_return(&b, NULL, 0);
    return m;
}

typedef struct run {
    const math_rig *r;
    const target *on;
    bool scalar;
} run;

static tw_status run_guarded(void *arg)
{
    const run *job = arg;
    const math_rig *r = job->r;
    interp_arg args[4];
    int64_t grid[3] = {r->n / MATH_BLOCK, 1, 1};
    int failed = 0;
    arena a;
    intern names;

    for (int i = 0; i <= r->nargs; i++)
        args[i] = (interp_arg){.view = {i == r->nargs ? r->out : r->arg[i], {1}, {r->n}}};
    memset(r->out, 0xa5, bytes_of(r));
    arena_init(&a);
    intern_init(&names, &a);
    tw_status st =
        cpu_rig_run(kernel_of(r, &a, &names, job->scalar), job->on, false, args, grid, &failed);
    arena_release(&a);
    return st;
}

void math_rig_run(const math_rig *r, const target *on, bool scalar)
{
    run job = {r, on, scalar};

    ck_assert_int_eq(guard_run(run_guarded, &job), TW_OK);
}

const target *math_rig_path(size_t i)
{
    for (size_t k = 0; k < target_count(); k++) {
        const target *t = target_at(k);
        if (strcmp(t->family, "cpu") == 0 && t->usable(t) && i-- == 0)
            return t;
    }
    return NULL;
}

double math_rig_error(enum dtype t, long double want, double got)
{
    double rounded = t == DT_F32 ? (double)(float)want : (double)want;
    int least = t == DT_F32 ? -125 : -1021, bits = t == DT_F32 ? 24 : 53, exponent;

    if (isnan(rounded) || isinf(rounded))
        return (isnan(rounded) ? isnan(got) : rounded == got) ? 0.0 : (double)INFINITY;
    frexpl(want, &exponent);
    long double place = ldexpl(1.0L, (exponent < least ? least : exponent) - bits);
    return (double)(fabsl((long double)got - want) / place);
}
