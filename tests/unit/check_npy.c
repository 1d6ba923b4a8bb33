#include "cli/npy.h"
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/tilewright_npy_XXXXXX";
static char path[64];

static void setup(void)
{
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.npy", folder);
}

static void teardown(void)
{
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0); /* and nothing else was left in it */
}

static void put_file(const void *bytes, size_t count)
{
    FILE *f = fopen(path, "wb");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, count, f), count);
    ck_assert_int_eq(fclose(f), 0);
}

/* A version 1.0 file around a header and size bytes 0, 1, 2... of data. */
static size_t make_file(unsigned char *out, const char *header, size_t size)
{
    size_t n = strlen(header);

    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (unsigned char)n;
    out[9] = (unsigned char)(n >> 8);
    memcpy(out + 10, header, n);
    for (size_t i = 0; i < size; i++)
        out[10 + n + i] = (unsigned char)i;
    return 10 + n + size;
}

static tw_status read_header(const char *header, size_t size, npy_array *a, npy_error *error)
{
    unsigned char file[1024];

    put_file(file, make_file(file, header, size));
    return npy_load(path, a, error);
}

/* ---- what is read ---- */

START_TEST(what_is_written_is_read)
{
    static const npy_array cases[] = {
        {.kind = 'f', .bytes = 4, .rank = 4, .shape = {1, 2, 3, 4}, .size = 96},
        {.kind = 'f', .bytes = 8, .rank = 1, .shape = {5}, .size = 40},
        {.kind = 'i', .bytes = 8, .rank = 2, .shape = {3, 1}, .size = 24},
        {.kind = 'b', .bytes = 1, .rank = 1, .shape = {7}, .size = 7},
        {.kind = 'u', .bytes = 2, .rank = 0, .size = 2},
        {.kind = 'i', .bytes = 4, .rank = 3, .shape = {2, 0, 5}, .size = 0},
        {.kind = 'f', .bytes = 2, .rank = 8, .shape = {1, 1, 1, 1, 1, 1, 1, 2}, .size = 4},
    };
    unsigned char data[96];
    npy_error error;
    npy_array b;

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(7 * i + 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        npy_array a = cases[i];
        a.data = data;
        ck_assert_int_eq(npy_save(path, &a, &error), TW_OK);
        ck_assert_int_eq(npy_load(path, &b, &error), TW_OK);
        ck_assert_int_eq(b.kind, a.kind);
        ck_assert_int_eq(b.bytes, a.bytes);
        ck_assert_int_eq(b.rank, a.rank);
        ck_assert(!b.fortran);
        ck_assert_mem_eq(b.shape, a.shape, (size_t)a.rank * sizeof *a.shape);
        ck_assert_uint_eq(b.size, a.size);
        ck_assert_uint_eq((uintptr_t)b.data % NPY_ALIGN, 0);
        ck_assert_mem_eq(b.data, data, a.size);
        free(b.data);
    }
}
END_TEST

START_TEST(data_begins_aligned)
{
    npy_array a = {
        .kind = 'f', .bytes = 4, .rank = 1, .shape = {1}, .size = 4, .data = &(float){1}};
    npy_error error;
    struct stat info;

    ck_assert_int_eq(npy_save(path, &a, &error), TW_OK);
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_size % NPY_ALIGN, 4);
}
END_TEST

START_TEST(other_spellings_are_read)
{
    static const char *const headers[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n",
        "{\"shape\": (2,), \"fortran_order\": False, \"descr\": \"<f4\"}",
        "{'descr':'=f4','fortran_order':False,'shape':(2,),}",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1)}   \n",
        "{'descr': '|i1', 'fortran_order': False, 'shape': (8,)}",
        "{'descr': '>i1', 'fortran_order': False, 'shape': (2, 4,)}",
    };
    npy_error error;
    npy_array a;

    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        ck_assert_int_eq(read_header(headers[i], 8, &a, &error), TW_OK);
        ck_assert_int_eq(a.fortran, i == 3);
        ck_assert_uint_eq(a.size, 8);
        ck_assert_int_eq(((unsigned char *)a.data)[7], 7);
        free(a.data);
    }
}
END_TEST

START_TEST(versions_2_and_3_are_read)
{
    static const char header[] = "{'descr': '<i2', 'fortran_order': False, 'shape': (1,)}";
    unsigned char file[128] = "\x93NUMPY\x02\x00";
    size_t n = sizeof header - 1;
    npy_error error;
    npy_array a;

    for (unsigned char version = 2; version <= 3; version++) {
        file[6] = version;
        file[8] = (unsigned char)n;
        memcpy(file + 12, header, n);
        memcpy(file + 12 + n, "\x34\x12", 2);
        put_file(file, 12 + n + 2);
        ck_assert_int_eq(npy_load(path, &a, &error), TW_OK);
        ck_assert_int_eq(*(int16_t *)a.data, 0x1234);
        free(a.data);
    }
}
END_TEST

/* Data longer than the first read, which also takes the header. */
START_TEST(long_files_are_read_whole)
{
    enum { COUNT = 100000 };
    int32_t *data = malloc(COUNT * sizeof *data);
    npy_array a = {.kind = 'i',
                   .bytes = 4,
                   .rank = 2,
                   .shape = {COUNT / 8, 8},
                   .size = COUNT * sizeof *data,
                   .data = data},
              b;
    npy_error error;

    for (int i = 0; i < COUNT; i++)
        data[i] = i * 31;
    ck_assert_int_eq(npy_save(path, &a, &error), TW_OK);
    ck_assert_int_eq(npy_load(path, &b, &error), TW_OK);
    ck_assert_mem_eq(b.data, data, a.size);
    free(b.data);
    ck_assert_int_eq(truncate(path, 300000), 0);
    ck_assert_int_eq(npy_load(path, &b, &error), TW_E_IO);
    ck_assert_ptr_nonnull(strstr(error.text, "truncated"));
    ck_assert_ptr_null(b.data);
    free(data);
}
END_TEST

/* ---- what is refused ---- */

START_TEST(bad_headers_are_refused)
{
    static const struct {
        const char *header;
        tw_status st;
        const char *text;
    } cases[] = {
        {"", TW_E_IO, "not a dictionary"},
        {"{'descr': '<f4', 'shape': (2,)}", TW_E_IO, "is missing"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", TW_E_IO, "',' is missing"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", TW_E_IO, "boolean"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2)}", TW_E_IO, "tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", TW_E_IO, "tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}", TW_E_IO, "tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", TW_E_IO, "tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}", TW_E_IO, "unknown"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", TW_E_IO,
         "twice"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", TW_E_IO, "follows"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", TW_E_IO,
         "too large"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", TW_E_IO,
         "larger than memory"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", TW_E_UNSUPPORTED,
         "more than 8"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", TW_E_UNSUPPORTED, "big-endian"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", TW_E_UNSUPPORTED, "<c8"},
        {"{'descr': '<f3', 'fortran_order': False, 'shape': (1,)}", TW_E_UNSUPPORTED, "<f3"},
        {"{'descr': '<U12', 'fortran_order': False, 'shape': (1,)}", TW_E_UNSUPPORTED, "<U12"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", TW_E_UNSUPPORTED, "|O"},
        {"{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,)}", TW_E_UNSUPPORTED,
         "structured"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", TW_E_IO, "truncated"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", TW_E_IO, "more than"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,)}", TW_E_IO, "truncated"},
    };
    npy_error error;
    npy_array a;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(read_header(cases[i].header, 8, &a, &error) == cases[i].st, "%s: %s",
                      cases[i].header, error.text);
        ck_assert_msg(strstr(error.text, cases[i].text), "%s: %s", cases[i].header, error.text);
        ck_assert_ptr_null(a.data);
    }
}
END_TEST

START_TEST(files_that_end_early_are_refused)
{
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}";
    unsigned char file[128];
    size_t n = make_file(file, header, 8);
    npy_error error;
    npy_array a;

    for (size_t count = 0; count < n; count++) {
        put_file(file, count);
        ck_assert_int_eq(npy_load(path, &a, &error), TW_E_IO);
    }
    put_file(file, n);
    ck_assert_int_eq(npy_load(path, &a, &error), TW_OK);
    free(a.data);
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
    npy_error error;
    npy_array a;

    ck_assert_int_eq(npy_load(path, &a, &error), TW_E_IO);
    ck_assert_ptr_nonnull(strstr(error.text, "No such file"));
    ck_assert_int_eq(npy_load(folder, &a, &error), TW_E_IO);
    ck_assert_ptr_nonnull(strstr(error.text, "directory"));
    ck_assert_int_eq(npy_load("/dev/null", &a, &error), TW_E_IO);
    ck_assert_int_eq(npy_load("/dev/zero", &a, &error), TW_E_IO);
}
END_TEST

/* Every byte of a header, changed to each of some values: read or refused, never more than that.
 * What is read agrees with itself. */
START_TEST(mutated_headers_do_no_harm)
{
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 2), }\n";
    static const unsigned char to[] = {0,   ' ', '\'', '(', ')',  ',',  '0', '9',
                                       ':', '{', '}',  'f', 0x7f, 0x80, 0xff};
    unsigned char file[128], *exact;
    size_t n = make_file(file, header, 16), length;
    npy_error error;
    npy_array a;

    for (size_t at = 0; at < n - 16; at++)
        for (size_t i = 0; i < sizeof to; i++)
            for (size_t count = at + 1; count <= n; count += count < n - 16 ? 7 : 1) {
                exact = malloc(count); /* so that a sanitizer sees a read beyond it */
                memcpy(exact, file, count);
                exact[at] = to[i];
                tw_status st = npy_parse(exact, count, &a, &length, &error);
                free(exact);
                if (st)
                    continue;
                ck_assert_uint_le(length, count);
                ck_assert_int_le(a.rank, NPY_MAX_RANK);
                size_t size = (size_t)a.bytes;
                for (int d = 0; d < a.rank; d++)
                    size *= (size_t)a.shape[d];
                ck_assert_uint_eq(a.size, size);
            }
}
END_TEST

/* ---- what cannot be written ---- */

START_TEST(failed_writes_leave_nothing)
{
    npy_array a = {
        .kind = 'f', .bytes = 4, .rank = 1, .shape = {1}, .size = 4, .data = &(float){1}};
    npy_error error;

    ck_assert_int_eq(npy_save("/dev/null/a.npy", &a, &error), TW_E_IO);
    ck_assert_int_eq(npy_can_write("/dev/null/a.npy", &error), TW_E_IO);
    ck_assert_int_eq(npy_can_write(folder, &error), TW_E_IO);
    ck_assert_int_eq(npy_can_write(path, &error), TW_OK);
    ck_assert_int_eq(npy_save("/dev/full", &a, &error), TW_E_IO);
    ck_assert_ptr_nonnull(strstr(error.text, "No space"));
    ck_assert_int_eq(npy_save("/dev/null", &a, &error), TW_OK);
}
END_TEST

START_TEST(a_full_disk_keeps_the_old_file)
{
    static const struct rlimit small = {100, RLIM_INFINITY};
    npy_array a = {
        .kind = 'f', .bytes = 4, .rank = 1, .shape = {1}, .size = 4, .data = &(float){1}};
    npy_error error;
    struct rlimit before;
    struct stat info;

    put_file("old", 3);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    tw_status st = npy_save(path, &a, &error);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_eq(st, TW_E_IO);
    ck_assert_ptr_nonnull(strstr(error.text, "too large"));
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_size, 3);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("npy");
    TCase *t = tcase_create("npy");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, what_is_written_is_read);
    tcase_add_test(t, data_begins_aligned);
    tcase_add_test(t, other_spellings_are_read);
    tcase_add_test(t, versions_2_and_3_are_read);
    tcase_add_test(t, long_files_are_read_whole);
    tcase_add_test(t, bad_headers_are_refused);
    tcase_add_test(t, files_that_end_early_are_refused);
    tcase_add_test(t, what_is_no_file_is_refused);
    tcase_add_test(t, mutated_headers_do_no_harm);
    tcase_add_test(t, failed_writes_leave_nothing);
    tcase_add_test(t, a_full_disk_keeps_the_old_file);
    suite_add_tcase(s, t);
    return s;
}
