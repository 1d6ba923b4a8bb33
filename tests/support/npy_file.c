#include "tests/support/npy_file.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void parse_header(npy_file *f, const char *header, const char *path)
{
    const char *at = strstr(header, "'shape': (");

    ck_assert_msg(at && strstr(header, "'fortran_order': False"), "%s: %s", path, header);
    at += strlen("'shape': (");
    f->count = 1;
    while (*at != ')') {
        char *end;
        long long n = strtoll(at, &end, 10);

        ck_assert_msg(end != at && n >= 0 && f->rank < 4, "%s: %s", path, header);
        f->extent[f->rank++] = n;
        f->count *= n;
        at = end + strspn(end, ", ");
    }
}

static double element(const unsigned char *p, char kind)
{
    double wide;
    float single;
    int32_t whole;

    memcpy(&single, p, sizeof single);
    memcpy(&whole, p, sizeof whole);
    if (kind == '8')
        memcpy(&wide, p, sizeof wide);
    return kind == '8' ? wide : kind == 'f' ? (double)single : (double)whole;
}

npy_file npy_read(const char *path)
{
    npy_file f = {0};
    unsigned char start[10];
    FILE *in = fopen(path, "rb");

    ck_assert_msg(in && fread(start, 1, 10, in) == 10, "%s", path);
    ck_assert_msg(!memcmp(start, "\223NUMPY\1", 7), "%s", path);
    size_t n = start[8] | (size_t)start[9] << 8;
    char *header = calloc(n + 1, 1);
    ck_assert_ptr_nonnull(header);
    ck_assert_uint_eq(fread(header, 1, n, in), n);
    parse_header(&f, header, path);
    char kind = strstr(header, "'<f8'") ? '8' : strstr(header, "'<f4'") ? 'f' : 'i';
    size_t size = kind == '8' ? 8 : 4;
    unsigned char *bytes = malloc((size_t)f.count * size + 8);
    f.at = malloc((size_t)f.count * sizeof *f.at);
    ck_assert(bytes && f.at);
    ck_assert_uint_eq(fread(bytes, size, (size_t)f.count, in), (size_t)f.count);
    for (int64_t i = 0; i < f.count; i++)
        f.at[i] = element(bytes + (size_t)i * size, kind);
    free(bytes);
    free(header);
    fclose(in);
    return f;
}

void npy_free(npy_file *f)
{
    free(f->at);
}
