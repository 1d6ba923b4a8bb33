#ifndef TW_TESTS_FAKE_CORE_H
#define TW_TESTS_FAKE_CORE_H
/* What the files of the fake driver share. Everything is under one lock, which a call takes as it
 * enters and gives back as it leaves. */
#include "tests/gpu/fake_cuda.h"

#define EXPORT __attribute__((visibility("default")))
enum {
    MOST = 256,
    STACK = 16,
    INVALID_VALUE = 1,
    NOT_INITIALIZED = 3,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    INVALID_IMAGE = 200,
    INVALID_PTX = 218,
    NOT_FOUND = 500,
    INVALID_HANDLE = 400,
    CAPTURE_UNSUPPORTED = 900
};
/* What a call needs: the driver started, a context, and that nothing is capturing. */
enum { FREE = 0, INIT = 1, CONTEXT = 2, UNSAFE = 4 };

struct CUctx_st {
    CUdevice device;
    int retains;
    bool own;
};

typedef struct region {
    char *at;
    size_t size;
    int type, ordinal;
    bool managed, ours;
    CUcontext cx;
} region;

extern fake_control control;
extern region regions[MOST];
extern int live_events;
extern _Thread_local bool was_injected;

CUresult fake_enter(const char *name, int needs);
CUresult fake_leave(CUresult r);
CUcontext fake_current(void);
void fake_memory_drop(const region *r);
region *add_region(void *at, size_t size, int type, int ordinal);

#define ENTER(needs)                                                                               \
    do {                                                                                           \
        CUresult entered_ = fake_enter(__func__, needs);                                           \
        if (entered_ != CUDA_SUCCESS)                                                              \
            return fake_leave(entered_);                                                           \
    } while (0)
/* Of calls that give something back: told to fail, they do it all the same, so that what a test
 * finds lost was lost by us. */
#define ENTER_GIVING(needs)                                                                        \
    CUresult told = fake_enter(__func__, needs);                                                   \
    if (told != CUDA_SUCCESS && !was_injected)                                                     \
    return fake_leave(told)
#define DONE_GIVING return fake_leave(told)
#define DONE return fake_leave(CUDA_SUCCESS)
#define FAIL(r) return fake_leave(r)

#endif
