/* Runs machine code of the CPU target on this processor. A launch is complete when it returns. */
#include "compiler/base/check.h"
#include "compiler/base/mem.h"
#include "compiler/target/llvm/llvm_loader.h"
#include "runtime/host/host_info.h"
#include "runtime/host/host_pool.h"
#include "runtime/runtime.h"
#include <stdlib.h>
#include <string.h>

/* What the CPU target compiles a step to; 0, or 1 + the index of an assert that failed. */
typedef int32_t (*host_entry)(const uint64_t *slots, int32_t pid0, int32_t pid1, int32_t pid2,
                              void *scratch);

typedef struct host_step {
    llvm_loaded *code; /* NULL: it is in the object of an earlier step */
    host_entry entry;
} host_step;

typedef struct host_loaded {
    uint32_t n;
    host_step step[];
} host_loaded;

/* ---- device ---------------------------------------------------------------------------------- */

/* "" or the N of "cpu:N". */
static tw_status read_threads(const char *options, int *out)
{
    char *end;

    *out = host_processors();
    if (!options[0])
        return TW_OK;
    long n = strtol(options, &end, 10);
    if (options[0] < '0' || options[0] > '9' || *end || n < 1 || n > POOL_MAX_THREADS)
        return error_diag(TW_E_ARG, DIAG_BAD_ARGUMENT, "write cpu, or cpu:N for N threads",
                          "device 'cpu:%.40s': the number of threads must be 1 to %d", options,
                          POOL_MAX_THREADS);
    *out = (int)n;
    return TW_OK;
}

static tw_status host_open(tw_device *dev, const char *options)
{
    TRY(read_threads(options, &dev->threads));
    host_ask_for_tiles();
    host_processor_name(dev->name, sizeof dev->name);
    dev->l1_bytes = host_cache_bytes(1);
    dev->l2_bytes = host_cache_bytes(2);
    dev->self = pool_create(dev->threads);
    return dev->self ? TW_OK : error_set(TW_E_NOMEM, "no memory for a device");
}

static void host_close(tw_device *dev)
{
    pool_destroy(dev->self);
}

static bool host_reaches(const tw_device *dev, DLDevice where)
{
    (void)dev;
    return where.device_type == kDLCPU || where.device_type == kDLCUDAHost;
}

/* ---- code ------------------------------------------------------------------------------------ */

static void host_unload(tw_device *dev, void *loaded)
{
    host_loaded *l = loaded;

    (void)dev;
    for (uint32_t i = 0; i < l->n; i++)
        if (l->step[i].code)
            llvm_unload(l->step[i].code);
    mem_free(l);
}

static tw_status load_step(const artifact *art, host_loaded *l, uint32_t at)
{
    const recipe_step *s = &art->step[at];
    host_step *out = &l->step[at];
    void *entry = NULL;
    uint32_t i = 0;

    if (s->object >= art->nobjects || art->object[s->object].kind != OBJECT_ELF)
        return error_set(TW_E_UNSUPPORTED, "the code of this artifact is not for the CPU");
    const code_object *o = &art->object[s->object];
    while (i < at && (art->step[i].object != s->object || !l->step[i].code))
        i++;
    if (i < at)
        TRY(llvm_find(l->step[i].code, s->symbol, &entry));
    else
        TRY(llvm_load(o->bytes, o->size, s->symbol, &out->code, &entry));
    memcpy(&out->entry, &entry, sizeof entry);
    return TW_OK;
}

static tw_status host_load(tw_device *dev, const artifact *art, void **loaded)
{
    host_loaded *l = mem_zalloc(sizeof *l + art->nsteps * sizeof *l->step);
    tw_status st = TW_OK;

    if (!l)
        return error_set(TW_E_NOMEM, "no memory to load a kernel");
    l->n = art->nsteps;
    for (uint32_t i = 0; i < art->nsteps && st == TW_OK; i++)
        st = load_step(art, l, i);
    if (st != TW_OK) {
        host_unload(dev, l);
        return st;
    }
    *loaded = l;
    return TW_OK;
}

/* ---- launches -------------------------------------------------------------------------------- */

typedef struct host_launch {
    host_entry entry;
    const uint64_t *slots;
    int64_t first;
    int32_t extent[3]; /* in walking order: fastest first */
    uint8_t axis[3];   /* of the kernel's grid, that each of them is */
    bool reversed[3];
} host_launch;

/* The whole grid in the recipe's order; a part of it in the kernel's, by which it is numbered. */
static host_launch launch_of(const driver_step *s, host_entry entry)
{
    host_launch l = {.entry = entry, .slots = s->slots, .first = s->first};
    int64_t total = (int64_t)s->grid[0] * s->grid[1] * s->grid[2];
    bool whole = s->count == total;

    for (uint8_t d = 0; d < 3; d++) {
        l.axis[d] = whole ? s->step->grid_map[d] : d;
        l.extent[d] = s->grid[l.axis[d]];
        l.reversed[d] = whole && (s->step->reversed >> l.axis[d] & 1);
    }
    return l;
}

static int32_t run_programs(const void *cx, int64_t lo, int64_t hi, void *scratch)
{
    const host_launch *l = cx;
    int64_t rest = l->first + lo;
    int32_t at[3], pid[3];

    for (int d = 0; d < 3; d++) {
        at[d] = (int32_t)(rest % l->extent[d]);
        rest /= l->extent[d];
    }
    for (int64_t i = lo; i < hi; i++) {
        for (int d = 0; d < 3; d++)
            pid[l->axis[d]] = l->reversed[d] ? l->extent[d] - 1 - at[d] : at[d];
        int32_t code = l->entry(l->slots, pid[0], pid[1], pid[2], scratch);
        if (code != 0)
            return code;
        for (int d = 0; d < 3 && ++at[d] == l->extent[d]; d++)
            at[d] = 0;
    }
    return 0;
}

static tw_status host_run(tw_device *dev, void *loaded, const driver_step *s, tw_stream *stream,
                          int32_t *failed)
{
    const host_loaded *code = loaded;
    const host_launch l = launch_of(s, code->step[s->step - s->art->step].entry);
    const pool_job job = {run_programs, &l, s->count, (size_t)s->step->scratch_bytes};

    (void)stream;
    tw_status st = pool_run(dev->self, &job, s->threads, failed);
    if (st == TW_OK)
        return TW_OK;
    return error_set(st, "no memory for %lld bytes of scratch a thread",
                     (long long)s->step->scratch_bytes);
}

const driver host_driver = {
    .name = "host",
    .family = "cpu",
    .calls = true,
    .open = host_open,
    .close = host_close,
    .reaches = host_reaches,
    .load = host_load,
    .unload = host_unload,
    .launch = host_run,
};
