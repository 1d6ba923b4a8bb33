#include "runtime/cuda/cuda_device.h"
#include "compiler/base/check.h"
#include "compiler/base/mem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_CAPABILITY 80

const target *cuda_test_target;

/* ---- failures -------------------------------------------------------------------------------- */

/* The first line of this thread's error, as it was set. */
static void first_line(char *out, size_t size)
{
    const tw_error *e = error_get();
    const char *text = e->diagnostic_count ? e->diagnostics[0].text : e->text;

    snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
}

tw_status cuda_call_failed(cuda_device *d, CUresult r, const char *call)
{
    const char *last = atomic_load(&d->last);
    char more[200] = "", line[200];

    if (cuda_breaks(r) && last)
        snprintf(more, sizeof more, "the kernel launched last on device '%s' was '%.100s'",
                 d->dev->spec, last);
    tw_status st = cuda_failed(d->api, r, call, more);
    if (cuda_breaks(r)) {
        first_line(line, sizeof line);
        cuda_context_break(d->cx, line);
    }
    return st;
}

bool cuda_lost(const tw_device *dev)
{
    return atomic_load(&cuda_of(dev)->cx->state) == CUDA_BROKEN;
}

/* ---- names ----------------------------------------------------------------------------------- */

const char *cuda_keep_name(cuda_device *d, const char *text)
{
    size_t n = strlen(text) + 1;
    cuda_name *name;

    pthread_mutex_lock(&d->lock);
    for (name = d->names; name && strcmp(name->text, text) != 0; name = name->next)
        ;
    if (!name && (name = mem_alloc(sizeof *name + n))) {
        memcpy(name->text, text, n);
        name->next = d->names;
        d->names = name;
    }
    pthread_mutex_unlock(&d->lock);
    return name ? name->text : NULL;
}

/* ---- what it can do -------------------------------------------------------------------------- */

/* The number in a code path's name, "sm_90"; 0 for another name, such as "sm_90a", whose code only
 * runs on that one capability. */
static int path_capability(const target *t)
{
    char *end;

    if (strncmp(t->name, "sm_", 3) != 0)
        return 0;
    long n = strtol(t->name + 3, &end, 10);
    return *end ? 0 : (int)n;
}

/* PTX of a capability runs on every later one (PTX ISA, ".target"). */
bool cuda_runs(const tw_device *dev, const target *t)
{
    char exact[16];
    int needs = path_capability(t);

    snprintf(exact, sizeof exact, "sm_%da", dev->gpu.limits.capability);
    return needs ? needs <= dev->gpu.limits.capability : strcmp(t->name, exact) == 0;
}

/* The newest code path that it can run: what ships next year takes the newest there is. */
static const target *best_target(const tw_device *dev)
{
    const target *best = NULL;

    for (size_t i = 0; i < target_count(); i++) {
        const target *t = target_at(i);
        if (strcmp(t->family, dev->drv->family) == 0 && cuda_runs(dev, t) &&
            (!best || path_capability(t) > path_capability(best)))
            best = t;
    }
    return best;
}

static tw_status choose_target(tw_device *dev)
{
    int c = dev->gpu.limits.capability;

    if (c < LEAST_CAPABILITY)
        return error_diag(
            TW_E_UNSUPPORTED, DIAG_DEVICE, "GPUs from capability 8.0 (Ampere) on can be used",
            "device '%s', %s, has compute capability %d.%d", dev->spec, dev->name, c / 10, c % 10);
    dev->target = cuda_test_target ? cuda_test_target : best_target(dev);
    if (dev->target)
        return TW_OK;
    return error_set(TW_E_UNSUPPORTED,
                     "device '%s': this build has no code path for compute capability %d.%d",
                     dev->spec, c / 10, c % 10);
}

static tw_status read_limits(cuda_device *d, gpu_profile *gpu)
{
    gpu_limits *l = &gpu->limits;
    int major = 0, minor = 0, l2 = 0, khz = 0;
    const struct {
        int attribute;
        int *out;
    } row[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &l->multiprocessors},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &l->shared_per_block},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &l->shared_per_sm},
        {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, &l->shared_reserved},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, &l->registers_per_sm},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &l->threads_per_block},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &l->threads_per_sm},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, &l->blocks_per_sm},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &l2},
    };
    size_t memory = 0;

    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        TRY(CUDA(d, cuDeviceGetAttribute, row[i].out, row[i].attribute, d->handle));
    TRY(CUDA(d, cuDeviceTotalMem, &memory, d->handle));
    if (d->api->cuDeviceGetAttribute(&khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, d->handle))
        khz = 0; /* no more than for people to read */
    l->capability = major * 10 + minor;
    l->registers_per_thread = gpu_limits_of(l->capability).registers_per_thread;
    l->l2_bytes = l2;
    gpu->clock_mhz = khz / 1000;
    gpu->memory_bytes = (int64_t)memory;
    return TW_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

static tw_status read_ordinal(const char *options, int count, int *out)
{
    char *end;

    *out = 0;
    if (!options[0])
        return TW_OK;
    long n = strtol(options, &end, 10);
    if (options[0] < '0' || options[0] > '9' || *end)
        return error_diag(TW_E_ARG, DIAG_BAD_ARGUMENT, "write cuda, or cuda:N for the N-th GPU",
                          "device 'cuda:%.40s': that is no number of a GPU", options);
    if (n >= count)
        return error_diag(TW_E_DEVICE, DIAG_DEVICE, "nvidia-smi -L lists them",
                          "no device 'cuda:%.40s': the driver shows %d GPU%s, from cuda:0 on",
                          options, count, count == 1 ? "" : "s");
    *out = (int)n;
    return TW_OK;
}

/* What a code generator and a driver together make is kept under this. */
static void name_code(tw_device *dev, const cuda_api *api)
{
    snprintf(dev->code_key, sizeof dev->code_key, "sm_%d, driver %s", dev->gpu.limits.capability,
             api->driver);
}

static tw_status fill(cuda_device *d, const char *options)
{
    tw_device *dev = d->dev;
    int count = 0;

    TRY(cuda_api_open(&d->api));
    TRY(cuda_check(d->api, d->api->cuDeviceGetCount(&count), "cuDeviceGetCount"));
    TRY(read_ordinal(options, count, &d->ordinal));
    TRY(cuda_check(d->api, d->api->cuDeviceGet(&d->handle, d->ordinal), "cuDeviceGet"));
    TRY(cuda_context_open(d->api, d->handle, &d->cx));
    TRY(CUDA(d, cuDeviceGetName, dev->name, (int)sizeof dev->name, d->handle));
    TRY(read_limits(d, &dev->gpu));
    snprintf(dev->spec, sizeof dev->spec, "cuda:%d", d->ordinal);
    snprintf(dev->gpu.name, sizeof dev->gpu.name, "%s", dev->name);
    snprintf(dev->gpu.driver, sizeof dev->gpu.driver, "%s", d->api->driver);
    dev->memory = (DLDevice){kDLCUDA, d->ordinal};
    dev->threads = dev->gpu.limits.multiprocessors;
    dev->l2_bytes = (size_t)dev->gpu.limits.l2_bytes;
    name_code(dev, d->api);
    return choose_target(dev);
}

static void destroy(cuda_device *d)
{
    if (d->cx) {
        cuda_memory_drop(d);
        cuda_context_close(d->cx);
    }
    while (d->names) {
        cuda_name *next = d->names->next;
        mem_free(d->names);
        d->names = next;
    }
    pthread_mutex_destroy(&d->lock);
    mem_free(d);
}

tw_status cuda_open(tw_device *dev, const char *options)
{
    cuda_device *d = mem_zalloc(sizeof *d);

    if (!d)
        return error_set(TW_E_NOMEM, "no memory for a device");
    d->dev = dev;
    dev->self = d;
    pthread_mutex_init(&d->lock, NULL);
    tw_status st = fill(d, options);
    if (st != TW_OK)
        destroy(d);
    return st;
}

void cuda_close(tw_device *dev)
{
    destroy(dev->self);
}
