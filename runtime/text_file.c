#include "runtime/text_file.h"
#include "compiler/base/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Some editors begin a file in UTF-8 with a byte order mark: it says nothing. */
static void drop_mark(char *text, size_t *length)
{
    if (strncmp(text, "\xef\xbb\xbf", 3) != 0)
        return;
    *length -= 3;
    memmove(text, text + 3, *length + 1);
}

/* NULL, or why not, with *st. */
static const char *read_all(FILE *f, size_t limit, tw_status *st, char **text, size_t *length)
{
    struct stat info;

    *st = TW_E_IO;
    if (fstat(fileno(f), &info) != 0)
        return strerror(errno);
    if (!S_ISREG(info.st_mode))
        return "not a regular file";
    *st = TW_E_LIMIT;
    if (info.st_size > (off_t)limit)
        return "too long";
    *st = TW_E_NOMEM;
    *text = mem_alloc((size_t)info.st_size + 1);
    if (!*text)
        return "no memory to read it";
    *length = fread(*text, 1, (size_t)info.st_size, f);
    (*text)[*length] = 0;
    *st = ferror(f) ? TW_E_IO : TW_OK;
    if (*st == TW_OK) {
        drop_mark(*text, length);
        return NULL;
    }
    mem_free(*text);
    *text = NULL;
    return strerror(errno);
}

tw_status text_file_read(const char *path, size_t limit, char **text, size_t *length,
                         const char **why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* does not wait for a FIFO's writer */
    FILE *f = fd < 0 ? NULL : fdopen(fd, "rb");
    tw_status st = TW_E_IO;

    *text = NULL;
    if (!f) {
        *why = strerror(errno);
        if (fd >= 0)
            close(fd);
        return st;
    }
    *why = read_all(f, limit, &st, text, length);
    fclose(f);
    return st;
}
