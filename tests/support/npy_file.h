#ifndef TW_NPY_FILE_H
#define TW_NPY_FILE_H
/* Reads .npy files of tests/data and examples/data: little-endian f32, f64 or i32 in C order. */
#include <stdint.h>

typedef struct npy_file {
    int rank;
    int64_t extent[4], count;
    double *at; /* converted; freed by npy_free */
} npy_file;

/* Aborts the test when the file is not there or not of that kind. */
npy_file npy_read(const char *path);
void npy_free(npy_file *f);

#endif
