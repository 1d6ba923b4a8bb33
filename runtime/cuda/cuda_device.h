#ifndef TW_CUDA_DEVICE_H
#define TW_CUDA_DEVICE_H
/* Inside of the CUDA driver: tw_device.self of a device "cuda:N", and what its files share. */
#include "runtime/cuda/cuda_context.h"
#include "runtime/runtime.h"

#define CUDA_KNOWN 256  /* ranges of memory that were asked about */
#define CUDA_SCRATCH 16 /* blocks kept for launches               */
#define CUDA_RECORDS 64 /* assert_records in one block of pinned memory */

/* Memory from [lo, hi) is within the device's reach. Written by one thread at a time (version is
 * odd meanwhile), read by any. */
typedef struct cuda_known {
    atomic_uint version;
    atomic_uintptr_t lo, hi;
} cuda_known;

/* What tw_memory_alloc and its like gave away. */
typedef struct cuda_block {
    struct cuda_block *next;
    CUdeviceptr at;
} cuda_block;

/* Workspaces and counters of launches in one stream: a later launch in the same stream comes after
 * the earlier one, so it may have the same block. */
typedef struct cuda_scratch {
    CUdeviceptr at;
    size_t size;
    uint64_t stream;
} cuda_scratch;

/* Pinned memory that code writes failed asserts to, and that is read without asking the driver. */
typedef struct cuda_records {
    struct cuda_records *next;
    assert_record *at; /* the host's address and the device's are one */
    bool used[CUDA_RECORDS];
} cuda_records;

typedef struct cuda_loaded { /* an artifact; only its place in the list changes once it is loaded */
    struct cuda_loaded *next, **link; /* in the device's list */
    const artifact *art;
    const char *name; /* lives as long as the device */
    assert_record *record;
    CUmodule *module;  /* per object of the artifact; NULL: of no use to a step */
    CUfunction *entry; /* per step */
} cuda_loaded;

typedef struct cuda_name {
    struct cuda_name *next;
    char text[];
} cuda_name;

typedef struct cuda_device {
    tw_device *dev;
    const cuda_api *api;
    cuda_context *cx;
    CUdevice handle;
    int ordinal;
    _Atomic(const char *) last; /* kernel launched last, for messages; or NULL */
    cuda_known known[CUDA_KNOWN];
    _Atomic(cuda_scratch *) scratch[CUDA_SCRATCH];
    pthread_mutex_t lock; /* of all that follows */
    cuda_block *blocks;
    cuda_records *records;
    cuda_loaded *loaded;
    cuda_name *names;
    CUdeviceptr flush; /* written to between timings */
    size_t flush_size;
} cuda_device;

static inline cuda_device *cuda_of(const tw_device *dev)
{
    return dev->self;
}

/* A call of the driver in d's context. */
#define CUDA(d, call, ...) cuda_result(d, (d)->api->call(__VA_ARGS__), #call)
tw_status cuda_call_failed(cuda_device *d, CUresult r, const char *call);
static inline tw_status cuda_result(cuda_device *d, CUresult r, const char *call)
{
    return r == CUDA_SUCCESS ? TW_OK : cuda_call_failed(d, r, call);
}

/* cuda_device.c */
extern const target *cuda_test_target; /* for tests: of every GPU, instead of the build's own */
tw_status cuda_open(tw_device *dev, const char *options);
void cuda_close(tw_device *dev);
bool cuda_runs(const tw_device *dev, const target *t);
bool cuda_lost(const tw_device *dev);
/* A copy of text that lives as long as d, or NULL. */
const char *cuda_keep_name(cuda_device *d, const char *text);

/* cuda_memory.c */
bool cuda_reaches(const tw_device *dev, DLDevice where);
tw_status cuda_check_memory(tw_device *dev, const char *name, uintptr_t lo, uintptr_t hi);
tw_status cuda_alloc(tw_device *dev, size_t size, void **out);
void cuda_release(tw_device *dev, void *p);
tw_status cuda_copy(tw_device *dev, void *dst, const void *src, size_t size,
                    enum driver_copy direction, tw_stream *stream);
tw_status cuda_clear(tw_device *dev, void *p, size_t size, tw_stream *stream);
tw_status cuda_scratch_take(tw_device *dev, size_t size, tw_stream *stream, driver_scratch *out);
void cuda_scratch_give(tw_device *dev, driver_scratch *s, tw_stream *stream);
/* What cuMemAlloc gave; 0 does nothing. What a broken context has goes with the process. */
void cuda_memory_free(cuda_device *d, CUdeviceptr at);
void cuda_memory_drop(cuda_device *d); /* at close */

/* cuda_timing.c */
tw_status cuda_flush(tw_device *dev, tw_stream *stream);
void cuda_flush_end(tw_device *dev);
tw_status cuda_event_create(tw_device *dev, void **event);
void cuda_event_destroy(tw_device *dev, void *event);
tw_status cuda_event_record(tw_device *dev, void *event, tw_stream *stream);
tw_status cuda_event_seconds(tw_device *dev, void *from, void *to, double *seconds);

/* cuda_link.c */
/* PTX to machine code for d's GPU; *cubin is freed with mem_free. registers and spill_bytes: the
 * most that any entry needs; may be NULL. Several threads at once do it in parallel. */
tw_status cuda_link(cuda_device *d, const code_object *ptx, const char *name, void **cubin,
                    size_t *size, int32_t *registers, int32_t *spill_bytes);
tw_status cuda_finish(tw_device *dev, artifact *art, arena *a);

/* cuda_records.c: where code notes failed asserts */
/* NULL: no memory. In d's context. */
assert_record *cuda_record_take(cuda_device *d);
void cuda_record_give(cuda_device *d, assert_record *r);
/* 1 + the index of the assert that failed first since the last call, once, and its values to calls;
 * 0 if none did or r is NULL. */
int32_t cuda_record_read(assert_record *r, const program_calls *calls);
void cuda_records_drop(cuda_device *d); /* at close */

/* cuda_module.c */
tw_status cuda_load(tw_device *dev, const artifact *art, void **loaded);
void cuda_unload(tw_device *dev, void *loaded);
tw_status cuda_ready(tw_device *dev, void *loaded, const program_calls *calls, int32_t *failed);
assert_record *cuda_assert_record(tw_device *dev, void *loaded);

/* cuda_launch.c */
tw_status cuda_launch(tw_device *dev, void *loaded, const driver_step *s, tw_stream *stream,
                      int32_t *failed);
tw_status cuda_sync(tw_device *dev, tw_stream *stream);
/* What is said of an assert of l that failed, told once; false: none did. */
bool cuda_failed_text(const cuda_device *d, const cuda_loaded *l, char *text, size_t size);
tw_status cuda_capturing(tw_device *dev, tw_stream *stream, bool *out);

#endif
