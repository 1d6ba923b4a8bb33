#ifndef TW_PROBLEM_H
#define TW_PROBLEM_H
/* What run, tune and bench work on: a context, a device, a kernel and its arguments, from
 *     FILE[:KERNEL] NAME=VALUE...
 * Inputs are read or made, outputs get the shape that the kernel's dimensions give them. */
#include "cli/value.h"

typedef struct parameter {
    tw_param_info info;
    const char *text; /* what the command line says of it, NULL: nothing */
    const char *save; /* file that an output is written to, NULL: it is dropped */
    tensor tensor;
} parameter;

typedef struct problem {
    tw_context *cx;
    tw_device *dev;
    tw_device_info device; /* borrowed from dev */
    tw_kernel *kernel;
    parameter *param;
    size_t count;
    tw_arg *arg; /* of a launch; tensors point into param */
    size_t arg_count;
} problem;

/* On failure p is closed again. */
int problem_open(cli *c, problem *p);
void problem_close(problem *p);
bool is_output(const parameter *q);
bool is_input(const parameter *q);

/* Bytes of all tensors: what a launch moves at least. */
size_t problem_bytes(const problem *p);
/* --flops of a launch; 0 when it was not given. */
int problem_flops(cli *c, const problem *p, double *out);

#endif
