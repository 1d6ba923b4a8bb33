#include "compiler/ir/irsig.h"
#include "compiler/base/check.h"
#include "compiler/ir/irbuild.h"
#include <string.h>

typedef struct sig_values {
    const kernel_sig *sig;
    const ir_binding *binding;
    uint32_t n;
} sig_values;

static int64_t bound(const sig_values *v, int32_t cons)
{
    const ir_binding *b = binding_find(v->binding, v->n, v->sig->cons[cons].name);

    ICHECK(b, "a compile-time parameter has a value");
    return b->value;
}

bool sig_extent(const kernel_sig *sig, const sig_dim *dim, const ir_binding *binding, uint32_t n,
                int64_t *extent)
{
    const sig_values v = {sig, binding, n};

    *extent = dim->kind == SIG_DIM_CONST ? bound(&v, dim->index) : dim->literal;
    return *extent >= 0 && *extent <= INT32_MAX;
}

static enum dtype dtype_of(const kernel_sig *sig, const sig_param *p, const ir_binding *binding,
                           uint32_t n)
{
    const sig_values v = {sig, binding, n};

    return p->dtype != DT_NONE ? p->dtype : (enum dtype)bound(&v, p->dtype_const);
}

static int named_dim(const ir_fn *fn, const char *name)
{
    for (uint32_t i = 0; i < fn->dims.n; i++) {
        if (fn->dims.at[i].name && strcmp(fn->dims.at[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

static int add_dim(const sig_values *v, ir_fn *fn, const sig_dim *dim)
{
    const char *name = dim->kind == SIG_DIM_CONST ? v->sig->cons[dim->index].name : NULL;
    int known = name ? named_dim(fn, name) : -1;
    int64_t extent;

    if (dim->kind == SIG_DIM_SYMBOL)
        return dim->index;
    if (known >= 0)
        return known;
    bool fits = sig_extent(v->sig, dim, v->binding, v->n, &extent);
    ICHECK(fits, "a dimension lies between 0 and 2^31 - 1");
    return ir_add_dim(fn, name, true, extent);
}

static void add_param(const sig_values *v, ir_fn *fn, const sig_param *p)
{
    enum dtype t = dtype_of(v->sig, p, v->binding, v->n);
    ir_param param = {.name = p->name, .direction = p->direction, .has_default = p->has_default};

    param.kind = p->is_tensor ? PARAM_TENSOR : PARAM_SCALAR;
    param.type = p->is_tensor ? type_view(t, p->rank) : type_scalar(t);
    for (int32_t k = 0; k < p->rank; k++)
        param.dim[k] = add_dim(v, fn, &p->dim[k]);
    ir_add_param(fn, param);
}

static void add_hidden(const kernel_sig *sig, ir_fn *fn)
{
    for (uint32_t i = 0; i < sig->nsymbols; i++)
        ir_add_param(fn, (ir_param){.kind = PARAM_DIM,
                                    .name = sig->symbol[i],
                                    .type = type_scalar(DT_I32),
                                    .symbol = (int32_t)i});
}

static void add_given(const kernel_sig *sig, ir_fn *fn)
{
    for (uint32_t i = 0; i < sig->nparams; i++) {
        if (!sig->param[i].has_default)
            continue;
        ir_add_param(fn,
                     (ir_param){.kind = PARAM_GIVEN,
                                .name = arena_printf(fn->module->a, "%s.given", sig->param[i].name),
                                .type = type_scalar(DT_I1),
                                .symbol = (int32_t)i});
    }
}

static ir_fn *new_fn(const sig_values *v, ir_module *m, bool is_launch)
{
    const kernel_sig *sig = v->sig;
    ir_fn *fn = ir_fn_new(m, sig->name);

    for (uint32_t i = 0; i < sig->nsymbols; i++)
        ir_add_dim(fn, sig->symbol[i], false, 0);
    for (uint32_t i = 0; i < sig->nparams; i++)
        add_param(v, fn, &sig->param[i]);
    add_hidden(sig, fn);
    if (is_launch)
        add_given(sig, fn);
    ir_fn_begin(fn);
    return fn;
}

ir_module *sig_module(const kernel_sig *sig, arena *a, intern *names, const ir_binding *binding,
                      uint32_t n)
{
    const sig_values v = {sig, binding, n};
    ir_module *m = ir_module_new(a, names);

    m->kernel = new_fn(&v, m, false);
    m->launch = new_fn(&v, m, true);
    return m;
}
