/* Several processes on one store: locks, full disks, kills, forks. */
#include "compiler/base/mem.h"
#include "tests/support/child.h"
#include "tests/support/patience.h"
#include "tests/support/store_fixture.h"
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void nap_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

static void check_integrity(void)
{
    fixture_sql(fixture_path, "PRAGMA wal_checkpoint");
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM pragma_integrity_check "
                                                   "WHERE integrity_check='ok'"),
                     1);
}

static tw_status put_one(store *st, int64_t d)
{
    store_trial t = {.state = TW_TRIAL_OK, .config = "B=1", .median_s = 1.0};

    return store_put_trial(st, fixture_key(d, 1), &t);
}

/* ---- together ------------------------------------------------------------------------------- */

#define STARTERS 32
#define ROWS 20

static int *go; /* shared between processes */

static int start_together(void *arg)
{
    int64_t id = *(int64_t *)arg;

    while (!__atomic_load_n(go, __ATOMIC_ACQUIRE))
        sched_yield();
    store *st = fixture_open(fixture_path);
    if (store_state(st) != STORE_OK || fixture_warnings.count) {
        fprintf(stderr, "%s\n", fixture_warnings.last);
        return 1;
    }
    for (int i = 0; i < ROWS; i++)
        if (put_one(st, id) != TW_OK)
            return 2;
    if (store_artifact_put(st, (hash128){7, 7}, NULL, "the same code", 13) != TW_OK)
        return 3;
    store_close(st);
    return 0;
}

START_TEST(processes_that_start_together_make_one_store)
{
    pid_t pid[STARTERS];

    go = mmap(NULL, sizeof *go, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int64_t i = 0; i < STARTERS; i++)
        pid[i] = child_start(start_together, &i);
    __atomic_store_n(go, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < STARTERS; i++)
        ck_assert_int_eq(child_end(pid[i]), 0);
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM trials"), STARTERS * ROWS);
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM keys"), STARTERS);
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM artifacts"), 1);
    check_integrity();
}
END_TEST

/* ---- killed --------------------------------------------------------------------------------- */

static int *committed;

static int write_for_ever(void *arg)
{
    static char code[200000];
    store *st = fixture_open(fixture_path);

    for (size_t i = 0; i < sizeof code; i++)
        code[i] = (char)(i * 2654435761u >> 11);
    for (int i = 0;; i++) {
        if (put_one(st, *(int64_t *)arg) != TW_OK)
            return 1;
        __atomic_fetch_add(committed, 1, __ATOMIC_SEQ_CST);
        code[0] = (char)i;
        (void)store_artifact_put(st, (hash128){(uint64_t)i % 5, 1}, NULL, code, sizeof code);
    }
}

START_TEST(what_was_committed_survives_kills)
{
    int64_t key = 64;

    committed =
        mmap(NULL, sizeof *committed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    srand(12);
    for (int round = 0; round < 40 || (*committed <= 40 && round < 400); round++) {
        pid_t pid = child_start(write_for_ever, &key);
        nap_ms(5 + rand() % 60);
        kill(pid, SIGKILL);
        ck_assert_int_eq(child_end(pid), 128 + SIGKILL);
        store *st = fixture_open(fixture_path);
        ck_assert_int_eq(store_state(st), STORE_OK);
        store_close(st);
        /* The last one may have been written and not yet counted. */
        long long rows = fixture_sql_int(fixture_path, "SELECT count(*) FROM trials");
        ck_assert_int_ge(rows, *committed);
        ck_assert_int_le(rows, *committed + round + 1);
        *committed = (int)rows;
    }
    ck_assert_int_gt(*committed, 40);
    ck_assert_int_eq(fixture_warnings.count, 0);
    check_integrity();
    for (uint64_t i = 0; i < 5; i++) {
        void *bytes = NULL;
        size_t size = 0;
        store *st = fixture_open(fixture_path);
        if (store_artifact_get(st, (hash128){i, 1}, &bytes, &size))
            ck_assert_uint_eq(size, 200000);
        mem_free(bytes);
        store_close(st);
    }
    ck_assert_int_eq(fixture_warnings.count, 0);
}
END_TEST

static int take_lease_and_wait(void *arg)
{
    store_lease lease;
    store *st = fixture_open(fixture_path);

    if (store_lease_try(st, fixture_key(64, 1), &lease, NULL) != LEASE_TAKEN)
        return 1;
    __atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
    for (;;)
        nap_ms(1000);
}

START_TEST(a_killed_process_holds_no_lease)
{
    store_lease lease;
    int64_t holder = 0;

    go = mmap(NULL, sizeof *go, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = child_start(take_lease_and_wait, go);
    while (!__atomic_load_n(go, __ATOMIC_ACQUIRE))
        nap_ms(1);
    store *st = fixture_open(fixture_path);
    ck_assert_int_eq(store_lease_try(st, fixture_key(64, 1), &lease, &holder), LEASE_HELD);
    ck_assert_int_eq(holder, pid);
    kill(pid, SIGKILL);
    siginfo_t ended;
    waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT); /* still a zombie: dead all the same */
    ck_assert_int_eq(store_lease_try(st, fixture_key(64, 1), &lease, &holder), LEASE_TAKEN);
    store_lease_release(st, &lease);
    child_end(pid);
    store_close(st);
}
END_TEST

/* ---- locked --------------------------------------------------------------------------------- */

static int lock_whole_file(void *arg)
{
    sqlite3 *raw;
    int ms = *(int *)arg;

    if (sqlite3_open(fixture_path, &raw) != SQLITE_OK ||
        sqlite3_exec(raw, "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE", NULL, NULL, NULL) !=
            SQLITE_OK)
        return 1;
    __atomic_store_n(go, 1, __ATOMIC_RELEASE);
    nap_ms(ms);
    sqlite3_exec(raw, "COMMIT", NULL, NULL, NULL);
    sqlite3_close(raw);
    return 0;
}

static pid_t spawn_locker(int ms)
{
    go = mmap(NULL, sizeof *go, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = child_start(lock_whole_file, &ms);
    while (!__atomic_load_n(go, __ATOMIC_ACQUIRE))
        nap_ms(1);
    return pid;
}

START_TEST(a_short_lock_is_waited_for)
{
    store *st = fixture_open(fixture_path);

    store_close(st);
    pid_t pid = spawn_locker(300);
    st = fixture_open(fixture_path);
    ck_assert_int_eq(store_state(st), STORE_OK);
    ck_assert_int_eq(put_one(st, 64), TW_OK);
    ck_assert_int_eq(fixture_warnings.count, 0);
    store_close(st);
    ck_assert_int_eq(child_end(pid), 0);
}
END_TEST

START_TEST(a_long_lock_costs_one_bounded_wait)
{
    store *st = fixture_open(fixture_path);
    store_answer a;
    double start;

    store_close(st);
    pid_t pid = spawn_locker(600000);
    start = now_s();
    st = fixture_open(fixture_path);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(store_put_best(st, fixture_key(64, 1), "B=1", 1.0, 0.0), TW_E_STORE);
    store_best(st, fixture_key(64, 1), NULL, NULL, &a);
    ck_assert_int_eq(a.layer, TW_LAYER_EXACT);
    ck_assert_double_lt(now_s() - start, STORE_WAIT_MS * 1e-3 + 3.0 * PATIENCE);
    ck_assert_int_eq(fixture_warnings.count, 1);
    ck_assert_ptr_nonnull(strstr(fixture_warnings.last, "another process"));
    kill(pid, SIGKILL);
    child_end(pid);
    nap_ms(600); /* and when the lock is gone, the store is back */
    ck_assert_int_eq(put_one(st, 64), TW_OK);
    ck_assert_int_eq(store_state(st), STORE_OK);
    store_close(st);
}
END_TEST

/* The lock comes when the store is already open. */
START_TEST(a_writer_that_never_ends_costs_one_bounded_wait)
{
    store *st = fixture_open(fixture_path);
    sqlite3 *raw;
    double start = now_s();

    ck_assert_int_eq(sqlite3_open(fixture_path, &raw), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(raw, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(put_one(st, 64), TW_E_STORE);
    ck_assert_double_lt(now_s() - start, STORE_WAIT_MS * 1e-3 + 3.0 * PATIENCE);
    ck_assert_int_eq(fixture_warnings.count, 1);
    sqlite3_exec(raw, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(raw);
    ck_assert_int_eq(put_one(st, 64), TW_OK);
    store_close(st);
}
END_TEST

/* ---- full ----------------------------------------------------------------------------------- */

static volatile sig_atomic_t raised;

static void note_signal(int number)
{
    raised = number;
}

/* The application's own signals come as before. */
static bool raises_its_own(void)
{
    signal(SIGXFSZ, note_signal);
    raise(SIGXFSZ);
    return raised == SIGXFSZ;
}

static int write_with_small_files(void *arg)
{
    struct rlimit limit = {(rlim_t) * (long *)arg, RLIM_INFINITY};
    static char code[300000];
    store *st;
    store_answer a;

    for (size_t i = 0; i < sizeof code; i++)
        code[i] = (char)(i * 2654435761u >> 13);
    signal(SIGXFSZ, SIG_DFL); /* it would end the process */
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 1;
    st = fixture_open(fixture_path);
    for (int i = 0; i < 10; i++)
        (void)store_artifact_put(st, (hash128){(uint64_t)i, 3}, NULL, code, sizeof code);
    (void)store_put_best(st, fixture_key(64, 1), "B=1", 1.0, 0.0);
    store_best(st, fixture_key(64, 1), NULL, NULL, &a);
    if (a.layer != TW_LAYER_EXACT)
        return 2;
    if (fixture_warnings.count != 1)
        return 3;
    limit.rlim_cur = RLIM_INFINITY; /* space again */
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 4;
    nap_ms(600);
    if (store_put_best(st, fixture_key(128, 1), "B=1", 1.0, 0.0) != TW_OK)
        return 5;
    if (fixture_warnings.count != 1)
        return 6;
    store_close(st);
    sigset_t set;
    if (sigpending(&set) != 0 || sigismember(&set, SIGXFSZ) || sigprocmask(0, NULL, &set) != 0 ||
        sigismember(&set, SIGXFSZ))
        return 7;
    return raises_its_own() ? 0 : 8;
}

START_TEST(files_that_cannot_grow_cost_one_warning)
{
    static const long limit[] = {0, 1000, 5000, 40000, 100000, 400000};

    for (size_t i = 0; i < sizeof limit / sizeof limit[0]; i++) {
        unlink(fixture_path);
        ck_assert_int_eq(child_run(write_with_small_files, (void *)&limit[i]), 0);
        check_integrity();
    }
}
END_TEST

static int write_to_full_disk(void *arg)
{
    char filler[200];
    static char block[4096];
    store_answer a;

    (void)arg;
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", fixture_dir, "tmpfs", 0, "size=64k,mode=700") != 0)
        return 77;
    snprintf(filler, sizeof filler, "%s/filler", fixture_dir);
    FILE *f = fopen(filler, "wb");
    while (fwrite(block, 1, sizeof block, f) == sizeof block && fflush(f) == 0)
        continue;
    fclose(f);
    store *st = fixture_open(fixture_path);
    if (store_put_best(st, fixture_key(64, 1), "B=1", 1.0, 0.0) != TW_E_STORE)
        return 1;
    store_best(st, fixture_key(64, 1), NULL, NULL, &a);
    if (a.layer != TW_LAYER_EXACT || fixture_warnings.count != 1)
        return 2;
    unlink(filler);
    mount(NULL, fixture_dir, NULL, MS_REMOUNT, "size=8m");
    nap_ms(600);
    if (store_put_best(st, fixture_key(64, 1), "B=1", 1.0, 0.0) != TW_OK)
        return 3;
    store_close(st);
    return fixture_warnings.count == 1 ? 0 : 4;
}

START_TEST(a_full_disk_costs_one_warning)
{
    int code = child_run(write_to_full_disk, NULL);

    ck_assert_msg(code == 0 || code == 77, "exit %d", code); /* 77: may not mount here */
}
END_TEST

/* ---- forked --------------------------------------------------------------------------------- */

static int use_inherited(void *arg)
{
    store *st = arg;
    store_answer a;
    store_lease lease;

    store_best(st, fixture_key(64, 1), NULL, NULL, &a);
    if (a.layer != TW_LAYER_DEFAULT || put_one(st, 64) != TW_E_STORE)
        return 1;
    (void)store_lease_try(st, fixture_key(64, 1), &lease, NULL);
    store *own = fixture_open(fixture_path); /* would share locks with nobody: kept off the file */
    if (store_state(own) != STORE_MEMORY || !strstr(fixture_warnings.last, "fork"))
        return 2;
    if (store_put_best(own, fixture_key(64, 1), "B=9", 1.0, 0.0) != TW_E_STORE)
        return 3;
    store_close(own);
    store_close(st);
    return 0;
}

START_TEST(children_leave_the_parents_store_alone)
{
    store *st = fixture_open(fixture_path);
    store_answer a;
    pid_t pid[4];

    ck_assert_int_eq(store_put_best(st, fixture_key(64, 1), "B=1", 1.0, 0.0), TW_OK);
    for (int i = 0; i < 4; i++)
        pid[i] = child_start(use_inherited, st);
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(put_one(st, 64), TW_OK);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(child_end(pid[i]), 0);
    ck_assert_int_eq(put_one(st, 64), TW_OK);
    store_best(st, fixture_key(64, 1), NULL, NULL, &a);
    ck_assert_str_eq(a.config, "B=1");
    store_close(st);
    ck_assert_int_eq(fixture_sql_int(fixture_path, "SELECT count(*) FROM trials"), 51);
    check_integrity();
}
END_TEST

static int open_own(void *arg)
{
    (void)arg;
    store *st = fixture_open(fixture_path);
    int code = store_state(st) == STORE_OK && put_one(st, 64) == TW_OK ? 0 : 1;
    store_close(st);
    return code;
}

START_TEST(children_of_a_parent_without_a_store_have_their_own)
{
    store *st = fixture_open(fixture_path);

    store_close(st);
    ck_assert_int_eq(child_run(open_own, NULL), 0);
}
END_TEST

static TCase *add_case(Suite *s, const char *name)
{
    TCase *t = tcase_create(name);

    tcase_add_checked_fixture(t, fixture_setup, fixture_teardown);
    tcase_set_timeout(t, 120);
    suite_add_tcase(s, t);
    return t;
}

Suite *test_suite(void)
{
    Suite *s = suite_create("store_processes");
    TCase *t = add_case(s, "together");

    tcase_add_test(t, processes_that_start_together_make_one_store);
    t = add_case(s, "killed");
    tcase_add_test(t, what_was_committed_survives_kills);
    tcase_add_test(t, a_killed_process_holds_no_lease);
    t = add_case(s, "locked");
    tcase_add_test(t, a_short_lock_is_waited_for);
    tcase_add_test(t, a_long_lock_costs_one_bounded_wait);
    tcase_add_test(t, a_writer_that_never_ends_costs_one_bounded_wait);
    t = add_case(s, "full");
    tcase_add_test(t, files_that_cannot_grow_cost_one_warning);
    tcase_add_test(t, a_full_disk_costs_one_warning);
    t = add_case(s, "forked");
    tcase_add_test(t, children_leave_the_parents_store_alone);
    tcase_add_test(t, children_of_a_parent_without_a_store_have_their_own);
    return s;
}
