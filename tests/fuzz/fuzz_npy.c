/* Any bytes as a .npy file: the header and the file are refused with a message or describe memory
 * that is there, and what was read can be written and read again. */
#include "cli/npy.h"
#include "tests/fuzz/fuzz.h"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void check_shape(const npy_array *a)
{
    size_t size = (size_t)a->bytes;

    FUZZ_MUST(a->rank >= 0 && a->rank <= NPY_MAX_RANK, "rank %d\n", a->rank);
    FUZZ_MUST(strchr("biufV", a->kind), "kind %d\n", a->kind);
    FUZZ_MUST(a->bytes == 1 || a->bytes == 2 || a->bytes == 4 || a->bytes == 8, "%d\n", a->bytes);
    for (int d = 0; d < a->rank; d++) {
        FUZZ_MUST(a->shape[d] >= 0, "a negative extent\n");
        FUZZ_MUST(!__builtin_mul_overflow(size, (size_t)a->shape[d], &size) || a->size == 0,
                  "the size overflows\n");
    }
    FUZZ_MUST(a->size == size || a->size == 0, "%zu bytes, not %zu\n", a->size, size);
}

static void check_error(tw_status st, const npy_error *e)
{
    FUZZ_MUST(st == TW_E_IO || st == TW_E_UNSUPPORTED || st == TW_E_NOMEM, "%s\n",
              tw_status_name(st));
    FUZZ_MUST(memchr(e->text, '\0', sizeof e->text) && e->text[0] && !strchr(e->text, '\n'),
              "not one line\n");
}

static const char *file_of(const uint8_t *data, size_t size)
{
    static char path[64];
    static int fd = -1;

    if (fd < 0)
        fd = memfd_create("npy", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    FUZZ_MUST(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size, "%s\n", path);
    return path;
}

static void write_and_read(const npy_array *a)
{
    char path[] = "/tmp/tilewright_fuzz_XXXXXX";
    npy_array b = {0};
    npy_error error;
    int fd = mkstemp(path);

    FUZZ_MUST(fd >= 0 && close(fd) == 0, "%s\n", path);
    FUZZ_MUST(npy_save(path, a, &error) == TW_OK, "%s\n", error.text);
    FUZZ_MUST(npy_load(path, &b, &error) == TW_OK, "%s\n", error.text);
    FUZZ_MUST(b.rank == a->rank && b.size == a->size && b.kind == a->kind, "another array\n");
    FUZZ_MUST(!memcmp(b.shape, a->shape, (size_t)a->rank * sizeof *a->shape), "another shape\n");
    FUZZ_MUST(!a->size || !memcmp(b.data, a->data, a->size), "other bytes\n");
    free(b.data);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    npy_array a = {0}, b = {0};
    npy_error error = {{0}};
    size_t header = 0;
    tw_status st = npy_parse(data, size, &a, &header, &error);

    if (st == TW_OK) {
        FUZZ_MUST(header <= size, "a header of %zu bytes in %zu\n", header, size);
        check_shape(&a);
    } else {
        check_error(st, &error);
    }
    tw_status read = npy_load(file_of(data, size), &b, &error);
    FUZZ_MUST(st == TW_OK || read != TW_OK, "a file without a header was read\n");
    if (read != TW_OK) {
        check_error(read, &error);
        return 0;
    }
    FUZZ_MUST(b.size == size - header, "%zu bytes of data\n", b.size);
    volatile unsigned char sum = 0;
    for (size_t i = 0; i < b.size; i++)
        sum = (unsigned char)(sum + ((unsigned char *)b.data)[i]);
    if (!b.fortran && b.rank > 0)
        write_and_read(&b);
    free(b.data);
    return 0;
}
