/* Each write, sync or change of a file's length fails in turn, as on a full or a dying disk: for
 * the store beneath SQLite, and for .npy files. This program's own functions take the place of the
 * C library's, for every library in the process. */
#include "cli/npy.h"
#include "tests/support/runtime_fixture.h"
#include "tests/support/store_fixture.h"
#include "tests/support/store_faults.h"
#include <check.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_long calls, fail_at; /* 0: none */
static atomic_int fail_after;

/* Check writes to pipes and temporary files of its own; only while armed do calls count. */
static int fails(int fd)
{
    long n = atomic_load(&fail_at);
    struct stat s;

    if (n == 0 || syscall(SYS_fstat, fd, &s) != 0 || !S_ISREG(s.st_mode))
        return 0;
    long at = atomic_fetch_add(&calls, 1) + 1;
    if (at != n && !(at > n && atomic_load(&fail_after)))
        return 0;
    errno = at % 2 ? ENOSPC : EIO;
    return 1;
}

#define REPLACES __attribute__((visibility("default")))

ssize_t write(int fd, const void *p, size_t n);
ssize_t pwrite64(int fd, const void *p, size_t n, off_t at);
int fsync(int fd);
int fdatasync(int fd);
int ftruncate64(int fd, off_t n);

REPLACES ssize_t write(int fd, const void *p, size_t n)
{
    return fails(fd) ? -1 : syscall(SYS_write, fd, p, n);
}
REPLACES ssize_t pwrite64(int fd, const void *p, size_t n, off_t at)
{
    return fails(fd) ? -1 : syscall(SYS_pwrite64, fd, p, n, at);
}
REPLACES int fsync(int fd)
{
    return fails(fd) ? -1 : (int)syscall(SYS_fsync, fd);
}
REPLACES int fdatasync(int fd)
{
    return fails(fd) ? -1 : (int)syscall(SYS_fdatasync, fd);
}
REPLACES int ftruncate64(int fd, off_t n)
{
    return fails(fd) ? -1 : (int)syscall(SYS_ftruncate, fd, n);
}

static void arm(long n, enum faults_of how)
{
    atomic_store(&calls, 0);
    atomic_store(&fail_after, how == FAULT_FROM_THEN_ON);
    atomic_store(&fail_at, n);
}

static bool disarm(void)
{
    return atomic_load(&calls) >= atomic_exchange(&fail_at, 0);
}

static const faults in_turn = {arm, disarm};

static void setup(void)
{
    fixture_setup();
    rt_setup();
}

static void teardown(void)
{
    rt_teardown();
    fixture_teardown();
}

/* ---- the store ---- */

START_TEST(the_store)
{
    ck_assert_int_gt(store_faults(&in_turn, (enum faults_of)_i), 5);
}
END_TEST

START_TEST(tuning)
{
    ck_assert_int_gt(tune_faults(&in_turn, (enum faults_of)_i, 3), 5);
}
END_TEST

/* ---- .npy files ---- */

enum { ELEMENTS = 40000 };

static void expect_file(const char *path, const float *data, long n)
{
    npy_array a = {0};
    npy_error error;

    ck_assert_msg(npy_load(path, &a, &error) == TW_OK, "call %ld: %s", n, error.text);
    ck_assert_uint_eq(a.size, ELEMENTS * sizeof(float));
    ck_assert_msg(!memcmp(a.data, data, a.size), "call %ld: a mixture", n);
    free(a.data);
}

START_TEST(an_array)
{
    static float before[ELEMENTS], after[ELEMENTS];
    npy_array a = {.kind = 'f', .bytes = 4, .rank = 1, .shape = {ELEMENTS}, .size = sizeof before};
    npy_error error;
    bool reached = true;
    long n;

    for (int i = 0; i < ELEMENTS; i++)
        after[i] = (float)i;
    for (n = 1; reached; n++) {
        a.data = before;
        ck_assert_int_eq(npy_save(fixture_path, &a, &error), TW_OK);
        a.data = after;
        arm(n, (enum faults_of)_i);
        tw_status st = npy_save(fixture_path, &a, &error);
        reached = disarm();
        ck_assert_msg(st == TW_OK || (st == TW_E_IO && error.text[0]), "%s", tw_status_name(st));
        ck_assert_msg(st != TW_OK || !reached, "call %ld: a failed write is not seen", n);
        expect_file(fixture_path, st == TW_OK ? after : before, n);
    }
    ck_assert_int_gt(n, 3);
    unlink(fixture_path);
    ck_assert_int_eq(rmdir(fixture_dir), 0); /* nothing else was left in it */
    ck_assert_int_eq(mkdir(fixture_dir, 0700), 0);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("file_writes");
    TCase *t = tcase_create("writes");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 200);
    tcase_add_loop_test(t, the_store, FAULT_ONCE, FAULT_FROM_THEN_ON + 1);
    tcase_add_loop_test(t, tuning, FAULT_ONCE, FAULT_FROM_THEN_ON + 1);
    tcase_add_loop_test(t, an_array, FAULT_ONCE, FAULT_FROM_THEN_ON + 1);
    suite_add_tcase(s, t);
    return s;
}
