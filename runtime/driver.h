#ifndef TW_RUNTIME_DRIVER_H
#define TW_RUNTIME_DRIVER_H
/* A driver is how the runtime reaches one kind of device: a table of functions. host runs machine
 * code on this processor, interp interprets tile IR, null runs nothing and counts.
 *
 * A driver sees artifacts and steps, never kernels, configurations or the store. Every function may
 * be called from several threads at once, except open and close. An entry that is NULL is not
 * offered: the runtime then does what its comment says, or returns TW_E_UNSUPPORTED. */
#include "compiler/ir/ireval.h"
#include "compiler/target/artifact.h"
#include "compiler/target/target.h"
#include "tilewright.h"

typedef struct driver driver;

typedef struct tensor_arg {
    char *base; /* data + byte_offset */
    int64_t extent[VIEW_MAX_RANK];
    int64_t stride[VIEW_MAX_RANK]; /* in elements */
} tensor_arg;

/* One step of a launch, ready to go: nothing in it outlives the call. */
typedef struct driver_step {
    const artifact *art;
    const recipe_step *step;
    const uint64_t *slots;     /* step->nslots values, as the recipe orders them                */
    const tensor_arg *tensor;  /* what slots are made of, by parameter of the kernel function:  */
    const ir_scalar *value;    /* tensors; scalars and then hidden dimensions                   */
    int32_t grid[3];           /* the kernel's grid, every extent >= 1                          */
    int64_t first, count;      /* programs to run: a range in kernel order, x fastest           */
    int threads;               /* CPU: at most this many, >= 1                                  */
    bool f64, running_max_low; /* interp: see tw_launch_options                                 */
    const program_calls *calls; /* what programs call; code has it from SLOT_CALLS              */
    bool (*stop)(void *user);  /* interp: asked now and then, by any thread; NULL: never         */
    void *stop_user;
} driver_step;

/* Memory of one launch: of workspaces and counters. */
typedef struct driver_scratch {
    char *bytes; /* 256-byte aligned */
    void *own;
} driver_scratch;

enum driver_copy { COPY_TO_DEVICE, COPY_FROM_DEVICE, COPY_ON_DEVICE };

struct driver {
    const char *name;   /* "host" */
    bool calls;         /* programs may call the host while they run: SLOT_CALLS */
    const char *family; /* targets it can run: target.family; NULL: any (null device) */

    /* options: what follows the colon of the device's spec, "" when nothing does. Fills dev->name,
     * dev->threads, cache sizes and dev->self. */
    tw_status (*open)(tw_device *dev, const char *options);
    void (*close)(tw_device *dev);
    /* Can it run code of t? NULL: if t->usable says so. */
    bool (*runs)(const tw_device *dev, const target *t);
    /* May a kernel on dev read memory that DLPack describes so? */
    bool (*reaches)(const tw_device *dev, DLDevice where);
    /* Is the memory of tensor `name`, from lo up to hi (> lo), where it was said to be? TW_E_ARG.
     * On the warm path. NULL: there is no way to find out. */
    tw_status (*check_memory)(tw_device *dev, const char *name, uintptr_t lo, uintptr_t hi);

    /* Turns code that the target made into what this very device loads and the store keeps; in art,
     * whose memory is in a. Threads do it in parallel. NULL: there is nothing to do. */
    tw_status (*finish)(tw_device *dev, artifact *art, arena *a);
    /* loaded: the driver's own handle, freed by unload. art outlives it. */
    tw_status (*load)(tw_device *dev, const artifact *art, void **loaded);
    void (*unload)(tw_device *dev, void *loaded);
    /* Before the steps of a launch: is dev of use? *failed: 1 + index of an assert of an earlier
     * launch of loaded that nobody heard of, whose values calls are told; the launch then ends
     * here. NULL: always usable. */
    tw_status (*ready)(tw_device *dev, void *loaded, const program_calls *calls, int32_t *failed);
    /* Does nothing run on dev any more, for the rest of the process? NULL: that does not happen. */
    bool (*lost)(const tw_device *dev);
    /* Runs or queues one step. *failed: set to 1 + index of an assert that failed (then TW_OK is
     * returned all the same), when that is known on return. */
    tw_status (*launch)(tw_device *dev, void *loaded, const driver_step *s, tw_stream *stream,
                        int32_t *failed);
    tw_status (*sync)(tw_device *dev, tw_stream *stream);
    /* Is what is queued on the stream recorded instead of run? Nothing may then be loaded, waited
     * for or timed. NULL: never. */
    tw_status (*capturing)(tw_device *dev, tw_stream *stream, bool *out);
    /* Where code that cannot return a failed assert notes it: what SLOT_ASSERT points to. NULL: its
     * entries return it. */
    assert_record *(*assert_record)(tw_device *dev, void *loaded);

    /* Memory of a launch, from before its first step until after its last. NULL: the runtime keeps
     * blocks of its own, which fits devices whose launches are complete when they return. */
    tw_status (*scratch_take)(tw_device *dev, size_t size, tw_stream *stream, driver_scratch *out);
    void (*scratch_give)(tw_device *dev, driver_scratch *s, tw_stream *stream);

    /* Device memory. NULL: host memory, 64-byte aligned. */
    tw_status (*alloc)(tw_device *dev, size_t size, void **out);
    void (*release)(tw_device *dev, void *p);
    /* Ordered with the stream; what the host's side has or gets is complete on return. */
    tw_status (*copy)(tw_device *dev, void *dst, const void *src, size_t size,
                      enum driver_copy direction, tw_stream *stream);
    tw_status (*clear)(tw_device *dev, void *p, size_t size, tw_stream *stream);

    /* Empties the caches before a timing, in the stream. NULL: they are left as they are. */
    tw_status (*flush)(tw_device *dev, tw_stream *stream);
    /* Gives back the memory that flush took; the next flush takes it again. NULL: it took none. */
    void (*flush_end)(tw_device *dev);
    /* Events for timing. NULL: the runtime reads the host's clock around launch and sync. */
    tw_status (*event_create)(tw_device *dev, void **event);
    void (*event_destroy)(tw_device *dev, void *event);
    tw_status (*event_record)(tw_device *dev, void *event, tw_stream *stream);
    tw_status (*event_seconds)(tw_device *dev, void *from, void *to, double *seconds);
};

extern const driver cuda_driver, host_driver, interp_driver, null_driver;

#endif
