/* Accepts everything, runs nothing: counts calls and fails when told to. For tests. */
#include "compiler/base/check.h"
#include "compiler/base/mem.h"
#include "runtime/runtime.h"
#include <stdio.h>
#include <string.h>

enum null_op { NULL_LOAD, NULL_LAUNCH, NULL_SYNC, NULL_OPS };
static const char *const op_name[NULL_OPS] = {"load", "launch", "sync"};

typedef struct null_device {
    atomic_uint_least64_t opens, loads, launches, steps, syncs;
    atomic_uint until[NULL_OPS]; /* calls up to and with the one that fails; 0: none */
    atomic_int status[NULL_OPS];
} null_device;

static tw_status null_open(tw_device *dev, const char *options)
{
    null_device *n;

    if (options[0])
        return error_set(TW_E_ARG, "device 'null' takes no options, not '%.40s'", options);
    n = mem_zalloc(sizeof *n);
    if (!n)
        return error_set(TW_E_NOMEM, "no memory for a device");
    atomic_store(&n->opens, 1);
    snprintf(dev->name, sizeof dev->name, "null");
    dev->threads = 1;
    dev->self = n;
    return TW_OK;
}

static void null_close(tw_device *dev)
{
    mem_free(dev->self);
}

static bool null_reaches(const tw_device *dev, DLDevice where)
{
    (void)dev, (void)where;
    return true;
}

/* Is this the call that was to fail? */
static tw_status attempt(null_device *n, enum null_op op)
{
    unsigned left = atomic_load(&n->until[op]);

    while (left > 0 && !atomic_compare_exchange_weak(&n->until[op], &left, left - 1))
        ;
    if (left != 1)
        return TW_OK;
    return error_set((tw_status)atomic_load(&n->status[op]), "device 'null': %s failed as asked",
                     op_name[op]);
}

static tw_status null_load(tw_device *dev, const artifact *art, void **loaded)
{
    null_device *n = dev->self;

    (void)art;
    atomic_fetch_add(&n->loads, 1);
    *loaded = NULL;
    return attempt(n, NULL_LOAD);
}

static void null_unload(tw_device *dev, void *loaded)
{
    (void)dev, (void)loaded;
}

static tw_status null_launch(tw_device *dev, void *loaded, const driver_step *s, tw_stream *stream,
                             int32_t *failed)
{
    null_device *n = dev->self;

    (void)loaded, (void)stream, (void)failed;
    if (s->step == s->art->step)
        atomic_fetch_add(&n->launches, 1);
    atomic_fetch_add(&n->steps, 1);
    return attempt(n, NULL_LAUNCH);
}

static tw_status null_sync(tw_device *dev, tw_stream *stream)
{
    null_device *n = dev->self;

    (void)stream;
    atomic_fetch_add(&n->syncs, 1);
    return attempt(n, NULL_SYNC);
}

tw_status tw_null_query(const tw_device *dev, tw_null_stats *stats)
{
    error_clear();
    if (!dev || !stats || dev->drv != &null_driver)
        return error_set(TW_E_ARG, "tw_null_query: not a null device");
    null_device *n = dev->self;
    *stats =
        (tw_null_stats){atomic_load(&n->opens), atomic_load(&n->loads), atomic_load(&n->launches),
                        atomic_load(&n->steps), atomic_load(&n->syncs)};
    return TW_OK;
}

tw_status tw_null_fail(tw_device *dev, const char *op, unsigned n, tw_status st)
{
    error_clear();
    if (!dev || !op || dev->drv != &null_driver)
        return error_set(TW_E_ARG, "tw_null_fail: not a null device");
    null_device *null = dev->self;
    for (int i = 0; i < NULL_OPS; i++) {
        if (strcmp(op_name[i], op) != 0)
            continue;
        atomic_store(&null->status[i], (int)st);
        atomic_store(&null->until[i], n);
        return TW_OK;
    }
    return error_set(TW_E_ARG, "tw_null_fail: '%.40s' is none of load, launch, sync", op);
}

const driver null_driver = {
    .name = "null",
    .family = NULL,
    .open = null_open,
    .close = null_close,
    .reaches = null_reaches,
    .load = null_load,
    .unload = null_unload,
    .launch = null_launch,
    .sync = null_sync,
};
