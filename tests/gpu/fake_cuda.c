#include "tests/gpu/fake_core.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUmod_st {
    CUcontext cx;
    char *text;
};
struct CUfunc_st {
    CUmodule module;
    char name[64];
    int dynamic;
};
struct CUlinkState_st {
    char *text;
    char *cubin;
    char *info, *error;
    size_t info_size, error_size;
    void **written; /* where the length of the info log goes */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
fake_control control;
static struct CUctx_st primary[FAKE_DEVICES], own[FAKE_DEVICES];
static struct CUmod_st *modules[MOST];
static struct CUfunc_st functions[MOST];
static int nfunctions, live_links;
static bool initialised;
static CUresult poisoned; /* what every call in a context gives after a fault */
static _Thread_local CUcontext stack[STACK];
static _Thread_local int depth, mode;
_Thread_local bool was_injected;

static struct {
    const char *name;
    unsigned n;
} counts[MOST];
static unsigned all_calls;

static void count(const char *name)
{
    int i = 0;

    while (counts[i].name && strcmp(counts[i].name, name) != 0)
        i++;
    counts[i].name = name;
    counts[i].n++;
    all_calls++;
}

CUcontext fake_current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

/* Without these nothing can be given back: they only fail by name. */
static bool switches(const char *name)
{
    return strcmp(name, "cuCtxGetCurrent") == 0 || strcmp(name, "cuCtxPushCurrent_v2") == 0 ||
           strcmp(name, "cuThreadExchangeStreamCaptureMode") == 0;
}

/* Is this the call that was to fail? */
static CUresult injected(const char *name)
{
    was_injected = false;
    if (!control.fails || (control.fails[0] ? strcmp(control.fails, name) != 0 : switches(name)))
        return CUDA_SUCCESS;
    if (--control.after > 0)
        return CUDA_SUCCESS;
    control.fails = NULL;
    was_injected = true;
    if (control.breaks && fake_current())
        poisoned = control.result;
    return control.result;
}

CUresult fake_enter(const char *name, int needs)
{
    pthread_mutex_lock(&lock);
    count(name);
    CUresult r = injected(name);
    if (r == CUDA_SUCCESS && (needs & INIT) && !initialised)
        r = NOT_INITIALIZED;
    if (r == CUDA_SUCCESS && (needs & CONTEXT) && !fake_current())
        r = INVALID_CONTEXT;
    if (r == CUDA_SUCCESS && (needs & CONTEXT))
        r = poisoned;
    if (r == CUDA_SUCCESS && (needs & UNSAFE) && control.capturing && mode == 0) {
        control.capture_broken = true;
        r = CAPTURE_UNSUPPORTED;
    }
    return r;
}

CUresult fake_leave(CUresult r)
{
    pthread_mutex_unlock(&lock);
    return r;
}

/* ---- process and devices --------------------------------------------------------------------- */

EXPORT CUresult cuInit(unsigned flags)
{
    ENTER(FREE);
    initialised = flags == 0;
    DONE;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    *version = control.version;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY"
                         : NULL;
    return *name ? CUDA_SUCCESS : INVALID_VALUE;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = error == 2 ? "out of memory" : "a fake failure";
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *n)
{
    ENTER(INIT);
    *n = control.devices;
    DONE;
}

EXPORT CUresult cuDeviceGet(CUdevice *dev, int ordinal)
{
    ENTER(INIT);
    *dev = ordinal;
    if (ordinal < 0 || ordinal >= control.devices)
        FAIL(INVALID_DEVICE);
    DONE;
}

EXPORT CUresult cuDeviceGetName(char *name, int size, CUdevice dev)
{
    ENTER(INIT);
    snprintf(name, (size_t)size, "Fake GPU %d", dev);
    DONE;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    ENTER(INIT);
    *bytes = (size_t)1 << 34;
    (void)dev;
    DONE;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice dev)
{
    static const int table[][2] = {{1, 1024},  {13, 1500000}, {16, 8},     {38, 4 << 20},
                                   {39, 2048}, {81, 167936},  {82, 65536}, {97, 166912},
                                   {106, 32},  {111, 1024}};

    ENTER(INIT);
    if (attribute == 75 || attribute == 76) {
        int c = control.capability[dev];
        *value = attribute == 75 ? c / 10 : c % 10;
        DONE;
    }
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i][0] == attribute) {
            *value = table[i][1];
            DONE;
        }
    FAIL(INVALID_VALUE);
}

/* ---- contexts -------------------------------------------------------------------------------- */

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *cx, CUdevice dev)
{
    ENTER(INIT);
    primary[dev].device = dev;
    primary[dev].retains++;
    *cx = &primary[dev];
    DONE;
}

static void drop_context(CUcontext cx)
{
    for (int i = 0; i < MOST; i++) {
        if (regions[i].ours && regions[i].cx == cx) {
            fake_memory_drop(&regions[i]);
            regions[i] = (region){0};
        }
        if (modules[i] && modules[i]->cx == cx) {
            free(modules[i]->text);
            free(modules[i]);
            modules[i] = NULL;
        }
    }
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    ENTER_GIVING(INIT);
    if (primary[dev].retains == 0)
        FAIL(INVALID_CONTEXT);
    if (--primary[dev].retains + control.others[dev] == 0)
        drop_context(&primary[dev]);
    DONE_GIVING;
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned *flags, int *active)
{
    ENTER(INIT);
    *flags = 0;
    *active = primary[dev].retains + control.others[dev] > 0;
    DONE;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *cx)
{
    ENTER(INIT);
    *cx = fake_current();
    DONE;
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext cx)
{
    ENTER(INIT);
    if (!cx || depth == STACK)
        FAIL(INVALID_CONTEXT);
    stack[depth++] = cx;
    DONE;
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *cx)
{
    pthread_mutex_lock(&lock);
    count(__func__);
    *cx = fake_current();
    depth -= depth > 0;
    DONE;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *dev)
{
    ENTER(CONTEXT);
    *dev = fake_current()->device;
    DONE;
}

EXPORT CUresult cuCtxSynchronize(void)
{
    ENTER(CONTEXT | UNSAFE);
    DONE;
}

/* ---- code ------------------------------------------------------------------------------------ */

EXPORT CUresult cuLinkCreate_v2(unsigned n, int *option, void **value, CUlinkState *state)
{
    ENTER(CONTEXT);
    CUlinkState s = calloc(1, sizeof *s);
    for (unsigned i = 0; i < n; i++) {
        if (option[i] == CU_JIT_INFO_LOG_BUFFER)
            s->info = value[i];
        if (option[i] == CU_JIT_ERROR_LOG_BUFFER)
            s->error = value[i];
        if (option[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) {
            s->info_size = (size_t)(uintptr_t)value[i];
            s->written = &value[i];
        }
        if (option[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            s->error_size = (size_t)(uintptr_t)value[i];
    }
    live_links++;
    *state = s;
    DONE;
}

EXPORT CUresult cuLinkAddData_v2(CUlinkState s, int type, void *data, size_t size, const char *name,
                                 unsigned n, int *option, void **value)
{
    ENTER(CONTEXT);
    (void)name, (void)n, (void)option, (void)value;
    const char *text = data;
    bool whole = type == CU_JIT_INPUT_PTX && size > 0 && text[size - 1] == 0;
    if (!whole || !strstr(text, ".version")) {
        snprintf(s->error, s->error_size, "ptxas fatal   : no .version in the text");
        FAIL(INVALID_PTX);
    }
    if (strstr(text, "too_large")) {
        snprintf(s->error, s->error_size,
                 "ptxas error   : Entry function 'k' uses too much shared data");
        FAIL(INVALID_PTX);
    }
    s->text = strdup(text);
    DONE;
}

EXPORT CUresult cuLinkComplete(CUlinkState s, void **cubin, size_t *size)
{
    ENTER(CONTEXT);
    *size = strlen(s->text) + 5;
    s->cubin = calloc(1, *size);
    snprintf(s->cubin, *size, "\177ELF%s", s->text);
    snprintf(s->info, s->info_size,
             "ptxas info    : 0 bytes gmem\nptxas info    : Function properties for k\n"
             "    0 bytes stack frame, 24 bytes spill stores, 20 bytes spill loads\n"
             "ptxas info    : Used 40 registers, 400 bytes cmem[0]\n");
    *s->written = (void *)(uintptr_t)strlen(s->info);
    *cubin = s->cubin;
    DONE;
}

EXPORT CUresult cuLinkDestroy(CUlinkState s)
{
    pthread_mutex_lock(&lock);
    count(__func__);
    live_links--;
    free(s->text);
    free(s->cubin);
    free(s);
    DONE;
}

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    int i = 0;

    ENTER(CONTEXT | UNSAFE);
    if (memcmp(image, "\177ELF", 4) != 0)
        FAIL(INVALID_IMAGE);
    while (modules[i])
        i++;
    modules[i] = calloc(1, sizeof *modules[i]);
    modules[i]->cx = fake_current();
    modules[i]->text = strdup((const char *)image + 4);
    *module = modules[i];
    DONE;
}

static int module_place(CUmodule module)
{
    for (int i = 0; i < MOST; i++)
        if (modules[i] && modules[i] == module)
            return i;
    return -1;
}

EXPORT CUresult cuModuleUnload(CUmodule module)
{
    ENTER_GIVING(CONTEXT | UNSAFE);
    int i = module_place(module);
    if (i < 0)
        FAIL(INVALID_HANDLE);
    free(module->text);
    free(module);
    modules[i] = NULL;
    DONE_GIVING;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *fn, CUmodule module, const char *name)
{
    char entry[96];

    ENTER(CONTEXT);
    snprintf(entry, sizeof entry, ".entry %s(", name);
    if (module_place(module) < 0)
        FAIL(INVALID_HANDLE);
    if (!strstr(module->text, entry))
        FAIL(NOT_FOUND);
    struct CUfunc_st *f = &functions[nfunctions++ % MOST];
    *f = (struct CUfunc_st){.module = module};
    snprintf(f->name, sizeof f->name, "%s", name);
    *fn = f;
    DONE;
}

EXPORT CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction fn)
{
    ENTER(CONTEXT);
    (void)fn;
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? control.fn_threads
             : attribute == CU_FUNC_ATTRIBUTE_NUM_REGS            ? control.fn_registers
                                                                  : 0;
    DONE;
}

EXPORT CUresult cuFuncSetAttribute(CUfunction fn, int attribute, int value)
{
    ENTER(CONTEXT);
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        fn->dynamic = value;
    DONE;
}

static void note_launch(fake_launch *l, CUfunction fn, void **extra)
{
    snprintf(l->kernel, sizeof l->kernel, "%s", fn->name);
    l->text = fn->module->text;
    l->device = fake_current()->device;
    l->slots = 0;
    const void *buffer = NULL;
    for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2)
        if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            l->slots = (unsigned)(*(size_t *)extra[1] / 8);
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
    unsigned kept = l->slots < FAKE_SLOTS ? l->slots : FAKE_SLOTS;
    if (buffer)
        memcpy(l->slot, buffer, kept * sizeof *l->slot);
}

EXPORT CUresult cuLaunchKernel(CUfunction fn, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                               unsigned by, unsigned bz, unsigned shared, CUstream stream,
                               void **params, void **extra)
{
    fake_launch l = {
        .blocks = gx * gy * gz, .threads = bx * by * bz, .shared_bytes = shared, .stream = stream};

    ENTER(CONTEXT);
    if (module_place(fn->module) < 0 || fn->module->cx != fake_current())
        FAIL(INVALID_HANDLE);
    if (gx == 0 || bx == 0 || params || (shared > 49152 && (int)shared > fn->dynamic))
        FAIL(INVALID_VALUE);
    note_launch(&l, fn, extra);
    control.last = l;
    void (*kernel)(const fake_launch *) =
        control.capturing && stream == control.capturing ? NULL : control.kernel;
    pthread_mutex_unlock(&lock);
    if (kernel)
        kernel(&l);
    return CUDA_SUCCESS;
}

/* ---- what older drivers do not have ---------------------------------------------------------- */

#ifndef FAKE_OLD
EXPORT CUresult cuFuncLoad(CUfunction fn)
{
    ENTER(CONTEXT | UNSAFE);
    (void)fn;
    DONE;
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(int *wanted)
{
    int old = mode;

    ENTER(INIT);
    mode = *wanted;
    *wanted = old;
    DONE;
}

EXPORT CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
    ENTER(CONTEXT);
    *id = (uintptr_t)stream + 1000;
    DONE;
}

EXPORT CUresult cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags,
                                    int *status)
{
    char symbol[80];
    Dl_info self;

    (void)flags, (void)status;
    *out = NULL;
    if (version > control.version || (control.missing && strcmp(control.missing, name) == 0) ||
        !dladdr((void *)(uintptr_t)&control, &self))
        return NOT_FOUND;
    void *library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    snprintf(symbol, sizeof symbol, "%s_v2", name);
    *out = dlsym(library, symbol);
    if (!*out)
        *out = dlsym(library, name);
    dlclose(library);
    return *out ? CUDA_SUCCESS : NOT_FOUND;
}
#endif

/* ---- for tests ------------------------------------------------------------------------------- */

static fake_control *the_control(void)
{
    return &control;
}

static unsigned calls(const char *name)
{
    unsigned n = name[0] ? 0 : all_calls;

    for (int i = 0; counts[i].name && name[0]; i++)
        n += strcmp(counts[i].name, name) == 0 ? counts[i].n : 0;
    return n;
}

static int live(char *text, size_t size)
{
    int nmodules = 0, memory = 0, retains = 0;

    for (int i = 0; i < MOST; i++) {
        nmodules += modules[i] != NULL;
        memory += regions[i].ours;
    }
    for (int i = 0; i < FAKE_DEVICES; i++)
        retains += primary[i].retains;
    snprintf(text, size,
             "%d modules, %d blocks of memory, %d links, %d events, %d retains, %d current "
             "contexts, capture mode %d",
             nmodules, memory, live_links, live_events, retains, depth, mode);
    return nmodules + memory + live_links + live_events + retains + depth + mode;
}

static void add_foreign(void *at, size_t size, int type, int ordinal, bool managed)
{
    add_region(at, size, type, ordinal)->managed = managed;
}

static CUcontext application_context(CUdevice device)
{
    own[device].device = device;
    own[device].own = true;
    stack[depth++] = &own[device];
    return &own[device];
}

__attribute__((constructor(101))) static void reset(void)
{
    for (int i = 0; i < FAKE_DEVICES; i++) {
        drop_context(&primary[i]);
        drop_context(&own[i]);
    }
    memset(primary, 0, sizeof primary);
    memset(own, 0, sizeof own);
    memset(regions, 0, sizeof regions);
    memset(counts, 0, sizeof counts);
    nfunctions = live_links = live_events = depth = mode = 0;
    all_calls = 0;
    initialised = false;
    poisoned = CUDA_SUCCESS;
    control = (fake_control){.version = 13000,
                             .devices = 2,
                             .capability = {90, 89, 75, 123},
                             .fn_threads = 1024,
                             .fn_registers = 32,
                             .memory_left = (size_t)1 << 30};
}

EXPORT const fake_api fake_cuda_api = {the_control, reset,       calls,
                                       live,        add_foreign, application_context};
