#include "tests/support/npy_file.h"
#include "cli/npy.h"
#include "tests/support/numeric_dtype.h"
#include <check.h>
#include <stdlib.h>
#include <string.h>

static double element(const npy_array *a, int64_t i)
{
    const char *p = (const char *)a->data + (size_t)i * (size_t)a->bytes;
    double wide;
    float single;
    int32_t whole;

    if (a->bytes == 2)
        return num_get(num_dtype_named("f16"), p, 0).f;
    memcpy(&single, p, sizeof single);
    memcpy(&whole, p, sizeof whole);
    if (a->bytes == 8)
        memcpy(&wide, p, sizeof wide);
    return a->kind == 'i' ? (double)whole : a->bytes == 8 ? wide : (double)single;
}

npy_file npy_read(const char *path)
{
    npy_file f = {.count = 1};
    npy_error error;
    npy_array a;

    ck_assert_msg(npy_load(path, &a, &error) == TW_OK, "%s: %s", path, error.text);
    ck_assert_msg(a.kind == 'f' || (a.kind == 'i' && a.bytes == 4), "%s", path);
    ck_assert_msg(!a.fortran && a.rank <= 4, "%s", path);
    f.rank = a.rank;
    for (int i = 0; i < a.rank; i++) {
        f.extent[i] = a.shape[i];
        f.count *= a.shape[i];
    }
    f.at = malloc((size_t)f.count * sizeof *f.at);
    ck_assert_ptr_nonnull(f.at);
    for (int64_t i = 0; i < f.count; i++)
        f.at[i] = element(&a, i);
    free(a.data);
    return f;
}

void npy_free(npy_file *f)
{
    free(f->at);
}
