#include "cli/npy.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "\x93NUMPY"
#define MAGIC_SIZE 6
#define MAX_HEADER 65536 /* NumPy itself refuses more than 10000 characters by default */

__attribute__((format(printf, 3, 4))) static tw_status fail(npy_error *error, tw_status st,
                                                            const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(error->text, sizeof error->text, format, list);
    va_end(list);
    return st;
}

/* ---- the header: a Python dictionary with three known keys ----------------------------------- */

typedef struct cursor {
    const char *at, *end;
    npy_error *error;
} cursor;

static tw_status malformed(cursor *c, const char *what)
{
    return fail(c->error, TW_E_IO, "malformed .npy header: %s", what);
}

static void skip_space(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t'))
        c->at++;
}

static bool accept(cursor *c, char ch)
{
    skip_space(c);
    if (c->at == c->end || *c->at != ch)
        return false;
    c->at++;
    return true;
}

static bool accept_word(cursor *c, const char *word)
{
    size_t n = strlen(word);

    skip_space(c);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0)
        return false;
    c->at += n;
    return true;
}

static tw_status read_string(cursor *c, char *out, size_t size)
{
    size_t n = 0;
    char quote;

    skip_space(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
        return malformed(c, "a quoted word is missing");
    quote = *c->at++;
    while (c->at < c->end && *c->at != quote) {
        if (n + 1 >= size || !isprint((unsigned char)*c->at))
            return malformed(c, "an unknown word");
        out[n++] = *c->at++;
    }
    out[n] = '\0';
    return accept(c, quote) ? TW_OK : malformed(c, "a quote is not closed");
}

static tw_status read_extent(cursor *c, int64_t *out)
{
    int64_t value = 0;

    skip_space(c);
    if (c->at == c->end || !isdigit((unsigned char)*c->at))
        return malformed(c, "the shape is not a tuple of sizes");
    while (c->at < c->end && isdigit((unsigned char)*c->at))
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *c->at++ - '0', &value))
            return malformed(c, "a size is too large");
    *out = value;
    return TW_OK;
}

static tw_status read_shape(cursor *c, npy_array *a)
{
    a->rank = 0;
    if (!accept(c, '('))
        return malformed(c, "the shape is not a tuple");
    while (!accept(c, ')')) {
        if (a->rank == NPY_MAX_RANK)
            return fail(c->error, TW_E_UNSUPPORTED, "more than %d dimensions", NPY_MAX_RANK);
        tw_status st = read_extent(c, &a->shape[a->rank++]);
        if (st)
            return st;
        bool comma = accept(c, ',');
        skip_space(c);
        bool last = c->at < c->end && *c->at == ')';
        if (last ? !comma && a->rank == 1 : !comma)
            return malformed(c, "the shape is not a tuple");
    }
    return TW_OK;
}

static tw_status read_descr(cursor *c, npy_array *a)
{
    char descr[16];

    skip_space(c);
    if (c->at < c->end && *c->at == '[')
        return fail(c->error, TW_E_UNSUPPORTED, "a structured dtype; one plain element is needed");
    tw_status st = read_string(c, descr, sizeof descr);
    if (st)
        return st;
    if (strlen(descr) != 3 || !strchr("<>|=", descr[0]) || !isdigit((unsigned char)descr[2]))
        return fail(c->error, TW_E_UNSUPPORTED, "elements of dtype '%s' are not supported", descr);
    a->kind = descr[1];
    a->bytes = descr[2] - '0';
    if (descr[0] == '>' && a->bytes > 1)
        return fail(c->error, TW_E_UNSUPPORTED, "big-endian elements ('%s'); save them as '<%s'",
                    descr, descr + 1);
    bool known = a->kind == 'V'   ? a->bytes == 2 /* opaque: bf16 */
                 : a->kind == 'b' ? a->bytes == 1
                 : a->kind == 'f' ? a->bytes == 2 || a->bytes == 4 || a->bytes == 8
                 : a->kind == 'i' || a->kind == 'u'
                     ? a->bytes == 1 || a->bytes == 2 || a->bytes == 4 || a->bytes == 8
                     : false;
    if (!known)
        return fail(c->error, TW_E_UNSUPPORTED, "elements of dtype '%s' are not supported", descr);
    return TW_OK;
}

static tw_status read_order(cursor *c, npy_array *a)
{
    a->fortran = accept_word(c, "True");
    return a->fortran || accept_word(c, "False") ? TW_OK
                                                 : malformed(c, "fortran_order is not a boolean");
}

static tw_status read_entry(cursor *c, npy_array *a, unsigned *seen)
{
    static const struct {
        const char *key;
        tw_status (*read)(cursor *c, npy_array *a);
    } entry[] = {{"descr", read_descr}, {"fortran_order", read_order}, {"shape", read_shape}};
    char key[24];
    tw_status st = read_string(c, key, sizeof key);

    for (unsigned i = 0; !st && i < 3; i++) {
        if (strcmp(key, entry[i].key) != 0)
            continue;
        if (*seen & 1u << i)
            return malformed(c, "a key comes twice");
        *seen |= 1u << i;
        return accept(c, ':') ? entry[i].read(c, a) : malformed(c, "':' is missing");
    }
    return st ? st : malformed(c, "an unknown key");
}

static tw_status read_dictionary(cursor *c, npy_array *a)
{
    unsigned seen = 0;

    if (!accept(c, '{'))
        return malformed(c, "it is not a dictionary");
    while (!accept(c, '}')) {
        tw_status st = read_entry(c, a, &seen);
        if (st)
            return st;
        skip_space(c);
        if (!accept(c, ',') && (c->at == c->end || *c->at != '}'))
            return malformed(c, "',' is missing");
    }
    skip_space(c);
    if (c->at != c->end)
        return malformed(c, "something follows the dictionary");
    return seen == 7 ? TW_OK : malformed(c, "descr, fortran_order or shape is missing");
}

/* An array with an extent of 0 holds nothing, whatever its other extents would multiply to. */
static tw_status set_size(npy_array *a, npy_error *error)
{
    size_t size = (size_t)a->bytes;
    bool empty = false;

    for (int i = 0; i < a->rank; i++)
        empty |= a->shape[i] == 0;
    for (int i = 0; !empty && i < a->rank; i++)
        if (__builtin_mul_overflow(size, (size_t)a->shape[i], &size) || size > PTRDIFF_MAX)
            return fail(error, TW_E_IO, "malformed .npy header: the array is larger than memory");
    a->size = empty ? 0 : size;
    return TW_OK;
}

tw_status npy_parse(const unsigned char *bytes, size_t count, npy_array *a, size_t *header,
                    npy_error *error)
{
    size_t start, length;

    *a = (npy_array){0};
    if (count < MAGIC_SIZE + 2 || memcmp(bytes, MAGIC, MAGIC_SIZE) != 0)
        return fail(error, TW_E_IO, "not a .npy file");
    unsigned version = bytes[6];
    if (version < 1 || version > 3 || bytes[7] != 0)
        return fail(error, TW_E_UNSUPPORTED, ".npy format version %u.%u", version, bytes[7]);
    start = version == 1 ? 10 : 12;
    if (count < start)
        return fail(error, TW_E_IO, "truncated: the file ends inside its header");
    length = bytes[8] | (size_t)bytes[9] << 8;
    if (version > 1)
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > MAX_HEADER)
        return fail(error, TW_E_IO, "malformed .npy header: it is %zu bytes long", length);
    if (count - start < length)
        return fail(error, TW_E_IO, "truncated: the file ends inside its header");
    cursor c = {(const char *)bytes + start, (const char *)bytes + start + length, error};
    tw_status st = read_dictionary(&c, a);
    *header = start + length;
    return st ? st : set_size(a, error);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads until count bytes are there or the file ends; *got says how many. */
static bool read_fully(int fd, void *out, size_t count, size_t *got)
{
    *got = 0;
    while (*got < count) {
        ssize_t n = read(fd, (char *)out + *got, count - *got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        if (n == 0)
            break;
        *got += (size_t)n;
    }
    return true;
}

static void *aligned_memory(size_t size)
{
    size_t rounded = (size + NPY_ALIGN) / NPY_ALIGN * NPY_ALIGN;

    return aligned_alloc(NPY_ALIGN, rounded);
}

/* What follows the header: first what was read along with it, then the rest of the file. */
static tw_status read_data(int fd, const unsigned char *head, size_t count, npy_array *a,
                           npy_error *error)
{
    size_t here = count < a->size ? count : a->size, got = 0, more = 0;
    struct stat info;
    char extra;

    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && (uintmax_t)info.st_size < a->size)
        return fail(error, TW_E_IO, "truncated: its header promises %zu bytes of data", a->size);
    a->data = aligned_memory(a->size);
    if (!a->data)
        return fail(error, TW_E_NOMEM, "out of memory for %zu bytes", a->size);
    memcpy(a->data, head, here);
    if (!read_fully(fd, (char *)a->data + here, a->size - here, &got) ||
        (count <= a->size && !read_fully(fd, &extra, 1, &more)))
        return fail(error, TW_E_IO, "%s", strerror(errno));
    if (here + got < a->size)
        return fail(error, TW_E_IO, "truncated: its header promises %zu bytes of data, %zu follow",
                    a->size, here + got);
    if (count > a->size || more)
        return fail(error, TW_E_IO,
                    "malformed: there is more than the %zu bytes of data that its "
                    "header promises",
                    a->size);
    return TW_OK;
}

static tw_status read_array(int fd, npy_array *a, npy_error *error)
{
    unsigned char *head = malloc(MAX_HEADER + 12);
    size_t count = 0, header = 0;
    tw_status st = TW_OK;

    if (!head)
        return fail(error, TW_E_NOMEM, "out of memory");
    if (!read_fully(fd, head, MAX_HEADER + 12, &count))
        st = fail(error, TW_E_IO, "%s", strerror(errno));
    if (!st)
        st = npy_parse(head, count, a, &header, error);
    if (!st)
        st = read_data(fd, head + header, count - header, a, error);
    free(head);
    return st;
}

tw_status npy_load(const char *path, npy_array *a, npy_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    tw_status st;

    *a = (npy_array){0};
    if (fd < 0)
        return fail(error, TW_E_IO, "%s", strerror(errno));
    st = read_array(fd, a, error);
    close(fd);
    if (st) {
        free(a->data);
        a->data = NULL;
    }
    return st;
}
