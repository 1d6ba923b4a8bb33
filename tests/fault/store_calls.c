/* Each call that SQLite makes to its file system layer fails in turn. */
#include "tests/support/store_faults.h"
#include "tests/support/runtime_fixture.h"
#include "tests/support/store_fixture.h"
#include <check.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <string.h>

static atomic_long calls, fail_at; /* 0: none */
static atomic_int fail_after;
static sqlite3_vfs *real;

static bool fails(void)
{
    long n = atomic_load(&fail_at);

    if (n == 0)
        return false;
    long at = atomic_fetch_add(&calls, 1) + 1;
    return at == n || (at > n && atomic_load(&fail_after));
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

/* ---- files ---- */

typedef struct shim {
    sqlite3_file base;
    sqlite3_file *real; /* behind this struct */
} shim;

static sqlite3_file *of(sqlite3_file *f)
{
    return ((shim *)(void *)f)->real;
}

/* name(file, parameters...) passes arguments on, or returns `error`. */
#define CALL(name, error, parameters, ...)                                                         \
    static int shim_##name parameters                                                              \
    {                                                                                              \
        return fails() ? (error) : of(f)->pMethods->x##name(__VA_ARGS__);                          \
    }

CALL(Read, SQLITE_IOERR_READ, (sqlite3_file * f, void *p, int n, sqlite3_int64 at), of(f), p, n, at)
CALL(Write, SQLITE_FULL, (sqlite3_file * f, const void *p, int n, sqlite3_int64 at), of(f), p, n,
     at)
CALL(Truncate, SQLITE_IOERR_TRUNCATE, (sqlite3_file * f, sqlite3_int64 n), of(f), n)
CALL(Sync, SQLITE_IOERR_FSYNC, (sqlite3_file * f, int flags), of(f), flags)
CALL(FileSize, SQLITE_IOERR_FSTAT, (sqlite3_file * f, sqlite3_int64 *n), of(f), n)
CALL(Lock, SQLITE_IOERR_LOCK, (sqlite3_file * f, int level), of(f), level)
CALL(CheckReservedLock, SQLITE_IOERR_CHECKRESERVEDLOCK, (sqlite3_file * f, int *out), of(f), out)
CALL(ShmMap, SQLITE_IOERR_SHMMAP,
     (sqlite3_file * f, int page, int size, int extend, void volatile **p), of(f), page, size,
     extend, p)

static int shim_ShmLock(sqlite3_file *f, int at, int n, int flags)
{
    if ((flags & SQLITE_SHM_LOCK) && fails())
        return SQLITE_IOERR_SHMLOCK;
    return of(f)->pMethods->xShmLock(of(f), at, n, flags);
}

/* What releases never fails: SQLite has no way back. */
static int shim_Unlock(sqlite3_file *f, int level)
{
    return of(f)->pMethods->xUnlock(of(f), level);
}
static int shim_Close(sqlite3_file *f)
{
    return of(f)->pMethods->xClose(of(f));
}
static int shim_FileControl(sqlite3_file *f, int op, void *arg)
{
    return of(f)->pMethods->xFileControl(of(f), op, arg);
}
static int shim_SectorSize(sqlite3_file *f)
{
    return of(f)->pMethods->xSectorSize(of(f));
}
static int shim_DeviceCharacteristics(sqlite3_file *f)
{
    return of(f)->pMethods->xDeviceCharacteristics(of(f));
}
static void shim_ShmBarrier(sqlite3_file *f)
{
    of(f)->pMethods->xShmBarrier(of(f));
}
static int shim_ShmUnmap(sqlite3_file *f, int erase)
{
    return of(f)->pMethods->xShmUnmap(of(f), erase);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = shim_Close,
    .xRead = shim_Read,
    .xWrite = shim_Write,
    .xTruncate = shim_Truncate,
    .xSync = shim_Sync,
    .xFileSize = shim_FileSize,
    .xLock = shim_Lock,
    .xUnlock = shim_Unlock,
    .xCheckReservedLock = shim_CheckReservedLock,
    .xFileControl = shim_FileControl,
    .xSectorSize = shim_SectorSize,
    .xDeviceCharacteristics = shim_DeviceCharacteristics,
    .xShmMap = shim_ShmMap,
    .xShmLock = shim_ShmLock,
    .xShmBarrier = shim_ShmBarrier,
    .xShmUnmap = shim_ShmUnmap,
};

static int shim_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out)
{
    shim *s = (shim *)(void *)f;

    (void)v;
    s->base.pMethods = NULL;
    s->real = (sqlite3_file *)(void *)(s + 1);
    if (fails())
        return SQLITE_CANTOPEN;
    int rc = real->xOpen(real, name, s->real, flags, out);
    if (s->real->pMethods)
        s->base.pMethods = &methods;
    return rc;
}

static int shim_delete(sqlite3_vfs *v, const char *name, int sync)
{
    (void)v;
    return fails() ? SQLITE_IOERR_DELETE : real->xDelete(real, name, sync);
}

static int shim_access(sqlite3_vfs *v, const char *name, int flags, int *out)
{
    (void)v;
    return fails() ? SQLITE_IOERR_ACCESS : real->xAccess(real, name, flags, out);
}

static void setup(void)
{
    static sqlite3_vfs vfs;

    fixture_setup();
    rt_setup();
    real = sqlite3_vfs_find(NULL);
    vfs = *real;
    vfs.zName = "shim";
    vfs.pNext = NULL;
    vfs.szOsFile += (int)sizeof(shim);
    vfs.xOpen = shim_open;
    vfs.xDelete = shim_delete;
    vfs.xAccess = shim_access;
    ck_assert_int_eq(sqlite3_vfs_register(&vfs, 1), SQLITE_OK);
}

static void teardown(void)
{
    rt_teardown();
    fixture_teardown();
}

START_TEST(one_call_fails)
{
    ck_assert_int_gt(store_faults(&in_turn, FAULT_ONCE), 50);
}
END_TEST

START_TEST(all_calls_fail_from_one_on)
{
    ck_assert_int_gt(store_faults(&in_turn, FAULT_FROM_THEN_ON), 50);
}
END_TEST

START_TEST(one_call_fails_while_tuning)
{
    ck_assert_int_gt(tune_faults(&in_turn, FAULT_ONCE, 9), 20);
}
END_TEST

START_TEST(all_calls_fail_from_one_on_while_tuning)
{
    ck_assert_int_gt(tune_faults(&in_turn, FAULT_FROM_THEN_ON, 9), 20);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("store_calls");
    TCase *t = tcase_create("calls");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 200);
    tcase_add_test(t, one_call_fails);
    tcase_add_test(t, all_calls_fail_from_one_on);
    tcase_add_test(t, one_call_fails_while_tuning);
    tcase_add_test(t, all_calls_fail_from_one_on_while_tuning);
    suite_add_tcase(s, t);
    return s;
}
