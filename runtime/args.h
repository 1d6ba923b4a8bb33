#ifndef TW_RUNTIME_ARGS_H
#define TW_RUNTIME_ARGS_H
/* Inside of runtime_resolve_args: what its files share. */
#include "runtime/runtime.h"

/* Where a value came from, to name both sides when two disagree. */
typedef struct origin {
    int16_t param; /* tensor parameter, or ... */
    int16_t dim;   /* its dimension; -1: its dtype */
} origin;
#define ORIGIN_NONE (-1)     /* origin.param: not bound yet */
#define ORIGIN_ARGUMENT (-2) /* given by name as an argument */
#define ORIGIN_DEFAULT (-3)
#define ORIGIN_BOUND (-4) /* by tw_kernel_specialize */

/* Of a tensor's elements, in bytes from its base; above 0: it has none. */
typedef struct tensor_span {
    int64_t below, above; /* up to the first byte (not above 0), to one past the last */
    uint64_t steps;       /* all strides but the innermost, or-ed */
    bool unit_inner;
    int bytes; /* of an element */
} tensor_span;

typedef struct resolver {
    const kernel_source *source;
    const kernel_sig *sig; /* of source */
    const tw_device *dev;
    unsigned flags;
    launch_args *out;
    const tw_arg *param[RUNTIME_MAX_PARAMS]; /* NULL: not passed */
    const tw_arg *cons[RUNTIME_MAX_CONSTS];
    origin const_from[RUNTIME_MAX_CONSTS];
    origin symbol_from[RUNTIME_MAX_SYMBOLS];
    tensor_span span[RUNTIME_MAX_PARAMS];
    uintptr_t lo[RUNTIME_MAX_PARAMS], hi[RUNTIME_MAX_PARAMS]; /* bytes a tensor spans; lo == hi:
                                                                 it has no elements */
} resolver;

/* TW_E_ARG: k and dev are of two contexts. */
tw_status resolver_start(resolver *r, const tw_kernel *k, const tw_device *dev, unsigned flags,
                         launch_args *out);
/* All of it: names, then compile-time values, tensors, scalars. */
tw_status resolver_run(resolver *r, const tw_arg *args, size_t count);

/* TW_E_ARG as a diagnostic; hint may be NULL. */
#define ARG_ERROR(hint, ...) error_diag(TW_E_ARG, DIAG_BAD_ARGUMENT, (hint), __VA_ARGS__)

/* args_scalar.c: the value that arg has as a dtype. */
tw_status arg_scalar(const char *name, const tw_arg *arg, enum dtype t, ir_scalar *out);
bool text_int(const char *text, int64_t *out);
bool text_bool(const char *text, int64_t *out);
/* The integer that arg is, if it is one. */
bool arg_int(const tw_arg *arg, int64_t *out);
tw_status arg_is_not(const tw_arg *arg, const char *type);

/* args_const.c: the value that arg, or a text (for --set), has for compile-time parameter i. */
tw_status arg_const(const kernel_source *src, uint32_t i, const tw_arg *arg, int64_t *out);
tw_status text_const(const kernel_source *src, uint32_t i, const char *text, int64_t *out);

/* args_tensor.c: checks tensor parameter i, binds what its type and shape say, notes its facts. */
tw_status resolve_tensor(resolver *r, uint32_t i);
/* The part of it that depends on where the tensor lies. */
tw_status place_tensor(resolver *r, uint32_t i);
/* Once its dtype is bound. */
static inline int resolved_bytes(const resolver *r, uint32_t i)
{
    const sig_param *p = &r->sig->param[i];

    return dtype_bytes(p->dtype_const < 0 ? p->dtype
                                          : (enum dtype)r->out->p.cons[p->dtype_const].value);
}
/* Binds compile-time value i, which must agree with what it is already. */
tw_status bind_const(resolver *r, uint32_t i, int64_t value, origin from);
const char *const_value_text(const kernel_source *src, uint32_t i, int64_t value, char out[32]);

/* args_overlap.c: no out or inout tensor shares an element with another argument. */
tw_status check_overlaps(const resolver *r);
/* Exact enough: true means that they may share a byte, false is a proof that they do not. */
bool tensors_may_overlap(const tensor_arg *a, int rank_a, int bytes_a, const tensor_arg *b,
                         int rank_b, int bytes_b);

#endif
