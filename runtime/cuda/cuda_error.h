#ifndef TW_CUDA_ERROR_H
#define TW_CUDA_ERROR_H
/* Results of the driver's calls as statuses. The text has the call, the driver's name for the
 * result, its number and meaning, and what to do. */
#include "runtime/cuda/cuda_api.h"

/* TW_OK, or this thread's error is set. more may be NULL: what else there is to say, on lines of
 * its own. */
tw_status cuda_failed(const cuda_api *api, CUresult r, const char *call, const char *more);

static inline tw_status cuda_check(const cuda_api *api, CUresult r, const char *call)
{
    return r == CUDA_SUCCESS ? TW_OK : cuda_failed(api, r, call, NULL);
}

/* Is the context of no use after r? */
bool cuda_breaks(CUresult r);

#endif
