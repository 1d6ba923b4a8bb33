/* What is wrong with a file or its directory costs persistence and one warning, nothing else; what
 * is not ours is left byte for byte as it was. */
#include "compiler/base/mem.h"
#include "store/storefile.h"
#include "tests/support/child.h"
#include "tests/support/store_fixture.h"
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOBODY 65534

static void use_in_memory(store *st)
{
    store_answer a;

    ck_assert_int_eq(store_put_best(st, fixture_key(64, 1), "B=1", 1.0, 0.0), TW_E_STORE);
    store_best(st, fixture_key(64, 1), NULL, NULL, &a);
    ck_assert_int_eq(a.layer, TW_LAYER_EXACT);
    ck_assert_str_eq(a.config, "B=1");
}

/* Opens path: works in memory, with one warning that names path and says word. */
static void expect_memory(const char *path, const char *word)
{
    store *st = fixture_open(path);

    ck_assert_int_eq(store_state(st), STORE_MEMORY);
    use_in_memory(st);
    use_in_memory(st);
    ck_assert_int_eq(fixture_warnings.count, 1);
    ck_assert_msg(strstr(fixture_warnings.last, path) && strstr(fixture_warnings.last, word),
                  "no '%s' in: %s", word, fixture_warnings.last);
    ck_assert_str_eq(store_why(st), fixture_warnings.last);
    store_close(st);
    ck_assert_int_eq(mem_live(), 0);
    fixture_warnings.count = 0;
}

static void fill_store(int rows)
{
    store *st = fixture_open(fixture_path);

    for (int i = 0; i < rows; i++)
        ck_assert_int_eq(store_put_best(st, fixture_key(16 + i, 1), "B=1", 1.0, 0.0), TW_OK);
    store_close(st);
}

static char *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    char *bytes = malloc(1 << 22);

    ck_assert_ptr_nonnull(f);
    *size = fread(bytes, 1, 1 << 22, f);
    fclose(f);
    return bytes;
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
    fclose(f);
    ck_assert_int_eq(chmod(path, 0600), 0);
}

/* As expect_memory, and the file does not change. */
static void expect_left_alone(const char *word)
{
    size_t before_size, after_size;
    char *before = read_file(fixture_path, &before_size);

    expect_memory(fixture_path, word);
    char *after = read_file(fixture_path, &after_size);
    ck_assert_uint_eq(before_size, after_size);
    ck_assert_mem_eq(before, after, before_size);
    free(before);
    free(after);
}

START_TEST(another_programs_database_is_left_alone)
{
    fixture_sql(fixture_path, "CREATE TABLE theirs(x); INSERT INTO theirs VALUES(1)");
    chmod(fixture_path, 0600);
    expect_left_alone("another program's");
    fixture_sql(fixture_path, "DROP TABLE theirs; PRAGMA application_id=1234");
    expect_left_alone("another program's");
}
END_TEST

START_TEST(another_version_is_left_alone)
{
    fill_store(3);
    fixture_sql(fixture_path, "PRAGMA user_version=7");
    expect_left_alone("update Tilewright");
    fixture_sql(fixture_path, "PRAGMA user_version=0");
    expect_left_alone("move it away");
}
END_TEST

START_TEST(tables_that_are_not_ours_are_left_alone)
{
    fill_store(3);
    fixture_sql(fixture_path, "ALTER TABLE trials RENAME COLUMN median TO middle");
    expect_left_alone("its tables");
}
END_TEST

START_TEST(no_database_at_all)
{
    static const char text[] = "This is a text file, longer than the header of a database would be,"
                               " and somebody wants to keep it as it is: all of its lines.\n";

    for (size_t n = 1; n < sizeof text; n = n < 8 ? n + 1 : 2 * n) {
        write_file(fixture_path, text, n);
        expect_left_alone("it is not a store");
    }
    write_file(fixture_path, text, sizeof text - 1);
    expect_left_alone("it is not a store");
}
END_TEST

/* Also of one whole page, which SQLite looks at itself. */
START_TEST(a_page_that_is_none)
{
    char page[513];

    memset(page, ' ', sizeof page);
    for (size_t n = 511; n <= 513; n++) {
        write_file(fixture_path, page, n);
        expect_left_alone("it is not a store");
    }
}
END_TEST

START_TEST(a_damaged_header)
{
    size_t size;

    fill_store(3);
    char *bytes = read_file(fixture_path, &size);
    memset(bytes, 0xff, 40);
    write_file(fixture_path, bytes, size);
    free(bytes);
    expect_left_alone("it is not a store");
}
END_TEST

START_TEST(a_truncated_file)
{
    size_t size;

    fill_store(200);
    char *bytes = read_file(fixture_path, &size);
    ck_assert_uint_gt(size, 20000);
    write_file(fixture_path, bytes, size / 2);
    expect_left_alone("damaged");
    write_file(fixture_path, bytes, 60);
    expect_left_alone("left as it is");
    free(bytes);
}
END_TEST

/* Damage that shows only in use: that use misses, the rest of the process goes on in memory. */
START_TEST(pages_damaged_in_the_middle)
{
    size_t size;
    store_answer a;

    fill_store(200);
    char *bytes = read_file(fixture_path, &size);
    memset(bytes + 8192, 0xee, size - 8192);
    write_file(fixture_path, bytes, size);
    free(bytes);
    store *st = fixture_open(fixture_path);
    store_best(st, fixture_key(20, 1), NULL, NULL, &a);
    ck_assert_int_eq(a.layer, TW_LAYER_DEFAULT);
    use_in_memory(st);
    ck_assert_int_eq(store_state(st), STORE_MEMORY);
    ck_assert_int_eq(fixture_warnings.count, 1);
    ck_assert_ptr_nonnull(strstr(fixture_warnings.last, "damaged"));
    store_close(st);
}
END_TEST

START_TEST(an_empty_file_is_a_new_store)
{
    write_file(fixture_path, "", 0);
    fill_store(1);
    ck_assert_int_eq(fixture_warnings.count, 0);
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM best"), 1);
}
END_TEST

/* ---- who may touch it ----------------------------------------------------------------------- */

START_TEST(paths_that_are_none)
{
    char path[8192], file[256];

    expect_memory(fixture_dir, "not a regular file");
    snprintf(path, sizeof path, "%s/", fixture_dir);
    expect_memory(path, "add a file name");
    snprintf(file, sizeof file, "%s/file", fixture_dir);
    write_file(file, "x", 1);
    snprintf(path, sizeof path, "%s/sub/store.db", file);
    expect_memory(path, "cannot be made");
    snprintf(path, sizeof path, "%s/store.db", file);
    expect_memory(path, "ot a directory");
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    store *st = fixture_open(path);
    ck_assert_int_eq(store_state(st), STORE_MEMORY);
    ck_assert_int_eq(fixture_warnings.count, 1);
    store_close(st);
}
END_TEST

START_TEST(a_symbolic_link_is_refused)
{
    char target[256];

    snprintf(target, sizeof target, "%s/real.db", fixture_dir);
    ck_assert_int_eq(symlink(target, fixture_path), 0);
    expect_memory(fixture_path, "symbolic link");
    ck_assert_int_ne(access(target, F_OK), 0);
    fill_store(0);
    fixture_warnings.count = 0;
    snprintf(target, sizeof target, "%s-wal", fixture_path);
    unlink(fixture_path);
    fill_store(1);
    ck_assert_int_eq(symlink("/etc/passwd", target), 0);
    expect_memory(fixture_path, "-wal beside it");
}
END_TEST

START_TEST(a_link_to_the_directory_is_followed)
{
    char link_path[256], path[300];

    snprintf(link_path, sizeof link_path, "%s/link", fixture_dir);
    ck_assert_int_eq(symlink(fixture_dir, link_path), 0);
    snprintf(path, sizeof path, "%s/store.db", link_path);
    store *st = fixture_open(path);
    ck_assert_int_eq(store_state(st), STORE_OK);
    store_close(st);
    unlink(link_path);
}
END_TEST

START_TEST(files_that_others_may_write_are_refused)
{
    fill_store(1);
    chmod(fixture_path, 0620);
    expect_memory(fixture_path, "others can write to it");
    chmod(fixture_path, 0602);
    expect_memory(fixture_path, "chmod 600");
    chmod(fixture_path, 0600);
    chmod(fixture_dir, 0702);
    expect_memory(fixture_path, "chmod go-w");
    chmod(fixture_dir, 01777); /* as /tmp: only owners can replace files */
    store *st = fixture_open(fixture_path);
    ck_assert_int_eq(store_state(st), STORE_OK);
    store_close(st);
}
END_TEST

START_TEST(files_of_others_are_refused)
{
    char path[256];

    if (geteuid() != 0)
        return; /* only root can give a file away */
    fill_store(1);
    ck_assert_int_eq(chown(fixture_path, NOBODY, NOBODY), 0);
    expect_memory(fixture_path, "belongs to user 65534");
    ck_assert_int_eq(chown(fixture_path, 0, 0), 0);
    ck_assert_int_eq(chown(fixture_dir, NOBODY, NOBODY), 0);
    expect_memory(fixture_path, "directory belongs to user 65534");
    ck_assert_int_eq(chown(fixture_dir, 0, 0), 0);
    snprintf(path, sizeof path, "%s-journal", fixture_path);
    write_file(path, "", 0);
    ck_assert_int_eq(chown(path, NOBODY, NOBODY), 0);
    expect_memory(fixture_path, "-journal beside it");
}
END_TEST

/* ---- read-only ------------------------------------------------------------------------------ */

/* Runs without root's rights; the store is root's own or the user's. */
static int reads_only(void *arg)
{
    store_answer a;
    int *rows = arg;

    if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
        return 10;
    store *st = fixture_open(fixture_path);
    if (store_state(st) != STORE_READ_ONLY || fixture_warnings.count != 1)
        return 11;
    for (int i = 0; i < *rows; i++) {
        store_best(st, fixture_key(16 + i, 1), NULL, NULL, &a);
        if (a.layer != TW_LAYER_EXACT)
            return 12;
    }
    if (store_put_best(st, fixture_key(16, 1), "B=2", 2.0, 0.0) != TW_E_STORE ||
        store_artifact_put(st, (hash128){1, 1}, NULL, "code", 4) != TW_E_STORE)
        return 13;
    store_best(st, fixture_key(16, 1), NULL, NULL, &a); /* what was learned here wins here */
    if (strcmp(a.config, "B=2") != 0 || fixture_warnings.count != 1)
        return 14;
    if (store_clear(st, NULL, NULL) != TW_E_STORE)
        return 15;
    store_close(st);
    return 0;
}

static int closed_directory(void *arg)
{
    (void)arg;
    if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
        return 10;
    store *st = fixture_open(fixture_path);
    return store_state(st) == STORE_MEMORY && fixture_warnings.count == 1 ? 0 : 11;
}

START_TEST(a_read_only_file_is_read)
{
    int rows = 5;

    fill_store(rows);
    chmod(fixture_dir, 0755);
    chmod(fixture_path, 0444);
    ck_assert_int_eq(child_run(reads_only, &rows), 0);
}
END_TEST

/* A log that its last user left behind (killed) cannot be replayed there: what is in the file
 * itself is read, without an error. */
START_TEST(a_read_only_directory_is_read)
{
    int rows = 5;

    fill_store(rows);
    chmod(fixture_path, 0444);
    chmod(fixture_dir, 0555);
    ck_assert_int_eq(child_run(reads_only, &rows), 0);
    chmod(fixture_dir, 0700);
}
END_TEST

START_TEST(a_closed_directory_is_no_store)
{
    char before[160];

    chmod(fixture_dir, 0711);
    memcpy(before, fixture_path, sizeof before);
    ck_assert_int_eq(child_run(closed_directory, NULL), 0);
    snprintf(fixture_path, sizeof fixture_path, "%s/new/store.db", fixture_dir);
    ck_assert_int_eq(child_run(closed_directory, NULL), 0);
    memcpy(fixture_path, before, sizeof before);
}
END_TEST

START_TEST(network_file_systems_are_known)
{
    ck_assert(store_file_is_network(0x6969));           /* NFS */
    ck_assert(store_file_is_network((long)0xff534d42)); /* CIFS */
    ck_assert(!store_file_is_network(0xef53));          /* ext4 */
    ck_assert(!store_file_is_network(0x01021994));      /* tmpfs */
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("store_files");
    TCase *t = tcase_create("files");

    tcase_add_checked_fixture(t, fixture_setup, fixture_teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, another_programs_database_is_left_alone);
    tcase_add_test(t, another_version_is_left_alone);
    tcase_add_test(t, tables_that_are_not_ours_are_left_alone);
    tcase_add_test(t, no_database_at_all);
    tcase_add_test(t, a_page_that_is_none);
    tcase_add_test(t, a_damaged_header);
    tcase_add_test(t, a_truncated_file);
    tcase_add_test(t, pages_damaged_in_the_middle);
    tcase_add_test(t, an_empty_file_is_a_new_store);
    tcase_add_test(t, paths_that_are_none);
    tcase_add_test(t, a_symbolic_link_is_refused);
    tcase_add_test(t, a_link_to_the_directory_is_followed);
    tcase_add_test(t, files_that_others_may_write_are_refused);
    tcase_add_test(t, files_of_others_are_refused);
    tcase_add_test(t, a_read_only_file_is_read);
    tcase_add_test(t, a_read_only_directory_is_read);
    tcase_add_test(t, a_closed_directory_is_no_store);
    tcase_add_test(t, network_file_systems_are_known);
    suite_add_tcase(s, t);
    return s;
}
