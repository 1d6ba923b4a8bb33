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
    const print_target *print; /* who is given what programs print; of code: through SLOT_PRINT */
    bool (*stop)(void *user);  /* interp: asked now and then, by any thread; NULL: never         */
    void *stop_user;
} driver_step;

enum driver_copy { COPY_TO_DEVICE, COPY_FROM_DEVICE, COPY_ON_DEVICE };

struct driver {
    const char *name;   /* "host" */
    bool prints;        /* programs can hand over what they print while they run */
    const char *family; /* targets it can run: target.family; NULL: any (null device) */

    /* options: what follows the colon of the device's spec, "" when nothing does. Fills dev->name,
     * dev->threads, cache sizes and dev->self. */
    tw_status (*open)(tw_device *dev, const char *options);
    void (*close)(tw_device *dev);
    /* May a kernel on dev read memory that DLPack describes so? */
    bool (*reaches)(const tw_device *dev, DLDevice where);

    /* loaded: the driver's own handle, freed by unload. art outlives it. */
    tw_status (*load)(tw_device *dev, const artifact *art, void **loaded);
    void (*unload)(tw_device *dev, void *loaded);
    /* Runs or queues one step. *failed: set to 1 + index of an assert that failed (then TW_OK is
     * returned all the same), when that is known on return. */
    tw_status (*launch)(tw_device *dev, void *loaded, const driver_step *s, tw_stream *stream,
                        int32_t *failed);
    tw_status (*sync)(tw_device *dev, tw_stream *stream);
    /* Where code that cannot return a failed assert notes it: what SLOT_ASSERT points to. NULL: its
     * entries return it. */
    uint64_t *(*assert_word)(tw_device *dev, void *loaded);

    /* Device memory. NULL: host memory, 64-byte aligned. */
    tw_status (*alloc)(tw_device *dev, size_t size, void **out);
    void (*release)(tw_device *dev, void *p);
    /* Ordered with the stream. */
    tw_status (*copy)(tw_device *dev, void *dst, const void *src, size_t size,
                      enum driver_copy direction, tw_stream *stream);
    tw_status (*clear)(tw_device *dev, void *p, size_t size, tw_stream *stream);

    /* Events for timing. NULL: the runtime reads the host's clock around launch and sync. */
    tw_status (*event_create)(tw_device *dev, void **event);
    void (*event_destroy)(tw_device *dev, void *event);
    tw_status (*event_record)(tw_device *dev, void *event, tw_stream *stream);
    tw_status (*event_seconds)(tw_device *dev, void *from, void *to, double *seconds);
};

extern const driver host_driver, interp_driver, null_driver;

#endif
