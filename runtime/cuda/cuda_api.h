#ifndef TW_CUDA_API_H
#define TW_CUDA_API_H
/* The CUDA driver's library: opened when a device is, never when this library is loaded, and kept
 * until the process ends, as the driver wants it. Any thread. */
#include "runtime/cuda/cuda_types.h"
#include "tilewright.h"

typedef struct cuda_api {
#define CALL(need, name, suffix, version, params) CUresult(*name) params;
#include "runtime/cuda/cuda_api.def"
    void *library;
    int version;     /* of cuDriverGetVersion: 13000 is 13.0 */
    char driver[48]; /* "13.0" or, where the kernel module tells, "13.0 (580.95.05)" */
} cuda_api;

/* Initialised, with a device at least. TW_E_DEVICE (no library, no device), TW_E_DRIVER (too old,
 * or it refuses). */
tw_status cuda_api_open(const cuda_api **out);

/* For tests: the library to open instead of libcuda.so.1, and forgetting what was opened; no device
 * may be open then. */
extern const char *cuda_library;
void cuda_api_forget(void);

#endif
