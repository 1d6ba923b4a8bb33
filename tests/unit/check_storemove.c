/* store_export, store_import, store_prune. */
#include "compiler/base/error.h"
#include "compiler/base/mem.h"
#include "store/store.h"
#include "tests/support/store_fixture.h"
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static store *a, *b; /* b is the file beside a */
static char other_path[200], moved_path[200];
static tw_store_counts n;

static void setup(void)
{
    fixture_setup();
    snprintf(other_path, sizeof other_path, "%s/other.db", fixture_dir);
    snprintf(moved_path, sizeof moved_path, "%s/moved.db", fixture_dir);
    a = fixture_open(fixture_path);
    b = fixture_open(other_path);
}

static void teardown(void)
{
    store_close(a);
    store_close(b);
    error_clear();
    ck_assert_int_eq(mem_live(), 0);
    fixture_teardown();
}

static void put_best(store *st, int64_t d, const char *config, double seconds)
{
    ck_assert_int_eq(store_put_best(st, fixture_key(d, 1024), config, seconds, 0.0), TW_OK);
}

static void put_trial(store *st, int64_t d, const char *config, double seconds)
{
    const double sample[] = {seconds, seconds};
    const store_trial t = {.state = TW_TRIAL_OK, .config = config, .median_s = seconds,
                           .sample = sample, .nsamples = 2, .reason = ""};

    ck_assert_int_eq(store_put_trial(st, fixture_key(d, 1024), &t), TW_OK);
}

static void put_artifact(store *st, uint64_t id, const char *bytes, size_t size)
{
    ck_assert_int_eq(store_artifact_put(st, (hash128){id, 7}, fixture_key(64, 1024), bytes, size),
                     TW_OK);
}

static bool has_artifact(store *st, uint64_t id)
{
    void *bytes;
    size_t size;
    bool found = store_artifact_get(st, (hash128){id, 7}, &bytes, &size);

    if (found)
        mem_free(bytes);
    return found;
}

static store_answer ask(store *st, int64_t d)
{
    store_answer answer;

    store_best(st, fixture_key(d, 1024), NULL, NULL, &answer);
    return answer;
}

static void move(bool artifacts)
{
    unlink(moved_path);
    ck_assert_int_eq(store_export(a, moved_path, artifacts, &n), TW_OK);
    ck_assert_int_eq(store_import(b, moved_path, artifacts, &n), TW_OK);
}

#define FAILS(call, status, words)                                                                 \
    do {                                                                                           \
        ck_assert_int_eq((call), (status));                                                        \
        ck_assert_msg(strstr(error_get()->text, (words)), "%s", error_get()->text);                \
    } while (0)

/* ---- there and back ------------------------------------------------------------------------- */

START_TEST(what_is_known_moves)
{
    struct stat s;

    put_best(a, 64, "BLOCK=64", 0.5);
    put_trial(a, 64, "BLOCK=64", 0.5);
    put_trial(a, 64, "BLOCK=32", 0.75);
    put_artifact(a, 1, "machine code", 12);
    move(false);
    ck_assert_int_eq(n.configs, 1);
    ck_assert_int_eq(n.trials, 2);
    ck_assert_int_eq(n.artifacts, 0);
    ck_assert_int_eq(n.known + n.refused, 0);
    ck_assert_int_eq(ask(b, 64).layer, TW_LAYER_EXACT);
    ck_assert_str_eq(ask(b, 64).config, "BLOCK=64");
    ck_assert(!has_artifact(b, 1));
    ck_assert_int_eq(stat(moved_path, &s), 0);
    ck_assert_int_eq(s.st_mode & 0777, 0600);
    move(true);
    ck_assert_int_eq(n.configs + n.trials, 0);
    ck_assert_int_eq(n.known, 3);
    ck_assert_int_eq(n.artifacts, 1);
    ck_assert(has_artifact(b, 1));
    ck_assert_int_eq(fixture_warnings.count, 0);
}
END_TEST

START_TEST(the_faster_stays)
{
    put_best(a, 64, "BLOCK=slow", 0.9);
    put_best(b, 64, "BLOCK=fast", 0.5);
    put_best(a, 128, "BLOCK=fast", 0.5);
    put_best(b, 128, "BLOCK=slow", 0.9);
    move(false);
    ck_assert_int_eq(n.configs, 1);
    ck_assert_int_eq(n.known, 1);
    ck_assert_str_eq(ask(b, 64).config, "BLOCK=fast");
    ck_assert_str_eq(ask(b, 128).config, "BLOCK=fast");
}
END_TEST

/* ---- what an import refuses ----------------------------------------------------------------- */

START_TEST(each_value_is_checked)
{
    static const char *const harm[] = {
        "UPDATE best SET seconds=-1.0",
        "UPDATE best SET seconds=9e999",
        "UPDATE best SET seconds='quick'",
        "UPDATE best SET config=hex(zeroblob(400))",
        "UPDATE best SET config=char(27)||'[2J'",
        "UPDATE best SET time=99999999999999",
        "UPDATE best SET spread=-0.5",
        "UPDATE keys SET content='../../etc/passwd'",
        "UPDATE keys SET content='" "ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ" "'",
        "UPDATE keys SET kernel=''",
        "UPDATE keys SET device=CAST(zeroblob(3) AS TEXT)"};

    put_best(a, 64, "BLOCK=64", 0.5);
    for (size_t i = 0; i < sizeof harm / sizeof *harm; i++) {
        unlink(moved_path);
        ck_assert_int_eq(store_export(a, moved_path, false, &n), TW_OK);
        fixture_sql(moved_path, harm[i]);
        ck_assert_int_eq(store_import(b, moved_path, false, &n), TW_OK);
        ck_assert_msg(n.refused == 1 && n.configs == 0, "%s", harm[i]);
    }
    ck_assert_int_eq(ask(b, 64).layer, TW_LAYER_DEFAULT);
    ck_assert_int_eq(store_state(b), STORE_OK);
}
END_TEST

START_TEST(each_trial_is_checked)
{
    static const char *const harm[] = {
        "UPDATE trials SET state='excellent'", "UPDATE trials SET median=-1",
        "UPDATE trials SET samples=zeroblob(7)", "UPDATE trials SET registers='many'",
        "UPDATE trials SET reason=char(10)",   "UPDATE trials SET time=0"};

    put_trial(a, 64, "BLOCK=64", 0.5);
    for (size_t i = 0; i < sizeof harm / sizeof *harm; i++) {
        unlink(moved_path);
        ck_assert_int_eq(store_export(a, moved_path, false, &n), TW_OK);
        fixture_sql(moved_path, harm[i]);
        ck_assert_int_eq(store_import(b, moved_path, false, &n), TW_OK);
        ck_assert_msg(n.refused == 1 && n.trials == 0, "%s", harm[i]);
    }
}
END_TEST

START_TEST(damaged_code_is_refused)
{
    static const char *const harm[] = {
        "UPDATE artifacts SET sum='00000000000000000000000000000000'",
        "UPDATE artifacts SET size=13", "UPDATE artifacts SET packed=zeroblob(20)",
        "UPDATE artifacts SET id='x'"};

    put_artifact(a, 1, "machine code", 12);
    for (size_t i = 0; i < sizeof harm / sizeof *harm; i++) {
        unlink(moved_path);
        ck_assert_int_eq(store_export(a, moved_path, true, &n), TW_OK);
        ck_assert_int_eq(n.artifacts, 1);
        fixture_sql(moved_path, harm[i]);
        ck_assert_int_eq(store_import(b, moved_path, true, &n), TW_OK);
        ck_assert_msg(n.refused == 1 && n.artifacts == 0, "%s", harm[i]);
    }
}
END_TEST

START_TEST(code_that_is_there_is_not_replaced)
{
    put_artifact(a, 1, "other bytes!", 12);
    put_artifact(b, 1, "machine code", 12);
    move(true);
    ck_assert_int_eq(n.artifacts, 0);
    ck_assert_int_eq(n.known, 1);
    void *bytes;
    size_t size;
    ck_assert(store_artifact_get(b, (hash128){1, 7}, &bytes, &size));
    ck_assert_mem_eq(bytes, "machine code", 12);
    mem_free(bytes);
}
END_TEST

START_TEST(files_that_are_no_exports)
{
    put_best(a, 64, "BLOCK=64", 0.5);
    FAILS(store_import(b, "/nowhere/at/all", false, &n), TW_E_IO, "No such file");
    FAILS(store_import(b, fixture_dir, false, &n), TW_E_IO, "not a file");
    FAILS(store_import(b, other_path, false, &n), TW_E_ARG, "the store itself");
    FAILS(store_import(b, "Makefile-that-is-not-there", false, &n), TW_E_IO, "");
    FILE *f = fopen(moved_path, "w");
    ck_assert_ptr_nonnull(f);
    fputs("not a database, and long enough not to look like an empty file of one", f);
    fclose(f);
    FAILS(store_import(b, moved_path, false, &n), TW_E_IO, "not an exported store");
    unlink(moved_path);
    fixture_sql(moved_path, "CREATE TABLE t(x)");
    FAILS(store_import(b, moved_path, false, &n), TW_E_IO, "not an exported store");
    unlink(moved_path);
    ck_assert_int_eq(store_export(a, moved_path, false, &n), TW_OK);
    fixture_sql(moved_path, "CREATE VIEW v AS SELECT 1");
    FAILS(store_import(b, moved_path, false, &n), TW_E_IO, "not what an export writes");
    unlink(moved_path);
    ck_assert_int_eq(store_export(a, moved_path, false, &n), TW_OK);
    fixture_sql(moved_path, "PRAGMA user_version=99");
    FAILS(store_import(b, moved_path, false, &n), TW_E_IO, "version is 99");
    ck_assert_int_eq(store_state(b), STORE_OK);
    put_best(b, 64, "BLOCK=64", 0.5);
}
END_TEST

START_TEST(code_of_others_is_not_taken)
{
    put_artifact(a, 1, "machine code", 12);
    ck_assert_int_eq(store_export(a, moved_path, true, &n), TW_OK);
    chmod(moved_path, 0666);
    FAILS(store_import(b, moved_path, true, &n), TW_E_IO, "others can write");
    ck_assert(!has_artifact(b, 1));
    ck_assert_int_eq(store_import(b, moved_path, false, &n), TW_OK);
}
END_TEST

START_TEST(damaged_pages_change_nothing)
{
    for (int64_t d = 1; d < 200; d++)
        put_best(a, d, "BLOCK=64", 0.5);
    ck_assert_int_eq(store_export(a, moved_path, false, &n), TW_OK);
    struct stat s;
    ck_assert_int_eq(stat(moved_path, &s), 0);
    for (off_t at = 4096; at + 4096 <= s.st_size; at += 4096) {
        FILE *f = fopen(moved_path, "r+");
        ck_assert_ptr_nonnull(f);
        fseek(f, at, SEEK_SET);
        for (int i = 0; i < 64; i++)
            fputc(0xa5 ^ i, f);
        fclose(f);
        ck_assert_int_eq(store_import(b, moved_path, false, &n), TW_E_IO);
    }
    ck_assert_int_eq(fixture_sql_int(other_path, "SELECT count(*) FROM best"), 0);
    ck_assert_int_eq(store_state(b), STORE_OK);
}
END_TEST

/* ---- what an export refuses ----------------------------------------------------------------- */

START_TEST(an_export_replaces_no_file)
{
    FILE *f = fopen(moved_path, "w");

    ck_assert_ptr_nonnull(f);
    fclose(f);
    FAILS(store_export(a, moved_path, false, &n), TW_E_IO, "it exists");
    ck_assert_int_eq(access(moved_path, F_OK), 0);
    unlink(moved_path);
    ck_assert_int_eq(store_export(a, moved_path, false, &n), TW_OK);
    char journal[400];
    snprintf(journal, sizeof journal, "%s-journal", moved_path);
    ck_assert_int_ne(access(journal, F_OK), 0); /* one file, and nothing beside it */
    FAILS(store_export(a, "/nowhere/at/all.db", false, &n), TW_E_IO, "No such file");
    FAILS(store_export(a, "/dev/full", false, &n), TW_E_IO, "");
    ck_assert_int_eq(store_state(a), STORE_OK);
}
END_TEST

START_TEST(without_a_file_nothing_moves)
{
    store *none = fixture_open(NULL);

    FAILS(store_export(none, moved_path, false, &n), TW_E_STORE, "no store");
    ck_assert_int_ne(access(moved_path, F_OK), 0);
    ck_assert_int_eq(store_export(a, moved_path, false, &n), TW_OK);
    FAILS(store_import(none, moved_path, false, &n), TW_E_STORE, "no store");
    FAILS(store_prune(none, &(store_limits){0}, &n), TW_E_STORE, "no store");
    store_close(none);
}
END_TEST

/* ---- pruning -------------------------------------------------------------------------------- */

START_TEST(other_versions_go)
{
    put_artifact(a, 1, "machine code", 12);
    put_best(a, 64, "BLOCK=64", 0.5);
    ck_assert_int_eq(store_prune(a, &(store_limits){.driver = fixture_key(64, 1)->driver}, &n),
                     TW_OK);
    ck_assert_int_eq(n.artifacts, 0);
    ck_assert(has_artifact(a, 1));
    ck_assert_int_eq(store_prune(a, &(store_limits){.driver = "another"}, &n), TW_OK);
    ck_assert_int_eq(n.artifacts, 1);
    ck_assert(!has_artifact(a, 1));
    ck_assert_int_eq(ask(a, 64).layer, TW_LAYER_EXACT); /* an update forgets no configuration */
}
END_TEST

START_TEST(the_old_goes)
{
    put_best(a, 64, "BLOCK=64", 0.5);
    put_trial(a, 64, "BLOCK=64", 0.5);
    put_artifact(a, 1, "machine code", 12);
    put_best(a, 128, "BLOCK=64", 0.5);
    fixture_sql(fixture_path, "UPDATE best SET time=time-7200000 WHERE id=1;"
                              "UPDATE trials SET time=time-7200000;"
                              "UPDATE artifacts SET time=time-7200000");
    ck_assert_int_eq(store_prune(a, &(store_limits){.older_ms = 3 * 3600000}, &n), TW_OK);
    ck_assert_int_eq(n.configs + n.trials + n.artifacts, 0);
    ck_assert_int_eq(store_prune(a, &(store_limits){.older_ms = 3600000}, &n), TW_OK);
    ck_assert_int_eq(n.configs, 1);
    ck_assert_int_eq(n.trials, 1);
    ck_assert_int_eq(n.artifacts, 1);
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM keys"), 1);
    ck_assert_int_eq(ask(a, 128).layer, TW_LAYER_EXACT);
}
END_TEST

START_TEST(too_much_goes_oldest_first)
{
    static char noise[100000];
    uint32_t x = 1;
    struct stat s;

    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)((x = x * 1664525 + 1013904223) >> 24);
    put_best(a, 64, "BLOCK=64", 0.5);
    for (uint64_t id = 0; id < 5; id++)
        put_artifact(a, id, noise, sizeof noise);
    fixture_sql(fixture_path, "UPDATE artifacts SET time=1000+rowid");
    ck_assert_int_eq(store_prune(a, &(store_limits){.max_bytes = 300000}, &n), TW_OK);
    ck_assert_int_ge(n.artifacts, 2);
    ck_assert(!has_artifact(a, 0));
    ck_assert(has_artifact(a, 4));
    ck_assert_int_eq(stat(fixture_path, &s), 0);
    ck_assert_int_le(s.st_size, 300000);
    for (int i = 0; i < 500; i++)
        put_trial(a, 64, "BLOCK=64", 0.5);
    ck_assert_int_eq(store_prune(a, &(store_limits){.max_bytes = 65536}, &n), TW_OK);
    ck_assert_int_gt(n.trials, 0);
    ck_assert_int_eq(ask(a, 64).layer, TW_LAYER_EXACT); /* configurations stay */
}
END_TEST

START_TEST(a_lease_keeps_its_key)
{
    store_lease lease;

    ck_assert_int_eq(store_lease_try(a, fixture_key(64, 1024), &lease, NULL), LEASE_TAKEN);
    ck_assert_int_eq(store_prune(a, &(store_limits){.older_ms = 1}, &n), TW_OK);
    ck_assert(store_lease_renew(a, &lease));
    put_best(a, 64, "BLOCK=64", 0.5);
    store_lease_release(a, &lease);
    ck_assert_int_eq(ask(a, 64).layer, TW_LAYER_EXACT);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("storemove");
    TCase *tc = tcase_create("storemove");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, what_is_known_moves);
    tcase_add_test(tc, the_faster_stays);
    tcase_add_test(tc, each_value_is_checked);
    tcase_add_test(tc, each_trial_is_checked);
    tcase_add_test(tc, damaged_code_is_refused);
    tcase_add_test(tc, code_that_is_there_is_not_replaced);
    tcase_add_test(tc, files_that_are_no_exports);
    tcase_add_test(tc, code_of_others_is_not_taken);
    tcase_add_test(tc, damaged_pages_change_nothing);
    tcase_add_test(tc, an_export_replaces_no_file);
    tcase_add_test(tc, without_a_file_nothing_moves);
    tcase_add_test(tc, other_versions_go);
    tcase_add_test(tc, the_old_goes);
    tcase_add_test(tc, too_much_goes_oldest_first);
    tcase_add_test(tc, a_lease_keeps_its_key);
    suite_add_tcase(s, tc);
    return s;
}
