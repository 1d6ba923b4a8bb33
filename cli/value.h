#ifndef TW_VALUE_H
#define TW_VALUE_H
/* Tensors as the command line gives them:
 *
 *   FILE.npy               an array from a file
 *   DTYPE:FILE.npy         the same, and its elements must be of this type; a file of two-byte
 *                          elements of any kind may be read as bf16 or f16
 *   rand:DTYPE[2,64]       normal numbers, the same for the same --seed and argument name
 *   zeros:DTYPE[2,64]
 *   full:VALUE:DTYPE[2,64] */
#include "cli/cli.h"
#include "cli/elemtype.h"
#include "cli/npy.h"

typedef struct tensor {
    DLTensor view; /* points into this struct: do not copy it */
    int64_t shape[NPY_MAX_RANK], stride[NPY_MAX_RANK];
    const elemtype *type;
    void *memory; /* of the whole tensor, dense but not always in C order */
    size_t bytes;
} tensor;

/* What a value of an argument may look like, for messages. */
#define VALUE_FORMS "FILE.npy, rand:DTYPE[dims], zeros:DTYPE[dims] or full:VALUE:DTYPE[dims]"

int tensor_parse(cli *c, const char *name, const char *text, tensor *t);
/* A new tensor of zeros in C order. */
int tensor_allocate(cli *c, const char *name, tensor *t, const elemtype *type, int rank,
                    const int64_t *shape);
/* Whether text describes a tensor rather than names a file. */
bool value_is_made(const char *text);
int tensor_save(cli *c, const char *name, const tensor *t, const char *path);
void tensor_free(tensor *t);
/* "f32[1,9,197,64]"; freed with free(). */
char *tensor_text(const tensor *t);

#endif
