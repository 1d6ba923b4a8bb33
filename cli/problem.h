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
    tensor tensor;    /* in this process's memory */
    DLTensor there; /* the same in the device's, where that is other memory; data NULL: it is not */
} parameter;

typedef struct problem {
    tw_context *cx;
    tw_device *dev;
    tw_device_info device; /* borrowed from dev */
    tw_kernel *kernel;
    parameter *param;
    size_t count;
    tw_arg *arg; /* of a launch; tensors point into param */
    tw_arg *here; /* the same with the tensors of this process's memory */
    size_t arg_count;
} problem;

/* On failure p is closed again. */
int problem_open(cli *c, problem *p);
void problem_close(problem *p);
/* Brings outputs back from the device's memory, after a launch that was waited for. */
int problem_fetch(cli *c, problem *p);
bool on_gpu(const problem *p);
bool is_output(const parameter *q);
bool is_input(const parameter *q);

/* Bytes of all tensors: what a launch moves at least. */
size_t problem_bytes(const problem *p);
/* --flops of a launch; 0 when it was not given. */
int problem_flops(cli *c, const problem *p, double *out);

#endif
