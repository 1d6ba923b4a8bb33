#ifndef TW_TESTS_CUDA_PROOF_H
#define TW_TESTS_CUDA_PROOF_H
/* What the files of cuda_proof share: the table, the device, and tensors x and y of N elements. */
#include "runtime/cuda/cuda_device.h"
#include "tests/support/proof_kernels.h"

enum { N = 1 << 20 };
extern tw_device *dev;
extern const char *spec; /* of dev */
extern void *x;

void row(const char *what, bool ok, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The text of the thread's last error. */
const char *said(void);
/* Ends the program where st is not TW_OK. */
void must(tw_status st, const char *what);
tw_kernel *kernel(const proof_code *c);
tw_status launch(tw_kernel *k, CUstream stream);

/* proof_asserts.c */
void prove_asserts(void);
/* Code of this library's own, for the device's own code path, instead of PTX written by hand. */
void prove_checked_kernel(void);

#endif
