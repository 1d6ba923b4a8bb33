#ifndef TW_NPY_H
#define TW_NPY_H
/* Reader and writer of .npy files (format versions 1.0, 2.0 and 3.0): one array, little endian,
 * booleans, integers and floats of 1, 2, 4 or 8 bytes, or opaque pairs of bytes (bf16), in C or in
 * Fortran order.
 *
 * A file is trusted for nothing: the header must be what the format says, its sizes may not
 * overflow, and the data must be there whole with nothing after it. Errors are one line of text
 * that does not name the file.
 *
 * Statuses: TW_E_IO (unreadable, malformed, cannot be written), TW_E_UNSUPPORTED (a valid file with
 * elements we cannot use), TW_E_NOMEM. */
#include "tilewright.h"

enum { NPY_MAX_RANK = 8, NPY_ALIGN = 64 };

typedef struct npy_array {
    char kind; /* 'b' bool, 'i', 'u', 'f', 'V' opaque: the letter of the file's descr */
    int bytes; /* of an element                                           */
    bool fortran;
    int rank;
    int64_t shape[NPY_MAX_RANK];
    size_t size; /* of the data, in bytes                                 */
    void *data;  /* aligned to NPY_ALIGN; owned by whoever asked for it   */
} npy_array;

typedef struct npy_error {
    char text[200];
} npy_error;

/* Reads the header at the start of bytes (the first so many of a file) into a, all but a->data;
 * *header is its length. */
tw_status npy_parse(const unsigned char *bytes, size_t count, npy_array *a, size_t *header,
                    npy_error *error);
/* Reads a whole file; a->data is freed with free(). */
tw_status npy_load(const char *path, npy_array *a, npy_error *error);

/* Finds out early what npy_save would only say late: that there is no such folder, or no right to
 * write there. */
tw_status npy_can_write(const char *path, npy_error *error);
/* Writes a in C order. A regular file is replaced in one step: until then, and when this fails, it
 * keeps what it had. Signals that end a process wait until it is done. */
tw_status npy_save(const char *path, const npy_array *a, npy_error *error);

#endif
