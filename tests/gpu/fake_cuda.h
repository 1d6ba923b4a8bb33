#ifndef TW_TESTS_FAKE_CUDA_H
#define TW_TESTS_FAKE_CUDA_H
/* A CUDA driver without a GPU, for tests: a shared library that the CUDA driver of the runtime is
 * told to open. Device memory is host memory, kernels are functions of the test's, every call is
 * counted and can be told to fail, and what a real driver forbids (a wrong context, waiting while a
 * stream captures, a handle that was destroyed) fails as it does there. */
#include "runtime/cuda/cuda_types.h"
#include <stdbool.h>
#include <stdint.h>

enum { FAKE_DEVICES = 4, FAKE_SLOTS = 64 };

typedef struct fake_launch {
    char kernel[64];
    const char *text; /* of its module: PTX, as long as that is loaded */
    unsigned blocks, threads, shared_bytes;
    CUstream stream;
    CUdevice device;
    unsigned slots;
    uint64_t slot[FAKE_SLOTS];
} fake_launch;

typedef struct fake_control {
    int version, devices, capability[FAKE_DEVICES];
    const char *missing; /* a call that cuGetProcAddress does not know */
    const char *fails;   /* a call that fails; "": any but those that switch contexts; NULL: none */
    int result, after;   /* with this, at its n-th time from now (1: the next) */
    bool breaks;         /* no context of the process is of use then */
    int others[FAKE_DEVICES];     /* retains of the primary context by others than us */
    CUstream capturing;           /* this stream is; NULL: none */
    bool capture_broken;          /* a call did what breaks a capture */
    int fn_threads, fn_registers; /* what cuFuncGetAttribute tells */
    void (*kernel)(const fake_launch *launch); /* what a launch does; NULL: nothing */
    size_t memory_left;                        /* that cuMemAlloc can still give */
    fake_launch last;
} fake_control;

/* The library's functions for tests: its symbol fake_cuda_api. */
typedef struct fake_api {
    fake_control *(*control)(void);
    void (*reset)(void);                 /* everything as in a new process */
    unsigned (*calls)(const char *name); /* "": of all */
    /* What is not given back: modules, memory, pinned memory, events, links, retains, current
     * contexts of this thread. */
    int (*live)(char *text, size_t size);
    /* Memory that the driver knows, besides its own. */
    void (*region)(void *at, size_t size, int type, int ordinal, bool managed);
    CUcontext (*context)(CUdevice device); /* the application's own, current in this thread */
} fake_api;

#endif
