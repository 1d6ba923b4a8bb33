#include "runtime/cuda/cuda_api.h"
#include "compiler/base/check.h"
#include "compiler/base/error.h"
#include "runtime/cuda/cuda_error.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define USUAL_LIBRARY "libcuda.so.1"

const char *cuda_library;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cuda_api opened; /* under the lock until ready, constant from then on */
static bool ready;

enum need { OPTIONAL, REQUIRED };
typedef struct call_row {
    enum need need;
    const char *name, *symbol;
    int version;
    size_t at; /* in cuda_api */
} call_row;
static const call_row calls[] = {
#define CALL(need, name, suffix, version, params)                                                  \
    {need, #name, #name suffix, version, offsetof(cuda_api, name)},
#include "runtime/cuda/cuda_api.def"
};
enum { CALLS = sizeof calls / sizeof *calls };

typedef CUresult (*get_proc_fn)(const char *name, void **out, int version, uint64_t flags,
                                int *status);

static void version_text(int version, char out[16])
{
    snprintf(out, 16, "%d.%d", version / 1000, version % 1000 / 10);
}

/* ---- symbols --------------------------------------------------------------------------------- */

/* cuGetProcAddress, of drivers from 12.0 on, gives the signature of a version; older ones have a
 * symbol for each. */
static void *find(void *library, get_proc_fn get_proc, const call_row *c)
{
    void *found = NULL;
    int status = 0;

    if (!get_proc)
        return dlsym(library, c->symbol);
    return get_proc(c->name, &found, c->version, 0, &status) == CUDA_SUCCESS ? found : NULL;
}

static tw_status missing_call(const call_row *c, int has)
{
    char needed[16], there[16];

    version_text(c->version, needed);
    version_text(has, there);
    return error_diag(TW_E_DRIVER, DIAG_DEVICE, "update the NVIDIA driver",
                      "the CUDA driver lacks %s, which came with version %s; it is of version %s",
                      c->name, needed, has ? there : "unknown");
}

static tw_status bind_calls(cuda_api *api)
{
    get_proc_fn get_proc = NULL;
    void *entry = dlsym(api->library, "cuGetProcAddress_v2");

    memcpy(&get_proc, &entry, sizeof get_proc);
    for (int i = 0; i < CALLS; i++) {
        void *found = find(api->library, get_proc, &calls[i]);
        memcpy((char *)api + calls[i].at, &found, sizeof found);
    }
    if (api->cuDriverGetVersion && api->cuDriverGetVersion(&api->version) != CUDA_SUCCESS)
        api->version = 0;
    for (int i = 0; i < CALLS; i++) {
        void *found;
        memcpy(&found, (char *)api + calls[i].at, sizeof found);
        if (!found && calls[i].need == REQUIRED)
            return missing_call(&calls[i], api->version);
    }
    return TW_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Code made by one release of the driver is not taken from the store by another: cuDriverGetVersion
 * only tells the series. "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  ..." */
static void name_driver(cuda_api *api)
{
    char line[256] = "", release[24] = "", text[16];
    FILE *f = fopen("/proc/driver/nvidia/version", "re");

    if (f && fgets(line, sizeof line, f))
        for (const char *at = line; *at && !release[0]; at += strcspn(at, " ")) {
            at += strspn(at, " ");
            if (sscanf(at, "%23[0-9.]", release) != 1 || !strchr(release, '.'))
                release[0] = 0;
        }
    if (f)
        fclose(f);
    version_text(api->version, text);
    snprintf(api->driver, sizeof api->driver, release[0] ? "%s (%s)" : "%s", text, release);
}

static tw_status start(const cuda_api *api)
{
    int count = 0;

    TRY(cuda_check(api, api->cuInit(0), "cuInit"));
    TRY(cuda_check(api, api->cuDeviceGetCount(&count), "cuDeviceGetCount"));
    return count > 0 ? TW_OK : cuda_check(api, CUDA_ERROR_NO_DEVICE, "cuDeviceGetCount");
}

static tw_status open_locked(void)
{
    cuda_api api;

    if (ready)
        return TW_OK;
    memset(&api, 0, sizeof api);
    api.library = dlopen(cuda_library ? cuda_library : USUAL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!api.library)
        return error_diag(TW_E_DEVICE, DIAG_DEVICE,
                          "install the NVIDIA driver; the CUDA toolkit is not needed",
                          "no CUDA driver on this machine: %s", dlerror());
    tw_status st = bind_calls(&api);
    if (st == TW_OK)
        st = start(&api);
    if (st != TW_OK) {
        dlclose(api.library);
        return st;
    }
    name_driver(&api);
    opened = api;
    ready = true;
    return TW_OK;
}

tw_status cuda_api_open(const cuda_api **out)
{
    pthread_mutex_lock(&lock);
    tw_status st = open_locked();
    pthread_mutex_unlock(&lock);
    *out = st == TW_OK ? &opened : NULL;
    return st;
}

void cuda_api_forget(void)
{
    pthread_mutex_lock(&lock);
    if (ready)
        dlclose(opened.library);
    ready = false;
    pthread_mutex_unlock(&lock);
}
