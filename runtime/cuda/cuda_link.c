/* PTX to machine code by the driver's linker. Loading PTX as a module would do the same under a
 * lock of the driver's; linking runs in several threads at once, and gives the code to keep. */
#include "compiler/base/check.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "runtime/cuda/cuda_device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_BYTES = 8192, OPTIONS = 5 };

typedef struct link_job {
    cuda_device *d;
    CUlinkState state;
    int option[OPTIONS];
    void *value[OPTIONS];
    char info[LOG_BYTES], error[LOG_BYTES];
} link_job;

/* ---- what the assembler says ----------------------------------------------------------------- */

/* The largest number before `after` in the log: "Used 40 registers", "8 bytes spill stores". */
static int32_t most_before(const char *log, const char *after)
{
    int32_t most = 0;

    for (const char *at = log; (at = strstr(at, after)); at += strlen(after)) {
        const char *digit = at;
        while (digit > log && digit[-1] >= '0' && digit[-1] <= '9')
            digit--;
        long n = strtol(digit, NULL, 10);
        if (digit < at && n > most && n <= INT32_MAX)
            most = (int32_t)n;
    }
    return most;
}

/* A limit of the GPU rather than a fault of the text. */
static bool is_limit(const char *log)
{
    return strstr(log, "uses too much shared data") || strstr(log, "too many resources") ||
           strstr(log, "uses too many registers");
}

static tw_status link_failed(link_job *j, CUresult r, const char *call)
{
    if (cuda_breaks(r))
        return cuda_call_failed(j->d, r, call);
    tw_status st = cuda_failed(j->d->api, r, call, j->error);
    return is_limit(j->error) ? error_set(TW_E_LIMIT, "the code does not fit the GPU '%s': %s",
                                          j->d->dev->name, j->error)
                              : st;
}

/* ---- linking --------------------------------------------------------------------------------- */

/* Numbers travel in the pointers; the driver writes how long the logs are back into them, so the
 * array lives as long as the state (CUDA Driver API, cuLinkCreate). */
static CUresult begin(link_job *j)
{
    static const int options[OPTIONS] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                                         CU_JIT_ERROR_LOG_BUFFER,
                                         CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_LOG_VERBOSE};

    memcpy(j->option, options, sizeof options);
    j->value[0] = j->info;
    j->value[1] = j->value[3] = (void *)(uintptr_t)(LOG_BYTES - 1);
    j->value[2] = j->error;
    j->value[4] = (void *)(uintptr_t)1;
    return j->d->api->cuLinkCreate(OPTIONS, j->option, j->value, &j->state);
}

/* The linker wants PTX to end with a NUL. */
static tw_status add_text(link_job *j, const code_object *ptx, const char *name)
{
    char *text = mem_alloc((size_t)ptx->size + 1);

    if (!text)
        return error_set(TW_E_NOMEM, "no memory to link a kernel");
    memcpy(text, ptx->bytes, ptx->size);
    text[ptx->size] = 0;
    CUresult r = j->d->api->cuLinkAddData(j->state, CU_JIT_INPUT_PTX, text, strlen(text) + 1, name,
                                          0, NULL, NULL);
    mem_free(text);
    return r == CUDA_SUCCESS ? TW_OK : link_failed(j, r, "cuLinkAddData");
}

static tw_status complete(link_job *j, void **cubin, size_t *size)
{
    void *made = NULL;
    size_t n = 0;
    CUresult r = j->d->api->cuLinkComplete(j->state, &made, &n);

    if (r != CUDA_SUCCESS)
        return link_failed(j, r, "cuLinkComplete");
    if (!made || n == 0 || n > UINT32_MAX)
        return error_set(TW_E_DRIVER, "cuLinkComplete gave no code");
    *cubin = mem_alloc(n); /* what it made goes with the state */
    if (!*cubin)
        return error_set(TW_E_NOMEM, "no memory for a kernel's code");
    memcpy(*cubin, made, n);
    *size = n;
    return TW_OK;
}

static tw_status run(link_job *j, const code_object *ptx, const char *name, void **cubin,
                     size_t *size)
{
    CUresult r = begin(j);

    if (r != CUDA_SUCCESS)
        return link_failed(j, r, "cuLinkCreate");
    tw_status st = add_text(j, ptx, name);
    if (st == TW_OK)
        st = complete(j, cubin, size);
    j->d->api->cuLinkDestroy(j->state);
    return st;
}

static void log_info(const link_job *j, const char *name)
{
    tw_context *cx = j->d->dev->cx;
    char text[LOG_BYTES + 160];

    if (!cx->cfg.log || !j->info[0])
        return;
    snprintf(text, sizeof text, "%s on %s, as the driver's assembler has it:\n%s", name,
             j->d->dev->spec, j->info);
    runtime_log_text(cx, TW_LOG_DEBUG, text);
}

tw_status cuda_link(cuda_device *d, const code_object *ptx, const char *name, void **cubin,
                    size_t *size, int32_t *registers, int32_t *spill_bytes)
{
    link_job *j = mem_zalloc(sizeof *j);
    cuda_scope s;

    if (!j)
        return error_set(TW_E_NOMEM, "no memory to link a kernel");
    j->d = d;
    tw_status st = cuda_enter_cold(d->cx, &s);
    if (st == TW_OK)
        st = run(j, ptx, name, cubin, size);
    cuda_leave(d->cx, &s);
    log_info(j, name);
    if (st == TW_OK && registers)
        *registers = most_before(j->info, " registers");
    if (st == TW_OK && spill_bytes)
        *spill_bytes = most_before(j->info, " bytes spill stores");
    mem_free(j);
    return st;
}

/* ---- the artifact as it is kept -------------------------------------------------------------- */

typedef struct take_job {
    arena *a;
    const void *bytes;
    size_t size;
    const uint8_t *copy;
} take_job;

static tw_status take_guarded(void *arg)
{
    take_job *j = arg;
    uint8_t *copy = arena_alloc(j->a, j->size);

    memcpy(copy, j->bytes, j->size);
    j->copy = copy;
    return TW_OK;
}

static const char *entry_in(const artifact *art, uint32_t object)
{
    for (uint32_t i = 0; i < art->nsteps; i++)
        if (art->step[i].object == object)
            return art->step[i].symbol;
    return NULL;
}

/* One object of PTX, in place. */
static tw_status finish_object(cuda_device *d, artifact *art, uint32_t i, arena *a)
{
    const char *entry = entry_in(art, i);
    int32_t registers = 0, spills = 0;
    take_job j = {.a = a};
    void *cubin = NULL;

    if (art->object[i].kind != OBJECT_PTX || !entry)
        return TW_OK;
    TRY(cuda_link(d, &art->object[i], entry, &cubin, &j.size, &registers, &spills));
    j.bytes = cubin;
    tw_status st = guard_run(take_guarded, &j);
    mem_free(cubin);
    TRY(error_thrown(st));
    art->object[i] = (code_object){OBJECT_CUBIN, (uint32_t)j.size, j.copy};
    art->registers = registers > art->registers ? registers : art->registers;
    art->spill_bytes = spills > art->spill_bytes ? spills : art->spill_bytes;
    return TW_OK;
}

tw_status cuda_finish(tw_device *dev, artifact *art, arena *a)
{
    for (uint32_t i = 0; i < art->nobjects; i++)
        TRY(finish_object(cuda_of(dev), art, i, a));
    art->code_bytes = 0;
    for (uint32_t i = 0; i < art->nobjects; i++)
        art->code_bytes += art->object[i].size;
    return TW_OK;
}
