#include "store/storedb.h"
#include "store/store.h"
#include "tests/support/store_fixture.h"
#include <check.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static db d;

static void make_empty(void)
{
    int fd = open(fixture_path, O_CREAT | O_RDWR, 0600);

    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void setup(void)
{
    fixture_setup();
    make_empty();
}

static enum db_kind open_as(enum db_mode mode)
{
    int rc = SQLITE_OK, version = 0;

    return db_open(&d, fixture_path, mode, 1000, &rc, &version);
}

static const char *journal_mode(void)
{
    static char mode[32];
    sqlite3_stmt *s = NULL;

    ck_assert_int_eq(sqlite3_prepare_v2(d.handle, "PRAGMA journal_mode", -1, &s, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(s), SQLITE_ROW);
    strcpy(mode, (const char *)sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
    return mode;
}

START_TEST(a_local_file_has_a_write_ahead_log)
{
    ck_assert_int_eq(open_as(DB_WRITE), DB_OURS);
    ck_assert_str_eq(journal_mode(), "wal");
    db_close(&d);
    ck_assert_int_eq(fixture_sql_int(fixture_path, "PRAGMA application_id"), STORE_APPLICATION);
    ck_assert_int_eq(fixture_sql_int(fixture_path, "PRAGMA user_version"), STORE_VERSION);
}
END_TEST

/* On network file systems, whose hosts share no memory, not even one that another host made. */
START_TEST(a_network_file_has_none)
{
    ck_assert_int_eq(open_as(DB_WRITE_NO_WAL), DB_OURS);
    ck_assert_str_eq(journal_mode(), "truncate");
    db_close(&d);
    ck_assert_int_eq(open_as(DB_WRITE), DB_OURS);
    ck_assert_str_eq(journal_mode(), "wal");
    db_close(&d);
    ck_assert_int_eq(open_as(DB_WRITE_NO_WAL), DB_OURS);
    ck_assert_str_eq(journal_mode(), "truncate");
    db_close(&d);
}
END_TEST

START_TEST(reading_makes_nothing)
{
    struct stat s;

    ck_assert_int_eq(open_as(DB_READ), DB_FOREIGN);
    ck_assert_int_eq(stat(fixture_path, &s), 0);
    ck_assert_int_eq(s.st_size, 0);
    ck_assert_ptr_null(d.handle);
}
END_TEST

static int insert_and_fail(db *base, void *arg)
{
    sqlite3_exec(base->handle, "INSERT INTO leases VALUES(1,2,3,4,'x',5)", NULL, NULL, NULL);
    return *(int *)arg;
}

START_TEST(failed_work_leaves_nothing)
{
    int rc = SQLITE_FULL;

    ck_assert_int_eq(open_as(DB_WRITE), DB_OURS);
    ck_assert_int_eq(db_transact(&d, insert_and_fail, &rc), SQLITE_FULL);
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM leases"), 0);
    rc = SQLITE_OK;
    ck_assert_int_eq(db_transact(&d, insert_and_fail, &rc), SQLITE_OK);
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM leases"), 1);
    db_close(&d);
}
END_TEST

START_TEST(a_path_is_no_uri)
{
    strcat(fixture_path, "?mode=memory&x=%41#y");
    make_empty();
    ck_assert_int_eq(open_as(DB_WRITE), DB_OURS);
    db_close(&d);
    chmod(fixture_path, 0400);
    ck_assert_int_eq(open_as(DB_READ), DB_OURS);
    db_close(&d);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("storedb");
    TCase *t = tcase_create("storedb");

    tcase_add_checked_fixture(t, setup, fixture_teardown);
    tcase_add_test(t, a_local_file_has_a_write_ahead_log);
    tcase_add_test(t, a_network_file_has_none);
    tcase_add_test(t, reading_makes_nothing);
    tcase_add_test(t, failed_work_leaves_nothing);
    tcase_add_test(t, a_path_is_no_uri);
    suite_add_tcase(s, t);
    return s;
}
