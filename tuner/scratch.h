#ifndef TW_TUNER_SCRATCH_H
#define TW_TUNER_SCRATCH_H
/* Copies of a launch's outputs, so that tuning never writes to the caller's. They have the caller's
 * strides and alignment; an out tensor starts with a pattern that shows what was not written, an
 * inout tensor with the caller's values. What lies between the elements is reserved and, on the
 * host, never touched; results are kept and compared packed, in row-major order. */
#include "runtime/runtime.h"
#include "tuner/compare.h"

typedef struct scratch_tensor {
    uint32_t param;
    bool is_output;    /* else an input that had to be copied to be reached */
    bool keeps_values; /* inout */
    compare_view view;     /* of the block */
    compare_view packed;   /* of the elements alone */
    size_t packed_size;    /* in bytes */
    size_t size, to_first; /* bytes of the block; from its start to element 0 */
    char *block, *base;    /* on the device that runs; base has the caller's alignment */
    char *initial; /* what an output starts with: on the host packed, else such a block there;
                      NULL of an input */
    int64_t packed_stride[VIEW_MAX_RANK];
} scratch_tensor;

/* Views point into args: not to be moved. */
typedef struct scratch {
    tw_device *dev;
    uint32_t n;
    scratch_tensor tensor[RUNTIME_MAX_PARAMS];
    launch_args args; /* the caller's, on these copies */
} scratch;

/* dev runs the launches; args->tensor lies where owner can copy from. */
tw_status scratch_create(scratch *s, tw_device *dev, tw_device *owner, const tw_kernel *k,
                         const launch_args *args);
void scratch_destroy(scratch *s);
/* Every output as it was at first. */
tw_status scratch_reset(scratch *s);
/* Only those whose old values the kernel reads: for a run whose results nobody looks at. */
tw_status scratch_reset_inputs(scratch *s);
/* Tensor i's elements, packed: buffer has packed_size bytes. */
tw_status scratch_read(const scratch *s, uint32_t i, char *buffer);

#endif
