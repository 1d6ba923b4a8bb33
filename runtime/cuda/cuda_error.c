#include "runtime/cuda/cuda_error.h"
#include "compiler/base/error.h"

typedef struct result_row {
    CUresult code;
    const char *name;
    tw_status status;
    bool breaks;
    const char *todo;
} result_row;

static const result_row rows[] = {
#define RESULT(code, name, status, breaks, todo) {code, name, status, breaks, todo},
#include "runtime/cuda/cuda_error.def"
};

/* NULL: no row for it. */
static const result_row *row_of(CUresult r)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == r)
            return &rows[i];
    return NULL;
}

bool cuda_breaks(CUresult r)
{
    const result_row *row = row_of(r);

    return row && row->breaks;
}

tw_status cuda_failed(const cuda_api *api, CUresult r, const char *call, const char *more)
{
    const result_row *row = row_of(r);
    const char *name = NULL, *text = NULL;
    tw_status st = row ? row->status : TW_E_DRIVER;

    if (!api->cuGetErrorName || api->cuGetErrorName(r, &name) != CUDA_SUCCESS || !name)
        name = row ? row->name : "unknown result";
    if (!api->cuGetErrorString || api->cuGetErrorString(r, &text) != CUDA_SUCCESS || !text)
        text = "the driver has no text for it";
    return error_diag(st, DIAG_DEVICE, row ? row->todo : NULL, "%s: %s (%d): %s%s%s", call, name, r,
                      text, more && *more ? "\n" : "", more ? more : "");
}
