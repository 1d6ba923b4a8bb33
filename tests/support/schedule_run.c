#include "tests/support/schedule_run.h"
#include "compiler/base/guard.h"
#include "compiler/ir/element.h"
#include <check.h>
#include <string.h>

enum { MAX_PARAMS = 40 };

size_t run_elements(const run_tensor *t)
{
    size_t n = 1;

    for (int d = 0; d < t->rank; d++)
        n *= (size_t)t->extent[d];
    return n;
}

static unsigned char *place(const run_tensor *t, size_t i)
{
    return (unsigned char *)t->data + i * (size_t)dtype_bytes(t->dtype);
}

static void fill(run_tensor *t, uint64_t seed, int64_t range, double unit)
{
    uint64_t x = seed * 2654435761u + 12345;

    for (size_t i = 0; i < run_elements(t); i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        int64_t n = (int64_t)(x >> 33) % (2 * range + 1) - range;
        ir_scalar v = {0};
        if (dtype_is_float(t->dtype))
            v.f = (double)n * unit;
        else
            v.i = n;
        element_write(t->dtype, place(t, i), v);
    }
}

void run_fill(run_tensor *t, uint64_t seed, double range)
{
    fill(t, seed, (int64_t)(8 * range), 0.125);
}

void run_fill_whole(run_tensor *t, int range)
{
    fill(t, 1, range, 1.0);
}

void run_poison(run_tensor *t)
{
    memset(t->data, 0xee, run_elements(t) * (size_t)dtype_bytes(t->dtype));
}

double run_element(const run_tensor *t, size_t i)
{
    ir_scalar v = element_read(t->dtype, place(t, i));

    return dtype_is_float(t->dtype) ? v.f : (double)v.i;
}

static const run_tensor *tensor_of(const run_case *c, const char *name)
{
    for (int i = 0; i < c->n; i++) {
        if (strcmp(c->t[i].name, name) == 0)
            return &c->t[i];
    }
    ck_abort_msg("no tensor is called '%s'", name);
    return NULL;
}

static void bind_tensor(const run_case *c, const ir_fn *fn, const ir_param *p, interp_arg *arg,
                        int64_t *dim)
{
    const run_tensor *t = tensor_of(c, p->name);
    int64_t stride = 1;

    ck_assert_int_eq(t->rank, p->type.rank);
    ck_assert_int_eq(t->dtype, p->type.dtype);
    arg->view.base = t->data;
    for (int d = t->rank - 1; d >= 0; d--) {
        arg->view.extent[d] = t->extent[d];
        arg->view.stride[d] = stride;
        stride *= t->extent[d];
        dim[p->dim[d]] = t->extent[d];
        ck_assert(!fn->dims.at[p->dim[d]].is_const || fn->dims.at[p->dim[d]].value == t->extent[d]);
    }
}

typedef struct running {
    const ir_module *m;
    const run_case *c;
    interp_fault *fault;
} running;

static tw_status run(void *arg)
{
    running *r = arg;
    const ir_fn *fn = r->m->kernel;
    interp_arg args[MAX_PARAMS] = {0};
    ir_scalar in[MAX_PARAMS] = {0};
    int64_t dim[MAX_PARAMS] = {0};
    uint64_t given = 0;
    const char *failed = NULL;
    interp_launch launch = {.arg = args, .seed = r->c->seed};
    arena a;

    for (uint32_t i = 0; i < fn->params.n; i++) {
        const ir_param *p = &fn->params.at[i];
        if (p->kind == PARAM_TENSOR)
            bind_tensor(r->c, fn, p, &args[i], dim);
        else if (p->kind == PARAM_DIM)
            in[i].i = dim[p->symbol];
        else if (r->c->scalar && strcmp(p->name, r->c->scalar) == 0) {
            in[i].i = r->c->value;
            given |= 1ull << i;
        }
    }
    arena_init(&a);
    tw_status st = launch_eval(launch_prepare(&a, r->m->launch), in, given, launch.grid, &failed);
    ck_assert_msg(st == TW_OK, "%s", failed);
    for (uint32_t i = 0; i < fn->params.n; i++)
        args[i].scalar = in[i];
    st = interp_run(interp_prepare(&a, r->m), &launch, 0, INT64_MAX, r->fault);
    arena_release(&a);
    return st;
}

tw_status run_module(const ir_module *m, const run_case *c, interp_fault *fault)
{
    interp_fault unused = {0};
    running r = {m, c, fault ? fault : &unused};

    return guard_run(run, &r);
}
