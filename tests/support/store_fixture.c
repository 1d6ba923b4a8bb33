#include "tests/support/store_fixture.h"
#include <check.h>
#include <dirent.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char fixture_dir[128], fixture_path[160];
store_warnings fixture_warnings;

void fixture_setup(void)
{
    snprintf(fixture_dir, sizeof fixture_dir, "/tmp/tw_store_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(fixture_dir));
    snprintf(fixture_path, sizeof fixture_path, "%s/store.db", fixture_dir);
    memset(&fixture_warnings, 0, sizeof fixture_warnings);
}

static void remove_tree(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;

    chmod(dir, 0700);
    while (d && (e = readdir(d)) != NULL) {
        char path[512];
        struct stat s;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (lstat(path, &s) == 0 && S_ISDIR(s.st_mode))
            remove_tree(path);
        else
            unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(dir);
}

void fixture_teardown(void)
{
    remove_tree(fixture_dir);
}

static void on_log(void *user, tw_log_level level, const char *text)
{
    store_warnings *w = user;

    ck_assert_int_eq(level, TW_LOG_WARNING);
    w->count++;
    snprintf(w->last, sizeof w->last, "%s", text);
}

store *fixture_open(const char *path)
{
    store *st = NULL;

    ck_assert_int_eq(store_open(path, on_log, &fixture_warnings, &st), TW_OK);
    ck_assert_ptr_nonnull(st);
    return st;
}

store_key *fixture_key(int64_t d, int64_t m)
{
    static store_coord problem[4], device[3];
    static store_key key;

    problem[0] = (store_coord){"T", COORD_EXACT, "f32", 0};
    problem[1] = (store_coord){"D", COORD_VALUE, NULL, d};
    problem[2] = (store_coord){"CAUSAL", COORD_LABEL, "true", 0};
    problem[3] = (store_coord){"M", COORD_BUCKET, NULL, m};
    device[0] = (store_coord){"name", COORD_LABEL, "box", 0};
    device[1] = (store_coord){"threads", COORD_VALUE, NULL, 2};
    device[2] = (store_coord){"l2", COORD_VALUE, NULL, 1 << 20};
    key = (store_key){.kernel = "k",
                      .content = {(uint64_t)d, 7},
                      .problem = problem,
                      .nproblem = 4,
                      .target = "cpu-avx2",
                      .device = device,
                      .ndevice = 3,
                      .driver = "llvm-22/1"};
    return &key;
}

static sqlite3 *open_raw(const char *path)
{
    sqlite3 *raw = NULL;

    ck_assert_int_eq(sqlite3_open(path, &raw), SQLITE_OK);
    sqlite3_busy_timeout(raw, 10000);
    return raw;
}

void fixture_sql(const char *path, const char *sql)
{
    sqlite3 *raw = open_raw(path);
    char *message = NULL;
    int rc = sqlite3_exec(raw, sql, NULL, NULL, &message);

    ck_assert_msg(rc == SQLITE_OK, "%s: %s", sql, message ? message : "");
    sqlite3_close(raw);
}

long long fixture_sql_int(const char *path, const char *sql)
{
    sqlite3 *raw = open_raw(path);
    sqlite3_stmt *s = NULL;
    long long value;

    ck_assert_int_eq(sqlite3_prepare_v2(raw, sql, -1, &s, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(s), SQLITE_ROW);
    value = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(raw);
    return value;
}
