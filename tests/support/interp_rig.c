#include "tests/support/interp_rig.h"
#include "compiler/base/mem.h"
#include <check.h>
#include <string.h>

void irig_open(rig *r)
{
    memset(r, 0, sizeof *r);
    arena_init(&r->a);
    intern_init(&r->names, &r->a);
    r->m = ir_module_new(&r->a, &r->names);
    r->fn = r->m->kernel = ir_fn_new(r->m, "test");
    r->launch = (interp_launch){.arg = r->arg, .grid = {1, 1, 1}};
}

int irig_tensor(rig *r, enum dtype t, int rank)
{
    static const char *const name[] = {"a", "b", "c", "d"};
    ir_param p = {.kind = PARAM_TENSOR,
                  .name = name[r->fn->params.n],
                  .type = type_view(t, rank),
                  .direction = DIR_INOUT};

    return ir_add_param(r->fn, p);
}

void irig_begin(rig *r)
{
    ir_fn_begin(r->fn);
    r->b = ir_at_end(r->fn, r->fn->body);
}

void irig_bind(rig *r, int p, void *base, int rank, const int64_t *extent)
{
    interp_view *v = &r->arg[p].view;
    int64_t step = 1;

    v->base = base;
    for (int d = rank - 1; d >= 0; d--) {
        v->extent[d] = extent[d];
        v->stride[d] = step;
        step *= extent[d];
    }
}

tw_status irig_run(rig *r)
{
    ir_return(&r->b, NULL, 0);
    return interp_run(interp_prepare(&r->a, r->m), &r->launch, 0, INT64_MAX, &r->fault);
}

void irig_close(rig *r)
{
    arena_release(&r->a);
    ck_assert_int_eq(mem_live(), 0);
}

ir_val irig_i32(rig *r, int64_t v)
{
    return ir_const_int(&r->b, DT_I32, v);
}

ir_val irig_f32(rig *r, double v)
{
    return ir_const_float(&r->b, DT_F32, v);
}

void irig_store(rig *r, ir_val v, int32_t n)
{
    ir_store(&r->b, ir_param_value(r->fn, 0), (ir_val[]){irig_i32(r, 0)}, &n, v);
}
