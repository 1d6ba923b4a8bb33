#include "compiler/base/check.h"
#include "compiler/base/mem.h"
#include "compiler/base/namelist.h"
#include "runtime/launch.h"
#include "runtime/spec.h"
#include <stdio.h>
#include <string.h>

typedef struct device_kind {
    const char *spec; /* before the colon */
    const driver *drv;
    const char *target; /* name or family; NULL: the driver chooses by what the device is */
} device_kind;

/* "auto" is the first one that opens. */
static const device_kind kinds[] = {
    {"cuda", &cuda_driver, NULL},
    {"cpu", &host_driver, "cpu"},
    {"interp", &interp_driver, "interp"},
    {"null", &null_driver, "interp"},
};

static const device_kind *kind_of(const char *spec, const char **options)
{
    size_t n = strcspn(spec, ":");

    *options = spec[n] ? spec + n + 1 : "";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && (!spec[n] || **options); i++)
        if (strlen(kinds[i].spec) == n && strncmp(kinds[i].spec, spec, n) == 0)
            return &kinds[i];
    return NULL;
}

/* Of all contexts: an id is never used twice. */
static uint64_t new_id(void)
{
    static atomic_uint_least64_t last;

    return atomic_fetch_add(&last, 1) + 1;
}

static void link_device(tw_device *dev)
{
    tw_context *cx = dev->cx;

    pthread_mutex_lock(&cx->lock);
    dev->next = cx->devices;
    dev->link = &cx->devices;
    if (dev->next)
        dev->next->link = &dev->next;
    cx->devices = dev;
    pthread_mutex_unlock(&cx->lock);
}

static tw_status open_kind(tw_context *cx, const device_kind *kind, const char *options,
                           tw_device **out)
{
    tw_device *dev = mem_zalloc(sizeof *dev);
    if (!dev)
        return error_set(TW_E_NOMEM, "no memory for a device");
    dev->cx = cx;
    dev->drv = kind->drv;
    dev->id = new_id();
    dev->memory = (DLDevice){kDLCPU, 0};
    snprintf(dev->spec, sizeof dev->spec, "%s%s%.10s", kind->spec, options[0] ? ":" : "", options);
    tw_status st = kind->drv->open(dev, options);
    if (st != TW_OK) {
        mem_free(dev);
        return st;
    }
    if (kind->target) /* after open: what is usable may depend on the driver */
        dev->target = target_find(kind->target);
    if (!dev->target) {
        dev->drv->close(dev);
        mem_free(dev);
        return error_set(TW_E_DEVICE, "device '%s': this build has no code path for this machine",
                         kind->spec);
    }
    link_device(dev);
    *out = dev;
    return TW_OK;
}

static tw_status open_first(tw_context *cx, tw_device **out)
{
    if (open_kind(cx, &kinds[0], "", out) == TW_OK)
        return TW_OK;
    const char *why = error_get()->text;
    runtime_log(cx, TW_LOG_INFO, "device 'auto' is the processor: %.*s", (int)strcspn(why, "\n"),
                why);
    error_clear();
    return open_kind(cx, &kinds[1], "", out);
}

tw_status tw_device_open(tw_context *cx, const char *spec, tw_device **out)
{
    const char *options;

    error_clear();
    if (!cx || !spec || !out)
        return error_set(TW_E_ARG, "tw_device_open: cx, spec or out is NULL");
    if (strcmp(spec, "auto") == 0)
        return open_first(cx, out);
    const device_kind *kind = kind_of(spec, &options);
    if (!kind)
        return error_diag(TW_E_DEVICE, DIAG_BAD_ARGUMENT,
                          "devices are auto, cuda, cuda:N, cpu, cpu:N, interp and null",
                          "no device '%.60s'", spec);
    return open_kind(cx, kind, options, out);
}

static void forget_code(tw_device *dev)
{
    for (tw_kernel *k = dev->cx->kernels; k; k = k->next)
        spec_drop(k, dev);
}

void tw_device_close(tw_device *dev)
{
    if (!dev)
        return;
    pthread_mutex_lock(&dev->cx->lock);
    *dev->link = dev->next;
    if (dev->next)
        dev->next->link = dev->link;
    forget_code(dev);
    pthread_mutex_unlock(&dev->cx->lock);
    workspace_drop(dev);
    dev->drv->close(dev);
    mem_free(dev);
}

/* ---- code paths ------------------------------------------------------------------------------ */

static bool runs_here(const tw_device *dev, const target *t)
{
    return !dev->drv->family || strcmp(dev->drv->family, t->family) == 0;
}

static tw_status unknown_target(const tw_device *dev, const char *name)
{
    char list[120];
    namelist l = namelist_begin(list, sizeof list, "it has ", ", ");

    for (size_t i = 0; i < target_count(); i++)
        if (runs_here(dev, target_at(i)))
            namelist_add(&l, "%s", target_at(i)->name);
    namelist_end(&l);
    return error_diag(TW_E_ARG, DIAG_BAD_ARGUMENT, list, "device '%s' has no code path '%.40s'",
                      dev->spec, name);
}

/* The named path even when this machine cannot run it, so that the error can tell the two apart. */
static const target *path_named(const tw_device *dev, const char *name)
{
    for (size_t i = 0; i < target_count(); i++)
        if (strcmp(target_at(i)->name, name) == 0 && runs_here(dev, target_at(i)))
            return target_at(i);
    const target *t = target_find(name);
    return t && runs_here(dev, t) ? t : NULL;
}

static bool can_run(const tw_device *dev, const target *t)
{
    if (dev->drv->runs)
        return dev->drv->runs(dev, t);
    return t->usable(t) || dev->drv == &null_driver;
}

tw_status tw_device_force_target(tw_device *dev, const char *name)
{
    error_clear();
    if (!dev || !name)
        return error_set(TW_E_ARG, "tw_device_force_target: dev or target is NULL");
    if (atomic_load(&dev->used))
        return error_set(TW_E_ARG, "tw_device_force_target: device '%s' was used already",
                         dev->spec);
    if (!name[0] && dev->drv->runs)
        return TW_OK; /* it has the best one from the start */
    if (!name[0])
        name = dev->drv->family ? dev->drv->family : "interp";
    const target *t = path_named(dev, name);
    if (!t)
        return unknown_target(dev, name);
    if (!can_run(dev, t)) {
        char has[80];
        snprintf(has, sizeof has, "the code path that it has is '%s'", dev->target->name);
        return error_diag(TW_E_UNSUPPORTED, DIAG_DEVICE, has,
                          "device '%s' cannot run code of target '%s'", dev->spec, t->name);
    }
    dev->target = t;
    return TW_OK;
}

tw_status tw_device_query(const tw_device *dev, tw_device_info *info)
{
    error_clear();
    if (!dev || !info || info->size < sizeof info->size || info->size > 4096)
        return error_set(TW_E_ARG, "tw_device_query: dev or info is NULL, or info has no size");
    tw_device_info all = {
        .size = info->size,
        .spec = dev->spec,
        .name = dev->name,
        .target = dev->target->name,
        .features = dev->target->features(dev->target),
        .threads = dev->threads,
        .l1_bytes = dev->l1_bytes,
        .l2_bytes = dev->l2_bytes,
        .memory = dev->memory,
        .driver = dev->gpu.driver,
        .capability = dev->gpu.limits.capability,
        .memory_bytes = (size_t)dev->gpu.memory_bytes,
        .block_shared_bytes = dev->gpu.limits.shared_per_block,
        .block_threads = dev->gpu.limits.threads_per_block,
        .registers = dev->gpu.limits.registers_per_sm,
    };
    memcpy(info, &all, all.size < sizeof all ? all.size : sizeof all);
    return TW_OK;
}

tw_status tw_stream_sync(tw_device *dev, tw_stream *stream)
{
    error_clear();
    if (!dev)
        return error_set(TW_E_ARG, "tw_stream_sync: dev is NULL");
    return dev->drv->sync ? dev->drv->sync(dev, stream) : TW_OK;
}
