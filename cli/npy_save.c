#include "cli/npy.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static tw_status fail(npy_error *error, const char *what)
{
    snprintf(error->text, sizeof error->text, "%s", what);
    return TW_E_IO;
}

static bool is_special(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

/* The folder that path is in: everything up to the last slash. */
static bool folder_of(const char *path, char out[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + 1 : 1;

    if (n >= PATH_MAX)
        return false;
    memcpy(out, slash ? path : ".", n);
    out[n] = '\0';
    return true;
}

tw_status npy_can_write(const char *path, npy_error *error)
{
    char folder[PATH_MAX];
    struct stat info;

    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return fail(error, strerror(EISDIR));
    if (is_special(path))
        return access(path, W_OK) == 0 ? TW_OK : fail(error, strerror(errno));
    if (!folder_of(path, folder))
        return fail(error, strerror(ENAMETOOLONG));
    return access(folder, W_OK | X_OK) == 0 ? TW_OK : fail(error, strerror(errno));
}

static void put_shape(char *out, size_t size, const npy_array *a)
{
    size_t n = 0;

    for (int i = 0; i < a->rank; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%lld", i ? ", " : "", (long long)a->shape[i]);
    snprintf(out + n, size - n, a->rank == 1 ? "," : "");
}

/* A version 1.0 header, padded so that the data begins at a multiple of NPY_ALIGN. */
static size_t put_header(char out[512], const npy_array *a)
{
    char shape[NPY_MAX_RANK * 24], order = a->bytes == 1 ? '|' : '<';
    size_t n, total;

    put_shape(shape, sizeof shape, a);
    n = 10 + (size_t)snprintf(out + 10, 500,
                              "{'descr': '%c%c%d', 'fortran_order': False, "
                              "'shape': (%s), }",
                              order, a->kind, a->bytes, shape);
    total = (n + 1 + NPY_ALIGN - 1) / NPY_ALIGN * NPY_ALIGN;
    memset(out + n, ' ', total - n);
    out[total - 1] = '\n';
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)((total - 10) & 0xff);
    out[9] = (char)((total - 10) >> 8);
    return total;
}

static bool write_fully(int fd, const void *data, size_t count)
{
    size_t done = 0;

    while (done < count) {
        ssize_t n = write(fd, (const char *)data + done, count - done);
        if (n < 0 && errno != EINTR)
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool write_array(int fd, const npy_array *a)
{
    char header[512];
    size_t n = put_header(header, a);

    return write_fully(fd, header, n) && write_fully(fd, a->data, a->size);
}

static tw_status write_special(const char *path, const npy_array *a, npy_error *error)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write_array(fd, a);
    int why = errno;

    if (fd >= 0 && close(fd) != 0 && ok) {
        ok = false;
        why = errno;
    }
    return ok ? TW_OK : fail(error, strerror(why));
}

/* Beside the file itself, so that the rename cannot cross file systems. */
static tw_status write_regular(const char *path, const npy_array *a, npy_error *error)
{
    char beside[PATH_MAX];
    mode_t mask = umask(0);
    int n = snprintf(beside, sizeof beside, "%s.XXXXXX", path), why = 0;

    umask(mask);
    if (n < 0 || n >= (int)sizeof beside)
        return fail(error, strerror(ENAMETOOLONG));
    int fd = mkostemp(beside, O_CLOEXEC);
    if (fd < 0)
        return fail(error, strerror(errno));
    if (!write_array(fd, a) || fchmod(fd, 0666 & ~mask) != 0)
        why = errno;
    if (close(fd) != 0 && !why)
        why = errno;
    if (!why && rename(beside, path) != 0)
        why = errno;
    if (why)
        unlink(beside);
    return why ? fail(error, strerror(why)) : TW_OK;
}

/* What ends the process waits until the file beside the other is gone. */
tw_status npy_save(const char *path, const npy_array *a, npy_error *error)
{
    sigset_t ends, before;

    if (is_special(path)) /* may wait for a reader for ever */
        return write_special(path, a, error);
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, &before);
    tw_status st = write_regular(path, a, error);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return st;
}
